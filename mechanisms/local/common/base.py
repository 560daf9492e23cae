"""Base classes of mechanisms: the frame of estimates and standard errors, and reports of bits or of one symbol."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Floats, Integers, Values
from mechanisms.declared import Declared
from mechanisms.local.common.categorical_sampling import one_hot, tally_values
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.common.packed_bits import BitReports
from mechanisms.local.common.response_counts import ResponseCounts, check_round, check_truth, check_values, check_where
from mechanisms.local.mechanism import Counts, Estimate, Memory, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_counts, check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.report_claims import mixed_reports_claim
from mechanisms.privacy.view import LinkedReports, Report, Shuffled
from mechanisms.privacy.view_claims import ViewClaims


class BaseMechanism(ViewClaims, ABC):
    """What the mechanisms here have in common: checked arguments, no memory, and one frame for estimates and errors.

    Unless a class states otherwise there is one round, devices keep nothing between queries, and the paper warns of no
    parameters. A class defines `estimate_from` and `variance`; `estimate` and `std_error` check their arguments and
    call them. `claim` calls the class's rule for the view (`ViewClaims`).
    """

    truth_round: ClassVar[int] = 1
    sample_law: ClassVar[str] = "exact joint"

    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """Shape of one round's tally."""

    @abstractmethod
    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return the estimate from checked (rounds, *tally_shape) int64 counts."""

    @abstractmethod
    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the variance of the estimate as a function of the truth; every round has received a report."""

    def warnings(self) -> list[str]:
        """Return the papers' warnings about these parameters: there are none."""
        return []

    def enrol(self, n: int, *, rng: np.random.Generator) -> Memory:  # noqa: ARG002 - other mechanisms draw from it
        """Return the memory of n devices: none."""
        return NoMemory(n)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return the unbiased estimate, as `estimate_from` states.

        Parameters
        ----------
        counts : (rounds, *tally_shape) int64
        counted, asked : (rounds,) int

        Raises
        ------
        ParameterError
            If the counts have another shape or dtype, or more devices are counted than asked.
        """
        received = ResponseCounts.from_rounds(counted, asked, rounds=self.rounds, truth_round=self.truth_round)
        return self.estimate_from(check_counts("counts", counts, (self.rounds, *self.tally_shape)), received)

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> Floats:
        """Return the exact standard error of the estimate, (V,), the root of `variance`; infinite without reports.

        If only some of the devices were counted, the variance of a simple random sample is added.

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        asked, counted : (rounds,) int, optional
            An ideal channel by default.
        """
        truth = check_true_counts(true_counts, self.cells)
        received = ResponseCounts.from_truth(
            int(truth.sum()), counted, asked, rounds=self.rounds, truth_round=self.truth_round
        )
        if received.silent:
            return np.full(self.cells, np.inf)
        return self.variance(received).std_error(truth[1:])

    def check_answer(self, round_: int, truth: Truth, devices: int) -> None:
        """Raise ParameterError if there is no such round, or the truth is not a cell for each device."""
        check_round(round_, self.rounds)
        check_truth(truth, devices=devices, cells=self.cells)


class DeclaredMechanism(BaseMechanism):
    """A mechanism with declared parameters, whose devices draw all coins anew in each query.

    The declaration checks the parameters, and the reports of the other devices hide a shuffled report.
    """

    declared: ClassVar[Declared] = Declared()

    def __post_init__(self) -> None:
        self.declared.check(self)

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of one round's reports in random order, hidden by the other devices' reports."""
        local, single = Report(view.round, view.queries, adjacency=view.adjacency), Report(view.round)
        # The reports that hide the device's come from any cells, so they differ from it as much as after a move.
        return mixed_reports_claim(view, local=self.claim_report(local), single=self.claim_report(single))

    def changed(self, view: Report | LinkedReports) -> int:
        """Return V for a move, which changes two answers about cells; 1 where only one changes."""
        return self.cells if view.adjacency == "move" else 1


class BinaryReports(DeclaredMechanism):
    """A mechanism whose report is a Yes or a No about every cell, in packed bits."""

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """(V, 2): the answers No and Yes about each cell."""
        return (self.cells, 2)

    def encode(self, reports: BitReports) -> Vectors:
        """Return (n, V, 2) int64: for each cell, a 1 in the column of the answer given, No or Yes."""
        yes = self._check_reports(reports).to_dense().astype(np.int64)
        return np.stack([1 - yes, yes], axis=-1)

    def tally(self, reports: BitReports, where: Where | None = None) -> Counts:
        """Return the numbers of answers No and Yes about each cell, (V, 2) int64, of the masked devices."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        devices = len(reports) if where is None else int(np.count_nonzero(mask))
        return with_no(reports.count_yes(mask), devices)

    def _check_reports(self, reports: BitReports) -> BitReports:
        """Reject reports about a different number of cells."""
        if not isinstance(reports, BitReports) or reports.cells != self.cells:
            raise ParameterError("reports", f"must be BitReports about {self.cells} cells", reports)
        return reports


def with_no(yes: Integers, devices: int) -> Counts:
    """Return (…, 2) int64 counts of No and Yes from (…,) counts of Yes among a number of devices."""
    return np.stack([devices - yes, yes], axis=-1).astype(np.int64, copy=False)


class CategoricalReports(BaseMechanism):
    """A mechanism whose report is one of several symbols; a round's tally counts each symbol."""

    def encode(self, reports: Values) -> Vectors:
        """Return one-hot rows, (n, *tally_shape) int64."""
        (symbols,) = self.tally_shape
        return one_hot(check_values(reports, outputs=symbols), symbols)

    def tally(self, reports: Values, where: Where | None = None) -> Counts:
        """Return the number of reports of each symbol, (*tally_shape,) int64, of the masked devices."""
        (symbols,) = self.tally_shape
        mask = check_where(where, devices=len(reports))
        return tally_values(check_values(reports, outputs=symbols), mask, symbols)

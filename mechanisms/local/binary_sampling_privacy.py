"""Binary Sampling Privacy: the two-round protocol as a yes/no question about every cell."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Words
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import BinaryReports, with_no
from mechanisms.local.common.estimators import TwoRounds
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.common.packed_bits import BitReports, batch_of_rows, set_bits_where, toss_rows, words_of
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, DeviceRows, Estimate, NoMemory, Truth
from mechanisms.local.sampling_privacy import sampling_warnings, warn
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.released import released_counts_claim, released_differences_claim
from mechanisms.privacy.report_claims import binary_answer_claim, per_cell_claim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shuffled
from mechanisms.protocols.protocol import Protocol
from mechanisms.protocols.published import binary_sampling_privacy


@dataclass(frozen=True, eq=False, slots=True)
class BinaryDice(DeviceRows):
    """One categorical draw per device and cell: one bit for outcome S and one for outcome 1; if neither is set, 0.

    Parameters
    ----------
    sampled, ones : (n, ceil(cells / 64)) uint64
        Packed rows; no bit is set in both.
    """

    sampled: Words
    ones: Words


@dataclass(frozen=True, kw_only=True)
class BinarySamplingPrivacy(BinaryReports):
    """One categorical draw per cell, used in both rounds: S with π_s, 0 with π_0, 1 otherwise (SP eqs 6-11).

    Round one: S → 0, 0 → 0, 1 → 1. Round two: Yes if the draw is S and the device is in the cell; everything else as in
    round one. The draws for different cells are independent.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s, in (0, 1].
    blank_zero : float, optional
        π_0, in [0, 1 − π_s]; (1 − π_s)/2 by default.

    Warns
    -----
    ParameterWarning
        If the paper advises against a parameter: π_s of 1/2 or more, a blank of probability 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN, or π_s + π_0 exceeds 1 by more than 1e-9.
    """

    cells: int
    sampling: float
    blank_zero: float | None = None
    rounds: ClassVar[int] = 2
    truth_round: ClassVar[int] = 2
    declared: ClassVar[Declared] = declaration("sampling_privacy")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.protocol
        zero = (1.0 - self.sampling) / 2 if self.blank_zero is None else self.blank_zero
        object.__setattr__(self, "blank_zero", zero)
        warn(self.warnings(), stacklevel=3)

    @cached_property
    def protocol(self) -> Protocol:
        """The table: the joint distribution of both answers about a cell, of the kinds "no" and "yes"."""
        return binary_sampling_privacy.in_floats(sampling=self.sampling, blank_zero=self.blank_zero)

    @cached_property
    def faces(self) -> tuple[float, float, float]:
        """π_0, π_1 and π_s: the probabilities of the outcomes, summing to 1."""
        zero, one, sampling = (self.protocol.mass("yes", answers) for answers in (("0", "0"), ("1", "1"), ("0", "1")))
        return zero, one, sampling

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and both rounds' reports take at most about 64 MB."""
        return batch_of_rows(4 * words_of(self.cells))

    def warnings(self) -> list[str]:
        """Return warnings about parameters that the paper advises against."""
        zero, one, _ = self.faces
        return sampling_warnings(sampling=self.sampling, blank_zero=zero, blanks=(one,))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> BinaryDice:
        """Make every device's draw for every cell, once for both rounds (SP eq 6)."""
        _, one, _ = self.faces
        sampled = toss_rows(memory.devices, self.cells, self.sampling, rng=rng)
        given_blank = min(1.0, one / (1.0 - self.sampling)) if self.sampling < 1.0 else 0.0
        return BinaryDice(sampled, toss_rows(memory.devices, self.cells, given_blank, rng=rng, unless=sampled))

    def answer(self, round: int, truth: Truth, coins: BinaryDice) -> BitReports:  # noqa: A002 - the paper's word
        """Return a Yes or No about every cell (SP eqs 7-8 in round one, 9-10 in round two).

        A device is a No-holder of the questions about all cells that it is not in; one outside every cell, of all.
        """
        self.check_answer(round, truth, len(coins))
        if round == 1:
            return BitReports(coins.ones, self.cells)
        rows = coins.ones.copy()
        set_bits_where(rows, truth, coins.sampled)
        return BitReports(rows, self.cells)

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return (C1₂ − C1₁)/π_s (SP eq 11), with counts scaled by response rates if not all were counted.

        Parameters
        ----------
        counts : (2, V, 2) int64
        received : ResponseCounts
            Of two rounds.

        Returns
        -------
        Estimate
            Unbiased; binomial inversion on an ideal channel, else the interval of round two given round one.
        """
        first, second = counts[:, :, 1]
        return TwoRounds(self.sampling, self.faces[1]).estimate(first, second, received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return Y(1 − π_s)/π_s, whatever the number of devices; larger if not all were counted."""
        return TwoRounds(self.sampling, self.faces[1]).variance(received)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (2, V, 2) counts, independent between cells.

        Of a cell's Y devices Bin(Y, π_s) are sampled. The rest report 1 with probability π_1/(1 − π_s) in both
        rounds, and the N − Y others with probability π_1. In round two the sampled devices report 1 as well.
        """
        truth = check_true_counts(true_counts, self.cells)
        _, one, sampling = self.faces
        devices, inside = truth.sum(), truth[1:]
        sampled = rng.binomial(inside, sampling)
        given_blank = min(1.0, one / (1.0 - sampling)) if sampling < 1.0 else 0.0
        first = rng.binomial(inside - sampled, given_blank) + rng.binomial(devices - inside, one)
        return with_no(np.stack([first, first + sampled]), devices)

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of one round's report: nothing in round one.

        The claim of round two is exact for the two answers that a move changes, whereas SP eqs 18-25 count one.
        """
        if view.round == 1:
            return Claim.exact(0.0, ConstantDelta(0.0), "Round one is answered without the truth (SP eqs 7-8).")
        zero, one, sampling = self.faces
        return binary_answer_claim(
            true_yes=one + sampling,
            true_no=zero,
            false_yes=one,
            apart=sampling,
            cells=self.changed(view),
            queries=view.queries,
            source="SP eqs 9-10; eqs 18-25 count one of the two answers",
        )

    def claim_linked(self, view: LinkedReports) -> Claim:
        """Return the claim of both reports: only a device in the cell answers 0 and then 1, so no ε is finite."""
        zero, one, sampling = self.faces
        source = "SP eqs 7-10, the pairs of answers 00, 11 and 01; 01 is given only by a device in the cell"
        linked_yes, linked_no = (zero, one, sampling), (zero + sampling, one, 0.0)
        cells = self.changed(view)
        return per_cell_claim(linked_yes, linked_no, cells=cells, queries=view.queries, source=source)

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of one round's reports in random order."""
        local, single = Report(view.round, view.queries, adjacency=view.adjacency), Report(view.round)
        return shuffled_claim(view, local=self.claim_report(local), single=self.claim_report(single))

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of both rounds' published counts."""
        zero, one, sampling = self.faces
        seen = one / (zero + one) if sampling < 1.0 else 0.0
        return released_counts_claim(view, sampling=sampling, seen=seen, by_cell=True)

    def claim_differences(self, view: ReleasedDifferences) -> Claim:
        """Return the claim of the published differences."""
        return released_differences_claim(view, self.sampling)

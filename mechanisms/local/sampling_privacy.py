"""Multi-valued Sampling Privacy: the two-round protocol whose error does not grow with the devices outside."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Values
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import CategoricalReports
from mechanisms.local.common.categorical_sampling import alias_table, answer_drawn, draw_categorical, redraw
from mechanisms.local.common.estimators import TwoRounds
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, DeviceRows, Estimate, NoMemory, Truth
from mechanisms.parameter import ParameterError, ParameterWarning, check_chance, check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.released import released_counts_claim, released_differences_claim
from mechanisms.privacy.sampling_privacy_claims import (
    linked_claim,
    refreshed_release_claim,
    round_one_claim,
    round_two_claim,
)
from mechanisms.privacy.shuffled import shuffled_value_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shuffled

SUM_TOLERANCE = 1e-9


def resolve_blanks(*, cells: int, sampling: float, blank_zero: float | None, blank: ArrayLike | None) -> Floats:
    """Return π_0…π_V, (cells + 1,) float64, which with π_s sum to 1.

    Parameters
    ----------
    cells : int
        V.
    sampling : float
        π_s.
    blank_zero : float, optional
        π_0.
    blank : float or (cells,) float, optional
        π_v of each cell. If neither is given, all V + 1 blanks are equal. If one of them is given, the other has the
        remaining probability.

    Raises
    ------
    ParameterError
        If a blank is not a probability, there is not one per cell, or the outcomes do not sum to 1 within 1e-9.
    """
    left = 1.0 - sampling
    if blank is None:
        if blank_zero is None:
            return np.full(cells + 1, left / (cells + 1))
        zero = check_chance("blank_zero", blank_zero)
        if zero > left + SUM_TOLERANCE:
            raise ParameterError("blank_zero", f"must be at most 1 − sampling = {left:g}", blank_zero)
        blanks = np.full(cells + 1, max(left - zero, 0.0) / cells)
        blanks[0] = min(zero, left)
        return blanks
    values = _check_cells(blank, cells)
    total = float(values.sum())
    zero = left - total if blank_zero is None else check_chance("blank_zero", blank_zero)
    if blank_zero is None and zero < -SUM_TOLERANCE:
        raise ParameterError("blank", f"must sum over the cells to at most 1 − sampling = {left:g}", total)
    if abs(sampling + zero + total - 1.0) > SUM_TOLERANCE:
        rule = f"must make sampling ({sampling:g}), blank_zero ({zero:g}) and the cells' blanks ({total:g}) sum to 1"
        raise ParameterError("blank", rule, sampling + zero + total)
    # A remainder due to rounding is no possible outcome: a claim must not depend on it.
    return np.concatenate([[zero if zero > SUM_TOLERANCE or blank_zero is not None else 0.0], values])


def _check_cells(blank: ArrayLike, cells: int) -> Floats:
    """Return one probability per cell."""
    given = np.asarray(blank)
    if given.dtype.kind not in "fiu":
        raise ParameterError("blank", "must be a number, or one per cell", blank)
    if given.ndim and given.shape != (cells,):
        raise ParameterError("blank", f"must be a number, or one per cell, shape {(cells,)}", given.shape)
    values = np.array(np.broadcast_to(given, (cells,)), dtype=np.float64)
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        cell = int(wrong.argmax())
        raise ParameterError("blank", f"must be a probability, 0 to 1, at cell {cell + 1}", float(values[cell]))
    check_chance("blank", values.min(initial=1.0, where=values > 0.0))
    return values


def sampling_warnings(*, sampling: float, blank_zero: float, blanks: ArrayLike) -> list[str]:
    """Return a sentence for each property of these parameters that the paper, or its mathematics, advises against.

    Parameters
    ----------
    sampling : float
        π_s.
    blank_zero : float
        π_0.
    blanks : (values,) float
        The probabilities of the other blanks.
    """
    sentences = []
    if sampling >= 0.5:
        sentences.append(f"sampling: the paper requires less than 1/2 (SP sec 3.1), got {sampling:g}.")
    if blank_zero == 0.0:
        sentences.append(
            "blank_zero: with π_0 = 0 an answer 0 in round one reveals that the device is sampled and will report "
            "the truth, and in round two that it is outside every cell."
        )
    if np.min(blanks) == 0.0:
        sentences.append(
            "blank: a value of probability 0 as a blank is reported in round two by its own devices only, which "
            "reveals the truth with certainty."
        )
    return sentences


def warn(sentences: list[str], *, stacklevel: int) -> None:
    """Issue each sentence as a warning, attributed to the frame `stacklevel` levels above this function's."""
    for sentence in sentences:
        warnings.warn(sentence, ParameterWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True, eq=False, slots=True)
class Dice(DeviceRows):
    """One categorical draw per device, used in both rounds, or with its outcome in round two.

    Parameters
    ----------
    drawn : (n,) int32
        −1 for S, else the blank 0…V.
    again : (n,) int32, optional
        With refresh, the outcome in round two, for which some blanks are drawn again: −1 for S where `drawn` is S.
    """

    drawn: Values
    again: Values | None = None


class SamplingPrivacy(CategoricalReports):
    """One categorical draw among S (sampled) and the blanks 0, 1…V, used in both rounds (SP eqs 12-16).

    Round one: S → 0, v → v. Round two: S → the cell the device is in then (0 outside every cell), v → v. A
    blank is reported alike in both rounds and cancels in the difference, so the error does not depend on the number of
    devices outside.

    With `refresh` (not in the paper) a blank is drawn again for round two with probability ρ. The part of the noise
    that no longer cancels grows with the number of devices asked. In return, ε is finite for an observer who links a
    device's reports.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s, in (0, 1].
    blank_zero : float, optional
        π_0. By default the probability that `blank` leaves, or the same probability as each cell: (1 − π_s)/(V + 1).
    blank : float or (cells,) float, optional
        π_v, one value for all cells or one per cell. By default the cells share equally what π_s and π_0 leave.
    refresh : float
        ρ, in [0, 1]; by default 0, the paper's protocol.

    Attributes
    ----------
    blanks : (cells + 1,) float64
        π_0…π_V, read-only; they and π_s sum to 1.

    Warns
    -----
    ParameterWarning
        If the paper advises against a parameter: π_s of 1/2 or more, a blank of probability 0.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN, or the outcomes do not sum to 1 within 1e-9.
    """

    rounds: ClassVar[int] = 2
    truth_round: ClassVar[int] = 2
    declared: ClassVar[Declared] = declaration("sampling_privacy")
    batch: ClassVar[int] = 2**20

    def __init__(
        self,
        *,
        cells: int,
        sampling: float,
        blank_zero: float | None = None,
        blank: ArrayLike | None = None,
        refresh: float = 0.0,
    ) -> None:
        self.cells, self.sampling, self.refresh = cells, sampling, refresh
        self.declared.check(self)
        self.blanks = resolve_blanks(cells=self.cells, sampling=self.sampling, blank_zero=blank_zero, blank=blank)
        self.blanks.flags.writeable = False
        warn(self.warnings(), stacklevel=2)

    def __repr__(self) -> str:
        """Return the parameters, with the blanks abbreviated."""
        zero, rest = self.blanks[0], self.blanks[1:]
        blank = f"{rest[0]:g}" if rest.min() == rest.max() else f"{rest.min():g}..{rest.max():g}"
        refresh = f", refresh={self.refresh:g}" if self.refresh else ""
        shown = f"cells={self.cells}, sampling={self.sampling:g}, blank_zero={zero:g}, blank={blank}"
        return f"SamplingPrivacy({shown}{refresh})"

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same probabilities of the outcomes and of a refresh."""
        if not isinstance(other, SamplingPrivacy):
            return NotImplemented
        same = self.sampling == other.sampling and self.refresh == other.refresh
        return same and np.array_equal(self.blanks, other.blanks)

    def __hash__(self) -> int:
        """Return a hash of the probabilities."""
        return hash((self.sampling, self.refresh, self.blanks.tobytes()))

    @property
    def tally_shape(self) -> tuple[int]:
        """(V + 1,): the value 0, then each cell."""
        return (self.cells + 1,)

    @property
    def redrawn(self) -> Floats:
        """The law of a blank that is drawn again, π_0…π_V over 1 − π_s, (V + 1,); 0 if every device is sampled."""
        return self.blanks / (1.0 - self.sampling) if self.sampling < 1.0 else np.zeros_like(self.blanks)

    @cached_property
    def _table(self) -> tuple[Floats, Values] | None:
        """The alias table of the blanks; None for equal ones, which need none, and for blanks that are never drawn."""
        equal = self.sampling == 1.0 or self.blanks.min() == self.blanks.max()
        return None if equal else alias_table(self.blanks)

    def warnings(self) -> list[str]:
        """Return warnings about parameters that the paper advises against."""
        zero = float(self.blanks[0])
        sentences = sampling_warnings(sampling=self.sampling, blank_zero=zero, blanks=self.blanks[1:])
        if self.refresh and zero == 0.0:
            sentences.append(
                "refresh: with π_0 = 0 no blank is 0 in round one, so refreshing hides no linked pair of reports."
            )
        return sentences

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> Dice:
        """Make every device's draw, once for both rounds (SP eq 12), and with refresh draw some blanks again."""
        drawn = draw_categorical(memory.devices, self.sampling, self.cells + 1, self._table, rng=rng)
        if not self.refresh:
            return Dice(drawn)
        return Dice(drawn, redraw(drawn, self.refresh, self.cells + 1, self._table, rng=rng))

    def answer(self, round: int, truth: Truth, coins: Dice) -> Values:  # noqa: A002 - the paper's word
        """Return one value per device, (n,) int32 in 0…V (SP eqs 13-14 in round one, 15 in round two)."""
        self.check_answer(round, truth, len(coins))
        drawn = coins.drawn if round == 1 or coins.again is None else coins.again
        reports = np.empty_like(drawn)
        answer_drawn(drawn, truth[:0] if round == 1 else truth, reports)
        return reports

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return (C_v,₂ − C_v,₁)/π_s (SP eq 16), with counts scaled by response rates if not all were counted.

        With refresh, (C_v,₂ − λC_v,₁ − (1 − λ)Nπ_v)/π_s: round one is then a control variate.

        Parameters
        ----------
        counts : (2, V + 1) int64
        received : ResponseCounts
            Of two rounds.

        Returns
        -------
        Estimate
            Unbiased; binomial inversion on an ideal channel without refresh, else the interval of round two given round
            one.
        """
        first, second = counts[:, 1:]
        return self.estimator().estimate(first, second, received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return Y(1 − π_s)/π_s, whatever the number of devices; larger with refresh, or if not all were counted."""
        return self.estimator().variance(received)

    def estimator(self, last: int | None = None) -> TwoRounds:
        """Return the estimator of cells 1 to `last`, of all by default."""
        return TwoRounds(self.sampling, self.blanks[1:] if last is None else self.blanks[1 : last + 1], self.refresh)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (2, V + 1) counts: Bin(Y_v, π_s) sampled devices per truth, and one multinomial of the others' blanks.

        With refresh, Bin(B_v, ρ) of the B_v blanks of each value are drawn again, all in one multinomial.
        """
        truth = check_true_counts(true_counts, self.cells)
        sampled = rng.binomial(truth, self.sampling)
        rest = int(truth.sum() - sampled.sum())
        faces = self.blanks / self.blanks.sum() if self.sampling < 1.0 else self.blanks
        blanks = rng.multinomial(rest, faces) if rest else np.zeros_like(truth)
        first, second = blanks.copy(), blanks + sampled
        first[0] += sampled.sum()
        if self.refresh and rest:
            redrawn = rng.binomial(blanks, self.refresh)
            second += rng.multinomial(int(redrawn.sum()), faces) - redrawn
        return np.stack([first, second]).astype(np.int64, copy=False)

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of one round's report: nothing in round one.

        The claim of round two is exact, over the truths 0…V, whereas SP eq 29 covers 1…V. Refresh does not change the
        distribution of a single round: the blanks of each come with π_v.
        """
        if view.round == 1:
            return round_one_claim()
        return round_two_claim(sampling=self.sampling, blanks=self.blanks, queries=view.queries)

    def claim_linked(self, view: LinkedReports) -> Claim:
        """Return the claim of both reports: only a device in cell v reports 0 and then v.

        So without refresh no ε is finite and δ = π_s.
        """
        return linked_claim(sampling=self.sampling, blanks=self.blanks, refresh=self._redrawn, queries=view.queries)

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of one round's reports in random order."""
        local = self.claim_report(Report(view.round, view.queries, adjacency=view.adjacency))
        if view.round == 1:
            return local
        return shuffled_value_claim(view, sampling=self.sampling, blanks=self.blanks, local=local)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of both rounds' published counts."""
        if self._redrawn:
            return refreshed_release_claim(view, sampling=self.sampling, blanks=self.blanks, refresh=self._redrawn)
        cells, every = float(self.blanks[1:].sum()), float(self.blanks.sum())
        return released_counts_claim(view, sampling=self.sampling, seen=cells / every if every else 0.0)

    def claim_differences(self, view: ReleasedDifferences) -> Claim:
        """Return the claim of the published differences."""
        if self._redrawn:
            return refreshed_release_claim(view, sampling=self.sampling, blanks=self.blanks, refresh=self._redrawn)
        return released_differences_claim(view, self.sampling)

    @property
    def _redrawn(self) -> float:
        """Return ρ; 0 where there are no blanks to draw again."""
        return self.refresh if self.sampling < 1.0 else 0.0

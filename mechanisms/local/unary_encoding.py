"""Unary encodings: one noisy bit per cell. Symmetric (SUE, basic RAPPOR), optimised (OUE) and thresholded (THE)."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mechanisms.local.common.binary_query import batch_of_rows, encode_rows, tally_rows
from mechanisms.local.common.frequency_oracle import PureProtocol, check_budget
from mechanisms.local.common.packed_bits import BitReports, set_bits, toss_rows, words_of
from mechanisms.local.common.response_counts import check_round, check_truth
from mechanisms.local.mechanism import Counts, NoMemory, Truth, Vectors, Where
from mechanisms.local.randomized_response import TwoCoins
from mechanisms.parameter import ParameterError, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.report_claims import binary_answer_claim


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(PureProtocol):
    """Independent noisy bits: a cell's bit is 1 with probability p if the device is in the cell, else with q.

    A move between two cells changes the distribution of two bits, and a move to outside that of one. The first
    is the worst case, whatever p and q, and claims are about it.
    """

    sample_law: ClassVar[str] = "exact joint"

    @property
    def true_no(self) -> float:
        """1 − p, as accurately as double precision allows."""
        return 1.0 - self.true_yes

    @property
    @abstractmethod
    def apart(self) -> float:
        """Return p − q, computed without subtracting two nearly equal numbers."""

    @property
    def epsilon_between_cells(self) -> float:
        """ε of a report, for a move between two cells: ln(p(1 − q)/(q(1 − p)))."""
        return math.log1p(self.apart / self.false_yes) + math.log1p(self.apart / self.true_no)

    @property
    def epsilon_to_outside(self) -> float:
        """ε of a report, for a move between a cell and outside: max(ln(p/q), ln((1 − q)/(1 − p)))."""
        return math.log1p(self.apart / min(self.false_yes, self.true_no))

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, 2): the answers No and Yes about each cell."""
        return (self.cells, 2)

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and reports take at most about 64 MB."""
        return batch_of_rows(2 * words_of(self.cells))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> TwoCoins:
        """Toss one noise bit per cell, and one hit that turns a No about the device's own cell into a Yes.

        The noise bit is Yes with probability q and the hit has (p − q)/(1 − q): q + (1 − q)·(p − q)/(1 − q) = p.
        """
        noise = toss_rows(memory.devices, self.cells, self.false_yes, rng=rng)
        hits = rng.random(memory.devices) < (self.true_yes - self.false_yes) / (1.0 - self.false_yes)
        return TwoCoins(noise, hits)

    def answer(self, round: int, truth: Truth, coins: TwoCoins) -> BitReports:  # noqa: A002 - the paper's word
        """Return one bit per cell, (n, V) packed."""
        check_round(round, self.rounds)
        check_truth(truth, devices=len(coins), cells=self.cells)
        rows = coins.noise.copy()
        set_bits(rows, truth, coins.hits)
        return BitReports(rows, self.cells)

    def encode(self, reports: BitReports) -> Vectors:
        """Return (n, V, 2) int64: for each cell, a 1 in the column of the answer given, No or Yes."""
        return encode_rows(reports, self.cells)

    def tally(self, reports: BitReports, where: Where | None = None) -> Counts:
        """Return the numbers of answers No and Yes about each cell, (V, 2) int64."""
        return tally_rows(reports, self.cells, where)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V, 2) counts: Yes is Bin(Y, p) + Bin(N − Y, q), independent between cells."""
        truth = check_true_counts(true_counts, self.cells)
        devices, inside = truth.sum(), truth[1:]
        yes = rng.binomial(inside, self.true_yes) + rng.binomial(devices - inside, self.false_yes)
        return np.stack([devices - yes, yes], axis=-1).astype(np.int64, copy=False)[np.newaxis]

    @property
    @abstractmethod
    def _source(self) -> str:
        """The source of p and q: paper, section and name."""

    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the numbers of Yes answers."""
        return counts[:, 1]

    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return the exact claim: the hockey-stick divergence of the bits that a move changes."""
        return binary_answer_claim(
            true_yes=self.true_yes,
            true_no=self.true_no,
            false_yes=self.false_yes,
            apart=self.apart,
            cells=self.cells,
            queries=queries,
            source=self._source,
        )


@dataclass(frozen=True, kw_only=True)
class SymmetricUnary(UnaryEncoding):
    """Report every bit truthfully with e^(ε/2)/(e^(ε/2) + 1), flipped otherwise (Erlingsson et al. 2014; SUE).

    Wang et al. 2017 sec 4.3. p = 1 − q. A move between cells has exactly ε, a move to outside ε/2.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report, for a move between cells; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_budget("epsilon", self.epsilon)

    @property
    def true_yes(self) -> float:
        """Return p = e^(ε/2)/(e^(ε/2) + 1)."""
        return float(expit(self.epsilon / 2))

    @property
    def true_no(self) -> float:
        """1 − p = 1/(e^(ε/2) + 1)."""
        return float(expit(-self.epsilon / 2))

    @property
    def false_yes(self) -> float:
        """Return q = 1/(e^(ε/2) + 1)."""
        return float(expit(-self.epsilon / 2))

    @property
    def apart(self) -> float:
        """Return p − q = tanh(ε/4)."""
        return math.tanh(self.epsilon / 4)

    @property
    def _source(self) -> str:
        return "Wang et al. 2017 sec 4.3, SUE"


@dataclass(frozen=True, kw_only=True)
class OptimisedUnary(UnaryEncoding):
    """Keep a 1 with p = 1/2, flip a 0 with q = 1/(e^ε + 1) (Wang et al. 2017 sec 4.3, OUE).

    The variance for a rare cell is 4e^ε/(e^ε − 1)² per device (their eq 12). A move between cells has exactly ε,
    a move to outside ln((e^ε + 1)/2).

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report, for a move between cells; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_budget("epsilon", self.epsilon)

    @property
    def true_yes(self) -> float:
        """Return p = 1/2."""
        return 0.5

    @property
    def false_yes(self) -> float:
        """Return q = 1/(e^ε + 1)."""
        return float(expit(-self.epsilon))

    @property
    def apart(self) -> float:
        """Return p − q = tanh(ε/2)/2."""
        return math.tanh(self.epsilon / 2) / 2

    @property
    def _source(self) -> str:
        return "Wang et al. 2017 sec 4.3, OUE"


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogram(UnaryEncoding):
    """Each entry of the one-hot vector gets Laplace noise of scale 2/ε and reports whether it exceeds θ.

    Wang et al. 2017 sec 4.2. The report consists of independent bits, distributed as in a unary encoding with
    p = 1 − e^(ε(θ − 1)/2)/2 and q = e^(−εθ/2)/2, and they are drawn as such. The bits are a function of the noisy
    entries and have a smaller ε than these; claims are about the bits.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of the noisy entries, for a move between cells; in 1e-6…50.
    threshold : float, optional
        θ, in 0…1; by default the one that minimises the variance for a rare cell.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Check the parameters and fill in the threshold."""
        super().__post_init__()
        epsilon = check_budget("epsilon", self.epsilon)
        threshold = best_threshold(epsilon) if self.threshold is None else self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
            raise ParameterError("threshold", "must be a number", threshold)
        if not 0.0 <= threshold <= 1.0:
            raise ParameterError("threshold", "must be in 0..1", threshold)
        object.__setattr__(self, "threshold", float(threshold))

    @property
    def true_yes(self) -> float:
        """p, probability that 1 plus its noise exceeds θ."""
        return 1.0 - self.true_no

    @property
    def true_no(self) -> float:
        """1 − p = e^(ε(θ − 1)/2)/2."""
        return math.exp(self.epsilon * (self._threshold - 1.0) / 2) / 2

    @property
    def false_yes(self) -> float:
        """Return q = e^(−εθ/2)/2, probability that noise alone exceeds θ."""
        return math.exp(-self.epsilon * self._threshold / 2) / 2

    @property
    def apart(self) -> float:
        """Return p − q = 1 − e^(ε(θ − 1)/2)/2 − e^(−εθ/2)/2."""
        return (
            -(math.expm1(self.epsilon * (self._threshold - 1.0) / 2) + math.expm1(-self.epsilon * self._threshold / 2))
            / 2
        )

    @property
    def _threshold(self) -> float:
        """Return θ."""
        return 0.0 if self.threshold is None else self.threshold

    @property
    def _source(self) -> str:
        return f"Wang et al. 2017 sec 4.2, THE with θ = {self._threshold:.6g}"


def best_threshold(epsilon: float) -> float:
    """Return the θ that minimises q(1 − q)/(p − q)², in closed form; Wang et al. 2017 search numerically.

    With z = e^(εθ/2) and c = e^(−ε/2) the function is (2z − 1)/(2z − cz² − 1)²; its derivative vanishes where
    3cz² − 2(1 + c)z + 1 = 0, and the larger root is the minimum. It lies between ½ and 1.
    """
    c = math.exp(-epsilon / 2)
    z = ((1.0 + c) + math.sqrt(1.0 - c + c * c)) / (3.0 * c)
    return min(1.0, 2.0 * math.log(z) / epsilon)

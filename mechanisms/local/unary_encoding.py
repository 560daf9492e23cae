"""Unary encodings: one noisy bit per cell. SUE (basic RAPPOR), OUE, THE, and randomized response with two coins."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mechanisms.compiled import Integers, Mask, Words, expit
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import BinaryReports, with_no
from mechanisms.local.common.frequency_oracle import BudgetedProtocol, PureProtocol
from mechanisms.local.common.packed_bits import BitReports, batch_of_rows, set_bits, toss_rows, words_of
from mechanisms.local.mechanism import Coins, Counts, DeviceRows, Memory, Truth
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.published_sums import sums_claim
from mechanisms.privacy.report_claims import binary_answer_claim
from mechanisms.privacy.view import ReleasedCounts, Report


@dataclass(frozen=True, eq=False, slots=True)
class TwoCoins(DeviceRows):
    """Combined result of the two coins of every device for every cell.

    Parameters
    ----------
    noise : (n, ceil(cells / 64)) uint64
        Cells about which the device answers Yes whatever the truth: first coin tails, second heads.
    hits : (n,) bool
        Whether the device answers Yes about the cell it is in, if `noise` does not already.
    """

    noise: Words
    hits: Mask


class BitProbabilities(NamedTuple):
    """Probabilities of the noisy bit of one cell, each as accurate as double precision allows.

    Parameters
    ----------
    true_yes, true_no : float
        p and 1 − p, of a 1 and a 0 if the device is in the cell.
    false_yes : float
        q, of a 1 if it is not.
    apart : float
        p − q, computed without subtracting two nearly equal numbers.
    """

    true_yes: float
    true_no: float
    false_yes: float
    apart: float


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(BinaryReports, PureProtocol):
    """Independent noisy bits: a cell's bit is 1 with probability p if the device is in the cell, else with q.

    A move between two cells changes the distribution of two bits; a move to outside changes the distribution of one
    bit. The first is the worst case, whatever p and q, and claims are about it.
    """

    @property
    @abstractmethod
    def bit(self) -> BitProbabilities:
        """The probabilities of a bit, from the parameters."""

    @property
    def true_yes(self) -> float:
        """Return p."""
        return self.bit.true_yes

    @property
    def false_yes(self) -> float:
        """Return q."""
        return self.bit.false_yes

    @property
    @abstractmethod
    def source(self) -> str:
        """The source of p and q: paper, section and name."""

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and reports take at most about 64 MB."""
        return batch_of_rows(2 * words_of(self.cells))

    def toss(self, memory: Memory, *, rng: np.random.Generator) -> Coins:
        """Toss one noise bit per cell, and one hit that turns a No about the device's own cell into a Yes.

        The noise bit is Yes with probability q and the hit has (p − q)/(1 − q): q + (1 − q)·(p − q)/(1 − q) = p.
        """
        bit = self.bit
        noise = toss_rows(memory.devices, self.cells, bit.false_yes, rng=rng)
        hits = rng.random(memory.devices) < bit.apart / (1.0 - bit.false_yes)
        return TwoCoins(noise, hits)

    def answer(self, round: int, truth: Truth, coins: Coins) -> BitReports:  # noqa: A002 - the paper's word
        """Return one bit per cell, (n, V) packed."""
        self.check_answer(round, truth, len(coins))
        rows = coins.noise.copy()
        set_bits(rows, truth, coins.hits)
        return BitReports(rows, self.cells)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V, 2) counts: Yes is Bin(Y, p) + Bin(N − Y, q), independent between cells."""
        truth = check_true_counts(true_counts, self.cells)
        devices, inside = truth.sum(), truth[1:]
        yes = rng.binomial(inside, self.true_yes) + rng.binomial(devices - inside, self.false_yes)
        return with_no(yes, devices)[np.newaxis]

    def support(self, counts: Counts) -> Integers:
        """Return the numbers of Yes answers."""
        return counts[:, 1]

    def claim_report(self, view: Report) -> Claim:
        """Return the exact claim: the hockey-stick divergence of the bits that a move, or entering, changes."""
        changed = self.changed(view)
        return binary_answer_claim(**self.bit._asdict(), cells=changed, queries=view.queries, source=self.source)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published sums of bits, far below the claim of a report."""
        report = self.own_reports(view)
        return sums_claim(view, true_yes=self.true_yes, false_yes=self.false_yes, report=report, source=self.source)


@dataclass(frozen=True, kw_only=True)
class SymmetricUnary(UnaryEncoding, BudgetedProtocol):
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

    source: ClassVar[str] = "Wang et al. 2017 sec 4.3, SUE"
    declared: ClassVar[Declared] = declaration("sue")

    @property
    def bit(self) -> BitProbabilities:
        """Return p = e^(ε/2)/(e^(ε/2) + 1), q = 1/(e^(ε/2) + 1) and p − q = tanh(ε/4)."""
        flipped = float(expit(-self.epsilon / 2))
        return BitProbabilities(float(expit(self.epsilon / 2)), flipped, flipped, math.tanh(self.epsilon / 4))


@dataclass(frozen=True, kw_only=True)
class OptimisedUnary(UnaryEncoding, BudgetedProtocol):
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

    source: ClassVar[str] = "Wang et al. 2017 sec 4.3, OUE"
    declared: ClassVar[Declared] = declaration("oue")

    @property
    def bit(self) -> BitProbabilities:
        """Return p = 1/2, q = 1/(e^ε + 1) and p − q = tanh(ε/2)/2."""
        return BitProbabilities(0.5, 0.5, float(expit(-self.epsilon)), math.tanh(self.epsilon / 2) / 2)


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogram(UnaryEncoding, BudgetedProtocol):
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

    threshold: float | None = None
    declared: ClassVar[Declared] = declaration("the")

    def __post_init__(self) -> None:
        """Check the parameters and fill in the threshold."""
        super().__post_init__()
        if self.threshold is None:
            object.__setattr__(self, "threshold", best_threshold(self.epsilon))

    @property
    def bit(self) -> BitProbabilities:
        """Return 1 − p = e^(ε(θ − 1)/2)/2, q = e^(−εθ/2)/2 and p − q = 1 − e^(ε(θ − 1)/2)/2 − e^(−εθ/2)/2.

        p is the probability that 1 plus its noise exceeds θ, and q that noise alone does.
        """
        threshold = self.threshold or 0.0
        below, above = self.epsilon * (threshold - 1.0) / 2, -self.epsilon * threshold / 2
        true_no = math.exp(below) / 2
        apart = -(math.expm1(below) + math.expm1(above)) / 2
        return BitProbabilities(1.0 - true_no, true_no, math.exp(above) / 2, apart)

    @property
    def source(self) -> str:
        """The source of p and q: paper, section and name."""
        return f"Wang et al. 2017 sec 4.2, THE with θ = {self.threshold:.6g}"


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(UnaryEncoding):
    """Two coins per cell: answer truthfully if the first is heads, else as the second shows (SP sec 3.3, π_s = 1).

    p₁ = π_1 + (1 − π_1)π_2 is the probability of a Yes about the device's own cell, and p₀ = (1 − π_1)π_2 the
    probability of a Yes about any other cell. So it is a unary encoding with p = p₁ and q = p₀: the estimate is (C −
    p₀N)/(p₁ − p₀) for the Yes count C (SP eqs 2-5), with standard error √(Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/(p₁ − p₀).

    The claim about a report is exact: the hockey-stick divergence of the two answers that a move changes. At δ = 0 its
    ε is ln(p₁/p₀) + ln((1 − p₀)/(1 − p₁)); SP eq 30 states the first term only. Claims about other views follow from
    it, as for any mechanism of one round.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    first_coin : float
        π_1, probability of a truthful answer, in (0, 1].
    second_coin : float
        π_2, probability of a Yes otherwise, in [0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    first_coin: float
    second_coin: float
    declared: ClassVar[Declared] = declaration("randomized_response")
    source: ClassVar[str] = "SP sec 3.3 with π_s = 1; eq 30 leaves out the answer No and the second cell"

    @property
    def bit(self) -> BitProbabilities:
        """Return p₁ = π_1 + p₀, 1 − p₁ = (1 − π_1)(1 − π_2), p₀ = (1 − π_1)π_2 and p₁ − p₀ = π_1."""
        tails = 1.0 - self.first_coin
        false_yes = tails * self.second_coin
        return BitProbabilities(
            self.first_coin + false_yes, tails * (1.0 - self.second_coin), false_yes, self.first_coin
        )


def best_threshold(epsilon: float) -> float:
    """Return the θ that minimises q(1 − q)/(p − q)², in closed form; Wang et al. 2017 search numerically.

    With z = e^(εθ/2) and c = e^(−ε/2) the function is (2z − 1)/(2z − cz² − 1)²; its derivative vanishes where
    3cz² − 2(1 + c)z + 1 = 0, and the larger root is the minimum. It lies between ½ and 1.
    """
    c = math.exp(-epsilon / 2)
    z = ((1.0 + c) + math.sqrt(1.0 - c + c * c)) / (3.0 * c)
    return min(1.0, 2.0 * math.log(z) / epsilon)

"""Hadamard response: reports are more often outputs with entry +1 in the true symbol's row of a Hadamard matrix.

Entry (r, y) of Sylvester's matrix is (−1)^⟨r, y⟩, where ⟨r, y⟩ is the parity of the bits set in both r and y.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Integers, Mask, Values, compiled, expit
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import CategoricalReports
from mechanisms.local.common.frequency_oracle import FrequencyOracle
from mechanisms.local.mechanism import Counts, DeviceRows, NoMemory, Truth
from mechanisms.parameter import check_integer, check_true_counts


def hadamard_order(symbols: int) -> int:
    """Return the least power of two above the number of symbols."""
    return 1 << symbols.bit_length()


def walsh_hadamard(vector: Integers) -> Integers:
    """Return the product of the matrix with a vector, (K,) int64, in K·log₂K additions."""
    product = vector.reshape(1, -1)
    while product.shape[1] > 1:
        low, high = np.split(product, 2, axis=1)
        product = np.stack([low + high, low - high], axis=1).reshape(-1, low.shape[1])
    # Each step processes the most significant bit that remains, so rows end up in order of their bits.
    return product.reshape(-1)


@compiled
def _parity(word: int) -> int:
    """Return the parity of a word's bits."""
    word ^= word >> 16
    word ^= word >> 8
    word ^= word >> 4
    word ^= word >> 2
    word ^= word >> 1
    return word & 1


@compiled
def choose_side(points: Values, wrong: Mask, truth: Values, reports: Values) -> None:
    """Move uniform points to one side of row truth + 1: the side of entries +1, or −1 where `wrong` is set.

    Flipping the bit of a point that is the lowest bit set in the row changes its side. This maps the points of one side
    one to one to the points of the other, so uniform points stay uniform within their side.
    """
    for i in range(points.size):
        row = truth[i] + 1
        point = points[i]
        if _parity(row & point) != wrong[i]:
            point ^= row & -row
        reports[i] = point


def sample_sides(sides: Integers, *, rng: np.random.Generator) -> Integers:
    """Draw the joint counts of the outputs, (K,) int64, of devices that are uniform on one side of a row each.

    The distribution is the exact joint one. The bits of the outputs are drawn from the most significant on. For each
    bit, every group (row, required parity of the remaining bits) is split in two by a binomial draw of probability 1/2.
    If the row has the bit, an output bit of 1 inverts the parity required of the lower bits. If the row has no lower
    bits, the output bit is determined. This takes 2K·log₂K binomials, whatever the number of devices.

    Parameters
    ----------
    sides : (K, 2) int64
        Numbers of devices uniform on the outputs whose parity with row r is 0 and is 1; none is on side 1 of row 0.
    """
    # (bits of the output already drawn, rows of the remaining bits, required parity of these)
    groups: Integers = sides.reshape(1, -1, 2)
    while groups.shape[1] > 1:
        halves = groups.reshape(len(groups), 2, -1, 2)
        with_bit = rng.binomial(halves, 0.5)
        # The row has this bit only: the output's bit must equal the required parity.
        with_bit[:, 1, 0, 0], with_bit[:, 1, 0, 1] = 0, halves[:, 1, 0, 1]
        without_bit = halves - with_bit
        groups = np.stack([without_bit[:, 0] + without_bit[:, 1], with_bit[:, 0] + with_bit[:, 1, :, ::-1]], axis=1)
        groups = groups.reshape(-1, *groups.shape[2:])
    return groups[:, 0, 0].astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False, slots=True)
class HadamardCoins(DeviceRows):
    """One uniform point and one coin per device.

    Parameters
    ----------
    points : (n,) int32
        Uniform outputs 0…K − 1.
    wrong : (n,) bool
        Whether to report from the side of entries −1, the one opposite to the truth's.
    """

    points: Values
    wrong: Mask


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(CategoricalReports, FrequencyOracle):
    """Report a uniform output of the true symbol's set with probability e^ε/(e^ε + 1), else one of its complement.

    Acharya, Sun and Zhang 2019, *Hadamard Response: Estimating Distributions Privately, Efficiently, and with
    Little Communication*, sec 4 (high privacy; it is their best for ε ≤ 1, while k-ary randomized response or
    subset selection is better for large ε). K is the least power of two above the k = V + 1 symbols; the set of symbol
    x (0 outside, 1…V) contains the outputs where row x + 1 of the K × K matrix is +1; row 0 is all +1. Each set
    contains half of the outputs, and any two sets share a quarter of them.

    Parameters
    ----------
    cells : int
        The number of cells V, 1…2³⁰ − 2.
    epsilon : float
        ε of a report; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    declared: ClassVar[Declared] = declaration("hadamard_response")
    batch: ClassVar[int] = 2**20  # coins and reports take about 9 MB

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("cells", self.cells, at_least=1, at_most=2**30 - 2)

    @property
    def outputs(self) -> int:
        """K, the order of the matrix."""
        return hadamard_order(self.symbols)

    @property
    def true_yes(self) -> float:
        """Return p = e^ε/(e^ε + 1), probability that a report is in the true symbol's set."""
        return float(expit(self.epsilon))

    @property
    def false_yes(self) -> float:
        """Return q = 1/2, probability that a report is in the set of a given other symbol."""
        return 0.5

    @property
    def tally_shape(self) -> tuple[int]:
        """(K,): number of reports of each output."""
        return (self.outputs,)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> HadamardCoins:
        """Draw every device's point, and whether it reports from the wrong side."""
        points = rng.integers(self.outputs, size=memory.devices, dtype=np.int32)
        return HadamardCoins(points, rng.random(memory.devices) >= self.true_yes)

    def answer(self, round: int, truth: Truth, coins: HadamardCoins) -> Values:  # noqa: A002 - the paper's word
        """Return one output per device, (n,) int32 in 0…K − 1."""
        self.check_answer(round, truth, len(coins))
        reports = np.empty_like(coins.points)
        choose_side(coins.points, coins.wrong, truth, reports)
        return reports

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, K) joint counts of the outputs, by 2K·log₂K binomials."""
        truth = check_true_counts(true_counts, self.cells)
        sides = np.zeros((self.outputs, 2), dtype=np.int64)
        right = rng.binomial(truth, self.true_yes)
        sides[1 : self.cells + 2] = np.stack([right, truth - right], axis=1)
        return sample_sides(sides, rng=rng)[np.newaxis]

    def support(self, counts: Counts) -> Integers:
        """Return the number of reports in each cell's set: half the sum of all reports and of the row's product."""
        products = walsh_hadamard(counts)
        return np.asarray((products[0] + products[2 : self.cells + 2]) // 2)

    @property
    def distinguishing(self) -> float:
        """Probability of an output in the true symbol's set and not in a given other symbol's set: half of all."""
        return self.true_yes / 2

    @property
    def source(self) -> str:
        """The reason for the claim about a report, and the paper."""
        return "Outputs in only one of two truths' sets are e^ε times as likely under it (Acharya et al. 2019)"

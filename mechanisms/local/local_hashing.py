"""Optimised local hashing (OLH): each device draws a hash function and reports a noisy bucket."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mechanisms.compiled import Integers, Mask, Values, Words, compiled
from mechanisms.declared import MOST_BUCKETS, Declared, declaration
from mechanisms.local.common.categorical_sampling import draw_categorical
from mechanisms.local.common.frequency_oracle import FrequencyOracle
from mechanisms.local.common.response_counts import check_values, check_where
from mechanisms.local.mechanism import Counts, DeviceRows, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_integer

# Number of bits of a function's value before it is reduced to a bucket; also of the symbols it accepts.
BITS = 32


def same_bucket(buckets: int) -> float:
    """Return the exact probability that two different symbols have the same bucket.

    h(x) = ⌊g·u/2³²⌋ with u = ⌊(ax + b mod 2⁶⁴)/2³²⌋ and a, b uniform 64-bit numbers. For x < 2³² the u of two
    different symbols are independent and uniform on 0…2³² − 1 (multiply-add-shift; Dietzfelbinger 1996,
    *Universal hashing and k-wise independent random variables via integer arithmetic*, theorem 3). So their buckets are
    independent too; 2³² mod g buckets are wider than the others by 2⁻³². The probability is the sum of the squared
    widths. It exceeds 1/g by less than g·2⁻⁶⁴, and is 1/g where g is a power of two.

    Parameters
    ----------
    buckets : int
        g, 2…2³¹.
    """
    width, wider = divmod(2**BITS, buckets)
    squares: int = wider * (width + 1) ** 2 + (buckets - wider) * width**2
    return squares / 2.0 ** (2 * BITS)


def draw_seeds(n: int, *, rng: np.random.Generator) -> Words:
    """Draw the parameters a and b of n functions, (n, 2) uint64."""
    return rng.integers(0, 2**64 - 1, size=(n, 2), dtype=np.uint64, endpoint=True)


@compiled
def answer_hashed(seeds: Words, drawn: Values, truth: Values, buckets: np.uint64, reports: Values) -> None:
    """Report the bucket of the truth where `drawn` is negative, and the bucket `drawn` elsewhere."""
    half = np.uint64(BITS)
    for i in range(drawn.size):
        if drawn[i] < 0:
            mixed = (seeds[i, 0] * np.uint64(truth[i]) + seeds[i, 1]) >> half
            reports[i] = np.int32((mixed * buckets) >> half)
        else:
            reports[i] = drawn[i]


@compiled
def _edge(value: np.uint64, buckets: np.uint64) -> Any:
    """Return the least u in bucket `value`, ⌈value·2³²/g⌉."""
    return ((value << np.uint64(BITS)) + buckets - np.uint64(1)) // buckets


@compiled
def add_support(seeds: Words, values: Values, where: Mask, buckets: np.uint64, counts: Integers) -> None:
    """Add 1 to the count of every symbol that a report supports, that is, whose bucket the report states.

    Over the symbols x, ax + b is an arithmetic progression. A symbol is in a bucket if the upper half of ax + b is
    between the two edges of the bucket. After subtraction of the lower edge this is a single comparison. So each symbol
    costs one addition and one comparison, and the loop can be vectorised.
    """
    half = np.uint64(BITS)
    for i in range(values.size):
        if where.size and not where[i]:
            continue
        value = np.uint64(values[i])
        low = _edge(value, buckets)
        width = (_edge(value + np.uint64(1), buckets) - low) << half
        step = seeds[i, 0]
        place = seeds[i, 1] - (low << half)
        for x in range(counts.size):
            counts[x] += np.int64(place < width)
            place += step


@compiled
def fill_support(seeds: Words, values: Values, buckets: np.uint64, vectors: Integers) -> None:
    """Write the support of every report, (n, symbols), computed from the definition."""
    half = np.uint64(BITS)
    for i in range(values.size):
        for x in range(vectors.shape[1]):
            mixed = (seeds[i, 0] * np.uint64(x) + seeds[i, 1]) >> half
            vectors[i, x] = np.int64(np.int32((mixed * buckets) >> half) == values[i])


@dataclass(frozen=True, eq=False)
class HashedReports(DeviceRows):
    """Reports of one round: each device's hash function, and the bucket it reports.

    The coins have the same form; there the value −1 means the bucket of the truth.

    Parameters
    ----------
    seeds : (n, 2) uint64
        a and b of the function.
    values : (n,) int32
        Buckets 0…g − 1.
    """

    seeds: Words
    values: Values

    def __post_init__(self) -> None:
        """Check that there is one function per bucket."""
        if not isinstance(self.seeds, np.ndarray) or self.seeds.dtype != np.uint64:
            raise ParameterError("seeds", "must be a uint64 array", getattr(self.seeds, "dtype", self.seeds))
        if self.seeds.shape != (len(self.values), 2):
            raise ParameterError("seeds", f"must have shape {(len(self.values), 2)}", self.seeds.shape)


@dataclass(frozen=True, kw_only=True)
class LocalHashing(FrequencyOracle):
    """Each device draws a hash function onto g buckets and reports it, with a noisy bucket (Wang et al. 2017 sec 4.4).

    The bucket of the truth is reported with probability e^ε/(e^ε + g − 1), the others with equal probabilities. A
    report supports the symbols (0 outside, 1…V) that its function maps to the reported bucket. The functions are the
    multiply-add-shift family (`same_bucket`): the buckets of two symbols are exactly independent. So
    the probability of a false support is known exactly, the estimate is exactly unbiased and every cell's count is
    exactly binomial. The buckets of three symbols are not independent; no result here depends on that.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report; in 1e-6…50.
    buckets : int, optional
        g, 2…2³¹ − 1; by default the optimum round(e^ε) + 1 (their eq 8), or the largest allowed.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    buckets: int | None = None
    declared: ClassVar[Declared] = declaration("olh")
    sample_law: ClassVar[str] = "exact per-cell marginals"
    # Coins and report of a device are two 64-bit words and a 32-bit value each, 40 MB together.
    batch: ClassVar[int] = 2**20

    def __post_init__(self) -> None:
        """Check the parameters and fill in the buckets."""
        super().__post_init__()
        check_integer("cells", self.cells, at_least=1, at_most=2**31 - 2)
        if self.buckets is None:
            object.__setattr__(self, "buckets", min(round(math.exp(self.epsilon)) + 1, MOST_BUCKETS))

    @property
    def truthful(self) -> float:
        """Probability that the draw makes the device report the bucket of the truth, (e^ε − 1)/(e^ε + g − 1)."""
        return math.expm1(self.epsilon) / (math.exp(self.epsilon) + self._buckets - 1)

    @property
    def true_yes(self) -> float:
        """Return p = truthful + (1 − truthful)/g = e^ε/(e^ε + g − 1)."""
        return math.exp(self.epsilon) / (math.exp(self.epsilon) + self._buckets - 1)

    @property
    def false_yes(self) -> float:
        """Return q = P(same bucket)·p + P(another)·(1 − p)/(g − 1): 1/g, except that bucket sizes differ slightly."""
        return 1.0 / (math.exp(self.epsilon) + self._buckets - 1) + self.truthful * same_bucket(self._buckets)

    @property
    def report_bits(self) -> int:
        """Number of bits of a report as sent: the two 64-bit words of a hash function, and a bucket."""
        return 128 + (self._buckets - 1).bit_length()

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> HashedReports:
        """Draw every device's hash function and categorical draw."""
        seeds = draw_seeds(memory.devices, rng=rng)
        return HashedReports(seeds, draw_categorical(memory.devices, self.truthful, self._buckets, None, rng=rng))

    def answer(self, round: int, truth: Truth, coins: HashedReports) -> HashedReports:  # noqa: A002 - the paper's word
        """Return each device's hash function and the bucket it reports."""
        self.check_answer(round, truth, len(coins))
        values = np.empty_like(coins.values)
        answer_hashed(coins.seeds, coins.values, truth, np.uint64(self._buckets), values)
        return HashedReports(coins.seeds, values)

    def encode(self, reports: HashedReports) -> Vectors:
        """Return (n, V + 1) int64: a 1 for every symbol the report supports; meant for few devices."""
        self._check_reports(reports)
        vectors = np.empty((len(reports), self.symbols), dtype=np.int64)
        fill_support(reports.seeds, reports.values, np.uint64(self._buckets), vectors)
        return vectors

    def tally(self, reports: HashedReports, where: Where | None = None) -> Counts:
        """Return the number of reports that support each symbol, (V + 1,) int64, by n·(V + 1) hashes, none stored."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        counts = np.zeros(self.cells + 1, dtype=np.int64)
        add_support(reports.seeds, reports.values, mask, np.uint64(self._buckets), counts)
        return counts

    @property
    def _buckets(self) -> int:
        """Return g."""
        return 2 if self.buckets is None else self.buckets

    def _check_reports(self, reports: HashedReports) -> HashedReports:
        """Reject anything that is no report, and reports of a bucket that does not exist."""
        if not isinstance(reports, HashedReports):
            raise ParameterError("reports", "must be HashedReports", type(reports).__name__)
        check_values(reports.values, outputs=self._buckets)
        return reports

    @property
    def distinguishing(self) -> float:
        """Probability that the report is the bucket of the truth, and the other truth is in another bucket.

        If the function maps two truths to one bucket, the report does not distinguish them. Else only their own two
        buckets distinguish them, as in k-ary randomized response over g symbols.
        """
        return (1.0 - same_bucket(self._buckets)) * self.true_yes

    @property
    def source(self) -> str:
        """The reason for the claim about function and bucket together, and the paper."""
        return (
            f"Function and bucket: unless two truths share a bucket of {self._buckets}, each one's own is e^ε times as "
            "likely under it (Wang et al. 2017 sec 4.4)"
        )

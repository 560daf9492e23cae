"""Universal family of hash functions onto few buckets, with compiled evaluation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled

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


def draw_seeds(n: int, *, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Draw the parameters a and b of n functions, (n, 2) uint64."""
    return rng.integers(0, 2**64 - 1, size=(n, 2), dtype=np.uint64, endpoint=True)


@compiled
def answer_hashed(
    seeds: NDArray[np.uint64],
    thrown: NDArray[np.int32],
    truth: NDArray[np.int32],
    buckets: np.uint64,
    reports: NDArray[np.int32],
) -> None:  # pragma: no cover - compiled
    """Report the bucket of the truth where `thrown` is negative, and the bucket `thrown` elsewhere."""
    half = np.uint64(BITS)
    for i in range(thrown.size):
        if thrown[i] < 0:
            mixed = (seeds[i, 0] * np.uint64(truth[i]) + seeds[i, 1]) >> half
            reports[i] = np.int32((mixed * buckets) >> half)
        else:
            reports[i] = thrown[i]


@compiled
def _edge(value: np.uint64, buckets: np.uint64) -> Any:  # pragma: no cover - compiled
    """Return the least u in bucket `value`, ⌈value·2³²/g⌉."""
    return ((value << np.uint64(BITS)) + buckets - np.uint64(1)) // buckets


@compiled
def add_support(
    seeds: NDArray[np.uint64],
    values: NDArray[np.int32],
    where: NDArray[np.bool_],
    buckets: np.uint64,
    counts: NDArray[np.int64],
) -> None:  # pragma: no cover - compiled
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
def fill_support(
    seeds: NDArray[np.uint64], values: NDArray[np.int32], buckets: np.uint64, vectors: NDArray[np.int64]
) -> None:  # pragma: no cover - compiled
    """Write the support of every report, (n, symbols), computed from the definition."""
    half = np.uint64(BITS)
    for i in range(values.size):
        for x in range(vectors.shape[1]):
            mixed = (seeds[i, 0] * np.uint64(x) + seeds[i, 1]) >> half
            vectors[i, x] = np.int64(np.int32((mixed * buckets) >> half) == values[i])

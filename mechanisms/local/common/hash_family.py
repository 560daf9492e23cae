"""Universal family of hash functions onto few buckets, with compiled evaluation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled

# Bits of what a function makes before it is cut into buckets; also of the symbols it takes.
BITS = 32


def same_bucket(buckets: int) -> float:
    """Return the probability that two different symbols fall into one bucket, exactly.

    h(x) = ⌊g·u/2³²⌋ with u = ⌊(ax + b mod 2⁶⁴)/2³²⌋ and a, b uniform 64-bit numbers. For x < 2³² the u of two
    different symbols are independent and uniform on 0…2³² − 1 (multiply-add-shift; Dietzfelbinger 1996,
    *Universal hashing and k-wise independent random variables via integer arithmetic*, theorem 3), and so are
    their buckets, of which 2³² mod g are wider than the others by one 2⁻³². The sum of squared widths exceeds
    1/g by less than g·2⁻⁶⁴; it is 1/g where g is a power of two.

    Parameters
    ----------
    buckets : int
        g, 2…2³¹.
    """
    width, wider = divmod(2**BITS, buckets)
    squares: int = wider * (width + 1) ** 2 + (buckets - wider) * width**2
    return squares / 2.0 ** (2 * BITS)


def draw_seeds(n: int, *, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return the a and b of n functions, (n, 2) uint64."""
    return rng.integers(0, 2**64 - 1, size=(n, 2), dtype=np.uint64, endpoint=True)


@compiled
def answer_hashed(
    seeds: NDArray[np.uint64],
    thrown: NDArray[np.int32],
    truth: NDArray[np.int32],
    buckets: np.uint64,
    reports: NDArray[np.int32],
) -> None:  # pragma: no cover - compiled
    """Answer with the bucket of the truth where the die said so (below 0), and with its blank elsewhere."""
    half = np.uint64(BITS)
    for i in range(thrown.size):
        if thrown[i] < 0:
            mixed = (seeds[i, 0] * np.uint64(truth[i]) + seeds[i, 1]) >> half
            reports[i] = np.int32((mixed * buckets) >> half)
        else:
            reports[i] = thrown[i]


@compiled
def _edge(value: np.uint64, buckets: np.uint64) -> Any:  # pragma: no cover - compiled
    """Return the least u of a bucket, ⌈value·2³²/g⌉."""
    return ((value << np.uint64(BITS)) + buckets - np.uint64(1)) // buckets


@compiled
def add_support(
    seeds: NDArray[np.uint64],
    values: NDArray[np.int32],
    where: NDArray[np.bool_],
    buckets: np.uint64,
    counts: NDArray[np.int64],
) -> None:  # pragma: no cover - compiled
    """Add 1 to every symbol that a report supports: those its function puts into the bucket it names.

    Along the symbols ax + b is an arithmetic progression, and being in a bucket is a comparison of its upper
    half with two edges; shifted down by the lower edge it is one comparison. So a symbol costs one addition
    and one comparison, and the loop is vectorised.
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
    """Write every report's support, (n, symbols), by the definition."""
    half = np.uint64(BITS)
    for i in range(values.size):
        for x in range(vectors.shape[1]):
            mixed = (seeds[i, 0] * np.uint64(x) + seeds[i, 1]) >> half
            vectors[i, x] = np.int64(np.int32((mixed * buckets) >> half) == values[i])

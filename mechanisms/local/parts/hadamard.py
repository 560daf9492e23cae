"""Rows of Sylvester's Hadamard matrix: their products with a vector, and outputs drawn on one side of them.

Entry (r, y) is (−1)^⟨r, y⟩, where ⟨r, y⟩ is the parity of the bits r and y have in common.
"""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled


def hadamard_order(symbols: int) -> int:
    """Return the least power of two above the number of symbols."""
    return 1 << symbols.bit_length()


def walsh_hadamard(vector: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the product of the matrix with a vector, (K,) int64, in K·log₂K additions."""
    product = vector.reshape(1, -1)
    while product.shape[1] > 1:
        low, high = np.split(product, 2, axis=1)
        product = np.stack([low + high, low - high], axis=1).reshape(-1, low.shape[1])
    # Each step settles the top bit that is left, so rows end up in order of their bits from the top.
    return product.reshape(-1)


@compiled
def _parity(word: int) -> int:  # pragma: no cover - compiled
    """Return the parity of a word's bits."""
    word ^= word >> 16
    word ^= word >> 8
    word ^= word >> 4
    word ^= word >> 2
    word ^= word >> 1
    return word & 1


@compiled
def choose_side(
    points: NDArray[np.int32], wrong: NDArray[np.bool_], truth: NDArray[np.int32], reports: NDArray[np.int32]
) -> None:  # pragma: no cover - compiled
    """Move uniform points to the side of row truth + 1 that the coin says: +1, or −1 where it is `wrong`.

    Flipping the row's lowest bit in a point changes its side; it pairs the points of both sides one to one, so
    uniform points stay uniform within their side.
    """
    for i in range(points.size):
        row = truth[i] + 1
        point = points[i]
        if _parity(row & point) != wrong[i]:
            point ^= row & -row
        reports[i] = point


def sample_sides(sides: NDArray[np.int64], *, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return how often each output is drawn, (K,) int64, by devices uniform on one side of a row; exact joint.

    Bit by bit from the top, every group (row, parity still wanted) is split by a fair coin over that bit of
    its outputs; where the row has the bit, a 1 turns the parity wanted of the bits below. A row with nothing
    below has no choice left. 2K·log₂K binomials, however many devices.

    Parameters
    ----------
    sides : (K, 2) int64
        Devices uniform on the outputs whose parity with row r is 0, and is 1; nobody is on side 1 of row 0.
    """
    # (settled bits of the output, rows of the bits left, parity wanted of them)
    groups: NDArray[np.int64] = sides.reshape(1, -1, 2)
    while groups.shape[1] > 1:
        halves = groups.reshape(len(groups), 2, -1, 2)
        one = rng.binomial(halves, 0.5)
        # The row is this bit alone: the output's bit must be the parity wanted.
        one[:, 1, 0, 0], one[:, 1, 0, 1] = 0, halves[:, 1, 0, 1]
        zero = halves - one
        groups = np.stack([zero[:, 0] + zero[:, 1], one[:, 0] + one[:, 1, :, ::-1]], axis=1)
        groups = groups.reshape(-1, *groups.shape[2:])
    counts: NDArray[np.int64] = groups[:, 0, 0].astype(np.int64, copy=False)
    return counts

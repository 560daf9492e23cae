"""Coins for every cell of every device, tossed 64 at a time into packed rows of bits."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.local.parts.bit_rows import WORD, words_of

# Random words drawn at once: 2 MB, which stays in the cache between being drawn and being spent.
DRAW = 2**18


def toss_rows(
    n: int,
    cells: int,
    probability: float,
    *,
    rng: np.random.Generator,
    unless: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint64]:
    """Return (n, ceil(cells / 64)) uint64 rows in which each cell's bit is an independent Bernoulli(p).

    Bit-sliced comparison: lane by lane a uniform 64-bit number is compared with ⌊p·2⁶⁴⌋, all 64 lanes sharing
    one random word for each binary digit, from the most significant on, until every lane is decided: about 7
    words for 64 coins whatever p is. The probability is p exactly where p is a multiple of 2⁻⁶⁴, as every
    double from 2⁻¹¹ up is, and within 2⁻⁶⁴ below that.

    Parameters
    ----------
    n : int
        Devices.
    cells : int
        Coins a device.
    probability : float
        p, in [0, 1].
    rng : numpy.random.Generator
        Where random words come from.
    unless : (n, ceil(cells / 64)) uint64, optional
        Bits already taken: there the coin is left 0, and not tossed.

    Returns
    -------
    (n, ceil(cells / 64)) uint64
    """
    rows = np.zeros((n, words_of(cells)), dtype=np.uint64)
    last = np.uint64((1 << (cells % WORD or WORD)) - 1)
    taken = np.zeros((1, 1), dtype=np.uint64) if unless is None else unless
    if probability >= 1.0:
        rows[:] = ~np.uint64(0)
        rows[:, -1] = last
        return rows if unless is None else rows & ~unless
    threshold = int(probability * 2.0**WORD)
    if threshold == 0:
        return rows
    lowest = (threshold & -threshold).bit_length() - 1  # below the last 1 of the threshold a tie can only lose
    done, flat = 0, rows.reshape(-1)
    while done < flat.size:
        # The last few words of a draw are left unspent: a word of coins is never begun that might not be
        # finished, since starting one again would favour lanes that decide early.
        words = rng.integers(
            0, 2**64 - 1, size=min(DRAW, 8 * (flat.size - done) + WORD), dtype=np.uint64, endpoint=True
        )
        done = _compare(words, flat, done, rows.shape[1], last, taken.reshape(-1), np.uint64(threshold), lowest)
    return rows


@compiled
def _compare(
    words: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    start: int,
    width: int,
    last: np.uint64,
    taken: NDArray[np.uint64],
    threshold: np.uint64,
    lowest: int,
) -> int:  # pragma: no cover - compiled
    """Toss words of coins from `start` on while random words last; return where it stopped."""
    spent = 0
    one = np.uint64(1)
    i = start
    while i < rows.size and spent + WORD <= words.size:
        undecided = last if i % width == width - 1 else ~np.uint64(0)
        if taken.size == rows.size:
            undecided &= ~taken[i]
        below = np.uint64(0)
        for digit in range(WORD - 1, lowest - 1, -1):
            word = words[spent]
            spent += 1
            if (threshold >> np.uint64(digit)) & one:
                below |= undecided & ~word
                undecided &= word
            else:
                undecided &= ~word
            if undecided == 0:
                break
        rows[i] = below
        i += 1
    return i

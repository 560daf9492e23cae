"""Random subsets of one size as packed rows of bits: drawn, and made to hold or to miss a symbol."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.local.parts.coin_rows import toss_rows

ONE = np.uint64(1)
MEMBERS, OTHERS = np.uint64(0), np.uint64(2**64 - 1)


def draw_subsets(n: int, symbols: int, size: int, *, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return n uniform subsets of `size` of the symbols, (n, ceil(symbols / 64)) uint64.

    Each symbol is first taken with size/symbols: given how many were, those are a uniform subset of that
    many. Uniform members are then thrown out, or uniform others taken in, until the number is right, about
    √symbols of them.
    """
    rows = toss_rows(n, symbols, size / symbols, rng=rng)
    _even_out(rows, symbols, size, rng)
    return rows


@compiled
def _ones(word: np.uint64) -> Any:  # pragma: no cover - compiled
    """Return the number of bits set in a word, as int64."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _even_out(
    rows: NDArray[np.uint64], symbols: int, size: int, rng: np.random.Generator
) -> None:  # pragma: no cover - compiled
    """Take in or throw out uniform symbols until every row holds `size`."""
    for i in range(rows.shape[0]):
        held = 0
        for j in range(rows.shape[1]):
            held += _ones(rows[i, j])
        while held != size:
            symbol = int(rng.random() * symbols)  # a 53-bit uniform, as a die is thrown; never rounded up to the top
            word = symbol >> 6
            bit = ONE << np.uint64(symbol & 63)
            has = (rows[i, word] & bit) != 0
            if held > size and has:
                rows[i, word] ^= bit
                held -= 1
            elif held < size and not has:
                rows[i, word] ^= bit
                held += 1


@compiled
def _flip_ranked(
    row: NDArray[np.uint64], rank: int, symbols: int, mirror: np.uint64
) -> None:  # pragma: no cover - compiled
    """Flip the member of this rank, from 0 in order of symbols; the other of this rank if all is mirrored."""
    for j in range(row.size):
        word = row[j] ^ mirror
        left = symbols - 64 * j
        if left < 64:
            word &= (ONE << np.uint64(left)) - ONE
        ones = _ones(word)
        if rank < ones:
            for _ in range(rank):
                word &= word - ONE
            row[j] ^= word & (~word + ONE)
            return
        rank -= ones


@compiled
def hold_or_miss(
    rows: NDArray[np.uint64],
    truth: NDArray[np.int32],
    holds: NDArray[np.bool_],
    out: NDArray[np.int32],
    into: NDArray[np.int32],
    symbols: int,
) -> None:  # pragma: no cover - compiled
    """Make each subset hold its truth, or miss it, by at most one swap.

    Where it must hold and does not, the truth takes the place of the member of rank `out`; where it must miss
    and does not, the other of rank `into` takes the place of the truth. Uniform ranks leave the rest of the
    subset uniform among the other symbols.
    """
    for i in range(truth.size):
        word = truth[i] >> 6
        bit = ONE << np.uint64(truth[i] & 63)
        has = (rows[i, word] & bit) != 0
        if holds[i] and not has:
            _flip_ranked(rows[i], out[i], symbols, MEMBERS)
            rows[i, word] ^= bit
        elif has and not holds[i]:
            # Ranked among the others before the truth becomes one of them.
            _flip_ranked(rows[i], into[i], symbols, OTHERS)
            rows[i, word] ^= bit

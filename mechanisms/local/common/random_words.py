"""Random 64-bit words for compiled loops: numpy's own words in numpy's order, many at a time."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import compiled

MODULUS = 1 << 128
HALF = (1 << 64) - 1
# The multiplier of numpy's PCG64: state ← state · MULTIPLIER + increment modulo 2¹²⁸, and a word from each state.
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
# States that advance side by side, each by as many steps at once. Below FEWEST words numpy's loop is as fast, since
# reading and writing numpy's state takes about 15 µs.
LANES = 32
FEWEST = 2**14
_FACTORS = [pow(MULTIPLIER, step, MODULUS) for step in range(LANES + 1)]
_SUMS = [sum(_FACTORS[:step]) % MODULUS for step in range(LANES + 1)]


def fill_words(words: NDArray[np.uint64], *, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Fill an array with random words and return it.

    The words, and the generator's state afterwards, are those of ``rng.integers(2**64, size=…, dtype=np.uint64)``. A
    word's 53 highest bits times 2⁻⁵³ are what ``rng.random()`` returns. numpy calls a function for each word, which
    takes 2.3 ns. PCG64 can jump ahead; so 32 states that are each 32 steps apart advance in one loop of vector
    instructions, which takes 0.6 ns a word. Other bit generators, and short arrays, are left to numpy.

    Parameters
    ----------
    words : (n,) uint64
        Contiguous.
    rng : numpy.random.Generator

    Returns
    -------
    (n,) uint64
        The same array.

    Source
    ------
    O'Neill 2014, PCG (XSL-RR 128/64); Brown 1994 for the jumps.
    """
    bits = rng.bit_generator
    if words.size < FEWEST or not isinstance(bits, np.random.PCG64):
        words[:] = rng.integers(0, HALF, size=words.size, dtype=np.uint64, endpoint=True)
        return words
    before = bits.state
    state, increment = before["state"]["state"], before["state"]["inc"]
    steps = zip(_FACTORS[1:], _SUMS[1:], strict=True)
    lanes = [(factor * state + total * increment) % MODULUS for factor, total in steps]
    low, high = (np.array([part >> shift & HALF for part in lanes], dtype=np.uint64) for shift in (0, 64))
    jump = [(value >> shift) & HALF for value in (_FACTORS[-1], _SUMS[-1] * increment % MODULUS) for shift in (0, 64)]
    _advance(low, high, np.array(jump, dtype=np.uint64), words)
    bits.advance(words.size)
    if before["has_uint32"]:  # half a word that `advance` has dropped
        bits.state = {**before, "state": bits.state["state"]}
    return words


@compiled
def _advance(
    low: NDArray[np.uint64], high: NDArray[np.uint64], jump: NDArray[np.uint64], words: NDArray[np.uint64]
) -> None:  # pragma: no cover - compiled
    """Write the words of all lanes in turn, and advance each lane by the jump, a multiplier and an increment."""
    half, most = np.uint64(32), np.uint64(0xFFFFFFFF)
    factor, factor_high, plus, plus_high = jump
    f0, f1 = factor & most, factor >> half
    for start in range(0, words.size, low.size):
        # A slice: indices from `start` on might be negative for all the compiler knows, and it would write each word
        # apart, which takes 0.4 ns more.
        row = words[start : start + low.size]
        for lane in range(row.size):
            state, above = low[lane], high[lane]
            mixed, turn = state ^ above, above >> np.uint64(58)
            row[lane] = (mixed >> turn) | (mixed << (-turn & np.uint64(63)))
            # The product of two 64-bit numbers from products of their halves.
            s0, s1 = state & most, state >> half
            middle = s0 * f1
            carried = (s0 * f0 >> half) + (middle & most) + s1 * f0
            upper = s1 * f1 + (middle >> half) + (carried >> half)
            product = state * factor + plus
            low[lane] = product
            high[lane] = upper + above * factor + state * factor_high + plus_high + np.uint64(product < plus)

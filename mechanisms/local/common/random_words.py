"""Random 64-bit words for compiled loops: numpy's own words in numpy's order, many at a time."""

from collections.abc import Iterator

import numpy as np

from mechanisms.compiled import Words, compiled

ALL = (1 << 128) - 1
# The multiplier of numpy's PCG64: state ← state · MULTIPLIER + increment modulo 2¹²⁸, and a word from each state.
MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
# Number of words that are in memory at once: 512 kB, which stay in the cache until they are used.
PIECE = 2**16
# States that advance side by side, each by as many steps at once. Below FEWEST words numpy's loop is as fast, since
# the first states take about 15 µs.
LANES = 32
FEWEST = 2**13
_FACTORS = [pow(MULTIPLIER, step, ALL + 1) for step in range(LANES + 1)]
# For each lane, the multiplier of the state and the multiplier of the increment that take its steps at once.
_STEPS = [(_FACTORS[step], sum(_FACTORS[:step]) & ALL) for step in range(1, LANES + 1)]


def random_words(size: int, *, rng: np.random.Generator, room: Words | None = None) -> Iterator[Words]:
    """Yield random words, one piece at a time.

    The words, and the generator's state from the first piece on, are those of
    ``rng.integers(2**64, size=size, dtype=np.uint64)``. A word's 53 highest bits times 2⁻⁵³ are what ``rng.random()``
    returns. numpy calls a function for each word, which takes 2.3 ns. PCG64 (O'Neill 2014, XSL-RR 128/64) can jump
    ahead. So 32 states that are each 32 steps apart advance in one loop of vector instructions, which takes 0.6 ns a
    word. Other bit generators, and few words, are left to numpy.

    Parameters
    ----------
    size : int
        Number of words in all.
    rng : numpy.random.Generator
    room : (PIECE,) uint64, optional
        Memory of the pieces; each overwrites the one before.

    Yields
    ------
    (m,) uint64
        PIECE words; the last piece has the rest.
    """
    room = np.empty(min(size, PIECE), dtype=np.uint64) if room is None else room
    pieces = (room[: size - start] for start in range(0, size, PIECE))
    bits = rng.bit_generator
    if not isinstance(bits, np.random.PCG64) or size < FEWEST:
        raw = isinstance(bits, np.random.PCG64)  # which takes 6 µs less; other generators have raw words of 32 bits
        for piece in pieces:
            piece[:] = bits.random_raw(piece.size) if raw else rng.integers(2**64, size=piece.size, dtype=np.uint64)
            yield piece
        return
    before = bits.state
    state, increment = before["state"]["state"], before["state"]["inc"]
    low, high = _halves([(factor * state + total * increment) & ALL for factor, total in _STEPS])
    jump = _halves([_STEPS[-1][0], _STEPS[-1][1] * increment & ALL]).T.ravel()
    bits.advance(size)
    if before["has_uint32"]:  # half a word that `advance` has dropped
        bits.state = {**before, "state": bits.state["state"]}
    for piece in pieces:
        _advance(low, high, jump, piece)
        yield piece


def _halves(values: list[int]) -> Words:
    """Return the low and the high 64 bits of numbers of 128 bits, (2, n) uint64."""
    both = np.frombuffer(b"".join([value.to_bytes(16, "little") for value in values]), dtype="<u8")
    return np.array(both.reshape(-1, 2).T, dtype=np.uint64, order="C")


@compiled
def _advance(low: Words, high: Words, jump: Words, words: Words) -> None:
    """Write the words of all lanes in turn, and advance each lane by the jump, a multiplier and an increment."""
    half, most = np.uint64(32), np.uint64(0xFFFFFFFF)
    factor, factor_high, plus, plus_high = jump[0], jump[1], jump[2], jump[3]
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

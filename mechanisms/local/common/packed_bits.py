"""Packed bits: one row of bits per device for answers and coins about every cell, 64 bits per word."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import Integers, Mask, Values, Words, compiled
from mechanisms.local.common.random_words import PIECE, random_words
from mechanisms.local.mechanism import DeviceRows
from mechanisms.parameter import ParameterError, check_integer

WORD = 64
# Bit planes of the vertical counter, and number of rows that it can count before it must be emptied.
PLANES = 8
ROWS = 2**PLANES - 1


def words_of(cells: int) -> int:
    """Return the number of 64-bit words that hold one bit per cell."""
    return -(-cells // WORD)


@dataclass(frozen=True, eq=False)
class PackedReports(DeviceRows):
    """Packed rows of a batch, one per device, which may be selected like an array; read-only.

    Parameters
    ----------
    bits : (n, …, ceil(cells / 64)) uint64
        Packed rows; bits past the last cell are 0.
    cells : int
        The number of cells V.
    """

    bits: Words
    cells: int

    def _protect(self) -> None:
        """Make the rows read-only."""
        # A round's answers may share memory with the coins they came from, so they must not be changed.
        rows = np.ascontiguousarray(self.bits).view()
        rows.flags.writeable = False
        object.__setattr__(self, "bits", rows)


@dataclass(frozen=True, eq=False)
class BitReports(PackedReports):
    """One round's yes/no answers: bit (v − 1) mod 64 of word ⌊(v − 1)/64⌋ is a device's answer about cell v.

    Parameters
    ----------
    bits : (n, ceil(cells / 64)) uint64
        Packed rows; bits past the last cell are 0. Read-only.
    cells : int
        The number of cells V.
    """

    def __post_init__(self) -> None:
        """Check the shape and make the rows read-only."""
        check_integer("cells", self.cells, at_least=1)
        if not isinstance(self.bits, np.ndarray) or self.bits.dtype != np.uint64 or self.bits.ndim != 2:
            raise ParameterError("bits", "must be an (n, words) uint64 array", getattr(self.bits, "dtype", self.bits))
        if self.bits.shape[1] != words_of(self.cells):
            raise ParameterError("bits", f"must have {words_of(self.cells)} words per device", self.bits.shape)
        self._protect()

    @classmethod
    def from_dense(cls, answers: NDArray[Any]) -> "BitReports":
        """Pack an (n, cells) array of answers; every non-zero value is a Yes."""
        n, cells = answers.shape
        padded = np.zeros((n, words_of(cells) * WORD), dtype=np.bool_)
        padded[:, :cells] = answers != 0
        packed = np.packbits(padded, axis=1, bitorder="little").view("<u8")
        return cls(packed.astype(np.uint64, copy=False), cells)

    def to_dense(self) -> NDArray[np.uint8]:
        """Return the answers as (n, cells) uint8, one byte per answer; meant for few devices."""
        little = self.bits.astype("<u8", copy=False)
        return np.unpackbits(little.view(np.uint8), axis=1, count=self.cells, bitorder="little")

    def __repr__(self) -> str:
        return f"<BitReports of {len(self)} devices about {self.cells} cells>"

    def count_yes(self, where: Mask) -> Integers:
        """Return the Yes count of each cell, (cells,) int64, over the masked devices (all, if the mask is empty)."""
        totals = np.zeros(self.bits.shape[1] * WORD, dtype=np.int64)
        planes = np.zeros((PLANES + 1, self.bits.shape[1]), dtype=np.uint64)
        chosen = np.flatnonzero(where) if where.size else np.arange(len(self))
        _add_rows(self.bits, chosen, planes, totals)
        return totals[: self.cells]


@compiled
def set_bits(rows: Words, truth: Values, hits: Mask) -> None:
    """Set the answer about the cell a device is in to Yes, if its hit is set and it is in a cell."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0 and hits[i]:
            bit = cell - 1
            rows[i, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@compiled
def set_bits_where(rows: Words, truth: Values, hits: Words) -> None:
    """Set the answer about the cell a device is in to Yes, if its hit bit for that cell is set."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0:
            bit = cell - 1
            rows[i, bit >> 6] |= hits[i, bit >> 6] & (np.uint64(1) << np.uint64(bit & 63))


@compiled
def _add_rows(rows: Words, chosen: Integers, planes: Words, totals: Integers) -> None:
    """Add up the columns of the chosen packed rows without unpacking them.

    `planes` is a vertical (bit-sliced) counter: plane p holds bit p of each column's count. So four words are added to
    64 columns by three full adders and a carry through the higher planes; one word at a time takes twice as long.
    The counter is emptied into the totals before it can overflow. Its last row stays 0.
    """
    ones, twos, blank = planes[0], planes[1], planes[PLANES]
    held = 0
    for start in range(0, chosen.size, 4):
        left = chosen.size - start
        a = rows[chosen[start]]
        b = rows[chosen[start + 1]] if left > 1 else blank
        c = rows[chosen[start + 2]] if left > 2 else blank
        d = rows[chosen[start + 3]] if left > 3 else blank
        for j in range(blank.size):
            odd, both = a[j] ^ b[j], a[j] & b[j]
            one = ones[j] ^ odd
            first = both | (ones[j] & odd)
            odd, both = c[j] ^ d[j], c[j] & d[j]
            ones[j] = one ^ odd
            second = both | (one & odd)
            odd, both = first ^ second, first & second
            carry = both | (twos[j] & odd)
            twos[j] ^= odd
            for p in range(2, PLANES):
                plane = planes[p, j]
                planes[p, j] = plane ^ carry
                carry &= plane
        held += 4
        if held + 4 > ROWS:
            _empty_planes(planes, totals)
            held = 0
    _empty_planes(planes, totals)


@compiled
def _empty_planes(planes: Words, totals: Integers) -> None:
    """Add the vertical counter to the totals and reset it to 0."""
    for p in range(PLANES):
        for j in range(planes.shape[1]):
            word = planes[p, j]
            if word:
                for b in range(WORD):
                    totals[j * WORD + b] += np.int64((word >> np.uint64(b)) & np.uint64(1)) << p
                planes[p, j] = 0


@dataclass(frozen=True, eq=False)
class AnswerReports(PackedReports):
    """One round's answers with several outputs: plane k − 1 has a cell's bit set where the answer is k ≥ 1.

    If no plane has the bit set the answer is 0. So answers with three outputs take two bits per cell.

    Parameters
    ----------
    bits : (n, outputs − 1, ceil(cells / 64)) uint64
        Packed rows, one plane for each output except 0. No bit is set in two planes, and bits past the last cell are
        0. Read-only.
    cells : int
        The number of cells V.

    Raises
    ------
    ParameterError
        If the planes have another shape or dtype, or two planes have the same bit set.
    """

    def __post_init__(self) -> None:
        """Check the shape and that no cell has two answers, and make the rows read-only."""
        check_integer("cells", self.cells, at_least=1)
        planes = self.bits
        if not isinstance(planes, np.ndarray) or planes.dtype != np.uint64 or planes.ndim != 3:
            raise ParameterError(
                "bits", "must be an (n, outputs − 1, words) uint64 array", getattr(planes, "dtype", planes)
            )
        if planes.shape[1] < 1 or planes.shape[2] != words_of(self.cells):
            raise ParameterError(
                "bits", f"must have at least one plane of {words_of(self.cells)} words per device", planes.shape
            )
        taken = planes[:, 0]
        for plane in range(1, planes.shape[1]):
            if np.any(taken & planes[:, plane]):
                raise ParameterError("bits", "must not give two answers for a cell, at answer", plane + 1)
            taken = taken | planes[:, plane] if plane + 1 < planes.shape[1] else taken
        self._protect()

    @classmethod
    def from_dense(cls, answers: NDArray[Any], outputs: int) -> "AnswerReports":
        """Pack an (n, cells) array of answers in 0…outputs − 1."""
        check_integer("outputs", outputs, at_least=2)
        planes = [BitReports.from_dense(answers == k).bits for k in range(1, outputs)]
        return cls(np.stack(planes, axis=1), answers.shape[1])

    def to_dense(self) -> NDArray[np.uint8]:
        """Return the answers as (n, cells) uint8, one byte per answer; meant for few devices."""
        dense = np.zeros((len(self), self.cells), dtype=np.uint8)
        for k in range(1, self.outputs):
            dense += np.uint8(k) * BitReports(self.bits[:, k - 1], self.cells).to_dense()
        return dense

    @property
    def outputs(self) -> int:
        """The number of different answers."""
        return int(self.bits.shape[1]) + 1

    def __repr__(self) -> str:
        return f"<AnswerReports of {len(self)} devices about {self.cells} cells, {self.outputs} outputs>"

    def one_hot(self) -> Integers:
        """Return (n, cells, outputs) int64: a 1 for the answer given about each cell; meant for few devices."""
        return np.eye(self.outputs, dtype=np.int64)[self.to_dense()]

    def count(self, where: Mask) -> Integers:
        """Return (cells, outputs) int64: how often each answer was given about each cell.

        Parameters
        ----------
        where : (n,) or (0,) bool
            The devices to count; all of them, if empty.
        """
        devices = int(np.count_nonzero(where)) if where.size else len(self)
        # All planes of a device are counted as one long row of yes/no answers.
        words = self.bits.shape[1] * self.bits.shape[2]
        chosen = BitReports(self.bits.reshape(len(self), words), words * WORD).count_yes(where)
        counts = np.empty((self.cells, self.outputs), dtype=np.int64)
        counts[:, 1:] = chosen.reshape(self.outputs - 1, -1)[:, : self.cells].T
        counts[:, 0] = devices - counts[:, 1:].sum(axis=1)
        return counts


@compiled
def set_answers(planes: Words, truth: Values, answers: NDArray[np.uint8]) -> None:
    """Set the answer about the cell a device is in, if it is in one, to `answers`."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0:
            bit = cell - 1
            one = np.uint64(1) << np.uint64(bit & 63)
            for plane in range(planes.shape[1]):
                if answers[i] == plane + 1:
                    planes[i, plane, bit >> 6] |= one
                else:
                    planes[i, plane, bit >> 6] &= ~one


# Number of random words drawn at once, at most, and of binary digits that are compared without a branch.
DRAW, STEPS = 2**18, 10


def toss_rows(
    n: int, cells: int, probability: float, *, rng: np.random.Generator, unless: Words | None = None
) -> Words:
    """Return (n, ceil(cells / 64)) uint64 rows in which each cell's bit is an independent Bernoulli(p).

    Bit-sliced comparison: in each of 64 lanes a uniform 64-bit number is compared with ⌊p·2⁶⁴⌋. One random word
    provides one binary digit of all 64 lanes, from the most significant digit on, until every lane is decided. This
    takes about 7 words for 64 coins, whatever p is. The probability is exactly p if p is a multiple of 2⁻⁶⁴, as every
    double from 2⁻¹¹ up is; for smaller p the error is less than 2⁻⁶⁴.

    Parameters
    ----------
    n : int
        Number of devices.
    cells : int
        Number of coins per device.
    probability : float
        p, in [0, 1].
    rng : numpy.random.Generator
        Source of the random words.
    unless : (n, ceil(cells / 64)) uint64, optional
        Bits already set elsewhere: here the result is 0, and no coin is tossed.

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
    zeros, digits = _digits(threshold)
    done, flat = 0, rows.reshape(-1)
    room = np.empty(WORD + min(PIECE, 8 * flat.size + WORD), dtype=np.uint64)
    while done < flat.size:
        # The last few words of a draw stay unused: a word of coins is only started if it can be completed, since
        # starting it again would bias the result towards lanes that are decided early.
        held = 0
        for piece in random_words(min(DRAW, 8 * (flat.size - done) + WORD), rng=rng, room=room[WORD:]):
            words = room[WORD - held : WORD + piece.size]
            done, spent = _compare(words, flat, done, rows.shape[1], last, taken.reshape(-1), zeros, digits)
            if done == flat.size:
                break
            held = words.size - spent
            room[WORD - held : WORD] = words[spent:]
    return rows


@lru_cache(maxsize=64)
def _digits(threshold: int) -> tuple[Words, int]:
    """Return the masks of a threshold's binary digits (`_compare`) and their number up to the last 1.

    Below the last 1, a tie is never less than the threshold.
    """
    digits = WORD + 1 - (threshold & -threshold).bit_length()
    bits = (threshold >> (WORD - 1 - digit) & 1 for digit in range(max(digits, STEPS)))
    return np.array([0 if bit else 2**WORD - 1 for bit in bits], dtype=np.uint64), digits


@compiled
def _compare(
    words: Words, rows: Words, start: int, width: int, last: np.uint64, taken: Words, zeros: Words, digits: int
) -> tuple[int, int]:
    """Toss words of coins from `start` on as long as random words suffice; return their end, and the words used.

    `zeros` has all bits set for each binary digit of the threshold that is 0, and none for each that is 1.
    """
    spent, stop = np.uint64(0), np.uint64(words.size - WORD)
    i, column = start, start % width
    while i < rows.size and spent <= stop:
        column += 1
        undecided = ~np.uint64(0)
        if column == width:
            undecided, column = last, 0
        if taken.size == rows.size:
            undecided &= ~taken[i]
        below, used = np.uint64(0), 1
        # One word of coins in 16 needs more digits. With a branch after each digit a word takes 18 ns, not 9.
        for digit in range(STEPS):
            tied = words[spent + np.uint64(digit)] ^ zeros[digit]
            below |= undecided & ~(tied | zeros[digit])
            undecided &= tied
            if digit < STEPS - 1:
                used += undecided != 0
        if digits < STEPS:
            used = min(used, digits)
        for digit in range(STEPS, digits):
            if undecided == 0:
                break
            used += 1
            tied = words[spent + np.uint64(digit)] ^ zeros[digit]
            below |= undecided & ~(tied | zeros[digit])
            undecided &= tied
        spent += np.uint64(used)
        rows[i] = below
        i += 1
    return i, int(spent)


# Limits of a batch: bytes of its coins and reports, and number of devices.
BATCH_BYTES = 2**26
BATCH_DEVICES = 2**20


def batch_of_rows(words: int) -> int:
    """Return the number of devices per batch if each needs `words` 64-bit words in all."""
    return max(1, min(BATCH_DEVICES, BATCH_BYTES // (8 * words)))

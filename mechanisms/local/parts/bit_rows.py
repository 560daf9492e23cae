"""Yes/no answers about every cell, one packed row of bits a device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.parameter import ParameterError, check_integer

WORD = 64
# Bit planes of the vertical counter: rows that can be added up before it must be emptied.
PLANES = 8
ROWS = 2**PLANES - 1


def words_of(cells: int) -> int:
    """Return how many 64-bit words hold one bit a cell."""
    return -(-cells // WORD)


@dataclass(frozen=True, eq=False)
class BitReports:
    """One round's yes/no answers: bit (v − 1) mod 64 of word ⌊(v − 1)/64⌋ is a device's answer about cell v.

    Parameters
    ----------
    bits : (n, ceil(cells / 64)) uint64
        Packed rows; bits past the last cell are 0. Held read-only.
    cells : int
        The number of cells V.
    """

    bits: NDArray[np.uint64]
    cells: int

    def __post_init__(self) -> None:
        """Check the shape and close the rows to writing."""
        check_integer("cells", self.cells, at_least=1)
        if not isinstance(self.bits, np.ndarray) or self.bits.dtype != np.uint64 or self.bits.ndim != 2:
            raise ParameterError("bits", "must be an (n, words) uint64 array", getattr(self.bits, "dtype", self.bits))
        if self.bits.shape[1] != words_of(self.cells):
            raise ParameterError("bits", f"must have {words_of(self.cells)} words a device", self.bits.shape)
        # A round's answers may share memory with the coins they came from, so nobody may write to them.
        rows = np.ascontiguousarray(self.bits).view()
        rows.flags.writeable = False
        object.__setattr__(self, "bits", rows)

    @classmethod
    def from_dense(cls, answers: NDArray[Any]) -> "BitReports":
        """Pack an (n, cells) array of answers, anything not 0 being Yes."""
        n, cells = answers.shape
        padded = np.zeros((n, words_of(cells) * WORD), dtype=np.bool_)
        padded[:, :cells] = answers != 0
        packed = np.packbits(padded, axis=1, bitorder="little").view("<u8")
        return cls(packed.astype(np.uint64, copy=False), cells)

    def to_dense(self) -> NDArray[np.uint8]:
        """Return the answers as (n, cells) uint8, a byte an answer: for few devices."""
        little = self.bits.astype("<u8", copy=False)
        return np.unpackbits(little.view(np.uint8), axis=1, count=self.cells, bitorder="little")

    @property
    def nbytes(self) -> int:
        """Bytes of the packed rows."""
        return self.bits.nbytes

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self.bits)

    def __getitem__(self, index: Any) -> "BitReports":
        """Return the answers of some devices: a slice, a boolean mask or an array of indices."""
        return BitReports(self.bits[index], self.cells)

    def __repr__(self) -> str:
        """Size and shape."""
        return f"<BitReports of {len(self)} devices about {self.cells} cells>"

    def count_yes(self, where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the Yes answers about each cell, (cells,) int64, of the masked devices (all, if the mask is empty)."""
        totals = np.zeros(self.bits.shape[1] * WORD, dtype=np.int64)
        planes = np.zeros((PLANES, self.bits.shape[1]), dtype=np.uint64)
        _add_rows(self.bits, where, planes, totals)
        return totals[: self.cells]


@compiled
def set_bits(
    rows: NDArray[np.uint64], truth: NDArray[np.int32], hits: NDArray[np.bool_]
) -> None:  # pragma: no cover - compiled
    """Answer Yes about the cell a device is in, wherever its coin says so and it is in a cell at all."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0 and hits[i]:
            bit = cell - 1
            rows[i, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@compiled
def set_bits_where(
    rows: NDArray[np.uint64], truth: NDArray[np.int32], hits: NDArray[np.uint64]
) -> None:  # pragma: no cover - compiled
    """Answer Yes about the cell a device is in, wherever the coin it has for that cell says so."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0:
            bit = cell - 1
            rows[i, bit >> 6] |= hits[i, bit >> 6] & (np.uint64(1) << np.uint64(bit & 63))


@compiled
def _add_rows(
    rows: NDArray[np.uint64], where: NDArray[np.bool_], planes: NDArray[np.uint64], totals: NDArray[np.int64]
) -> None:  # pragma: no cover - compiled
    """Add up the columns of packed rows without unpacking them.

    `planes` is a counter stood on end: plane p holds bit p of each column's count, so one row is added to 64
    columns by a carry rippling through a few words. It is emptied into the totals before it can overflow.
    """
    words = rows.shape[1]
    held = 0
    for i in range(rows.shape[0]):
        if where.size and not where[i]:
            continue
        for j in range(words):
            carry = rows[i, j]
            for p in range(PLANES):
                plane = planes[p, j]
                planes[p, j] = plane ^ carry
                carry &= plane
        held += 1
        if held == ROWS:
            _empty_planes(planes, totals)
            held = 0
    _empty_planes(planes, totals)


@compiled
def _empty_planes(planes: NDArray[np.uint64], totals: NDArray[np.int64]) -> None:  # pragma: no cover - compiled
    """Move what the vertical counter holds into the totals."""
    for p in range(PLANES):
        for j in range(planes.shape[1]):
            word = planes[p, j]
            if word:
                for b in range(WORD):
                    totals[j * WORD + b] += np.int64((word >> np.uint64(b)) & np.uint64(1)) << p
                planes[p, j] = 0

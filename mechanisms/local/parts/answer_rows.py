"""Answers of two or more kinds about every cell, packed: one row of bits a device and kind of answer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.local.parts.bit_rows import WORD, BitReports, words_of
from mechanisms.local.parts.checks import check_where
from mechanisms.parameter import ParameterError, check_integer


@dataclass(frozen=True, eq=False)
class AnswerReports:
    """One round's answers of `outputs` kinds: plane k − 1 has a cell's bit set where the answer is k, k ≥ 1.

    Where no plane has it set the answer is 0, so an answer of three kinds takes two bits a cell.

    Parameters
    ----------
    bits : (n, outputs − 1, ceil(cells / 64)) uint64
        Packed rows, a plane for each output but 0, that share no bit; those past the last cell are 0. Held read-only.
    cells : int
        The number of cells V.

    Raises
    ------
    ParameterError
        If the planes have another shape or dtype, or two give one cell two answers.
    """

    bits: NDArray[np.uint64]
    cells: int

    def __post_init__(self) -> None:
        """Check the shape, that no cell has two answers, and close the rows to writing."""
        check_integer("cells", self.cells, at_least=1)
        planes = self.bits
        if not isinstance(planes, np.ndarray) or planes.dtype != np.uint64 or planes.ndim != 3:
            raise ParameterError(
                "bits", "must be an (n, outputs − 1, words) uint64 array", getattr(planes, "dtype", planes)
            )
        if planes.shape[1] < 1 or planes.shape[2] != words_of(self.cells):
            raise ParameterError(
                "bits", f"must have a plane or more of {words_of(self.cells)} words a device", planes.shape
            )
        taken = planes[:, 0]
        for plane in range(1, planes.shape[1]):
            if np.any(taken & planes[:, plane]):
                raise ParameterError("bits", "must give no cell two answers, at answer", plane + 1)
            taken = taken | planes[:, plane] if plane + 1 < planes.shape[1] else taken
        # A round's answers may share memory with the coins they came from, so nobody may write to them.
        rows = np.ascontiguousarray(planes).view()
        rows.flags.writeable = False
        object.__setattr__(self, "bits", rows)

    @classmethod
    def from_dense(cls, answers: NDArray[Any], outputs: int) -> "AnswerReports":
        """Pack an (n, cells) array of answers in 0…outputs − 1."""
        check_integer("outputs", outputs, at_least=2)
        planes = [BitReports.from_dense(answers == k).bits for k in range(1, outputs)]
        return cls(np.stack(planes, axis=1), answers.shape[1])

    def to_dense(self) -> NDArray[np.uint8]:
        """Return the answers as (n, cells) uint8, a byte an answer: for few devices."""
        dense = np.zeros((len(self), self.cells), dtype=np.uint8)
        for k in range(1, self.outputs):
            dense += np.uint8(k) * BitReports(self.bits[:, k - 1], self.cells).to_dense()
        return dense

    @property
    def outputs(self) -> int:
        """How many kinds of answer there are."""
        return int(self.bits.shape[1]) + 1

    @property
    def nbytes(self) -> int:
        """Bytes of the packed rows."""
        return self.bits.nbytes

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self.bits)

    def __getitem__(self, index: Any) -> "AnswerReports":
        """Return the answers of some devices: a slice, a boolean mask or an array of indices."""
        return AnswerReports(self.bits[index], self.cells)

    def __repr__(self) -> str:
        """Size and shape."""
        return f"<AnswerReports of {len(self)} devices about {self.cells} cells, {self.outputs} outputs>"

    def count(self, where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return (cells, outputs) int64: how often each answer was given about each cell.

        Parameters
        ----------
        where : (n,) or (0,) bool
            The devices to count; all of them, if empty.
        """
        devices = int(np.count_nonzero(where)) if where.size else len(self)
        # All planes side by side are one long row of yes/no answers.
        words = self.bits.shape[1] * self.bits.shape[2]
        said = BitReports(self.bits.reshape(len(self), words), words * WORD).count_yes(where)
        counts = np.empty((self.cells, self.outputs), dtype=np.int64)
        counts[:, 1:] = said.reshape(self.outputs - 1, -1)[:, : self.cells].T
        counts[:, 0] = devices - counts[:, 1:].sum(axis=1)
        return counts


def encode_answers(reports: AnswerReports, cells: int, outputs: int) -> NDArray[np.int64]:
    """Return (n, cells, outputs) int64: a 1 for the answer given about each cell."""
    dense = _check_answers(reports, cells, outputs).to_dense()
    vectors: NDArray[np.int64] = (dense[:, :, np.newaxis] == np.arange(outputs, dtype=np.uint8)).astype(np.int64)
    return vectors


def tally_answers(
    reports: AnswerReports, cells: int, outputs: int, where: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return how many of the masked devices gave each answer about each cell, (cells, outputs) int64."""
    mask = check_where(where, devices=len(_check_answers(reports, cells, outputs)))
    return reports.count(mask)


@compiled
def set_answers(
    planes: NDArray[np.uint64], truth: NDArray[np.int32], said: NDArray[np.uint8]
) -> None:  # pragma: no cover - compiled
    """Give `said` as the answer about the cell a device is in, if it is in one."""
    for i in range(truth.size):
        cell = truth[i]
        if cell > 0:
            bit = cell - 1
            one = np.uint64(1) << np.uint64(bit & 63)
            for plane in range(planes.shape[1]):
                if said[i] == plane + 1:
                    planes[i, plane, bit >> 6] |= one
                else:
                    planes[i, plane, bit >> 6] &= ~one


def _check_answers(reports: AnswerReports, cells: int, outputs: int) -> AnswerReports:
    """Refuse reports about other cells or with other answers."""
    if not isinstance(reports, AnswerReports) or reports.cells != cells or reports.outputs != outputs:
        raise ParameterError("reports", f"must be AnswerReports about {cells} cells, {outputs} outputs", reports)
    return reports

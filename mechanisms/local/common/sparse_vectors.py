"""Sparse integer vectors, one per device, of which only non-zero entries are stored."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from mechanisms.parameter import ParameterError


@dataclass(frozen=True, eq=False)
class SparseVectors:
    """Vectors of one round.

    Parameters
    ----------
    rows : (n, cells) scipy.sparse.csr_array of int64
        One vector per device, without duplicate entries or explicit zeros.
    """

    rows: Any

    def __post_init__(self) -> None:
        """Check that the rows are a two-dimensional int64 sparse array."""
        if not isinstance(self.rows, csr_array) or self.rows.dtype != np.int64 or self.rows.ndim != 2:
            raise ParameterError("rows", "must be a two-dimensional csr_array of int64", type(self.rows).__name__)

    @classmethod
    def from_entries(
        cls, devices: NDArray[np.int64], cells: NDArray[np.int64], values: NDArray[np.int64], shape: tuple[int, int]
    ) -> "SparseVectors":
        """Build n vectors from entries (device from 0, cell from 0, value); duplicate entries are added."""
        rows: Any = csr_array(coo_array((values, (devices, cells)), shape=shape))
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return cls(rows)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the stored entries."""
        return int(self.rows.data.nbytes + self.rows.indices.nbytes + self.rows.indptr.nbytes)

    def __len__(self) -> int:
        """Return the number of devices."""
        return int(self.rows.shape[0])

    def __getitem__(self, index: Any) -> "SparseVectors":
        """Return the vectors of some devices: a slice, a boolean mask or an array of indices."""
        return SparseVectors(csr_array(self.rows[index]))

    def __repr__(self) -> str:
        """Return the numbers of devices and entries."""
        return f"<SparseVectors of {len(self)} devices, {self.rows.nnz} entries>"

    def to_dense(self) -> NDArray[np.int64]:
        """Return a dense (n, cells) int64 array; meant for few devices."""
        dense: NDArray[np.int64] = self.rows.toarray()
        return dense

    def total(self, where: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the sum of the masked devices' vectors (all, if the mask is empty), (cells,) int64."""
        # numpy.bincount would add in floating point, numpy.add.at adds integers.
        entries = np.repeat(where, np.diff(self.rows.indptr)) if where.size else slice(None)
        totals = np.zeros(self.rows.shape[1], dtype=np.int64)
        np.add.at(totals, self.rows.indices[entries], self.rows.data[entries])
        return totals

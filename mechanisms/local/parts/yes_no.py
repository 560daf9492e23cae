"""What every mechanism shares that asks a yes/no question about each cell: sizes, encoding and tally."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.parts.bit_rows import BitReports
from mechanisms.local.parts.checks import check_where
from mechanisms.parameter import ParameterError

# Coins and reports of a batch stay under this many bytes, and its devices under that many.
BATCH_BYTES = 2**26
BATCH_DEVICES = 2**20


def batch_of_rows(words: int) -> int:
    """Return the devices whose packed rows, `words` 64-bit words each in all, fill at most a batch's memory."""
    return max(1, min(BATCH_DEVICES, BATCH_BYTES // (8 * words)))


def encode_rows(reports: BitReports, cells: int) -> NDArray[np.int64]:
    """Return (n, cells, 2) int64: a 1 for No or for Yes about each cell."""
    yes = _check_rows(reports, cells).to_dense().astype(np.int64)
    return np.stack([1 - yes, yes], axis=-1)


def tally_rows(reports: BitReports, cells: int, where: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return how many of the masked devices said No and Yes about each cell, (cells, 2) int64."""
    mask = check_where(where, devices=len(_check_rows(reports, cells)))
    yes = reports.count_yes(mask)
    devices = len(reports) if where is None else int(np.count_nonzero(mask))
    return np.stack([devices - yes, yes], axis=-1)


def _check_rows(reports: BitReports, cells: int) -> BitReports:
    """Refuse reports about other cells."""
    if not isinstance(reports, BitReports) or reports.cells != cells:
        raise ParameterError("reports", f"must be BitReports about {cells} cells", reports)
    return reports

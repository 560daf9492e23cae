"""The baselines that all tests use, each small enough to enumerate."""

import numpy as np

from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram

BY_EPSILON = {
    "k-ary": KRandomizedResponse,
    "SUE": SymmetricUnary,
    "OUE": OptimisedUnary,
    "THE": ThresholdHistogram,
    "OLH": LocalHashing,
    "subset": SubsetSelection,
    "Hadamard": HadamardResponse,
}
BASELINES = {
    **{f"{name}, 3 cells": kind(cells=3, epsilon=1.2) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 1 cell": kind(cells=1, epsilon=0.7) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 130 cells": kind(cells=130, epsilon=2.5) for name, kind in BY_EPSILON.items()},
    "OLH, many buckets": LocalHashing(cells=3, epsilon=1.5, buckets=1000),
    "subset, most symbols": SubsetSelection(cells=5, epsilon=1.0, size=5),
    "L-OSUE": LongitudinalUnary(cells=3, epsilon_permanent=3.0, epsilon_first=1.5),
    "L-SUE": LongitudinalUnary(cells=3, epsilon_permanent=2.0, epsilon_first=1.0, permanent="symmetric"),
    "L-OSUE, 130 cells": LongitudinalUnary(cells=130, epsilon_permanent=3.0, epsilon_first=2.0),
    "Laplace shares": DistributedLaplace(cells=3, epsilon=1.0, devices=100),
    "Laplace shares, short": DistributedLaplace(cells=3, epsilon=1.0, devices=250),
    "Laplace, one device's": DistributedLaplace(cells=1, epsilon=2.0, devices=1),
}


def unary_matrix(p, q, cells):
    """Bits about every cell, for a device outside and in each: (cells + 1, 2 ** cells), bit v − 1 about cell v."""
    outputs = np.arange(2**cells)
    rows = []
    for truth in range(cells + 1):
        row = np.ones(2**cells)
        for cell in range(1, cells + 1):
            yes = p if cell == truth else q
            row *= np.where(outputs >> (cell - 1) & 1, yes, 1 - yes)
        rows.append(row)
    return np.array(rows)

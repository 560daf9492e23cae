"""Poisoning: how far corrupted vehicles can move the estimate of a cell."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.forged_reports import best_forgery, contribution
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.parameter import ParameterError, check_integer

# Encodings whose entries are asked one by one for their weight: beyond, another round of thought is needed.
MOST_ENTRIES = 2_048


@dataclass(frozen=True, slots=True)
class Inflation:
    """What corrupted vehicles add to a cell's estimate, beyond what they would have added honestly.

    Parameters
    ----------
    corrupted : int
        m, vehicles that send what they like.
    per_vehicle : float
        What one adds, in vehicles; infinite where nothing bounds it.
    inside : int
        How many of them are truly in the cell, and would have been counted there on average once each.
    """

    corrupted: int
    per_vehicle: float
    inside: int = 0

    @property
    def vehicles(self) -> float:
        """The expected change of the estimate, in vehicles."""
        return self.corrupted * self.per_vehicle - self.inside if self.corrupted else 0.0

    def share(self, population: int) -> float:
        """Return the change as a share of the N devices asked: m/N times `per_vehicle`, less what is honest."""
        return self.vehicles / check_integer("population", population, at_least=1)


def inflation(
    mechanism: Any,
    cell: int,
    corrupted: int,
    *,
    crafted: bool,
    magnitude: int | None = None,
    inside: int = 0,
) -> Inflation:
    """Return the largest change of a cell's estimate that m corrupted vehicles can cause.

    Honest format: the best of well-formed reports (`forged_reports`), by evaluating the estimator. Sampling Privacy:
    1/π_s a vehicle, with 0 (or any other cell) in round one and the cell in round two, which an honest sampled device
    could have sent. A pure protocol: (1 − q)/(p − q), a report that supports the cell, where an honest device elsewhere
    adds 0 on average. Vectors under Laplace shares may hold any integer: infinite even so.

    Crafted: encodings of any form, as secret shares hide them from servers that check nothing. Every entry may be as
    large as the modulus allows: infinite, or with `magnitude` M the sum of the weights of all entries, M each in size.
    A robust deployment refuses these, and what is left is the honest format.

    Parameters
    ----------
    mechanism : LocalMechanism
    cell : int
        From 1.
    corrupted : int
        m.
    crafted : bool
        Whether encodings need not be well-formed.
    magnitude : int, optional
        The largest absolute value of an entry of a crafted encoding; nothing bounds it by default.
    inside : int
        How many of the corrupted are truly in the cell.

    Returns
    -------
    Inflation

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    NoLikelihoodError
        If nobody has said which of a plug-in's reports matter.
    """
    cell = check_integer("cell", cell, at_least=1, at_most=mechanism.cells)
    m = check_integer("corrupted", corrupted, at_least=0)
    inside = check_integer("inside", inside, at_least=0, at_most=m)
    if magnitude is not None:
        check_integer("magnitude", magnitude, at_least=1)
        if not crafted:
            raise ParameterError("magnitude", "must be left out where reports are well-formed", magnitude)
    if not crafted and not isinstance(mechanism, DistributedLaplace):
        return Inflation(m, best_forgery(mechanism, cell)[0], inside)
    if magnitude is None:
        return Inflation(m, math.inf, inside)
    return Inflation(m, _crafted(mechanism, cell, magnitude), inside)


def crafted_encodings(mechanism: Any, cell: int, magnitude: int) -> Any:
    """Return the encodings (rounds, *tally_shape) int64, entries within ±magnitude, that raise a cell's estimate most.

    Entries that do not matter to the cell are 0.

    Parameters
    ----------
    mechanism : LocalMechanism
    cell : int
    magnitude : int
    """
    check_integer("magnitude", magnitude, at_least=1)
    shape = (mechanism.rounds, *mechanism.tally_shape)
    zero = np.zeros(shape, dtype=np.int64)
    encodings = np.zeros(shape, dtype=np.int64)
    base = contribution(mechanism, zero, cell)
    for place in _places(mechanism, cell):
        zero[place] = 1
        weight = contribution(mechanism, zero, cell) - base
        zero[place] = 0
        encodings[place] = magnitude * int(np.sign(np.round(weight, 12)))
    return encodings


def _crafted(mechanism: Any, cell: int, magnitude: int) -> float:
    """Return what the best crafted encodings add."""
    return contribution(mechanism, crafted_encodings(mechanism, cell, magnitude), cell)


def _places(mechanism: Any, cell: int) -> list[tuple[int, ...]]:
    """Return the entries of encodings that can matter to a cell: its own row, or all where outputs are shared."""
    shape = mechanism.tally_shape
    rounds = range(mechanism.rounds)
    if len(shape) == 2:
        return [(r, cell - 1, output) for r in rounds for output in range(shape[1])]
    if shape[0] == mechanism.cells:
        return [(r, cell - 1) for r in rounds]
    if shape[0] == mechanism.cells + 1:
        return [(r, cell) for r in rounds]
    if shape[0] > MOST_ENTRIES:
        raise ParameterError("mechanism", f"must have at most {MOST_ENTRIES} outputs for crafted encodings", shape[0])
    return [(r, output) for r in rounds for output in range(shape[0])]

"""Poisoning: forged reports, and how far corrupted vehicles can move the estimate of a cell with them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.common.binary_query_mechanism import QuestionMechanism
from mechanisms.local.common.packed_bits import AnswerReports, BitReports
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import HashedReports, LocalHashing
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.randomized_response import RandomizedResponse
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import UnaryEncoding
from mechanisms.parameter import ParameterError, check_integer


def contribution(mechanism: Any, encodings: NDArray[np.int64], cell: int) -> float:
    """Return the contribution of one device to the estimate of a cell, on an ideal channel.

    Every estimator is the sum of the contributions of all devices, because it is affine in the counts with an offset
    proportional to the number of devices. So a contribution is the estimate from that device alone. As the estimator
    is unbiased, an honest device's contribution has mean 1 in the cell and 0 elsewhere.

    Parameters
    ----------
    mechanism : LocalMechanism
    encodings : (rounds, *tally_shape) int64
        What is counted for the device in every round.
    cell : int
        The cell, from 1.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    """
    ones = (1,) * mechanism.rounds
    return float(mechanism.estimate(encodings, counted=ones, asked=ones).count[cell - 1])


def forged_reports(mechanism: Any, cell: int, devices: int = 1, *, deflate: bool = False) -> tuple[Any, ...]:
    """Return the well-formed reports, one batch per round, that raise (or lower) a cell's estimate the most.

    Reports are well-formed if they pass a check of the format, such as a proof that an encoding is one-hot: each
    round's report by itself is one that some honest device could send. All combinations of the few reports that can
    matter to the cell are tried and compared by the estimator. Among equals the first is returned.

    Parameters
    ----------
    mechanism : LocalMechanism
        For a mechanism of another kind, register the reports that can matter with `candidate_reports.register`.
    cell : int
        The cell, from 1.
    devices : int
        The number of devices that send the reports.
    deflate : bool
        Whether to lower the estimate instead of raising it.

    Returns
    -------
    tuple of Reports
        One entry per round.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    NoLikelihoodError
        If no candidate reports are registered for the mechanism, or no report is the greatest (Laplace shares).
    """
    _, chosen = best_forgery(mechanism, cell, deflate=deflate)
    rows = np.zeros(check_integer("devices", devices, at_least=0), dtype=np.int64)
    return tuple(report[rows] for report in chosen)


def best_forgery(mechanism: Any, cell: int, *, deflate: bool = False) -> tuple[float, tuple[Any, ...]]:
    """Return the greatest (or least) contribution of well-formed reports, and the reports of one device."""
    cell = check_integer("cell", cell, at_least=1, at_most=mechanism.cells)
    candidates = candidate_reports(mechanism, cell)
    encoded = [mechanism.encode(report)[0] for report in candidates]
    best: tuple[float, tuple[Any, ...]] | None = None
    for picks in product(range(len(candidates)), repeat=mechanism.rounds):
        found = contribution(mechanism, np.stack([encoded[i] for i in picks]), cell)
        # Contributions that are equal up to rounding count as ties, so that the first is kept.
        if best is None or (best[0] - found if deflate else found - best[0]) > 1e-9 * (1.0 + abs(found)):
            best = found, tuple(candidates[i] for i in picks)
    if best is None:
        raise NoLikelihoodError(type(mechanism).__name__, "no candidate reports were given.")
    return best


@singledispatch
def candidate_reports(mechanism: Any, cell: int) -> Sequence[Any]:  # noqa: ARG001 - what every kind needs
    """Return reports of one device that include, for every round, the best forgery for this cell."""
    raise NoLikelihoodError(type(mechanism).__name__, "it is not defined which of its reports matter to a cell.")


@candidate_reports.register(SamplingPrivacy)
@candidate_reports.register(KRandomizedResponse)
@candidate_reports.register(NoPrivacy)
def _(mechanism: Any, cell: int) -> Sequence[Any]:  # noqa: ARG001 - only the cell itself and any other value matter
    return [np.array([value], dtype=np.int32) for value in (0, cell)]


@candidate_reports.register(HadamardResponse)
def _(mechanism: HadamardResponse, cell: int) -> Sequence[Any]:  # noqa: ARG001 - rows are the same in any order K
    # Output 0 is in every set; the row's own lowest bit is outside its set.
    row = cell + 1
    return [np.array([value], dtype=np.int32) for value in (0, row & -row)]


@candidate_reports.register(RandomizedResponse)
@candidate_reports.register(UnaryEncoding)
@candidate_reports.register(BinarySamplingPrivacy)
def _(mechanism: Any, cell: int) -> Sequence[Any]:
    rows = np.zeros((2, mechanism.cells), dtype=np.uint8)
    rows[1, cell - 1] = 1
    return [BitReports.from_dense(rows[i : i + 1]) for i in range(2)]


@candidate_reports.register
def _(mechanism: QuestionMechanism, cell: int) -> Sequence[Any]:
    outputs = len(mechanism.question.outputs)
    rows = np.zeros((outputs, mechanism.cells), dtype=np.uint8)
    rows[:, cell - 1] = np.arange(outputs)
    return [AnswerReports.from_dense(rows[i : i + 1], outputs) for i in range(outputs)]


@candidate_reports.register
def _(mechanism: SubsetSelection, cell: int) -> Sequence[Any]:
    size = int(mechanism.size or 1)
    rows = np.zeros((2, mechanism.symbols), dtype=np.uint8)
    others = np.delete(np.arange(mechanism.symbols), cell)
    rows[0, others[:size]] = 1
    rows[1, cell] = 1
    rows[1, others[: size - 1]] = 1
    return [BitReports.from_dense(rows[i : i + 1]) for i in range(2)]


@candidate_reports.register
def _(mechanism: LocalHashing, cell: int) -> Sequence[Any]:  # noqa: ARG001 - even and odd are all
    # A hash function with a = 2⁶³ puts even symbols into bucket 0 and odd ones half the range away. So a report
    # supports every second cell, and inflates each of these as much as a report for that cell alone.
    seeds = np.array([[1 << 63, 0]], dtype=np.uint64)
    odd = (int(mechanism.buckets or 2) * (1 << 31)) >> 32
    return [HashedReports(seeds, np.array([place], dtype=np.int32)) for place in (0, odd)]


@candidate_reports.register
def _(mechanism: DistributedLaplace, cell: int) -> Sequence[Any]:  # noqa: ARG001 - no report is the best
    raise NoLikelihoodError(type(mechanism).__name__, "its vectors hold any integer, so none is the greatest.")


# `crafted_encodings` evaluates the estimator once per entry; for more entries than this it raises an error.
MOST_ENTRIES = 2_048


@dataclass(frozen=True, slots=True)
class Inflation:
    """The change of a cell's estimate by corrupted vehicles, compared with their honest reports.

    Parameters
    ----------
    corrupted : int
        m, the number of vehicles that send arbitrary reports.
    per_vehicle : float
        The contribution of each, in vehicles; infinite if it is not bounded.
    inside : int
        How many of them are truly in the cell. Each would honestly contribute 1 on average.
    """

    corrupted: int
    per_vehicle: float
    inside: int = 0

    @property
    def vehicles(self) -> float:
        """The expected change of the estimate, in vehicles."""
        return self.corrupted * self.per_vehicle - self.inside if self.corrupted else 0.0

    def share(self, population: int) -> float:
        """Return the change as a share of the N devices asked: (m·`per_vehicle` − `inside`)/N."""
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

    Honest format (`crafted` is False): the best of the well-formed reports (`forged_reports`), found by evaluating the
    estimator.

    - Sampling Privacy: 1/π_s per vehicle, with 0 (or any other cell) in round one and the cell in round two, which an
      honest sampled device could have sent.
    - A pure protocol: (1 − q)/(p − q) per vehicle, with a report that supports the cell. An honest device elsewhere
      contributes 0 on average.
    - Laplace shares: infinite, because a well-formed vector may hold any integer.

    Crafted: encodings of any form, which secret shares hide from servers that do not check them. Every entry may be as
    large as the modulus allows, so the change is infinite. With `magnitude` M, every entry is ±M, and a vehicle
    contributes M times the sum of the absolute weights of all entries. A robust deployment rejects crafted encodings,
    so only the honest format remains.

    Parameters
    ----------
    mechanism : LocalMechanism
    cell : int
        The cell, from 1.
    corrupted : int
        m.
    crafted : bool
        Whether encodings need not be well-formed.
    magnitude : int, optional
        The largest absolute value of an entry of a crafted encoding; unbounded by default.
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
        If no candidate reports are registered for a plug-in.
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
    """Return the encodings with entries within ±magnitude that raise a cell's estimate the most.

    They have shape (rounds, *tally_shape) and dtype int64. Entries that do not affect the cell are 0.

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
    """Return the contribution of the best crafted encodings."""
    return contribution(mechanism, crafted_encodings(mechanism, cell, magnitude), cell)


def _places(mechanism: Any, cell: int) -> list[tuple[int, ...]]:
    """Return the indices of encodings that can affect a cell: its own row, or all if cells share the outputs."""
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

"""Poisoning: well-formed forged reports, and how far corrupted vehicles can move the estimate of a cell."""

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
    """Return what one device adds to the estimate of a cell, on an ideal channel.

    Every estimator is the sum over devices of such a number (it is affine in the counts, with an offset in proportion
    to the devices), so it is the estimate from that device alone. An honest device's has mean 1 in the cell and 0
    elsewhere, the estimator being unbiased.

    Parameters
    ----------
    mechanism : LocalMechanism
    encodings : (rounds, *tally_shape) int64
        What the device had counted in every round.
    cell : int
        From 1.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    """
    ones = (1,) * mechanism.rounds
    return float(mechanism.estimate(encodings, counted=ones, asked=ones).count[cell - 1])


def forged_reports(mechanism: Any, cell: int, devices: int = 1, *, deflate: bool = False) -> tuple[Any, ...]:
    """Return well-formed reports, one batch a round, that raise (or lower) a cell's estimate as much as one can.

    Well-formed is what passes a check of the format, such as a proof that an encoding is one-hot: each round's report
    for itself is one that some honest device could send. All combinations of the few reports that can matter to the
    cell are tried, and the estimator says which is best; the first of equals is taken.

    Parameters
    ----------
    mechanism : LocalMechanism
        For a mechanism of another kind, `candidate_reports.register` says which reports can matter.
    cell : int
        From 1.
    devices : int
        How many devices send them.
    deflate : bool
        Whether the estimate is to be lowered.

    Returns
    -------
    tuple of Reports
        One entry a round.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    NoLikelihoodError
        If nobody has said which reports matter, or there is no greatest (Laplace shares).
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
        # Rounding must not decide between equals.
        if best is None or (best[0] - found if deflate else found - best[0]) > 1e-9 * (1.0 + abs(found)):
            best = found, tuple(candidates[i] for i in picks)
    if best is None:
        raise NoLikelihoodError(type(mechanism).__name__, "no candidate reports were given.")
    return best


@singledispatch
def candidate_reports(mechanism: Any, cell: int) -> Sequence[Any]:  # noqa: ARG001 - what every kind needs
    """Return one-device reports among which, in every round, the best for this cell is."""
    raise NoLikelihoodError(type(mechanism).__name__, "nobody has said which of its reports matter to a cell.")


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
    # A function with a = 2⁶³ puts even symbols into bucket 0 and odd ones half the range apart; so a report supports
    # every other cell as well, which is as good an inflation of each of them.
    seeds = np.array([[1 << 63, 0]], dtype=np.uint64)
    odd = (int(mechanism.buckets or 2) * (1 << 31)) >> 32
    return [HashedReports(seeds, np.array([place], dtype=np.int32)) for place in (0, odd)]


@candidate_reports.register
def _(mechanism: DistributedLaplace, cell: int) -> Sequence[Any]:  # noqa: ARG001 - no report is the best
    raise NoLikelihoodError(type(mechanism).__name__, "its vectors hold any integer, so none is the greatest.")


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

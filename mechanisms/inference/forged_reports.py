"""Reports a corrupted device makes up: well-formed, and such that one cell's estimate moves as far as it can."""

from collections.abc import Sequence
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.no_likelihood import NoLikelihoodError
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import HashedReports, LocalHashing
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.parts.answer_rows import AnswerReports
from mechanisms.local.parts.bit_rows import BitReports
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.local.parts.unary import UnaryEncoding
from mechanisms.local.randomized_response import RandomizedResponse
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.parameter import check_integer


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

"""Poisoning: forged reports, and how far corrupted vehicles can move the estimate of a cell with them."""

from itertools import product
from typing import Any

import numpy as np

from mechanisms.compiled import Integers
from mechanisms.inference.likelihood import law_of_class
from mechanisms.inference.report_law import NoLikelihoodError, ReportLaw
from mechanisms.parameter import ParameterError, check_integer


def contribution(mechanism: Any, encodings: Integers, cell: int) -> float:
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


def forged_reports(mechanism: Any, cell: int, devices: int = 1) -> tuple[Any, ...]:
    """Return the well-formed reports, one batch per round, that raise a cell's estimate the most.

    Reports are well-formed if they pass a check of the format, such as a proof that an encoding is one-hot: each
    round's report by itself is one that some honest device could send. All combinations of the few reports that can
    matter to the cell are tried and compared by the estimator. Among equals the first is returned.

    What a vehicle contributes with them, in vehicles:

    - Sampling Privacy: 1/π_s, with 0 (or any other cell) in round one and the cell in round two, which an honest
      sampled device could have sent.
    - A pure protocol: (1 − q)/(p − q), with a report that supports the cell. An honest device elsewhere contributes 0
      on average.

    Parameters
    ----------
    mechanism : LocalMechanism
    cell : int
        The cell, from 1.
    devices : int
        The number of devices that send the reports.

    Returns
    -------
    tuple of Reports
        One entry per round.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    NoLikelihoodError
        If the law of the mechanism's reports states no candidates, or no report is the greatest (Laplace shares).
    """
    cell = check_integer("cell", cell, at_least=1, at_most=mechanism.cells)
    law = law_of_class(mechanism, (1,))
    if law is None or not (candidates := law.candidates(cell)):
        raise NoLikelihoodError(type(mechanism).__name__, (law or ReportLaw).no_candidates)
    encoded = [mechanism.encode(report)[0] for report in candidates]
    best, chosen = -np.inf, tuple(candidates[:1])
    for picks in product(range(len(candidates)), repeat=mechanism.rounds):
        added = contribution(mechanism, np.stack([encoded[i] for i in picks]), cell)
        # Contributions that are equal up to rounding count as ties, so that the first is kept.
        if added - best > 1e-9 * (1.0 + abs(added)):
            best, chosen = added, tuple(candidates[i] for i in picks)
    rows = np.zeros(check_integer("devices", devices, at_least=0), dtype=np.int64)
    return tuple(report[rows] for report in chosen)


# `crafted_encodings` evaluates the estimator once per entry; for more entries than this it raises an error.
MOST_ENTRIES = 2_048


def crafted_encodings(mechanism: Any, cell: int, magnitude: int) -> Any:
    """Return the encodings with entries within ±magnitude that raise a cell's estimate the most.

    They have shape (rounds, *tally_shape) and dtype int64. Entries that do not affect the cell are 0, all others
    ±magnitude: a vehicle contributes `magnitude` times the sum of the absolute weights of all entries. Secret shares
    hide such encodings from servers that do not check them; a robust deployment rejects them. Without a bound on the
    entries, the contribution is not bounded either.

    Parameters
    ----------
    mechanism : LocalMechanism
    cell : int
        The cell, from 1.
    magnitude : int
        The largest absolute value of an entry, at least 1.

    Raises
    ------
    NotEstimableError
        If the mechanism has no estimator.
    ParameterError
        If the cell or magnitude is out of range, or the mechanism has too many outputs that all cells share.
    """
    cell = check_integer("cell", cell, at_least=1, at_most=mechanism.cells)
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

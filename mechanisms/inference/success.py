"""How often the best guess from a device's reports of one query is right, before any is seen."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.algebra.protocol import Protocol
from mechanisms.inference.likelihood import law_of
from mechanisms.inference.report_law import check_prior, check_rounds
from mechanisms.privacy.best_guess import best_guess_success


def guess_success(mechanism: Any, rounds: Sequence[int] | None, prior: ArrayLike) -> float | None:
    """Return the expected success of the best guess from these rounds' reports, exactly, or None.

    In O(V log V): for values by their own law (Sampling Privacy, refreshed or not, round by round and linked, k-ary
    randomized response, no privacy), for bits and questions as the expected maximum of independent evidence, for
    subset selection by the first member in order of the prior, for Hadamard response by halving. For local hashing
    with more than one cell None: buckets of three symbols are not independent and their joint law has no short form
    (`simulated_guess_success` states an error). The order of `rounds` does not matter.

    Parameters
    ----------
    mechanism : LocalMechanism or Protocol
        Or a protocol as a table: its prior is over its kinds, in order.
    rounds : sequence of int, optional
        The rounds seen, linked; all, if None.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V.

    Returns
    -------
    float or None
        At least max q.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If a round or the prior is none.
    """
    if isinstance(mechanism, Protocol):
        return best_guess_success(protocol_matrix(mechanism, rounds), prior)
    q = check_prior(prior, mechanism.cells)
    found = law_of(mechanism, rounds).guess_success(q, 1)
    # Never below the guess without reports, but for rounding.
    return None if found is None else max(found, float(q.max()))


def protocol_matrix(protocol: Protocol, rounds: Sequence[int] | None = None) -> Any:
    """Return the probability of every linked answer of these rounds from every kind, (kinds, answers) float64."""
    seen = check_rounds(rounds, protocol.rounds)
    places: dict[tuple[str, ...], int] = {}
    rows = []
    for kind in protocol.kinds:
        row: dict[int, list[float]] = {}
        for answers, probability in protocol.law(kind).items():
            part = tuple(answers[r - 1] for r in seen)
            row.setdefault(places.setdefault(part, len(places)), []).append(float(probability))
        rows.append(row)
    matrix = np.zeros((len(rows), len(places)))
    for k, row in enumerate(rows):
        for place, masses in row.items():
            matrix[k, place] = math.fsum(masses)
    return matrix

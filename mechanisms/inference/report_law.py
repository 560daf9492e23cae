"""What a law of reports can be asked: how likely they are from each truth, and how often the best guess is right."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.hockey_stick import check_distribution

Logs = NDArray[np.float64]


class ReportLaw(Protocol):
    """The joint law of a mechanism's reports of some rounds, given each truth 0…V."""

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(a device's reports | truth), (n, V + 1), up to a constant a row; −∞ for what cannot be."""

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return how often the best guess from T queries' reports is right, exactly, or None where that is unknown."""


def check_rounds(rounds: Sequence[int] | None, of: int) -> tuple[int, ...]:
    """Return the rounds seen, from 1 and each once; all of them by default.

    Raises
    ------
    ParameterError
        If there is none, one comes twice, or the mechanism has no such round.
    """
    if rounds is None:
        return tuple(range(1, of + 1))
    seen = tuple(check_integer("rounds", r, at_least=1, at_most=of) for r in rounds)
    if not seen or len(set(seen)) < len(seen):
        raise ParameterError("rounds", "must name at least one round, each once", list(rounds))
    return seen


def check_prior(prior: Any, cells: int) -> NDArray[np.float64]:
    """Return a prior over outside and every cell, (cells + 1,) float64."""
    q = check_distribution("prior", prior)
    if q.shape != (cells + 1,):
        raise ParameterError("prior", f"must hold outside and {cells} cells, shape {(cells + 1,)}", q.shape)
    return q


def greatest_other(prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each truth the greatest prior among all others, (truths,); there are at least two."""
    second, first = np.partition(prior, -2)[-2:]
    others = np.full(len(prior), first)
    others[int(prior.argmax())] = second
    return others

"""The success of the best guess by simulation, with its standard error: where no exact formula is known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.inference.likelihood import BATCH_FLOATS, law_of
from mechanisms.inference.posterior import posterior
from mechanisms.inference.repeated import repeated_log_likelihood
from mechanisms.inference.report_law import check_prior, check_rounds
from mechanisms.parameter import check_integer


@dataclass(frozen=True, slots=True)
class SimulatedSuccess:
    """A success rate and how far chance may have moved it.

    Parameters
    ----------
    success : float
        The mean over simulated devices of the posterior probability of their best guess: unbiased, and of less variance
        than counting hits.
    std_error : float
        Its standard error, from the sample.
    trials : int
        Devices simulated.
    """

    success: float
    std_error: float
    trials: int


def simulated_guess_success(
    mechanism: Any,
    rounds: Sequence[int] | None,
    prior: ArrayLike,
    *,
    trials: int,
    rng: np.random.Generator,
    queries: int = 1,
) -> SimulatedSuccess:
    """Simulate devices that answer T queries from one place each, and return how sure the best guess of it is.

    Parameters
    ----------
    mechanism : LocalMechanism
        Any with a likelihood; what it keeps between queries it keeps.
    rounds : sequence of int, optional
        The rounds seen of each query, linked; all, if None.
    prior : (cells + 1,) float64
    trials : int
        At least 2.
    rng : numpy.random.Generator
    queries : int
        T.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has none.
    """
    trials = check_integer("trials", trials, at_least=2)
    queries = check_integer("queries", queries, at_least=1)
    q = check_prior(prior, mechanism.cells)
    seen = check_rounds(rounds, mechanism.rounds)
    law_of(mechanism, seen)
    step = max(1, min(mechanism.batch // queries, BATCH_FLOATS // (mechanism.cells + 1)))
    sure = []
    for start in range(0, trials, step):
        n = min(step, trials - start)
        truth = rng.choice(len(q), size=n, p=q / q.sum()).astype(np.int32)
        memory = mechanism.enrol(n, rng=rng)
        asked = []
        for _ in range(queries):
            coins = mechanism.toss(memory, rng=rng)
            asked.append([mechanism.answer(r, truth, coins) for r in seen])
        sure.append(posterior(repeated_log_likelihood(mechanism, asked, seen), q).max(axis=1))
    found = np.concatenate(sure)
    return SimulatedSuccess(float(found.mean()), float(found.std(ddof=1)) / math.sqrt(trials), trials)

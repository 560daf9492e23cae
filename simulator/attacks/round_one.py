"""Round one alone: where a device is, and whether it was sampled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.inference import sampled_guess_success, sampled_posterior
from mechanisms.local import SamplingPrivacy
from simulator.aggregation.transcript import HandleKind, IntArray
from simulator.attacks.by_rounds import guess_by_rounds
from simulator.attacks.evidence import link_rounds_of
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior


def round_one(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from its report of round one.

    Sampling Privacy answers round one without looking at the truth: the guess is that of the prior.

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.
    rng
        Breaks ties where all places are alike.

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are.
    """
    return guess_by_rounds(observation, prior, (1,), rng=rng)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Who is held to be sampled in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64; None of the one device that is not corrupted, where nothing names it.
    probability
        (n,) float64, that the die said S.
    theory
        How often the likelier of the two is right.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    probability: npt.NDArray[np.float64]
    theory: float

    @property
    def guesses(self) -> npt.NDArray[np.bool_]:
        """(n,) bool: whether sampled is the likelier."""
        guessed: npt.NDArray[np.bool_] = self.probability > 0.5
        return guessed


def who_was_sampled(observation: Observation, prior: Prior) -> list[Sampled]:
    """Return, from round one alone, how likely each device's die said S.

    0 comes of S with π_s and of a blank with π_0: with π_0 = 0 it shouts "sampled" (papers.md, item 5).

    Parameters
    ----------
    observation, prior
        What is seen, and what was likely before.

    Returns
    -------
    list of Sampled
        Empty for mechanisms other than Sampling Privacy, whose devices throw no one die.
    """
    mechanism: Any = observation.mechanism
    if not isinstance(mechanism, SamplingPrivacy):
        return []
    found = []
    for query in observation.queries:
        q = prior.of(query)
        for group in link_rounds_of(observation, query, (1,)):
            probability = sampled_posterior(mechanism, group.reports, q, (1,))
            theory = sampled_guess_success(mechanism, (1,), q)
            found.append(Sampled(query, group.handle_kind, group.handles, probability, theory))
    return found

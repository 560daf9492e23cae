"""Linked rounds: what servers learn that put the reports of one device side by side (papers.md, item 2)."""

import numpy as np

from simulator.attacks.by_rounds import guess_by_rounds
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior


def link_rounds(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from all its reports of a query that the coalition can read.

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
    return guess_by_rounds(observation, prior, range(1, observation.mechanism.rounds + 1), rng=rng)

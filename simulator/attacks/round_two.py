"""Round two alone: the best guess from the one round in which devices say where they are."""

import numpy as np

from simulator.attacks.by_rounds import guess_by_rounds
from simulator.attacks.guesses import Guesses
from simulator.attacks.observation import Observation
from simulator.attacks.prior import Prior

ROUND = 2


def round_two(observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
    """Guess every device's cell from its report of round two; of one round, from that.

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
    return guess_by_rounds(observation, prior, (min(ROUND, observation.mechanism.rounds),), rng=rng)

"""Attacks: guesses of a coalition, computed only from what its members stored and what is public."""

from simulator.attacks.counterfactual import Forgery, LastDevice, added_by, others_dropped, released_twice
from simulator.attacks.observation import Observation, OwnReports
from simulator.attacks.reconstruction import (
    ROUND_ATTACKS,
    Attack,
    Guesses,
    LongitudinalAttack,
    Prior,
    SamplingGuesses,
    who_was_sampled,
)

__all__ = [
    "ROUND_ATTACKS",
    "Attack",
    "Forgery",
    "Guesses",
    "LastDevice",
    "LongitudinalAttack",
    "Observation",
    "OwnReports",
    "Prior",
    "SamplingGuesses",
    "added_by",
    "others_dropped",
    "released_twice",
    "who_was_sampled",
]

"""Attacks: guesses of a coalition, computed only from what its members stored and what is public."""

from simulator.attacks.counterfactual import (
    LastDevice,
    craft_reports,
    forge_reports,
    known_others,
    others_dropped,
    released_twice,
)
from simulator.attacks.longitudinal import longitudinal
from simulator.attacks.observation import Observation, OwnReports, StoredView
from simulator.attacks.prior import Guesses, Prior
from simulator.attacks.reconstruction import SamplingGuesses, link_rounds, round_one, round_two, shares, who_was_sampled

__all__ = [
    "Guesses",
    "LastDevice",
    "Observation",
    "OwnReports",
    "Prior",
    "SamplingGuesses",
    "StoredView",
    "craft_reports",
    "forge_reports",
    "known_others",
    "link_rounds",
    "longitudinal",
    "others_dropped",
    "released_twice",
    "round_one",
    "round_two",
    "shares",
    "who_was_sampled",
]

"""Attacks: what a coalition can guess from what its members stored, and from nothing else."""

from simulator.attacks.drop_out import others_dropped, released_twice
from simulator.attacks.guesses import Guesses
from simulator.attacks.known_others import LastDevice, known_others
from simulator.attacks.link_rounds import link_rounds
from simulator.attacks.longitudinal import longitudinal
from simulator.attacks.observation import Observation, OwnReports, Seen
from simulator.attacks.poisoning import craft_reports, forge_reports
from simulator.attacks.prior import Prior
from simulator.attacks.round_one import Sampled, round_one, who_was_sampled
from simulator.attacks.round_two import round_two
from simulator.attacks.shares import shares

__all__ = [
    "Guesses",
    "LastDevice",
    "Observation",
    "OwnReports",
    "Prior",
    "Sampled",
    "Seen",
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

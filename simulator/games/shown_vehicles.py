"""Guesses about one vehicle that is shown: which vehicle it is, and the table of what coalitions guessed about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from simulator.arrays import IntArray
from simulator.experiment.guess_games import Guessed

GUESS_COLUMNS = {
    **dict.fromkeys(("name", "attack", "coalition", "mechanism", "campaign"), "str"),
    "query": "int64",
    "time_s": "float64",
    **dict.fromkeys(("vehicle", "truth", "guess"), "int64"),
    "probability": "float64",
}
"""Columns of `guesses.parquet`, and their dtypes."""


@dataclass(frozen=True, eq=False)
class CoalitionGuesses:
    """All guesses of one coalition by one attack on one mechanism.

    Attributes
    ----------
    name, attack
        The attack's name in the scenario, and its kind.
    coalition, mechanism
        The coalition in words, and the mechanism's name.
    campaigns
        The campaigns that are attacked together.
    parts
        By query, and by choice of corrupted vehicles; only targets are guessed, which are vehicles and not corrupted.
    """

    name: str
    attack: str
    coalition: str
    mechanism: str
    campaigns: tuple[str, ...]
    parts: Sequence[Guessed]

    @property
    def vehicles(self) -> IntArray:
        """(guesses,) int64: the vehicle of each guess."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(part.devices for part in self.parts)])

    def about(self, vehicle: int) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the table about a vehicle, one for each guess."""
        key = (self.name, self.attack, self.coalition, self.mechanism)
        for part in self.parts:
            for row in np.flatnonzero(part.devices == vehicle):
                guess = (vehicle, part.truth[row], part.guesses[row], part.probability[row])
                yield (*key, part.campaign, part.query, part.time_s, *guess)


def choose_vehicles(guesses: Sequence[CoalitionGuesses]) -> dict[CoalitionGuesses, int]:
    """Return the vehicle that is shown of each coalition's guesses; coalitions without guesses have none.

    Among the attacks on the same campaigns it is the vehicle about which most guesses were made, over all of their
    queries, coalitions and mechanisms; of several the one with the lowest number. Attacks of which it is no target have
    the vehicle with most guesses by them. The choice does not depend on the guesses themselves: a vehicle chosen
    because its guesses are right, or wrong, would show an attack that is better, or worse, than it is.
    """
    chosen: dict[CoalitionGuesses, int] = {}
    for campaigns in dict.fromkeys(one.campaigns for one in guesses):
        left = [one for one in guesses if one.campaigns == campaigns and len(one.vehicles)]
        while left:
            vehicles, count = np.unique(np.concatenate([one.vehicles for one in left]), return_counts=True)
            vehicle = int(vehicles[np.argmax(count)])
            chosen |= {one: vehicle for one in left if vehicle in one.vehicles}
            left = [one for one in left if one not in chosen]
    return chosen


def tabulate_guesses(guesses: Sequence[CoalitionGuesses]) -> pd.DataFrame | None:
    """Return the table of `guesses.parquet`, one row for each guess about the vehicle that is shown; None without any.

    Rows are in the order of attacks, and of queries. Attacks that guess in worlds that did not occur, in which devices
    drop out or are elsewhere, have none.
    """
    chosen = choose_vehicles(guesses)
    rows = [row for one in guesses if one in chosen for row in one.about(chosen[one])]
    return pd.DataFrame(rows, columns=list(GUESS_COLUMNS)).astype(GUESS_COLUMNS) if rows else None

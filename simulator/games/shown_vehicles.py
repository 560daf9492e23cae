"""Guesses about one vehicle that is shown: which vehicle it is, and the table of what coalitions guessed about it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from simulator.games.scores import Score

GUESS_COLUMNS = {
    **dict.fromkeys(("name", "attack", "coalition", "mechanism", "campaign"), "str"),
    "query": "int64",
    "time_s": "float64",
    **dict.fromkeys(("vehicle", "truth", "guess"), "int64"),
    "probability": "float64",
}
"""Columns of `guesses.parquet`, and their dtypes."""


class Guesser(NamedTuple):
    """One coalition with one attack on one mechanism: what identifies its findings and its guesses.

    Attributes
    ----------
    name, attack
        The attack's name in the scenario, and its kind.
    coalition, mechanism
        The coalition in words, and the mechanism's name.
    campaigns
        The campaigns that are attacked together.
    """

    name: str
    attack: str
    coalition: str
    mechanism: str
    campaigns: tuple[str, ...]


Guesses = Mapping[Guesser, Sequence[Score]]
"""The scores of each coalition, by query and by choice of corrupted vehicles; at least one."""


def choose_vehicles(guesses: Guesses) -> dict[Guesser, int]:
    """Return the vehicle that is shown of each coalition's guesses; coalitions without guesses have none.

    Among the attacks on the same campaigns it is the vehicle about which most guesses were made, over all of their
    queries, coalitions and mechanisms; of several the one with the lowest number. Attacks of which it is no target have
    the vehicle with most guesses by them. The choice does not depend on the guesses themselves: a vehicle chosen
    because its guesses are right, or wrong, would show an attack that is better, or worse, than it is.
    """
    chosen: dict[Guesser, int] = {}
    about = {guesser: np.concatenate([score.devices for score in scores]) for guesser, scores in guesses.items()}
    for campaigns in dict.fromkeys(guesser.campaigns for guesser in about):
        left = [guesser for guesser in about if guesser.campaigns == campaigns and len(about[guesser])]
        while left:
            vehicles, count = np.unique(np.concatenate([about[guesser] for guesser in left]), return_counts=True)
            vehicle = int(vehicles[np.argmax(count)])
            chosen |= {guesser: vehicle for guesser in left if vehicle in about[guesser]}
            left = [guesser for guesser in left if guesser not in chosen]
    return {guesser: chosen[guesser] for guesser in guesses if guesser in chosen}


def tabulate_guesses(guesses: Guesses) -> pd.DataFrame | None:
    """Return the table of `guesses.parquet`, one row for each guess about the vehicle that is shown; None without any.

    Rows are in the order of attacks, and of queries. Attacks that guess in worlds that did not occur, in which devices
    drop out or are elsewhere, have none.
    """
    rows = [row for guesser, vehicle in choose_vehicles(guesses).items() for row in _rows(guesser, guesses, vehicle)]
    return pd.DataFrame(rows, columns=list(GUESS_COLUMNS)).astype(GUESS_COLUMNS) if rows else None


def _rows(guesser: Guesser, guesses: Guesses, vehicle: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table about a vehicle, one for each guess."""
    for score in guesses[guesser]:
        query, probability = score.query, score.probability
        if query is None or probability is None:
            continue
        for row in np.flatnonzero(score.devices == vehicle):
            guess = (vehicle, score.truth[row], score.guesses[row], probability[row])
            yield (*guesser[:4], query.campaign, query.number_in_campaign, query.time_s, *guess)

"""Longitudinal attack: guess the cell of a device that stays in it, from its reports of several queries."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechanisms.inference import best_guess, posterior, repeated_guess_success, repeated_log_likelihood
from simulator.attacks.observation import Observation
from simulator.attacks.prior import FloatArray, Guesses, Prior
from simulator.attacks.readable_reports import Readable, join, patterns, read_round
from simulator.attacks.reconstruction import guess_by_rounds

Rounds = tuple[int, ...]


def longitudinal(
    observation: Observation,
    prior: Prior,
    *,
    queries: Sequence[int],
    last: int | None = None,
    rng: np.random.Generator,
) -> list[Guesses]:
    """Guess every device's cell from all its reports of several queries, assuming that it stayed in one cell.

    Reports of different queries are linked to one device if they are stored under its own number, if the network links
    its pseudonyms to it, or if all vehicles but one are corrupted. Otherwise only the reports of the last query are
    used.

    Parameters
    ----------
    observation, prior
        What the coalition observed, and its prior for the last of the queries.
    queries
        Numbers of the queries.
    last
        The query for which cells are guessed; by default the last one.
    rng
        Breaks ties under a uniform prior.

    Returns
    -------
    list of Guesses
        For the query `last`.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    last = max(queries) if last is None else last
    rounds = range(1, observation.mechanism.rounds + 1)
    read = {(query, round_): read_round(observation, query, round_) for query in sorted(queries) for round_ in rounds}
    followed = {key: one for key, one in read.items() if one is not None and one.handle_kind == "device"}
    alone = {} if followed else _of_last_vehicle(observation, read)
    if alone:
        return [
            Guesses(
                last,
                "none",
                None,
                _guess(observation.mechanism, alone, prior, last, rng=rng),
                _expected(observation.mechanism, list(alone), prior, prior.of(last)),
            )
        ]
    if not followed:
        return guess_by_rounds(observation.of_query(last), prior, rounds, rng=rng)
    handles, places = join([one.handles for one in followed.values()])
    found = []
    for which, rows in patterns(places >= 0):
        keys = [key for key, there in zip(followed, which, strict=True) if there]
        reports = {
            key: followed[key].content[places[rows, column]] for column, key in enumerate(followed) if which[column]
        }
        found.append(
            Guesses(
                last,
                "device",
                handles[rows],
                _guess(observation.mechanism, reports, prior, last, rng=rng),
                _expected(observation.mechanism, keys, prior, prior.of(last)),
            )
        )
    return found


def _of_last_vehicle(
    observation: Observation, read: Mapping[tuple[int, int], Readable | None]
) -> dict[tuple[int, int], Any]:
    """Return the reports of the only vehicle that is not corrupted, by query and round; empty if there are several."""
    if not observation.last_vehicle:
        return {}
    return {
        (query, round_): one.content
        for (query, round_), one in read.items()
        if one is not None and observation.unknown_devices(query) == 1 and len(one.content) == 1
    }


def _guess(
    mechanism: Any, reports: dict[tuple[int, int], Any], prior: Prior, last: int, *, rng: np.random.Generator
) -> Any:
    """Return the best guesses from the reports of devices that were received in the same rounds of the same queries."""
    logs: Any = 0.0
    for rounds, queries in _alike(list(reports)).items():
        asked = [[reports[query, round_] for round_ in rounds] for query in queries]
        logs = logs + repeated_log_likelihood(mechanism, asked, rounds)
    return best_guess(posterior(logs, prior.of(last)), rng=prior.tie_rng(rng))


def _expected(mechanism: Any, keys: Sequence[tuple[int, int]], prior: Prior, q: FloatArray) -> float | None:
    """Return the expected success if the same rounds were received in every query, otherwise None."""
    alike = _alike(keys)
    if len(alike) != 1:
        return None
    ((rounds, queries),) = alike.items()
    return prior.trusted(repeated_guess_success(mechanism, rounds, q, len(queries)), q)


def _alike(keys: Sequence[tuple[int, int]]) -> dict[Rounds, list[int]]:
    """Group queries by the rounds of them that were received."""
    heard: dict[int, list[int]] = {}
    for query, round_ in keys:
        heard.setdefault(query, []).append(round_)
    found: dict[Rounds, list[int]] = {}
    for query, rounds in heard.items():
        found.setdefault(tuple(sorted(rounds)), []).append(query)
    return found

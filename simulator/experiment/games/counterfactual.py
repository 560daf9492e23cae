"""Counterfactual games: what would have been counted had devices been corrupted, dropped or elsewhere.

Sums are made again from the campaign's own and the targets' reports; what the campaign published stays as it was.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import SamplingPrivacy
from mechanisms.privacy.audit import epsilon_lower_bound
from simulator.attacks import LastDevice, Prior, known_others, others_dropped, released_twice, target_dropped
from simulator.attacks.drop_out import others_dropped_theory, released_twice_theory
from simulator.attacks.known_others import known_others_theory
from simulator.experiment.games.campaign_record import CampaignRecord, Cells, IntArray, QueryRecord
from simulator.experiment.games.guess_games import Columns, keeps
from simulator.experiment.games.guess_score import CLAIMING_TOO_MUCH, Guessed, score_guesses, score_hits
from simulator.experiment.games.not_playable import NotPlayableError

Mask = npt.NDArray[np.bool_]

MOST_WORDS = 2**22
SOME_REPORTS_MISSING = "not every report was counted, so the differences are no numbers of sampled devices"
NO_NUMBERS = "only Sampling Privacy without refresh publishes differences that are numbers of sampled devices"
ONLY_SAMPLING = "the target dropped is worked out for two-round Sampling Privacy only"


def play_known_others(
    record: CampaignRecord, k: int | None, *, rng: np.random.Generator, alpha: float = CLAIMING_TOO_MUCH
) -> Iterator[Columns]:
    """Play for a device in a cell or outside all, at even odds, where everyone else is known.

    One target of every cell with any is chosen; a coin says whether it stays in the counts as it was, or is taken to
    be outside, where it adds nothing to the differences. Cells are independent of one another, so are trials.

    Raises
    ------
    NotPlayableError
        For mechanisms other than Sampling Privacy without refresh, or where not all reports were counted.
    """
    _check_published(record)
    mechanism: Any = record.mechanism
    if not isinstance(mechanism, SamplingPrivacy) or mechanism.refresh:
        raise NotPlayableError(NO_NUMBERS)
    crowds, guesses, stays = [], [], []
    for query in record.queries:
        if not query.all_counted:
            raise NotPlayableError(SOME_REPORTS_MISSING)
        chosen = _one_a_cell(query, rng=rng)
        cells = query.truth[chosen].astype(np.int64)
        first, second = (np.asarray(reports[chosen]) for reports in query.recorded.reports)
        own = (second == cells).astype(np.int64) - (first == cells)
        differences = (query.counts[1] - query.counts[0])[cells]
        stay = rng.random(len(chosen)) < 0.5
        last = LastDevice(query.occupancy[cells], differences - np.where(stay, 0, own), k)
        crowds.append(last.crowd)
        guesses.append(known_others(mechanism, last))
        stays.append(stay)
    if not sum(len(part) for part in crowds):
        return
    crowd, there, stays_there = np.concatenate(crowds), np.concatenate(guesses), np.concatenate(stays)
    theory = known_others_theory(mechanism, crowd, k)
    epsilon = max(_two_worlds(there, stays_there, alpha=alpha / 2), _two_worlds(~there, ~stays_there, alpha=alpha / 2))
    hits = int(np.count_nonzero(there == stays_there))
    yield score_hits(hits, len(crowd), prior=0.5, theory=theory, epsilon_lower=epsilon).columns


def _check_published(record: CampaignRecord) -> None:
    if record.noised:
        raise NotPlayableError(f"what is published is no count but a release, {record.noised}")


def _two_worlds(event: Mask, world: Mask, *, alpha: float) -> float:
    """Return an ε lower bound from an event in two worlds."""
    counts = {
        "hits_p": int(event[world].sum()),
        "trials_p": int(world.sum()),
        "hits_q": int(event[~world].sum()),
        "trials_q": int((~world).sum()),
    }
    return epsilon_lower_bound(**counts, alpha=alpha) if counts["trials_p"] and counts["trials_q"] else 0.0


def _one_a_cell(query: QueryRecord, *, rng: np.random.Generator) -> IntArray:
    """Return one target of each cell that has any, (cells,) places."""
    order = rng.permutation(len(query.truth))
    cells, first = np.unique(query.truth[order], return_index=True)
    return order[first[cells > 0]]


def play_drop_out(record: CampaignRecord, dropped: str, prior: Prior, *, rng: np.random.Generator) -> Iterator[Columns]:
    """Play with everybody but the target dropped before round two, or the target alone.

    Others dropped: counts of both rounds are released. Where devices heard in one round only are counted in neither,
    or there is one round, they are the target's own; else round one holds all devices. The target dropped: differences
    are released, once; and a second row, metric "released_twice", for a server that releases the same query with it
    and without.

    Raises
    ------
    NotPlayableError, NoLikelihoodError
        Where the game is worked out for other mechanisms only.
    """
    _check_published(record)
    once: list[Guessed] = []
    twice: list[Guessed] = []
    for query in record.queries:
        n = len(query.truth)
        if not n:
            continue
        expected = prior.success(query.number)
        heard = np.flatnonzero(query.recorded.heard.all(axis=0))
        if dropped == "target":
            mechanism = _sampling(record)
            guesses, theory = target_dropped(mechanism, prior, query.number, n, rng=rng)
            once.append(Guessed(guesses, query.truth, expected, theory, prior.usual(query.number)))
            found = _in_chunks(record, query, heard, partial(_released_twice, mechanism, prior, query.number, rng))
            twice.append(
                _filled(query, heard, found, released_twice_theory(mechanism, prior, query.number), prior, rng)
            )
        else:
            first_round = _first_round(record, query)
            theory = others_dropped_theory(record.mechanism, prior, query.number, first_round=first_round)
            found = _in_chunks(record, query, heard, partial(_others_dropped, record, query, prior, first_round, rng))
            once.append(_filled(query, heard, found, theory, prior, rng))
    for parts, columns in ((once, {}), (twice, {"metric": "released_twice"})):
        score = score_guesses(parts, rng=rng, kept=keeps(record))
        if score is not None:
            yield {**score.columns, **columns}


def _sampling(record: CampaignRecord) -> SamplingPrivacy:
    mechanism: Any = record.mechanism
    if not isinstance(mechanism, SamplingPrivacy):
        raise NotPlayableError(ONLY_SAMPLING)
    return mechanism


def _first_round(record: CampaignRecord, query: QueryRecord) -> int:
    """Return how many devices are in round one's counts once all but the target are dropped."""
    if getattr(record.deployment, "paired", False) or record.mechanism.rounds == 1:
        return 1
    return max(int(query.counted[0]), 1)


def _in_chunks(
    record: CampaignRecord, query: QueryRecord, heard: IntArray, guess: Callable[[list[IntArray]], Cells]
) -> Cells:
    """Return the guesses from the targets' own encodings, by round, some targets at a time."""
    mechanism = record.mechanism
    step = max(1, MOST_WORDS // math.prod(mechanism.tally_shape))
    found = [np.empty(0, dtype=np.int32)]
    for start in range(0, len(heard), step):
        rows = heard[start : start + step]
        found.append(guess([mechanism.encode(reports[rows]) for reports in query.recorded.reports]))
    return np.concatenate(found)


def _released_twice(
    mechanism: SamplingPrivacy, prior: Prior, query: int, rng: np.random.Generator, own: list[IntArray]
) -> Cells:
    return released_twice(mechanism, (own[1] - own[0])[:, 1:], prior, query, rng=rng)


def _others_dropped(
    record: CampaignRecord,
    query: QueryRecord,
    prior: Prior,
    first_round: int,
    rng: np.random.Generator,
    own: list[IntArray],
) -> Cells:
    counts = own if first_round == 1 else [query.counts[0][np.newaxis], *own[1:]]
    return others_dropped(record.mechanism, counts, prior, query.number, first_round=first_round, rng=rng)


def _filled(
    query: QueryRecord,
    heard: IntArray,
    found: Cells,
    theory: float | None,
    prior: Prior,
    rng: np.random.Generator,
) -> Guessed:
    """Return a guess for every target: by the prior, where its reports did not arrive."""
    n, expected = len(query.truth), prior.success(query.number)
    guesses = prior.guess(query.number, n, rng=rng)
    guesses[heard] = found
    if theory is not None:
        theory = (theory * len(heard) + expected * (n - len(heard))) / n
    return Guessed(guesses, query.truth, expected, theory, prior.usual(query.number))

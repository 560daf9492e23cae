"""Scores of games: guesses compared with the truth, or a measured quantity; the findings and the table of guesses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from mechanisms.privacy.audit import clopper_pearson, epsilon_lower_bound
from simulator.arrays import FloatArray, IntArray
from simulator.attacks.guesses import Prior
from simulator.results.schema import TABLES
from simulator.sensing.query import QueryRecord

TAIL = 0.025
"""Probability at each end of a 95 % interval."""
CLAIMING_TOO_MUCH = 1e-6
"""Probability with which an ε lower bound may exceed ε: a run has many bounds, and none should be wrong."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """Guesses of one game beside the truth, mostly of one query; or a quantity measured over some queries.

    Parameters
    ----------
    guesses, truth
        (n,) int or bool; empty for a quantity that is no guess.
    prior
        Success of the best guess without the observation.
    theory
        Expected success, or expected value; NaN if it is not known.
    compares
        What an ε lower bound is computed from: pairs of "devices" in different cells; the two "worlds" between which a
        guess decides; nothing, if None.
    usual
        The best guess without the observation; None if several are equally good.
    kept
        Whether devices keep coins from query to query.
    query
        The query with the devices guessed; None for guesses of something else than their cells.
    probability
        (n,) float64, the coalition's posterior probability of each guess, NaN where there is none; None for guesses
        that `guesses.parquet` does not show, in worlds that did not occur.
    metric, value, unit
        As in `attacks.parquet`. Scores of the same metric are pooled, and of their values the greatest is reported.
    queries
        The number of queries over which a quantity was measured.
    """

    guesses: Any = ()
    truth: Any = ()
    prior: float = math.nan
    theory: float = math.nan
    compares: Literal["devices", "worlds"] | None = None
    usual: int | None = None
    kept: bool = False
    query: QueryRecord | None = None
    probability: FloatArray | None = None
    metric: str | None = None
    value: float | None = None
    unit: str | None = None
    queries: int | None = None

    @classmethod
    def of(cls, query: QueryRecord, guesses: Any, expected: FloatArray, prior: Prior, **others: Any) -> "Score":
        """Return the score of guesses about all targets of a query, (n,), with the expected success of each."""
        usual = prior.usual(query.number)
        success = float(np.mean(query.truth == usual)) if prior.learned else prior.success(query.number)
        theory = math.nan if prior.learned else float(expected.mean())
        given = {"prior": success, "theory": theory, "usual": usual, **others}
        return cls(guesses=guesses, truth=query.truth, query=query, compares="devices", **given)

    @property
    def hits(self) -> int:
        """The number of right guesses."""
        return int(np.count_nonzero(np.equal(self.guesses, self.truth)))

    @property
    def devices(self) -> IntArray:
        """(n,) int64, the numbers of the devices of guesses that are shown; (0,) of others."""
        if self.query is None or self.probability is None:
            return np.empty(0, dtype=np.int64)
        return self.query.recorded.devices


def pool_scores(scores: Sequence[Score], *, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the columns of a finding, as in `attacks.parquet`, for each metric; none without a guess and a value.

    Truths are fixed and coins independent. If trials have different probabilities, the interval is wider than necessary
    (Hoeffding 1956). If devices keep coins, trials of different queries are not independent: the interval is then as
    wide as for the trials of a single query, and the ε bound is the first query's bound.

    Parameters
    ----------
    scores
        Of one game, by query and world.
    rng
        Pairs devices for the ε lower bound.
    """
    for metric in dict.fromkeys(score.metric for score in scores):
        alike = [score for score in scores if score.metric == metric]
        first, values = alike[0], [score.value for score in alike if score.value is not None]
        measured = {"metric": metric, "value": max(values, default=None), "unit": first.unit}
        guessing = [score for score in alike if len(score.truth)]
        if guessing:
            yield {**_pooled_guesses(guessing, rng=rng), **measured}
        elif values:
            yield {"trials": first.queries, "theory": _known(first.theory), **measured}


def _pooled_guesses(scores: Sequence[Score], *, rng: np.random.Generator) -> dict[str, Any]:
    """Return the columns of a finding about guesses; there is at least one in each score."""
    sizes, hits = [len(score.truth) for score in scores], sum(score.hits for score in scores)
    trials, kept = sum(sizes), scores[0].kept
    prior = sum(size * score.prior for size, score in zip(sizes, scores, strict=True)) / trials
    theory = sum(size * score.theory for size, score in zip(sizes, scores, strict=True)) / trials
    intervals = [(hits, trials)]
    if kept:
        intervals.append((round(hits / trials * min(sizes)), min(sizes)))
    ends = [clopper_pearson(*interval, alpha=TAIL) for interval in intervals]
    return {
        "trials": trials,
        "prior": prior,
        "success": hits / trials,
        "gain": hits / trials - prior,
        "gain_low": float(min(low for low, _ in ends)) - prior,
        "gain_high": float(max(high for _, high in ends)) - prior,
        "theory": _known(theory),
        "epsilon_lower": _epsilon(scores[:1] if kept else scores, rng=rng),
    }


def _known(theory: float) -> float | None:
    return None if math.isnan(theory) else theory


def _epsilon(scores: Sequence[Score], *, rng: np.random.Generator) -> float | None:
    """Return an ε lower bound; None if the scores compare nothing, or hold no pair of devices."""
    if scores[0].compares == "devices":
        return _of_pairs(scores, rng=rng)
    if scores[0].compares == "worlds":
        inside, guesses = (np.concatenate([getattr(score, name) for score in scores]) for name in ("truth", "guesses"))
        return max(_of_worlds(guesses, inside), _of_worlds(~guesses, ~inside))
    return None


def _of_pairs(scores: Sequence[Score], *, rng: np.random.Generator) -> float | None:
    """Return an ε lower bound from pairs of devices in different cells, or None if there are no pairs.

    For a pair (i, j) in one query the event is "t_i is guessed". Its probability for i is at most e^ε times that for j,
    which has another truth and whose guess is made with the same prior; the same holds for the sums over pairs. No
    device is in two pairs, so all are independent. Pairs whose t_i is the best guess without any observation carry
    little information and are left out.
    """
    hits_p = hits_q = pairs = 0
    for score in scores:
        order = rng.permutation(len(score.truth))
        half = len(order) // 2
        first, second = order[:half], order[half : 2 * half]
        apart = score.truth[first] != score.truth[second]
        apart &= score.truth[first] != (-1 if score.usual is None else score.usual)
        named, first, second = score.truth[first][apart], first[apart], second[apart]
        hits_p += int(np.count_nonzero(score.guesses[first] == named))
        hits_q += int(np.count_nonzero(score.guesses[second] == named))
        pairs += len(named)
    if not pairs:
        return None
    return epsilon_lower_bound(hits_p=hits_p, trials_p=pairs, hits_q=hits_q, trials_q=pairs, alpha=CLAIMING_TOO_MUCH)


def _of_worlds(event: Any, world: Any) -> float:
    """Return an ε lower bound from the frequencies of an event in two worlds, with half of the probability of error."""
    inside, outside = event[world], event[~world]
    if not len(inside) or not len(outside):
        return 0.0
    hits_p, hits_q, alpha = int(inside.sum()), int(outside.sum()), CLAIMING_TOO_MUCH / 2.0
    return epsilon_lower_bound(hits_p=hits_p, trials_p=len(inside), hits_q=hits_q, trials_q=len(outside), alpha=alpha)


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
    queries, coalitions and mechanisms; of several the one with the lowest number. Attacks that do not target it have
    the vehicle with most guesses by them. The choice does not depend on the guesses themselves: a vehicle chosen
    because its guesses are right, or wrong, would show an attack that is better, or worse, than it is.
    """
    chosen: dict[Guesser, int] = {}
    made = ((guesser, scores) for guesser, scores in guesses.items() if scores)
    about = {guesser: np.concatenate([score.devices for score in scores]) for guesser, scores in made}
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
    return TABLES["guesses"].frame(rows) if rows else None


def _rows(guesser: Guesser, guesses: Guesses, vehicle: int) -> Iterator[dict[str, object]]:
    """Yield the rows of the table about a vehicle, one for each guess."""
    for score in guesses[guesser]:
        query, probability = score.query, score.probability
        if query is None or probability is None:
            continue
        for row in np.flatnonzero(score.devices == vehicle):
            yield {
                **guesser._asdict(),
                "campaign": query.campaign,
                "query": query.number_in_campaign,
                "time_s": query.time_s,
                "vehicle": vehicle,
                "truth": score.truth[row],
                "guess": score.guesses[row],
                "probability": probability[row],
            }

"""Game in which the routes of vehicles are guessed, query by query and as a whole, beside guesses that know less."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.inference.likelihood import report_law
from mechanisms.inference.markov import Chain
from mechanisms.privacy.temporal_loss import backward_moves, losses
from mechanisms.privacy.view import LinkedReports
from simulator.arrays import FloatArray
from simulator.attacks.guessing_games import scores_of
from simulator.attacks.observation import follow
from simulator.attacks.reconstruction import RoundAttack
from simulator.attacks.routes import chain_of, guess_routes, usual_path
from simulator.attacks.scores import Score
from simulator.attacks.world import Game, Observer, Truth
from simulator.sensing.query import keeps_randomness

NEAR_M = 200.0
"""A guess is near if the centres of the guessed and of the true cell are at most so far apart, metres."""


@dataclass(frozen=True)
class RouteGame(Game):
    """The cells of every target in all queries are guessed from all queries.

    Vehicles that are not followed are guessed query by query, as by `RoundAttack`; of their paths nothing is known but
    the prior. All vehicles are guessed query by query if nothing is known about movement: given a vehicle's cell in a
    query, its other reports then add nothing.

    There are three scores: the share of right cells by smoothing; the share of right paths by the Viterbi algorithm,
    of vehicles that are targets of two queries or more; and how far the cells by smoothing are from the true cells.
    Guesses that know less have the same scores: where vehicles are followed, from each query's reports alone, and that
    nobody moves from where it was guessed first; and a random path drawn from the prior. The prior of each score is
    the success of the best guess without reports.
    """

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query and of paths, and the most that the reports can reveal."""
        prior, queries, mechanism = truth.prior(), truth.queries, truth.record.mechanism
        report_law(mechanism)
        numbers = truth.numbers
        observation, chain = observer.observe(numbers), chain_of(prior, numbers)
        followed, reports_alone = bool(follow(observation)), RoundAttack().guess(observation, prior, rng=rng)
        answers = [reports_alone, reports_alone if followed else [], reports_alone, [], []]
        if chain is not None:
            by_cell, by_path = guess_routes(observation, prior, chain, rng=rng)
            usual_one = usual_path(chain, numbers)
            # The only vehicle that is not corrupted is followed without a handle, whatever the handles of its reports.
            named = [guess for guess in reports_alone if not by_cell or by_cell[0].handles is not None]
            answers = [named + by_cell, usual_one + by_path, reports_alone, [], usual_one]
        scores = [scores_of(answer, queries, prior, observer, rng) for answer in answers]
        # Guesses about one vehicle depend on one another: each interval is as wide as for the trials of one query.
        yield from (replace(score, kept=True, pairs=False) for score in scores[0])
        cells, path, alone, unseen, usual = (np.concatenate([score.guesses for score in each]) for each in scores)
        at, asked = np.concatenate([query.truth for query in queries]), [query.recorded.devices for query in queries]
        when = np.repeat(np.arange(len(queries)), [len(devices) for devices in asked])
        devices, first, who = np.unique(np.concatenate(asked), return_index=True, return_inverse=True)
        guesses = {"": (cells, path)}
        if followed:
            guesses |= {"reports_alone_": (alone, alone), "nobody_moves_": (cells[first][who],) * 2}
        if chain is not None:
            guesses["random_path_"] = (chain.draw(len(devices), rng=rng)[when, who],) * 2
        centres = None if truth.record.centres is None else truth.record.centres()
        several = np.bincount(who) > 1
        for name, (guess, whole) in guesses.items():
            if name:
                yield from _scores(when, guess, at, unseen, metric=name[:-1])
            right, by_prior = ((np.bincount(who, each != at) == 0)[several] for each in (whole, usual))
            complete = chain is not None and len(at) == len(devices) * len(queries)
            theory = scores[1][0].theory if complete and not name else math.nan
            paths = np.zeros(len(right)), right, np.ones_like(right), by_prior
            yield from _scores(*paths, kept=False, metric=f"{name}whole_path", theory=theory)
            if centres is not None:
                yield from _distances(when, guess, at, unseen, centres, metric=f"{name}within_200_m")
        if followed:
            yield from _losses(mechanism, chain, len(queries))


def _scores(when: Any, guesses: Any, truth: Any, usual: Any, *, kept: bool = True, **columns: Any) -> Iterator[Score]:
    """Yield a score for each query, given by its place, beside the guesses by the prior."""
    for step in np.unique(when):
        rows = when == step
        prior = float(np.mean(usual[rows] == truth[rows]))
        yield Score(guesses=guesses[rows], truth=truth[rows], prior=prior, kept=kept, **columns)


def _distances(when: Any, guess: Any, at: Any, unseen: Any, centres: FloatArray, **columns: Any) -> Iterator[Score]:
    """Yield for each query which guesses are near, and their mean distance over all queries.

    Only vehicles inside are scored; a guess outside is not near, and has no distance.
    """
    points = np.concatenate([[[math.nan, math.nan]], centres])
    far, by_prior = (np.hypot(*(points[cells] - points[at])[at > 0].T) for cells in (guess, unseen))
    value = float(np.nanmean(far)) if np.isfinite(far).any() else None
    near = far <= NEAR_M
    yield from _scores(when[at > 0], near, np.ones_like(near), by_prior <= NEAR_M, value=value, unit="m", **columns)


def _losses(mechanism: Any, chain: Chain | None, queries: int) -> Iterator[Score]:
    """Yield the ε of the current place, and of all places, of a device whose reports of all queries are linked.

    The loss of a place is from the reports of its query and of those before, not of later ones. If devices keep coins,
    each report depends on earlier places too, and the loss of the route is the only bound.
    """
    one, every = (mechanism.claim(LinkedReports(asked)).epsilon for asked in (1, queries))
    matrices = [] if chain is None else backward_moves(chain.marginals, chain.moves)
    current = losses(matrices, [one] * (1 + len(matrices))).max()
    current = every if keeps_randomness(mechanism) else min(current, every)
    for metric, loss in (("loss_current_place", current), ("loss_route", every)):
        if math.isfinite(loss):
            yield Score(metric=metric, value=float(loss), unit="ε", queries=queries)

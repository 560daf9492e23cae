"""Games about traces over several queries: recovered from counts, joined under pseudonyms, named by known points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mechanisms.inference.likelihood import best_guess, encodings_of, log_likelihood, posterior, report_law
from mechanisms.inference.traces import assign, null_traces, recover_traces, same_bits_ratio, trace_scores
from simulator.arrays import FloatArray, IntArray
from simulator.attacks.guesses import Prior
from simulator.attacks.observation import Observation, link_rounds_of
from simulator.attacks.records import NotPlayableError, places_of
from simulator.attacks.scores import Score
from simulator.attacks.world import Game, Observer, Truth
from simulator.sensing.query import QueryRecord

MOST = 2_000
"""Greatest number of vehicles, and of cells, for which traces are recovered: all pairs are compared."""
RARE = 1e-9
"""Probability of moves that the prior excludes: counts of vehicles that come and go may leave no other."""


def moves_between(prior: Prior, before: int, query: int) -> FloatArray:
    """Return the probabilities of moves from one query to a later one, (cells + 1, cells + 1) float64.

    If nothing is known about movement, half of the vehicles stay and the others are spread as the prior has it.
    """
    if prior.moves is not None:
        return np.asarray(prior.moves_between(before, query).toarray())
    return (np.eye(len(prior.of(query))) + prior.of(query)) / 2.0


def cells_of(queries: Sequence[QueryRecord]) -> tuple[IntArray, IntArray]:
    """Return the devices of some queries, (n,) ascending, and their cells, (n, queries); −1 where one was not asked."""
    devices = np.unique(np.concatenate([query.recorded.devices for query in queries]))
    cells = [np.append(query.truth, -1)[places_of(devices, query.recorded.devices)] for query in queries]
    return devices, np.stack(cells, axis=1).astype(np.int64)


@dataclass(frozen=True)
class TraceCounts(Game):
    """Traces are recovered from published counts, and compared with the targets that were asked in all queries.

    A coalition knows the target's cell in the first query, and guesses the cell in which most of the recovered traces
    end that start there. Further rows have three scores, two of them of matchings by the truth. Beside them are the
    scores of two nulls: nobody moves, and traces joined at random.
    """

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores over all queries; none with a single query or no target that was asked in all."""
        queries, prior = truth.queries, truth.prior()
        cells, numbers = cells_of(queries)[1], truth.numbers
        true = cells[(cells >= 0).all(axis=1)]
        if len(queries) == 1 or not len(true):
            return
        counts = published_counts(observer.observe(numbers))
        traces = recover_traces(counts, [-np.log(moves_between(prior, *pair) + RARE) for pair in pairwise(numbers)])
        begun, q = true[:, :1] == traces[:, 0], prior.of(numbers[-1])
        votes = begun @ np.eye(len(q))[traces[:, -1]] + RARE * q
        usual = prior.guess(numbers[-1], len(true), rng=rng)  # targets asked in all queries are not spread as all are
        success = float(np.mean(usual == true[:, -1]))
        yield Score(guesses=best_guess(votes, rng=rng), truth=true[:, -1], prior=success)
        for null, found in null_traces(traces, rng=rng).items():
            for name, value in trace_scores(true, found).items():
                yield Score(metric=f"{name}_{null}".strip("_"), value=value, unit="share", queries=len(queries))


def published_counts(observation: Observation) -> IntArray:
    """Return the published number of vehicles in each cell, (queries, cells + 1) int64, without corrupted vehicles.

    Numbers below 0 are 0, and more vehicles than were asked are scaled down. All queries have the same sum: who is not
    in a cell is outside, or was not asked.

    Raises
    ------
    NotPlayableError
        If no count of every cell is published, or if there are too many vehicles or cells.
    """
    rows = []
    for query in observation.queries:
        released, asked = observation.released_of(query), observation.unknown_devices(query) or 0
        if released is None or released.values is None:
            raise NotPlayableError("no count of every cell is published")
        there = np.maximum(released.values - observation.own_occupancy(query)[1:], 0.0)
        there = np.rint(there * min(1.0, asked / max(there.sum(), 1.0))).astype(np.int64)
        rows.append([max(asked - int(there.sum()), 0), *there])
    counts = np.array(rows)
    counts[:, 0] += counts.sum(axis=1).max() - counts.sum(axis=1)
    if max(counts[0].sum(), observation.mechanism.cells) > MOST:
        raise NotPlayableError(f"traces are recovered of at most {MOST:,} vehicles in at most as many cells")
    return counts


class Read(NamedTuple):
    """What a coalition reads of a query under handles; each is (n, …).

    Attributes
    ----------
    devices
        Their numbers, with which guesses are scored.
    known
        Their numbers if the coalition knows them; else −1.
    after
        The posterior probabilities of their cells.
    bits
        The bits about each cell that they reported.
    took_s
        The time from the moment of truth until the first report arrived, seconds.
    """

    devices: Any
    known: Any
    after: Any
    bits: Any
    took_s: Any

    @classmethod
    def of(cls, observation: Observation, observer: Observer, query: int, q: FloatArray) -> "Read":
        """Read a query with the prior q; there may be no device."""
        mechanism, none, moments = observation.mechanism, np.empty(0, np.int64), observation.moments or {}
        report_law(mechanism)  # without a likelihood nothing is tried, even where nothing is read
        parts = [cls(none, none, np.empty((0, len(q))), np.empty((0, 0)), none)]
        for group in link_rounds_of(observation, query, range(1, mechanism.rounds + 1)):
            if group.handles is not None:
                devices = observer.stored.devices(query, group.handle_kind, group.handles)
                known = devices if group.handle_kind == "device" else np.full(len(devices), -1)
                after = posterior(log_likelihood(mechanism, list(group.reports.values()), group.rounds), q)
                bits = encodings_of(mechanism, group.content).reshape(len(devices), -1)[:, 1::2]
                entry = next(one for one in observation.of_round(query, group.rounds[0]) if one.handles is not None)
                took_s = entry.arrived_s[places_of(group.handles, np.asarray(entry.handles))] - moments[query]
                parts.append(cls(devices, known, after, bits, took_s))
        return cls(*(np.concatenate(column[1:] or column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True)
class LinkPseudonyms(Game):
    """The pseudonyms of one query are joined with the pseudonyms of the next, such that the most likely pairs are.

    Parameters
    ----------
    by
        What is compared: "place", under the prior's moves; "bits", which memoised mechanisms keep; "times", until a
        report arrives.
    """

    by: tuple[str, ...] = ("place", "bits")

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the score of each pair of consecutive queries, over the targets asked in both."""
        prior, queries = truth.prior(), truth.queries
        observation = observer.observe(truth.numbers)
        read = [Read.of(observation, observer, query.number, prior.of(query.number)) for query in queries]
        for (before, after), (first, second) in zip(pairwise(queries), pairwise(read), strict=True):
            both = np.intersect1d(before.recorded.devices, after.recorded.devices)
            among = second.devices if len(second.devices) else after.recorded.devices
            shuffled = rng.permutation(len(second.devices))  # of pairs as likely, any may be joined
            numbers = before.number, after.number
            ratios = self._ratios(observation.mechanism, prior, numbers, first, second)[:, shuffled]
            rows, columns = assign(ratios)
            joined = places_of(both, first.devices[rows])
            partners = np.append(second.devices[shuffled[columns]], 0)
            guesses = np.where(joined >= 0, partners[joined], rng.choice(among, len(both)))
            yield Score(guesses=guesses, truth=both, prior=1.0 / len(among))

    def _ratios(self, mechanism: Any, prior: Prior, numbers: tuple[int, int], first: Read, second: Read) -> FloatArray:
        """Return log P(reports | one device) − log P(reports | two) of each pair, (n, m); great for a known device."""
        ratios = 1e9 * np.asarray((first.known[:, np.newaxis] == second.known) & (second.known >= 0))
        if "place" in self.by:
            expected = first.after @ moves_between(prior, *numbers)
            evidence = np.nan_to_num(second.after / np.maximum(prior.of(numbers[1]), RARE))
            ratios += np.log(np.maximum(expected @ evidence.T, RARE))
        if "bits" in self.by and (kept := getattr(mechanism, "memoised_bits", None)) is not None:
            ratios += same_bits_ratio(first.bits, second.bits, kept=kept.false_kept, flip=kept.flip)
        if "times" in self.by:
            ratios -= np.abs(np.subtract.outer(first.took_s, second.took_s))
        return ratios


@dataclass(frozen=True)
class KnownPoints(Game):
    """Whoever knows some points of a target's trace looks for its reports among the devices that are followed.

    The best candidate is the device whose reports make these points likeliest. A second row has the share of targets
    that no other target equals at these points: with exact reports no more can be told.

    Parameters
    ----------
    points
        Numbers of queries at which the target's cell is known.
    """

    points: tuple[int, ...] = (1, 2, 3, 4)

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield, for each number, the score over the targets asked as often, and the share of them that is unique."""
        queries, prior = truth.queries, truth.prior()
        observation, (devices, cells) = observer.observe(truth.numbers), cells_of(queries)
        rank = np.where(cells >= 0, rng.random(cells.shape), np.inf).argsort(axis=1).argsort(axis=1)
        logs, alike = np.zeros((2, len(self.points), len(devices), len(devices)), dtype=np.float32)
        for column, query in enumerate(queries):
            q = prior.of(query.number)
            read = Read.of(observation, observer, query.number, q)
            places = places_of(read.known, devices)
            ratios = np.maximum(read.after[places >= 0] / np.maximum(q, RARE), RARE)
            for place, points in enumerate(self.points):
                rows = np.flatnonzero((cells[:, column] >= 0) & (rank[:, column] < points))
                at = cells[rows, column]
                logs[place][np.ix_(rows, places[places >= 0])] += np.log(ratios[:, at].T)
                alike[place, rows] += at[:, np.newaxis] == cells[:, column]
        chances = np.full(len(devices), 1.0 / len(devices))
        for place, points in enumerate(self.points):
            targets = np.flatnonzero((cells >= 0).sum(axis=1) >= points)
            if len(targets):
                guesses = best_guess(posterior(logs[place, targets], chances), rng=rng)
                yield Score(guesses=guesses, truth=targets, prior=chances[0], metric=f"known_{points}")
                unique = float(((alike[place, targets] == points).sum(axis=1) == 1).mean())
                yield Score(metric=f"unique_by_{points}", value=unique, unit="share", queries=len(queries))

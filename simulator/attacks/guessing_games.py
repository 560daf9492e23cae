"""Games in which the cells of devices are guessed from what was received in one query or in several."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.inference.likelihood import report_law
from mechanisms.local import SamplingPrivacy
from simulator.arrays import IntArray
from simulator.attacks.guesses import CellAttack, Guesses, Prior
from simulator.attacks.reconstruction import ROUND_ATTACKS, LongitudinalAttack, guess_sampled
from simulator.attacks.records import CampaignRecord, places_of
from simulator.attacks.scores import Score
from simulator.attacks.world import Game, Observer, Truth
from simulator.sensing.query import QueryRecord, keeps_randomness


@dataclass(frozen=True)
class CellGame(Game):
    """An attack guesses the cell of every target in every query, from what was received in all queries.

    If the coalition can read no report of a target, the target is guessed by the prior.

    Parameters
    ----------
    kind
        A key of `ROUND_ATTACKS`, or the object of a user's own attack.
    """

    kind: str | CellAttack

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query."""
        mechanism, prior = truth.record.mechanism, truth.prior()
        attack: CellAttack = ROUND_ATTACKS[self.kind] if isinstance(self.kind, str) else self.kind
        if isinstance(self.kind, str):
            # Without a likelihood nothing was tried, even where no report is read: a gain of 0 would say more.
            report_law(mechanism)
        # A user's own attack may use a report in the guesses of several queries, which then depend on the same coins.
        kept = keeps_randomness(mechanism) or not isinstance(self.kind, str)
        observation = observer.observe(truth.numbers)
        guesses = attack.guess(observation, prior, rng=rng)
        yield from (replace(score, kept=kept) for score in scores_of(guesses, truth.queries, prior, observer, rng))
        if self.kind == "round_one" and isinstance(mechanism, SamplingPrivacy):
            asked = {query.number: query for query in truth.queries}
            for guess in guess_sampled(observation):
                yield _score_sampled(mechanism, guess, asked[guess.query], observer)

    def unsuited(self, record: CampaignRecord, *, named: bool) -> str:  # noqa: ARG002 - the signature of all games
        """Return why pooled shares are not tried: there are none."""
        return "its servers hold no shares" if self.kind == "shares" and record.deployment.sharing is None else ""


def scores_of(
    answer: Sequence[Guesses],
    queries: Sequence[QueryRecord],
    prior: Prior,
    observer: Observer,
    rng: np.random.Generator,
) -> list[Score]:
    """Return the score of each query, from what an attack returned for all of them; parameters as of `score_cells`."""
    about = [[guess for guess in answer if guess.query == query.number] for query in queries]
    return [score_cells(*one, prior, observer, rng=rng) for one in zip(queries, about, strict=True)]


def score_cells(
    query: QueryRecord, answer: Sequence[Guesses], prior: Prior, observer: Observer, *, rng: np.random.Generator
) -> Score:
    """Return the score of one guess for each target: the attack's guess or, if it has none, the prior's guess.

    Parameters
    ----------
    query
        The query with the targets only.
    answer
        What the attack returned for it.
    prior, observer
        The coalition's prior, and the coalition.
    rng
        Breaks ties under a uniform prior.
    """
    cells = prior.guess(query.number, len(query.truth), rng=rng)
    # Where servers are chosen by place, it is not by chance which reports a coalition reads: no theory is known.
    unread = math.nan if observer.stored.record.deployment.locates else prior.success(query.number)
    expected = np.full(len(cells), unread)
    probability = np.full(len(cells), prior.success(query.number))
    for guesses in sorted(answer, key=lambda given: given.handles is not None):
        sure = np.full(len(guesses.cells), math.nan) if guesses.probability is None else guesses.probability
        if guesses.handles is None:
            cells[:], expected[:], probability[:] = guesses.cells[0], guesses.theory, sure[0]
            continue
        targets = observer.places(query, guesses.handle_kind, guesses.handles)
        asked = targets >= 0
        cells[targets[asked]], expected[targets[asked]] = guesses.cells[asked], guesses.theory
        probability[targets[asked]] = sure[asked]
    return Score.of(query, cells, expected, prior, probability=probability)


def _score_sampled(mechanism: SamplingPrivacy, guess: Guesses, query: QueryRecord, observer: Observer) -> Score:
    """Return the score on which devices were sampled: the greatest posterior, and the success of the likelier guess.

    A device's reports show whether it was sampled if it is in a cell and blanks are not drawn again: S gives 0 followed
    by the cell, and a blank gives the same report twice. The draws of other devices are known only to them; these
    devices are not scored.
    """
    greatest = float(np.asarray(guess.probability).max(initial=0.0))
    measured = Score(metric="sampled_posterior", value=greatest, unit="probability")
    if mechanism.refresh:
        return measured
    places = observer.places(query, guess.handle_kind, guess.handles)
    scored = np.flatnonzero(places >= 0)
    scored = scored[query.truth[places[scored]] > 0]
    places = places[scored]
    first, second = (np.asarray(reports[places]) for reports in query.recorded.reports)
    return replace(
        measured,
        guesses=guess.cells[scored] == 1,
        truth=(first == 0) & (second == query.truth[places]),
        prior=max(mechanism.sampling, 1.0 - mechanism.sampling),
        theory=guess.theory,
    )


@dataclass(frozen=True)
class LongitudinalGame(Game):
    """The cells of devices that stay in one cell are guessed from several queries.

    The targets are the devices recorded in all of these queries that stayed in one cell; the prior is their own share
    in each cell, or with corrupted vehicles the share of all recorded vehicles that stayed.

    Parameters
    ----------
    asked
        T: the first T queries are used, and the cell in query T is guessed.
    """

    asked: int

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the score; none if there are fewer queries, or no target stayed."""
        report_law(truth.record.mechanism)
        queries = truth.record.queries[: self.asked]
        if len(queries) < self.asked or not len(stayed := stayed_in(queries)):
            return
        numbers, last, exact = [query.number for query in queries], queries[-1].number, truth.shares is None
        every = queries if exact else [observer.stored.query(number) for number in numbers]
        counts = np.bincount(every[-1].truth[stayed_in(every)], minlength=truth.record.mechanism.cells + 1)
        prior = truth.given or Prior.from_counts({last: counts}, exact=exact)
        guesses = LongitudinalAttack(numbers, last).guess(observer.observe(numbers), prior, rng=rng)
        score = score_cells(queries[-1].among(stayed), guesses, prior, observer, rng=rng)
        yield replace(score, metric="queries", value=float(self.asked), unit="queries")

    def lacking(self, queries: int) -> str:
        """Return why there is no score."""
        if self.asked > queries:
            return f"it has fewer than {self.asked} queries"
        return f"no target stayed in one place through {self.asked} queries"


def stayed_in(queries: Sequence[QueryRecord]) -> IntArray:
    """Return the positions of those devices of the last query that are in all queries, and always in the same cell."""
    last = queries[-1]
    stayed = np.ones(len(last.truth), dtype=np.bool_)
    for query in queries[:-1]:
        places = places_of(last.recorded.devices, query.recorded.devices)
        stayed &= np.append(query.truth, -1)[places] == last.truth  # a device that was not asked then has no cell, −1
    return np.flatnonzero(stayed)

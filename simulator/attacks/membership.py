"""Membership in a series of published numbers: was a vehicle among those counted all week, or was it left out.

The numbers of the cells where the vehicle would have been are drawn anew, with the vehicle and without it. The attack
`known_others` is the case of one query.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from mechanisms.central import LaplaceCounts, SampleThenSuppress, ThresholdCounts
from mechanisms.inference.evidence import DIGITS, Evidence, epsilon_of_trials, log_ratio
from mechanisms.inference.known_others import LastDevice, OwnPart, parts_of_reports
from mechanisms.local import NoPrivacy, SamplingPrivacy
from mechanisms.local.common.frequency_oracle import PureProtocol
from mechanisms.privacy.integer_noise import IntegerNoise
from simulator.aggregation.transcript import Coalition
from simulator.arrays import FloatArray, IntArray
from simulator.attacks.observation import Observation, patterns
from simulator.attacks.records import CampaignRecord, NotPlayableError
from simulator.attacks.scores import CLAIMING_TOO_MUCH, Score
from simulator.attacks.world import Game, Observer, Truth
from simulator.files.extras import import_extra
from simulator.sensing.query import QueryRecord, keeps_randomness

BITS_MISSING = "not every report was counted, so the sums are not of known numbers of bits"
NO_NUMBERS = "only Sampling Privacy without refresh publishes numbers of devices, and pure protocols sums of bits"
KEPT = "devices keep coins from query to query, so the numbers of several queries depend on each other"
RELEASES = (LaplaceCounts, SampleThenSuppress, ThresholdCounts)
"""Releases whose cells are independent, with known laws."""
BASE_RATES = {None: 0.5, "one_in_10": 0.1, "one_in_1000": 0.001}
"""Shares of vehicles that were counted, by the metric of the row."""
FALSE_POSITIVES, DELTA = 1e-3, 1e-5
CLASSIFIERS = {"logistic": "linear_model.LogisticRegression", "boosting": "ensemble.HistGradientBoostingClassifier"}
"""Classes of scikit-learn."""
CERTAIN = 1e6
"""Evidence of what is impossible under one hypothesis: finite, so that numbers of a wrong model can be added up."""
TRAINED = 1_000
"""Worlds with the vehicle, and without it, from which a classifier learns."""
MOST_PARTS = 4_000
"""Greatest number of laws that are composed for the theory; beyond, none is stated."""


def last_devices(
    observer: Observer, query: QueryRecord, chosen: IntArray, *, k: int | None = None
) -> Iterator[tuple[IntArray, LastDevice]]:
    """Yield what a coalition has about targets in the cells, by the set of rounds whose reports it reads.

    Parameters
    ----------
    observer
        The coalition.
    query
        A query, with the targets only.
    chosen
        (n,) int64, positions of targets that are in a cell; at least one.
    k
        Differences below k are suppressed, unless the campaign's release has a greater threshold.

    Yields
    ------
    rows
        Places in `chosen`.
    last
        What is published of their cells and read of their reports, all other devices known.

    Raises
    ------
    NotPlayableError
        If the law of what is published is not known, or nothing that tells anything is published or read.
    """
    record, cells = observer.stored.campaigns[query.campaign], query.truth[chosen].astype(np.int64)
    observation = observer.observe_query(observer.stored.query(query.number))
    read = observer.rounds_read(query, observation)[:, chosen]
    sums, yes, least, noise = _published(observer, record, query, observation, k)
    if sums is None and not read.any():
        raise NotPlayableError(record.unpublished)
    # Vehicles do not know whether a server sampled them.
    own = observation.own_occupancy(query.number) * (not record.noised or record.release is None)
    inside = query.occupancy[cells] - own[cells] - 1
    outside = int(query.asked[0] - own.sum()) - 1 - inside
    for which, rows in patterns(read.T):
        number, few = (None if one is None else one[cells[rows]] for one in (sums, least))
        parts = _own_parts(record.mechanism, query, chosen[rows], which, yes)
        yield rows, LastDevice(number, inside[rows], outside[rows], *yes, *parts, few, noise)


def _published(
    observer: Observer, record: CampaignRecord, query: QueryRecord, observation: Observation, k: int | None
) -> tuple[IntArray | None, tuple[float, float], IntArray | None, tuple[float, ...] | None]:
    """Return `sums`, `true_yes` and `false_yes`, `least` and `noise` of `LastDevice`, arrays of (cells + 1,).

    Sums are without what the coalition knows of them; None if differences are not published.
    """
    mechanism, release = record.mechanism, record.release if record.noised else None
    if isinstance(mechanism, SamplingPrivacy) and not isinstance(release, RELEASES):
        return _differences(record, mechanism, query, observation, k)
    if not query.all_counted:
        raise NotPlayableError(BITS_MISSING)
    if isinstance(release, RELEASES) and query.values is not None:
        drawn = release.noise if isinstance(release, ThresholdCounts) else release
        sums, noise = np.append(0, np.rint(query.values * drawn.sampling).astype(np.int64)), None
        if isinstance(drawn, LaplaceCounts):
            noise = IntegerNoise("discrete_laplace", 1.0 / drawn.sample_epsilon).masses(1)
        least = None if isinstance(release, LaplaceCounts) else np.full(len(sums), release.k)
        return sums, (drawn.sampling, 0.0), least, noise
    if not isinstance(mechanism, NoPrivacy | PureProtocol):
        raise NotPlayableError(NO_NUMBERS)
    yes = (1.0, 0.0) if isinstance(mechanism, NoPrivacy) else (mechanism.true_yes, mechanism.false_yes)
    tally, noise = query.counts[0] - observation.own_tally(query.number, 1)[0], None
    sums = tally[1:] if isinstance(mechanism, NoPrivacy) else mechanism.support(tally)
    if query.noise is not None and record.deployment.noise is not None:
        # The coalition knows the noise of the servers that are its members.
        members = [member.party for member in observer.coalition if member.at(query.number_in_campaign)]
        known = Coalition.of([record.parties.get(party, "") for party in members]).servers
        unknown = np.delete(query.noise, [number - 1 for number in known], axis=0)
        sums = sums + unknown.sum(axis=0)
        noise = record.deployment.noise.masses(len(unknown)) if len(unknown) else None
    # Another release, or what servers combined: the law is not known.
    hidden = bool(record.noised) and record.deployment.noise is None
    return None if hidden else np.append(0, sums), yes, None, noise


def _differences(
    record: CampaignRecord, mechanism: SamplingPrivacy, query: QueryRecord, observation: Observation, k: int | None
) -> tuple[IntArray | None, tuple[float, float], IntArray | None, None]:
    if mechanism.refresh:
        raise NotPlayableError(NO_NUMBERS)
    released, differences = observation.released_of(query.number), None
    added = np.subtract(*(observation.own_tally(query.number, round_)[0] for round_ in (2, 1)))
    if released is not None and query.all_counted and record.publishes_differences:
        shown = np.where(np.asarray(released.suppressed), -1, np.asarray(released.differences))
        exact = released.counts
        differences = (np.append(0, shown) if exact is None else exact[1] - exact[0]) - added
    least = max(k or 0, record.k or 0)
    few = np.zeros(len(query.occupancy), dtype=np.int64) + least - added
    return differences, (mechanism.sampling, 0.0), few if least else None, None


def _own_parts(
    mechanism: Any, query: QueryRecord, chosen: IntArray, which: Sequence[bool], yes: tuple[float, float]
) -> tuple[OwnPart, list[OwnPart]]:
    """Return what is read of targets of whom the same rounds are read, and all that may be read."""
    cells, reports = query.truth[chosen].astype(np.int64), query.recorded.reports
    if isinstance(mechanism, SamplingPrivacy):
        rounds = [round_ for round_, in_round in enumerate(which, start=1) if in_round]
        sent = [np.asarray(all_[chosen]) if is_read else None for all_, is_read in zip(reports, which, strict=True)]
        return OwnPart.of_reports(mechanism, cells, *sent), [*parts_of_reports(mechanism, cells, rounds)]
    unread = OwnPart.of_bits(*yes, None, len(chosen))
    if not which[0]:
        return unread, [unread]
    if isinstance(mechanism, NoPrivacy):  # true cells, perhaps sampled by the server
        there = OwnPart(unread.inside, 0.0 * unread.outside)
        return there, [there, OwnPart(0.0 * unread.inside, unread.outside)]
    supported = (mechanism.support(one) for one in mechanism.encode(reports[0][chosen]))
    bits = np.array([support[cell - 1] for support, cell in zip(supported, cells, strict=True)])
    known = [OwnPart.of_bits(*yes, one, len(chosen)) for one in (bits, 0 * bits, 0 * bits + 1)]
    return known[0], known[1:]


class Law(NamedTuple):
    """Probabilities of all that may be seen of a cell, with the vehicle counted and without; the published numbers."""

    counted: FloatArray
    left_out: FloatArray
    numbers: IntArray


@dataclass(frozen=True, eq=False)
class Visit:
    """What a coalition may see of one cell in one query.

    Attributes
    ----------
    true, model
        Its law given the other vehicles' places, and the law that the coalition believes.
    evidence
        For each outcome of `true`: ln(P/Q) as the coalition computes it, by its `model`.
    """

    true: Law
    model: Law
    evidence: FloatArray

    @classmethod
    def of(cls, last: LastDevice, model: LastDevice, row: int) -> "Visit":
        """Return the laws of one row of what is true, and of what the coalition believes."""
        laws = []
        for one in (last, model):
            first, masses = one.law(row)
            inside, outside = one.pair(row)
            numbers = np.append(np.tile(first + np.arange(masses.shape[1]), len(one.possible)), first)
            laws.append(Law(inside / inside.sum(), outside / outside.sum(), numbers))
        true, believed = laws
        ratios = log_ratio(*believed[:2])[:-1].reshape(len(model.possible), -1)
        places = (model.shown(row, true.numbers[:-1]) - believed.numbers[0]).reshape(len(ratios), -1)
        there = (places >= 0) & (places < ratios.shape[1])
        found = np.where(there, np.take_along_axis(ratios, np.where(there, places, 0), axis=1), 0.0)
        return cls(true, believed, np.append(np.clip(np.round(found, DIGITS), -CERTAIN, CERTAIN), 0.0))

    def drawn(self, world: int, trials: int, times: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the sums of the evidence of independent visits alike, (trials,); world 0 is with the vehicle."""
        values, place = np.unique(self.evidence, return_inverse=True)
        masses = np.bincount(place, self.true[world]) / self.true[world].sum()
        if len(values) < times:
            return np.asarray(rng.multinomial(times, masses, size=trials) @ values)
        return np.asarray(sum(rng.choice(values, p=masses, size=trials) for _ in range(times)))


@dataclass(frozen=True)
class Membership(Game):
    """Whether a vehicle was counted at all queries, or left out of all, is decided from the series of its cells.

    The coalition knows where the vehicle would have been. The trials are drawn from the laws of what is published of
    these cells, given where the other vehicles were: with the vehicle, and with the vehicle outside every cell.

    Parameters
    ----------
    knows
        Whether the coalition knows the cells of all "others", or their "distribution": its prior.
    negatives
        Number of trials with a vehicle left out, over all vehicles attacked; as many with it.
    learned
        The classifier that learns from worlds drawn from what the coalition knows, beside the likelihood ratio.
    """

    knows: Literal["others", "distribution"] = "others"
    negatives: int = 100_000
    learned: Literal["logistic", "boosting"] | None = None
    spans_partitions = True

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores over all queries, of the likelihood ratio and of the classifier."""
        series, seen = self._series(observer, truth)
        if not series:
            return
        if any(keeps_randomness(record.mechanism) for record in observer.stored.campaigns.values()):
            raise NotPlayableError(KEPT)
        worlds, exact = [self._drawn(series, world, rng=rng) for world in (0, 1)], self._exact(series)
        yield from _decisions(worlds, exact, rng=rng)
        values = {"published": float(np.mean(np.array(seen) > 0.0)), **_measured(worlds)}
        theory = {} if exact is None else {"published": exact.above(0.0), **_of_thresholds(exact)}
        if self.learned is not None:
            trials = [self._learned(visits, worlds[0].shape[1], rng) for visits in series]
            learned = _measured([np.array([pair[world] for pair in trials]) for world in (0, 1)])
            values |= {f"learned_{metric}": value for metric, value in learned.items()}
        for metric, value in values.items():
            known, unit = theory.get(metric, math.nan), "ε" if "epsilon" in metric else "probability"
            yield Score(metric=metric, value=value, theory=known, unit=unit, queries=len(truth.queries))

    def _drawn(self, series: Sequence[Sequence[Visit]], world: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the evidence of trials about each vehicle in a world, (vehicles, trials)."""
        trials, times = math.ceil(self.negatives / len(series)), [Counter(visits).items() for visits in series]
        return np.array([sum(visit.drawn(world, trials, n, rng=rng) for visit, n in own) for own in times])

    def _series(self, observer: Observer, truth: Truth, k: int | None = None) -> tuple[list[list[Visit]], list[float]]:
        """Return the visits of each vehicle, and the evidence of what was really published of them."""
        every = np.concatenate([query.recorded.devices for query in truth.queries])
        devices, asked = np.unique(every, return_counts=True)
        victims = devices[np.argsort(-asked, kind="stable")[: max(len(query.truth) for query in truth.queries)]]
        known: dict[object, tuple[Visit, tuple[int, FloatArray]]] = {}
        alike: dict[object, Visit] = {}
        series, seen = defaultdict[int, list[Visit]](list), defaultdict[int, float](float)
        for query in truth.queries:
            chosen = np.flatnonzero(np.isin(query.recorded.devices, victims) & (query.truth > 0))
            if not len(chosen):
                continue
            share = None
            if self.knows == "distribution":
                record = replace(observer.stored.campaigns[query.campaign], queries=(query,))
                prior = replace(truth, record=record, shares={query.number: query.occupancy}).prior().of(query.number)
                # The prior counts the vehicle itself.
                others = np.maximum(prior[query.truth[chosen]] * query.occupancy.sum() - 1.0, 0.0)
                share = others / max(query.asked[0] - 1, 1)
            for rows, last in last_devices(observer, query, chosen, k=k):
                model = last if share is None else replace(last, share=share[rows])
                for row, device in enumerate(query.recorded.devices[chosen[rows]].tolist()):
                    if (key := (query.campaign, model.key(row))) not in known:
                        visit = Visit.of(last, model, row)
                        # Noise on known counts has one law for all of them.
                        same = visit.evidence.tobytes(), visit.true.counted.tobytes(), visit.true.left_out.tobytes()
                        known[key] = alike.setdefault(same, visit), model.law(row)
                    visit, law = known[key]
                    series[device].append(visit)
                    seen[device] += min(max(model.evidence(row, law), -CERTAIN), CERTAIN)
        return [*series.values()], [*seen.values()]

    def _exact(self, series: Sequence[Sequence[Visit]]) -> Evidence | None:
        """Return the exact laws of the evidence over all vehicles; None where the coalition's model is not the law."""
        number = {visit: place for place, visit in enumerate(dict.fromkeys(chain.from_iterable(series)))}
        alike = Counter(tuple(sorted(Counter(visits).items(), key=lambda one: number[one[0]])) for visits in series)
        if self.knows != "others" or sum(map(len, alike)) > MOST_PARTS:
            return None
        each = [Evidence.of_series([(visit.true[:2], times) for visit, times in visits]) for visits in alike]
        return Evidence.mixed([law for law, times in zip(each, alike.values(), strict=True) for _ in range(times)])

    def _learned(self, visits: Sequence[Visit], trials: int, rng: np.random.Generator) -> Sequence[FloatArray]:
        """Return the scores that a classifier gives to trials with the vehicle, and without it."""
        drawn = [
            np.stack([rng.choice(law.numbers, p=law[world], size=size) for law in laws], axis=1)
            for laws, size in (([visit.model for visit in visits], TRAINED), ([visit.true for visit in visits], trials))
            for world in (0, 1)
        ]
        train = np.concatenate(drawn[:2])
        centre, spread = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-9)
        module, name = CLASSIFIERS[str(self.learned)].split(".")
        learner = import_extra(f"sklearn.{module}", needed="a classifier needs scikit-learn", extra="learn")
        fitted = getattr(learner, name)(random_state=int(rng.integers(2**31)))
        fitted.fit((train - centre) / spread, np.repeat([1, 0], TRAINED))
        return [np.asarray(fitted.decision_function((one - centre) / spread)) for one in drawn[2:]]


def _decisions(worlds: Sequence[FloatArray], exact: Evidence | None, *, rng: np.random.Generator) -> Iterator[Score]:
    """Yield the scores of the decisions at several shares of vehicles that were counted."""
    counted, left_out = (world.ravel() for world in worlds)
    for metric, share in BASE_RATES.items():
        some = rng.permutation(counted)[: max(1, round(len(left_out) * share / (1.0 - share)))]
        yield Score(
            metric=metric,
            guesses=np.append(some, left_out) > math.log((1.0 - share) / share),
            truth=np.arange(len(some) + len(left_out)) < len(some),
            prior=max(share, 1.0 - share),
            theory=math.nan if exact is None else exact.success(share),
            epsilon=None if metric else epsilon_of_trials(counted, left_out, alpha=CLAIMING_TOO_MUCH),
        )


def _measured(worlds: Sequence[FloatArray]) -> dict[str, float]:
    """Return what is measured over all thresholds, over all vehicles together and over the vehicles one by one."""
    counted, left_out = (world.ravel() for world in worlds)
    areas = [Evidence.of_trials(*pair).area for pair in zip(*worlds, strict=True)]
    ends = {f"auc_of_victims_{end}": float(np.percentile(areas, end)) for end in (5, 50, 95)}
    proved = epsilon_of_trials(counted, left_out, alpha=CLAIMING_TOO_MUCH, delta=DELTA)
    return {**_of_thresholds(Evidence.of_trials(counted, left_out)), **ends, "epsilon_at_delta_1e-5": proved}


def _of_thresholds(evidence: Evidence) -> dict[str, float]:
    rate = evidence.true_positives(FALSE_POSITIVES)
    return {"auc": evidence.area, "advantage": evidence.advantage, "true_positives": rate}


@dataclass(frozen=True)
class KnownOthers(Membership):
    """Whether a device is in a cell or outside is guessed from one query, if all other devices are known, at even odds.

    Parameters
    ----------
    k
        Differences below k are suppressed, unless the campaign's release has a greater threshold.
    """

    k: int | None = None

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the score over all targets of all queries, each query by itself."""
        every, _ = self._series(observer, truth, self.k)
        if series := [[visit] for visits in every for visit in visits]:
            worlds = [self._drawn(series, world, rng=rng) for world in (0, 1)]
            yield next(_decisions(worlds, self._exact(series), rng=rng))

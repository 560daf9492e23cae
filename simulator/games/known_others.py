"""Game on published sums in which all devices are known except one, which is in a cell or outside.

Sums are recomputed from the campaign's reports as they would be had the device been outside; the campaign's own
publications do not change. A coalition has all that its members received, in addition to what is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.local import LocalMechanism, NoPrivacy, SamplingPrivacy
from mechanisms.local.unary_encoding import UnaryEncoding
from simulator.aggregation.transcript import Coalition
from simulator.arrays import FloatArray, IntArray, Mask
from simulator.attacks.counterfactual import LastBit, LastDevice, added_by
from simulator.attacks.observation import patterns
from simulator.games.records import CampaignRecord, NotPlayableError, QueryRecord, places_of
from simulator.games.scores import Score
from simulator.games.world import Game, Observer, Truth

BITS_MISSING = "not every report was counted, so the sums are not of known numbers of bits"
NO_NUMBERS = (
    "only Sampling Privacy without refresh publishes numbers of sampled devices, and unary encodings sums of bits"
)


@dataclass(frozen=True)
class KnownOthers(Game):
    """Whether a device is in a cell or outside is guessed, if all other devices are known.

    The odds are even. One target is chosen in every cell that has a target. With probability ½ it stays in the counts
    as it was; otherwise it is moved outside all cells, where it adds nothing to the differences. Cells are independent
    of one another, and so are trials. The game is for Sampling Privacy without refresh and for independent bits. If no
    published difference is a number of sampled devices, it needs reports that the coalition reads.

    Parameters
    ----------
    k
        Differences below k are suppressed, unless the campaign's release has a greater threshold.
    """

    k: int | None = None

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the scores of each query, by the set of rounds whose reports are read."""
        record = truth.record
        decide = self._by_differences if isinstance(record.mechanism, SamplingPrivacy) else self._by_bits
        for query in record.queries:
            yield from decide(observer, record, query, rng)

    def unsuited(self, record: CampaignRecord, *, named: bool) -> str:
        """Return why the attack is not tried on mechanisms that it does not name."""
        suited = named or record.deployment.noise is not None or isinstance(record.mechanism, SamplingPrivacy)
        return "" if suited else NO_NUMBERS

    def _by_differences(
        self, observer: Observer, record: CampaignRecord, query: QueryRecord, rng: np.random.Generator
    ) -> Iterator[Score]:
        mechanism = record.sampling_privacy(NO_NUMBERS)
        if mechanism.refresh:
            raise NotPlayableError(NO_NUMBERS)
        chosen = _one_a_cell(query, rng=rng)
        stay = rng.random(len(chosen)) < 0.5
        moved = _taken_outside(observer, query, chosen[~stay])
        observation = observer.observe_query(moved)
        read = observer.rounds_read(query, observation)[:, chosen]
        released = observation.released_of(query.number)
        differences: IntArray | None = None
        if released is not None and query.all_counted and record.publishes_differences:
            if released.counts is not None:
                differences = released.counts[1] - released.counts[0]
            elif released.differences is not None:
                differences = np.concatenate([[0], np.where(np.asarray(released.suppressed), -1, released.differences)])
        if differences is None and not read.any():
            raise NotPlayableError(record.unpublished)
        added, corrupted = added_by(observation.own_of(query.number), mechanism.cells)
        least = max(self.k or 0, record.k or 0)
        rows_in_all = places_of(query.recorded.devices[chosen], moved.recorded.devices)
        first, second = (np.asarray(reports[rows_in_all], dtype=np.int64) for reports in moved.recorded.reports)
        cells = query.truth[chosen].astype(np.int64)
        for which, rows in patterns(read.T):
            cell = cells[rows]
            last = LastDevice(
                cell,
                query.occupancy[cell] - corrupted[cell],
                None if differences is None else differences[cell] - added[cell],
                least - added[cell] if least and differences is not None else None,
                first[rows] if which[0] else None,
                second[rows] if which[1] else None,
            )
            yield _score(stay[rows], last.guess(mechanism), last.theory(mechanism))

    def _by_bits(
        self, observer: Observer, record: CampaignRecord, query: QueryRecord, rng: np.random.Generator
    ) -> Iterator[Score]:
        """Yield the score of guesses from published sums of bits, none of which is suppressed.

        A target that is taken outside draws its bit about the cell anew, with q. Where servers add noise, the coalition
        knows that of its members.
        """
        mechanism, (true_yes, false_yes) = record.mechanism, _bit_of(record.mechanism)
        if not query.all_counted:
            raise NotPlayableError(BITS_MISSING)
        chosen = _one_a_cell(query, rng=rng)
        if not len(chosen):
            return
        cells = query.truth[chosen].astype(np.int64)
        stay = rng.random(len(chosen)) < 0.5
        encoded = mechanism.encode(query.recorded.reports[0][chosen])
        bits = _bits(mechanism, encoded)[np.arange(len(chosen)), cells - 1]
        moved = np.where(stay, bits, rng.random(len(chosen)) < false_yes)
        observation = observer.observe_query(query)
        read = observer.rounds_read(query, observation)[0, chosen]
        tally, corrupted = observation.own_tally(query.number, 1)
        own = observation.own_of(query.number)
        known = np.bincount([] if own is None else own.truth, minlength=mechanism.cells + 1)
        sums = _bits(mechanism, query.counts[0] - tally)[cells - 1] - bits + moved
        noise = None
        if query.noise is not None and record.deployment.noise is not None:
            unknown = np.delete(query.noise, _servers(observer, query), axis=0)
            sums = sums + unknown.sum(axis=0)[cells - 1]
            noise = record.deployment.noise.masses(len(unknown)) if len(unknown) else None
        inside = query.occupancy[cells] - 1 - known[cells]
        outside = int(query.asked[0]) - 1 - corrupted - inside
        last = LastBit(sums, inside, outside, true_yes, false_yes, noise, np.where(read, moved, -1))
        yield _score(stay, last.guess(), last.theory())


def _score(stay: Mask, guesses: Mask, theory: FloatArray) -> Score:
    """Return the score of guesses of whether targets stayed, at even odds."""
    return Score(guesses=guesses, truth=stay, prior=0.5, theory=float(theory.mean()), compares="worlds")


def _servers(observer: Observer, query: QueryRecord) -> list[int]:
    """Return the rows of the servers that are members of the coalition during a query."""
    parties = [member.party for member in observer.coalition if member.at(query.number_in_campaign)]
    return [number - 1 for number in Coalition.of(parties).servers] if parties else []


def _bits(mechanism: LocalMechanism, encoded: IntArray) -> IntArray:
    """Return the bit about each cell, (…, cells) int64, of encodings or of a tally, (…, *tally_shape)."""
    bits: IntArray = encoded[..., 1] if len(mechanism.tally_shape) == 2 else encoded[..., 1:]
    return bits


def _bit_of(mechanism: LocalMechanism) -> tuple[float, float]:
    """Return p and q of a mechanism that publishes sums of independent bits; raise `NotPlayableError` for others."""
    if isinstance(mechanism, NoPrivacy):
        return 1.0, 0.0
    if isinstance(mechanism, UnaryEncoding):
        return mechanism.true_yes, mechanism.false_yes
    raise NotPlayableError(NO_NUMBERS)


def _taken_outside(observer: Observer, query: QueryRecord, places: IntArray) -> QueryRecord:
    """Return the query of all recorded devices as it would be with these targets outside every cell.

    Outside, a sampled device reports 0 in both rounds, and any other device its blank: its first report in both cases.
    """
    whole = observer.stored.query(query.number)
    rows = np.flatnonzero(np.isin(whole.recorded.devices, query.recorded.devices[places]))
    first, second = (np.array(reports) for reports in whole.recorded.reports)
    counts = whole.counts.copy()
    counted = whole.recorded.in_time[1, rows]
    np.subtract.at(counts[1], second[rows][counted], 1)
    np.add.at(counts[1], first[rows][counted], 1)
    second[rows] = first[rows]
    return replace(whole, recorded=replace(whole.recorded, reports=[first, second]), counts=counts)


def _one_a_cell(query: QueryRecord, *, rng: np.random.Generator) -> IntArray:
    """Return the position of one random target in each cell that has targets, (cells,)."""
    order = rng.permutation(len(query.truth))
    cells, first = np.unique(query.truth[order], return_index=True)
    return order[first[cells > 0]]

"""Attacks that guess a device's cell from all that a coalition sees: of one round, linked rounds, or several queries.

A coalition has linked reports of some rounds of some devices; of other rounds it may have lists without handles, or
the published sums. It guesses from all of these together:

- With few devices (`Crowd`) the posterior is exact, and so is its expected success.
- With many, a device's unlinked rounds are used through the sums of all devices (`crowd_law`), and the expected success
  is not known. A device with linked reports of all rounds is guessed from these alone, which is exact: given its own
  reports the others' add nothing. From one round's list, or from sums that are such a list, the guess is exact too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.inference.crowd import Crowd
from mechanisms.inference.likelihood import (
    batches,
    best_guess,
    encodings_of,
    guess_cells,
    guess_success,
    log_likelihood,
    posterior,
    repeated_log_likelihood,
    report_law,
    sampled_guess_success,
    sampled_posterior,
)
from mechanisms.inference.tilted import CrowdLaw, TiltedPairs, crowd_law
from mechanisms.local import HadamardResponse, KRandomizedResponse, LocalMechanism, NoPrivacy, SamplingPrivacy
from simulator.aggregation.transcript import handles_of
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.guesses import ROUNDING, Guesses, Prior
from simulator.attacks.observation import Linked, Observation, follow, holds_enough, link_rounds_of, read_round

ONE_OUTPUT = (SamplingPrivacy, KRandomizedResponse, NoPrivacy, HadamardResponse)
"""Mechanisms whose report is one of a few outputs, so that their counts are the unordered list of all reports."""


@dataclass(frozen=True, eq=False)
class Unlinked:
    """One round's reports of devices that are not corrupted; the coalition does not know which device sent which.

    Parameters
    ----------
    listed
        The reports in a list; None if only their sums are seen.
    sums
        (*tally_shape,) int64.
    devices
        Number of reports.
    """

    listed: Any | None
    sums: IntArray
    devices: int

    @classmethod
    def of(cls, observation: Observation, query: int, round_: int) -> "Unlinked | None":
        """Return the reports of a round in a list without handles, or else in published sums; None without either."""
        entries = observation.of_round(query, round_)
        if any(entry.content_kind == "reports" and entry.handles is None for entry in entries):
            read = read_round(observation, query, round_)
            if read is not None and read.handles is None:
                sums = encodings_of(observation.mechanism, read.content).sum(axis=0)
                return cls(read.content, sums, len(read))
        released = observation.released_of(query)
        if released is None or released.counts is None:
            return None
        tally, devices = observation.own_tally(query, round_)
        return cls(None, released.counts[round_ - 1] - tally, released.counted[round_ - 1] - devices)

    @property
    def reports(self) -> tuple[Any, IntArray]:
        """Return different reports and the number of devices that sent each, (n,) int64, where the list is known."""
        if self.listed is not None:
            return self.listed, np.ones(len(self.listed), dtype=np.int64)
        outputs = np.flatnonzero(self.sums > 0)
        return np.eye(len(self.sums), dtype=np.int64)[outputs], self.sums[outputs]


def guess_devices(
    observation: Observation,
    query: int,
    rounds: Sequence[int],
    groups: Sequence[Linked],
    prior: Prior,
    *,
    rng: np.random.Generator,
) -> list[Guesses]:
    """Return the best guesses from some rounds of a query: about linked devices, and one about any other device.

    Parameters
    ----------
    observation, query
        What the coalition observed, and the query.
    rounds
        The rounds that are used, ascending.
    groups
        The devices with linked reports of these rounds.
    prior
        If the devices are known to be distributed in exactly its shares, reports that cannot be linked to a device
        reveal nothing more about one, and only linked reports are used.
    rng
        Breaks ties under a uniform prior.
    """
    q, mechanism = prior.of(query), observation.mechanism
    seen = {} if prior.exact else {r: part for r in rounds if (part := Unlinked.of(observation, query, r)) is not None}
    unknown, linked = observation.unknown_devices(query), sum(len(group) for group in groups)
    if unknown is None:
        unknown = max((part.devices for part in seen.values()), default=linked)
    few = _guess_few(observation, query, rounds, groups, seen, unknown, prior, rng=rng)
    if few is not None:
        return few
    all_linked = sum(len(group) for group in groups if len(group.rounds) == len(rounds)) >= unknown
    law, anyone = None, None
    if not prior.exact and (prior.even or not all_linked):
        law, anyone = _of_many(observation, query, rounds, groups, seen, unknown, q)
    guesses = []
    for group in groups:
        complete = len(group.rounds) == len(rounds)
        theory = guess_success(mechanism, group.rounds, q)
        theory = math.nan if theory is None else theory
        among = anyone[0] if anyone is not None and prior.even else None
        if not complete and law is not None:
            cells, sure = _guess_by_law(law, group, q, among, rng=prior.tie_rng(rng))
            theory = math.nan
        elif not complete and anyone is not None and theory <= prior.success(query) * (1.0 + ROUNDING):
            # Its linked reports alone reveal nothing, so that it is a device like any other.
            after = np.repeat(anyone, len(group), axis=0)
            cells, sure, theory = best_guess(after, rng=prior.tie_rng(rng)), after.max(axis=1), math.nan
        else:
            reports = list(group.reports.values())
            cells, sure = guess_cells(mechanism, reports, q, group.rounds, rng=prior.tie_rng(rng), among=among)
        guesses.append(Guesses(query, group.handle_kind, group.handles, cells, prior.trusted(theory, query), sure))
    # If even linked reports are useless, each device is guessed from the prior.
    most = guess_success(mechanism, rounds, q)
    if anyone is not None and linked < unknown and (most is None or most > prior.success(query) * (1.0 + ROUNDING)):
        cell = best_guess(anyone, rng=prior.tie_rng(rng))
        guesses.append(Guesses(query, "none", None, cell, math.nan, anyone.max(axis=1)))
    return guesses


def _guess_few(
    observation: Observation,
    query: int,
    rounds: Sequence[int],
    groups: Sequence[Linked],
    seen: dict[int, Unlinked],
    unknown: int,
    prior: Prior,
    *,
    rng: np.random.Generator,
) -> list[Guesses] | None:
    """Return the exact guesses about a few devices, or None.

    None if there is nothing but complete linked reports of single devices, if there are too many devices or reports, or
    if lists or sums lack some device, so that it is not known which.
    """
    linked = sum(len(group) for group in groups)
    if not max(linked, 1) <= unknown or len({group.handle_kind for group in groups}) > 1 or prior.exact:
        return None
    outcomes = report_law(observation.mechanism).outcomes()
    if outcomes is None or not Crowd.fits(unknown, *outcomes.masses.T.shape):
        return None
    flat = [encoding.reshape(len(encoding), -1) for encoding in outcomes.encodings]
    shared = {r: part for r, part in seen.items() if sum(len(group) for group in groups if r in group.rounds) < unknown}
    if any(part.devices != unknown for part in shared.values()):
        return None
    columns = [_seen_columns(observation.mechanism, flat[round_ - 1], part) for round_, part in shared.items()]
    columns += _seen_differences(observation, query, rounds, unknown, flat)
    if not columns:
        return None
    sums, shown, least = (np.concatenate(column, axis=-1) for column in zip(*columns, strict=True))
    crowd = Crowd(unknown, prior.of(query), outcomes.masses, sums, least)
    possible = [np.ones(len(flat[0]), dtype=np.bool_) for _ in range(unknown)]
    numbers = [np.unique(part, axis=0, return_inverse=True)[1].ravel() for part in flat]
    links: list[list[IntArray]] = [[] for _ in range(unknown)]
    place = 0
    for group in groups:
        for row in range(len(group)):
            for round_, reports in group.reports.items():
                encoding = encodings_of(observation.mechanism, reports[row : row + 1]).reshape(-1)
                possible[place] &= (flat[round_ - 1] == encoding).all(axis=1)
                links[place].append(numbers[round_ - 1])
            place += 1
    after = crowd.posterior(possible, shown)
    if after is None:
        return None
    among = after.mean(axis=0) if prior.even else None
    guesses, start = [], 0
    parts = [(group.handle_kind, group.handles, len(group)) for group in groups]
    if linked < unknown:
        parts.append(("none", None, 1))
    for kind, handles, size in parts:
        rows, success = after[start : start + size], crowd.success(links, start)
        theory = prior.trusted(success, query)
        if handles is None and success <= prior.success(query) * (1.0 + ROUNDING):
            continue
        cells = best_guess(rows, rng=prior.tie_rng(rng), among=among)
        guesses.append(Guesses(query, kind, handles, cells, theory, rows.max(axis=1)))
        start += size
    return guesses


Columns = tuple[IntArray, IntArray, IntArray]
"""What each outcome adds to some sums, (outcomes, width); their observed values; and below which they are hidden."""
SHOWN = -(2**62)
"""Below which a sum is hidden that is always seen."""


def _seen_columns(mechanism: LocalMechanism, added: IntArray, seen: Unlinked) -> Columns:
    """Return the published sums of a round, or how often each report is in its list; `added` are the encodings."""
    total = seen.sums.ravel()
    if seen.listed is not None:
        distinct, label = np.unique(added, axis=0, return_inverse=True)
        added = np.eye(len(distinct), dtype=np.int64)[label.ravel()]
        listed = encodings_of(mechanism, seen.listed).reshape(seen.devices, -1)
        total = (listed[:, np.newaxis] == distinct).all(axis=2).sum(axis=0)
    return added, total, np.full(len(total), SHOWN)


def _seen_differences(
    observation: Observation, query: int, rounds: Sequence[int], devices: int, flat: Sequence[IntArray]
) -> list[Columns]:
    """Return the published differences of two rounds, those below k hidden; none where not all reports were counted."""
    released = observation.released_of(query)
    first, second = (observation.own_tally(query, round_) for round_ in (1, observation.mechanism.rounds))
    if released is None or released.differences is None or released.suppressed is None or len(rounds) < 2:
        return []
    if any(total - sent != devices for total, sent in zip(released.counted, (first[1], second[1]), strict=True)):
        return []
    sent = np.broadcast_to(second[0] - first[0], flat[0].shape[1:])[1:]
    least = released.k - sent
    return [((flat[1] - flat[0])[:, 1:], np.where(released.suppressed, least - 1, released.differences - sent), least)]


def _of_many(
    observation: Observation,
    query: int,
    rounds: Sequence[int],
    groups: Sequence[Linked],
    seen: dict[int, Unlinked],
    unknown: int,
    q: FloatArray,
) -> tuple[CrowdLaw | None, FloatArray | None]:
    """Return the law of a device's linked reports given all sums, and the posterior of any device, (1, V + 1).

    Devices with linked reports of all rounds are left out of the sums, unless all devices have them. The posterior of
    any device is exact from one round's list: a device's report is equally likely to be any of the n in the list, or
    one that is not in it. So it is the mean of the posteriors from these n reports and, for each device asked whose
    report is missing, of the prior.
    """
    mechanism = observation.mechanism
    complete = [group for group in groups if len(group.rounds) == len(rounds)]
    devices, linked = unknown, sum(len(group) for group in complete)
    if linked < unknown:
        devices -= linked
        for round_, part in seen.items():
            if part.listed is None:
                tallies = (encodings_of(mechanism, group.reports[round_]).sum(axis=0) for group in complete)
                seen[round_] = Unlinked(None, part.sums - sum(tallies), part.devices - linked)
    seen = {round_: part for round_, part in sorted(seen.items()) if part.devices > 0}
    law: CrowdLaw | None = None
    released = observation.released_of(query)
    if len(seen) == len(rounds) and all(part.devices == devices for part in seen.values()):
        law = crowd_law(mechanism, q, {round_: part.sums for round_, part in seen.items()}, devices)
    elif (
        isinstance(mechanism, SamplingPrivacy)
        and not mechanism.refresh
        and released is not None
        and released.differences is not None
        and len(rounds) == 2
        and not linked
    ):
        # The differences of corrupted vehicles are known; a suppressed difference is not used.
        sent = observation.own_tally(query, 2)[0] - observation.own_tally(query, 1)[0]
        differences = released.differences - np.broadcast_to(sent, len(q))[1:]
        law = TiltedPairs.of_differences(mechanism, q, differences / devices, ~np.asarray(released.suppressed))
    lists = [r for r, part in seen.items() if part.listed is not None or isinstance(mechanism, ONE_OUTPUT)]
    if law is not None and (len(rounds) > 1 or not lists):
        return law, posterior(law.logs({}), q)
    if not lists:
        return None, None
    reports, times = seen[lists[-1]].reports
    after = max(devices - int(times.sum()), 0) * q
    for rows in batches(len(times), len(q)):
        after = after + times[rows] @ posterior(log_likelihood(mechanism, [reports[rows]], lists[-1:]), q)
    return None, (after / after.sum())[np.newaxis]


def _guess_by_law(
    law: CrowdLaw, group: Linked, q: FloatArray, among: FloatArray | None, *, rng: np.random.Generator | None
) -> tuple[Cells, FloatArray]:
    """Return the best guesses from linked reports of some rounds and the sums, and their posterior probabilities."""
    cells, sure = np.empty(len(group), dtype=np.int32), np.empty(len(group))
    for rows in batches(len(group), len(q)):
        after = posterior(law.logs({round_: reports[rows] for round_, reports in group.reports.items()}), q)
        cells[rows], sure[rows] = best_guess(after, rng=rng, among=among), after.max(axis=1)
    return cells, sure


LARGEST = 2**32
"""Bound on the entries of a device's encoding: noise of that size has probability below 10⁻⁹."""


@dataclass(frozen=True)
class RoundAttack:
    """Guess every device's cell from the readable reports of some rounds of each query, one query at a time.

    Queries at the same moment, as of campaigns that are attacked together, are used together. The guess uses the
    device's reports that are linked to it, and lists and published sums of these rounds (`guess_devices`). Sampling
    Privacy answers round one independently of the truth: from round one alone the guess is the prior's guess.

    Parameters
    ----------
    only_round
        The only round that is used, or the mechanism's last round if it has fewer; all rounds by default.
    partial
        Whether a device's shares are joined even if the coalition holds too few of them, and the result is treated as
        the report's encoding. With as many shares as are needed it is the report, and the guess is the guess from
        linked rounds. With fewer it is uniform, unlike any device's report; so it makes no truth more likely, and the
        guess is the guess of a coalition without shares.
    """

    only_round: int | None = None
    partial: bool = False

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses about the devices with a readable report, and none about other devices.

        Parameters
        ----------
        observation, prior
            What the coalition observed, and its prior.
        rng
            Breaks ties under a uniform prior.

        Raises
        ------
        NoLikelihoodError
            If no likelihood is known for the mechanism's reports.
        """
        last = observation.mechanism.rounds
        rounds = range(1, last + 1) if self.only_round is None else (min(self.only_round, last),)
        guesses: list[Guesses] = []
        moments = observation.moments or {}
        for query in observation.queries:
            at_once = [other for other in moments if moments[other] == moments.get(query)]
            if len(at_once) > 1:
                guesses += LongitudinalAttack(at_once, query).guess(observation, prior, rng=rng)
                continue
            groups = list(link_rounds_of(observation, query, rounds, partial=self.partial))
            held = [entry for entry in observation.of_query(query).seen if entry.sharing is not None]
            if self.partial and held and not holds_enough(held) and any(group.handles is not None for group in groups):
                anyone = guess_devices(observation, query, rounds, [], prior, rng=rng)
                guesses += [self._guess_partial(observation, query, group, anyone, prior, rng=rng) for group in groups]
                guesses += anyone
            else:
                guesses += guess_devices(observation, query, rounds, groups, prior, rng=rng)
        return guesses

    def _guess_partial(
        self,
        observation: Observation,
        query: int,
        group: Linked,
        anyone: Sequence[Guesses],
        prior: Prior,
        *,
        rng: np.random.Generator,
    ) -> Guesses:
        """Return the best guesses from sums of too few shares; if a sum encodes no report, that about any device."""
        cells, theory = prior.guess(query, len(group), rng=rng), prior.success(query)
        sure = np.full(len(group), theory)
        for guess in anyone:
            cells[:], theory = guess.cells[0], guess.theory
            sure[:] = math.nan if guess.probability is None else guess.probability[0]
        rows = np.flatnonzero(_possible(group))
        reports = [report[rows] for report in group.reports.values()]
        q, ties = prior.of(query), prior.tie_rng(rng)
        cells[rows], sure[rows] = guess_cells(observation.mechanism, reports, q, group.rounds, rng=ties)
        return Guesses(query, group.handle_kind, group.handles, cells, theory, sure)


class SilenceAttack:
    """Guess every device's cell from its reports, and from whether anything came from it at the moment of truth.

    How likely a device is to be silent in each cell is public (`Released.leaves`): in tunnels, and in cells in which a
    known share of devices refuse to answer. A device that sent nothing in the whole query is known by its number, from
    another query; of a device behind a pseudonym, the coalition does not know that it was silent.
    """

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses about devices that are known by number or read; parameters as of `RoundAttack.guess`."""
        guesses, known = list[Guesses](), handles_of(observation.seen, "device")
        for query in observation.queries:
            q, released = prior.of(query), observation.released_of(query)
            entries = observation.of_round(query, observation.mechanism.truth_round)
            leaves = np.ones(len(q)) if released is None or released.leaves is None or not entries else released.leaves
            heard = handles_of(entries, "device")
            for silent, weights in enumerate((q * leaves, q * (1.0 - leaves))):
                own = replace(prior, by_query={query: weights / weights.sum() if weights.any() else q})
                left = np.setdiff1d(known, heard) if silent else heard
                for guess in RoundAttack().guess(observation.of_query(query), own, rng=rng):
                    if guess.handles is not None:
                        came = np.isin(guess.handles, handles_of(entries, guess.handle_kind))
                        guesses.append(guess.among(np.flatnonzero(came != silent)))
                        left = np.setdiff1d(left, guess.handles)
                    elif not silent:
                        guesses.append(guess)
                cells, sure = own.guess(query, len(left), rng=rng), own.success(query)
                guesses.append(Guesses(query, "device", left, cells, sure, np.full(len(left), sure)))
        # Where nothing is known beforehand, devices are not spread by what their silence tells.
        return [replace(guess, theory=prior.trusted(guess.theory, guess.query)) for guess in guesses]


ROUND_ATTACKS: Mapping[str, RoundAttack | SilenceAttack] = {
    "round_one": RoundAttack(1),
    "round_two": RoundAttack(2),
    "link_rounds": RoundAttack(),
    "shares": RoundAttack(partial=True),
    "silence": SilenceAttack(),
}
"""The attacks on single queries, by kind."""


def _possible(group: Linked) -> np.ndarray:
    """Return which sums could be the encoding of a device's report, (n,) bool."""
    fine = np.ones(len(group), dtype=np.bool_)
    for report in group.reports.values():
        if isinstance(report, np.ndarray) and report.ndim > 1:
            entries = report.reshape(len(report), -1)
            fine &= ((entries > -LARGEST) & (entries < LARGEST)).all(axis=1)
    return fine


@dataclass(frozen=True)
class LongitudinalAttack:
    """Guess every device's cell from all its reports of several queries, assuming that it stayed in one cell.

    Where devices are not followed (`follow`), and where the linked reports do not depend on the truth, only what is
    seen of the last query is used.

    Parameters
    ----------
    queries
        Numbers of the queries.
    last
        The query for which cells are guessed; the prior is for this query.
    """

    queries: Sequence[int]
    last: int

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses for the query `last`; parameters and errors as of `RoundAttack.guess`."""
        mechanism, groups = observation.mechanism, follow(observation, self.queries)
        guesses = [self._guess(mechanism, group, prior, rng=rng) for group in groups]
        if not guesses or all(guess.theory <= prior.success(self.last) for guess in guesses):
            return RoundAttack().guess(observation.of_query(self.last), prior, rng=rng)
        return guesses

    def _guess(self, mechanism: Any, group: Linked, prior: Prior, *, rng: np.random.Generator) -> Guesses:
        """Return the best guesses about devices whose readable reports are of the same queries and rounds.

        The expected success is known if the same rounds were received in every query.
        """
        rounds_of = {query: tuple(round_ for of, round_ in group.rounds if of == query) for query, _ in group.rounds}
        alike, logs = dict.fromkeys(rounds_of.values()), np.zeros((1, 1))
        for rounds in alike:
            queries = [query for query, read in rounds_of.items() if read == rounds]
            reports = [[group.reports[query, round_] for round_ in rounds] for query in queries]
            logs = logs + repeated_log_likelihood(mechanism, reports, rounds)
        q, theory = prior.of(self.last), math.nan
        if len(alike) == 1:
            theory = prior.trusted(guess_success(mechanism, rounds, q, len(queries)), self.last)
        after = posterior(logs, q)
        cells = best_guess(after, rng=prior.tie_rng(rng))
        return Guesses(self.last, group.handle_kind, group.handles, cells, theory, after.max(axis=1))


def guess_sampled(observation: Observation) -> list[Guesses]:
    """Guess of each device whether it was sampled (outcome S of Sampling Privacy), from round one alone.

    A report 0 results from S with π_s and from a blank with π_0: if π_0 = 0, it reveals that the device was sampled.

    Parameters
    ----------
    observation
        What the coalition observed, of Sampling Privacy.

    Returns
    -------
    list of Guesses
        Their "cells" are 1 for devices that were rather sampled than not, and 0 for others; `probability` is the
        probability of S, and `theory` the expected success.
    """
    mechanism: Any = observation.mechanism
    guesses = []
    for query in observation.queries:
        for group in link_rounds_of(observation, query, (1,)):
            sampled = sampled_posterior(mechanism, group.reports[1])
            cells, theory = (sampled > 0.5).astype(np.int32), sampled_guess_success(mechanism)
            guesses.append(Guesses(query, group.handle_kind, group.handles, cells, theory, sampled))
    return guesses

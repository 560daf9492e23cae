"""Plays attacks on the records of campaigns, by every coalition and in every world, and collects their findings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import NotEstimableError
from mechanisms.parameter import ParameterError
from simulator.arrays import IntArray
from simulator.attacks.guesses import WrongGuessesError
from simulator.attacks.priors import PriorSource
from simulator.attacks.records import CampaignRecord, NotPlayableError, StoredTranscripts
from simulator.attacks.scores import Guesser, Score, pool_scores, tabulate_guesses
from simulator.attacks.world import Game, Member, Observer, Truth
from simulator.files.errors import InputError
from simulator.files.messages import Note, warning
from simulator.streams import Streams

NO_MEMBER = "none"
ONE_VEHICLE = "one_vehicle"
MOST_CHOICES = 200
"""Greatest number of choices of corrupted vehicles that are tried."""
MANY_TARGETS = 100
"""Least number of targets for which their own share in each cell is the prior, if there is a single choice."""
Records = Mapping[tuple[str, str], CampaignRecord]
World = tuple[Observer, Truth]
Columns = dict[str, Any]
Missed = defaultdict[tuple[str, str, str], list[str]]
"""Mechanisms without a result of an attack, by the code of the note, the campaigns and the reason."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Attack:
    """An attack of a scenario: its games, the coalition that plays them, and what they are played on.

    Parameters
    ----------
    name, kind
        Its name in the scenario, and its kind.
    games
        Its games; all draw from the same generator, one after the other.
    members
        Members of the coalition; some stand for several parties of a deployment.
    campaigns, mechanisms
        Their names; None: all on which the attack is possible.
    targets
        Greatest number of targets in a query.
    prior
        Where its prior comes from.
    growing
        Whether the first members alone attack too.
    together
        Whether the campaigns are attacked together.
    """

    name: str
    kind: str
    games: Sequence[Game]
    members: tuple[Member, ...]
    campaigns: Sequence[str] | None = None
    mechanisms: Sequence[str] | None = None
    targets: int
    prior: PriorSource = field(default_factory=PriorSource)
    growing: bool = False
    together: bool = False

    def tried_on(self, records: Records) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the campaigns and mechanisms that the attack names, or all: each campaign alone, or all together."""
        named = [
            (campaign, name)
            for campaign, name in records
            if campaign in (self.campaigns or (campaign,)) and name in (self.mechanisms or (name,))
        ]
        if self.together:
            for name in dict.fromkeys(name for _, name in named):
                yield tuple(campaign for campaign, of in named if of == name), name
        else:
            yield from (((campaign,), name) for campaign, name in named)

    def coalitions(self, *records: CampaignRecord) -> list[tuple[tuple[Member, ...], list[str]]]:
        """Return the coalitions that attack some campaigns, and the parties of each that none of these campaigns has.

        They are the coalition of all members and, if the attack is `growing`, the coalitions of its first members.
        """
        there = dict.fromkeys(party for record in records for party in record.parties)
        members = tuple(dict.fromkeys(one for member in self.members for one in member.among(there)))
        return [
            (members[:size], [one.party for one in members[:size] if not (one.vehicles or one.party in there)])
            for size in range(1 if self.growing else len(members), len(members) + 1)
        ]

    def unsuited(self, record: CampaignRecord, *, named: bool | None = None) -> list[str]:
        """Return why it is not meant for a campaign and mechanism, which it may name: nothing if it is."""
        named = self.mechanisms is not None if named is None else named
        return [*dict.fromkeys(why for game in self.games if (why := game.unsuited(record, named=named)))]

    def covers(self, record: CampaignRecord) -> bool:
        """Return whether the attack is meant for a campaign and mechanism, and possible."""
        if self.unsuited(record):
            return False
        coalitions = self.coalitions(record)
        # A coalition that spans campaigns needs at least one of its parties in each campaign.
        return any(not absent or (self.together and len(absent) < len(members)) for members, absent in coalitions)

    def missing(self, record: CampaignRecord) -> list[str]:
        """Return what is missing in a campaign and mechanism that the attack names or is meant for."""
        if self.unsuited(record):
            return [] if self.campaigns is None else self.unsuited(record, named=True)
        return [_untried(*one) for one in self.coalitions(record)]


def _untried(members: Sequence[Member], absent: Sequence[str]) -> str:
    """Return in words that a coalition did not attack, and which of its parties do not exist."""
    return f"coalition {', '.join(map(str, members))} was not tried: there is no {', '.join(absent)}"


@dataclass(frozen=True, eq=False)
class AttackResults:
    """Results of all attacks.

    Attributes
    ----------
    findings
        Rows of `attacks.parquet`; columns that a row lacks are null.
    notes
        Warnings of expected rows that are missing, and why.
    guesses
        Table of `guesses.parquet`; None if no attack guessed the cells of vehicles.
    """

    findings: tuple[Columns, ...]
    notes: tuple[Note, ...]
    guesses: pd.DataFrame | None


def play_attacks(attacks: Sequence[Attack], records: Records, *, streams: Streams) -> AttackResults:
    """Play every attack on every campaign and mechanism that it applies to.

    Parameters
    ----------
    attacks
        The attacks.
    records
        By campaign and mechanism, for campaigns that count devices.
    streams
        The run's generators; attacks have their own, so no attack changes an estimate or another attack's guesses.

    Raises
    ------
    InputError
        If an attacked cell does not exist, there are fewer vehicles than are to be corrupted, or a user's own attack
        raises an error or returns what is no answer. Its key is the attack's key.
    """
    findings: list[Columns] = []
    notes: list[Note] = []
    guesses: dict[Guesser, list[Score]] = {}
    stored: dict[tuple[tuple[str, ...], str], StoredTranscripts] = {}
    for attack in attacks:
        key, missed, played = f"attacks.{attack.name}", _not_attacked(attack, records), False
        for campaigns, name in attack.tried_on(records):
            tried = {campaign: records[campaign, name] for campaign in campaigns}
            covered = {campaign: record for campaign, record in tried.items() if attack.covers(record)}
            if not covered:
                continue
            of_all = " and ".join(covered)
            place = (tuple(covered), name)
            if place not in stored:
                stored[place] = StoredTranscripts(covered, name=name, streams=streams)
            try:
                rows, scores, lacking = _play(attack, stored[place])
            except (NotPlayableError, NoLikelihoodError, NotEstimableError) as reason:
                untried = "not tried: " if isinstance(reason, NoLikelihoodError) else ""
                missed["not_tried", of_all, f"{untried}{reason}"].append(name)
                continue
            except InputError as error:
                raise InputError(error.faults, f"{key}.{error.key}") from error
            except (ParameterError, WrongGuessesError) as error:
                raise InputError([str(error)], key) from error
            findings += rows
            guesses |= scores
            played |= bool(rows)
            for why in lacking:
                missed["partly_tried", of_all, why].append(name)
        missed = missed if played or missed else _not_attacked(attack, records, meant_for_others=True)
        for (code, on, why), names in missed.items():
            notes.append(warning(code, f"{key}: {on}, {', '.join(names)}: {why}", key))
    return AttackResults(tuple(findings), tuple(notes), tabulate_guesses(guesses))


def _not_attacked(attack: Attack, records: Records, *, meant_for_others: bool = False) -> Missed:
    """Return why campaigns are not attacked; that it is meant for other mechanisms only with `meant_for_others`."""
    missed: Missed = defaultdict(list)
    for campaigns, name in attack.tried_on(records):
        for campaign in campaigns:
            record = records[campaign, name]
            if not attack.covers(record):
                for reason in attack.unsuited(record) if meant_for_others else attack.missing(record):
                    missed["not_attacked", campaign, reason].append(name)
    return missed


def _play(attack: Attack, stored: StoredTranscripts) -> tuple[list[Columns], dict[Guesser, list[Score]], Sequence[str]]:
    """Return the findings of an attack, its scores, and the reasons of missing rows.

    The attack is by the whole coalition and, if it is `growing`, by its first members too. All coalitions face the same
    targets and counterfactual worlds, so that they can be compared.
    """
    findings: list[Columns] = []
    guesses: dict[Guesser, list[Score]] = {}
    answered: set[int] = set()
    coalitions, worlds = attack.coalitions(*stored.campaigns.values()), []
    for members in (tried for tried, absent in coalitions if not absent):
        worlds = worlds_of(attack, stored, members)
        if not any(truth.queries for _, truth in worlds):
            if stored.record.queries and not worlds[0][1].record.queries:
                return findings, guesses, [f"coalition {', '.join(map(str, members))} has no member at its queries"]
            return findings, guesses, ["there are no targets: no honest vehicle answered individually"]
        named = ", ".join(map(str, members)) or NO_MEMBER
        guesser = Guesser(attack.name, attack.kind, named, stored.name, tuple(stored.campaigns))
        rows, guesses[guesser] = [], []
        for place, (scores, columns) in enumerate(_rounds(attack, stored, worlds)):
            rows += columns
            guesses[guesser] += scores
            if columns:
                answered.add(place)
        rows += _of_one_vehicle(attack, stored, worlds)
        coalition = {
            "name": attack.name,
            "attack": attack.kind,
            "coalition": named,
            "colluding": sum(member.vehicles or 1 for member in members),
            "servers": max(record.servers for record in stored.campaigns.values()),
            "mechanism": stored.name,
            "campaign": ", ".join(stored.campaigns),
        }
        findings += [{**coalition, **columns} for columns in rows]
    untried = [_untried(members, absent) for members, absent in coalitions if absent]
    queries = len(worlds[0][1].record.queries) if worlds else 0
    unanswered = [game for place, game in enumerate(attack.games) if worlds and place not in answered]
    return findings, guesses, [*untried, *(game.lacking(queries) for game in unanswered)]


def _rounds(
    attack: Attack, stored: StoredTranscripts, worlds: Sequence[World]
) -> Iterator[tuple[list[Score], list[Columns]]]:
    """Yield the scores of each game of an attack in some worlds, and the columns of its findings."""
    rng = stored.streams.of("attack", attack.name, *stored.campaigns, stored.name)
    for game in attack.games:
        scores = [score for observer, truth in worlds for score in game.play(observer, truth, rng=rng)]
        yield scores, list(pool_scores(scores, rng=rng))


def _of_one_vehicle(attack: Attack, stored: StoredTranscripts, worlds: Sequence[World]) -> Iterator[Columns]:
    """Yield a row on one vehicle where all others are corrupted; the other rows are over several choices of it.

    It is the honest vehicle of the first choice that has targets.
    """
    observer, truth = world = next(world for world in worlds if world[1].queries)
    if observer.corrupted is None or not observer.last_vehicle:
        return
    number = float(truth.queries[0].recorded.devices[0])
    for _, rows in _rounds(attack, stored, [world]):
        for columns in rows:
            if columns["metric"] is None:
                yield {**columns, "metric": ONE_VEHICLE, "value": number, "unit": "number of the vehicle"}


def worlds_of(attack: Attack, stored: StoredTranscripts, members: tuple[Member, ...]) -> list[World]:
    """Return the worlds of an attack: one, or one for each choice of the vehicles that are not corrupted.

    If there are fewer honest vehicles than targets requested, several choices are tried; each vehicle is honest in at
    most one of them.
    """
    record, source = stored.record, attack.prior
    attacked = [query for query in record.queries if query.number_in_campaign > source.queries]
    if members:
        attacked = [query for query in attacked if any(member.at(query.number_in_campaign) for member in members)]
    record = replace(record, queries=tuple(attacked))
    forging = any(game.forges for game in attack.games)
    corrupted_vehicles = 0 if forging else sum(member.vehicles for member in members)
    numbers = [query.number for query in record.queries if len(query.truth)]
    given, fleet = source.of(stored, numbers) if numbers else None, stored.fleet
    others = stored.others if source.queries else fleet[:0]
    honest = len(fleet) - corrupted_vehicles

    def with_corrupted(corrupted: IntArray | None) -> World:
        rng = stored.streams.of("attack targets", *stored.campaigns)
        spared = others if corrupted is None else np.append(others, corrupted)
        targets = record.with_targets(attack.targets if honest > 0 else 0, spared=spared, rng=rng)
        return Observer(stored, members, corrupted, last_vehicle=honest == 1), Truth(targets, given)

    if not corrupted_vehicles:
        return [with_corrupted(None)]
    most = record.mechanism.batch
    if any(query.occupancy.sum() > most for query in record.queries):
        raise NotPlayableError(f"reports of corrupted vehicles are kept only where at most {most:,} vehicles are asked")
    several = 0 < honest <= attack.targets
    choices = min(max(1, min(attack.targets, len(fleet)) // honest), MOST_CHOICES) if several else 1
    worlds = [with_corrupted(np.sort(np.roll(fleet, -choice * honest)[honest:])) for choice in range(choices)]
    if choices == 1 and honest >= MANY_TARGETS:
        return worlds
    # With few targets in one world, their own shares would already reveal their cells.
    shares = {query.number: query.occupancy for query in record.queries}
    for row, query in enumerate(record.queries if choices > 1 else ()):
        cells = np.concatenate([truth.record.queries[row].truth for _, truth in worlds])
        shares[query.number] = np.bincount(cells, minlength=len(query.occupancy))
    return [(observer, replace(truth, shares=shares)) for observer, truth in worlds]

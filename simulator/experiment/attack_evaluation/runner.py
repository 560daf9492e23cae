"""Runs the configured attacks and scores them against ground truth."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.inference import NoLikelihoodError
from mechanisms.local import NotEstimableError, SamplingPrivacy
from mechanisms.parameter import ParameterError
from scenarios import Fault, ScenarioError
from simulator.experiment.attack_evaluation.campaign_record import CampaignRecord, QueryRecord
from simulator.experiment.attack_evaluation.counterfactual import (
    TooFewVehiclesError,
)
from simulator.experiment.attack_evaluation.guess_games import (
    AttackContext,
    Columns,
    Member,
)
from simulator.experiment.attack_evaluation.guess_score import NotPlayableError
from simulator.experiment.attack_evaluation.stored_transcripts import FiledQueries
from simulator.experiment.build.constructors import constructor_of
from simulator.experiment.tables import ATTACK_COLUMNS
from simulator.streams import Streams


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of one attack by one coalition on one mechanism in one campaign. None is null in the table.

    Attributes
    ----------
    name, attack
        The attack's name in the scenario, and its kind.
    coalition, colluding
        The parties, and their number, each corrupted vehicle counted.
    servers
        Number of servers of the deployment.
    mechanism, campaign
        Their names.
    trials
        Number of guesses; for an attack that does not guess, of queries.
    prior, success, theory
        Success rates of the best guess without the observation and with it, and the expected value of the latter.
        `prior` is the largest of the prior probabilities, averaged over trials. For an attack that does not guess,
        `theory` is the expected value of `value`.
    gain, gain_low, gain_high
        `success` − `prior`, and the ends of its 95 % interval (Clopper and Pearson).
    epsilon_lower
        A lower bound on ε, which exceeds the true ε with probability at most 10⁻⁶.
    metric, value, unit
        A further measured quantity, or what is guessed in addition to the cell.
    """

    name: str
    attack: str
    coalition: str
    colluding: int
    servers: int
    mechanism: str
    campaign: str
    trials: int | None = None
    prior: float | None = None
    success: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    theory: float | None = None
    epsilon_lower: float | None = None
    metric: str | None = None
    value: float | None = None
    unit: str | None = None


def tabulate_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the table of `attacks.parquet`, one row for each finding."""
    names = [field.name for field in fields(Finding)]
    return pd.DataFrame(
        {
            name: pd.Series([getattr(finding, name) for finding in findings], dtype=ATTACK_COLUMNS[name])
            for name in names
        }
    )


VEHICLES = "vehicles:"
NOBODY = "none"
MOST_CHOICES = 200
"""Greatest number of choices of corrupted vehicles that are tried."""
MANY_TARGETS = 100
"""Least number of targets for which their own share in each cell is the prior, if there is a single choice."""
Records = Mapping[tuple[str, str], CampaignRecord]


@dataclass(frozen=True, eq=False)
class Challenged:
    """Results of all attacks.

    Attributes
    ----------
    findings
        Rows of `attacks.parquet`.
    notes
        Reasons why expected rows are missing, one sentence each.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def challenge(attacks: Sequence[Any], records: Records, *, streams: Streams, source: str = "") -> Challenged:
    """Run every attack of a scenario on every campaign and mechanism that it applies to.

    Parameters
    ----------
    attacks
        Sections of ``[[attacks]]``.
    records
        By campaign and mechanism, for campaigns that count devices.
    streams
        The run's generators; attacks have their own, so no attack changes an estimate or another attack's guesses.
    source
        The scenario's name, for messages.

    Returns
    -------
    Challenged

    Raises
    ------
    ScenarioError
        If an attacked cell does not exist, or there are fewer vehicles than are to be corrupted.
    """
    findings: list[Finding] = []
    notes: list[str] = []
    filed: dict[tuple[tuple[str, ...], str], FiledQueries] = {}
    for attack in attacks:
        for campaigns, name in _attacked(attack, records):
            together = {campaign: records[campaign, name] for campaign in campaigns}
            where = f"attacks.{attack.name}: {' and '.join(campaigns)}, {name}"
            covered = {
                campaign: record for campaign, record in together.items() if covers(attack, campaign, name, record)
            }
            if not covered:
                record = next(iter(together.values()))
                notes += [f"{where}: {reason}" for reason in _missing(attack, campaigns[0], name, record)]
                continue
            key = (tuple(covered), name)
            if key not in filed:
                filed[key] = FiledQueries(covered, name=name, streams=streams)
            try:
                rows, lacking = _rows(attack, filed[key], key[0], name, streams)
            except (NotPlayableError, NoLikelihoodError, NotEstimableError) as reason:
                notes.append(f"{where}: {reason}")
                continue
            except ParameterError as error:
                raise ScenarioError(source, [Fault(f"attacks.{attack.name}", str(error))]) from error
            except TooFewVehiclesError as error:
                words = f"there are only {error.there} targets in query {error.query} of {campaigns[0]}"
                fault = Fault(f"attacks.{attack.name}.coalition", words, list(map(str, attack.coalition)))
                raise ScenarioError(source, [fault]) from error
            findings += rows
            notes += [f"{where}: {reason}" for reason in lacking]
    return Challenged(tuple(findings), tuple(notes))


def _attacked(attack: Any, records: Records) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the campaigns and mechanisms that an attack is tried on: each campaign alone, or all of them together."""
    if not getattr(attack, "together", False):
        yield from (((campaign,), name) for campaign, name in records)
        return
    for name in dict.fromkeys(name for _, name in records):
        chosen = tuple(
            campaign
            for campaign, other in records
            if other == name and (attack.campaigns is None or campaign in attack.campaigns)
        )
        if chosen:
            yield chosen, name


def covers(attack: Any, campaign: str, mechanism: str, record: CampaignRecord) -> bool:
    """Return whether an attack applies to a campaign and mechanism: it names them, or names none and is possible."""
    if attack.campaigns is not None and campaign not in attack.campaigns:
        return False
    if attack.mechanisms is not None and mechanism not in attack.mechanisms:
        return False
    if attack.kind == "shares" and record.deployment.kind != "secret_shared":
        return False
    only_sampling = attack.kind == "known_others" or (attack.kind == "drop_out" and attack.dropped == "target")
    if only_sampling and attack.mechanisms is None and not isinstance(record.mechanism, SamplingPrivacy):
        return False
    there = [member for member in members_of(attack) if _is_there(member, record)]
    # A coalition that spans campaigns needs at least one of its parties in each campaign.
    return bool(there) if getattr(attack, "together", False) else len(there) == len(members_of(attack))


def members_of(attack: Any) -> tuple[Member, ...]:
    """Return the members of an attack's coalition, each with the queries during which it is one."""
    first, last = getattr(attack, "from_query", None), getattr(attack, "to_query", None)
    members = []
    for given in attack.coalition:
        party = given if isinstance(given, str) else given.party
        own_first = None if isinstance(given, str) else given.from_query
        own_last = None if isinstance(given, str) else given.to_query
        starts = [query for query in (first, own_first) if query is not None]
        ends = [query for query in (last, own_last) if query is not None]
        members.append(Member(party, max(starts, default=1), min(ends, default=math.inf)))
    return tuple(members)


def _is_there(member: Member, record: CampaignRecord) -> bool:
    return member.party.startswith(VEHICLES) or member.party in record.parties


def _missing(attack: Any, campaign: str, mechanism: str, record: CampaignRecord) -> Iterator[str]:
    """Yield what is missing in a campaign that an attack names; campaigns that it does not name yield nothing."""
    if campaign not in (attack.campaigns or ()) or mechanism not in (attack.mechanisms or (mechanism,)):
        return
    if attack.kind == "shares" and record.deployment.kind != "secret_shared":
        yield "its servers hold no shares"
    absent = [member.party for member in members_of(attack) if not _is_there(member, record)]
    if absent:
        yield f"there is no {', '.join(absent)}"


def _lacking(attack: Any, boards: Sequence[AttackContext], rows: Sequence[Finding]) -> Iterator[str]:
    """Yield the reasons why a requested number of queries has no row, or the attack has no row at all."""
    if attack.kind == "longitudinal":
        there = {row.value for row in rows}
        for times in attack.asked:
            if times > len(boards[0].record.queries):
                yield f"it has fewer than {times} queries"
            elif times not in there:
                yield f"no target stayed in one place through {times} queries"
    elif not rows:
        yield "nothing to try it on"


def _rows(
    attack: Any, filed: FiledQueries, campaigns: Sequence[str], name: str, streams: Streams
) -> tuple[list[Finding], list[str]]:
    """Return the findings of an attack by the whole coalition, or by its first members too, and missing rows' reasons.

    Coalitions of the first members are added if the attack is `growing`.
    """
    members = members_of(attack)
    findings: list[Finding] = []
    boards: list[AttackContext] = []
    for size in range(1 if attack.growing else len(members), len(members) + 1):
        coalition = members[:size]
        boards = _boards(attack, filed, coalition, campaigns, streams)
        if not any(len(query.truth) for board in boards for query in board.record.queries):
            return findings, ["there are no targets, for no vehicle answered one by one that is not corrupted"]
        findings += [
            Finding(
                name=attack.name,
                attack=attack.kind,
                coalition=", ".join(map(str, coalition)) or NOBODY,
                colluding=sum(_vehicles([member]) or 1 for member in coalition),
                servers=max(record.servers for record in filed.campaigns.values()),
                mechanism=name,
                campaign=", ".join(campaigns),
                **columns,
            )
            for columns in _play(attack, boards, coalition, campaigns, name, streams)
        ]
    return findings, list(_lacking(attack, boards, findings))


def _boards(
    attack: Any, filed: FiledQueries, coalition: Sequence[Member], campaigns: Sequence[str], streams: Streams
) -> list[AttackContext]:
    """Return the contexts of an attack: one, or one for each choice of the vehicles that are not corrupted.

    If there are fewer honest vehicles than targets requested, several choices are tried; each vehicle is honest in at
    most one of them.
    """
    record = filed.record
    if coalition:
        present = [
            query for query in record.queries if any(member.at(filed.origin(query.number)[1]) for member in coalition)
        ]
        record = replace(record, queries=tuple(present))
    even = attack.prior == "uniform"
    rng_name = ("attack targets", *campaigns)
    count = 0 if attack.kind == "poisoning" else _vehicles(coalition)
    if not count:
        targets = record.with_targets(attack.targets, rng=streams.of(*rng_name))
        return [AttackContext(filed, targets, even, tuple(coalition))]
    fleet, batch = filed.record.all_vehicles(), filed.record.mechanism.batch
    if any(query.occupancy.sum() > batch for query in record.queries):
        raise NotPlayableError(f"corrupted vehicles' reports are kept where at most {batch:,} vehicles are asked")
    honest = len(fleet) - count
    if honest <= 0:
        return [AttackContext(filed, replace(record, queries=()), even, tuple(coalition))]
    recorded = honest <= attack.targets
    choices = min(max(1, min(attack.targets, len(fleet)) // honest), MOST_CHOICES) if recorded else 1
    boards = []
    for choice in range(choices):
        corrupted = np.sort(np.roll(fleet, -choice * honest)[honest:])
        targets = record.with_targets(attack.targets, corrupted=corrupted, rng=streams.of(*rng_name))
        boards.append(AttackContext(filed, targets, even, tuple(coalition), corrupted, last_vehicle=honest == 1))
    if choices == 1 and honest >= MANY_TARGETS:
        return boards
    shares = {
        query.number: sum(_places(board.record.queries[row], record.mechanism.cells) for board in boards)
        for row, query in enumerate(record.queries)
    }
    if choices == 1:  # with so few targets, their own shares would already reveal their cells
        shares = {query.number: query.occupancy for query in record.queries}
    return [replace(board, shares=shares) for board in boards]


def _places(query: QueryRecord, cells: int) -> Any:
    """Return the number of a query's targets by cell, (cells + 1,) int64."""
    return np.bincount(query.truth, minlength=cells + 1)


def _play(
    attack: Any,
    boards: Sequence[AttackContext],
    coalition: Sequence[Member],
    campaigns: Sequence[str],
    name: str,
    streams: Streams,
) -> Iterator[Columns]:
    rng = streams.of("attack", attack.name, *campaigns, name, *(member.party for member in coalition))
    play = constructor_of("attack", attack.kind)
    available = {
        **vars(attack),
        "boards": boards,
        "record": boards[0].record,
        "corrupted": _vehicles(coalition),
        "rng": rng,
    }
    yield from play(**{name: available[name] for name in signature(play).parameters if name in available})


def _vehicles(coalition: Sequence[Member]) -> int:
    """Return the number of corrupted vehicles in a coalition."""
    return sum(int(member.party.removeprefix(VEHICLES)) for member in coalition if member.party.startswith(VEHICLES))

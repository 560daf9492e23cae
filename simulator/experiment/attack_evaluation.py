"""Runs the configured attacks and scores them against ground truth."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import LocalMechanism, NotEstimableError, SamplingPrivacy
from mechanisms.parameter import ParameterError
from scenarios import Fault, Scenario, ScenarioError
from scenarios.attacks import corrupted_in, parties_of
from scenarios.kinds import find_kind
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import MIXER
from simulator.arrays import IntArray
from simulator.attacks.own import CellAttack, WrongGuessesError
from simulator.experiment.build.constructors import constructor_of
from simulator.experiment.guess_games import AttackContext, Columns, Guessed, Member, NotPlayableError, play_rounds
from simulator.experiment.query_records import CampaignRecord, StoredTranscripts
from simulator.experiment.vehicle_guesses import CoalitionGuesses, tabulate_guesses
from simulator.results.schema import TABLES
from simulator.streams import Streams

NO_MEMBER = "none"
ONE_VEHICLE = "one_vehicle"
MOST_CHOICES = 200
"""Greatest number of choices of corrupted vehicles that are tried."""
MANY_TARGETS = 100
"""Least number of targets for which their own share in each cell is the prior, if there is a single choice."""
Records = Mapping[tuple[str, str], CampaignRecord]


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
        A further measured quantity, or what is guessed in addition to the cell; "one_vehicle": the row is on the
        vehicle with this number only.
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
    return TABLES["attacks"].frame(map(vars, findings))


@dataclass(frozen=True, eq=False)
class AttackResults:
    """Results of all attacks.

    Attributes
    ----------
    findings
        Rows of `attacks.parquet`.
    notes
        Reasons why expected rows are missing, one sentence each.
    guesses
        Table of `guesses.parquet`; None if no attack guessed the cells of vehicles.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    guesses: pd.DataFrame | None


def run_attacks(
    attacks: Sequence[Any],
    records: Records,
    *,
    streams: Streams,
    source: str = "",
    own: Mapping[str, CellAttack] | None = None,
) -> AttackResults:
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
    own
        The users' own attacks, by name.

    Raises
    ------
    ScenarioError
        If an attacked cell does not exist, there are fewer vehicles than are to be corrupted, or a user's own attack
        raises an error or returns what is no answer.
    """
    findings: list[Finding] = []
    notes: list[str] = []
    guesses: list[CoalitionGuesses] = []
    stored: dict[tuple[tuple[str, ...], str], StoredTranscripts] = {}
    for attack in attacks:
        mine = (own or {}).get(attack.name)
        play = constructor_of("attack", attack.kind) if mine is None else partial(play_rounds, mine)
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
            if key not in stored:
                stored[key] = StoredTranscripts(covered, name=name, streams=streams)
            try:
                rows, about, lacking = _rows(attack, play, stored[key], source)
            except (NotPlayableError, NoLikelihoodError, NotEstimableError) as reason:
                untried = "not tried: " if isinstance(reason, NoLikelihoodError) else ""
                notes.append(f"{where}: {untried}{reason}")
                continue
            except (ParameterError, WrongGuessesError) as error:
                raise ScenarioError(source, [Fault(f"attacks.{attack.name}", str(error))]) from error
            findings += rows
            guesses += about
            notes += [f"{where}: {reason}" for reason in lacking]
    return AttackResults(tuple(findings), tuple(notes), tabulate_guesses(guesses))


def spans_campaigns(attack: Any) -> bool:
    """Return whether an attack pools several campaigns; a user's own does not, whatever its parameters are called."""
    return find_kind("attack", attack.kind) is not None and getattr(attack, "together", False)


def _attacked(attack: Any, records: Records) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the campaigns and mechanisms that an attack is tried on: each campaign alone, or all of them together."""
    if not spans_campaigns(attack):
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
    if attack.kind == "shares" and record.deployment.sharing is None:
        return False
    known_others = attack.kind == "known_others" and record.deployment.noise is None
    only_sampling = known_others or (attack.kind == "drop_out" and attack.dropped == "target")
    if only_sampling and attack.mechanisms is None and not isinstance(record.mechanism, SamplingPrivacy):
        return False
    absent = _absent(attack, record)
    # A coalition that spans campaigns needs at least one of its parties in each campaign.
    return len(absent) < len(attack.coalition) if spans_campaigns(attack) else not absent


def members_of(attack: Any) -> tuple[Member, ...]:
    """Return the members of an attack's coalition, each with the queries during which it is one."""
    members = []
    for given in attack.coalition:
        first = max(getattr(one, "from_query", None) or 1 for one in (attack, given))
        last = min(getattr(one, "to_query", None) or math.inf for one in (attack, given))
        members.append(Member(getattr(given, "party", given), first, last))
    return tuple(members)


def _absent(attack: Any, record: CampaignRecord) -> list[str]:
    """Return the parties of an attack's coalition that a campaign does not have."""
    members = members_of(attack)
    return [member.party for member in members if not (member.vehicles or member.party in record.parties)]


def _missing(attack: Any, campaign: str, mechanism: str, record: CampaignRecord) -> Iterator[str]:
    """Yield what is missing in a campaign that an attack names; campaigns that it does not name yield nothing."""
    if campaign not in (attack.campaigns or ()) or mechanism not in (attack.mechanisms or (mechanism,)):
        return
    if attack.kind == "shares" and record.deployment.sharing is None:
        yield "its servers hold no shares"
    if absent := _absent(attack, record):
        yield f"there is no {', '.join(absent)}"


def _lacking(attack: Any, contexts: Sequence[AttackContext], rows: Sequence[Finding]) -> Iterator[str]:
    """Yield the reasons why a requested number of queries has no row, or the attack has no row at all."""
    if attack.kind == "longitudinal":
        answered = {row.value for row in rows}
        for times in attack.asked:
            if times > len(contexts[0].record.queries):
                yield f"it has fewer than {times} queries"
            elif times not in answered:
                yield f"no target stayed in one place through {times} queries"
    elif not rows:
        yield "there is nothing to attack"


def _rows(
    attack: Any, play: Callable[..., Iterator[Columns]], stored: StoredTranscripts, source: str
) -> tuple[list[Finding], list[CoalitionGuesses], list[str]]:
    """Return the findings of an attack, its guesses, and the reasons of missing rows.

    The attack is by the whole coalition and, if it is `growing`, by its first members too.
    """
    members = members_of(attack)
    findings: list[Finding] = []
    guesses: list[CoalitionGuesses] = []
    contexts: list[AttackContext] = []
    for size in range(1 if attack.growing else len(members), len(members) + 1):
        coalition = members[:size]
        contexts = _contexts(attack, stored, coalition)
        if not any(len(query.truth) for context in contexts for query in context.record.queries):
            return findings, guesses, ["there are no targets: no honest vehicle answered individually"]
        words = ", ".join(map(str, coalition)) or NO_MEMBER
        guessed: list[Guessed] = []
        every = [*_play(attack, play, stored, contexts, coalition, guessed, source)]
        every += _of_one_vehicle(attack, play, stored, contexts, coalition, source)
        findings += [
            Finding(
                name=attack.name,
                attack=attack.kind,
                coalition=words,
                colluding=sum(member.vehicles or 1 for member in coalition),
                servers=max(record.servers for record in stored.campaigns.values()),
                mechanism=stored.name,
                campaign=", ".join(stored.campaigns),
                **columns,
            )
            for columns in every
        ]
        guesses.append(CoalitionGuesses(attack.name, attack.kind, words, stored.name, tuple(stored.campaigns), guessed))
    return findings, guesses, list(_lacking(attack, contexts, findings))


def _contexts(attack: Any, stored: StoredTranscripts, coalition: Sequence[Member]) -> list[AttackContext]:
    """Return the contexts of an attack: one, or one for each choice of the vehicles that are not corrupted.

    If there are fewer honest vehicles than targets requested, several choices are tried; each vehicle is honest in at
    most one of them.
    """
    record = stored.record
    if coalition:
        present = (query for query in record.queries if any(one.at(query.number_in_campaign) for one in coalition))
        record = replace(record, queries=tuple(present))
    corrupted_vehicles = 0 if attack.kind == "poisoning" else sum(member.vehicles for member in coalition)
    fleet = stored.record.devices if stored.record.fleet is None else stored.record.fleet
    honest = len(fleet) - corrupted_vehicles

    def with_corrupted(corrupted: IntArray | None) -> AttackContext:
        rng = stored.streams.of("attack targets", *stored.campaigns)
        targets = record.with_targets(attack.targets if honest > 0 else 0, corrupted=corrupted, rng=rng)
        last = honest == 1
        return AttackContext(stored, targets, attack.prior == "uniform", tuple(coalition), corrupted, last_vehicle=last)

    if not corrupted_vehicles:
        return [with_corrupted(None)]
    batch = record.mechanism.batch
    if any(query.occupancy.sum() > batch for query in record.queries):
        raise NotPlayableError(
            f"reports of corrupted vehicles are kept only where at most {batch:,} vehicles are asked"
        )
    several = 0 < honest <= attack.targets
    choices = min(max(1, min(attack.targets, len(fleet)) // honest), MOST_CHOICES) if several else 1
    contexts = [with_corrupted(np.sort(np.roll(fleet, -choice * honest)[honest:])) for choice in range(choices)]
    if choices == 1 and honest >= MANY_TARGETS:
        return contexts
    if choices == 1:  # with so few targets, their own shares would already reveal their cells
        shares = {query.number: query.occupancy for query in record.queries}
    else:
        shares = {
            query.number: np.bincount(
                np.concatenate([context.record.queries[row].truth for context in contexts]),
                minlength=len(query.occupancy),
            )
            for row, query in enumerate(record.queries)
        }
    return [replace(context, shares=shares) for context in contexts]


def _play(
    attack: Any,
    play: Callable[..., Iterator[Columns]],
    stored: StoredTranscripts,
    contexts: Sequence[AttackContext],
    coalition: Sequence[Member],
    guessed: list[Guessed],
    source: str,
) -> Iterator[Columns]:
    # All coalitions of a growing one face the same targets and counterfactual worlds, so that they can be compared.
    rng = stored.streams.of("attack", attack.name, *stored.campaigns, stored.name)
    record, corrupted = contexts[0].record, sum(member.vehicles for member in coalition)
    if attack.kind == "poisoning":
        if not record.deployment.sums_reports:
            raise NotPlayableError(f"what false reports change depends on how {record.deployment.kind} combines sums")
        for query in record.queries:
            if corrupted > len(query.truth):
                words = f"there are only {len(query.truth)} targets in query {query.number} of {query.campaign}"
                fault = Fault(f"attacks.{attack.name}.coalition", words, list(map(str, attack.coalition)))
                raise ScenarioError(source, [fault])
    given = {"contexts": contexts, "record": record, "corrupted": corrupted, "guessed": guessed, "rng": rng}
    available = {**vars(attack), **given}
    yield from play(**{name: available[name] for name in signature(play).parameters if name in available})


def _of_one_vehicle(
    attack: Any,
    play: Callable[..., Iterator[Columns]],
    stored: StoredTranscripts,
    contexts: Sequence[AttackContext],
    coalition: Sequence[Member],
    source: str,
) -> Iterator[Columns]:
    """Yield a row on one vehicle where all others are corrupted; the other rows are over several choices of it.

    It is the honest vehicle of the first choice that has targets.
    """
    own = next(one for one in contexts if any(len(query.truth) for query in one.record.queries))
    if own.corrupted is None or not own.last_vehicle:
        return
    number = next(int(query.recorded.devices[0]) for query in own.record.queries if len(query.truth))
    for columns in _play(attack, play, stored, [own], coalition, [], source):
        if columns.get("metric") is None:
            yield {**columns, "metric": ONE_VEHICLE, "value": float(number), "unit": "number of the vehicle"}


def most_corrupted(scenario: Scenario) -> int:
    """Return the largest number of vehicles that a coalition corrupts."""
    return max((corrupted_in(attack.coalition) for attack in scenario.attacks), default=0)


def check_attacks(
    scenario: Scenario, deployments: Mapping[str, Deployment], mechanisms: Mapping[str, LocalMechanism]
) -> None:
    """Raise an error for coalitions with parties that none of the attacked campaigns and mechanisms has.

    This check is exact; that of the schema is not, as the schema does not know the mechanisms' rounds.

    Raises
    ------
    ScenarioError
        If there is such a coalition; the message lists the parties that exist.
    """
    counting = [campaign.name for campaign in scenario.campaigns if campaign.statistic == "count"]
    faults = []
    for attack in scenario.attacks:
        needed = {party for party in parties_of(attack.coalition) if party == MIXER or party.startswith("server:")}
        parties = [
            set(deployments[campaign].parties(mechanisms[name]))
            for campaign in attack.campaigns or counting
            for name in attack.mechanisms or mechanisms
        ]
        existing = set[str]().union(*parties)
        fits = any(needed <= one for one in ([existing] if spans_campaigns(attack) else parties))
        if existing and not fits:
            words = f"has no campaign and mechanism with all these parties; there are {', '.join(sorted(existing))}"
            faults.append(Fault(f"attacks.{attack.name}.coalition", words, list(parties_of(attack.coalition))))
    if faults:
        raise ScenarioError(scenario.name, faults)

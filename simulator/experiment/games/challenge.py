"""Challenge: the one who knows the truth lets coalitions attack, and scores what they say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.inference import NoLikelihoodError
from mechanisms.local import NotEstimableError, SamplingPrivacy
from mechanisms.parameter import ParameterError
from scenarios import Fault, ScenarioError
from simulator.experiment.games.campaign_record import CampaignRecord, QueryRecord
from simulator.experiment.games.counterfactual import play_drop_out, play_known_others
from simulator.experiment.games.filed_queries import FiledQueries
from simulator.experiment.games.findings import Finding
from simulator.experiment.games.guess_games import Board, Columns, make_prior, play_longitudinal, play_rounds
from simulator.experiment.games.not_playable import NotPlayableError
from simulator.experiment.games.poisoned import TooFewVehiclesError, play_poisoning
from simulator.streams import Streams

__all__ = ["CampaignRecord", "Challenged", "QueryRecord", "challenge", "covers"]

VEHICLES = "vehicles:"
Records = Mapping[tuple[str, str], CampaignRecord]


@dataclass(frozen=True, eq=False)
class Challenged:
    """What came of all attacks.

    Attributes
    ----------
    findings
        Rows of `attacks.parquet`.
    notes
        Why there is no row where one might be looked for, a sentence each.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def challenge(attacks: Sequence[Any], records: Records, *, streams: Streams, source: str = "") -> Challenged:
    """Let every attack of a scenario be tried on every campaign and mechanism it is for.

    Parameters
    ----------
    attacks
        Sections of ``[[attacks]]``.
    records
        By campaign and mechanism, of campaigns that count devices.
    streams
        The run's generators; attacks have their own, so none changes any estimate or another attack's guesses.
    source
        The scenario's name, for messages.

    Returns
    -------
    Challenged

    Raises
    ------
    ScenarioError
        If there is no such cell, or fewer vehicles than are to be corrupted.
    """
    findings: list[Finding] = []
    notes: list[str] = []
    filed: dict[tuple[str, str, int], FiledQueries] = {}
    for attack in attacks:
        for (campaign, name), record in records.items():
            where = f"attacks.{attack.name}: {campaign}, {name}"
            if not covers(attack, campaign, name, record):
                notes += [f"{where}: {reason}" for reason in _missing(attack, campaign, name, record)]
                continue
            if (campaign, name, attack.targets) not in filed:
                targets = record.with_targets(attack.targets, rng=streams.of("attack targets", campaign))
                filed[campaign, name, attack.targets] = FiledQueries(
                    targets, campaign=campaign, name=name, streams=streams
                )
            board = Board(filed[campaign, name, attack.targets], attack.prior == "uniform")
            if not any(len(query.truth) for query in board.record.queries):
                notes.append(f"{where}: there are no targets, for no vehicle answered one by one")
                continue
            try:
                rows = list(_rows(attack, board, campaign, name, streams))
            except (NotPlayableError, NoLikelihoodError, NotEstimableError) as reason:
                notes.append(f"{where}: {reason}")
                continue
            except ParameterError as error:
                raise ScenarioError(source, [Fault(f"attacks.{attack.name}", str(error))]) from error
            except TooFewVehiclesError as few:
                words = f"there are only {few.there} targets in query {few.query} of campaigns.{campaign}"
                fault = Fault(f"attacks.{attack.name}.coalition", words, list(attack.coalition))
                raise ScenarioError(source, [fault]) from few
            findings += rows
            lacking = list(_lacking(attack, board, rows))
            if not rows and not lacking:
                lacking = ["nothing to try it on"]
            notes += [f"{where}: {reason}" for reason in lacking]
    return Challenged(tuple(findings), tuple(notes))


def covers(attack: Any, campaign: str, mechanism: str, record: CampaignRecord) -> bool:
    """Return whether an attack is for this campaign and mechanism: it names them, or names none and can be tried."""
    if attack.campaigns is not None and campaign not in attack.campaigns:
        return False
    if attack.mechanisms is not None and mechanism not in attack.mechanisms:
        return False
    if attack.kind == "shares" and record.deployment.kind != "secret_shared":
        return False
    only_sampling = attack.kind == "known_others" or (attack.kind == "drop_out" and attack.dropped == "target")
    if only_sampling and attack.mechanisms is None and not isinstance(record.mechanism, SamplingPrivacy):
        return False
    parties = record.parties
    return all(member.startswith(VEHICLES) or member in parties for member in attack.coalition)


def _missing(attack: Any, campaign: str, mechanism: str, record: CampaignRecord) -> Iterator[str]:
    """Yield what a campaign that an attack names lacks; campaigns it does not name are simply passed over."""
    if campaign not in (attack.campaigns or ()) or mechanism not in (attack.mechanisms or (mechanism,)):
        return
    if attack.kind == "shares" and record.deployment.kind != "secret_shared":
        yield "its servers hold no shares"
    parties = record.parties
    absent = [member for member in attack.coalition if not member.startswith(VEHICLES) and member not in parties]
    if absent:
        yield f"there is no {', '.join(absent)}"


def _lacking(attack: Any, board: Board, rows: Sequence[Finding]) -> Iterator[str]:
    """Yield why a number of queries that is asked for has no row."""
    if attack.kind != "longitudinal":
        return
    there = {row.value for row in rows}
    for times in attack.asked:
        if times > len(board.record.queries):
            yield f"it has fewer than {times} queries"
        elif times not in there:
            yield f"no target stayed in one place through {times} queries"


def _rows(attack: Any, board: Board, campaign: str, name: str, streams: Streams) -> Iterator[Finding]:
    """Yield the findings of an attack, by the whole coalition or by its first members, one more at a time."""
    members = tuple(attack.coalition)
    for size in range(1 if attack.growing else len(members), len(members) + 1):
        coalition = members[:size]
        for columns in _play(attack, board, coalition, campaign, name, streams):
            yield Finding(
                name=attack.name,
                attack=attack.kind,
                coalition=", ".join(coalition),
                colluding=sum(_vehicles([member]) or 1 for member in coalition),
                servers=board.record.servers,
                mechanism=name,
                campaign=campaign,
                **columns,
            )


def _play(
    attack: Any, board: Board, coalition: Sequence[str], campaign: str, name: str, streams: Streams
) -> Iterator[Columns]:
    rng = streams.of("attack", attack.name, campaign, name, *coalition)
    match attack.kind:
        case "known_others":
            yield from play_known_others(board.record, attack.k, rng=rng)
        case "longitudinal":
            yield from play_longitudinal(board, coalition, attack.asked, rng=rng)
        case "poisoning":
            yield from play_poisoning(board.record, attack.cell, _vehicles(coalition), attack.magnitude, rng=rng)
        case "drop_out":
            yield from play_drop_out(board.record, attack.dropped, make_prior(board.record, even=board.even), rng=rng)
        case _:
            yield from play_rounds(attack.kind, board, coalition, rng=rng)


def _vehicles(coalition: Sequence[str]) -> int:
    """Return how many corrupted vehicles are in a coalition."""
    return sum(int(member.removeprefix(VEHICLES)) for member in coalition if member.startswith(VEHICLES))

"""Builds the attacks of a scenario, the users' own too, and checks that their coalitions exist."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from scenarios import Fault, Scenario, ScenarioError
from scenarios import attacks as sections
from simulator.aggregation.transcript import is_member
from simulator.attacks.counterfactual_games import DropOut, KnownOthers, LyingServer, Poisoning
from simulator.attacks.games import Attack
from simulator.attacks.guesses import CheckedAttack
from simulator.attacks.guessing_games import CellGame, LongitudinalGame
from simulator.attacks.tracing_games import KnownPoints, LinkPseudonyms, TraceCounts
from simulator.attacks.world import Game, Member
from simulator.experiment.assembly.campaigns import listed
from simulator.experiment.assembly.own_kinds import accepted, build_own_kind, faults_of_files, same_keys
from simulator.sensing.campaign import Campaign


def build_attacks(scenario: Scenario) -> tuple[Attack, ...]:
    """Build every attack of a scenario; the users' own classes have been verified.

    Raises
    ------
    ScenarioError
        If a user's own class refuses its parameters.
    """
    built = []
    for section in scenario.attacks:
        if isinstance(section, sections.OwnAttack):
            with faults_of_files(scenario, f"attacks.{section.name}"):
                made = build_own_kind("attack", section.kind, section.model_extra or {})
            built.append(build_attack(section, [CellGame(CheckedAttack(made))]))
        else:
            built.append(build_attack(section, games_of(section)))
    return tuple(built)


GAMES: Mapping[type[sections.AttackSection], Callable[..., Game]] = {
    sections.RoundOneSection: CellGame,
    sections.RoundTwoSection: CellGame,
    sections.LinkRoundsSection: CellGame,
    sections.SharesSection: CellGame,
    sections.KnownOthersSection: KnownOthers,
    sections.LongitudinalSection: LongitudinalGame,
    sections.PoisoningSection: Poisoning,
    sections.DropOutSection: DropOut,
    sections.LyingServerSection: LyingServer,
    sections.SilenceSection: CellGame,
    sections.TraceCountsSection: TraceCounts,
    sections.LinkPseudonymsSection: LinkPseudonyms,
    sections.KnownPointsSection: KnownPoints,
}
"""The game of each attack, whose parameters are keys of the section."""


def games_of(section: sections.AttackSection) -> list[Game]:
    """Return the games of a built-in attack: one, or one for each number of queries, or of fake vehicles."""
    build = GAMES[type(section)]
    keys = accepted(build, vars(section))
    listed = next((key for key in ("asked", "fakes") if key in keys), None)
    return [build(**keys)] if listed is None else [build(**{**keys, listed: number}) for number in keys[listed]]


def build_attack(section: Any, games: Sequence[Game]) -> Attack:
    """Return an attack from its section and its games."""
    return Attack(
        **same_keys(section, "name", "kind", "campaigns", "mechanisms", "targets", "growing"),
        games=games,
        members=tuple(_member(section, given) for given in section.coalition),
        even=section.prior == "uniform",
        # A user's own attack does not span campaigns, whatever its parameters are called.
        together=not isinstance(section, sections.OwnAttack) and getattr(section, "together", False),
    )


def _member(section: Any, given: Any) -> Member:
    """Return a member of a coalition, with the queries during which it is one."""
    first = max(getattr(holder, "from_query", None) or 1 for holder in (section, given))
    last = min(getattr(holder, "to_query", None) or math.inf for holder in (section, given))
    return Member(getattr(given, "party", given), first, last)


def most_corrupted(attacks: Sequence[Attack]) -> int:
    """Return the largest number of vehicles that a coalition corrupts."""
    return max((sum(member.vehicles for member in attack.members) for attack in attacks), default=0)


def check_attacks(scenario: Scenario, attacks: Sequence[Attack], campaigns: Sequence[Campaign]) -> None:
    """Raise an error for coalitions with parties that a named campaign lacks or, where none is named, every campaign.

    Raises
    ------
    ScenarioError
        If there is such a coalition; the message lists the parties that exist.
    """
    counting = [campaign.name for campaign in campaigns if campaign.statistic == "count"]
    faults = []
    for attack in attacks:
        needed = [member.party for member in attack.members if not member.vehicles]
        parties = {
            campaign.name: [set(campaign.parties(name)) for name in attack.mechanisms or campaign.mechanisms]
            for campaign in campaigns
            if campaign.name in (attack.campaigns or counting)
        }
        about = {campaign.partition for campaign in campaigns if campaign.name in parties}
        if attack.together and len(about) > 1:
            rule = f"must be about one partition with together = true: they ask about {listed(about)}"
            faults.append(Fault(f"attacks.{attack.name}.campaigns", rule, [*parties]))
        existing = {party for each in parties.values() for there in each for party in there}
        tried = {", ".join(parties): [existing]} if attack.together else parties
        lacking = [name for name, each in tried.items() if not any(_has_all(there, needed) for there in each)]
        if lacking and (attack.campaigns or len(lacking) == len(tried)):
            rule = f"campaigns.{lacking[0]} has no mechanism with all these parties; there are {listed(existing)}"
            if _has_all(existing, needed):
                rule += "; together = true attacks campaigns with different parties at once"
            faults.append(Fault(f"attacks.{attack.name}.coalition", rule, [member.party for member in attack.members]))
    if faults:
        raise ScenarioError(scenario.name, faults)


def _has_all(there: Collection[str], needed: Sequence[str]) -> bool:
    return all(any(is_member(party, [member]) for party in there) for member in needed)

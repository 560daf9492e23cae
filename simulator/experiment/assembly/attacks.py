"""Builds the attacks of a scenario, the users' own too, with their priors, and checks that their coalitions exist."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from scenarios import Fault, Scenario, ScenarioError
from scenarios import attacks as sections
from scenarios.kinds import is_capable
from simulator.aggregation.transcript import is_member
from simulator.arrays import Cells
from simulator.attacks.counterfactual_games import DropOut, LyingServer, Poisoning
from simulator.attacks.games import Attack
from simulator.attacks.guesses import CheckedAttack
from simulator.attacks.guessing_games import CellGame, LongitudinalGame
from simulator.attacks.membership import KnownOthers, Membership
from simulator.attacks.priors import ABSENT, Driven, PriorSource, Training
from simulator.attacks.route_games import RouteGame
from simulator.attacks.tracing_games import KnownPoints, LinkPseudonyms, TraceCounts
from simulator.attacks.world import Game, Member
from simulator.experiment.assembly.campaigns import listed
from simulator.experiment.assembly.demand import plan_traffic
from simulator.experiment.assembly.own_kinds import accepted, build_own_kind, faults_of_files, same_keys
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.sensing.campaign import Campaign
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import draw_gravity
from simulator.traffic.engine import State, VehicleStates
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes


def build_attacks(scenario: Scenario, city: City, campaigns: Sequence[Campaign]) -> tuple[Attack, ...]:
    """Build every attack of a scenario; the users' own classes have been verified.

    Raises
    ------
    ScenarioError
        If a user's own class refuses its parameters, or a prior needs what the scenario does not have.
    """
    built = []
    for section in scenario.attacks:
        with faults_of_files(scenario, f"attacks.{section.name}.prior"):
            prior = build_prior(section.prior, scenario, city, campaigns)
        with faults_of_files(scenario, f"attacks.{section.name}"):
            built.append(build_attack(section, games_of(section), prior))
    return tuple(built)


DRIVERS = 20_000
"""Vehicles invented for a prior from roads or trips."""


def build_prior(section: Any, scenario: Scenario, city: City, campaigns: Sequence[Campaign]) -> PriorSource:
    """Return where the prior of an attack comes from.

    From the road map alone vehicles drive between nodes weighted by the lane-metres of their roads; from a trip table
    between as many origins and destinations as the scenario has trips, none of which is one of its own.

    Raises
    ------
    InputError
        If the scenario has no roads, or no trips that can be drawn anew.
    """
    if isinstance(section, sections.TrainingPrior):
        return Training(**same_keys(section, "queries", "period"))
    if not isinstance(section, sections.DrivenPrior):
        return PriorSource(even=section == "uniform")
    if not city.has_roads:
        raise InputError(["needs roads, and the scenario has none"])
    links, paths, rng = city.roads.links, ShortestPaths.of(city.roads), Streams(scenario.seed).of("prior")
    ends: Any = draw_gravity(DRIVERS, links=links, paths=paths, scale_s=math.inf, rng=rng)
    if section.kind == "trips":
        if not is_capable("engine", scenario.traffic.engine, "routed"):
            raise InputError([f"needs trips, and traffic.engine = {scenario.traffic.engine!r} has none"])
        clock, drawn = Clock(scenario.traffic.step_s), [Streams(seed) for seed in rng.integers(2**62, size=2).tolist()]
        with faults_of_files(scenario, "traffic"):
            one, other = (plan_traffic(scenario, city.roads, paths, clock=clock, streams=each) for each in drawn)
        if one.routes or np.array_equal(one.trips.departure_tick, other.trips.departure_tick):
            raise InputError(["needs a table of numbers of trips: of single trips the prior would be the truth"])
        ends = one.trips.origin, one.trips.destination
    return Driven(cells_after=_driving(city, paths.routes(*ends), campaigns, rng=rng))


def _driving(city: City, routes: Routes, campaigns: Sequence[Campaign], *, rng: np.random.Generator) -> Any:
    """Return what returns the cells of vehicles after they were met at one moment, for `Driven`.

    They drive at free-flow speed. One that is met is likelier on a route that takes longer.
    """
    entered_s = np.append(0.0, np.cumsum(city.roads.links.free_flow_s[routes.links]))  # all routes in a row
    met_s, ends_s = rng.random(DRIVERS) * entered_s[-1], entered_s[routes.offsets[1:]]
    ends_s = ends_s[np.searchsorted(ends_s, met_s, side="right")]
    cells_of = {campaign.name: campaign.cells_of for campaign in campaigns}

    @cache
    def cells_after(campaign: str, after_s: float) -> Cells:
        at_s = np.minimum(met_s + after_s, ends_s)
        place = np.searchsorted(entered_s, at_s) - 1
        fraction = np.clip((at_s - entered_s[place]) / np.diff(entered_s)[place], 0.0, 1.0)
        link, state = routes.links[place].astype(np.int32), np.full(DRIVERS, State.ON_ROAD, dtype=np.uint8)
        return np.where(at_s < ends_s, cells_of[campaign](VehicleStates(state, link, fraction)), ABSENT)

    return cells_after


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
    sections.RouteSection: RouteGame,
    sections.MembershipSection: Membership,
}
"""The game of each attack, whose parameters are keys of the section."""


def games_of(section: sections.AttackSection) -> list[Game]:
    """Return the games of an attack: one, or one for each number of queries, or of fake vehicles."""
    if isinstance(section, sections.OwnAttack):
        return [CellGame(CheckedAttack(build_own_kind("attack", section.kind, section.model_extra or {})))]
    build = GAMES[type(section)]
    keys = accepted(build, vars(section))
    several = next((key for key in ("asked", "fakes") if key in keys), None)
    return [build(**keys)] if several is None else [build(**{**keys, several: number}) for number in keys[several]]


def build_attack(section: Any, games: Sequence[Game], prior: PriorSource) -> Attack:
    """Return an attack from its section, its games, and where its prior comes from."""
    return Attack(
        **same_keys(section, "name", "kind", "campaigns", "mechanisms", "targets", "growing"),
        games=games,
        members=tuple(_member(section, given) for given in section.coalition),
        prior=prior,
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
        if attack.together and len(about) > 1 and not all(game.spans_partitions for game in attack.games):
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

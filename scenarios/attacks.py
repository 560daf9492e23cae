"""``[[attacks]]``: coalitions and their attacks, and the rules between attacks and the other sections."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from scenarios.errors import RuleViolation
from scenarios.field_types import PARTY_PATTERN, Count, Name, without_default
from scenarios.kinds import is_built_in, is_capable, names_of
from scenarios.rules import EachOnce, bounded
from scenarios.section import ByKind, NamedByKind, OwnKind, OwnParameters, Rules, Section, ValidFields, broken_names

TARGETS = 2_000
MAGNITUDE = 1_000
LARGEST_MAGNITUDE = 10**9
"""Upper bound of `magnitude`: the sum of this number over as many vehicles does not overflow 64 bits."""
VEHICLES = "vehicles:"
EVERY_SERVER, EVERY_PARTY = "server:*", "all"
"""Members that stand for several parties of each campaign attacked; so do names with a star for an operator or a
party."""

Party = Annotated[str, Field(pattern=PARTY_PATTERN)]


class MemberSection(Section):
    """A party that is a member of the coalition during some queries only."""

    party: Party
    """``"server:1"``, ``"operator:A/server:1"``, …, ``"server:*"``, ``"mixer"``, ``"network"``, ``"vehicles:N"`` or
    ``"all"``."""
    from_query: Count = 1
    """First query of each campaign for which the coalition has the messages the party received."""
    to_query: Count | None = None
    """Last such query. Default: the campaign's last."""

    rules = (bounded("to_query", "at least", "from_query"),)


def _name_or_table(value: Any) -> str:
    return "<table>" if isinstance(value, dict | Section) else "<name>"


Member = Annotated[
    Annotated[Party, Tag("<name>")] | Annotated[MemberSection, Tag("<table>")], Discriminator(_name_or_table)
]


class PriorSection(Section):
    """What a coalition knows about where vehicles are before it observes anything."""

    role = "prior"


class TrainingPrior(PriorSection):
    """Other people and other days: cells and moves of every other vehicle, none of which is attacked."""

    kind: Literal["training"]
    title = "what vehicles that are not attacked did in the queries before"
    queries: Count
    """Number of first queries of each campaign from which it is learned; they are not attacked."""
    period: Count = 1
    """Number of queries of a day: a query is like those that precede it by whole days. With 1 all are alike."""

    rules = (bounded("period", "at most", "queries"),)


class DrivenPrior(PriorSection):
    """Cells and moves of invented vehicles on empty roads.

    ``roads`` knows the road map alone: they drive between any places. ``trips`` knows a public trip table, or a model
    of demand: the trips of ``[traffic]`` are drawn anew.
    """

    kind: Literal["roads", "trips"]
    title: ClassVar[Mapping[str, str]] = {
        "roads": "the road map alone",
        "trips": "its trip table, with trips drawn anew",
    }


_PriorName = Annotated[Literal["occupancy", "uniform"], Tag("<name>")]
_PriorTable = Annotated[PriorSection, ByKind("prior"), Tag("<table>")]
Prior = Annotated[_PriorName | _PriorTable, Discriminator(_name_or_table)]


def _members(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a coalition that cannot grow, that names a party twice, or two numbers of vehicles."""
    coalition = parties_of(valid.get("coalition") or ())
    vehicles = [member for member in coalition if member.startswith(VEHICLES)]
    if valid.get("growing") and len(coalition) < 2 and not any("*" in one or one == EVERY_PARTY for one in coalition):
        yield valid.violation("growing", "must be false where the coalition is a single party")
    if len(vehicles) > 1:
        yield RuleViolation(("coalition",), "must give the number of corrupted vehicles only once", vehicles)


class AttackSection(NamedByKind):
    """An attack by a coalition on some campaigns and mechanisms; it changes no estimate.

    The capability "guess": it guesses cells from what was received in one query; "guess_together": from all queries;
    "shares": it needs servers that hold shares.
    """

    role = "attack"
    coalition: Annotated[
        tuple[Member, ...],
        Field(strict=False),
        BeforeValidator(
            lambda value: (value,) if value in (EVERY_SERVER, EVERY_PARTY) else value,
            json_schema_input_type=Literal["server:*", "all"] | tuple[Member, ...],
        ),
    ]
    """The parties that pool the messages they received: ``"server:1"``, …, ``"mixer"``, ``"network"``,
    ``"vehicles:N"``. ``"server:*"`` stands for every server of each campaign attacked, ``"all"`` for its servers, its
    mixer and the network; both may be written without a list. Servers and mixers of a campaign with an `operator` are
    named ``"operator:A/server:1"``; ``"operator:A/*"`` stands for all of them, ``"operator:*/*"`` for all operators'.
    An empty list is an observer who reads only what is
    published. A party that is a member for some queries only is a table,
    ``{party = "server:2", from_query = 3, to_query = 6}``."""
    from_query: Count | None = None
    """First query of each campaign at which the coalition exists. Default: the campaign's first."""
    to_query: Count | None = None
    """Last query of each campaign at which the coalition exists. Default: the campaign's last."""
    campaigns: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the campaigns attacked. Default: every campaign that estimates counts; a coalition is tried where all
    of its parties exist, and a warning names each campaign that lacks one."""
    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms attacked. Default: all."""
    targets: Count = TARGETS
    """Maximum number of devices attacked in each query: a random sample of the vehicles asked, the same ones in every
    query."""
    prior: Prior = "occupancy"
    """Prior of the coalition: the share of its targets in each cell at that moment, which is more than an outsider
    could know; a uniform distribution over the cells; or what a table says, as ``{kind = "roads"}``."""
    growing: bool = False
    """Whether the attack is also run by the first member alone, by the first two members, and so on; of
    ``"server:*"``, by one server, two, and so on up to all."""

    rules: ClassVar[Rules] = (
        EachOnce(("coalition", "campaigns", "mechanisms")),
        bounded("to_query", "at least", "from_query"),
        _members,
    )


class RoundOneSection(AttackSection):
    """Guess the cells of devices, and which devices were sampled, from round one alone."""

    kind: Literal["round_one"]
    title = "guesses the cell from round one alone, and separately which devices were sampled"
    capabilities = frozenset({"guess"})


class RoundTwoSection(AttackSection):
    """Guess the cells of devices from round two alone."""

    kind: Literal["round_two"]
    title = "guesses the cell from round two alone"
    capabilities = frozenset({"guess"})


class SpanningSection(AttackSection):
    """An attack that can use several campaigns together."""

    together: bool = False
    """Whether the coalition pools what its members received in all of the campaigns, over the same traffic. A party is
    a member in every campaign that has a party of that name."""


class LinkRoundsSection(SpanningSection):
    """Guess the cells of devices from all rounds, with the reports of a device linked where that is possible."""

    kind: Literal["link_rounds"]
    title = "guesses the cell from all reports of a query that the coalition can read and link"
    capabilities = frozenset({"guess"})


class SharesSection(AttackSection):
    """Add up the shares that the coalition holds, and guess the cells of devices from the sum."""

    kind: Literal["shares"]
    title = "adds the shares that the coalition holds, and guesses the cell from the sum"
    capabilities = frozenset({"guess", "shares"})


class KnownOthersSection(AttackSection):
    """Guess from published differences whether a device is in a cell, given the cells of all other devices."""

    kind: Literal["known_others"]
    title = (
        "from published differences, with all other devices known, guesses whether the vehicle is in the cell, at even "
        "odds"
    )
    k: Count | None = None
    """Differences below `k` are suppressed. Default: none are."""


class LongitudinalSection(SpanningSection):
    """Guess the cells of devices that stay in one cell, from several queries."""

    kind: Literal["longitudinal"]
    title = "guesses the cell of a vehicle that stays, from several queries"
    asked: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)]
    """Numbers of first queries to guess from, of the campaign or of all campaigns together; one result row for each."""

    rules = (EachOnce(("asked",)),)


def _corrupted(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a coalition without vehicles, and for fewer targets than corrupted vehicles."""
    if not valid.has("coalition"):
        return
    if not (corrupted := corrupted_in(valid["coalition"])):
        rule = 'must hold corrupted vehicles, as "vehicles:100": they send the inflated reports'
        yield RuleViolation(("coalition",), rule, list(valid["coalition"]))
    elif valid.has("targets") and corrupted > valid["targets"]:
        rule = f"must be at least the {corrupted} vehicles of the coalition: they are taken from the targets"
        yield valid.violation("targets", rule)


class PoisoningSection(AttackSection):
    """Corrupted vehicles inflate the estimate of a cell."""

    kind: Literal["poisoning"]
    title = "corrupted vehicles send reports that raise the estimate of a cell"
    cell: Count = 1
    """Number of the inflated cell, from 1."""
    magnitude: Annotated[int, Field(ge=1, le=LARGEST_MAGNITUDE)] = MAGNITUDE
    """Largest number a vehicle puts into a report that the servers cannot read."""

    rules = (_corrupted,)


class DropOutSection(AttackSection):
    """Make devices drop out between the rounds, and guess the target's cell from what is then released."""

    kind: Literal["drop_out"]
    title = "guesses the cell from what is published after devices were prevented from answering"
    dropped: Literal["target", "others"]
    """The devices that drop out: the target alone, or all devices but the target."""


class MembershipSection(SpanningSection):
    """Decide from a series of published counts whether a vehicle was counted at all queries, or left out of all."""

    kind: Literal["membership"]
    title = "from the published counts of all queries, decides whether the vehicle was counted or left out"
    knows: Literal["others", "distribution"] = "others"
    """What the coalition knows of the other devices: their cells at every query, or the `prior` of each."""
    negatives: Annotated[int, Field(ge=1_000, le=LARGEST_MAGNITUDE)] = 100_000
    """Number of trials with a vehicle left out, over all vehicles attacked; as many with the vehicle."""
    learned: Literal["logistic", "boosting"] | None = None
    """A classifier of scikit-learn (extra ``learn``) that is trained on worlds drawn from what the coalition knows, and
    shown beside the likelihood ratio: logistic regression or gradient boosting. Default: none."""
    targets: Count = 100
    """Maximum number of vehicles attacked: of those whose reports are kept, the vehicles asked most often."""


class LyingServerSection(AttackSection):
    """Servers of the coalition lie to devices and to the other servers, with all `lies` at once.

    In ``alone`` only the victim is asked, with as many `fakes` as the servers need to publish a sum. In ``again`` the
    query about the same moment is asked again. In ``false_question`` the question states parameters at which a report
    is the cell. In ``alter`` a server adds to its sums. A lie that a defence would expose is not told.
    """

    kind: Literal["lying_server"]
    title = "guesses the cell from what a server that lies obtains"
    lies: Annotated[tuple[Literal["alone", "again", "false_question", "alter"], ...], Field(strict=False, min_length=1)]
    """The lies: some of ``"alone"``, ``"again"`` and ``"false_question"`` together, or ``"alter"``."""
    times: Annotated[int, Field(ge=1, le=100)] = 10
    """How many times the query is asked within a minimum gap of the campaign, where there is one (``again``)."""
    fakes: Annotated[tuple[Annotated[int, Field(ge=0, le=10**9)], ...], Field(strict=False, min_length=1)] = (0,)
    """Numbers of fake vehicles that join beside those of the traffic (``alone``); one result row for each."""
    cell: Count = 1
    """Number of the cell whose estimate is raised (``alter``), from 1."""
    magnitude: Annotated[int, Field(ge=1, le=LARGEST_MAGNITUDE)] = MAGNITUDE
    """Largest number that a server adds to an entry of its sums (``alter``)."""


class SilenceSection(AttackSection):
    """Guess the cells of devices from all their reports, and from whether they answered at all."""

    kind: Literal["silence"]
    title = "guesses the cell from the reports and from who did not answer"
    capabilities = frozenset({"guess"})


class TraceCountsSection(AttackSection):
    """Recover traces from published counts, and guess where a vehicle ends whose first cell is known."""

    kind: Literal["trace_counts"]
    title = "recovers traces from published counts, and guesses the last cell of a vehicle whose first cell is known"


class LinkPseudonymsSection(AttackSection):
    """Join the one-time pseudonyms of each query with those of the next."""

    kind: Literal["link_pseudonyms"]
    title = "joins the pseudonyms of one query with the pseudonyms of the next"
    by: Annotated[tuple[Literal["place", "bits", "times"], ...], Field(strict=False, min_length=1)] = ("place", "bits")
    """What is compared: ``"place"``, under what the prior knows about moves; ``"bits"``, which memoised mechanisms
    keep; ``"times"``, from the moment asked about until a report arrives."""


class KnownPointsSection(AttackSection):
    """Find a vehicle among the devices that are followed, from some of its cells that are known."""

    kind: Literal["known_points"]
    title = "finds a vehicle among the devices followed, from a few of its cells that are known"
    points: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 2, 3, 4)
    """Numbers of queries at which the vehicle's cell is known; two result rows for each."""

    rules = (EachOnce(("points",)),)


class RouteSection(AttackSection):
    """Guess the routes of devices: their cells in all queries together, from reports that are linked and from moves."""

    kind: Literal["route"]
    title = "guesses the vehicle's cells in all queries together, from how vehicles move"
    capabilities = frozenset({"guess_together"})


class OwnAttack(AttackSection, OwnParameters):
    """A user's attack that guesses cells, ``package.module:Class``; its other keys are its parameters."""

    kind: OwnKind
    name: Name = Field(default="", json_schema_extra=without_default)
    """Unique name in key paths and results. Default: the name of the class."""


def without_parameters(attack: ValidFields) -> ValidFields:
    """Return an attack's fields; a user's own attack's without its kind's fields: a parameter may have any name."""
    if is_built_in("attack", attack.get("kind")):
        return attack
    return ValidFields({name: value for name, value in attack.items() if name in AttackSection.model_fields})


Attack = Annotated[AttackSection, ByKind("attack", plug_in=OwnAttack)]


def parties_of(coalition: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of a coalition's members."""
    return tuple(member if isinstance(member, str) else str(member.party) for member in coalition)


def corrupted_in(coalition: Iterable[Any]) -> int:
    """Return the number of corrupted vehicles in a coalition."""
    return sum(int(one.removeprefix(VEHICLES)) for one in parties_of(coalition) if one.startswith(VEHICLES))


def broken_attack(attack: ValidFields) -> Iterator[RuleViolation]:
    """Yield each broken rule between an attack and the scenario's other sections; paths are relative to the attack."""
    scenario = attack.outer
    campaigns, traffic = scenario.sections("campaigns"), scenario.section("traffic")
    yield from broken_names(attack)
    attack = without_parameters(attack)
    coalition = parties_of(attack.get("coalition") or ())
    if traffic.has("vehicles") and corrupted_in(coalition) > traffic["vehicles"]:
        rule = f"there are only traffic.vehicles = {traffic['vehicles']} to corrupt"
        yield RuleViolation(("coalition",), rule, list(coalition))
    named = attack.get("campaigns")
    speeds = {campaign.get("name") for campaign in campaigns if campaign.get("statistic", "count") != "count"}
    for place, name in enumerate(named or ()):
        if name in speeds:
            rule = 'must be a campaign with statistic = "count": attacks use reports of places'
            yield RuleViolation(("campaigns", place), rule, name)
    meant = [campaign for campaign in campaigns if named is None or campaign.get("name") in named]
    counting = [campaign for campaign in meant if campaign.get("statistic", "count") == "count"]
    if not counting:
        return
    yield from _shares(attack, counting, scenario.section("aggregation"))
    yield from _queries(attack, counting)


def _shares(attack: ValidFields, campaigns: Sequence[ValidFields], default: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for an attack on shares if no campaign has any; which parties there are is known when built."""
    kinds = [(campaign.section("aggregation") or default).get("kind") for campaign in campaigns]
    known = all(is_built_in("deployment", kind) and not is_capable("deployment", kind, "shares") for kind in kinds)
    if known and is_capable("attack", attack.get("kind"), "shares"):
        named = " or ".join(f'"{name}"' for name in names_of("deployment", "shares"))
        rule = f"needs a campaign with aggregation.kind = {named}: no other deployment has shares"
        yield RuleViolation(("kind",), rule, "shares")


def _queries(attack: ValidFields, campaigns: Sequence[ValidFields]) -> Iterator[RuleViolation]:
    """Yield a fault for each number of queries above a named campaign's or, where none is named, every campaign's."""
    if not all(campaign.has("queries", "name") for campaign in campaigns):
        return
    most = max(campaign["queries"] for campaign in campaigns)
    starts = attack.get("from_query")
    if starts is not None and starts > most:
        yield RuleViolation(("from_query",), f"must be at most {most}, the queries of a campaign", starts)
    if isinstance(prior := attack.get("prior"), TrainingPrior) and prior.queries >= most:
        yield RuleViolation(("prior", "queries"), f"must be below {most}, the queries of a campaign", prior.queries)
    if attack.get("together"):
        limit = sum(campaign["queries"] for campaign in campaigns)
        rule = f"must be at most {limit}, the queries of all campaigns together"
    else:
        enough = max if attack.get("campaigns") is None else min
        limit = enough(campaign["queries"] for campaign in campaigns)
        name = next(campaign["name"] for campaign in campaigns if campaign["queries"] == limit)
        rule = f"must be at most campaigns.{name}.queries = {limit}"
    for place, times in enumerate(attack.get("asked") or ()):
        if times > limit:
            yield RuleViolation(("asked", place), rule, times)

"""``[traffic]`` of the engines that simulate vehicles: ``fleet``, ``agents`` and ``sumo``."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.errors import RuleViolation
from scenarios.permissions import trusted_only
from scenarios.references import FileReference
from scenarios.section import NotNegative, Positive, Probability, Section, ValidFields, WholeNumber

MOST_VEHICLES = 2**31 - 1
"""Vehicles are numbered in 32 bits; whether memory suffices is known once the roads are."""
REROUTE_EVERY_S = 300.0
REROUTE_SHARE = 0.1


class Window(Section):
    """A stretch of time in which a share of the vehicles departs, evenly."""

    from_s: NotNegative
    """Start, seconds."""
    to_s: Positive
    """End, seconds."""
    share: Probability
    """Share of all vehicles."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for a stretch that ends before it starts."""
        if known.has("from_s", "to_s") and known["from_s"] >= known["to_s"]:
            yield RuleViolation(("from_s",), f"must be before to_s = {known['to_s']:g}", known["from_s"])


def _departures_tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "<name>"
    return "<table>" if isinstance(value, list | tuple) else None


_DEPARTURES = 'must be "uniform", "peak", "profile" or a list of {from_s, to_s, share}'

Departures = Annotated[
    Annotated[Literal["uniform", "peak", "profile"], Tag("<name>")]
    | Annotated[tuple[Window, ...], Field(strict=False), Tag("<table>")],
    Discriminator(
        _departures_tag,
        custom_error_type="rule",
        custom_error_message=_DEPARTURES,
        custom_error_context={"rule": _DEPARTURES},
    ),
]


def _files_tag(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return "<none>" if value is None else "<file>"
    return "<files>" if isinstance(value, list | tuple) else None


_FILES = "must be a file, or a list of files"

Files = Annotated[
    Annotated[FileReference, Tag("<file>")]
    | Annotated[tuple[FileReference, ...], Field(strict=False, min_length=1), Tag("<files>")]
    | Annotated[None, Tag("<none>")],
    Discriminator(
        _files_tag, custom_error_type="rule", custom_error_message=_FILES, custom_error_context={"rule": _FILES}
    ),
]
"""One reference to a file, several, or none."""


class TripColumns(Section):
    """Which column of a trip table holds what: our name = the file's. What is left out goes by the usual names."""

    origin: str | None = None
    """Zone or node where trips begin."""
    destination: str | None = None
    """Zone or node where trips end."""
    trips: str | None = None
    """How many trips; in a table that has none, each row is one trip."""
    departure_s: str | None = None
    """When the trips of a row depart: seconds, HH:MM or HH:MM:SS."""
    from_s: str | None = None
    """From when the trips of a row depart; goes with `to_s`."""
    to_s: str | None = None
    """Until when the trips of a row depart, evenly."""

    def mapping(self) -> dict[str, str]:
        """Return our names to the file's, of those that are given."""
        return {name: column for name, column in self.model_dump().items() if column is not None}

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield what is wrong between times."""
        if known.has("from_s") != known.has("to_s") and "from_s" in known and "to_s" in known:
            yield RuleViolation(("from_s",), "from_s and to_s go together: give both or none", known["from_s"])
        if known.has("departure_s", "from_s"):
            yield RuleViolation(("departure_s",), "give either departure_s, or from_s and to_s", known["departure_s"])


class DrivenTraffic(Section):
    """Vehicles that this simulator drives itself, trip by trip over the roads."""

    engine: Literal["fleet", "agents"] = "fleet"
    """``fleet`` moves all vehicles in arrays; ``agents`` is one process a vehicle, the slow reference."""
    vehicles: Annotated[WholeNumber, Field(ge=1, le=MOST_VEHICLES)] | None = None
    """Trips over the whole run, one a vehicle; left out, as many as the file of trips or table of zones has."""
    demand: Literal["uniform", "gravity", "trips"] = "uniform"
    """Destinations: all alike, fewer the longer the way, or those of a file of trips."""
    gravity_scale_s: Positive = 600.0
    """Travel time over which ``gravity`` demand falls by a factor e, seconds."""
    zones: FileReference | None = None
    """Of ``gravity`` demand: table of zones with what each produces and attracts; left out, nodes by their roads."""
    gravity_constraint: Literal["doubly", "singly"] = "doubly"
    """Of ``gravity`` from zones: zones send out and receive what the table says, or only send it out."""
    trips: Files = None
    """Trips between nodes or zones, or vehicles with their routes: TNTP, GMNS, CSV, Parquet, SUMO routes."""
    trip_columns: TripColumns = TripColumns()
    """What the columns of a CSV or Parquet table of trips are called."""
    share: Positive = 1.0
    """Vehicles driven for each trip of the file or table: a tenth of them, or twice as many; without ``vehicles``."""
    begin_s: NotNegative = 0.0
    """Where the run starts on the clock of the file of trips and of ``profile``, seconds; earlier ones are left out."""
    undrivable: Literal["refuse", "leave_out"] = "refuse"
    """Trips of a table between places that are not there, or that no path joins: an error, or left out and counted."""
    departures: Departures = "uniform"
    """When trips start, unless their file says: evenly over the run, around a peak, by shares in stretches of time."""
    profile: FileReference | None = None
    """Of ``departures = "profile"``: table of the share of trips by hour of the day, or by ``from_s`` and ``to_s``."""
    routing: Literal["free_flow", "reactive"] = "free_flow"
    """Every trip takes the way that is shortest in time: on empty roads, or as they are at that time."""
    reroute_every_s: Positive | None = None
    """Of ``reactive`` routing: how often travel times are measured and ways chosen anew, seconds; 300 if left out."""
    reroute_share: Probability | None = None
    """Of ``reactive`` routing: share of the vehicles on their way that look for a quicker one each time, besides all
    that are about to depart; 0.1 if left out."""
    step_s: Positive = 1.0
    """Tick of the engine, seconds."""
    stuck_s: NotNegative = 30.0
    """A vehicle blocked for so long goes through beyond storage, and is counted, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield what is wrong between demand, vehicles and departures."""
        departures = known.get("departures")
        if isinstance(departures, tuple):
            total = math.fsum(window.share for window in departures)
            if abs(total - 1) > 1e-9:
                yield RuleViolation(("departures",), "shares must sum to 1", total)
        yield from _broken_routing_rules(known)
        yield from _broken_demand(known)
        if known.has("departures") and "profile" in known:
            wanted = departures == "profile"
            if wanted and known["profile"] is None:
                yield RuleViolation(("profile",), 'is required with departures = "profile": the share of trips by hour')
            elif not wanted and known["profile"] is not None:
                yield RuleViolation(("profile",), 'goes with departures = "profile"', known["profile"])


def _broken_demand(known: ValidFields) -> Iterator[RuleViolation]:
    """Yield what is wrong between the kind of demand, its files and how many vehicles there are."""
    if not (known.has("demand") and all(key in known for key in ("vehicles", "trips", "zones"))):
        return
    from_file = known["demand"] == "trips" or known["zones"] is not None
    if known["demand"] == "trips" and known["trips"] is None:
        yield RuleViolation(("trips",), 'is required with demand = "trips": the file of trips')
    if not from_file and known["vehicles"] is None:
        yield RuleViolation(("vehicles",), "is required: trips over the whole run, one a vehicle")
    if known["demand"] != "trips" and known["trips"] is not None:
        yield RuleViolation(("trips",), 'goes with demand = "trips"', known["trips"])
    if known["demand"] != "gravity" and known["zones"] is not None:
        yield RuleViolation(("zones",), 'goes with demand = "gravity"', known["zones"])
    if known.has("share") and known["share"] != 1:
        if not from_file:
            yield RuleViolation(("share",), 'goes with demand = "trips", or with zones', known["share"])
        elif known["vehicles"] is not None:
            yield RuleViolation(("share",), "give either share or vehicles", known["share"])


def _broken_routing_rules(known: ValidFields) -> Iterator[RuleViolation]:
    """Yield what is wrong between the kind of routing and what belongs to one kind only."""
    for key in ("reroute_every_s", "reroute_share"):
        if known.get("routing") == "free_flow" and known.has(key):
            yield RuleViolation((key,), 'goes with routing = "reactive"', known[key])
    if known.has("reroute_every_s", "step_s") and known["reroute_every_s"] < known["step_s"]:
        words = f"must be at least step_s = {known['step_s']:g}, a tick of the engine"
        yield RuleViolation(("reroute_every_s",), words, known["reroute_every_s"])


MOST_SEED = 2**31 - 1
_MILLISECONDS = 1000.0
_NEARLY_WHOLE = 1e-6


class SumoTraffic(Section):
    """Vehicles that SUMO drives, in a process of its own."""

    engine: Annotated[Literal["sumo"], trusted_only("SUMO reads whatever files its own files name")]
    config: FileReference | None = None
    """A ``.sumocfg``, which names network, routes and options; or give ``routes``. Outputs it names are not kept."""
    net: FileReference | None = None
    """Network, ``net.xml`` or ``net.xml.gz``; left out, that of ``[roads] source = "sumo"``."""
    routes: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Route files: vehicles, trips and flows, as SUMO reads them."""
    additional: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Additional files, read before the routes: vehicle types, stops, signals."""
    begin_s: NotNegative | None = None
    """SUMO's time when the run begins, seconds; left out, the config's, or 0."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    """SUMO's seed; left out, drawn from the run's."""
    step_s: Positive = 1.0
    """SUMO's step, whole milliseconds in seconds."""
    mesoscopic: bool = False
    """Whether SUMO runs its mesoscopic model: queues, as ours, instead of vehicles that follow one another."""
    teleport_s: NotNegative | None = None
    """SUMO takes a vehicle that has stood for so long out and puts it in further on, seconds; 0 for never."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""
    beside: Literal["fleet"] | None = None
    """An engine that drives the same vehicles over the same roads afterwards, to hold its traffic against SUMO's."""

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield what is wrong between the files, and times that SUMO cannot count."""
        if "config" in known and "routes" in known:
            files = [name for name in ("net", "routes", "additional") if known.get(name)]
            if known["config"] is not None and files:
                yield RuleViolation(
                    ("config",), f"names its own files: leave out {' and '.join(files)}", known["config"]
                )
            if known["config"] is None and not known["routes"]:
                yield RuleViolation(("routes",), "is required: the vehicles SUMO drives; or give a config")
        for name in ("step_s", "begin_s"):
            if known.has(name) and not _whole_milliseconds(known[name]):
                yield RuleViolation((name,), "must be whole milliseconds: SUMO counts in them", known[name])


def _whole_milliseconds(seconds: float) -> bool:
    milliseconds = seconds * _MILLISECONDS
    return milliseconds == 0 or (round(milliseconds) >= 1 and abs(milliseconds - round(milliseconds)) <= _NEARLY_WHOLE)

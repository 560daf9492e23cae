"""``[traffic]`` of any engine, and of those that simulate vehicles: ``fleet``, ``agents`` and ``sumo``."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.errors import RuleViolation
from scenarios.field_types import NotNegative, Positive, Probability, WholeNumber
from scenarios.references import FileReference, trusted_only
from scenarios.roads import AnyCrs, ColumnNames, TextTables
from scenarios.rules import GIVEN, LEFT_OUT, Rule, among, bounded, must, needs, one_of, unlike
from scenarios.run_clock import Moment, MomentOfDay
from scenarios.section import Section, ValidFields

MOST_VEHICLES = 2**31 - 1
"""Maximum number of vehicles, which are numbered in 32 bits; memory is checked once the roads are known."""
REROUTE_EVERY_S = 300.0
REROUTE_SHARE = 0.1


class Window(Section):
    """A time interval in which a share of the vehicles departs, evenly distributed."""

    from_s: Moment
    """Start."""
    to_s: Annotated[Moment, Field(gt=0)]
    """End."""
    share: Probability
    """Share of all vehicles."""

    rules = (bounded("from_s", "before", "to_s"),)


def _tag(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return "<none>" if value is None else "<text>"
    return "<list>" if isinstance(value, list | tuple) else None


def _by_type(rule: str) -> Discriminator:
    return Discriminator(_tag, custom_error_type="rule", custom_error_message=rule, custom_error_context={"rule": rule})


Departures = Annotated[
    Annotated[Literal["uniform", "peak", "profile"], Tag("<text>")]
    | Annotated[tuple[Window, ...], Field(strict=False), Tag("<list>")],
    _by_type('must be "uniform", "peak", "profile" or a list of {from_s, to_s, share}'),
]

Files = Annotated[
    Annotated[FileReference, Tag("<text>")]
    | Annotated[tuple[FileReference, ...], Field(strict=False, min_length=1), Tag("<list>")]
    | Annotated[None, Tag("<none>")],
    _by_type("must be a file, or a list of files"),
]
"""One reference to a file, several, or none."""


class TripColumns(ColumnNames):
    """Columns of a trip table: name in this schema = the file's. Omitted columns are found by their usual names."""

    origin: str | None = None
    """Zone or node where trips begin."""
    destination: str | None = None
    """Zone or node where trips end."""
    origin_lon: str | None = None
    """Longitude of the origin, WGS84 degrees."""
    origin_lat: str | None = None
    """Latitude of the origin."""
    destination_lon: str | None = None
    """Longitude of the destination."""
    destination_lat: str | None = None
    """Latitude of the destination."""
    origin_x: str | None = None
    """Easting of the origin, in `traffic.trips_crs`."""
    origin_y: str | None = None
    """Northing of the origin."""
    destination_x: str | None = None
    """Easting of the destination."""
    destination_y: str | None = None
    """Northing of the destination."""
    path: str | None = None
    """JSON list of places [longitude, latitude], from the origin to the destination."""
    trips: str | None = None
    """Number of trips; in a table without this column and without a rate, each row is one trip."""
    rate_vph: str | None = None
    """Vehicles per hour between `from_s` and `to_s`, instead of trips."""
    rate_vps: str | None = None
    """Vehicles per second between `from_s` and `to_s`, instead of trips."""
    departure_s: str | None = None
    """Departure time of the trips of a row: seconds, HH:MM or HH:MM:SS, or a date and time in ISO 8601, in
    `scenario.time_zone` if it names none."""
    from_s: str | None = None
    """Start of the interval in which the trips of a row depart; requires `to_s`."""
    to_s: str | None = None
    """End of the interval in which the trips of a row depart, evenly distributed."""
    vehicle: str | None = None
    """Vehicle or person that makes the trip of a row: it makes several one after the other."""
    household: str | None = None
    """Household in which `vehicle` is the number of a person."""
    ignored: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """Columns of numbers that are not read. A table with any other such column is refused, unless its trips or rate
    are named here."""

    rules = (
        must("rate_vph", LEFT_OUT, "give one of trips and rate_vph", trips=GIVEN),
        must("rate_vps", LEFT_OUT, "give one of trips and rate_vps", trips=GIVEN),
        must("rate_vps", LEFT_OUT, "give one of rate_vph and rate_vps", rate_vph=GIVEN),
        one_of(("from_s", "to_s"), (), words="from_s and to_s need each other: give both or none", at=("from_s",)),
        must("departure_s", LEFT_OUT, "give either departure_s, or from_s and to_s", from_s=GIVEN),
    )


class ZonePolygons(Section):
    """Polygons of the zones that a table of trips names; trips begin and end at any node in them."""

    file: FileReference
    """File of polygons: GeoJSON, GeoPackage, Shapefile or GeoParquet."""
    name: Annotated[str, Field(min_length=1)]
    """Attribute with the names of the zones, as in the table."""
    layer: Annotated[str, Field(min_length=1)] | None = None
    """Layer of a GeoPackage that has several."""


class TrafficSection(Section):
    """Fields that all engines have in common.

    The capability "routed": vehicles drive the trips of the scenario's demand; "recorded": positions are read with the
    city; "links": when vehicles enter links is known.
    """

    role = "engine"
    engine: str
    step_s: Positive = 1.0
    """Tick of the run's clock, seconds; SUMO's is a whole number of milliseconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived, or whose time at its place is over, still answers queries."""


class EnteringTraffic(TrafficSection):
    """Fields of engines whose vehicles may have to wait before they enter the roads."""

    waiting: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has departed, and waits for room to enter its first link, answers queries there."""


class Tours(Section):
    """Several trips of each vehicle with stays between, repeated on each day of the run, every 86,400 s.

    The first trip of a vehicle comes from ``demand`` and ``departures``. Trips of a table with a column of vehicles are
    tours already, and are repeated as they are.
    """

    stops: Annotated[WholeNumber, Field(ge=1, le=20)] = 1
    """Places that a vehicle visits before it drives back to the origin of its first trip: its destination, then the
    destinations of other vehicles, drawn once."""
    stay_s: Positive = 28_800.0
    """Mean time from one planned departure of a vehicle to the next: the drive and the stay, seconds; drawn once for
    each stop of a vehicle."""
    stay_sd_s: NotNegative = 0.0
    """Standard deviation of that time, from vehicle to vehicle, seconds."""
    minimum_stop_s: NotNegative = 0.0
    """Least time between an arrival and the next departure, which is put off if the vehicle is late, seconds; at least
    a tick."""
    departure_sd_s: NotNegative = 0.0
    """Standard deviation of each planned departure from day to day, seconds."""
    skip_share: Probability = 0.0
    """Probability that a vehicle stays where it is on a day."""
    other_share: Probability = 0.0
    """Probability that a vehicle drives to another vehicle's destination on a day instead of its own."""


_NO_FILE = {"demand": unlike("trips"), "zones": LEFT_OUT}
_NO_PROFILE = 'is required with departures = "profile": the share of trips by hour'
_DRAWN = {"demand": among("uniform", "gravity"), "zones": LEFT_OUT}
"""No file states the number of trips."""


def _shares(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for windows of departures whose shares do not sum to 1."""
    windows = valid.get("departures")
    if isinstance(windows, tuple):
        total = math.fsum(window.share for window in windows)
        if abs(total - 1) > 1e-9:
            yield RuleViolation(("departures",), "shares must sum to 1", total)


class DrivenTraffic(TextTables, EnteringTraffic):
    """Vehicles that this simulator drives itself, trip by trip over the roads."""

    title: ClassVar[Mapping[str, str]] = {"fleet": "fleet engine", "agents": "agents engine"}
    capabilities = frozenset({"routed", "links"})
    engine: Literal["fleet", "agents"] = "fleet"
    """``fleet`` moves all vehicles in arrays; ``agents`` runs one process per vehicle, the slow reference."""
    vehicles: Annotated[WholeNumber, Field(ge=1, le=MOST_VEHICLES)] | None = None
    """Number of vehicles over the whole run, each with one trip or tour. Default: the number of trips, or
    vehicles, in the file of trips or the table of zones."""
    demand: Literal["uniform", "gravity", "trips"] = "uniform"
    """Destinations: all equally likely, less likely the longer the route, or the destinations in a file of trips."""
    gravity_scale_s: Positive = 600.0
    """Travel time over which ``gravity`` demand falls by a factor e, seconds."""
    zones: FileReference | None = None
    """For ``gravity`` demand: table of zones with the trips that each produces and attracts. Default: nodes, weighted
    by the lane-metres of their roads."""
    gravity_constraint: Literal["doubly", "singly"] = "doubly"
    """For ``gravity`` demand from zones: whether both productions and attractions match the table, or only
    productions."""
    trips: Files = None
    """Trips between nodes, zones or points, or vehicles with their routes: TNTP, GMNS, CSV, Parquet, OMX or SUMO
    routes."""
    trip_columns: TripColumns = TripColumns()
    """Names of the columns of a CSV or Parquet table of trips."""
    matrix: str | None = None
    """Matrix of an OMX file of trips. Default: its only one."""
    mapping: str | None = None
    """Lookup of an OMX file with the names of its zones. Default: its only one; without any, they are numbered."""
    trip_zones: ZonePolygons | None = None
    """Polygons of the zones of a table of trips. Default: zones or nodes of the roads."""
    trips_crs: AnyCrs | None = None
    """Coordinate reference system of x and y in a table of trips."""
    snap_m: Positive = 300.0
    """Maximum distance from a point in a table of trips to the nearest link, metres; trips with other points are left
    out."""
    share: Positive = 1.0
    """Vehicles per trip of the file or table, such as 0.1 or 2; not together with ``vehicles``."""
    begin_s: MomentOfDay = 0.0
    """Time at which the run starts, on the clock of the file of trips and of ``profile``; earlier trips are left out.
    Default: the time of day of `scenario.start`, or 0."""
    undrivable: Literal["refuse", "leave_out"] = "refuse"
    """Treatment of trips between places that are not in the network, or that no path connects: an error, or left out
    and counted."""
    departures: Departures = "uniform"
    """Departure times of trips whose file gives none: evenly over the run, around a peak, by a profile, or by shares in
    time intervals."""
    profile: FileReference | None = None
    """For ``departures = "profile"``: table of the share of trips by hour of the day, or by ``from_s`` and ``to_s``;
    with ``weekday``, of each day of the week."""
    tours: Tours | None = None
    """Several trips of each vehicle, repeated from day to day. Default: the trips of the demand, and no more."""
    routing: Literal["free_flow", "reactive"] = "free_flow"
    """Whether every trip takes the fastest route on empty roads, or the fastest one at current travel times."""
    reroute_every_s: Positive | None = None
    """For ``reactive`` routing: interval at which travel times are measured and routes chosen again, seconds. Default:
    300."""
    reroute_share: Probability | None = None
    """For ``reactive`` routing: share of the driving vehicles that look for a faster route each time, in addition to
    all that are about to depart. Default: 0.1."""
    spacing_m: Positive | None = None
    """Length of a vehicle with the gap before it in a standing queue, metres. Default: the mean of the types of SUMO's
    vehicles, else 7.5."""
    stuck_s: NotNegative | None = None
    """A vehicle blocked for this long enters the next link although its lanes are full, and is counted, seconds.
    Default: never; vehicles that block each other in a circle move on together."""

    @property
    def trip_files(self) -> tuple[str, ...]:
        """The files of trips, if trips are read from files."""
        return (self.trips,) if isinstance(self.trips, str) else self.trips or ()

    rules = (
        _shares,
        needs(("reroute_every_s", "reroute_share"), routing="reactive"),
        bounded("reroute_every_s", "at least", "step_s", ", a tick of the engine"),
        must("trips", GIVEN, 'is required with demand = "trips": the file of trips', demand="trips"),
        must("vehicles", GIVEN, "is required: trips over the whole run, one a vehicle", **_DRAWN),
        needs(("trips", "matrix", "mapping", "trip_zones", "trips_crs"), demand="trips"),
        needs("zones", demand="gravity"),
        must("share", among(1), 'needs demand = "trips", or with zones', **_NO_FILE),
        Rule(("share",), "give either share or vehicles", ({"vehicles": LEFT_OUT}, _NO_FILE), among(1)),
        must("profile", GIVEN, _NO_PROFILE, departures="profile"),
        needs("profile", departures="profile"),
    )


MOST_SEED = 2**31 - 1
_MILLISECONDS = 1000.0
_NEARLY_WHOLE = 1e-6


def _whole_milliseconds(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each time that SUMO cannot represent."""
    for name in ("step_s", "begin_s"):
        milliseconds = (valid.get(name) or 0.0) * _MILLISECONDS
        whole = round(milliseconds)
        if milliseconds and (whole < 1 or abs(milliseconds - whole) > _NEARLY_WHOLE):
            yield valid.violation(name, "must be whole milliseconds: SUMO counts in them")


_NO_FILES = dict.fromkeys(("net", "routes", "additional"), LEFT_OUT)


class SumoTraffic(EnteringTraffic):
    """Vehicles driven by SUMO, in a separate process."""

    title = "SUMO"
    capabilities = frozenset({"links"})
    needs = ("libsumo", "sumo")
    engine: Annotated[Literal["sumo"], trusted_only("SUMO reads whatever files its own files name")]
    config: FileReference | None = None
    """A ``.sumocfg``, which names network, routes and options; or give ``routes``. Its output files are not kept."""
    net: FileReference | None = None
    """Network, ``net.xml`` or ``net.xml.gz``. Default: the network of ``[roads] source = "sumo"``."""
    routes: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Route files: vehicles, trips and flows, as SUMO reads them."""
    additional: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Additional files, read before the routes: vehicle types, stops, signals."""
    begin_s: MomentOfDay | None = None
    """SUMO's time when the run begins, seconds. Default: the begin of the config, or 0."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    """SUMO's seed. Default: drawn from the run's seed."""
    mesoscopic: bool = False
    """Whether SUMO runs its mesoscopic model, with queues like engine ``fleet``, instead of car following."""
    teleport_s: NotNegative | None = None
    """Time after which SUMO removes a vehicle that stands still and inserts it further along its route, seconds; 0 for
    never."""
    beside: Literal["fleet"] | None = None
    """An engine that drives the same vehicles over the same roads afterwards, to compare its traffic with SUMO's."""

    rules = (
        Rule(("config",), "names its own files: leave out net, routes and additional", (_NO_FILES,), LEFT_OUT),
        must("routes", GIVEN, "is required: the vehicles SUMO drives; or give a config", config=LEFT_OUT),
        _whole_milliseconds,
    )

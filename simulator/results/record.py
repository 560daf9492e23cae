"""Run record: the content of `run.json`, written by a run and read by its report.

A record is dumped with the fields that were set, so that a file keeps exactly the keys that its writer gave it. Fields
with a default are those that runs of version 0.1.0 lack, or that are left out where they do not apply.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scenarios.run_clock import RunClock
from simulator.files.messages import Note

Number = int | float

BESIDE = "traffic.beside"
"""Place of notes on the comparison engine's traffic."""

RUN_FORMAT = 2
"""Format number of the run directories written now; those of version 0.1.0 state no number, and have format 1."""


class Record(BaseModel):
    """Part of a run record; unknown keys of a file are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    parallel: ClassVar[Sequence[str]] = ()
    """Fields that are lists of one length."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        lists = {name: held for name in self.parallel if (held := getattr(self, name)) is not None}
        if len({len(held) for held in lists.values()}) > 1:
            raise ValueError(f"{', '.join(lists)} must have one length")
        return self


class NoteRecord(Record):
    """Something noticed in a run.

    Attributes
    ----------
    code
        What it is; empty in earlier runs.
    level
        "warning" for what may mislead a reader of the result, else "note".
    where
        The section or key of the scenario that it is about.
    text
        The same in words.
    """

    code: str
    level: Literal["note", "warning"]
    where: str
    text: str


class CityRecord(Record):
    """Roads and cells of a run.

    Attributes
    ----------
    nodes, links, length_km
        Size of the road network; 0 without roads.
    cells
        Number of cells.
    crs
        Projected coordinate reference system of the run.
    notes
        What was noticed while the roads and cells were read.
    """

    nodes: int | None = None
    links: int | None = None
    length_km: float | None = None
    cells: int | None = None
    crs: str | None = None
    notes: list[str] = []


class OccupancyTheory(Record):
    """Standard error in a cell as a function of its occupancy, on an ideal channel.

    Attributes
    ----------
    asked
        Number of devices asked in all; None where the error does not depend on it.
    occupancy, std_error
        The curve; an error is None where it is not known.
    """

    asked: Number | None = None
    occupancy: list[Number]
    std_error: list[float | None]

    parallel = ("occupancy", "std_error")


class PopulationTheory(Record):
    """Standard error in a cell of `occupancy` devices as a function of the number of devices asked.

    Attributes
    ----------
    occupancy
        Devices in the cell.
    asked, std_error
        The curve; an error is None where it is not known.
    """

    occupancy: Number
    asked: list[Number]
    std_error: list[float | None]

    parallel = ("asked", "std_error")


class PublishedLeakage(Record):
    """Leakage that a mechanism's paper states.

    Attributes
    ----------
    epsilon
        The ε; None where it is infinite or none is stated.
    equation
        Paper and number of the equation.
    note
        What the statement covers, in words.
    """

    epsilon: float | None
    equation: str | None
    note: str | None


class MechanismRecord(Record):
    """One mechanism: its parameters, its theory, and its paper's leakage.

    Attributes
    ----------
    name, kind, parameters
        As the scenario states them.
    rounds
        Number of answers it takes per query.
    interval
        Construction of its 95 % intervals; None if it answered no query.
    theory, scaling
        Its standard error by occupancy and by devices asked.
    printed
        Leakage stated in its paper.
    """

    name: str
    kind: str
    parameters: dict[str, object] = {}
    rounds: int = 1
    interval: str | None = None
    theory: OccupancyTheory | None = None
    scaling: PopulationTheory | None = None
    printed: PublishedLeakage | None = None


class ReleaseRecord(Record):
    """Release of a campaign of speeds or of a campaign whose counts are not published as they are.

    Attributes
    ----------
    campaign, statistic, unit
        The campaign, what it estimates, and the unit of its errors.
    release, words
        The release as the scenario specifies it: `kind` and its parameters; and the same in words.
    mechanisms
        Mechanisms whose counts or speeds are released.
    notes
        What is not under the release, and why.
    theory
        By mechanism, for releases that add noise to each cell independently.
    """

    campaign: str
    statistic: str
    unit: str
    release: dict[str, object]
    words: str
    mechanisms: list[str]
    notes: list[str]
    theory: dict[str, OccupancyTheory]


class CostRecord(Record):
    """Cost of a report in bytes.

    Attributes
    ----------
    bytes_up, bytes_down
        Sent and received by a device in a round.
    stored_bytes
        Stored of a report, by party.
    between_servers
        Exchanged between servers for a report.
    notes
        What is counted, in words.
    """

    bytes_up: int
    bytes_down: int
    stored_bytes: dict[str, int]
    between_servers: int
    notes: list[str]


class ViewRecord(Record):
    """What one coalition can compute about one device over one query.

    Attributes
    ----------
    coalition
        Its parties.
    statement
        Number of `words` in the deployment: equal where the same is said of several mechanisms. In earlier runs, which
        did not number them, the words.
    words
        What it can compute.
    view
        Name of its view; None if it learns nothing.
    kind
        Kind of the claim for this view.
    epsilon
        ε at δ = 0; None where infinite or unknown.
    delta, delta_kind
        δ at ε = 1, None where unknown; and the kind of that claim.
    """

    coalition: list[str]
    statement: int | str = ""
    words: str
    view: str | None
    kind: str
    epsilon: float | None
    delta: float | None
    delta_kind: str

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_run(cls, facts: Any) -> Any:
        return {"statement": facts.get("words", ""), **facts} if isinstance(facts, dict) else facts


class MechanismDeployment(Record):
    """One mechanism in one campaign's deployment: its parties, its cost, and the views of small coalitions."""

    mechanism: str
    parties: list[str]
    cost: CostRecord
    learns: list[ViewRecord]


class DeploymentRecord(Record):
    """Deployment of one campaign.

    Attributes
    ----------
    campaign, kind, servers
        The campaign, the kind of its deployment and the number of its servers.
    needed
        Number of servers whose shares suffice to read a report; None if servers hold no shares.
    paired, robust
        Whether the reports of a device's rounds are paired, and whether shares carry range proofs.
    handles
        Scope of the pseudonym a report carries: "device", "query" or None.
    mechanisms
        The mechanisms that answer in the campaign.
    """

    campaign: str
    kind: str
    servers: int
    needed: int | None = None
    paired: bool = False
    robust: bool = False
    handles: str | None = None
    mechanisms: list[MechanismDeployment]


class LossRecord(Record):
    """Theoretical error of a mechanism under a campaign's losses, by number of devices asked.

    Attributes
    ----------
    campaign, mechanism, rounds
        Their names, and the mechanism's number of rounds.
    pairs
        Whether devices were paired.
    independent
        Whether a device's losses in different rounds were independent.
    heard
        Share of the reports that was received, by round.
    occupancy
        Devices in the cell considered.
    asked
        Numbers of devices asked, for the lists that follow.
    ideal
        Errors where nothing is lost.
    unpaired
        Errors where each round is counted as received.
    paired
        Errors where only devices received in every round are counted; None with one round.
    """

    campaign: str
    mechanism: str
    rounds: int
    pairs: bool
    independent: bool
    heard: list[float]
    occupancy: int
    asked: list[int]
    ideal: list[float | None]
    unpaired: list[float | None]
    paired: list[float | None] | None

    parallel = ("asked", "ideal", "unpaired", "paired")


class RefinementProperties(Record):
    """Properties that a refinement guarantees, independent of any estimate."""

    non_negative: bool
    total: str | None
    order: bool
    never_worse: str | None


class MeasuredRefinement(Record):
    """Errors of a refinement measured in one campaign.

    Attributes
    ----------
    campaign
        Its name.
    bias_busy, bias_other
        Mean error in the busiest tenth of the cells that are not empty, and in the others; None without such cells.
    unrefined_bias_busy, unrefined_bias_other
        The same of the unrefined estimates.
    """

    campaign: str
    bias_busy: float | None = None
    bias_other: float | None = None
    unrefined_bias_busy: float | None = None
    unrefined_bias_other: float | None = None


class RefinementRecord(Record):
    """One refinement of one mechanism.

    Attributes
    ----------
    name
        Its name in the tables.
    mechanism, refinement, kind, parameters
        As the scenario states them.
    biased, bias
        Whether it is biased, and how, in words.
    made_of, interval, claims
        How it is computed, what its interval is, and which claims hold for it, in words.
    keeps
        Properties that it guarantees.
    measured
        Errors measured in this run, by campaign.
    """

    name: str
    mechanism: str
    refinement: str
    kind: str
    parameters: dict[str, object]
    biased: bool
    bias: str
    made_of: str
    keeps: RefinementProperties
    interval: str
    claims: str
    measured: list[MeasuredRefinement]


class TrafficRecord(Record):
    """Traffic of one engine over time.

    Attributes
    ----------
    engine
        Name of the engine in a scenario.
    times_s
        Times of the log, seconds; the lists that follow have the same length.
    departed, waiting, on_road, arrived, absent
        Numbers of vehicles; of their trips, where vehicles make several.
    mean_trip_s
        Mean over vehicles arrived by then, from scheduled departure to arrival, seconds; None while no vehicle has
        arrived or if the engine does not record it.
    arrived_total, stuck_released
        Totals of the run.
    notes
        The engine's notes on its traffic.
    beside
        The same vehicles moved by comparison engines.
    """

    engine: str = "engine"
    times_s: list[float] = []
    departed: list[int] = []
    waiting: list[int] = []
    on_road: list[int] = []
    arrived: list[int] = []
    absent: list[int] = []
    mean_trip_s: list[float | None] = []
    arrived_total: int = 0
    stuck_released: int = 0
    notes: list[str] = []
    beside: list["TrafficRecord"] = []

    parallel = ("times_s", "departed", "waiting", "on_road", "arrived")


VEHICLE_STATES = ("departed", "waiting", "on_road", "arrived", "absent")
"""Numbers of vehicles of a traffic record, as an engine's totals name them."""


class QueryTraffic(Record):
    """State of the vehicles at the moment of one query."""

    campaign: str
    query: int
    time_s: float
    time: str | None = None
    departed: int
    waiting: int
    on_road: int
    arrived: int
    absent: int = 0
    stuck_released: int


class RunRecord(Record):
    """Content of `run.json`; docs/columns.md is made from this description.

    Attributes
    ----------
    format
        number of the layout of the run directory.
    version
        version of crowdveil.
    scenario
        name of the scenario.
    description
        its description; null if it has none.
    start
        time of second 0 of the run, from `[scenario] start` or recorded data; null where not known.
    time_zone
        name of the time zone, if it has one.
    scenario_sha256
        sha256 of `scenario.toml`.
    seed
        seed of the run.
    packages
        versions of Python and of the packages used, by name.
    data
        sha256 of the data files read, by name.
    files_outside
        files read outside the scenario's folder and the data folder.
    plug_ins
        sha256 of the file that defines a plug-in's class, by `kind`; null where there is no such file.
    vehicles
        number of vehicles or other data owners.
    called
        the nouns for one data owner and for several.
    participation
        probability that a vehicle takes part.
    assumed_participation
        the participation by which estimates were divided.
    link_crossings
        links that vehicles crossed in the whole run.
    queries
        number of queries of all campaigns.
    device_answers
        reports sent by devices, over all queries, mechanisms and rounds.
    memory_bytes
        memory of `vehicles`, of `routes`, and at the run's `peak`, which is null where the system does not
        report it.
    city
        size of the road network, number of cells, coordinate system, notes.
    traffic
        states of the vehicles at about a hundred moments, by engine.
    motion_every
        n, where `entries.parquet` and `places.parquet` hold every n-th vehicle.
    traffic_at_queries
        states of the vehicles at every query.
    mechanisms
        each mechanism's parameters, theory, and the leakage that its paper states.
    releases
        by campaign, what its release publishes and what is published without it.
    deployments
        by campaign, the parties, the bytes, and what small coalitions can compute.
    loss
        theoretical error under the run's losses, by number of devices asked.
    refinements
        properties and measured errors of each refinement.
    warnings
        what may mislead a reader of the result, in words.
    statements
        everything noticed, each once, warnings included, with code, level, place and text; earlier runs lack it.
    wall_s
        wall time by phase, seconds.
    """

    format: int = 1
    version: str = "unknown"
    scenario: str
    description: str | None = None
    start: str | None = None
    time_zone: str | None = None
    scenario_sha256: str = "–"
    seed: int
    packages: dict[str, str] = {}
    data: dict[str, str] = {}
    files_outside: list[str] = []
    plug_ins: dict[str, str | None] = {}
    vehicles: int
    called: tuple[str, str] = ("vehicle", "vehicles")
    participation: float = 1.0
    assumed_participation: float = 1.0
    link_crossings: int
    queries: int
    device_answers: int
    memory_bytes: dict[str, int | None] = {}
    city: CityRecord = CityRecord()
    traffic: TrafficRecord = TrafficRecord()
    motion_every: int = 1
    traffic_at_queries: list[QueryTraffic] = []
    mechanisms: list[MechanismRecord]
    releases: list[ReleaseRecord] = []
    deployments: list[DeploymentRecord] = []
    loss: list[LossRecord] = []
    refinements: list[RefinementRecord] = []
    warnings: list[str] = []
    statements: list[NoteRecord] = []
    wall_s: dict[str, float] = {}

    @property
    def noticed(self) -> list[Note]:
        """Everything noticed, each once; of earlier runs what the parts list, without a code."""
        if "statements" in self.model_fields_set:
            return [Note(one.code, one.text, one.level, one.where) for one in self.statements]
        parts = {
            "roads": self.city.notes,
            "traffic": self.traffic.notes,
            BESIDE: [text for other in self.traffic.beside for text in other.notes],
            "release": [text for release in self.releases for text in release.notes],
        }
        listed = [(text, where) for where, texts in parts.items() for text in texts]
        return [Note("", text, "warning" if text in self.warnings else "note", where) for text, where in listed]

    @property
    def clock(self) -> RunClock:
        """The clock of the run."""
        return RunClock.starting(self.start, self.time_zone)

    @model_validator(mode="after")
    def _check_clock(self) -> Self:
        RunClock.starting(self.start, self.time_zone)
        return self


class CellsSettings(Record):
    """What a page needs of a section of cells."""

    kind: str = ""
    partition: str = "cells"


class TrafficSettings(Record):
    """What a page needs of the section of traffic; `waiting` is absent where vehicles that waited were asked."""

    step_s: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    parked: str = "silent"
    waiting: str = "answer"


class Settings(Record):
    """What a run's page needs of its scenario, whose other keys depend on the version that wrote it."""

    cells: CellsSettings | list[CellsSettings] = []
    traffic: TrafficSettings = TrafficSettings()

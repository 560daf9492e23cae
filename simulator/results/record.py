"""The parts of a run record (`simulator.results.run_record`).

A record is dumped with the fields that were set, so that a file keeps exactly the keys that its writer gave it. Fields
with a default are those that runs of version 0.1.0 lack, or that are left out where they do not apply.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pyproj import CRS

Number = int | float
_ORIGIN = ("Latitude of natural origin", "Longitude of natural origin")


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

    @property
    def on_earth(self) -> bool:
        """Whether its cells lie somewhere on Earth; places that the data only name are squares in a row about 0, 0."""
        made = None if self.links or self.crs is None else CRS(self.crs).coordinate_operation
        if made is None or made.method_name != "Transverse Mercator":
            return True
        return any(one.value for one in made.params if one.name in _ORIGIN)


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
    campaign, operator, kind, servers
        The campaign, who runs its servers (None if no operator is named), the kind of its deployment and the number of
        its servers.
    needed
        Number of servers whose shares suffice to read a report; None if servers hold no shares.
    paired, robust
        Whether the reports of a device's rounds are paired, and whether shares carry range proofs.
    handles
        Scope of the pseudonym a report carries: "device", "query" or None.
    min_batch, min_gap_s, committed
        Fewest reports that servers add up, seconds between a device's answers, and whether the question is committed.
    mechanisms
        The mechanisms that answer in the campaign.
    """

    campaign: str
    operator: str | None = None
    kind: str
    servers: int
    needed: int | None = None
    paired: bool = False
    robust: bool = False
    handles: str | None = None
    min_batch: int = 1
    min_gap_s: float = 0.0
    committed: bool = False
    mechanisms: list[MechanismDeployment]


class LossRecord(Record):
    """Theoretical error of a mechanism under a campaign's losses, by number of devices asked.

    Attributes
    ----------
    campaign, mechanism, rounds
        Their names, and the mechanism's number of rounds.
    pairs, can_pair
        Whether devices were paired, and whether the servers could pair them.
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
    can_pair: bool = True
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

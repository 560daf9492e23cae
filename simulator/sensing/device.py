"""Devices on board vehicles and the parties that they report to: classes to extend, and how a run chooses them.

A device hears a `Question`, measures where its vehicle is, decides whether it takes part, makes its report and sends
it; every message of the report is an `Answer` on its way to a `Party`. A device is one object for as long as the run
lasts, and a SimPy process only while an answer of it waits.
"""

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import simpy

from mechanisms.local import LocalMechanism
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.roads.network import RoadNetwork
from simulator.sensing.channel import Route
from simulator.streams import Streams
from simulator.traffic.clock import LAST, Clock, PriorityEvent
from simulator.traffic.engine import Engine, State, VehicleStates

Process: TypeAlias = Generator[simpy.Event, Any, None]


class Fix(NamedTuple):
    """A position that a receiver has measured.

    Attributes
    ----------
    x, y
        Metres in the city's coordinate system; NaN where the vehicle's place has no coordinates.
    vehicle
        The vehicle whose own fix it is, unaltered; None for a fix that a device has moved or made up.
    """

    x: float
    y: float
    vehicle: int | None = None

    def moved(self, dx: float, dy: float) -> "Fix":
        """Return the fix moved by some metres."""
        return Fix(self.x + dx, self.y + dy)

    def distance(self, other: "Fix | None") -> float:
        """Return the distance to another fix, metres; infinite where one of them is not known."""
        metres = math.nan if other is None else math.hypot(self.x - other.x, self.y - other.y)
        return math.inf if math.isnan(metres) else metres


def _in_no_cell(places: VehicleStates) -> Cells:
    return np.zeros(len(places), dtype=np.int32)


@dataclass(frozen=True, eq=False)
class QuerySubject:
    """What the rounds of one mechanism in one query ask about.

    Attributes
    ----------
    campaign, query, mechanism
        The name of the campaign, the number of the query from 1, and the name of the mechanism.
    cells, cells_of
        The number of cells of the partition that is asked about, and the function from vehicles' places to its cells.
    measured_cells
        The function from vehicles' places to the cells of their fixes; None if fixes have no errors.
    past
        Whether it asks about a moment that has passed: devices answer about the cell in which they were then.
    operator
        Who runs the servers; None if no operator is named.
    """

    campaign: str = ""
    query: int = 1
    mechanism: str = ""
    cells: int = 0
    cells_of: Callable[[VehicleStates], Cells] = _in_no_cell
    measured_cells: Callable[..., Cells] | None = None
    past: bool = False
    operator: str | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """What a device is asked in one round.

    Attributes
    ----------
    subject
        What the query asks about; the same object in all of its rounds.
    mechanism
        The mechanism that the device runs.
    round
        From 1.
    asked_s, deadline_s
        The time of the question, and the seconds for which the round is open.
    route
        The messages of a report: for each, the parties that it passes.
    exchange
        Deals coins and takes reports; the methods of `Device` call it.
    """

    subject: QuerySubject
    mechanism: LocalMechanism
    round: int
    asked_s: float
    deadline_s: float
    route: Route
    exchange: "DeviceExchange" = field(repr=False)


@dataclass(eq=False, slots=True)
class Answer:
    """One message of a device's report, on its way.

    Attributes
    ----------
    payload
        The report, a batch of one; or the share of it that is sent to the party, (*tally_shape) uint64.
    handle
        The vehicle's number, or a pseudonym of this query, under which the report is stored; None without handles.
    sent_s, arrives_s
        When it was sent, and when it arrives unless it is lost, seconds.
    path
        The parties that it passes, in order.
    round
        From 1.
    in_time
        Whether it arrives within the deadline.
    number, slot
        The simulator's own: which message of the report it is, from 0, and which report of the round.
    """

    payload: Any
    handle: int | None
    sent_s: float
    path: tuple[str, ...]
    round: int
    arrives_s: float
    in_time: bool
    number: int
    slot: int


class WrittenVector(NamedTuple):
    """What a device writes in place of a report's encoding, valid or not: (*tally_shape) int64.

    Servers that read plain reports reject it. Servers that hold shares cannot see it: they add it up, unless devices
    must prove that their encoding is valid.
    """

    vector: IntArray


class DeviceExchange(Protocol):
    """What a device and a party ask of the exchange of their survey, `simulator.sensing.exchange.Exchange`."""

    world: "World"
    about: dict[int, int]
    parties: dict[str, "Party"]

    def coins(self, number: int) -> Any:
        """Return the coins dealt to a device, as a batch of one."""

    def memory(self, number: int) -> Any:
        """Return what a device keeps from query to query, as a batch of one."""

    def send(self, device: "Device", question: Question, report: Any) -> bool:
        """Send a report, or a copy of one; as of `Device.send`."""

    def is_down(self, party: str, answer: Answer) -> bool:
        """Return whether a party is down when a message arrives."""


@dataclass(eq=False)
class World:
    """What devices find around them: the time, their vehicles' places, and which devices act for themselves.

    Parameters
    ----------
    env, clock
        The environment of the run, and the clock that converts seconds to its ticks.
    behaviour
        The classes of devices and parties.
    devices
        The number of devices: vehicles of the run, followed by devices outside that answer one by one.
    engine, roads, streams
        The traffic, its roads, and the generators of the run; without an engine no device has a place.
    every
        Whether every device acts for itself. Otherwise devices that follow the protocol answer in batches, unless
        there are parties with a behaviour of their own.

    Attributes
    ----------
    acting
        (devices,) bool: which devices act for themselves.
    """

    env: simpy.Environment
    clock: Clock
    behaviour: "Behaviour"
    _: KW_ONLY
    devices: int
    engine: Engine | None = None
    roads: RoadNetwork | None = None
    streams: Streams = field(default_factory=lambda: Streams(0))
    every: bool = False

    def __post_init__(self) -> None:
        """Find out which devices act for themselves."""
        behaviour = self.behaviour
        self.acting: Mask = np.full(self.devices, self.every or bool(behaviour.parties))
        if behaviour.device is not Device and not self.acting.all():
            chosen = (behaviour.class_of(number) is not Device for number in range(self.devices))
            self.acting = np.fromiter(chosen, dtype=np.bool_, count=self.devices)
        self._devices: dict[int, Device] = {}
        self._places: tuple[float, VehicleStates] | None = None
        self._cells: dict[str, tuple[float, Cells]] = {}
        self._xy: tuple[float, FloatArray] | None = None

    @property
    def time_s(self) -> float:
        """The time, seconds."""
        return self.clock.seconds(self.env.now)

    def device(self, number: int) -> "Device":
        """Return a device, the same object in the whole run; devices outside follow the vehicles in number."""
        if number not in self._devices:
            self._devices[number] = self.behaviour.class_of(number)(number, self)
        return self._devices[number]

    def see(self, campaign: str, places: VehicleStates, cells: Cells) -> None:
        """Keep the places of all vehicles now, and the cells of their fixes, which a campaign has computed at once."""
        self._places, self._cells[campaign] = (self.env.now, places), (self.env.now, cells)

    def fix(self, number: int) -> Fix:
        """Return where a vehicle is now; NaN for a device without a vehicle, or where places have no coordinates."""
        engine, now = self.engine_of(number), self.env.now
        if engine is None:
            return Fix(math.nan, math.nan, number)
        if self._places is None or self._places[0] != now:
            x, y = self.located(engine.place_of(np.array([number])))[0].tolist()
            return Fix(x, y, number)
        if self._xy is None or self._xy[0] != now:  # many devices act at the moment of a question
            self._xy = now, self.located(self._places[1])
        x, y = self._xy[1][number].tolist()
        return Fix(x, y, number)

    def cell(self, fix: Fix | None, subject: QuerySubject) -> int:
        """Return the cell of a fix, 0 outside every cell: of a vehicle's own fix where it is, else by coordinates."""
        if fix is None or (fix.vehicle is None and math.isnan(fix.x)):
            return 0
        number = fix.vehicle
        if number is None:
            on_road, no_link = np.full(1, State.ON_ROAD, dtype=np.uint8), np.full(1, -1, dtype=np.int32)
            there = VehicleStates(on_road, no_link, np.full(1, math.nan), np.array([[fix.x, fix.y]]))
            return int(subject.cells_of(there)[0])
        engine = self.engine_of(number)
        if engine is None:
            return 0
        at, cells = self._cells[subject.campaign]
        if at == self.env.now or subject.past:
            return int(cells[number])
        there = engine.place_of(np.array([number]))
        if subject.measured_cells is None:
            return int(subject.cells_of(there)[0])
        return int(subject.measured_cells(there, rng=self.device(number).rng)[0])

    def engine_of(self, number: int) -> Engine | None:
        """Return the engine that moves a device's vehicle; None for a device without a vehicle."""
        return None if self.engine is None or number >= self.engine.vehicles else self.engine

    def located(self, places: VehicleStates) -> FloatArray:
        """Return the coordinates of places, (places, 2); NaN where they have none."""
        if places.xy is None and self.roads is None:
            return np.full((len(places), 2), math.nan)
        return places.xy if self.roads is None else places.xy_on(self.roads)  # type: ignore[return-value]  # known here


class Device:
    """The device on board one vehicle; extend it, and override what shall be otherwise.

    By default it follows the protocol: its answers are then equal to the answers of devices simulated in batches, bit
    for bit.

    Parameters
    ----------
    number
        The number of the vehicle, from 0; devices outside every cell follow the vehicles.
    world
        What it finds around it.

    Attributes
    ----------
    kept
        What it keeps in the run; empty at first. The protocol keeps nothing here.
    """

    def __init__(self, number: int, world: World) -> None:
        self.number, self.world = number, world
        self.kept: dict[Any, Any] = {}

    @cached_property
    def rng(self) -> np.random.Generator:
        """A generator of its own, for what it draws besides the coins that are dealt to it."""
        return self.world.streams.of("device", self.number)

    @property
    def env(self) -> simpy.Environment:
        """The SimPy environment of the run, which counts ticks of `traffic.step_s` seconds."""
        return self.world.env

    @cached_property
    def home(self) -> Fix | None:
        """Where its vehicle's first trip begins; None where that is not known."""
        engine = self.world.engine_of(self.number)
        if engine is None:
            return None
        x, y = self.world.located(engine.origin_of(np.array([self.number])))[0].tolist()
        return None if math.isnan(x) else Fix(x, y)

    @cached_property
    def vehicle_class(self) -> str:
        """The class of its vehicle; empty where vehicles have none."""
        engine = self.world.engine_of(self.number)
        return "" if engine is None else engine.class_of(np.array([self.number]))[0]

    def position(self) -> Fix:
        """Return what its receiver measures now; a class of your own may return None: it has no fix, and no cell."""
        return self.world.fix(self.number)

    def cell(self, subject: QuerySubject) -> int:
        """Return the cell of that position in the partition asked about, from 1; 0 outside every cell."""
        return self.world.cell(self.position(), subject)

    def takes_part(self, question: Question) -> bool:  # noqa: ARG002 - for devices that choose
        """Return whether it answers a question; a device that does not is counted as silent."""
        return True

    def memory(self, question: Question) -> Any:
        """Return what the mechanism keeps on board from query to query, as a batch of one."""
        return question.exchange.memory(self.number)

    def coins(self, question: Question) -> Any:
        """Return its coins of the query, as a batch of one, the same in every round; they know no truth."""
        return question.exchange.coins(self.number)

    def report(self, question: Question, coins: Any) -> Any:
        """Return its report of a round as a batch of one, or a `WrittenVector`.

        In the mechanism's truth round it is about the cell of that moment; in later rounds, about the same cell; before
        it, as if outside every cell. A device that did not hear the question of the truth round still knows where it
        was then, as later questions name that moment.
        """
        mechanism, about = question.mechanism, question.exchange.about
        if question.round == mechanism.truth_round:
            about[self.number] = self.cell(question.subject)
        cell = about[self.number] if question.round >= mechanism.truth_round else 0
        return mechanism.answer(question.round, np.array([cell], dtype=np.int32), coins)

    def answer(self, question: Question) -> Process:
        """Answer a question: a SimPy process, which may wait before it sends, and send again.

        One that never waits may as well be a method that returns nothing.
        """
        if self.takes_part(question):
            self.send(question, self.report(question, self.coins(question)))
        yield from ()

    def wait(self, seconds: float) -> simpy.Event:
        """Return an event after this number of seconds; `answer` yields it to wait.

        It happens after the vehicles have moved in that tick, and before a query closes.
        """
        return PriorityEvent(self.env).schedule(delay=self.world.clock.ticks(seconds), priority=LAST - 1)

    def send(self, question: Question, report: Any) -> bool:
        """Send a report now, and return whether all of its messages left the device.

        A report that was sent before is sent again as a copy; another report is a second answer. Servers drop a second
        answer under a handle, and cannot tell it from another device's without handles. Once the query is closed,
        nothing is sent.

        Raises
        ------
        ValueError
            If the report is not a batch of one.
        """
        return question.exchange.send(self, question, report)


class Party:
    """A server or a mixer: it keeps the messages that it receives, and forwards those in time along their path.

    A class that overrides `run` is a SimPy process, which takes messages from its mailbox. Otherwise a message is
    received at the moment at which it arrives.

    Parameters
    ----------
    name
        "server:1", …, or "mixer".
    exchange
        The messages of the survey that it is a party of.

    Attributes
    ----------
    mailbox
        The messages that have arrived, for a class that overrides `run`.
    kept
        The messages received, in the order of their arrival.
    """

    def __init__(self, name: str, exchange: "DeviceExchange") -> None:
        self.name, self.exchange, self.env = name, exchange, exchange.world.env
        self.mailbox = simpy.Store(self.env)
        self.kept: list[Answer] = []
        self.take: Callable[[Answer], Any] = self.receive
        if type(self).run is not Party.run:
            self.env.process(self.run())
            self.take = self.mailbox.put

    def run(self) -> Process:
        """Receive messages for ever."""
        while True:
            self.receive((yield self.mailbox.get()))

    def wait(self, seconds: float) -> simpy.Event:
        """Return an event after this number of seconds; `run` yields it to wait."""
        return self.env.timeout(self.exchange.world.clock.ticks(seconds))

    def receive(self, answer: Answer) -> None:
        """Receive a message, unless the party is down."""
        if self.exchange.is_down(self.name, answer):
            return
        self.kept.append(answer)
        onward = answer.path[answer.path.index(self.name) + 1 :]
        if onward and answer.in_time:
            self.exchange.parties[onward[0]].receive(answer)

    def tally(self, round_: int, sums: IntArray) -> IntArray:  # noqa: ARG002 - for parties that alter what they state
        """Return the sums of a round that the server states as the sums of its reports, or shares; here they are.

        Parameters
        ----------
        round_
            From 1.
        sums
            (*tally_shape) int64, or uint64 if the server holds shares.
        """
        return sums


@dataclass(frozen=True)
class Behaviour:
    """How devices and parties behave; by default, they follow the protocol.

    Attributes
    ----------
    device
        The class of all devices, or a function from a device's number to its class.
    parties
        By name, "server:1", …, or "mixer": the class of a party; of all others, `Party`.
    refusing
        By cell: the share of devices that send nothing while they are there, where it is public.
    """

    device: type[Device] | Callable[[int], Callable[[int, World], Device]] = Device
    parties: Mapping[str, type[Party]] = field(default_factory=dict)
    refusing: Mapping[int, float] = field(default_factory=dict)

    def class_of(self, number: int) -> Callable[[int, World], Device]:
        """Return the class of a device."""
        return self.device if isinstance(self.device, type) else self.device(number)

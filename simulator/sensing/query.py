"""Query: who is asked, what devices keep between queries, when they are asked, answers, and records of reports."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism, NoMemory
from mechanisms.refinement import RefinedEstimate
from simulator.aggregation.publication import CellValues
from simulator.aggregation.rounds import RoundAccount
from simulator.aggregation.transcript import RecordedMessages
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.sensing.selection import ExpectedCounts, LocalShare, share_of
from simulator.streams import Streams
from simulator.traffic.engine import State, Totals, VehicleStates

Answers = Literal["auto", "reports", "counts"]
"""How answers are simulated: "reports", every device one by one; "counts", all through `sample_counts`; "auto",
vehicles one by one and devices outside through `sample_counts`."""


@dataclass(frozen=True, eq=False)
class Respondents:
    """The devices of one query that are present at a moment; at its first moment, all that are asked.

    Attributes
    ----------
    vehicles
        (vehicles,) bool: whether each vehicle asked is present.
    outside
        The number of further devices present that are in no cell (the papers' No population); always the first ones.
    """

    vehicles: Mask
    outside: int

    @property
    def devices(self) -> int:
        """All devices present."""
        return int(np.count_nonzero(self.vehicles)) + self.outside

    @classmethod
    def everyone(cls, vehicles: int, outside: int) -> Self:
        """Return all devices asked: this number of vehicles, and of devices in no cell."""
        return cls(np.ones(vehicles, dtype=bool), outside)


@dataclass(frozen=True)
class QueriedPopulation:
    """The devices that can be asked.

    Attributes
    ----------
    takes_part
        (vehicles,) bool, drawn once for each vehicle; where there are `shares`, whether it takes part outside their
        places and times.
    outside
        The number of devices asked that are in no cell.
    answering
        The states in which vehicles are asked.
    answers
        Whether devices are simulated one by one or by counts.
    participation
        The probability with which a vehicle takes part: one for all, or (vehicles,) float64.
    willingness
        (vehicles,) float64, drawn once for each vehicle from 0 to 1: it takes part where its probability to do so is
        above this. So a vehicle that takes part where few do takes part everywhere. None where all have one
        probability.
    shares
        By which the probability is multiplied where a vehicle is at the start of a query.
    """

    takes_part: Mask
    outside: int = 0
    answering: Collection[State] = (State.ON_ROAD,)
    answers: Answers = "auto"
    participation: float | FloatArray = 1.0
    willingness: FloatArray | None = None
    shares: tuple[LocalShare, ...] = ()

    def chances(self, places: VehicleStates, at_s: float) -> FloatArray:
        """Return the probability that each vehicle takes part in a query that starts at `at_s`, (departed,) float64."""
        alone = np.broadcast_to(self.participation, self.takes_part.shape)[: len(places)]
        return alone * share_of(self.shares, places, at_s)

    def participants(self, eligible: Mask, chances: FloatArray) -> IntArray:
        """Return the vehicles that are asked: those eligible that take part."""
        n, drawn = len(eligible), self.willingness
        return np.flatnonzero(eligible & (self.takes_part[:n] if drawn is None else drawn[:n] < chances))


@dataclass(frozen=True)
class Schedule:
    """The times at which a campaign asks.

    Attributes
    ----------
    start_s, every_s
        Time of round one of the first query, and seconds from one query to the next.
    queries
        The number of queries.
    round_gap_s
        Seconds between two rounds.
    deadline_s
        Seconds a round stays open after it is asked.
    """

    start_s: float
    every_s: float
    queries: int
    round_gap_s: float
    deadline_s: float

    def asked_s(self, number: int) -> float:
        """Return when a query is asked, from its number, from 1."""
        return self.start_s + (number - 1) * self.every_s

    def lasts_s(self, moments: int) -> float:
        """Return the seconds from the start of a query to its close, if it asks at this number of moments."""
        return (moments - 1) * self.round_gap_s + self.deadline_s

    def end_s(self, moments: int) -> float:
        """Return when the last query is closed, if each asks at this number of moments."""
        return self.asked_s(self.queries) + self.lasts_s(moments)


def keeps_randomness(mechanism: LocalMechanism) -> bool:
    """Return whether devices keep randomness from query to query, so that their reports are not independent."""
    return not isinstance(mechanism.enrol(1, rng=np.random.default_rng(0)), NoMemory)


class Memories:
    """Enrols all devices of the run once for each mechanism, when its memory is first requested.

    Most mechanisms keep nothing. A memoised mechanism keeps the bits that protect a device over many queries; it would
    not protect any device if it drew new bits in each query.

    Parameters
    ----------
    devices
        The number of devices: vehicles of the run, followed by the devices outside that answer one by one.
    streams
        The random generators of the run.
    """

    def __init__(self, *, devices: int, streams: Streams) -> None:
        self._devices, self._streams = devices, streams
        self._kept: dict[tuple[str, int, str], Any] = {}

    def of(  # a mechanism's memory is its own
        self, name: str, mechanism: LocalMechanism, devices: IntArray, *, partition: str = "cells"
    ) -> Any:
        """Return the memory of these devices for a mechanism.

        Parameters
        ----------
        name, mechanism
            A mechanism of the run.
        devices
            (n,) int64 device numbers: the vehicle's own number, or, for an outside device, its own number plus the
            number of vehicles.
        partition
            The partition whose cells the mechanism reports: answers about other cells need other randomness.
        """
        key = name, mechanism.cells, partition
        if key not in self._kept:
            rng = self._streams.of("memory", name, *([] if partition == "cells" else [partition]))
            self._kept[key] = mechanism.enrol(self._devices, rng=rng)
        return self._kept[key][devices]


@dataclass(frozen=True, eq=False)
class Targets:
    """The vehicles whose reports of a query are recorded: the targets of attacks, and corrupted vehicles.

    Vehicles have a random order, the same in every query and for every mechanism. Targets are the first in this order
    among the vehicles asked; corrupted vehicles are the last of the whole fleet. All vehicles are equally likely to be
    a target, and equally likely to be corrupted.

    Attributes
    ----------
    query
        The number of the query, from 1.
    vehicles
        (vehicles,) int64: the numbers of the vehicles asked, in the order in which they are asked.
    rank
        (vehicles,) int64: their ranks in the random order of the fleet, from 0.
    most
        The largest number of targets that are recorded.
    corrupted_from
        Vehicles of this rank and above are corrupted and are recorded too.
    """

    query: int
    vehicles: IntArray
    rank: IntArray
    most: int
    corrupted_from: int


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """One query of one mechanism: the reports and cells of some recorded vehicles, and the sums over all devices.

    Parameters
    ----------
    recorded
        Messages that the recorded vehicles sent.
    truth
        (n,) int32, their cells at the moment of truth, 0 outside.
    occupancy
        (cells + 1,) int64, number of all vehicles asked by cell at that moment, the recorded ones included.
    counts
        (rounds, *tally_shape) int64, the servers' counts over all devices.
    asked, counted
        Devices asked and reports counted, by round.
    values
        (cells,) float64, the published estimates, of the release if there is one, else of the mechanism; None if
        the answer does not estimate every cell.
    time_s
        The moment of truth, seconds.
    noise
        (servers, cells) int64, what each server added to the counts that it published; None if none did.
    campaign, number_in_campaign
        The query's campaign, and its number there; `number` differs from it if several campaigns are attacked together.
    leaves
        As of `Released`.
    """

    recorded: RecordedMessages
    truth: Cells
    occupancy: IntArray
    counts: Counts
    asked: Sequence[int]
    counted: Sequence[int]
    values: FloatArray | None = None
    time_s: float = 0.0
    noise: IntArray | None = None
    campaign: str = ""
    number_in_campaign: int = 0
    leaves: FloatArray | None = None

    @property
    def number(self) -> int:
        """The query's number, from 1."""
        return self.recorded.query

    @property
    def all_counted(self) -> bool:
        """Whether every device asked was counted in every round."""
        return list(self.asked) == list(self.counted)

    def among(self, places: IntArray) -> "QueryRecord":
        """Return the record with only the recorded devices at these positions; sums stay sums of all devices."""
        return replace(self, recorded=self.recorded.among(places), truth=self.truth[places])

    def placed(self, campaign: str, number: int) -> "QueryRecord":
        """Return the record with its campaign, and with another number."""
        recorded = replace(self.recorded, query=number)
        return replace(self, recorded=recorded, campaign=campaign, number_in_campaign=self.number)


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """The answer of one mechanism to one query."""

    mechanism: str
    estimate: Estimate | RefinedEstimate | CellValues
    std_error: FloatArray
    """(cells,) float64, or one per published row of speeds: the theoretical standard error, from the truth and the
    reports that the channel delivered."""
    rounds: list[RoundAccount]
    published: bool = False
    """Whether the estimate is a release made from the server's counts, not the mechanism's own estimate."""
    paired: bool = False
    """Whether only devices whose reports were received in every round were counted."""
    summed: bool = True
    """Whether it was computed from the sum of all servers' counts, as published."""
    took_s: float = math.nan
    """Seconds from its first question until its estimate was published."""

    @property
    def asked(self) -> tuple[int, ...]:
        """Devices asked, by round."""
        return tuple(account.asked for account in self.rounds)

    @property
    def counted(self) -> tuple[int, ...]:
        """Reports counted, by round."""
        return tuple(account.counted for account in self.rounds)


@dataclass(frozen=True, eq=False)
class Occupancy:
    """All vehicles by cell at the moment of truth, whether they take part or not.

    Vehicles that take no part count where they would have been asked: in the states that answer.

    Attributes
    ----------
    vehicles
        (cells + 1,) int64: the vehicles there at the moment of truth; [0] counts those outside every cell.
    eligible
        (cells + 1,) int64: the vehicles that a query of everybody would have asked at its start, where they are at the
        moment of truth. They differ from `vehicles` by those that came or left since.
    stayed
        The number of vehicles in both.
    expected
        What is estimated on average, if not every vehicle is equally likely to be counted where it is; else None.
    """

    vehicles: IntArray
    eligible: IntArray
    stayed: int
    expected: ExpectedCounts | None = None

    @classmethod
    def of(
        cls, cells: Cells, *, now: Mask, before: Mask, minlength: int, expected: ExpectedCounts | None = None
    ) -> Self:
        """Count vehicles from their cells, (n,), and from who is there now, (n,), and was at the start, (m ≤ n,)."""
        then = np.append(before, np.zeros(len(now) - len(before), dtype=bool))

        def count(who: Mask) -> IntArray:
            return np.bincount(cells[who], minlength=minlength).astype(np.int64)

        return cls(count(now), count(then), int(np.count_nonzero(now & then)), expected)

    @property
    def came(self) -> int:
        """Vehicles that began to answer between the start of the query and the moment of truth."""
        return int(self.vehicles.sum()) - self.stayed

    @property
    def left(self) -> int:
        """Vehicles that ceased to answer between the start of the query and the moment of truth."""
        return int(self.eligible.sum()) - self.stayed


@dataclass(frozen=True, eq=False)
class Query:
    """One closed query: the ground truth, known only to the simulator, and every mechanism's answer.

    Attributes
    ----------
    number
        From 1.
    asked_s, time_s
        The moment of round one, and the moment of truth, seconds.
    truth
        (cells + 1,) int64: the devices asked, by cell at the moment of truth, whether they answered or not; [0] counts
        those outside every cell.
    occupancy
        All vehicles at the moment of truth, asked or not.
    totals
        Totals of the fleet, such as vehicles by state, at the moment of round one.
    statistic
        What is estimated: "count", or "mean_speed" or "median_speed" in m/s, whose answers contain their own truth.
    recorded
        The records of the reports of some devices, by mechanism; for transcripts.
    """

    campaign: str
    number: int
    asked_s: float
    time_s: float
    truth: IntArray
    occupancy: Occupancy
    totals: Totals
    answers: list[QueryAnswer]
    statistic: str = "count"
    recorded: Mapping[str, QueryRecord] = field(default_factory=dict)


def answers_of_devices(queries: Iterable[Query]) -> dict[tuple[str, str], list[tuple[Query, QueryAnswer]]]:
    """Return the answers of devices to queries of counts, each with its query, by campaign and mechanism.

    Refined estimates are left out: no device was asked for them.
    """
    answered: dict[tuple[str, str], list[tuple[Query, QueryAnswer]]] = {}
    for query in queries:
        for answer in query.answers if query.statistic == "count" else ():
            if answer.rounds:
                answered.setdefault((query.campaign, answer.mechanism), []).append((query, answer))
    return answered

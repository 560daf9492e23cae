"""Vehicles sampled from a trip table: their number, origins, destinations and departures."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from simulator.files.messages import counted
from simulator.roads.network import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.departures import Departures, draw_departures
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.demand.trip_table import SHOWN, TripTable, Zones, capped
from simulator.traffic.errors import TrafficError
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips, too_many

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]


def whole_vehicles(flows: FloatArray, *, total: int | None = None, rng: np.random.Generator) -> LongArray:
    """Round flows to whole vehicles by systematic sampling: expectations exact, totals as near as whole numbers can be.

    With one u ~ U[0, 1) and C_i the sum of the first i flows, flow i becomes ⌊C_i + u⌋ − ⌊C_{i−1} + u⌋. So each
    becomes the whole number below or above it, its expectation is the flow itself, and the sum over any run of
    neighbours (all of them; all from one origin, where they lie together) is within 1 of theirs.

    Parameters
    ----------
    flows
        (flows,) float64, not negative, finite.
    total
        Vehicles wanted in all: flows are scaled to it, and it is met exactly. Left out, flows stay as they are.
    rng
        Draws the one u.

    Returns
    -------
    numpy.ndarray
        (flows,) int64.

    Raises
    ------
    ValueError
        If a total is wanted of flows that sum to 0.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling, II, Annals of Mathematical Statistics 20 (1949) 333-354.
    """
    bounds = np.concatenate([[0.0], np.cumsum(flows)])
    if total is not None:
        if total and not bounds[-1] > 0:
            raise ValueError("flows that sum to 0 cannot be scaled")
        # The last bound is the total itself, not what rounding makes of it.
        bounds = bounds / bounds[-1] * total if total else np.zeros_like(bounds)
        bounds[-1] = total
    whole = np.floor(bounds + rng.random()).astype(np.int64)
    return whole[1:] - whole[:-1]


BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SamplingOptions:
    """How much of a table is driven, and when.

    Attributes
    ----------
    duration_s
        Length of the run.
    begin_s
        Second of the file's times at which the run starts.
    share
        Vehicles a trip, above 0.
    vehicles
        Instead of a share: so many in all, in proportion.
    departures
        When trips leave whose file does not say.
    inside
        Which part of those leaves within the run, 0 … 1; the others are left out.
    undrivable
        What becomes of trips between places that are not there, or that no path joins.
    """

    duration_s: float
    begin_s: float = 0.0
    share: float = 1.0
    vehicles: int | None = None
    departures: Departures = "uniform"
    inside: float = 1.0
    undrivable: Literal["refuse", "leave_out"] = "refuse"


def draw_table_trips(
    table: TripTable,
    network: RoadNetwork,
    paths: ShortestPaths,
    taking: SamplingOptions,
    *,
    clock: Clock,
    rng: np.random.Generator,
) -> Demand:
    """Make whole vehicles of a trip table.

    Names in the table are those of zones (nodes with the attribute ``zone``) where the network has one of them, else
    those of nodes; beside zones, what is no zone but a node stands for that node, and is noted. Trips within one zone
    are not driven. Entries become whole vehicles by :func:`~simulator.traffic.demand.trip_sampling.whole_vehicles`.
    Where a zone has several nodes, each vehicle's pair of nodes is drawn evenly from those that a path joins.

    Parameters
    ----------
    table
        Trips between zones or nodes.
    network, paths
        Roads, and shortest paths over them.
    taking
        How much of it, and when.
    clock
        Ticks to seconds.
    rng
        The demand stream.

    Returns
    -------
    Planned
        Trips in the order of departure, without routes.

    Raises
    ------
    TrafficError
        With file and row: trips between places that are not there or not joined, unless those are to be left out; or
        no vehicle is left.
    """
    notes = list(table.notes)
    table, zones, origin, destination = _placed(table, network, paths, taking, notes)
    trips = table.trips
    inside = np.full(len(table), taking.inside)
    if table.from_s is not None and table.to_s is not None:
        inside = _inside(table.from_s, table.to_s, taking)
        if taking.departures != "uniform":
            notes.append(f"{table.title}: departures come from the file; traffic.departures is not used")
    lost = float((trips * (1.0 - inside)).sum())
    if lost > 0:
        notes.append(
            f"{table.title}: {counted(lost, 'trip')} not driven: they depart outside the run, "
            f"{_span(taking)} of the clock of the file or profile"
        )
    trips = trips * inside
    number = _whole(table, trips, taking, rng=rng)
    entry = np.repeat(np.arange(len(table)), number)
    from_node, to_node = _nodes(zones, origin[entry], destination[entry], paths, rng=rng)
    leave_s = _leave(table, entry, taking, rng=rng)
    drawn = Trips.from_unsorted(from_node, to_node, np.floor(leave_s / clock.step_s))
    return Demand(drawn, notes=tuple(notes))


def _placed(
    table: TripTable, network: RoadNetwork, paths: ShortestPaths, taking: SamplingOptions, notes: list[str]
) -> tuple[TripTable, Zones, IntArray, IntArray]:
    """Return those entries that can be driven, the zones, and origin and destination among them."""
    zones = Zones.named_by(table.places, network)
    number = zones.find(table.places)
    origin, destination = number[table.origin], number[table.destination]
    there = (origin >= 0) & (destination >= 0)
    if zones.borrowed:
        named = f"{counted(len(zones.borrowed), 'place')} ({zones.borrowed[0]!r} the first)"
        notes.append(f"{table.title}: no zone of the roads but a node has the name of {named}: it stands for that node")
    faults, left_out = [], []
    if not there.all():
        words = f"there is no such {zones.kind} among the roads"
        faults += _unknown(table, origin, destination, zones)
        left_out.append((words, ~there))
    within = there & (origin == destination)
    drivable = there & ~within
    joined = np.zeros(len(table), dtype=np.bool_)
    joined[drivable] = zones.joined(origin[drivable], destination[drivable], paths)
    apart = drivable & ~joined
    if apart.any():
        faults += _apart(table, apart, zones.kind)
        left_out.append((f"no path leads from one {zones.kind} to the other", apart))
    if faults and taking.undrivable == "refuse":
        faults[-1] += '; undrivable = "leave_out" leaves such trips out and counts them'
        raise TrafficError(faults)
    for words, which in [*left_out, (f"they begin and end in one {zones.kind}", within)]:
        if which.any():
            trips, pairs = counted(float(table.trips[which].sum()), "trip"), counted(int(which.sum()), "pair")
            notes.append(f"{table.title}: {trips} ({pairs}) not driven: {words}")
    if not joined.any():
        trips = counted(table.total, "trip")
        raise TrafficError([f"{table.file}: of {trips}, none can be driven on these roads", *notes])
    return table.kept(joined), zones, origin[joined], destination[joined]


def _unknown(table: TripTable, origin: IntArray, destination: IntArray, zones: Zones) -> list[str]:
    """Name each place that is not there, and where it first stands."""
    first: dict[int, int] = {}
    for ends, found in ((table.origin, origin), (table.destination, destination)):
        lost = np.flatnonzero(found < 0)
        places, at = np.unique(ends[lost], return_index=True)
        for place, entry in zip(places.tolist(), lost[at].tolist(), strict=True):
            if place not in first or table.row[entry] < table.row[first[place]]:
                first[place] = entry
    told = sorted(first.items(), key=lambda item: int(table.row[item[1]]))
    words = f"is no {zones.kind} of the roads, which have {len(zones.names):,}"
    if zones.kind == "zone":
        words += ", and no node"
    return capped([f"{table.name(entry)}: {table.places[place]!r} {words}" for place, entry in told])


def _apart(table: TripTable, apart: BoolArray, kind: str) -> list[str]:
    entries = np.flatnonzero(apart)
    told = entries[np.argsort(table.row[entries], kind="stable")][:SHOWN].tolist()
    faults = [
        f"{table.name(entry)}: {kind} {table.places[table.destination[entry]]} cannot be reached from {kind} "
        f"{table.places[table.origin[entry]]}: no path"
        for entry in told
    ]
    return capped(faults, total=len(entries))


def _inside(from_s: FloatArray, to_s: FloatArray, taking: SamplingOptions) -> FloatArray:
    """Return how much of each entry departs within the run, 0 … 1."""
    begin, end = taking.begin_s, taking.begin_s + taking.duration_s
    length = to_s - from_s
    overlap = np.minimum(to_s, end) - np.maximum(from_s, begin)
    moment = ((from_s >= begin) & (from_s < end)).astype(np.float64)
    part = np.clip(overlap, 0.0, None) / np.where(length > 0, length, 1.0)
    return np.where(length > 0, np.minimum(part, 1.0), moment)


def _span(taking: SamplingOptions) -> str:
    return f"seconds {taking.begin_s:.10g} to {taking.begin_s + taking.duration_s:.10g}"


def _departing(table: TripTable) -> str:
    """Say when the trips of a file with times depart, and what decides where the run is among them."""
    if table.from_s is None or table.to_s is None:
        return ""
    first, last = table.from_s.min(), table.to_s.max()
    return f" of the file's clock (begin_s says where it starts): they depart from second {first:.10g} to {last:.10g}"


def _whole(table: TripTable, trips: FloatArray, taking: SamplingOptions, *, rng: np.random.Generator) -> LongArray:
    total = float(trips.sum())
    if total <= 0:
        raise TrafficError([f"{table.file}: no trip departs within the run, {_span(taking)}{_departing(table)}"])
    if taking.vehicles is not None:
        return whole_vehicles(trips, total=taking.vehicles, rng=rng)
    if fault := too_many(total * taking.share):
        raise TrafficError([f"{table.file}: share × trips: {fault}"])
    number = whole_vehicles(trips * taking.share, rng=rng)
    if not number.any():
        trips_in_all = counted(total, "trip")
        raise TrafficError([f"{table.file}: a share of {taking.share:g} of {trips_in_all} leaves no vehicle"])
    return number


def _nodes(
    zones: Zones, origin: IntArray, destination: IntArray, paths: ShortestPaths, *, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw a pair of nodes for each vehicle, evenly from the pairs that a path joins."""
    from_node, to_node = (zones.draw_nodes(zone, rng=rng) for zone in (origin, destination))
    if zones.of_one_node:
        return from_node, to_node
    pairs, number = np.unique(from_node.astype(np.int64) * paths.nodes + to_node, return_inverse=True)
    start, end = (ends.astype(np.int32) for ends in np.divmod(pairs, paths.nodes))
    # A node may be in a zone and stand for itself too, so both ends can be one node.
    again = np.flatnonzero(~(paths.reached(start, end) & (start != end))[number])
    # What no path joins is drawn again, from the pairs of its zones that one does: so all of those are alike.
    between, group = np.unique(np.stack([origin[again], destination[again]]), axis=1, return_inverse=True)
    for place, (first, last) in enumerate(between.T.tolist()):
        vehicles = again[group.ravel() == place]
        starts, ends = zones.nodes_of(first), zones.nodes_of(last)
        candidates = np.argwhere(np.isfinite(paths.times(starts)[:, ends]) & (starts[:, None] != ends))
        row, column = candidates[rng.integers(len(candidates), size=len(vehicles))].T
        from_node[vehicles], to_node[vehicles] = starts[row], ends[column]
    return from_node, to_node


def _leave(table: TripTable, entry: LongArray, taking: SamplingOptions, *, rng: np.random.Generator) -> FloatArray:
    """Return when each vehicle leaves, seconds of the run."""
    if table.from_s is None or table.to_s is None:
        return draw_departures(len(entry), taking.departures, duration_s=taking.duration_s, rng=rng)
    begin, end = taking.begin_s, taking.begin_s + taking.duration_s
    from_s, to_s = np.maximum(table.from_s, begin)[entry], np.minimum(table.to_s, end)[entry]
    leave = from_s + rng.random(len(entry)) * (to_s - from_s) if np.any(to_s > from_s) else from_s
    return np.minimum(np.maximum(leave - begin, 0.0), np.nextafter(taking.duration_s, 0.0))

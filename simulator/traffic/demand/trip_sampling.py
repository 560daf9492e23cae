"""Vehicles sampled from a trip table: their number, origins, destinations and departures."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.roads.network import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Demand, Departures, draw_departures
from simulator.traffic.demand.trip_table import SHOWN, TripTable, TripZones, capped
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips, too_many


def whole_vehicles(flows: FloatArray, *, total: int | None = None, rng: np.random.Generator) -> IntArray:
    """Round flows to whole vehicles by systematic sampling: unbiased, with totals as near as whole numbers can be.

    With one u ~ U[0, 1) and C_i the sum of the first i flows, flow i becomes ⌊C_i + u⌋ − ⌊C_{i−1} + u⌋. So each flow
    becomes the whole number below or above it, and its expectation is the flow itself. The sum over any consecutive
    flows (all flows, or all flows from one origin if they are adjacent) is within 1 of the exact sum.

    Parameters
    ----------
    flows
        (flows,) float64, not negative, finite.
    total
        Total number of vehicles: flows are scaled to it, and it is met exactly. By default, flows are not scaled.
    rng
        Draws the single u.

    Returns
    -------
    numpy.ndarray
        (flows,) int64.

    Raises
    ------
    ValueError
        If a total is given and the flows sum to 0.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling, II, Annals of Mathematical Statistics 20 (1949) 333-354.
    """
    bounds = np.concatenate([[0.0], np.cumsum(flows)])
    if total is not None:
        if total and not bounds[-1] > 0:
            raise ValueError("flows that sum to 0 cannot be scaled")
        # The last bound must be exactly the total, without rounding error.
        bounds = bounds / bounds[-1] * total if total else np.zeros_like(bounds)
        bounds[-1] = total
    whole = np.floor(bounds + rng.random()).astype(np.int64)
    return whole[1:] - whole[:-1]


@dataclass(frozen=True)
class SamplingOptions:
    """Share or number of a table's trips to simulate, and their departure times.

    Attributes
    ----------
    duration_s
        Length of the run.
    begin_s
        Second of the file's times at which the run starts.
    share
        Vehicles per trip, above 0.
    vehicles
        Total number of vehicles, instead of a share; entries are scaled in proportion.
    departures
        Departure times of trips whose file has none.
    inside
        Share of those trips that departs within the run, 0 … 1; the others are left out.
    undrivable
        Handling of trips between places that do not exist, or that no path joins.
    drawn_s
        Seconds from the start in which departures are drawn for a file that has none; None for the whole run.
    """

    duration_s: float
    begin_s: float = 0.0
    share: float = 1.0
    vehicles: int | None = None
    departures: Departures = "uniform"
    inside: float = 1.0
    undrivable: Literal["refuse", "leave_out"] = "refuse"
    drawn_s: float | None = None


def draw_table_trips(
    table: TripTable,
    network: RoadNetwork,
    paths: ShortestPaths,
    taking: SamplingOptions,
    *,
    clock: Clock,
    rng: np.random.Generator,
) -> Demand:
    """Draw vehicles from a trip table.

    Names in the table refer to its own zones, if it has any; else to zones of the network (nodes with the attribute
    ``zone``) if at least one name is one, else to nodes. If names refer to zones of the network, the name of a node
    that is not a zone stands for that node, and this is
    noted. Trips within one zone are not driven. Entries become whole vehicles by
    :func:`~simulator.traffic.demand.trip_sampling.whole_vehicles`. If a zone has several nodes, each vehicle's pair of
    nodes is drawn evenly from the pairs that a path joins.

    Parameters
    ----------
    table
        Trips between zones or nodes.
    network, paths
        Roads, and shortest paths over them.
    taking
        Share or number of trips, and departure times.
    clock
        Conversion between ticks and seconds.
    rng
        The random stream for demand.

    Returns
    -------
    Demand
        Trips in the order of departure, without routes.

    Raises
    ------
    InputError
        If trips lead between places that do not exist or that no path joins, unless those are to be left out, with
        file and row; or if no vehicle is left.
    """
    notes = list(table.notes)
    table, zones, origin, destination = _placed(table, network, paths, taking, notes)
    trips = table.trips
    inside = np.full(len(table), taking.inside)
    if table.from_s is not None and table.to_s is not None:
        inside = _inside(table.from_s, table.to_s, taking)
        if table.second_0:
            notes.append(f"{table.title}: departures are dates; second 0 of their clock is {table.second_0}")
        if taking.departures != "uniform":
            notes.append(f"{table.title}: departures come from the file; traffic.departures is not used")
    lost = float((trips * (1.0 - inside)).sum())
    if lost > 0:
        notes.append(
            f"{table.title}: {counted(lost, 'trip')} not driven: they depart outside the run, "
            f"{_span(taking)} of the clock of the file or profile"
        )
    trips, vehicle = trips * inside, None
    if table.vehicle is None:
        entry = np.repeat(np.arange(len(table)), _whole(table, trips, taking, rng=rng))
    else:
        entry, vehicle = _with_vehicles(table, rng.random(len(table)) < inside, taking, rng=rng)
    from_node, to_node = _nodes(zones, origin[entry], destination[entry], paths, rng=rng)
    leave_s = _leave(table, entry, taking, rng=rng)
    if vehicle is not None:
        zones_of, nodes_of = np.array([origin[entry], destination[entry]]), np.array([from_node, to_node])
        from_node, to_node = _one_node_each(vehicle, zones_of, nodes_of, paths)
        moved = np.count_nonzero((vehicle[1:] == vehicle[:-1]) & (from_node[1:] != to_node[:-1]))
        if moved:
            begin = counted(int(moved), "trip begins", "trips begin")
            notes.append(f"{table.title}: {begin} at another place than the vehicle's previous trip ends; not driven")
        leave_s = np.asarray(pd.Series(leave_s).groupby(vehicle).cummax(), dtype=np.float64)
    drawn = Trips.from_unsorted(from_node, to_node, np.floor(leave_s / clock.step_s), vehicle)
    return Demand(drawn, notes=tuple(notes), timed=table.from_s is not None)


def _with_vehicles(
    table: TripTable, inside: Mask, taking: SamplingOptions, *, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the entries of the vehicles that are drawn, by vehicle, then by time, and the vehicle of each."""
    order = np.lexsort([key for key in (table.row, table.from_s, table.vehicle) if key is not None])
    rows = order[inside[order]]
    person = np.zeros(0, dtype=np.int64) if table.vehicle is None else pd.factorize(table.vehicle[rows])[0]
    copies = _whole(table, np.ones(person.max(initial=-1) + 1), taking, rng=rng)
    entry, of = np.repeat(rows, copies[person]), np.repeat(person, copies[person])
    again = np.arange(len(entry)) - np.repeat(np.cumsum(copies[person]) - copies[person], copies[person])
    vehicle = (np.cumsum(copies) - copies)[of] + again
    return entry[np.argsort(vehicle, kind="stable")], np.sort(vehicle)


def _one_node_each(vehicle: IntArray, zones: Int32Array, nodes: Int32Array, paths: ShortestPaths) -> Int32Array:
    """Keep, for each vehicle and zone, the node that the vehicle used first, where paths join these nodes.

    `zones` and `nodes` are origins and destinations of trips, (2, trips).
    """
    visited = vehicle * (int(zones.max(initial=0)) + 1) + zones
    _, first, which = np.unique(visited.T.ravel(), return_index=True, return_inverse=True)
    same = nodes.T.ravel()[first[which]].reshape(-1, 2).T
    return np.where((same[0] != same[1]) & paths.reached(same[0], same[1]), same, nodes)


def _placed(
    table: TripTable, network: RoadNetwork, paths: ShortestPaths, taking: SamplingOptions, notes: list[str]
) -> tuple[TripTable, TripZones, Int32Array, Int32Array]:
    """Return the entries that can be driven, the zones, and the zone of each entry's origin and destination."""
    zones = table.zones or TripZones.named_by(table.places, network)
    number = zones.find(table.places)
    origin, destination = number[table.origin], number[table.destination]
    known = (origin >= 0) & (destination >= 0)
    if zones.borrowed:
        named = f"{counted(len(zones.borrowed), 'place')} ({zones.borrowed[0]!r} the first)"
        notes.append(
            f"{table.title}: no zone of the roads but a node has the name of {named}: it is taken as that node"
        )
    within = known & (origin == destination)
    drivable = known & ~within
    joined = np.zeros(len(table), dtype=np.bool_)
    joined[drivable] = zones.joined(origin[drivable], destination[drivable], paths)
    apart = drivable & ~joined
    faults = _unknown(table, origin, destination, zones) + _apart(table, apart, zones.kind)
    if faults and taking.undrivable == "refuse" and zones.kind != "place":
        faults[-1] += '; undrivable = "leave_out" leaves such trips out and counts them'
        raise InputError(faults)
    for words, which in (
        (f"there is no such {zones.kind} among the roads", ~known),
        (f"no path leads from one {zones.kind} to the other", apart),
        (f"they begin and end in one {zones.kind}", within),
    ):
        if which.any():
            trips, pairs = counted(float(table.trips[which].sum()), "trip"), counted(int(which.sum()), "pair")
            notes.append(f"{table.title}: {trips} ({pairs}) not driven: {words}")
    if not joined.any():
        trips = counted(table.total, "trip")
        raise InputError([f"{table.file}: of {trips}, none can be driven on these roads", *notes])
    return table.kept(joined), zones, origin[joined], destination[joined]


def _unknown(table: TripTable, origin: Int32Array, destination: Int32Array, zones: TripZones) -> list[str]:
    """List each place that does not exist, and where it occurs first."""
    ends = pd.DataFrame(
        {
            "place": np.concatenate([table.origin, table.destination]),
            "entry": np.tile(np.arange(len(table)), 2),
            "row": np.tile(table.row, 2),
        }
    )
    lost = ends[np.concatenate([origin, destination]) < 0]
    first = lost.sort_values("row", kind="stable").drop_duplicates("place")
    words = f"is no {zones.kind} of the roads, which have {len(zones.names):,}"
    words += ", and no node" if zones.kind == "zone" else f", such as {zones.names[0]!r}"
    named = first[["place", "entry"]].to_numpy().tolist()
    return capped([f"{table.name(entry)}: {table.places[place]!r} {words}" for place, entry in named])


def _apart(table: TripTable, apart: Mask, kind: str) -> list[str]:
    entries = np.flatnonzero(apart)
    first = entries[np.argsort(table.row[entries], kind="stable")][:SHOWN].tolist()
    faults = [
        f"{table.name(entry)}: {kind} {table.places[table.destination[entry]]} cannot be reached from {kind} "
        f"{table.places[table.origin[entry]]}: no path"
        for entry in first
    ]
    return capped(faults, total=len(entries))


def _inside(from_s: FloatArray, to_s: FloatArray, taking: SamplingOptions) -> FloatArray:
    """Return the share of each entry that departs within the run, 0 … 1."""
    begin, end = taking.begin_s, taking.begin_s + taking.duration_s
    length = to_s - from_s
    overlap = np.minimum(to_s, end) - np.maximum(from_s, begin)
    moment = ((from_s >= begin) & (from_s < end)).astype(np.float64)
    part = np.clip(overlap, 0.0, None) / np.where(length > 0, length, 1.0)
    return np.where(length > 0, np.minimum(part, 1.0), moment)


def _span(taking: SamplingOptions) -> str:
    return f"seconds {taking.begin_s:.10g} to {taking.begin_s + taking.duration_s:.10g}"


def _departing(table: TripTable) -> str:
    """Describe when the trips of a file with times depart, and which setting places the run among them."""
    if table.from_s is None or table.to_s is None:
        return ""
    first, last = table.from_s.min(), table.to_s.max()
    dates = (
        f", where second 0 is {table.second_0} (scenario.start states the date of the run)" if table.second_0 else ""
    )
    interval = f"they depart from second {first:.10g} to {last:.10g}{dates}"
    return f" of the file's clock (begin_s says where it starts): {interval}"


def _whole(table: TripTable, trips: FloatArray, taking: SamplingOptions, *, rng: np.random.Generator) -> IntArray:
    total = float(trips.sum())
    if total <= 0:
        raise InputError([f"{table.file}: no trip departs within the run, {_span(taking)}{_departing(table)}"])
    if taking.vehicles is not None:
        return whole_vehicles(trips, total=taking.vehicles, rng=rng)
    if fault := too_many(total * taking.share):
        raise InputError([f"{table.file}: share × trips: {fault}"])
    number = whole_vehicles(trips * taking.share, rng=rng)
    if not number.any():
        trips_in_all = counted(total, "trip")
        raise InputError([f"{table.file}: a share of {taking.share:g} of {trips_in_all} leaves no vehicle"])
    return number


def _nodes(
    zones: TripZones, origin: Int32Array, destination: Int32Array, paths: ShortestPaths, *, rng: np.random.Generator
) -> tuple[Int32Array, Int32Array]:
    """Draw a pair of nodes for each vehicle, evenly from the pairs that a path joins."""
    from_node, to_node = (zones.draw_nodes(zone, rng=rng) for zone in (origin, destination))
    if zones.of_one_node:
        return from_node, to_node
    pairs, number = np.unique(from_node.astype(np.int64) * paths.nodes + to_node, return_inverse=True)
    start, end = (ends.astype(np.int32) for ends in np.divmod(pairs, paths.nodes))
    # A node may be in a zone and also stand for itself, so both ends can be the same node.
    again = np.flatnonzero(~(paths.reached(start, end) & (start != end))[number])
    # An unconnected pair is drawn again from the connected pairs of its zones, so all of those are equally likely.
    between, group = np.unique(np.stack([origin[again], destination[again]]), axis=1, return_inverse=True)
    for place, (first, last) in enumerate(between.T.tolist()):
        vehicles = again[group.ravel() == place]
        starts, ends = zones.nodes_of(first), zones.nodes_of(last)
        candidates = np.argwhere(np.isfinite(paths.times(starts)[:, ends]) & (starts[:, None] != ends))
        row, column = candidates[rng.integers(len(candidates), size=len(vehicles))].T
        from_node[vehicles], to_node[vehicles] = starts[row], ends[column]
    return from_node, to_node


def _leave(table: TripTable, entry: IntArray, taking: SamplingOptions, *, rng: np.random.Generator) -> FloatArray:
    """Return the departure time of each vehicle, seconds of the run."""
    if table.from_s is None or table.to_s is None:
        duration_s = taking.duration_s if taking.drawn_s is None else taking.drawn_s
        return draw_departures(len(entry), taking.departures, duration_s=duration_s, rng=rng)
    begin, end = taking.begin_s, taking.begin_s + taking.duration_s
    from_s, to_s = np.maximum(table.from_s, begin)[entry], np.minimum(table.to_s, end)[entry]
    leave = from_s + rng.random(len(entry)) * (to_s - from_s) if np.any(to_s > from_s) else from_s
    return np.minimum(np.maximum(leave - begin, 0.0), np.nextafter(taking.duration_s, 0.0))

"""Static traffic assignment: user equilibrium under BPR volume-delay functions, and a network's published flows.

The equilibrium is found by the conjugate Frank-Wolfe method; the relative gap states how far volumes are from it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, Mask
from simulator.files.errors import InputError
from simulator.roads.network import Links, RoadNetwork
from simulator.traffic.demand.trip_table import capped
from simulator.traffic.paths import ShortestPaths

LEAST_TIME_S = 1e-6
"""Replaces a time of 0, which connectors may have: the shortest-path search needs a positive time on every link."""

MOST_POWER = 50.0
"""Published networks have powers up to 17."""
MOST_LOAD = 1e5
"""Ratio of volume to capacity above which time no longer rises: raised to `MOST_POWER` it is still finite."""

_STEEPEST = 1e100

_ATTRIBUTES = ("free_flow_s", "capacity_total_vph", "bpr_b", "bpr_power")


@dataclass(frozen=True, eq=False)
class Bpr:
    """Link travel times t(v) = t₀ · (1 + b · (v / c)^p) (Bureau of Public Roads, Traffic Assignment Manual, 1964).

    Tolls and distances, which some networks add to this cost, are left out.

    Attributes
    ----------
    free_flow_s
        (links,) float64, t₀ in seconds, above 0.
    capacity
        (links,) float64, c: vehicles in the period the volumes refer to. Unlike in a queue model, it is not a limit:
        at capacity, time is longer by the share b, and it keeps rising beyond.
    b, power
        (links,) float64, 0 or more.
    """

    free_flow_s: FloatArray
    capacity: FloatArray
    b: FloatArray
    power: FloatArray

    @classmethod
    def from_network(cls, roads: RoadNetwork, *, hours: float) -> "Bpr":
        """Return the BPR functions stored in a network, for volumes over `hours` hours.

        Raises
        ------
        InputError
            If a link has no BPR function, or its power is above `MOST_POWER`.
        """
        columns = np.full((len(roads.links), len(_ATTRIBUTES)), np.nan)
        for start, end, data in roads.graph.edges(data=True):
            lacking = [name for name in _ATTRIBUTES if name not in data]
            if lacking:
                raise InputError([f"link from {start!r} to {end!r}: {', '.join(lacking)} is missing: no BPR function"])
            if data["bpr_power"] > MOST_POWER:
                rule = f"bpr_power must be at most {MOST_POWER:g}, got {data['bpr_power']:g}"
                raise InputError([f"link from {start!r} to {end!r}: {rule}"])
            columns[data["link"]] = [data[name] for name in _ATTRIBUTES]
        free_flow_s, capacity_vph, b, power = columns.T
        # A link without a capacity never slows down.
        return cls(
            np.maximum(free_flow_s, LEAST_TIME_S),
            np.where(capacity_vph > 0, capacity_vph * hours, 1.0),
            np.where(capacity_vph > 0, b, 0.0),
            power.copy(),
        )

    def time_s(self, volume: FloatArray) -> FloatArray:
        """Return the seconds needed to cross each link, (links,)."""
        return np.asarray(self.free_flow_s * (1.0 + self.b * self.load(volume) ** self.power))

    def load(self, volume: FloatArray) -> FloatArray:
        """Return volume divided by capacity, (links,), at most `MOST_LOAD`."""
        with np.errstate(over="ignore"):
            return np.minimum(volume / self.capacity, MOST_LOAD)

    def slope(self, volume: FloatArray) -> FloatArray:
        """Return the increase in each link's time per additional vehicle, (links,) seconds."""
        with np.errstate(divide="ignore", over="ignore"):
            rise = self.load(volume) ** (self.power - 1.0)
            rise = np.where(self.power > 0, np.where(np.isfinite(rise), rise, 0.0), 0.0)
            return np.minimum(self.free_flow_s * self.b * self.power / self.capacity * rise, _STEEPEST)

    def __len__(self) -> int:
        return len(self.free_flow_s)


@dataclass(frozen=True, eq=False)
class OdPairs:
    """Origin-destination pairs, each once, sorted by origin and destination; all join two nodes and have trips.

    Attributes
    ----------
    origin, destination
        (pairs,) int32, node indices.
    trips
        (pairs,) float64, above 0; not necessarily whole.
    """

    origin: Int32Array
    destination: Int32Array
    trips: FloatArray

    @classmethod
    def summed(cls, origin: Int32Array, destination: Int32Array, trips: FloatArray) -> "OdPairs":
        """Add up the trips of each pair; omit pairs with equal origin and destination, and pairs without trips."""
        moving = (origin != destination) & (trips > 0)
        ends = np.stack([origin[moving], destination[moving]]).astype(np.int32)
        pairs, of = np.unique(ends, axis=1, return_inverse=True)
        summed = np.bincount(of.ravel(), weights=trips[moving], minlength=pairs.shape[1]).astype(np.float64)
        return cls(pairs[0], pairs[1], summed)

    @property
    def total(self) -> float:
        """Total number of trips."""
        return float(self.trips.sum())

    def __len__(self) -> int:
        return len(self.trips)

    def __repr__(self) -> str:
        return f"<OdPairs: {self.total:,g} trips between {len(self):,} pairs>"


def load_shortest(
    time_s: FloatArray,
    pairs: OdPairs,
    *,
    links: Links,
    through: Mask | None = None,
    banned: Int32Array | None = None,
) -> FloatArray:
    """Return the volumes with all trips on the shortest paths at given link times (all-or-nothing assignment).

    Parameters
    ----------
    time_s
        (links,) seconds, above 0.
    pairs
        The trips.
    links
        The network.
    through
        (nodes,) bool: whether paths may pass through a node; by default, through every node.
    banned
        (turns, 2) int32: pairs of links that no path has one after the other; by default, none.

    Returns
    -------
    numpy.ndarray
        (links,) float64, vehicles.

    Raises
    ------
    NoPathError
        If no path joins some pair.
    """
    routes = ShortestPaths(links, through=through, banned=banned, time_s=time_s).routes(pairs.origin, pairs.destination)
    along = np.repeat(pairs.trips, np.diff(routes.offsets))
    return np.bincount(routes.links, weights=along, minlength=len(links)).astype(np.float64)


def relative_gap(
    volume: FloatArray,
    bpr: Bpr,
    pairs: OdPairs,
    *,
    links: Links,
    through: Mask | None = None,
    banned: Int32Array | None = None,
) -> float:
    """Return the relative excess of total travel time over that on the shortest paths at the same link times.

    (Σ v·t(v) − Σ d·shortest) / Σ d·shortest: 0 in a user equilibrium, where no trip has a quicker path (Wardrop's first
    principle), and above 0 for any other volumes that carry these trips. Below 0 the volumes cannot carry all trips.

    Parameters
    ----------
    volume
        (links,) vehicles.
    bpr
        Travel times by volume.
    pairs
        The trips that the volumes carry.
    links, through, banned
        As in `load_shortest`.
    """
    time_s = bpr.time_s(volume)
    return _excess(volume, load_shortest(time_s, pairs, links=links, through=through, banned=banned), time_s)


def _excess(volume: FloatArray, loaded: FloatArray, time_s: FloatArray) -> float:
    """Return the relative excess of the total travel time of `volume` over the time of `loaded`."""
    shortest_s = float(loaded @ time_s)
    return (float(volume @ time_s) - shortest_s) / shortest_s


_MOST_OF_THE_OLD = 0.99
"""Maximum share of the previous target in the next one: with a share of 1 the target would not change."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Volumes near a user equilibrium.

    Attributes
    ----------
    volume
        (links,) float64, vehicles.
    gap
        Relative gap of the volumes, see `relative_gap`.
    iterations
        Steps taken.
    """

    volume: FloatArray
    gap: float
    iterations: int


def find_equilibrium(
    bpr: Bpr,
    pairs: OdPairs,
    *,
    links: Links,
    through: Mask | None = None,
    banned: Int32Array | None = None,
    gap: float = 1e-4,
    iterations: int = 1000,
) -> Equilibrium:
    """Assign trips so that nearly every trip is on a shortest path at the resulting travel times.

    The conjugate Frank-Wolfe method (Mitradjieva and Lindberg, "The stiff is moving", Transportation Science 47(2),
    2013) is used. Each step assigns all trips to the paths that are shortest at the current volumes, and mixes this
    loading with the previous target so that the two directions are conjugate. It then moves towards the mixture until
    Beckmann's objective no longer falls.

    Parameters
    ----------
    bpr
        Travel times by volume.
    pairs
        The trips.
    links, through, banned
        As in `load_shortest`.
    gap
        Relative gap to stop at.
    iterations
        Maximum number of steps, whether `gap` is reached or not.

    Raises
    ------
    NoPathError
        If no path joins some pair.
    """
    volume = load_shortest(bpr.time_s(np.zeros(len(bpr))), pairs, links=links, through=through, banned=banned)
    target: FloatArray | None = None
    taken = 0
    while True:
        time_s = bpr.time_s(volume)
        loaded = load_shortest(time_s, pairs, links=links, through=through, banned=banned)
        reached = _excess(volume, loaded, time_s)
        if reached <= gap or taken == iterations:
            return Equilibrium(volume, reached, taken)
        target = _conjugate(volume, target, loaded, bpr.slope(volume))
        if (target - volume) @ time_s >= 0:
            target = loaded
        step = _best_step(bpr, volume, target - volume)
        volume = volume + step * (target - volume)
        target = None if step == 1.0 else target
        taken += 1


def _conjugate(volume: FloatArray, before: FloatArray | None, loaded: FloatArray, slope: FloatArray) -> FloatArray:
    """Mix the previous target with the new loading so that the new direction is conjugate to the previous one."""
    if before is None:
        return loaded
    bend = (before - volume) * slope
    across = float(bend @ (loaded - before))
    share = float(bend @ (loaded - volume)) / across if across != 0.0 else 0.0
    share = min(max(share, 0.0), _MOST_OF_THE_OLD)
    return share * before + (1.0 - share) * loaded


def _best_step(bpr: Bpr, volume: FloatArray, way: FloatArray) -> float:
    """Return the step along `way`, 0 to 1, that minimizes Beckmann's objective: where its slope is 0."""
    from scipy.optimize import brentq  # noqa: PLC0415 - half a second, for comparisons with published flows only

    def slope(step: float) -> float:
        # Rounding must not turn a volume of 0 into a negative volume.
        return float(bpr.time_s(np.maximum(volume + step * way, 0.0)) @ way)

    if slope(1.0) <= 0.0:
        return 1.0
    return float(brentq(slope, 0.0, 1.0, xtol=1e-12)) if slope(0.0) < 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class PublishedFlows:
    """Volume and cost of every link, as published.

    Attributes
    ----------
    volume
        (links,) float64, vehicles in the period the trips refer to.
    cost
        (links,) float64, in the file's unit of time.
    left_out
        Rows of the file for links in a part of the network that was not read.
    """

    volume: FloatArray
    cost: FloatArray
    left_out: int

    @classmethod
    def matched(cls, table: pd.DataFrame, roads: RoadNetwork, *, file: str) -> "PublishedFlows":
        """Match rows `from`, `to`, `volume`, `cost` to links; parallel links are matched in the order of the file.

        Raises
        ------
        InputError
            If a link has no flow, or a flow between two existing nodes has no link.
        """
        node = {name: number for number, name in enumerate(roads.node_names)}
        key = ["from_node", "to_node", "nth"]
        flows = table.assign(from_node=table["from"].map(node), to_node=table["to"].map(node)).dropna(subset=key[:2])
        links = pd.DataFrame({"from_node": roads.links.from_node, "to_node": roads.links.to_node})
        for frame in (flows, links):
            frame["nth"] = frame.groupby(key[:2]).cumcount()
        joined = flows.merge(links, how="left", on=key, indicator=True)
        surplus = joined[joined["_merge"] == "left_only"]
        faults = [
            f"a flow from node {start} to node {end}, but there is no further link between them"
            for start, end in zip(surplus["from"], surplus["to"], strict=True)
        ]
        matched = links.merge(flows, how="left", on=key)
        faults += [
            f"no flow for the link from node {roads.node_names[start]} to node {roads.node_names[end]}"
            for start, end in links.loc[matched["volume"].isna(), key[:2]].to_numpy().tolist()
        ]
        if faults:
            raise InputError(capped([f"{file}: {fault}" for fault in faults]))
        volume, cost = matched[["volume", "cost"]].to_numpy(dtype=np.float64).T.copy()
        return cls(volume, cost, len(table) - len(flows))


def read_flows(file: Path) -> pd.DataFrame:
    """Return the rows `from`, `to`, `volume`, `cost` of a published equilibrium; headers and metadata are left out."""
    rows = [line.replace(":", " ").replace(";", " ").split() for line in file.read_text("utf-8").splitlines()]
    numbers = [row[:4] for row in rows if len(row) >= 4 and row[0].isdecimal()]
    table = pd.DataFrame(numbers, columns=["from", "to", "volume", "cost"])
    return table.astype({"from": int, "to": int, "volume": float, "cost": float})

"""Trip tables: the number of trips between places, and the network nodes that stand for the places."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.arrays import FloatArray, Int32Array, IntArray, Mask
from simulator.files.messages import counted
from simulator.files.tables import identifier_list, identifiers
from simulator.roads.network import RoadNetwork
from simulator.traffic.paths import ShortestPaths

SHOWN = 20
"""Maximum number of faults of one kind that are listed individually."""
_ENTRY_COLUMNS = ("origin", "destination", "trips", "row", "from_s", "to_s", "vehicle")


@dataclass(frozen=True, eq=False)
class TripTable:
    """Trips between named places, sorted by origin and destination.

    Attributes
    ----------
    file
        File the trips were read from, for messages.
    places
        Names of places, as written in the file.
    origin, destination
        (entries,) int32, indices of `places`.
    trips
        (entries,) float64, 0 or more; not necessarily whole.
    row
        (entries,) int64, row or line of the file; for a summed entry, the first one.
    unit
        "row" or "line".
    from_s, to_s
        (entries,) float64: interval in which these trips depart, evenly; equal if all depart at one moment. None if the
        file has no times.
    notes
        Notes on what was read, left out and summed.
    zones
        What `places` refer to; None for zones or nodes of the roads.
    second_0
        Date and time of second 0 of `from_s` and `to_s`, if the file has dates.
    vehicle
        (entries,) int64: number of the vehicle, or person, that makes the trip; None if the file does not state it.
    """

    file: str
    places: list[str]
    origin: Int32Array
    destination: Int32Array
    trips: FloatArray
    row: IntArray
    unit: str = "row"
    from_s: FloatArray | None = None
    to_s: FloatArray | None = None
    notes: list[str] = field(default_factory=list)
    zones: "TripZones | None" = None
    second_0: str = ""
    vehicle: IntArray | None = None

    def sorted(self) -> "TripTable":
        """Sort entries by origin, destination and time."""
        keys = [self.row, self.to_s, self.from_s, self.destination, self.origin]
        return self.kept(np.lexsort([key for key in keys if key is not None]))

    def summed(self) -> "TripTable":
        """Sort entries, add up those that differ only in their trips, and note how many those were."""
        table = self.sorted()
        keys = {name: getattr(table, name) for name in ("origin", "destination", "from_s", "to_s")}
        keys = {name: values for name, values in keys.items() if values is not None}
        first = ~pd.DataFrame(keys).duplicated().to_numpy(dtype=np.bool_)
        if first.all():
            return table
        again = table.row[~first]
        table.notes.append(
            f"{table.title}: {counted(len(again), table.unit)}, {table.unit} {again.min():,} the first, with the "
            f"origin, destination and time of an earlier one: their trips are added up"
        )
        totals = np.add.reduceat(table.trips, np.flatnonzero(first))
        return replace(table.kept(first), trips=totals)

    @property
    def title(self) -> str:
        """Name of the file without its folders, because notes are read elsewhere."""
        return Path(self.file).name

    @property
    def total(self) -> float:
        """Total number of trips, those within a place included."""
        return float(self.trips.sum())

    def kept(self, which: Mask | npt.NDArray[np.intp]) -> "TripTable":
        """Return a table of the entries that a mask selects, or of those with the given indices in their order."""
        columns = {name: getattr(self, name) for name in _ENTRY_COLUMNS}
        return replace(self, **{name: values[which] for name, values in columns.items() if values is not None})

    def name(self, entry: int) -> str:
        """Return the file and row of an entry, for messages."""
        return f"{self.file}: {self.unit} {int(self.row[entry])}"

    def __len__(self) -> int:
        return len(self.trips)

    def __repr__(self) -> str:
        return f"<TripTable: {self.total:,g} trips in {len(self):,} entries between {len(self.places):,} places>"


def capped(faults: Sequence[str], *, total: int | None = None) -> list[str]:
    """Return the first faults, and a line with the number of further faults."""
    count = len(faults) if total is None else total
    shown = list(faults[:SHOWN])
    return shown if count <= len(shown) else [*shown, f"… and {count - len(shown):,} more like these"]


@dataclass(frozen=True, eq=False)
class TripZones:
    """Origins and destinations of trips, each consisting of one or more nodes.

    Attributes
    ----------
    names
        Distinct names, as text.
    offsets
        (zones + 1,) int64; the nodes of zone i are nodes[offsets[i]:offsets[i + 1]], at least one.
    nodes
        Node indices, int32.
    kind
        "zone", "node" or, of points that lie at nodes, "place": what the names refer to.
    borrowed
        Names that refer to a node although the other names refer to zones.
    """

    names: list[str]
    offsets: IntArray
    nodes: Int32Array
    kind: str
    borrowed: tuple[str, ...] = ()

    @classmethod
    def of_zones(cls, network: RoadNetwork) -> "TripZones":
        """Return the zones of a network: nodes with the same attribute ``zone`` form one zone; there may be none."""
        return cls.of_nodes(data.get("zone") for data in network.nodes.values())

    @classmethod
    def of_nodes(cls, names: Iterable[object]) -> "TripZones":
        """Return zones by the name of the zone of each node, None for nodes that are in none."""
        carried = identifiers(names)
        zone, known = carried.codes, carried.categories
        nodes = np.argsort(zone, kind="stable")[np.count_nonzero(zone < 0) :].astype(np.int32)
        sizes = np.bincount(zone[zone >= 0], minlength=len(known))
        return cls(known.tolist(), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), nodes, "zone")

    @classmethod
    def named_by(cls, names: Sequence[str], network: RoadNetwork) -> "TripZones":
        """Return what the names refer to: zones, if at least one name is a zone, else nodes.

        If names refer to zones, the name of a node that is not a zone stands for that node: some files use node numbers
        for the centroids at the edge of a region. See `borrowed`.
        """
        zones, nodes = cls.of_zones(network), identifier_list(network.node_names)
        known = set(zones.names)
        if not known & set(names):
            each = np.arange(len(nodes) + 1, dtype=np.int64)
            return cls(nodes, each, each[:-1].astype(np.int32), "node")
        at = {name: node for node, name in enumerate(nodes)}
        extra = [name for name in dict.fromkeys(names) if name not in known and name in at]
        return cls(
            zones.names + extra,
            np.concatenate([zones.offsets, zones.offsets[-1] + 1 + np.arange(len(extra), dtype=np.int64)]),
            np.concatenate([zones.nodes, np.array([at[name] for name in extra], dtype=np.int32)]),
            "zone",
            borrowed=tuple(extra),
        )

    @property
    def of_one_node(self) -> bool:
        """Whether every zone consists of one node."""
        return len(self.nodes) == len(self.names)

    def find(self, names: Sequence[str]) -> Int32Array:
        """Return the index of the zone of each name, (names,) int32; −1 where there is none."""
        at = {name: number for number, name in enumerate(self.names)}
        return np.array([at.get(name, -1) for name in names], dtype=np.int32)

    def draw_nodes(self, zone: Int32Array, *, rng: np.random.Generator) -> Int32Array:
        """Draw a node of each zone, evenly, (n,) int32; nothing is drawn if every zone consists of one node."""
        if self.of_one_node:
            return self.nodes[zone]
        size = np.diff(self.offsets)[zone]
        # A draw of u close to 1 must not round up to the next zone.
        step = np.minimum((rng.random(len(zone)) * size).astype(np.int64), size - 1)
        drawn: Int32Array = self.nodes[self.offsets[zone] + step]
        return drawn

    def nodes_of(self, zone: int) -> Int32Array:
        """Return the nodes of one zone."""
        return self.nodes[self.offsets[zone] : self.offsets[zone + 1]]

    def joined(self, origin: Int32Array, destination: Int32Array, paths: ShortestPaths) -> Mask:
        """Return whether a path leads from a node of each origin to another node of the corresponding destination."""
        found = np.zeros(len(origin), dtype=np.bool_)
        by_origin = np.argsort(origin, kind="stable")
        bounds = np.searchsorted(origin[by_origin], np.arange(len(self.names) + 1))
        for zone, node, times in self._times(np.unique(origin), paths):
            others = np.isfinite(times) & (self.nodes != node)
            reached = np.add.reduceat(others, self.offsets[:-1], dtype=np.int64)
            pairs = by_origin[bounds[zone] : bounds[zone + 1]]
            found[pairs] |= reached[destination[pairs]] > 0
        return found

    def mean_times(self, zone: Int32Array, paths: ShortestPaths) -> FloatArray:
        """Return the mean shortest time between the nodes of two zones, over the pairs of nodes that a path joins.

        Parameters
        ----------
        zone
            (n,) int32: indices of the zones.
        paths
            Shortest paths of the network.

        Returns
        -------
        numpy.ndarray
            (n, n) float64, seconds; inf where there is no path.
        """
        total = np.zeros((len(zone), len(zone)))
        count = np.zeros((len(zone), len(zone)))
        at = {number: place for place, number in enumerate(zone.tolist())}
        for number, node, times in self._times(zone, paths):
            finite = np.isfinite(times) & (self.nodes != node)
            total[at[number]] += np.add.reduceat(np.where(finite, times, 0.0), self.offsets[:-1])[zone]
            count[at[number]] += np.add.reduceat(finite.astype(np.float64), self.offsets[:-1])[zone]
        return np.where(count > 0, total / np.maximum(count, 1.0), np.inf)

    def _times(self, zones: Int32Array, paths: ShortestPaths) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield, for every node of some zones, its zone, its index and its shortest times to `nodes`."""
        member_of: dict[int, list[int]] = {}
        for zone in zones.tolist():
            for node in self.nodes_of(zone).tolist():
                member_of.setdefault(node, []).append(zone)
        for block in paths.blocks(np.array(list(member_of), dtype=np.int32)):
            times = paths.times(block)
            for row, node in enumerate(block.tolist()):
                for zone in member_of[node]:
                    yield zone, node, times[row, self.nodes]

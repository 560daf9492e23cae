"""Raw networks: the tables that every reader of a road format returns, and the network that is made of them.

A reader knows its format only. `build` is responsible for units, projection, directions, defaults, checks and notes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyproj
import shapely

from simulator.files.errors import InputError, positive_faults
from simulator.files.messages import Note, counted, numbers_in_words, warning
from simulator.files.tables import Table
from simulator.roads.class_defaults import class_defaults, filled_in_words
from simulator.roads.connectivity import Loss, largest_part_for_trips, largest_strong_component, lost_zones
from simulator.roads.driving_side import side_of
from simulator.roads.movements import movement_table, renumbered, signal_table
from simulator.roads.network import RoadNetwork
from simulator.roads.plausibility import check_axes, length_warnings, shape_warnings, speed_warnings
from simulator.roads.projection import WGS84, Projection, distances, transform, true_plane
from simulator.roads.read_report import SHOWN_ZONES, DroppedRows, FilledDefault, ReadReport, usable_rows
from simulator.roads.schema import crs_faults
from simulator.roads.surroundings import surroundings_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import networkx as nx
    from numpy.typing import NDArray


SHORTEST_M = 1.0
"""Length of a link that has neither a length nor a shape, and whose nodes have the same position."""
_SPACING_M = 200.0
"""Distance of neighbours where nodes have no coordinates."""
_FAR_M = 1000.0
_MOST_FAULTS = 20
_LINK_COLUMNS = frozenset(
    {"from", "to", "key", "length", "speed", "lanes", "capacity", "shape", "direction", "two_way"}
)
_STATED_BY = {"speed_mps": ("speed", "free_flow_s"), "lanes": ("lanes",), "capacity_vph": ("capacity",)}
"""Columns that state a value; a default is no news where the files have none of them."""
_UNITS = {"speed_mps": " m/s", "lanes": "", "capacity_vph": " vehicles/h/lane"}


class Defaults(NamedTuple):
    """Values of links for which the file has none.

    Attributes
    ----------
    speed_mps
        Free-flow speed, metres per second.
    lanes
        Lanes.
    capacity_vph
        Vehicles per hour and lane.
    by_class
        Whether the default of the class of road, if it has one, comes first (:mod:`simulator.roads.class_defaults`).
    """

    speed_mps: float = 13.9
    lanes: float = 1
    capacity_vph: float = 1800.0
    by_class: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RawNetwork:
    """A road network as its files state it.

    Parameters
    ----------
    nodes
        ``node`` (its key, of any hashable type), ``x`` and ``y`` in `crs`. Any other column is an attribute of nodes,
        such as ``zone`` and ``through``; None where a node has none.
    links
        ``from`` and ``to``: rows of `nodes`, from 0. The other columns are optional: ``length`` in units of `length_m`,
        ``speed`` in units of `speed_mps`, ``lanes`` and ``capacity`` (vehicles per hour and lane), NaN or 0 where the
        file has none; ``shape`` (a line in `crs`, or None); ``direction`` (1 if the shape runs from the first node to
        the last, -1 if in the opposite direction, 0 if the file does not state it); ``two_way`` (whether the link is a
        road for each direction); ``key`` (of a parallel link, or None). Speeds may be stated by ``free_flow_s``,
        seconds. Any other column is an attribute of links, such as ``class`` and ``name``. The index has the number of
        each row in the file.
    crs
        The system of the coordinates.
    file
        Name of the file of links, in notes.
    node_table
        Rows of the file of nodes, whose places are then checked and projected to `project_to`; None for places that are
        in metres already.
    axes
        Names of the two coordinates in that file.
    movements, signals
        Tables of :mod:`simulator.roads.movements`, in which a link is a label of the index of `links`, and ``node`` a
        row of `nodes`; empty where the source has none.
    length_m, speed_mps
        One unit of length in metres, and one of speed in metres per second.
    project_to
        A projected system in metres; the UTM zone of the network's middle if None.
    crs_named
        Whether the file or the user states `crs`; if not, lengths that do not fit it are a fault.
    placed
        Whether the places of nodes are real; distances between others are not used.
    without_places
        How the user has the roads read without places, for messages; empty if there is no such way.
    defaults
        Values of links for which the file has none.
    keep
        "strong" for the largest part in which every node can be reached from every other; "trips" for the largest part
        whose nodes are connected by routes; "all" for everything, with a remark on what is outside the largest part;
        "whole" for everything, without.
    loss
        What the reader has left out, if it reduced the network to its largest part itself.
    node_rows, link_rows, row
        Numbers of nodes and links in the files, and the word for a link; by default the tables' numbers.
    unit
        What the numbers of rows count: "row" or "line".
    dropped, filled, remarks, warnings
        What the reader has noticed.
    driving_side
        "left" or "right", if the file or the scenario states the side of the road on which traffic drives; None for the
        side of the country in which the network is.
    features
        Water and places, for :func:`~simulator.roads.surroundings.surroundings_of`.
    """

    nodes: pd.DataFrame
    links: pd.DataFrame
    crs: object
    file: str
    node_table: Table | None = None
    axes: tuple[str, str] = ("x", "y")
    movements: pd.DataFrame = field(default_factory=movement_table)
    signals: pd.DataFrame = field(default_factory=signal_table)
    length_m: float = 1.0
    speed_mps: float = 1.0
    project_to: object = None
    crs_named: bool = True
    placed: bool = True
    without_places: str = ""
    defaults: Defaults = field(default_factory=Defaults)
    keep: Literal["strong", "trips", "all", "whole"] = "strong"
    loss: Loss | None = None
    node_rows: int | None = None
    link_rows: int | None = None
    row: str = "link"
    unit: str = "row"
    dropped: Sequence[DroppedRows] = ()
    filled: Sequence[FilledDefault] = ()
    remarks: Sequence[str] = ()
    warnings: Sequence[Note] = ()
    features: Sequence[tuple[Mapping[str, str], shapely.Geometry]] = ()
    driving_side: str | None = None

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of `links`, float64, shape (links,); NaN if there is none."""
        if name not in self.links:
            return np.full(len(self.links), np.nan)
        return self.links[name].to_numpy(dtype=np.float64)


def in_a_square(number: int) -> NDArray[np.float64]:
    """Return metres of nodes without places, (number, 2): in a square, in their order, from west to east."""
    at, side = np.arange(number), math.isqrt(max(number - 1, 0)) + 1
    return np.column_stack((at % side, at // side)).astype(np.float64) * _SPACING_M


def no_places(file: str, why: str) -> Note:
    """Return the warning that nodes are in a square."""
    square = "they are in a square in the order of their numbers; maps show no real places"
    return warning("no_places", f"{file}: {why}: {square}")


def column_of(values: Iterable[Any], index: NDArray[np.int64] | None = None) -> pd.Series[Any]:
    """Return values of any type as a column, in which None stays None."""
    return pd.Series(list(values), dtype="object", index=index)


def build(raw: RawNetwork) -> tuple[RoadNetwork, ReadReport]:
    """Make a network of tables: convert units, project, fill in missing values, check, and keep the part asked for.

    A length that is missing or 0 is replaced by the length of the link's shape, else by the straight distance between
    its nodes if that is at least 1 m, else by 1 m. Where the files have no lengths at all, they are the straight
    distances, and links between two nodes at the same position are dropped.

    Parameters
    ----------
    raw
        The tables.

    Returns
    -------
    network : RoadNetwork
        In a projected system in metres.
    report : ReadReport
        What was dropped, filled in and lost, and warnings.

    Raises
    ------
    InputError
        If places, lengths, units, defaults or other values cannot be used, or nothing is left of the network.
    """
    speed_mps, lanes, capacity_vph, _ = raw.defaults
    stated = {"length_m": raw.length_m, "speed_mps": speed_mps, "lanes": lanes, "capacity_vph": capacity_vph}
    if faults := positive_faults(**stated):
        raise InputError(faults)
    xy = raw.nodes[["x", "y"]].to_numpy(dtype=np.float64)
    projection = _projection(raw, xy)
    node_xy = xy if projection.target == projection.source else projection.metres(xy)
    raw, dropped = _without_lengths(raw, node_xy)
    start, end = (raw.links[name].to_numpy(dtype=np.int64) for name in ("from", "to"))
    straight_m = distances(node_xy[start], node_xy[end]) * raw.placed
    lines, shape_warning = _shapes(raw, projection, node_xy)
    shape_m = np.array([np.nan if line is None else line.length for line in lines])
    with np.errstate(over="ignore"):  # numbers that overflow are faults below
        given_m = raw.numbers("length") * raw.length_m
    warnings = [*raw.warnings]
    if raw.node_table is not None:
        if projection.source.is_geographic:
            rule = f"{raw.axes[0]} must be longitude and {raw.axes[1]} latitude"
            check_axes(raw.node_table, xy, start, end, np.nan_to_num(raw.numbers("length")), rule=rule)
        units = None if raw.crs_named else distances(xy[start], xy[end])
        warnings += projection.warnings(xy, file=raw.node_table.file)
        # A shape may end at the edge of a junction and is then shorter than the distance between its nodes.
        warnings += length_warnings(
            given_m, np.fmin(straight_m, shape_m), file=raw.file, units=units, without=raw.without_places
        )
    fitting_m = np.clip(given_m, shape_m, np.fmax(shape_m, straight_m))
    warnings += [*shape_warnings(given_m, fitting_m, file=raw.file), *shape_warning]
    values, given_mps, filled, words = _values(raw, given_m, shape_m, straight_m)
    warnings += speed_warnings(given_mps, values["length_m"], file=raw.file)
    graph, edges = _graph(raw, projection.target, node_xy, lines, values)
    part, loss = _kept(graph, raw)
    network = _with_movements(RoadNetwork.from_graph(part), raw, edges)
    network = replace(network, side=side_of(network.node_xy, network.crs, raw.driving_side))
    if raw.features:
        network = replace(network, surroundings=surroundings_of(raw.features, network))
    zones = lost_zones(graph, part)
    report = ReadReport(
        links_file=raw.file,
        node_rows=len(raw.nodes) if raw.node_rows is None else raw.node_rows,
        link_rows=len(raw.links) if raw.link_rows is None else raw.link_rows,
        row=raw.row,
        dropped=(*raw.dropped, *dropped),
        defaults=(*filled, *raw.filled),
        remarks=[
            *projection.notes,
            *words,
            *raw.remarks,
            *([str(network.side)] if network.side.left else []),
            *_remarks(raw, graph, network, loss, zones),
        ],
        loss=loss,
        lost_zones=zones,
        nodes=len(network.node_names),
        links=len(network.links),
        warnings=tuple(warnings),
    )
    return network, report


def _projection(raw: RawNetwork, xy: NDArray[np.float64]) -> Projection:
    """Choose the plane of the network."""
    if raw.node_table is not None:
        return Projection.choose(xy, crs=raw.crs, project_to=raw.project_to, nodes=raw.node_table)
    if faults := crs_faults(raw.crs):
        raise InputError([f"{raw.file}: {fault}" for fault in faults])
    source = pyproj.CRS.from_user_input(raw.crs)
    target, notes = true_plane(source, transform(source, WGS84, xy), what=raw.file)
    projection = Projection(source, target, tuple(notes))
    far = ~np.isfinite(projection.metres(xy)).all(axis=1)
    if far.any():
        node = raw.nodes["node"].iloc[int(np.flatnonzero(far)[0])]
        raise InputError([f"{raw.file}: node {node!r} is outside the range of {target.name}"])
    return projection


def _without_lengths(raw: RawNetwork, node_xy: NDArray[np.float64]) -> tuple[RawNetwork, tuple[DroppedRows, ...]]:
    """Take straight distances where the files have no lengths at all, and drop links between nodes at one position."""
    if "length" in raw.links:
        return raw, ()
    straight_m = distances(node_xy[raw.links["from"]], node_xy[raw.links["to"]])
    reasons = {"its two ends are at the same place and no length is given": ~(straight_m > 0)}
    usable, dropped = usable_rows(reasons, file=raw.file, what="edge", number=raw.links.index.to_numpy())
    return replace(raw, links=raw.links.assign(length=straight_m / raw.length_m)[usable]), dropped


def _shapes(
    raw: RawNetwork, projection: Projection, node_xy: NDArray[np.float64]
) -> tuple[NDArray[np.object_], list[Note]]:
    """Project the shapes, and reverse those that run from a link's last node to its first; None for those lost."""
    lines = np.full(len(raw.links), None, dtype=object)
    if "shape" in raw.links:
        lines[:] = raw.links["shape"].tolist()
    there = np.flatnonzero([line is not None for line in lines])
    if len(there) and projection.target != projection.source:
        lines[there] = projection.lines(lines[there])
        there = np.flatnonzero([line is not None for line in lines])
    if not len(there) or "direction" not in raw.links:
        return lines, []
    begins, ends = (shapely.get_coordinates(shapely.get_point(lines[there], at)) for at in (0, -1))
    first, last = (node_xy[raw.links[name].to_numpy()[there]] for name in ("from", "to"))
    along = np.maximum(distances(begins, first), distances(ends, last))
    against = np.maximum(distances(begins, last), distances(ends, first))
    direction = raw.links["direction"].to_numpy()[there]
    turned = (direction == -1) | ((direction == 0) & (against < along))
    lines[there[turned]] = shapely.reverse(lines[there[turned]])
    if not (far := int((np.where(turned, against, along) > _FAR_M).sum())):
        return lines, []
    where = f"{raw.file}: {counted(far, 'shape begins or ends', 'shapes begin or end')}"
    checks = "check the coordinate system of geometries, and the direction of links"
    return lines, [warning("coordinates", f"{where} more than {_FAR_M:g} m from the nodes of the link: {checks}")]


def _values(
    raw: RawNetwork, given_m: NDArray[np.float64], shape_m: NDArray[np.float64], straight_m: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64], list[FilledDefault], list[str]]:
    """Return the numbers of all links in the units of the schema, the speeds that are given, and what was filled in."""
    metres, filled, words = given_m.copy(), [], []
    for value, source in (
        (shape_m, "the length of its shape"),
        (np.where(straight_m >= SHORTEST_M, straight_m, np.nan), "the straight distance between its nodes"),
        (np.full(len(metres), SHORTEST_M), f"{SHORTEST_M:g} m"),
    ):
        missing = ~(metres > 0) & (value > 0)
        metres[missing] = value[missing]
        if missing.any():
            filled.append(FilledDefault("length_m", source, int(missing.sum())))
    speed, seconds = raw.numbers("speed") * raw.speed_mps, raw.numbers("free_flow_s")
    with np.errstate(divide="ignore", over="ignore"):
        speed = np.where(seconds > 0, metres / seconds, speed)
    given_mps = np.where((speed > 0) & ~((seconds > 0) & ~(given_m > 0)), speed, np.nan)
    kinds: list[str | None] = raw.links["class"].tolist() if "class" in raw.links else [None] * len(raw.links)
    values = {"length_m": metres}
    stated = {"speed_mps": speed, "lanes": raw.numbers("lanes"), "capacity_vph": raw.numbers("capacity")}
    of_class = [class_defaults(kind) if raw.defaults.by_class else None for kind in kinds]
    for name, column in stated.items():
        default = float(getattr(raw.defaults, name))
        assumed = np.array([default if known is None else float(getattr(known, name)) for known in of_class])
        missing = ~(column > 0)
        values[name] = np.where(missing, assumed, column)
        if raw.defaults.by_class:
            unit = _UNITS[name].removesuffix("/lane")
            taken = [(kinds[row], f"{assumed[row]:g}{unit}") for row in np.flatnonzero(missing).tolist()]
            sentence = filled_in_words(name, taken, links=len(kinds))
            words += [] if sentence is None else [f"{raw.file}: {sentence}"]
        elif missing.any() and any(stating in raw.links for stating in _STATED_BY[name]):
            filled.append(FilledDefault(name, f"{default:g}{_UNITS[name]}", int(missing.sum())))
    faults = []
    for name, column in values.items():
        wrong = ~(np.isfinite(column) & (column > 0))
        if wrong.any():
            rows = raw.links.index[wrong]
            where = numbers_in_words(rows[:_MOST_FAULTS].tolist(), total=len(rows), unit=raw.unit)
            faults.append(
                f"{raw.file}: {where}: {name} must be a finite number above 0, and comes out as {column[wrong][0]:g}"
            )
    if faults:
        raise InputError(faults)
    return values, given_mps, filled, words


def _graph(
    raw: RawNetwork,
    crs: pyproj.CRS,
    node_xy: NDArray[np.float64],
    lines: NDArray[np.object_],
    values: Mapping[str, NDArray[np.float64]],
) -> tuple[nx.MultiDiGraph[Any], list[tuple[int, tuple[Hashable, Hashable, Any]]]]:
    """Build the graph of nodes and links, a link for each direction of a two-way road; list row and edge of each."""
    import networkx as nx  # noqa: PLC0415 - slow to import, and generated roads need no graph

    edges = []
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=crs)
    keys = raw.nodes["node"].tolist()
    node_data = _attributes(raw.nodes, frozenset({"node", "x", "y"}))
    for key, (x, y), data in zip(keys, node_xy.tolist(), node_data, strict=True):
        graph.add_nodes_from([(key, data | {"x": x, "y": y})])
    columns = [raw.links[name].tolist() for name in ("from", "to")]
    columns += [
        raw.links[name].tolist() if name in raw.links else [None] * len(raw.links) for name in ("key", "two_way")
    ]
    numbers = [dict(zip(values, row, strict=True)) for row in zip(*(v.tolist() for v in values.values()), strict=True)]
    link_data = _attributes(raw.links, _LINK_COLUMNS)
    rows = zip(raw.links.index.tolist(), *columns, numbers, link_data, lines, strict=True)
    for number, start, end, key, two_way, stated, more, line in rows:
        data = stated | {"lanes": int(stated["lanes"])} | more
        ends = keys[start], keys[end]
        if key is not None and graph.has_edge(*ends, key):
            rule = "key must be one that no other link from and to the same nodes has"
            raise InputError([f"{raw.file}: {raw.unit} {number}: {rule}, got {key!r}"])
        for along in (True, False) if two_way else (True,):
            shape = {} if line is None else {"geometry": line if along else shapely.reverse(line)}
            one_way = ends if along else ends[::-1]
            new = graph.add_edge(*one_way, key if along else None)
            graph.edges[(*one_way, new)].update(data | shape)
            edges.append((number, (*one_way, new)))
    return graph, edges


def _with_movements(
    network: RoadNetwork, raw: RawNetwork, edges: list[tuple[int, tuple[Hashable, Hashable, Any]]]
) -> RoadNetwork:
    """Add the movements and signals of the files, as far as the network has their links."""
    if raw.movements.empty:
        return network
    links = {(start, end, key): data["link"] for start, end, key, data in network.edges}
    known = [(row, edge, links[edge]) for row, edge in edges if edge in links]
    keys = raw.nodes["node"].tolist()
    movements, signals = renumbered(
        raw.movements.assign(node=column_of(keys[row] for row in raw.movements["node"])),
        raw.signals,
        nodes={name: index for index, name in enumerate(network.node_names)},
        arriving={(row, end): link for row, (_, end, _), link in known},
        leaving={(row, start): link for row, (start, _, _), link in known},
    )
    return replace(network, movements=movements, signals=signals)


def _attributes(frame: pd.DataFrame, others: frozenset[str]) -> list[dict[str, Any]]:
    """Return the attributes of each row: the columns that are not `others`, and the entries of ``attributes``."""
    names = [name for name in frame if name not in others | {"attributes"}]
    own = frame["attributes"].tolist() if "attributes" in frame else [{}] * len(frame)
    columns = zip(*(frame[name].tolist() for name in names), strict=True) if names else [()] * len(frame)
    rows = (zip(names, row, strict=True) for row in columns)
    return [
        known_attributes({str(name): value for name, value in row}) | more for row, more in zip(rows, own, strict=True)
    ]


def known_attributes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value: not None, NaN or pandas.NA."""
    return {name: value for name, value in data.items() if not (pd.api.types.is_scalar(value) and pd.isna(value))}


def _kept(graph: nx.MultiDiGraph[Any], raw: RawNetwork) -> tuple[nx.MultiDiGraph[Any], Loss]:
    """Return the part of a graph that is kept, and what is outside the largest part."""
    if raw.loss is not None or raw.keep == "whole":
        return graph, raw.loss or Loss(0, 0, 0.0)
    if raw.keep == "trips":
        return largest_part_for_trips(graph)
    try:
        part, loss = largest_strong_component(graph)
    except InputError:
        if raw.keep == "strong":
            raise
        length_m = float(sum(data["length_m"] for *_, data in graph.edges(data=True)))
        return graph, Loss(graph.number_of_nodes(), graph.number_of_edges(), length_m)
    return (part if raw.keep == "strong" else graph), loss


def _remarks(
    raw: RawNetwork, graph: nx.MultiDiGraph[Any], network: RoadNetwork, loss: Loss, zones: Sequence[int | str]
) -> list[str]:
    """Return sentences on parallel links, and on what is outside the largest part."""
    remarks = []
    nodes, links = len(network.node_names), len(network.links)
    parallel = graph.number_of_edges() - len({(start, end) for start, end, _ in graph.edges})
    if parallel and raw.keep in ("trips", "whole"):
        connects = counted(parallel, "link connects", "links connect")
        same = "the same nodes in the same direction as another; all are kept as parallel links"
        remarks.append(f"{raw.file}: {connects} {same}")
    if loss.links and raw.keep == "all":
        outside = f"{loss.links:,} of {counted(links, 'link')}, {loss.km_words}"
        remarks.append(f"{raw.file}: kept what is outside the largest part {loss.part}: {outside}")
    elif loss.nodes and raw.loss is None:
        remarks.append(loss.beside(nodes=nodes, links=links))
    if zones:
        shown = ", ".join(map(str, zones[:SHOWN_ZONES])) + (" …" if len(zones) > SHOWN_ZONES else "")
        what = f"{counted(len(zones), 'zone')} cannot be reached, or cannot be left"
        remarks.append(f"{what}, and no trip to or from there can be made: {shown}")
    return remarks

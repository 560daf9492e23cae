"""Reader of roads in the General Modeling Network Specification (GMNS), and of the units in its config table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import numpy as np
import pyproj
import shapely

from simulator.files.errors import InputError, both, positive_faults
from simulator.files.messages import counted, rows_in_words
from simulator.roads.connectivity import Loss, largest_part_for_trips
from simulator.roads.plausibility import check_axes, length_doubts, shape_doubts
from simulator.roads.projection import WGS84, Projection, crs_about, distances, known_crs
from simulator.roads.read_report import LinkValues, ReadReport, network_and_report, parallel_remarks
from simulator.roads.readers.gmns_links import LINK_COLUMNS, LINK_OPTIONAL, GmnsLinks, link_values
from simulator.roads.readers.gmns_tables import (
    NODE_COLUMNS,
    NODE_OPTIONAL,
    OWN_PREFIX,
    SUFFIXES,
    Geometries,
    GmnsNodes,
    find_table,
    open_table,
)
from simulator.roads.schema import MOST_LANES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table
    from simulator.roads.network import RoadNetwork

METRES: Mapping[str, float] = (
    dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0)
    | dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0)
    | dict.fromkeys(("ft", "foot", "feet"), 0.3048)
    | dict.fromkeys(("mi", "mile", "miles"), 1609.344)
)
"""Metres of each unit that ``long_length`` may name."""
METRES_PER_SECOND: Mapping[str, float] = (
    dict.fromkeys(("mps", "m/s"), 1.0)
    | dict.fromkeys(("kph", "kmh", "kmph", "km/h", "km/hr"), 1000 / 3600)
    | dict.fromkeys(("mph", "mi/h", "mi/hr"), 1609.344 / 3600)
)
"""Metres per second of each unit that ``speed`` may name."""
KEEP = f"{OWN_PREFIX}keep"
"""Column that this project adds: "all" in a folder that was written to be read completely."""
_FIELDS = ("long_length", "speed", "crs", KEEP)


@dataclass(frozen=True)
class GmnsConfig:
    """Units and coordinate system of a folder.

    Parameters
    ----------
    length_m
        Length of one unit of ``length`` in metres.
    speed_mps
        One unit of ``free_speed`` in metres per second.
    crs
        The system of the coordinates.
    crs_named
        Whether the caller or the config table names that system.
    keep_all
        Whether the table requests that nodes and links which routes cannot reach are kept.
    remarks
        Remarks on units for which the config table contradicts the caller, or which neither of them states.
    """

    length_m: float
    speed_mps: float
    crs: object
    crs_named: bool
    keep_all: bool
    remarks: tuple[str, ...]

    @classmethod
    def from_folder(cls, folder: Path, *, length_m: float | None, speed_mps: float | None, crs: object) -> GmnsConfig:
        """Use the caller's values, else those of the config table, else metres, km/h and WGS84.

        Parameters
        ----------
        folder
            The folder of the network; its config table is optional.
        length_m, speed_mps, crs
            The caller's values; None for those of the table.

        Returns
        -------
        GmnsConfig
            A configuration in which every unit is known.

        Raises
        ------
        InputError
            If the table has more than one row, or names an unknown unit that the caller does not give.
        """
        stated: dict[str, str] = {}
        file = find_table(folder, "config")
        if file is not None:
            table = open_table(file, required=(), optional=_FIELDS)
            if len(table) != 1:
                raise InputError([f"{file}: a config table must have one row, got {len(table):,}"])
            stated = {name: text for name in _FIELDS if (text := table.texts(name)[0]) is not None}
        faults, remarks, units = [], [], []
        for name, given, known, default, column, words in (
            ("long_length", length_m, METRES, 1.0, "length", "metres"),
            ("speed", speed_mps, METRES_PER_SECOND, 1000 / 3600, "free_speed", "km/h"),
        ):
            named = known.get(stated.get(name, "").lower())
            if given is None and named is None and name in stated:
                faults.append(f"{file}: row 1: {name} must be one of {', '.join(known)}, got {stated[name]!r}")
            if given is None and name not in stated:
                rule = f"neither the scenario nor a config table states the unit of {column}"
                remarks.append(f"{folder}: {rule}: taken as {words}")
            if given is not None and named is not None and given != named:
                remarks.append(f"{file}: {name} is {stated[name]}, but the scenario's unit is used")
            units.append(given if given is not None else named if named is not None else default)
        if faults:
            raise InputError(faults)
        system = _crs(crs, stated.get("crs"))
        return cls(
            length_m=units[0],
            speed_mps=units[1],
            crs=WGS84 if system is None else system,
            crs_named=system is not None,
            keep_all=stated.get(KEEP) == "all",
            remarks=tuple(remarks),
        )


def _crs(given: object, stated: str | None) -> object:
    if given is not None or stated is None:
        return given
    return int(stated) if stated.isdecimal() and len(stated) <= 9 else stated


MOST_DEGREES = 360.0


def are_no_degrees(xy: NDArray[np.float64]) -> bool:
    """Return whether most coordinates are too large for degrees; a few too large ones are mistakes of the file.

    Parameters
    ----------
    xy
        Coordinates as in the file, shape (n, 2), n ≥ 1.
    """
    return bool(np.median(np.abs(xy).max(axis=1)) > MOST_DEGREES)


def plane_about(xy: NDArray[np.float64], unit_m: float) -> tuple[pyproj.CRS, pyproj.CRS]:
    """Make systems for planar coordinates: a plane whose middle touches the globe at longitude 0, latitude 0.

    Parameters
    ----------
    xy
        Coordinates as in the file, finite, shape (n, 2), n ≥ 1.
    unit_m
        Length of one unit of the coordinates in metres.

    Returns
    -------
    source, target : pyproj.CRS
        Systems with the same origin, in the unit of the file and in metres: a coordinate in `target` is that of the
        file times `unit_m`.
    """
    east_m, north_m = ((xy.min(axis=0) + xy.max(axis=0)) / 2 * unit_m).tolist()
    metric = crs_about((0.0, 0.0), at_m=(east_m, north_m))
    parts = metric.to_json_dict()
    unit = {"type": "LinearUnit", "name": "unit of the file", "conversion_factor": unit_m}
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = unit
    return pyproj.CRS.from_json_dict(parts), metric


def remarks_on_plane(file: str) -> str:
    """Return a sentence that states how planar coordinates were placed, and how to set their system."""
    return (
        f"{file}: the coordinates are not degrees and no crs is given, so the map is placed at longitude 0, latitude 0 "
        'and measured in the unit of length; set roads.crs, for example crs = "EPSG:32618"'
    )


MODES = ("auto", "a", "all", "car", "c")
_FAR_M = 1000.0


def read_gmns(
    folder: str | Path,
    *,
    crs: object = None,
    project_to: object = None,
    length_m: float | None = None,
    speed_mps: float | None = None,
    modes: Sequence[str] = MODES,
    default_speed_mps: float = 13.9,
    default_lanes: int = 1,
    capacity_vph: float = 1800.0,
    keep: Literal["all", "strong"] | None = None,
) -> tuple[RoadNetwork, ReadReport]:
    """Read a network in the General Modeling Network Specification (GMNS).

    An undirected link becomes a road for each direction. ``zone_id`` of a node becomes ``zone``, ``facility_type`` of
    a link becomes ``class``. Links from a node to itself are dropped and reported; links parallel to another are kept.
    See :func:`~simulator.roads.readers.gmns_links.link_values` for the values that replace missing ones.

    Parameters
    ----------
    folder
        A folder with ``node`` and ``link`` tables, and optionally ``geometry`` and ``config``, each ``.csv``,
        ``.csv.gz`` or ``.parquet``.
    crs
        The system of the coordinates, in any units. If None, the one that the config table states; else longitude and
        latitude; or, if most coordinates are too large for degrees, a plane in the unit of the lengths, placed at
        longitude 0, latitude 0.
    project_to
        A projected system in metres. None for `crs` itself, if it is one, else the UTM zone of the network's middle.
    length_m, speed_mps
        One unit of ``length`` in metres, and one of ``free_speed`` in metres per second. If None, the units that the
        config table states, else metres and kilometres per hour.
    modes
        Links whose ``allowed_uses`` name one of these are read, and so are links whose ``allowed_uses`` are empty.
    default_speed_mps, default_lanes, capacity_vph
        Defaults for links that have no value and whose class of road has no default; capacity per hour and lane.
    keep
        "strong" for the largest part in which routes connect all nodes, "all" for everything. If None, the former,
        unless the config table was written by :func:`~simulator.roads.writers.gmns.write_gmns`.

    Returns
    -------
    network : RoadNetwork
        Node keys are whole numbers if all identifiers are.
    report : ReadReport
        What was filled in, dropped, lost and doubted.

    Raises
    ------
    InputError
        If arguments or files are faulty; it lists every fault with file, rows, rule and value.
    """
    folder = Path(folder)
    _check_arguments(
        default_lanes,
        modes,
        keep,
        length_m=length_m,
        speed_mps=speed_mps,
        default_speed_mps=default_speed_mps,
        capacity_vph=capacity_vph,
    )
    config = GmnsConfig.from_folder(folder, length_m=length_m, speed_mps=speed_mps, crs=crs)
    node_table, link_table = _open(folder)
    nodes = GmnsNodes.from_table(node_table)
    links = GmnsLinks.from_table(link_table, nodes.rows, modes=modes)
    shapes = Geometries.from_links(link_table, folder)
    source = known_crs(config.crs, "crs")
    placed = config.crs_named or not are_no_degrees(nodes.xy)
    if not placed:
        source, plane = plane_about(nodes.xy, config.length_m)
        project_to = plane if project_to is None else project_to
    metric = source.is_projected and all(axis.unit_conversion_factor == 1.0 for axis in source.axis_info[:2])
    projection = Projection.choose(
        nodes.xy,
        crs=source,
        project_to=source if project_to is None and metric else project_to,
        file=node_table.file,
        where=rows_in_words,
    )
    length = np.nan_to_num(links.numbers["length"])
    if source.is_geographic:
        rule = "x_coord must be longitude and y_coord latitude"
        check_axes(node_table, nodes.xy, links.from_row, links.to_row, length, rule=rule)
    node_xy = projection.metres(nodes.xy)
    lines, far = _oriented(links, shapes.projected(projection), node_xy)
    straight_m = distances(node_xy[links.from_row], node_xy[links.to_row])
    shape_m = np.array([np.nan if line is None else line.length for line in lines])
    numbers = link_values(
        links,
        shape_m=shape_m[links.usable],
        straight_m=straight_m[links.usable],
        length_m=config.length_m,
        speed_mps=config.speed_mps,
        default_speed_mps=default_speed_mps,
        default_lanes=default_lanes,
        capacity_vph=capacity_vph,
    )
    graph = _graph(nodes, links, node_xy, lines, numbers, projection)
    whole = keep == "all" or (keep is None and config.keep_all)
    with np.errstate(over="ignore"):
        given_m = length * config.length_m
    doubts = [
        *([] if placed else [remarks_on_plane(node_table.file)]),
        *projection.doubts(nodes.xy, file=node_table.file),
        # A shape may end at the edge of a junction and is then shorter than the distance between its nodes.
        *length_doubts(given_m, np.fmin(straight_m, shape_m), file=link_table.file),
        *shape_doubts(given_m, shape_m, file=link_table.file),
    ]
    if far:
        doubts.append(
            f"{link_table.file}: {counted(far, 'shape begins or ends', 'shapes begin or end')} more than {_FAR_M:g} m "
            "from the nodes of the link: check the coordinate system of geometries, and dir_flag"
        )
    return network_and_report(
        graph,
        numbers,
        part_of=_everything if whole else largest_part_for_trips,
        links_file=link_table.file,
        node_rows=len(node_table),
        link_rows=len(link_table),
        dropped=links.dropped,
        remarks=[*config.remarks, *numbers.remarks, *_remarks(links, shapes, graph)],
        doubts=doubts,
    )


def _everything(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    return graph, Loss(0, 0, 0.0)


def _check_arguments(lanes: int, modes: Sequence[str], keep: str | None, **values: float | None) -> None:
    faults = positive_faults(**values)
    if not (1 <= lanes <= MOST_LANES and float(lanes).is_integer()):
        faults.append(f"default_lanes must be a whole number, 1 … {MOST_LANES:,}, got {lanes!r}")
    if not modes:
        faults.append("modes must name at least one mode")
    if keep not in {None, "all", "strong"}:
        faults.append(f'keep must be "all" or "strong", got {keep!r}')
    if faults:
        raise InputError(faults)


def _open(folder: Path) -> tuple[Table, Table]:
    """Open both tables that a network must have, and raise the faults of both together."""
    if not folder.is_dir():
        raise InputError([f"{folder}: no such folder"])
    return both(
        lambda: _required_table(folder, "node", NODE_COLUMNS, NODE_OPTIONAL),
        lambda: _required_table(folder, "link", LINK_COLUMNS, LINK_OPTIONAL),
    )


def _required_table(folder: Path, name: str, required: Sequence[str], optional: Sequence[str]) -> Table:
    file = find_table(folder, name)
    if file is None:
        kinds = ", ".join(f"{name}{suffix}" for suffix in SUFFIXES)
        raise InputError([f"{folder}: a GMNS folder must hold a table of {name}s: one of {kinds}"])
    return open_table(file, required=required, optional=optional)


def _oriented(links: GmnsLinks, shapes: Geometries, node_xy: NDArray[np.float64]) -> tuple[NDArray[np.object_], int]:
    """Reverse lines that run from a link's last node to its first, and count lines that do not fit the nodes."""
    lines = shapes.lines.copy()
    there = np.flatnonzero([line is not None for line in lines])
    if not len(there):
        return lines, 0
    begins = shapely.get_coordinates(shapely.get_point(lines[there], 0))
    ends = shapely.get_coordinates(shapely.get_point(lines[there], -1))
    first, last = node_xy[links.from_row[there]], node_xy[links.to_row[there]]
    along = np.maximum(distances(begins, first), distances(ends, last))
    against = np.maximum(distances(begins, last), distances(ends, first))
    flag = links.dir_flag[there]
    turned = (flag == -1) | ((flag == 0) & (against < along))
    lines[there[turned]] = shapely.reverse(lines[there[turned]])
    return lines, int((np.where(turned, against, along) > _FAR_M).sum())


def _graph(
    nodes: GmnsNodes,
    links: GmnsLinks,
    node_xy: NDArray[np.float64],
    lines: NDArray[np.object_],
    numbers: LinkValues,
    projection: Projection,
) -> nx.MultiDiGraph[Any]:
    """Build the graph from nodes and links."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=projection.target)
    for key, (x, y), data in zip(nodes.keys, node_xy.tolist(), nodes.data, strict=True):
        graph.add_node(key, **(data | {"x": x, "y": y}))
    taken: dict[tuple[Any, Any, Any], int] = {}
    kept = np.flatnonzero(links.usable).tolist()
    for row, values in zip(kept, numbers.edges([links.classes[row] for row in kept]), strict=True):
        start, end = nodes.keys[links.from_row[row]], nodes.keys[links.to_row[row]]
        own = dict(links.own[row])
        key, exact_mps = own.pop("key", None), own.pop("speed_mps", None)
        data = values | own
        if isinstance(exact_mps, float) and math.isclose(exact_mps, data["speed_mps"], rel_tol=1e-12):
            data["speed_mps"] = exact_mps
        line = lines[row]
        if key is not None and (start, end, key) in taken:
            rule = f"crowdveil_key must differ from that of row {taken[start, end, key]}, which connects the same nodes"
            raise InputError([f"{links.table.file}: row {row + 1}: {rule}, got {key!r}"])
        key = graph.add_edge(start, end, key, **(data if line is None else data | {"geometry": line}))
        taken[start, end, key] = row + 1
        if links.two_way[row]:
            graph.add_edge(end, start, **(data if line is None else data | {"geometry": shapely.reverse(line)}))
    return graph


def _remarks(links: GmnsLinks, shapes: Geometries, graph: nx.MultiDiGraph[Any]) -> list[str]:
    """Return further remarks on the link table."""
    file, remarks = links.table.file, []
    both = int((links.two_way & links.usable).sum())
    if both:
        remarks.append(f"{file}: {counted(both, 'undirected link')} became a road for each direction")
    if links.undirected_unsaid:
        of_all = counted(len(links.table), "link")
        stated = "does not state whether it is" if links.undirected_unsaid == 1 else "do not state whether they are"
        remarks.append(f"{file}: {links.undirected_unsaid:,} of {of_all} {stated} one-way: taken as one-way")
    in_parts = int((shapes.in_parts & links.usable).sum())
    if in_parts:
        shapes_in_parts = counted(in_parts, "link has a shape", "links have shapes")
        remarks.append(f"{file}: {shapes_in_parts} of parts that do not join: drawn straight")
    return remarks + parallel_remarks(file, graph)

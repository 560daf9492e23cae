"""Reader of roads in the General Modeling Network Specification (GMNS), and of the units in its config table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import numpy as np
import pyproj
import shapely

from simulator.files.errors import InputError, both, positive_faults
from simulator.files.messages import counted, warning
from simulator.formats.roads.gmns_tables import GmnsConfig, GmnsLinks, GmnsNodes, find_table, open_required, open_table
from simulator.formats.roads.tables import unique_ids
from simulator.roads.class_defaults import class_defaults, filled_in_words
from simulator.roads.connectivity import Loss, largest_part_for_trips
from simulator.roads.plausibility import check_axes, length_warnings, shape_warnings, speed_warnings
from simulator.roads.projection import Projection, crs_about, distances, known_crs
from simulator.roads.read_report import FilledDefault, LinkValues, ReadReport, network_and_report, parallel_remarks
from simulator.roads.schema import MOST_LANES, crs_faults, node_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table
    from simulator.roads.network import RoadNetwork

    Shapes = tuple[NDArray[np.object_], NDArray[np.bool_]]


def read_shapes(table: Table, folder: Path) -> Shapes:
    """Read the shape of every link from its row, or from the row of the geometry table that it names.

    Parameters
    ----------
    table
        The link table; ``geometry`` and ``geometry_id`` are optional.
    folder
        The folder of the network.

    Returns
    -------
    lines : ndarray
        LineString of each link in the coordinates of the file, or None; object, shape (links,).
    in_parts : ndarray
        Links whose shape consists of parts that do not join to one line, and is left out; bool, shape (links,).

    Raises
    ------
    InputError
        If a geometry is not a line, or a ``geometry_id`` is not in the geometry table or is there twice; it names
        file, rows and value.
    """
    values = _values(table)
    ids = node_ids(table.texts("geometry_id"))
    wanted = np.array([own is None and name is not None for own, name in zip(values, ids, strict=True)])
    if not wanted.any():
        return _lines(table, values)
    file = find_table(folder, "geometry")
    if file is None:
        raise InputError([f"{table.file}: links name a geometry_id, and {folder} has no geometry table"])
    shapes = open_table(file, required=("geometry_id", "geometry"))
    rows = {identifier: row for row, identifier in enumerate(unique_ids(shapes, "geometry_id"))}
    at = np.array([rows.get(identifier or "", -1) for identifier in ids], dtype=np.int64)
    table.refuse("geometry_id", wanted & (at < 0), f"one of {file}")
    both(shapes.check, table.check)
    lines, in_parts = _lines(table, values)
    shared, shared_in_parts = _lines(shapes, _values(shapes))
    return np.where(wanted, shared[at], lines), np.where(wanted, shared_in_parts[at], in_parts)


def projected_lines(lines: NDArray[np.object_], projection: Projection) -> NDArray[np.object_]:
    """Project every line to metres; a line that cannot be projected becomes None."""
    xy, of = shapely.get_coordinates(lines, return_index=True)
    metres = projection.metres(xy)
    lost = np.asarray(~np.isfinite(metres).all(axis=1))
    projected = shapely.set_coordinates(lines.copy(), np.where(lost[:, None], 0.0, metres))
    projected[of[lost]] = None
    return np.asarray(projected)


def _values(table: Table) -> list[object]:
    """Read the geometry column: stripped text, bytes, or None."""
    if not table.has("geometry"):
        return [None] * len(table)
    frame = table.frame[table.columns["geometry"]]
    if any(isinstance(value, bytes) for value in frame):
        return [value if isinstance(value, bytes) else None for value in frame]
    return list(table.texts("geometry"))


def _lines(table: Table, values: Sequence[object]) -> Shapes:
    """Convert text or bytes to lines, and return which shapes have parts that do not join."""
    read = shapely.from_wkb if any(isinstance(value, bytes) for value in values) else shapely.from_wkt
    shapes = read(np.array(values, dtype=object), on_invalid="ignore")
    several = shapely.get_type_id(shapes) == shapely.GeometryType.MULTILINESTRING
    shapes[several] = [
        shape.geoms[0] if len(shape.geoms) == 1 else shapely.line_merge(shape, directed=True)
        for shape in shapes[several]
    ]
    empty, is_line = shapely.is_empty(shapes), shapely.get_type_id(shapes) == shapely.GeometryType.LINESTRING
    given = np.array([value is not None for value in values])
    wrong = given & ~several & ~is_line & ~empty
    xy, of = shapely.get_coordinates(shapes, return_index=True)
    wrong[of[~np.isfinite(xy).all(axis=1)]] = True
    table.refuse("geometry", wrong, "a LINESTRING in well-known text, with finite coordinates")
    table.check()
    lines = shapely.force_2d(shapes)
    lines[~is_line | empty] = None
    return lines, several & ~is_line & ~empty


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
    See :func:`~simulator.formats.roads.gmns.link_values` for the values that replace missing ones.

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
        unless the config table was written by :func:`~simulator.formats.roads.gmns_writer.write_gmns`.

    Returns
    -------
    network : RoadNetwork
        Node keys are whole numbers if all identifiers are.
    report : ReadReport
        What was filled in, dropped and lost, and warnings.

    Raises
    ------
    InputError
        If arguments or files are faulty; it lists every fault with file, rows, rule and value.
    """
    folder = Path(folder)
    faults = positive_faults(
        length_m=length_m, speed_mps=speed_mps, default_speed_mps=default_speed_mps, capacity_vph=capacity_vph
    )
    if not (1 <= default_lanes <= MOST_LANES and float(default_lanes).is_integer()):
        faults.append(f"default_lanes must be a whole number, 1 … {MOST_LANES:,}, got {default_lanes!r}")
    if not modes:
        faults.append("modes must name at least one mode")
    if keep not in {None, "all", "strong"}:
        faults.append(f'keep must be "all" or "strong", got {keep!r}')
    if faults:
        raise InputError(faults)
    config = GmnsConfig.from_folder(folder, length_m=length_m, speed_mps=speed_mps, crs=crs)
    if not folder.is_dir():
        raise InputError([f"{folder}: no such folder"])
    node_table, link_table = both(lambda: open_required(folder, "node"), lambda: open_required(folder, "link"))
    nodes = GmnsNodes.from_table(node_table)
    links = GmnsLinks.from_table(link_table, nodes.rows, modes=modes)
    shapes, in_parts = read_shapes(link_table, folder)
    source = known_crs(config.crs, "crs")
    placed = config.crs_named or not are_no_degrees(nodes.xy)
    if not placed:
        source, plane = plane_about(nodes.xy, config.length_m)
        project_to = plane if project_to is None else project_to
    if project_to is None and not crs_faults(source):
        project_to = source
    projection = Projection.choose(nodes.xy, crs=source, project_to=project_to, nodes=node_table)
    length = np.nan_to_num(links.numbers["length"])
    if source.is_geographic:
        rule = "x_coord must be longitude and y_coord latitude"
        check_axes(node_table, nodes.xy, links.from_row, links.to_row, length, rule=rule)
    node_xy = projection.metres(nodes.xy)
    lines, far = _oriented(links, projected_lines(shapes, projection), node_xy)
    straight_m = distances(node_xy[links.from_row], node_xy[links.to_row])
    shape_m = np.array([np.nan if line is None else line.length for line in lines])
    numbers = link_values(
        links,
        shape_m=shape_m[links.usable],
        straight_m=straight_m[links.usable],
        config=config,
        defaults={"speed_mps": default_speed_mps, "lanes": float(default_lanes), "capacity_vph": capacity_vph},
    )
    graph = _graph(nodes, links, node_xy, lines, numbers, projection)
    whole = keep == "all" or (keep is None and config.keep_all)
    with np.errstate(over="ignore"):
        given_m = length * config.length_m
    warnings = [
        *([] if placed else [warning("coordinates", remarks_on_plane(node_table.file))]),
        *projection.warnings(nodes.xy, file=node_table.file),
        # A shape may end at the edge of a junction and is then shorter than the distance between its nodes.
        *length_warnings(
            given_m,
            np.fmin(straight_m, shape_m),
            file=link_table.file,
            units=None if config.crs_named else distances(nodes.xy[links.from_row], nodes.xy[links.to_row]),
        ),
        *shape_warnings(given_m, shape_m, file=link_table.file),
    ]
    if far:
        ends = counted(far, "shape begins or ends", "shapes begin or end")
        where = f"{link_table.file}: {ends} more than {_FAR_M:g} m from the nodes of the link"
        checks = "check the coordinate system of geometries, and dir_flag"
        warnings.append(warning("coordinates", f"{where}: {checks}"))
    return network_and_report(
        graph,
        numbers,
        part_of=_everything if whole else largest_part_for_trips,
        links_file=link_table.file,
        node_rows=len(node_table),
        link_rows=len(link_table),
        dropped=links.dropped,
        remarks=[*config.remarks, *projection.notes, *numbers.remarks, *_remarks(links, in_parts, graph)],
        warnings=warnings,
    )


def _everything(graph: nx.MultiDiGraph[Any]) -> tuple[nx.MultiDiGraph[Any], Loss]:
    return graph, Loss(0, 0, 0.0)


def _oriented(
    links: GmnsLinks, lines: NDArray[np.object_], node_xy: NDArray[np.float64]
) -> tuple[NDArray[np.object_], int]:
    """Reverse lines that run from a link's last node to its first, and count lines that do not fit the nodes."""
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


def _remarks(links: GmnsLinks, in_parts: NDArray[np.bool_], graph: nx.MultiDiGraph[Any]) -> list[str]:
    """Return further remarks on the link table."""
    file, remarks = links.table.file, []
    if two_way := int((links.two_way & links.usable).sum()):
        remarks.append(f"{file}: {counted(two_way, 'undirected link')} became a road for each direction")
    if links.undirected_unsaid:
        of_all = counted(len(links.table), "link")
        stated = "does not state whether it is" if links.undirected_unsaid == 1 else "do not state whether they are"
        remarks.append(f"{file}: {links.undirected_unsaid:,} of {of_all} {stated} one-way: taken as one-way")
    if undrawn := int((in_parts & links.usable).sum()):
        links_undrawn = counted(undrawn, "link has a shape", "links have shapes")
        remarks.append(f"{file}: {links_undrawn} of parts that do not join: drawn straight")
    return remarks + parallel_remarks(file, graph)


SHORTEST_M = 1.0
"""Length of a link that has neither a length nor a shape, and whose nodes have the same position."""
MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is probably not stated per lane and hour."""


def link_values(
    links: GmnsLinks,
    *,
    shape_m: NDArray[np.float64],
    straight_m: NDArray[np.float64],
    config: GmnsConfig,
    defaults: Mapping[str, float],
) -> LinkValues:
    """Convert the numbers of usable links to the units of the schema and fill in missing ones.

    A length that is missing or 0 is replaced by that of the link's shape, else by the straight distance between its
    nodes if that is at least 1 m, else by 1 m. A speed, a number of lanes or a capacity that is missing or 0 is
    replaced by the default of the class of road (:mod:`simulator.roads.class_defaults`), or by the caller's default
    if the class has none.

    Parameters
    ----------
    links
        The links as read.
    shape_m
        Metres of each usable link's shape, NaN where it has none, shape (usable links,).
    straight_m
        Metres between the nodes of each usable link, shape (usable links,).
    config
        Units of the table.
    defaults
        ``speed_mps``, ``lanes`` and ``capacity_vph`` where the class of road has none.

    Returns
    -------
    LinkValues
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane), all above 0, in the order of the rows.
    """
    given = {name: values[links.usable] for name, values in links.numbers.items()}
    classes = [links.classes[row] for row in np.flatnonzero(links.usable).tolist()]
    with np.errstate(over="ignore"):
        metres, filled_lengths = _link_lengths(given["length"] * config.length_m, shape_m, straight_m)
    known = [class_defaults(kind) for kind in classes]
    columns, remarks = {"length_m": metres}, []
    for ours, theirs, unit, shown in (
        ("speed_mps", "free_speed", config.speed_mps, "{:g} m/s"),
        ("lanes", "lanes", 1.0, "{:g}"),
        ("capacity_vph", "capacity", 1.0, "{:g} vehicles/h"),
    ):
        values = given[theirs] * unit
        by_class = [defaults[ours] if taken is None else float(getattr(taken, ours)) for taken in known]
        missing = ~(values > 0)
        columns[ours] = np.where(missing, by_class, values)
        filled = [(classes[row], shown.format(by_class[row])) for row in np.flatnonzero(missing).tolist()]
        words = filled_in_words(ours, filled, links=len(classes))
        if words is not None:
            remarks.append(f"{links.table.file}: {words}")
    high = int((columns["capacity_vph"] > MOST_LIKELY_VPH).sum())
    given_mps = np.where(given["free_speed"] > 0, columns["speed_mps"], np.nan)
    warnings = [*speed_warnings(given_mps, metres, file=links.table.file)]
    if high:
        of_all = counted(len(classes), "link")
        words = f"capacity is above {MOST_LIKELY_VPH:,.0f} vehicles/h per lane in {high:,} of {of_all}"
        text = f"{links.table.file}: {words}: is it the capacity of a whole link, or per day?"
        warnings.append(warning("capacities", text))
    return LinkValues(columns, tuple(filled_lengths), tuple(remarks), tuple(warnings))


def _link_lengths(
    given_m: NDArray[np.float64], shape_m: NDArray[np.float64], straight_m: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[FilledDefault]]:
    """Return lengths as given, else of shapes, else straight distances, else `SHORTEST_M`, and what was filled in."""
    metres, defaults = given_m.copy(), []
    for value, words in (
        (shape_m, "the length of its shape"),
        (np.where(straight_m >= SHORTEST_M, straight_m, np.nan), "the straight distance between its nodes"),
        (np.full(len(metres), SHORTEST_M), f"{SHORTEST_M:g} m"),
    ):
        filled = ~(metres > 0) & (value > 0)
        metres[filled] = value[filled]
        if filled.any():
            defaults.append(FilledDefault("length_m", words, int(filled.sum())))
    return metres, defaults

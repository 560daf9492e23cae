"""Reader of roads in the General Modeling Network Specification (GMNS)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyproj
import shapely

from simulator.files.errors import InputError, both
from simulator.files.messages import counted, warning
from simulator.formats.roads.gmns_movements import read_movements
from simulator.formats.roads.gmns_tables import (
    GmnsConfig,
    find_table,
    open_required,
    open_table,
    read_links,
    read_nodes,
)
from simulator.roads.projection import crs_about, known_crs
from simulator.roads.raw_network import Defaults, RawNetwork
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from simulator.files.tables import Table

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
    ids = table.identifiers("geometry_id")
    wanted = np.array([own is None and name != "" for own, name in zip(values, ids, strict=True)])
    if not wanted.any():
        return _lines(table, values)
    file = find_table(folder, "geometry")
    if file is None:
        raise InputError([f"{table.file}: links name a geometry_id, and {folder} has no geometry table"])
    shapes = open_table(file, required=("geometry_id", "geometry"))
    rows = {identifier: row for row, identifier in enumerate(shapes.unique_identifiers("geometry_id"))}
    at = np.array([rows.get(identifier, -1) for identifier in ids], dtype=np.int64)
    table.refuse("geometry_id", wanted & (at < 0), f"one of {file}")
    both(shapes.check, table.check)
    lines, in_parts = _lines(table, values)
    shared, shared_in_parts = _lines(shapes, _values(shapes))
    return np.where(wanted, shared[at], lines), np.where(wanted, shared_in_parts[at], in_parts)


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


MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is probably not stated per lane and hour."""
MODES = ("auto", "a", "all", "car", "c")


def read_gmns(
    path: str | Path,
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
) -> RawNetwork:
    """Read a network in the General Modeling Network Specification (GMNS).

    An undirected link becomes a road for each direction. ``zone_id`` of a node becomes ``zone``, ``facility_type`` of
    a link becomes ``class``. Links from a node to itself are dropped and reported; links parallel to another are kept.
    A speed, a number of lanes or a capacity that is missing or 0 is replaced by the default of the class of road
    (:mod:`simulator.roads.class_defaults`), or by the caller's default if the class has none.

    Parameters
    ----------
    path
        A folder with ``node`` and ``link`` tables, and optionally ``geometry``, ``config``, ``movement`` and signal
        timing, each ``.csv``, ``.csv.gz`` or ``.parquet``.
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
    RawNetwork
        Node keys are whole numbers if all identifiers are.

    Raises
    ------
    InputError
        If files are faulty; it lists every fault with file, rows, rule and value.
    """
    folder = Path(path)
    config = GmnsConfig.from_folder(folder, length_m=length_m, speed_mps=speed_mps, crs=crs)
    if not folder.is_dir():
        raise InputError([f"{folder}: no such folder"])
    node_table, link_table = both(lambda: open_required(folder, "node"), lambda: open_required(folder, "link"))
    nodes = read_nodes(node_table)
    xy = nodes[["x", "y"]].to_numpy()
    links, usable, dropped = read_links(link_table, nodes.index, modes=modes, speed_mps=config.speed_mps)
    links["shape"], in_parts = read_shapes(link_table, folder)
    source = known_crs(config.crs, "crs")
    warnings = []
    if not config.crs_named and are_no_degrees(xy):
        source, plane = plane_about(xy, config.length_m)
        project_to = plane if project_to is None else project_to
        warnings.append(warning("coordinates", remarks_on_plane(node_table.file)))
    if project_to is None and not crs_faults(source):
        project_to = source
    links, remarks = links[usable], [*config.remarks]
    if high := int((links["capacity"] > MOST_LIKELY_VPH).sum()):
        words = (
            f"capacity is above {MOST_LIKELY_VPH:,.0f} vehicles/h per lane in {high:,} of {counted(len(links), 'link')}"
        )
        question = "is it the capacity of a whole link, or per day?"
        warnings.append(warning("capacities", f"{link_table.file}: {words}: {question}"))
    if two_way := int(links["two_way"].sum()):
        remarks.append(f"{link_table.file}: {counted(two_way, 'undirected link')} became a road for each direction")
    if unsaid := sum(text is None for text in link_table.texts("directed")):
        stated = "does not state whether it is" if unsaid == 1 else "do not state whether they are"
        of_all = counted(len(link_table), "link")
        remarks.append(f"{link_table.file}: {unsaid:,} of {of_all} {stated} one-way: taken as one-way")
    if undrawn := int((in_parts & usable).sum()):
        links_undrawn = counted(undrawn, "link has a shape", "links have shapes")
        remarks.append(f"{link_table.file}: {links_undrawn} of parts that do not join: drawn straight")
    movements, signals, left_out = read_movements(folder, nodes.index, links, link_table, modes)
    return RawNetwork(
        nodes=nodes,
        links=links,
        movements=movements,
        signals=signals,
        crs=source,
        file=link_table.file,
        node_table=node_table,
        axes=("x_coord", "y_coord"),
        length_m=config.length_m,
        project_to=project_to,
        crs_named=config.crs_named,
        defaults=Defaults(default_speed_mps, default_lanes, capacity_vph, by_class=True),
        keep="whole" if keep == "all" or (keep is None and config.keep_all) else "trips",
        link_rows=len(link_table),
        dropped=dropped,
        remarks=[*remarks, *left_out],
        warnings=warnings,
    )

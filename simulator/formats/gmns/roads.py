"""Reader of roads in the General Modeling Network Specification (GMNS)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import shapely

from simulator.files.errors import InputError, both
from simulator.files.messages import counted, warning
from simulator.files.tables import comparable_name, listed
from simulator.formats.column_names import (
    FREE_FLOW_TIMES,
    LENGTH_UNITS,
    METRES_PER_UNIT,
    MPS_PER_UNIT,
    NAMES_WITH_UNITS,
    SPEED_UNITS,
)
from simulator.formats.gmns.movements import read_movements
from simulator.formats.gmns.tables import (
    MODES,
    GmnsConfig,
    find_table,
    open_required,
    open_table,
    read_links,
    read_nodes,
)
from simulator.formats.planes import are_no_degrees, plane_about, remarks_on_plane
from simulator.roads.projection import crs_about, known_crs
from simulator.roads.raw_network import Defaults, RawNetwork, in_a_square, no_places
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from simulator.files.messages import Note
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
    if (file := find_table(folder, "geometry")) is None:
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


MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is probably not stated per lane and hour."""
_TIME_UNITS = {"min": 60.0, "s": 1.0, "h": 3600.0}
_SAME, _MOST_SPREAD = 0.03, 1.2
"""Largest deviation of stated times from length / speed in the median, and largest quotient of the upper quartile by
the lower one. Times in other units than the right ones differ by more: feet beside metres by 10 %, others by half."""
PROVED = "shows their units"
"""Words of the remark that stated times agree with lengths and speeds."""
NO_PLACES = 'coordinates = "none"'


def open_links(folder: Path, **given: Any) -> tuple[GmnsConfig, Table, list[str]]:
    """Read the units of a folder and its link table, whose lengths and speeds may be columns that name their unit.

    Parameters
    ----------
    folder
        The folder of the network.
    **given
        As for :meth:`~simulator.formats.gmns.tables.GmnsConfig.from_folder`.

    Returns
    -------
    config : GmnsConfig
        With the units of the columns that are read.
    table : Table
        Its columns ``length`` and ``free_speed`` are those; a column that names its unit, as ``length_in_mile``, is
        read if there is no other, or nothing else states the unit of the other one.
    remarks : list of str
        Columns that name their units, and columns that are not read.
    """
    config = GmnsConfig.from_folder(folder, **given)
    table = open_required(folder, "link", others={**NAMES_WITH_UNITS, "free_flow_time": FREE_FLOW_TIMES})
    columns, remarks, unstated = dict(table.columns), [], dict(config.unstated)
    units = {"length": config.length_m, "free_speed": config.speed_mps}
    for column, factors in (("length", METRES_PER_UNIT), ("free_speed", MPS_PER_UNIT)):
        own = {name: columns.pop(name) for name in factors if name in columns}
        if own and (column not in columns or column in unstated):
            name, columns[column] = next(iter(own.items()))
            units[column] = factors[name]
            remarks.append(f"{table.file}: {column} is column {columns[column]!r}, in {name.rpartition('_')[2]}")
            unstated.pop(column, None)
    unstated = {column: words for column, words in unstated.items() if column in columns}
    unread = [name for name in table.names if name not in columns.values()]
    remarks += [f"{table.file}: columns not read: {listed(unread)}"] if unread else []
    config = replace(config, length_m=units["length"], speed_mps=units["free_speed"], unstated=unstated)
    return config, replace(table, columns=columns), remarks


def compared_times(table: Table, links: pd.DataFrame, config: GmnsConfig) -> tuple[list[str], list[Note]]:
    """Compare times without traffic that the link table states with lengths and speeds.

    Returns
    -------
    remarks : list of str
        One if the times are those that lengths and speeds give.
    warnings : list of Note
        One if they are not; it names the units of lengths and speeds with which they would be.
    """
    length, speed, time = links["length"].to_numpy(), links["speed"].to_numpy(), table.numbers("free_flow_time")
    usable = (length > 0) & (speed > 0) & (time > 0) & np.isfinite(length + speed + time)
    if not usable.any():
        return [], []
    quotient_s = length[usable] * config.length_m / speed[usable] / time[usable]  # speeds are in m/s already
    low_s, middle_s, high_s = np.quantile(quotient_s, (0.25, 0.5, 0.75)).tolist()

    def unit_of_time(factor: float) -> str:
        alike = (unit for unit, one_s in _TIME_UNITS.items() if abs(middle_s * factor / one_s - 1) <= _SAME)
        return next(alike, "") if high_s <= _MOST_SPREAD * low_s else ""

    name = table.columns["free_flow_time"]
    column = f"{table.file}: the time without traffic, column {name!r},"
    if unit := unit_of_time(1.0):
        return [f"{column} is length / speed with times in {unit}, which {PROVED}"], []
    factors = config.speed_mps / config.length_m
    pairs = product(LENGTH_UNITS, SPEED_UNITS)
    fits = [(one, other) for one, other in pairs if unit_of_time(factors * LENGTH_UNITS[one] / SPEED_UNITS[other])]
    likely = [pair for pair in fits if LENGTH_UNITS[pair[0]] == config.length_m] or fits
    if not likely and comparable_name(name).startswith("traveltime"):
        return [], []  # which may be a time in traffic
    remedy = " or ".join(f'roads.length_unit = "{one}" and roads.speed_unit = "{other}"' for one, other in likely)
    rule = f"{column} is not length / speed: set {remedy or 'the right units'}"
    return [], [warning("speeds", rule)]


def read_gmns(
    path: str | Path,
    *,
    crs: object = None,
    project_to: object = None,
    length_m: float | None = None,
    speed_mps: float | None = None,
    coordinates: Literal["places", "none"] = "places",
    modes: Sequence[str] = MODES,
    default_speed_mps: float = 13.9,
    default_lanes: int = 1,
    capacity_vph: float = 1800.0,
    keep: Literal["all", "strong"] = "strong",
) -> RawNetwork:
    """Read a network in the General Modeling Network Specification (GMNS).

    An undirected link becomes a road for each direction. ``zone_id`` of a node becomes ``zone``, ``facility_type`` of
    a link becomes ``class``. Links from a node to itself, and closed links, whose capacity or number of lanes is 0, are
    dropped and reported; links parallel to another are kept. A speed that is missing or 0, a missing number of lanes
    and a missing capacity are replaced by the default of the class of road (:mod:`simulator.roads.class_defaults`), or
    by the caller's default if the class has none.

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
        config table states, else metres and kilometres per hour. Columns whose names state a unit, as DTALite's
        ``vdf_length_mi``, are read where nothing else states one (`open_links`).
    coordinates
        "none" for nodes in a square, in the order of the table: coordinates of a drawing, or none at all, are not read,
        and only lengths, times and what is connected mean something.
    modes
        Links whose ``allowed_uses`` name one of these are read, and so are links whose ``allowed_uses`` are empty.
    default_speed_mps, default_lanes, capacity_vph
        Defaults for links that have no value and whose class of road has no default; capacity per hour and lane.
    keep
        "strong" for the largest part in which routes connect all nodes, "all" for everything.

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
    if not folder.is_dir():
        raise InputError([f"{folder}: no such folder"])
    placed = coordinates != "none"
    node_table, (config, link_table, found) = both(
        lambda: open_required(folder, "node", placed=placed),
        lambda: open_links(folder, length_m=length_m, speed_mps=speed_mps, crs=crs),
    )
    nodes = read_nodes(node_table)
    if not placed:
        nodes[["x", "y"]] = in_a_square(len(nodes))
    xy = nodes[["x", "y"]].to_numpy()
    links, usable, dropped = read_links(link_table, nodes.index, modes=modes, speed_mps=config.speed_mps)
    shapes, in_parts = read_shapes(link_table, folder)
    links["shape"] = shapes if placed else None
    source = known_crs(config.crs, "crs") if placed else crs_about((0.0, 0.0))
    agreed, warnings = compared_times(link_table, links, config)
    if not placed:
        warnings.append(no_places(node_table.file, f"roads.{NO_PLACES}"))
    if placed and not config.crs_named and are_no_degrees(xy):
        source, plane = plane_about(xy, config.length_m)
        project_to = plane if project_to is None else project_to
        warnings.append(warning("coordinates", remarks_on_plane(node_table.file)))
    if project_to is None and not crs_faults(source):
        project_to = source
    rule = "neither the scenario nor a config table states the unit of"
    remarks = [f"{folder}: {rule} {column}: taken as {words}" for column, words in config.unstated.items()]
    links, remarks = links[usable], [*remarks, *config.remarks, *found, *agreed]
    if unread := [name for name in node_table.names if name not in node_table.columns.values()]:
        remarks.append(f"{node_table.file}: columns not read: {listed(unread)}")
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
        node_table=node_table if placed else None,
        axes=("x_coord", "y_coord"),
        length_m=config.length_m,
        project_to=project_to,
        crs_named=config.crs_named,
        placed=placed,
        without_places=f"roads.{NO_PLACES}",
        defaults=Defaults(default_speed_mps, default_lanes, capacity_vph, by_class=True),
        keep="whole" if keep == "all" else "trips",
        link_rows=len(link_table),
        dropped=dropped,
        remarks=[*remarks, *left_out],
        warnings=warnings,
    )

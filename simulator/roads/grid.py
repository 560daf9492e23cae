"""Generated rectangular road network."""

from __future__ import annotations

import math

import networkx as nx

from simulator.files.errors import InputError
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import crs_about

DEFAULT_ANCHOR = (-74.0, 40.7)


def build_grid(
    *,
    rows: int,
    columns: int,
    spacing_x_m: float,
    spacing_y_m: float,
    speed_mps: float,
    lanes: int,
    avenue_speed_mps: float | None = None,
    avenue_lanes: int | None = None,
    one_way: bool = False,
    capacity_vph: float = 1800.0,
    anchor: tuple[float, float] = DEFAULT_ANCHOR,
) -> RoadNetwork:
    """Generate streets that run east and west, crossed by avenues that run north and south.

    Node ``(row, column)`` lies at x = column · ``spacing_x_m``, y = row · ``spacing_y_m``. One row and two columns
    make a highway with one link in each direction.

    Parameters
    ----------
    rows, columns
        Numbers of streets and avenues; together at least two crossings.
    spacing_x_m, spacing_y_m
        Metres between neighbouring avenues (the length of a street's links) and between neighbouring streets.
    speed_mps, lanes
        Free-flow speed, metres per second, and lanes per direction of streets, and of avenues unless those have their
        own.
    avenue_speed_mps, avenue_lanes
        Speed and lanes of avenues; those of streets if None.
    one_way
        Avenues are one-way: the westernmost leads north, the next south, and so on. Streets stay two-way.
    capacity_vph
        Vehicles per hour and lane.
    anchor
        Longitude and latitude of the south-west crossing, degrees. The coordinate system is a transverse
        Mercator about it, in metres.

    Returns
    -------
    RoadNetwork
        Strongly connected; nodes in row-major order from the south-west; edges of class "street" or "avenue".

    Raises
    ------
    InputError
        If arguments are out of range; it lists all of them.
    """
    avenue_speed_mps = speed_mps if avenue_speed_mps is None else avenue_speed_mps
    avenue_lanes = lanes if avenue_lanes is None else avenue_lanes
    numbers = {
        "spacing_x_m": spacing_x_m,
        "spacing_y_m": spacing_y_m,
        "speed_mps": speed_mps,
        "avenue_speed_mps": avenue_speed_mps,
        "capacity_vph": capacity_vph,
    }
    faults = [
        f"{name} must be a finite number above 0, got {value!r}"
        for name, value in numbers.items()
        if not (value > 0 and math.isfinite(value))
    ]
    wholes = {"rows": rows, "columns": columns, "lanes": lanes, "avenue_lanes": avenue_lanes}
    faults += [
        f"{name} must be a whole number, 1 or more, got {value!r}"
        for name, value in wholes.items()
        if not (value >= 1 and float(value).is_integer())
    ]
    if rows == columns == 1:
        faults.append("rows and columns must give at least two crossings, got 1 and 1")
    if one_way and (rows == 1 or columns == 1):
        faults.append(f"one_way needs rows and columns of 2 or more to lead back, got {rows} and {columns}")
    if not (-180 <= anchor[0] <= 180 and -90 < anchor[1] < 90):
        faults.append(f"anchor must be a longitude in [-180, 180] and a latitude in (-90, 90), got {anchor}")
    if faults:
        raise InputError(faults)

    graph: nx.MultiDiGraph[tuple[int, int]] = nx.MultiDiGraph(crs=crs_about(anchor))
    for row in range(rows):
        for column in range(columns):
            graph.add_node((row, column), x=float(column * spacing_x_m), y=float(row * spacing_y_m))
    street = {
        "length_m": float(spacing_x_m),
        "speed_mps": float(speed_mps),
        "lanes": int(lanes),
        "capacity_vph": float(capacity_vph),
        "class": "street",
    }
    avenue = {
        "length_m": float(spacing_y_m),
        "speed_mps": float(avenue_speed_mps),
        "lanes": int(avenue_lanes),
        "capacity_vph": float(capacity_vph),
        "class": "avenue",
    }
    for row, column in list(graph):
        here, east, north = (row, column), (row, column + 1), (row + 1, column)
        if east in graph:
            graph.add_edges_from([(here, east, street), (east, here, street)])
        if north in graph and (not one_way or column % 2 == 0):
            graph.add_edges_from([(here, north, avenue)])
        if north in graph and (not one_way or column % 2 == 1):
            graph.add_edges_from([(north, here, avenue)])
    return RoadNetwork.from_graph(graph)

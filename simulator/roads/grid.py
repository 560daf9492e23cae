"""Generated rectangular road network."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError, positive_faults
from simulator.roads.movements import movement_table
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import crs_about
from simulator.roads.schema import edge_faults

if TYPE_CHECKING:
    from collections.abc import Hashable

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
    signals: bool = False,
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
        Speed and lanes of avenues; the speed and lanes of streets if None.
    one_way
        Avenues are one-way: the westernmost leads north, the next south, and so on. Streets stay two-way.
    signals
        Crossings at which roads of both directions meet have signals. :mod:`simulator.roads.junctions` makes their
        programs.
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
    sizes = {"spacing_x_m": spacing_x_m, "spacing_y_m": spacing_y_m, "speed_mps": speed_mps}
    faults = positive_faults(**sizes, avenue_speed_mps=avenue_speed_mps, capacity_vph=capacity_vph)
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

    nodes: dict[Hashable, dict[str, Any]] = {
        (row, column): {"x": float(column * spacing_x_m), "y": float(row * spacing_y_m)}
        for row in range(rows)
        for column in range(columns)
    }
    street, avenue = (
        {"length_m": float(length_m), "speed_mps": float(speed), "lanes": int(count)}
        | {"capacity_vph": float(capacity_vph), "class": kind}
        for kind, length_m, speed, count in (
            ("street", spacing_x_m, speed_mps, lanes),
            ("avenue", spacing_y_m, avenue_speed_mps, avenue_lanes),
        )
    )
    if faults := [fault for values in (street, avenue) for fault in edge_faults((values["class"], ""), values)]:
        raise InputError(faults)
    edges: list[Any] = []
    for row in range(rows):
        for column in range(columns):
            up, down = (not one_way or column % 2 == odd for odd in (0, 1))
            for at, values, leads in (
                ((row - 1, column), avenue, down),
                ((row, column - 1), street, True),
                ((row, column + 1), street, True),
                ((row + 1, column), avenue, up),
            ):
                edges += [((row, column), at, 0, dict(values))] if leads and at in nodes else []
    roads = RoadNetwork.of(nodes, edges, crs_about(anchor))
    if not signals:
        return roads
    links = roads.links
    arriving = np.split(np.argsort(links.to_node, kind="stable"), np.cumsum(np.bincount(links.to_node))[:-1])
    turns = [
        {"node": node, "from_link": before, "to_link": after, "signal": str(node)}
        for node in range(rows * columns if rows > 1 and columns > 1 else 0)
        for before in arriving[node]
        for after in range(links.first_out[node], links.first_out[node + 1])
    ]
    return dataclasses.replace(roads, movements=movement_table(turns))

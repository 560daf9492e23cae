"""Generated rectangular road network."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from simulator.files.errors import InputError, positive_faults
from simulator.roads.movements import movement_table
from simulator.roads.network import Links, RoadNetwork, Shapes
from simulator.roads.projection import crs_about
from simulator.roads.schema import EDGE_NUMBERS, edge_faults

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
    faults = positive_faults(
        spacing_x_m=spacing_x_m,
        spacing_y_m=spacing_y_m,
        speed_mps=speed_mps,
        avenue_speed_mps=avenue_speed_mps,
        capacity_vph=capacity_vph,
    )
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

    node = np.arange(rows * columns, dtype=np.int32)
    row, column = np.divmod(node, columns)
    east, north = node[column < columns - 1], node[row < rows - 1]
    # Avenues of even numbers lead north, the others south, unless they lead both ways.
    up, down = (north[north % columns % 2 == leads] if one_way else north for leads in (0, 1))
    ends = [(east, east + 1), (east + 1, east), (up, up + columns), (down + columns, down)]
    from_node, to_node = (np.concatenate(each) for each in zip(*ends, strict=True))
    kind = np.repeat([0, 1], [2 * len(east), len(up) + len(down)])
    order = np.lexsort((to_node, from_node))
    from_node, to_node, kind = from_node[order], to_node[order], kind[order]
    of_kinds: list[dict[str, Any]] = [
        {
            "length_m": float(length_m),
            "speed_mps": float(speed),
            "lanes": int(count),
            "capacity_vph": float(capacity_vph),
            "class": name,
        }
        for name, length_m, speed, count in (
            ("street", spacing_x_m, speed_mps, lanes),
            ("avenue", spacing_y_m, avenue_speed_mps, avenue_lanes),
        )
    ]
    edges = [(f"of class {values['class']}", values) for values in of_kinds]
    if faults := [fault for edge, values in edges for fault in edge_faults((edge, ""), values)]:
        raise InputError(faults)
    numbers = {name: np.array([values[name] for values in of_kinds], dtype=np.float64)[kind] for name in EDGE_NUMBERS}
    node_xy = np.column_stack((column * float(spacing_x_m), row * float(spacing_y_m)))
    roads = RoadNetwork(
        node_data=[{"x": x, "y": y} for x, y in node_xy.tolist()],
        edge_data=[of_kinds[at] | {"link": link} for link, at in enumerate(kind.tolist())],
        links=Links(
            from_node,
            to_node,
            first_out=np.searchsorted(from_node, np.arange(len(node) + 1)).astype(np.int32),
            **numbers | {"lanes": numbers["lanes"].astype(np.int32)},
        ),
        node_xy=node_xy,
        node_names=list(zip(row.tolist(), column.tolist(), strict=True)),
        crs=crs_about(anchor),
        shapes=Shapes.from_geometries(node_xy[from_node], node_xy[to_node], ()),
    )
    if not signals:
        return roads
    arriving = np.split(np.argsort(to_node, kind="stable"), np.cumsum(np.bincount(to_node))[:-1])
    turns = [
        {"node": node, "from_link": before, "to_link": after, "signal": str(node)}
        for node in range(rows * columns if rows > 1 and columns > 1 else 0)
        for before in arriving[node]
        for after in range(roads.links.first_out[node], roads.links.first_out[node + 1])
    ]
    return dataclasses.replace(roads, movements=movement_table(turns))

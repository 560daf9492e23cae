"""Rows of an edge table: which can be used, and with what numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.roads.doubts import speed_doubts
from simulator.roads.read_report import DroppedRows, FilledDefault
from simulator.roads.usable_rows import usable_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from simulator.roads.table import Table

MPS_PER_UNIT = {"speed_mps": 1.0, "speed_mph": 1609.344 / 3600, "speed_kph": 1000 / 3600}


@dataclass(frozen=True, eq=False, repr=False)
class EdgeRows:
    """The edge rows that can be used, in the order of the file.

    Parameters
    ----------
    from_row, to_row
        Node rows an edge leads from and to, shape (edges,).
    numbers
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph``, each of shape (edges,).
    classes
        Kind of road, one an edge, None where the file says nothing.
    dropped
        Rows left out, by reason.
    defaults
        Values filled in, among the edges kept.
    doubts
        What speaks against the unit of the speeds.
    """

    from_row: NDArray[np.int64]
    to_row: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]]
    classes: list[str | None]
    dropped: tuple[DroppedRows, ...]
    defaults: tuple[FilledDefault, ...]
    doubts: tuple[str, ...]

    @classmethod
    def from_table(
        cls,
        table: Table,
        *,
        from_row: NDArray[np.int64],
        to_row: NDArray[np.int64],
        node_xy: NDArray[np.float64],
        default_speed_mps: float,
        default_lanes: int,
        capacity_vph: float,
    ) -> EdgeRows:
        """Sort the rows of an edge table into those that can be used and the others.

        Parameters
        ----------
        table
            With ``from``, ``to`` and any of the other edge columns.
        from_row, to_row
            The node row of each end, -1 where the node is not known, shape (rows,).
        node_xy
            Where nodes are, in metres, shape (nodes, 2).
        default_speed_mps, default_lanes, capacity_vph
            For rows without a value that can be used.

        Returns
        -------
        EdgeRows
            At least one edge.

        Raises
        ------
        RoadsError
            If no row can be used; with the reasons.
        """
        length_m = _lengths(table, from_row, to_row, node_xy)
        speeds = {name: table.numbers(name) for name in MPS_PER_UNIT if table.has(name)}
        negative = np.zeros(len(table), dtype=np.bool_)
        for speed in speeds.values():
            negative |= speed < 0
        no_length = (
            "length_m is not a number above 0"
            if table.has("length_m")
            else "its two ends are at the same place and no length is given"
        )
        reasons = {
            "from or to is not in the node file": (from_row < 0) | (to_row < 0),
            "it leads from a node to itself": from_row == to_row,
            no_length: ~((length_m > 0) & np.isfinite(length_m)),
            "its speed is negative": negative,
        }
        usable, dropped = usable_rows(reasons, file=table.file, what="edge")

        speed_mps = np.full(len(table), np.nan)
        for name, values in reversed(speeds.items()):
            given = (values > 0) & np.isfinite(values)
            speed_mps[given] = values[given] * MPS_PER_UNIT[name]
        numbers_by_name = {"length_m": length_m[usable]}
        defaults = []
        for name, values, default, unit in (
            ("speed_mps", speed_mps, default_speed_mps, "m/s"),
            ("lanes", _whole(_column(table, "lanes")), default_lanes, ""),
            ("capacity_vph", _column(table, "capacity_vph"), capacity_vph, "vehicles/h/lane"),
        ):
            kept = values[usable]
            missing = ~((kept > 0) & np.isfinite(kept))
            numbers_by_name[name] = np.where(missing, float(default), kept)
            mapped = bool(speeds) if name == "speed_mps" else table.has(name)
            if mapped and missing.any():
                defaults.append(FilledDefault(name, f"{default:g} {unit}".rstrip(), int(missing.sum())))
        classes = table.texts("class") if table.has("class") else [None] * len(table)
        return cls(
            from_row=from_row[usable],
            to_row=to_row[usable],
            numbers=numbers_by_name,
            classes=[classes[row] for row in np.flatnonzero(usable).tolist()],
            dropped=dropped,
            defaults=tuple(defaults),
            doubts=tuple(speed_doubts(speed_mps[usable], length_m[usable], file=table.file)),
        )

    def edges(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Go through the edges as a graph takes them.

        Yields
        ------
        tuple
            From row, to row, and the edge's attributes in the schema of :mod:`simulator.roads.schema`.
        """
        columns = [values.tolist() for values in self.numbers.values()]
        ends = zip(self.from_row.tolist(), self.to_row.tolist(), strict=True)
        for (start, end), kind, *values in zip(ends, self.classes, *columns, strict=True):
            data = dict(zip(self.numbers, values, strict=True))
            data["lanes"] = int(data["lanes"])
            if kind is not None:
                data["class"] = kind
            yield start, end, data


def _lengths(
    table: Table, from_row: NDArray[np.int64], to_row: NDArray[np.int64], node_xy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Lengths as given, or straight distances; nonsense where an end is not known."""
    if table.has("length_m"):
        return table.numbers("length_m")
    across = node_xy[to_row] - node_xy[from_row]
    return np.hypot(across[:, 0], across[:, 1])


def _column(table: Table, name: str) -> NDArray[np.float64]:
    """Numbers of a column, all NaN if it is not mapped."""
    return table.numbers(name) if table.has(name) else np.full(len(table), np.nan)


def _whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that are whole numbers; NaN for others."""
    return np.where(values == np.floor(values), values, np.nan)

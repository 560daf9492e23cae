"""Rows of a node table: who each node is, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyproj

from simulator.roads.errors import RoadsError
from simulator.roads.node_ids import node_ids
from simulator.roads.utm import utm_about

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simulator.roads.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class NodeRows:
    """Nodes in the order of their rows.

    Parameters
    ----------
    ids
        Identifiers, no two alike, as :func:`~simulator.roads.node_ids.node_ids` writes them.
    xy
        Metres, float64, shape (nodes, 2).
    crs
        The projected system of ``xy``.
    """

    ids: list[str]
    xy: NDArray[np.float64]
    crs: pyproj.CRS

    @classmethod
    def from_table(cls, table: Table, *, crs: object) -> NodeRows:
        """Check and project a node table.

        Parameters
        ----------
        table
            With ``node``, and ``lon`` and ``lat`` or ``x`` and ``y``.
        crs
            System of ``x`` and ``y``, or the one to project ``lon`` and ``lat`` to; None for their UTM zone.

        Returns
        -------
        NodeRows
            Every row of the table.

        Raises
        ------
        RoadsError
            If an identifier is missing or twice there, or a coordinate is not finite or out of range.
        """
        ids = node_ids(table.values("node"))
        missing = np.array([identifier is None for identifier in ids])
        twice = pd.Series(ids, dtype="object").duplicated(keep=False).to_numpy(dtype=np.bool_) & ~missing
        faults = table.faults("node", missing, "an identifier")
        faults += table.faults("node", twice, "an identifier no other row has")
        named = ("lon", "lat") if table.has("lon") else ("x", "y")
        coordinates = {name: table.numbers(name) for name in named}
        for name, values in coordinates.items():
            finite = np.isfinite(values)
            faults += table.faults(name, ~finite, "a finite number")
            limit = {"lon": 180.0, "lat": 90.0}.get(name, np.inf)
            rule = f"degrees from {-limit:g} to {limit:g}"
            faults += table.faults(name, finite & (np.abs(values) > limit), rule)
        if faults:
            raise RoadsError(faults)
        first, second = (coordinates[name] for name in named)
        if named == ("lon", "lat"):
            projected = utm_about(first, second, what=table.file) if crs is None else pyproj.CRS.from_user_input(crs)
            project = pyproj.Transformer.from_crs("EPSG:4326", projected, always_xy=True)
            first, second = project.transform(first, second)
            outside = ~(np.isfinite(first) & np.isfinite(second))
            if outside.any():
                raise RoadsError(table.faults("lon", outside, f"within reach of {projected.name}"))
        else:
            projected = pyproj.CRS.from_user_input(crs)
        return cls([str(identifier) for identifier in ids], np.column_stack((first, second)), projected)

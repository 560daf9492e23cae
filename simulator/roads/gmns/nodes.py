"""Rows of a GMNS node table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.roads.gmns.tables import duplicated, own_values, texts_of
from simulator.roads.node_ids import node_ids, node_keys

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from simulator.files.tables import Table

COLUMNS = ("node_id", "x_coord", "y_coord")
OPTIONAL = ("zone_id",)
_RESERVED = frozenset({"x", "y"})


@dataclass(frozen=True, eq=False, repr=False)
class GmnsNodes:
    """Nodes in the order of their rows.

    Parameters
    ----------
    table
        The rows.
    rows
        Row of an identifier, as :func:`~simulator.roads.node_ids.node_ids` writes it.
    keys
        Key of each node in the graph: whole numbers, if all identifiers are.
    xy
        Coordinates in the units of the file, finite, float64, shape (nodes, 2).
    data
        Attributes of each node other than its position.
    """

    table: Table
    rows: dict[str, int]
    keys: list[Hashable]
    xy: NDArray[np.float64]
    data: list[dict[str, Any]]

    @classmethod
    def from_table(cls, table: Table) -> GmnsNodes:
        """Check a node table.

        Parameters
        ----------
        table
            A table with ``node_id``, ``x_coord``, ``y_coord`` and optionally ``zone_id``.

        Returns
        -------
        GmnsNodes
            Every row.

        Raises
        ------
        InputError
            If an identifier is missing or occurs twice, or a coordinate is not a finite number; it names file, rows
            and value.
        """
        ids = node_ids(table.values("node_id"))
        faults = table.faults("node_id", np.array([identifier is None for identifier in ids]), "an identifier")
        faults += table.faults("node_id", duplicated(ids), "an identifier no other row has")
        xy = np.empty((len(table), 2))
        for axis, name in enumerate(("x_coord", "y_coord")):
            xy[:, axis] = [_number(value) for value in table.values(name)]
            faults += table.faults(name, ~np.isfinite(xy[:, axis]), "a finite number")
        own, own_faults = own_values(table, _RESERVED)
        if faults + own_faults:
            raise InputError(faults + own_faults)
        known = [str(identifier) for identifier in ids]
        keys = node_keys(known)
        if all("node" in values for values in own) and len({values["node"] for values in own}) == len(own):
            keys = [values["node"] for values in own]
        zones = node_ids(texts_of(table, "zone_id"))
        numbered = iter(node_keys([zone for zone in zones if zone is not None]))
        data = []
        for zone, values in zip(zones, own, strict=True):
            extra = {name: value for name, value in values.items() if name != "node"}
            data.append(extra if zone is None else {"zone": next(numbered)} | extra)
        return cls(table, {identifier: row for row, identifier in enumerate(known)}, keys, xy, data)


def _number(value: object) -> float:
    """Read a number; NaN if the value is not a number."""
    try:
        return float(value) if "_" not in str(value) else np.nan  # type: ignore[arg-type]  # caught below
    except (TypeError, ValueError, OverflowError):
        return np.nan

"""Tables of a GMNS folder: units of its config table, rows of nodes and of links."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.files.messages import Note, counted, warning
from simulator.files.tables import Table, column_names, find_columns
from simulator.formats.roads.tables import unique_ids
from simulator.roads.projection import WGS84
from simulator.roads.read_report import DroppedRows, usable_rows
from simulator.roads.schema import MOST_LANES, node_ids, node_keys, tupled

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table

SUFFIXES = (".csv", ".csv.gz", ".parquet")
OWN_PREFIX = "crowdveil_"
"""Prefix of the columns that this project adds, which GMNS allows: JSON values for which GMNS has no column."""
_DBASE_LENGTH = 10
LINK_ENDS = ("from_node_id", "to_node_id")
_COLUMNS = {
    "node": (("node_id", "x_coord", "y_coord"), ("zone_id",)),
    "link": (
        LINK_ENDS,
        (
            *("link_id", "directed", "geometry_id", "geometry", "dir_flag", "length", "facility_type", "capacity"),
            *("name", "free_speed", "lanes", "allowed_uses"),
        ),
    ),
}
"""Columns that a table must have, and may have."""
_IDENTIFIERS = {"node_id", "zone_id", "link_id", "geometry_id", *LINK_ENDS}


def find_table(folder: Path, name: str) -> Path | None:
    """Find the file of a table.

    Parameters
    ----------
    folder
        The folder of the network.
    name
        Name of the table, such as "node".

    Returns
    -------
    Path or None
        ``name.csv``, ``name.csv.gz`` or ``name.parquet``; None if there is none.

    Raises
    ------
    InputError
        If there are several.
    """
    found = [folder / f"{name}{suffix}" for suffix in SUFFIXES if (folder / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        files = ", ".join(path.name for path in found)
        raise InputError([f"{folder}: a GMNS folder must hold one table of {name}, got {files}"])
    return found[0] if found else None


def open_table(file: Path, *, required: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """Read a table whose columns have the names of GMNS.

    Case does not matter, and a name may be cut to 10 characters, as in shapefiles. CSV is read as text, so that no
    identifier loses a digit and every number is read exactly.

    Parameters
    ----------
    file
        The table.
    required, optional
        Columns that it must have and may have.

    Returns
    -------
    Table
        At least one row; the columns of `optional` that the file has, and every column that this project adds.

    Raises
    ------
    InputError
        If it cannot be read, holds no row, or lacks required columns.
    """
    names = column_names(file)
    known = {name: (name, name[:_DBASE_LENGTH]) for name in (*required, *optional)}
    columns = {name: name for name in required} | find_columns(names, known)
    columns |= {name: name for name in names if name.startswith(OWN_PREFIX)}
    return Table.from_file(
        file, columns=columns, text=columns.keys() - {"geometry"}, identifiers=columns.keys() & _IDENTIFIERS
    )


def open_required(folder: Path, name: str) -> Table:
    """Read a table that a network must have, "node" or "link"; as `open_table`."""
    file = find_table(folder, name)
    if file is None:
        kinds = ", ".join(f"{name}{suffix}" for suffix in SUFFIXES)
        raise InputError([f"{folder}: a GMNS folder must hold a table of {name}s: one of {kinds}"])
    required, optional = _COLUMNS[name]
    return open_table(file, required=required, optional=optional)


def own_values(table: Table, reserved: frozenset[str]) -> list[dict[str, Any]]:
    """Read the columns that this project adds, and note the rows whose values are not JSON.

    Parameters
    ----------
    table
        Any table.
    reserved
        Attributes for which GMNS has columns; they are not read from added columns.

    Returns
    -------
    list of dict
        Attribute to value, one dict per row; lists as tuples.
    """
    values: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for column in table.columns:
        name = column.removeprefix(OWN_PREFIX)
        if not column.startswith(OWN_PREFIX) or not name or name in reserved:
            continue
        wrong = np.zeros(len(table), dtype=np.bool_)
        for row, text in enumerate(table.texts(column)):
            if text is None:
                continue
            try:
                values[row][name] = tupled(json.loads(text))
            except (ValueError, RecursionError):
                wrong[row] = True
        table.refuse(column, wrong, "JSON")
    return values


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
        system, text = crs, stated.get("crs")
        if crs is None and text is not None:
            system = int(text) if text.isdecimal() and len(text) <= 9 else text
        return cls(
            length_m=units[0],
            speed_mps=units[1],
            crs=WGS84 if system is None else system,
            crs_named=system is not None,
            keep_all=stated.get(KEEP) == "all",
            remarks=tuple(remarks),
        )


_NODE_RESERVED = frozenset({"x", "y"})


@dataclass(frozen=True, eq=False, repr=False)
class GmnsNodes:
    """Nodes in the order of their rows.

    Parameters
    ----------
    table
        The rows.
    rows
        Row of an identifier, as :func:`~simulator.roads.schema.node_ids` writes it.
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
        known = unique_ids(table, "node_id")
        xy = np.column_stack([table.checked_numbers(name) for name in ("x_coord", "y_coord")])
        own = own_values(table, _NODE_RESERVED)
        table.check()
        keys = node_keys(known)
        if all("node" in values for values in own) and len({values["node"] for values in own}) == len(own):
            keys = [values["node"] for values in own]
        zones = node_ids(table.texts("zone_id"))
        numbered = iter(node_keys([zone for zone in zones if zone is not None]))
        data = []
        for zone, values in zip(zones, own, strict=True):
            extra = {name: value for name, value in values.items() if name != "node"}
            data.append(extra if zone is None else {"zone": next(numbered)} | extra)
        return cls(table, {identifier: row for row, identifier in enumerate(known)}, keys, xy, data)


MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is probably not stated per lane and hour."""
_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "f", "no", "n"})
_LINK_RESERVED = frozenset({"length_m", "lanes", "capacity_vph", "geometry", "link"})


@dataclass(frozen=True, eq=False, repr=False)
class GmnsLinks:
    """Links in the order of their rows, in the units of the file.

    Parameters
    ----------
    table
        The rows.
    from_row, to_row
        Rows of the nodes from and to which each link leads, shape (links,).
    usable
        Links that are roads for the requested modes and lead from one node to another, bool, shape (links,).
    two_way
        Undirected links, which become one road for each direction, bool, shape (links,).
    dir_flag
        1 where the geometry runs from the first node to the last, -1 where it runs in the opposite direction, 0 where
        the table does not state it.
    numbers
        ``length``, ``free_speed``, ``lanes``, ``capacity`` (per lane), NaN where there is none, each of shape (links,).
    classes
        ``facility_type``, None where the table has no value.
    own
        Attributes from the columns that this project adds, and ``name``.
    dropped
        Rows that are not usable, by reason.
    undirected_unsaid
        Number of rows that do not state whether they are directed, and are taken as directed.
    """

    table: Table
    from_row: NDArray[np.int64]
    to_row: NDArray[np.int64]
    usable: NDArray[np.bool_]
    two_way: NDArray[np.bool_]
    dir_flag: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]]
    classes: list[str | None]
    own: list[dict[str, Any]]
    dropped: tuple[DroppedRows, ...]
    undirected_unsaid: int

    @property
    def warnings(self) -> list[Note]:
        """A warning if capacities of usable links are too high to be those of a lane and an hour."""
        high, of_all = int((self.numbers["capacity"][self.usable] > MOST_LIKELY_VPH).sum()), int(self.usable.sum())
        words = f"capacity is above {MOST_LIKELY_VPH:,.0f} vehicles/h per lane in {high:,} of {counted(of_all, 'link')}"
        text = f"{self.table.file}: {words}: is it the capacity of a whole link, or per day?"
        return [warning("capacities", text)] if high else []

    def speeds(self, unit_mps: float) -> NDArray[np.float64]:
        """Return speeds in metres per second: those that this project added, where ``free_speed`` is the same."""
        speeds = self.numbers["free_speed"] * unit_mps
        for row, values in enumerate(self.own):
            exact = values.get("speed_mps")
            if isinstance(exact, float) and math.isclose(exact, speeds[row], rel_tol=1e-12):
                speeds[row] = exact
        return speeds

    @classmethod
    def from_table(cls, table: Table, nodes: dict[str, int], *, modes: Sequence[str]) -> GmnsLinks:
        """Check a link table.

        Parameters
        ----------
        table
            A table with ``from_node_id`` and ``to_node_id``, and any of the optional columns.
        nodes
            Row of each node by identifier.
        modes
            Links whose ``allowed_uses`` name one of these are roads, and so are links whose ``allowed_uses`` are empty.

        Returns
        -------
        GmnsLinks
            Every row, at least one of them usable.

        Raises
        ------
        InputError
            If a node is unknown, a ``link_id`` occurs twice, or a value is not allowed in its column, naming file,
            rows, rule and value; or if no link can be used.
        """
        ends = []
        for name in LINK_ENDS:
            rows = np.array([nodes.get(node or "", -1) for node in node_ids(table.values(name))], dtype=np.int64)
            table.refuse(name, rows < 0, "in the node table")
            ends.append(rows)
        if table.has("link_id"):
            unique_ids(table, "link_id")
        directed = [None if text is None else text.lower() for text in table.texts("directed")]
        junk = np.array([text is not None and text not in _YES | _NO for text in directed])
        table.refuse("directed", junk, "true or false")
        flags = table.texts("dir_flag")
        known = {None: 0, "1": 1, "1.0": 1, "+1": 1, "-1": -1, "-1.0": -1, "0": 0, "0.0": 0}
        table.refuse("dir_flag", np.array([flag not in known for flag in flags]), "1, -1 or 0")
        numbers = {
            name: table.checked_numbers(name, at_least=0, optional=True)
            for name in ("length", "free_speed", "capacity")
        }
        numbers["lanes"] = table.checked_numbers("lanes", at_least=0, at_most=MOST_LANES, whole=True, optional=True)
        own = own_values(table, _LINK_RESERVED)
        for street, values in zip(table.texts("name"), own, strict=True):
            if street is not None:
                values.setdefault("name", street)
        table.check()
        usable, dropped = _usable(table, ends[0] == ends[1], modes)
        return cls(
            table=table,
            from_row=ends[0],
            to_row=ends[1],
            usable=usable,
            two_way=np.array([text in _NO for text in directed]),
            dir_flag=np.array([known[flag] for flag in flags], dtype=np.int64),
            numbers=numbers,
            classes=table.texts("facility_type"),
            own=own,
            dropped=dropped,
            undirected_unsaid=sum(text is None for text in directed),
        )


def _usable(
    table: Table, loops: NDArray[np.bool_], modes: Sequence[str]
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Leave out links that are not roads for any of the modes, and links from a node to itself."""
    wanted = {mode.lower() for mode in modes}
    forbidden = np.array([_forbids(uses, wanted) for uses in table.texts("allowed_uses")])
    reasons = {
        f"allowed_uses names none of {', '.join(modes)}": forbidden,
        "it leads from a node to itself": loops,
    }
    return usable_rows(reasons, file=table.file, what="link")


def _forbids(uses: str | None, wanted: set[str]) -> bool:
    """Return whether a list of uses, by commas or semicolons, names no wanted one; an empty list forbids nothing."""
    named = {use.strip().lower() for use in re.split(r"[;,|]", uses or "")} - {""}
    return bool(named) and named.isdisjoint(wanted)

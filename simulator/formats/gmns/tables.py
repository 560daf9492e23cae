"""Tables of a GMNS folder: units of its config table, rows of nodes and of links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tables import Table, column_names, find_columns
from simulator.formats.column_names import SPEED_UNITS, WORDS_OF_LENGTHS, WORDS_OF_SPEEDS
from simulator.roads.projection import WGS84
from simulator.roads.raw_network import column_of
from simulator.roads.read_report import DroppedRows, usable_rows
from simulator.roads.schema import MOST_LANES, node_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table

SUFFIXES = (".csv", ".csv.gz", ".parquet")
MODES = ("auto", "a", "all", "car", "c")
"""Uses of links on which cars drive."""
_DBASE_LENGTH = 10
LINK_ENDS = ("from_node_id", "to_node_id")
_PLACE = ("x_coord", "y_coord")
_COLUMNS = {
    "node": (("node_id", *_PLACE), ("zone_id",)),
    "link": (
        LINK_ENDS,
        (
            *("link_id", "directed", "geometry_id", "geometry", "dir_flag", "length", "facility_type", "capacity"),
            *("name", "free_speed", "lanes", "allowed_uses"),
        ),
    ),
}
"""Columns that a table must have, and may have."""
_IDENTIFIERS = {
    *("node_id", "zone_id", "link_id", "geometry_id", "mvmt_id", "ib_link_id", "ob_link_id", *LINK_ENDS),
    *("timing_plan_id", "controller_id", "timing_phase_id"),
}


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


def open_table(
    file: Path,
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Table:
    """Read a table whose columns have the names of GMNS.

    Case does not matter, and a name may be cut to 10 characters, as in shapefiles. CSV is read as text, so that no
    identifier loses a digit and every number is read exactly.

    Parameters
    ----------
    file
        The table.
    required, optional
        Columns that it must have and may have.
    others
        Usual names of further columns that it may have, which are not of GMNS, by our names.

    Returns
    -------
    Table
        At least one row; the columns of `optional` and `others` that the file has.

    Raises
    ------
    InputError
        If it cannot be read, holds no row, or lacks required columns.
    """
    names = column_names(file)
    known = {name: (name, name[:_DBASE_LENGTH]) for name in (*required, *optional)}
    columns = {name: name for name in required} | find_columns(names, {**known, **others})
    return Table.from_file(
        file, columns=columns, text=columns.keys() - {"geometry"}, identifiers=columns.keys() & _IDENTIFIERS
    )


def open_required(
    folder: Path, name: str, *, placed: bool = True, others: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Table:
    """Read a table of nodes or links, which a network must have, as `open_table`; no places if not `placed`."""
    if (file := find_table(folder, name)) is None:
        kinds = ", ".join(f"{name}{suffix}" for suffix in SUFFIXES)
        raise InputError([f"{folder}: a GMNS folder must hold a table of {name}s: one of {kinds}"])
    required, optional = _COLUMNS[name]
    required = required if placed else tuple(one for one in required if one not in _PLACE)
    return open_table(file, required=required, optional=optional, others=others)


_FIELDS = ("long_length", "speed", "crs")


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
    remarks
        Remarks on units for which the config table contradicts the caller.
    unstated
        Columns of links whose units neither of them states, with the units that they are taken for, in words.
    """

    length_m: float
    speed_mps: float
    crs: object
    crs_named: bool
    remarks: tuple[str, ...]
    unstated: Mapping[str, str]

    @classmethod
    def from_folder(cls, folder: Path, *, length_m: float | None, speed_mps: float | None, crs: object) -> GmnsConfig:
        """Use the caller's values, else the config table's values, else metres, km/h and WGS84.

        Parameters
        ----------
        folder
            The folder of the network; its config table is optional.
        length_m, speed_mps, crs
            The caller's values; None for the table's values.

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
        if (file := find_table(folder, "config")) is not None:
            table = open_table(file, required=(), optional=_FIELDS)
            if len(table) != 1:
                raise InputError([f"{file}: a config table must have one row, got {len(table):,}"])
            stated = {name: text for name in _FIELDS if (text := table.texts(name)[0]) is not None}
        faults, remarks, units, unstated = [], [], [], dict[str, str]()
        for name, given, known, default, column, words in (
            ("long_length", length_m, WORDS_OF_LENGTHS, 1.0, "length", "metres"),
            ("speed", speed_mps, WORDS_OF_SPEEDS, SPEED_UNITS["kph"], "free_speed", "km/h"),
        ):
            named = known.get(stated.get(name, "").lower())
            if given is None and named is None and name in stated:
                faults.append(f"{file}: row 1: {name} must be one of {', '.join(known)}, got {stated[name]!r}")
            if given is None and name not in stated:
                unstated[column] = words
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
            remarks=tuple(remarks),
            unstated=unstated,
        )


def read_nodes(table: Table) -> pd.DataFrame:
    """Read a node table.

    Parameters
    ----------
    table
        A table with ``node_id``, and optionally ``x_coord``, ``y_coord`` and ``zone_id``.

    Returns
    -------
    pandas.DataFrame
        ``node`` (whole numbers, if all identifiers are), ``x``, ``y`` and ``zone`` as in
        :class:`~simulator.roads.raw_network.RawNetwork`; the index has the identifiers.

    Raises
    ------
    InputError
        If an identifier is missing or occurs twice, or a coordinate is not a finite number; it names file, rows and
        value.
    """
    identifiers = table.unique_identifiers("node_id")
    x, y = (table.checked_numbers(name) if table.has(name) else table.numbers(name) for name in _PLACE)
    table.check()
    zones = table.identifiers("zone_id")
    named = iter(node_keys([zone for zone in zones if zone]))
    zone = column_of([next(named) if zone else None for zone in zones])
    nodes = {"node": column_of(node_keys(identifiers)), "x": x, "y": y, "zone": zone}
    return pd.DataFrame(nodes).set_axis(pd.Index(identifiers, dtype="object"))


_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "f", "no", "n"})
_DIRECTIONS = {None: 0, "1": 1, "1.0": 1, "+1": 1, "-1": -1, "-1.0": -1, "0": 0, "0.0": 0}


def read_links(
    table: Table, nodes: pd.Index[Any], *, modes: Sequence[str], speed_mps: float
) -> tuple[pd.DataFrame, NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Read a link table.

    Parameters
    ----------
    table
        A table with ``from_node_id`` and ``to_node_id``, and any of the optional columns.
    nodes
        Identifiers of the nodes, in the order of their rows.
    modes
        Links whose ``allowed_uses`` name one of these are roads, and so are links whose ``allowed_uses`` are empty.
    speed_mps
        One unit of ``free_speed`` in metres per second.

    Returns
    -------
    links : pandas.DataFrame
        Every row, as in :class:`~simulator.roads.raw_network.RawNetwork`, with speeds in metres per second and without
        ``shape``.
    usable : ndarray
        Links that are roads for the modes and lead from one node to another, bool, shape (links,); at least one.
    dropped : tuple of DroppedRows
        All others, by reason.

    Raises
    ------
    InputError
        If a node is unknown, a ``link_id`` occurs twice, or a value is not allowed in its column, naming file, rows,
        rule and value; or if no link can be used.
    """
    start, end = (nodes.get_indexer(pd.Index(table.identifiers(name), dtype="object")) for name in LINK_ENDS)
    for name, rows in zip(LINK_ENDS, (start, end), strict=True):
        table.refuse(name, rows < 0, "in the node table")
    if table.has("link_id"):
        table.unique_identifiers("link_id")
    directed = [None if text is None else text.lower() for text in table.texts("directed")]
    junk = np.array([text is not None and text not in _YES | _NO for text in directed])
    table.refuse("directed", junk, "true or false")
    flags = table.texts("dir_flag")
    table.refuse("dir_flag", np.array([flag not in _DIRECTIONS for flag in flags]), "1, -1 or 0")
    length, speed, capacity = (
        table.checked_numbers(name, at_least=0, optional=True) for name in ("length", "free_speed", "capacity")
    )
    lanes = table.checked_numbers("lanes", at_least=0, at_most=MOST_LANES, whole=True, optional=True)
    table.check()
    links = {
        "from": start,
        "to": end,
        "length": length,
        "speed": speed * speed_mps,
        "lanes": lanes,
        "capacity": capacity,
        "direction": [_DIRECTIONS[flag] for flag in flags],
        "two_way": [text in _NO for text in directed],
        "class": column_of(table.texts("facility_type")),
        "name": column_of(table.texts("name")),
        "link_id": column_of(table.identifiers("link_id")),
    }
    usable, dropped = _usable(table, start == end, modes, {"capacity": capacity, "lanes": lanes})
    return pd.DataFrame(links).set_axis(table.number), usable, dropped


def _usable(
    table: Table, loops: NDArray[np.bool_], modes: Sequence[str], sizes: Mapping[str, NDArray[np.float64]]
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Leave out links that are not roads for any of the modes, links from a node to itself, and closed ones.

    A link whose capacity or number of lanes, one of `sizes`, is 0 is closed, but not a footway, which has no lanes; a
    column without a number above 0 states nothing.
    """
    wanted = {mode.lower() for mode in modes}
    uses = table.texts("allowed_uses")
    forbidden, undriven = (np.array([forbids(one, modes) for one in uses]) for modes in (wanted, {*MODES}))
    reasons = {
        f"allowed_uses names none of {', '.join(modes)}": forbidden,
        "it leads from a node to itself": loops,
        **{f"its {name} is 0: closed": (size == 0) & ~undriven & (size > 0).any() for name, size in sizes.items()},
    }
    return usable_rows(reasons, file=table.file, what="link")


def forbids(uses: str | None, wanted: set[str]) -> bool:
    """Return whether a list of uses, by commas or semicolons, names no wanted one; an empty list forbids nothing."""
    named = {use.strip().lower() for use in re.split(r"[;,|]", uses or "")} - {""}
    return bool(named) and named.isdisjoint(wanted)

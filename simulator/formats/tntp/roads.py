"""Reader of roads in the format of the Transportation Networks test problems (TNTP)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.errors import InputError, both
from simulator.files.messages import Note, counted, warning
from simulator.files.tntp_text import fields_of, json_of, lines_of, read_metadata, row_fault, shown, table_of
from simulator.roads.projection import WGS84, crs_about
from simulator.roads.raw_network import Defaults, RawNetwork, column_of, in_a_square, no_places
from simulator.roads.read_report import FilledDefault

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.files.tables import Table
    from simulator.files.tntp_text import Metadata


FIELDS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power", "speed", "toll", "link_type")
_ENDS = ("init_node", "term_node")
_NOT_NEGATIVE = ("capacity", "length", "free_flow_time", "b", "power")


@dataclass(frozen=True, eq=False, repr=False)
class TntpLinks:
    """The links of a network file, in the units of the file.

    Parameters
    ----------
    table
        The rows, with all fields as text.
    zones
        Number of zones; zones are the nodes 1 … zones.
    nodes
        Number of nodes; nodes are numbered 1 … nodes.
    first_through
        Routes may pass through this node and those after it; at those before it, trips only begin or end.
    columns
        Fields of the rows by name, float64, each of shape (links,), ``link_type`` left out.
    """

    table: Table
    zones: int
    nodes: int
    first_through: int
    columns: dict[str, NDArray[np.float64]]

    @classmethod
    def from_file(cls, file: str | Path) -> TntpLinks:
        """Read a network file.

        Parameters
        ----------
        file
            Plain or gzipped text.

        Returns
        -------
        TntpLinks
            As many links as the file's metadata state.

        Raises
        ------
        InputError
            If metadata are missing, a row does not have ten fields, a value is not a number, a node is out of range, a
            link leads from a node to itself, or the number of rows is not ``NUMBER OF LINKS``; it names file, line,
            rule and value.
        """
        lines = lines_of(file)
        metadata = read_metadata(lines, file=str(file))
        nodes = metadata.whole("NUMBER OF NODES", at_least=2)
        rows = list(lines)
        rule = f"a link must have {len(FIELDS)} fields ({' '.join(FIELDS)}), separated by blanks or tabs"
        table = table_of(fields_of(rows), FIELDS, file=str(file), rule=rule)
        uneven = [line for line in rows if line.text.endswith(";") != rows[0].text.endswith(";")]
        if uneven:
            rule = f"all rows must end in ';', or none (is the row cut short?); got {shown(uneven[0].text)}"
            table.broken.append(f"{file}: {row_fault([line.number for line in uneven], rule)}")
        columns = {name: table.numbers(name) for name in _ENDS}
        for name, node in columns.items():
            wrong = ~((node >= 1) & (node <= nodes) & (np.floor(node) == node))
            table.refuse(name, wrong, f"a node, 1 … {nodes:,} (<NUMBER OF NODES>)")
        table.refuse("term_node", columns["init_node"] == columns["term_node"], "another node than init_node")
        for name in FIELDS[2:-1]:
            columns[name] = table.checked_numbers(name, at_least=0 if name in _NOT_NEGATIVE else -np.inf)
        _check_header(metadata, table)
        table.check()
        return cls(
            table=table,
            zones=metadata.whole("NUMBER OF ZONES"),
            nodes=nodes,
            first_through=metadata.whole("FIRST THRU NODE", at_least=1),
            columns=columns,
        )

    @property
    def link_type(self) -> list[str]:
        """Link type of each row, as in the file."""
        return self.table.column("link_type").to_list()


def _check_header(metadata: Metadata, table: Table) -> None:
    """Compare the metadata of a file with its rows, and note what differs."""
    rows, nodes = len(table), metadata.whole("NUMBER OF NODES", at_least=2)
    links, zones = metadata.whole("NUMBER OF LINKS"), metadata.whole("NUMBER OF ZONES")
    first = metadata.whole("FIRST THRU NODE", at_least=1)
    usable = counted(rows, "usable row follows", "usable rows follow")
    for name, wrong, fault in (
        ("NUMBER OF LINKS", rows != links, f"<NUMBER OF LINKS> is {links:,}, and {usable}"),
        ("NUMBER OF LINKS", rows == 0, "the road network is empty: the file holds no usable link"),
        ("NUMBER OF ZONES", zones > nodes, f"<NUMBER OF ZONES> is {zones:,}, more than the {nodes:,} nodes"),
        ("FIRST THRU NODE", first > nodes + 1, f"<FIRST THRU NODE> is {first:,}, and there are {nodes:,} nodes"),
    ):
        if wrong:
            table.broken.append(f"{metadata.file}: line {metadata.values[name].number}: {fault}")


MOST_LANES = 1000
"""Largest number of lanes guessed for a link; a larger capacity means that the link is practically unlimited."""
LEAST_LIKELY_VPH = 100.0
"""Vehicles per hour of a whole link; if most links have less, the values are probably not capacities for the period
given."""


SHOWN_NODES = 10


def read_tntp(
    *,
    network: str | Path,
    nodes: str | Path | None,
    length_m: float,
    time_s: float,
    crs: object = None,
    project_to: object = None,
    capacity_hours: float = 1.0,
    capacity_vph: float = 1800.0,
    default_speed_mps: float = 13.9,
) -> RawNetwork:
    """Read a network of the Transportation Networks test problems.

    Node ``n`` of the file is node ``n`` of the graph. Nodes 1 … zones have ``zone``; those before the first through
    node have ``through = False``. In addition to the attributes of :mod:`simulator.roads.schema`, edges have the
    attributes from which a published equilibrium is computed: ``bpr_b``, ``bpr_power``, ``capacity_total_vph``,
    ``free_flow_s`` and ``toll``, as in the file; ``class`` is the link type.

    Speed is length divided by free-flow time, or a default if that time is 0. The file gives the capacity of a whole
    link: lanes = max(1, round(capacity / lane capacity)), at most 1,000, and the capacity of each lane is the link's
    capacity divided by the number of lanes. A capacity of 0 is replaced by one lane with the lane capacity. The largest
    part in which routes connect all nodes is kept (:func:`~simulator.roads.connectivity.largest_part_for_trips`).

    Parameters
    ----------
    network
        Network file, plain or gzipped.
    nodes
        Node file: TNTP text or GeoJSON points. None for nodes in a square, in the order of their numbers: only lengths,
        times and what is connected then mean something.
    length_m, time_s
        One unit of the file's lengths in metres, and one of its free-flow times in seconds.
    crs
        The system of the node coordinates, in any units; east (or longitude) first. Longitude and latitude if None.
    project_to
        A projected system in metres; the UTM zone of the network's middle if None.
    capacity_hours
        Hours to which the file's capacities refer.
    capacity_vph
        Vehicles per hour and lane from which lanes are guessed, since capacities are stated for whole links.
    default_speed_mps
        Free-flow speed of links whose free-flow time is 0.

    Returns
    -------
    RawNetwork
        Nodes in the order of their numbers, links in the order of the file.

    Raises
    ------
    InputError
        If files are faulty; it lists every fault with file, line, rule and value.
    """
    if nodes is None:
        links, places, remarks = TntpLinks.from_file(network), None, []
        node = _used(links)
        x, y = in_a_square(len(node)).T
    else:
        links, places = both(lambda: TntpLinks.from_file(network), lambda: TntpNodes.from_file(nodes))
        remarks = _check_nodes(links, places)
        node, (x, y) = places.node, places.xy.T
    file, rows, columns = links.table.file, links.table, links.columns
    with np.errstate(over="ignore"):  # numbers that overflow are faults
        total_vph, free_flow_s = columns["capacity"] / capacity_hours, columns["free_flow_time"] * time_s
        guessed = np.rint(total_vph / capacity_vph)
    for name, values in (("capacity", total_vph), ("free_flow_time", free_flow_s), ("capacity", guessed)):
        rows.refuse(name, ~np.isfinite(values), "a number that can be converted to hours and seconds")
    rows.check()
    lanes = np.clip(guessed, 1, MOST_LANES)
    words = "lanes are guessed, one for each {:g} vehicles/h of a link's capacity: {:g} to {:g} lanes"
    beyond = int((guessed > MOST_LANES).sum())
    return RawNetwork(
        nodes=pd.DataFrame(
            {
                "node": node,
                "x": np.asarray(x, dtype=np.float64),
                "y": np.asarray(y, dtype=np.float64),
                "zone": column_of([number if number <= links.zones else None for number in node.tolist()]),
                "through": column_of([None if number >= links.first_through else False for number in node.tolist()]),
            }
        ),
        links=pd.DataFrame(
            {
                **{
                    ours: np.searchsorted(node, columns[name]) for ours, name in zip(("from", "to"), _ENDS, strict=True)
                },
                "length": columns["length"],
                "lanes": lanes,
                "capacity": total_vph / lanes,
                "capacity_total_vph": total_vph,
                "free_flow_s": free_flow_s,
                "bpr_b": columns["b"],
                "bpr_power": columns["power"],
                "toll": columns["toll"],
                "class": column_of(links.link_type, rows.number),
            },
            index=rows.number,
        ),
        crs=crs_about((0.0, 0.0)) if places is None else WGS84 if crs is None else crs,
        file=file,
        node_table=None if places is None else places.table,
        length_m=length_m,
        project_to=project_to,
        crs_named=crs is not None,
        placed=places is not None,
        without_places="roads.nodes left out",
        defaults=Defaults(default_speed_mps, 1, capacity_vph),
        keep="trips",
        unit=rows.unit,
        filled=[FilledDefault("lanes (a capacity too high for a road)", f"{MOST_LANES:,}", beyond)] if beyond else [],
        remarks=[*remarks, f"{file}: {words.format(capacity_vph, lanes.min(), lanes.max())}"],
        warnings=_warnings(file, total_vph, placed=places is not None),
    )


def _warnings(file: str, total_vph: NDArray[np.float64], *, placed: bool) -> list[Note]:
    """Return warnings of nodes without places, and of capacities that are too low for roads."""
    warnings = []
    if not placed:
        warnings.append(no_places(file, "no file of nodes"))
    if (median := float(np.median(total_vph))) < LEAST_LIKELY_VPH:
        observation = f"the capacity of a link is, in the median, {median:.3g} vehicles/h, and queues will form"
        checks = "check capacity_hours, and whether these are capacities at all"
        warnings.append(warning("capacities", f"{file}: {observation}: {checks}"))
    return warnings


def _used(links: TntpLinks) -> NDArray[np.int64]:
    """Return the nodes of all links, ascending."""
    return np.unique(np.concatenate([links.columns[name] for name in _ENDS])).astype(np.int64)


def _check_nodes(links: TntpLinks, places: TntpNodes) -> list[str]:
    """Check that the node file has the nodes of all links, and return a remark if it has fewer than are declared.

    A network may count numbers that it does not use, as the networks of Winnipeg and Barcelona do. No memory is
    allocated by a declared number.
    """
    nodes, stated = places.table, f"<NUMBER OF NODES> of {links.table.file}"
    beyond = places.node > links.nodes
    if beyond.any():
        first = int(places.node[beyond][0])
        rule = f"nodes must be 1 … {links.nodes:,}, as {stated} states, got {first}"
        raise InputError([f"{nodes.file}: {nodes.rows_in_words(beyond)}: {rule}"])
    used = _used(links)
    if absent := used[~np.isin(used, places.node)].tolist():
        listed = ", ".join(map(str, absent[:SHOWN_NODES])) + (" …" if len(absent) > SHOWN_NODES else "")
        held = f"it holds {counted(len(nodes), 'node')}, and links of {links.table.file} use others"
        raise InputError([f"{nodes.file}: {held}; without coordinates: {listed}"])
    unused = links.nodes - len(nodes)
    words = f"{counted(unused, 'number')} up to {stated} without coordinates, which no link uses, left out"
    return [f"{nodes.file}: {words}"] if unused else []


_IDENTIFIERS = ("id", "node", "node_id", "nodeid")
_LETTER = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, eq=False, repr=False)
class TntpNodes:
    """The positions of the nodes of a network, in the order of their numbers and the units of the file.

    Parameters
    ----------
    table
        The rows: lines or features.
    node
        Node numbers, ascending, int64, shape (nodes,).
    xy
        East (or longitude) and north (or latitude), finite, shape (nodes, 2).
    """

    table: Table
    node: NDArray[np.int64]
    xy: NDArray[np.float64]

    @classmethod
    def from_file(cls, file: str | Path) -> TntpNodes:
        """Read a node file; its beginning determines whether it is read as GeoJSON.

        Parameters
        ----------
        file
            Text with a row ``node x y ;`` for each node, with or without a header; or GeoJSON points with a number in
            ``id``, ``node``, ``node_id`` or ``nodeid``, in any case. Plain or gzipped.

        Returns
        -------
        TntpNodes
            At least one node.

        Raises
        ------
        InputError
            If a row does not have three fields, a value is not a number, a node occurs twice, or there is no node; it
            names file, line or feature, rule and value.
        """
        text = json_of(file)
        table = _node_lines(file) if text is None else _features(text, str(file))
        node = table.integers("node", at_least=1)
        table.refuse("node", pd.Series(node).duplicated(keep=False).to_numpy() & (node > 0), "in one row only")
        xy = np.column_stack([table.checked_numbers(name) for name in ("x", "y")])
        table.check()
        if not len(table):
            raise InputError([f"{file}: it holds no node"])
        order = np.argsort(node)
        table = replace(table, frame=table.frame.iloc[order], number=table.number[order])
        return cls(table, node[order], xy[order])


_NODE = ("node", "x", "y")


def _node_lines(file: str | Path) -> Table:
    """Read rows of text; a first line that begins with a letter is a header."""
    lines = lines_of(file)
    if (first := next(lines, None)) is None:
        raise InputError([f"{file}: it is empty"])
    rows = lines if _LETTER.match(first.text) else chain((first,), lines)
    rule = f"a node must have 3 fields ({' '.join(_NODE)}), separated by blanks or tabs"
    return table_of(fields_of(rows), _NODE, file=str(file), rule=rule)


def _features(text: str, file: str) -> Table:
    """Read GeoJSON points from a feature collection or a list of features."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([f"{file}: cannot be read as GeoJSON: {error}"]) from None
    features = read.get("features") if isinstance(read, dict) else read
    if not isinstance(features, list):
        raise InputError([f'{file}: GeoJSON must have a list of "features"'])
    rule = "must have a Point as its geometry, with a number of the node and two coordinates"
    return table_of(enumerate(map(_feature, features), start=1), _NODE, file=file, rule=rule, unit="feature")


def _feature(feature: Any) -> list[str]:
    """Return the node number and the coordinates of a feature; nothing if it is no point."""
    feature = feature if isinstance(feature, dict) else {}
    properties, geometry = feature.get("properties"), feature.get("geometry")
    named = {key.lower(): value for key, value in properties.items()} if isinstance(properties, dict) else {}
    identifier = next((named[key] for key in _IDENTIFIERS if key in named), feature.get("id"))
    point = geometry.get("coordinates") if isinstance(geometry, dict) and geometry.get("type") == "Point" else None
    return [str(value) for value in (identifier, *point[:2])] if isinstance(point, list) and len(point) > 1 else []

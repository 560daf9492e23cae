"""Rows of a TNTP network file, converted to metres, metres per second, lanes and vehicles per hour and lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.messages import counted
from simulator.roads.plausibility import speed_doubts
from simulator.roads.read_report import FilledDefault
from simulator.roads.tntp.metadata import Faults, finite_number, lines_of, read_metadata, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from simulator.roads.tntp.metadata import Line, Metadata

FIELDS = ("init_node", "term_node", "capacity", "length", "free_flow_time", "b", "power", "speed", "toll", "link_type")
_WHOLE = ("init_node", "term_node")
_NOT_NEGATIVE = ("capacity", "length", "free_flow_time", "b", "power")


@dataclass(frozen=True, eq=False, repr=False)
class TntpLinks:
    """The links of a network file, in the units of the file.

    Parameters
    ----------
    file
        Path as the user gave it.
    zones
        Number of zones; zones are the nodes 1 … zones.
    nodes
        Number of nodes; nodes are numbered 1 … nodes.
    first_through
        Routes may pass through this node and those after it; at those before it, trips only begin or end.
    line
        Line number of each row, int64, shape (links,).
    columns
        Fields of the rows by name, float64, each of shape (links,), ``link_type`` left out.
    link_type
        Link type of each row, as in the file.
    """

    file: str
    zones: int
    nodes: int
    first_through: int
    line: NDArray[np.int64]
    columns: dict[str, NDArray[np.float64]]
    link_type: list[str]

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
        name = str(file)
        lines = lines_of(file)
        metadata = read_metadata(lines, file=name)
        nodes = metadata.whole("NUMBER OF NODES", at_least=2)
        faults = Faults(name)
        numbers, rows, types = [], [], []
        for line, fields in _rows(lines, faults):
            values = _values(line, fields, nodes, faults)
            numbers.append(line.number)
            rows.append(values)
            types.append(fields[-1])
        _check_header(metadata, len(rows), faults)
        faults.check()
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(FIELDS) - 1)
        return cls(
            file=name,
            zones=metadata.whole("NUMBER OF ZONES"),
            nodes=nodes,
            first_through=metadata.whole("FIRST THRU NODE", at_least=1),
            line=np.array(numbers, dtype=np.int64),
            columns={field: table[:, position].copy() for position, field in enumerate(FIELDS[:-1])},
            link_type=types,
        )

    def __len__(self) -> int:
        """Count the links."""
        return len(self.line)


def _rows(lines: Iterator[Line], faults: Faults) -> Iterator[tuple[Line, list[str]]]:
    """Split rows into fields; a missing semicolon is a fault if others end in one, since the row may be truncated."""
    ends = None
    for line in lines:
        ended = line.text.endswith(";")
        ends = ended if ends is None else ends
        fields = line.text.removesuffix(";").split()
        if len(fields) != len(FIELDS):
            rule = f"a link must have {len(FIELDS)} fields ({' '.join(FIELDS)}), separated by blanks or tabs"
            faults.add(f"line {line.number}", f"{rule}; got {len(fields)}: {shown(line.text)}")
            continue
        if ended != ends:
            rule = "rows must end in ';' if the first does, and else not (is the row cut short?)"
            faults.add(f"line {line.number}", f"{rule}; got {shown(line.text)}")
        yield line, fields


def _values(line: Line, fields: list[str], nodes: int, faults: Faults) -> list[float]:
    """Read the numbers of a row, NaN for each value that is not a number."""
    values = []
    for name, text in zip(FIELDS[:-1], fields, strict=False):
        number = finite_number(text)
        place, got = f"line {line.number}", f"got {shown(text)}"
        if number is None:
            faults.add(place, f"{name} must be a finite number, {got}")
        elif name in _WHOLE and not (number.is_integer() and 1 <= number <= nodes):
            faults.add(place, f"{name} must be a node, 1 … {nodes:,} (<NUMBER OF NODES>), {got}")
        elif name in _NOT_NEGATIVE and number < 0:
            faults.add(place, f"{name} must not be negative, {got}")
        values.append(np.nan if number is None else number)
    if values[0] == values[1]:
        faults.add(f"line {line.number}", f"a link must not lead from a node to itself, got {fields[0]} {fields[1]}")
    return values


def _check_header(metadata: Metadata, rows: int, faults: Faults) -> None:
    """Compare the metadata of a file with its rows."""
    nodes, links = metadata.whole("NUMBER OF NODES", at_least=2), metadata.whole("NUMBER OF LINKS")
    zones, first = metadata.whole("NUMBER OF ZONES"), metadata.whole("FIRST THRU NODE", at_least=1)
    place = {name: f"line {line.number}" for name, line in metadata.values.items()}
    if rows != links:
        faults.add(
            place["NUMBER OF LINKS"],
            f"<NUMBER OF LINKS> is {links:,}, and {counted(rows, 'usable row follows', 'usable rows follow')}",
        )
    if rows == 0:
        faults.add(place["NUMBER OF LINKS"], "the road network is empty: the file holds no usable link")
    if zones > nodes:
        faults.add(place["NUMBER OF ZONES"], f"<NUMBER OF ZONES> is {zones:,}, more than the {nodes:,} nodes")
    if first > nodes + 1:
        faults.add(place["FIRST THRU NODE"], f"<FIRST THRU NODE> is {first:,}, and there are {nodes:,} nodes")


SHORTEST_M = 1.0
"""Length of a link that has no length and whose nodes have the same position."""
MOST_LANES = 1000
"""Largest number of lanes guessed for a link; a larger capacity means that the link is practically unlimited."""
LEAST_LIKELY_VPH = 100.0
"""Vehicles per hour of a whole link; if most links have less, the values are probably not capacities for the period
given."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkNumbers:
    """The numbers of every link, in the order of the file.

    A length of 0 is replaced by the straight distance between the nodes, or by 1 m if they have the same position.
    Speed is length divided by free-flow time, or a default if that time is 0. The file gives the capacity of a whole
    link: lanes = max(1, round(capacity / lane capacity)), at most 1,000, and the capacity of each lane is the link's
    capacity divided by the number of lanes. A capacity of 0 is replaced by one lane with the lane capacity.

    Parameters
    ----------
    columns
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane), and, as in the file,
        ``capacity_total_vph``, ``free_flow_s``, each of shape (links,).
    defaults
        Values filled in.
    remarks
        How the numbers of lanes were derived.
    doubts
        Indications that the units, or the periods to which capacities refer, are wrong.
    """

    columns: dict[str, NDArray[np.float64]]
    defaults: tuple[FilledDefault, ...]
    remarks: tuple[str, ...]
    doubts: tuple[str, ...]

    @classmethod
    def from_links(
        cls,
        links: TntpLinks,
        *,
        straight_m: NDArray[np.float64],
        length_m: float,
        time_s: float,
        capacity_hours: float,
        lane_capacity_vph: float,
        default_speed_mps: float,
    ) -> LinkNumbers:
        """Convert a file's numbers to the units of the schema and fill in missing ones.

        Parameters
        ----------
        links
            The links as read.
        straight_m
            Metres between the nodes of each link, shape (links,).
        length_m, time_s, capacity_hours, lane_capacity_vph, default_speed_mps
            As in :func:`~simulator.roads.tntp.network.read_tntp`.

        Returns
        -------
        LinkNumbers
            All above 0 and finite.

        Raises
        ------
        InputError
            If a number is too large or too small to be represented in the units of the schema.
        """
        with np.errstate(over="ignore"):  # numbers that overflow are reported as faults below
            given_m, free_flow_s = links.columns["length"] * length_m, links.columns["free_flow_time"] * time_s
            total_vph = links.columns["capacity"] / capacity_hours
        no_length, no_time, no_capacity = given_m == 0, free_flow_s == 0, total_vph == 0
        at_one_place = no_length & (straight_m < SHORTEST_M)
        metres = np.where(no_length, np.where(at_one_place, SHORTEST_M, straight_m), given_m)
        with np.errstate(divide="ignore", over="ignore"):
            speed = np.where(no_time, default_speed_mps, metres / free_flow_s)
            guessed = np.rint(total_vph / lane_capacity_vph)
        lanes = np.clip(guessed, 1, MOST_LANES)
        lane_vph = np.where(no_capacity, lane_capacity_vph, total_vph / lanes)
        columns = {
            "length_m": metres,
            "speed_mps": speed,
            "lanes": lanes,
            "capacity_vph": lane_vph,
            "capacity_total_vph": total_vph,
            "free_flow_s": free_flow_s,
        }
        _check(links, columns)
        filled = (
            ("length_m (0 in the file)", "the straight distance between its nodes", no_length & ~at_one_place),
            ("length_m (0 in the file, nodes at one place)", f"{SHORTEST_M:g} m", at_one_place),
            ("speed_mps (free-flow time 0 in the file)", f"{default_speed_mps:g} m/s", no_time),
            ("capacity_vph (capacity 0 in the file)", f"{lane_capacity_vph:g} vehicles/h", no_capacity),
            ("lanes (a capacity beyond any road)", f"{MOST_LANES:,}", guessed > MOST_LANES),
        )
        words = "lanes are guessed, one for each {:g} vehicles/h of a link's capacity: {:g} to {:g} lanes"
        given_mps = np.where(no_time | no_length, np.nan, speed)
        doubts: list[str] = [*speed_doubts(given_mps, metres, file=links.file)]
        if (median := float(np.median(total_vph))) < LEAST_LIKELY_VPH:
            said = f"the capacity of a link is, in the median, {median:.3g} vehicles/h, and queues will form"
            doubts.append(f"{links.file}: {said}: check capacity_hours, and whether these are capacities at all")
        return cls(
            columns=columns,
            defaults=tuple(FilledDefault(name, taken, int(rows.sum())) for name, taken, rows in filled if rows.any()),
            remarks=(f"{links.file}: {words.format(lane_capacity_vph, lanes.min(), lanes.max())}",),
            doubts=tuple(doubts),
        )

    def edges(self, links: TntpLinks) -> Iterator[dict[str, Any]]:
        """Yield the attributes of the links in the form in which they are added to a graph.

        Yields
        ------
        dict
            Attributes of one edge.
        """
        as_read = {"bpr_b": "b", "bpr_power": "power", "toll": "toll"}
        columns = self.columns | {ours: links.columns[theirs] for ours, theirs in as_read.items()}
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        for row, kind in zip(rows, links.link_type, strict=True):
            data: dict[str, Any] = dict(zip(columns, row, strict=True))
            data["lanes"] = int(data["lanes"])
            data["class"] = kind
            yield data


def _check(links: TntpLinks, columns: dict[str, NDArray[np.float64]]) -> None:
    """Check that numbers are still finite, and above 0 where required, after conversion to the schema's units."""
    faults = Faults(links.file)
    for name, values in columns.items():
        above_zero = name not in ("capacity_total_vph", "free_flow_s")
        wrong = ~np.isfinite(values) | ((values <= 0) if above_zero else (values < 0))
        for row in np.flatnonzero(wrong).tolist():
            rule = f"{name} must be a finite number{' above 0' if above_zero else ''}"
            faults.add(f"line {links.line[row]}", f"{rule}, and comes out as {values[row]:g}")
    faults.check()

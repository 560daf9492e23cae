"""Rows of a TNTP network file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.files.counted import counted
from simulator.roads.tntp.faults import Faults
from simulator.roads.tntp.metadata import finite_number, lines_of, read_metadata, shown

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
        Zones are the nodes 1 … zones.
    nodes
        Nodes are numbered 1 … nodes.
    first_through
        Routes may pass through this node and those after it; trips only begin or end at those before.
    line
        Line number of each row, int64, shape (links,).
    columns
        Fields of the rows by name, float64, each of shape (links,), ``link_type`` left out.
    link_type
        As the file has it, one a row.
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
            As many as the file says it has.

        Raises
        ------
        RoadsError
            Naming file, line, rule and value: metadata that are missing, a row that is not ten fields, a number that
            is none, a node that cannot be, a link from a node to itself, rows other than ``NUMBER OF LINKS``.
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
    """Split rows into fields. Either every row ends in a semicolon or none does: a row without may be cut short."""
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
    """Read the numbers of a row, a NaN for each that is none."""
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
    """Hold what the file says of itself against its rows."""
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

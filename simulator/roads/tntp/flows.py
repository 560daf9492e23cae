"""Published equilibrium flows of TNTP networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from simulator.files.errors import InputError
from simulator.roads.tntp.metadata import Faults, finite_number, lines_of, read_metadata, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simulator.roads.tntp.metadata import Line

NAMES = {
    "from": ("from", "tail", "init_node", "init", "a"),
    "to": ("to", "head", "term_node", "term", "b"),
    "volume": ("volume", "flow", "vol"),
    "cost": ("cost", "time", "travel_time"),
}
"""The project's names of the columns to the names used in files, in any case."""


def read_flows(file: str | Path) -> pd.DataFrame:
    """Read the flows of a published user equilibrium.

    Parameters
    ----------
    file
        A file with rows ``from to volume cost``, plain or gzipped; with or without metadata before them, with or
        without a header (such as ``From To Volume Cost`` or ``Tail Head Volume Cost``), with or without colons and
        semicolons.

    Returns
    -------
    pandas.DataFrame
        ``from``, ``to``: int64 nodes; ``volume``: vehicles in the period to which the trips refer; ``cost``: the
        generalised cost of the link, in the unit of the network's free-flow times. In the order of the file.

    Raises
    ------
    InputError
        If the file has no flow, a row does not have four fields, a node is not a whole number, or a volume or cost is
        not a finite number, 0 or more; it names file, line, rule and value.
    """
    name = str(file)
    faults = Faults(name)
    order = list(NAMES)
    rows: list[tuple[int, int, float, float]] = []
    for line in _after_metadata(file):
        fields = line.text.replace(":", " ").replace(";", " ").split()
        if not rows and fields and finite_number(fields[0]) is None:
            order = _header(line, fields, faults)
            continue
        row = _row(line, dict(zip(order, fields, strict=False)), len(fields), faults)
        if row is not None:
            rows.append(row)
    faults.check()
    if not rows:
        raise InputError([f"{name}: it holds no flow"])
    table = pd.DataFrame(rows, columns=list(NAMES))
    return table.astype({"from": "int64", "to": "int64", "volume": "float64", "cost": "float64"})


def _after_metadata(file: str | Path) -> Iterator[Line]:
    """Yield the rows; metadata before them, if any, are skipped because nothing in them is used."""
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise InputError([f"{file}: it is empty"])
    if first.text.startswith("<"):
        if "END OF METADATA" not in first.text.upper():
            read_metadata(lines, file=str(file))
    else:
        yield first
    yield from lines


def _header(line: Line, fields: list[str], faults: Faults) -> list[str]:
    """Return the project's names of the columns in the order of the header."""
    order = []
    for field in fields:
        known = [ours for ours, theirs in NAMES.items() if field.lower() in theirs]
        order.append(known[0] if known else field)
    absent = [ours for ours in NAMES if order.count(ours) != 1]
    if absent:
        rule = f"the header must name from, to, volume and cost once each, and {', '.join(absent)} is not"
        faults.add(f"line {line.number}", f"{rule}; got {shown(line.text)}")
        faults.check()
    return order


def _row(line: Line, fields: dict[str, str], count: int, faults: Faults) -> tuple[int, int, float, float] | None:
    place = f"line {line.number}"
    if count != len(fields) or not all(name in fields for name in NAMES):
        rule = "a flow must have the fields from, to, volume and cost, separated by blanks or tabs"
        faults.add(place, f"{rule}; got {count}: {shown(line.text)}")
        return None
    values = []
    for name in NAMES:
        number = finite_number(fields[name])
        is_node = name in ("from", "to")
        if number is None or number < 0 or (is_node and not (number.is_integer() and number < 2**53)):
            rule = "a whole number" if is_node else "a finite number, 0 or more"
            faults.add(place, f"{name} must be {rule}, got {shown(fields[name])}")
            return None
        values.append(number)
    return int(values[0]), int(values[1]), values[2], values[3]

"""SUMO network files, read element by element into sumolib's network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.xml_elements import elements_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_NUMBERS = {"lane": ("speed", "length"), "junction": ("x", "y")}
_NEEDED = {
    "net": ("version",),
    "location": ("netOffset", "convBoundary", "origBoundary", "projParameter"),
    "junction": ("id", "type", "x", "y", "incLanes"),
    "edge": ("id",),
    "lane": ("id", "speed", "length"),
}


class _NetFile:
    """Passes the elements of a net file to sumolib's reader, and reports the line of an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = import_sumolib().net.NetReader(withFoes=False)
        self._line = 1
        self._root = ""
        self._edges: dict[str, int] = {}
        self._junctions: dict[str, int] = {}

    def read(self) -> Any:
        """Read the file, and return sumolib's network of it."""
        for name, attributes, line in elements_of(self._path):
            self._line = line
            if attributes is not None:
                self._begins(name, attributes)
                continue
            try:
                self._reader.endElement(name)
            except KeyError as error:
                raise self._fault(f"</{name}>: {_why(error)}") from error
        net = self._reader.getNet()
        if faults := list(self._faults(net)):
            raise InputError(faults)
        return net

    def _begins(self, name: str, attrs: Mapping[str, str]) -> None:
        """Check what sumolib does not check, then pass the start of the element to it."""
        if not self._root and name != "net":
            raise self._fault(f"a SUMO network begins with <net>, this file with <{name}>")
        self._root = name
        for needed in _NEEDED.get(name, ()):
            if needed not in attrs:
                raise self._fault(f"<{name}> lacks {needed}")
        for number in _NUMBERS.get(name, ()):
            if not math.isfinite(number_of(attrs[number])):
                raise self._fault(f"{number} of <{name} id={attrs.get('id', '')!r}> must be a number", attrs[number])
        if name == "edge" and not attrs.get("function", ""):
            self._once(self._edges, "edge", attrs["id"])
            for end in ("from", "to"):
                if not attrs.get(end):
                    raise self._fault(f"<edge id={attrs['id']!r}> lacks {end}")
        elif name == "junction":
            self._once(self._junctions, "junction", attrs["id"])
        try:
            self._reader.startElement(name, attrs)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            raise self._fault(f"<{name}> cannot be used: {_why(error)}") from error

    def _faults(self, net: Any) -> Iterator[str]:
        """Yield the faults that can be found only after the whole file is read."""
        for edge in net.getEdges():
            where = f"{self._path}: line {self._edges[edge.getID()]}: edge {edge.getID()!r}"
            for end, node in (("from", edge.getFromNode()), ("to", edge.getToNode())):
                if node.getID() not in self._junctions:
                    yield f"{where}: {end} must be a junction of the file, got {node.getID()!r}"
            if not edge.getLanes():
                yield f"{where}: it has no lanes"
            for lane in edge.getLanes():
                for what, value in (("length", lane.getLength()), ("speed", lane.getSpeed())):
                    if not value > 0:
                        yield f"{where}: {what} of a lane must be above 0, got {value:g}"
                shape = lane.getShape()
                if len(shape) < 2 or not np.isfinite(shape).all():
                    yield f"{where}: the shape of a lane must have two points or more, finite, got {len(shape)}"

    def _once(self, seen: dict[str, int], kind: str, name: str) -> None:
        """Record the line in which a name is defined; raise if it was defined before."""
        if name in seen:
            raise self._fault(f"{kind} {name!r} is defined twice, first in line {seen[name]}")
        seen[name] = self._line

    def _fault(self, rule: str, value: str | None = None) -> InputError:
        got = "" if value is None else f", got {value!r}"
        return InputError([f"{self._path}: line {self._line}: {rule}{got}"])


def read_net_file(path: Path) -> Any:
    """Read a SUMO network file.

    Parameters
    ----------
    path
        A file ``net.xml``, plain or gzipped.

    Returns
    -------
    sumolib.net.Net
        The network, checked, without internal edges and with turns.

    Raises
    ------
    InputError
        If the file cannot be read, is not a SUMO network, or contains data that cannot be used; it names the line.
    """
    return _NetFile(path).read()


def number_of(text: str) -> float:
    """Return the number that a text states; NaN if it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _why(error: Exception) -> str:
    return f"nothing has the name {error.args[0]!r}" if isinstance(error, KeyError) else str(error)


def import_sumolib() -> Any:
    """Import sumolib; SUMO itself is not needed.

    Returns
    -------
    module
        The module with ``sumolib.net``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("sumolib", needed="reading a SUMO network needs sumolib", extra="sumo")


def vehicle_classes() -> frozenset[str]:
    """Return the names of SUMO's vehicle classes, without deprecated ones."""
    lane = import_sumolib().net.lane
    return frozenset(lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED)

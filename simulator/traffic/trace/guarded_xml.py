"""XML read element by element, without anything a file may make a parser do."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.source import opened

Started = Callable[[str, dict[str, str], int], None]
"""Told each element's name, its attributes and its line."""

_MOST_DEPTH = 256


class _RefusedError(Exception):
    """Carries the rule a document breaks."""


def read_elements(file: Path, started: Started) -> None:
    """Go through a document's elements as they start; a document type, and so every entity of its own, is refused.

    Raises
    ------
    TrafficError
        If the file cannot be read or is no well-formed XML: file, line and rule.
    """
    parser = expat.ParserCreate()
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEPTH:
            raise _RefusedError(f"elements must be within at most {_MOST_DEPTH} others")
        started(name.rpartition(":")[2], attributes, parser.CurrentLineNumber)

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: Any) -> None:
        raise _RefusedError("must be without a document type (DOCTYPE), whose entities are not expanded")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        with opened(file) as stream:
            parser.ParseFile(stream)
    except _RefusedError as error:
        raise TrafficError([f"{file}: line {parser.CurrentLineNumber}: {error}"]) from None
    except expat.ExpatError as error:
        words = expat.ErrorString(error.code)
        if not parser.CurrentByteIndex > 0 and words == "no element found":
            raise TrafficError([f"{file}: it is empty"]) from None
        raise TrafficError([f"{file}: line {error.lineno}: must be well-formed XML: {words}"]) from None
    except (ValueError, LookupError) as error:
        if isinstance(error, TrafficError):
            raise
        raise TrafficError([f"{file}: must be well-formed XML: {error}"]) from None


def root_of(file: Path) -> str | None:
    """Return the name of a document's outermost element; None of what is no XML."""

    class _FoundError(Exception):
        pass

    found: list[str] = []

    def note(name: str, _attributes: dict[str, str], _line: int) -> None:
        found.append(name)
        raise _FoundError

    with contextlib.suppress(_FoundError, TrafficError):
        read_elements(file, note)
    return found[0] if found else None

"""Elements of an XML file, one after the other, whatever its size."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from simulator.traffic.errors import TrafficError
from simulator.traffic.packed import chunks_of

MOST_BYTES_A_TAG = 1 << 26
"""A longest route in one attribute is a few MB; what has no tag in 64 MiB is no file of traffic."""


class Element(NamedTuple):
    """An element that begins, or that ends: then its attributes are None."""

    name: str
    attributes: Mapping[str, str] | None
    line: int

    @property
    def ends(self) -> bool:
        """Whether this is an element's end."""
        return self.attributes is None


def elements_of(file: str | Path) -> Iterator[Element]:
    """Go through an XML file, plain or gzipped (told by its first bytes), holding no more than 1 MiB of it.

    Text between elements is passed over. Documents that declare a document type are refused: nothing is ever expanded.

    Yields
    ------
    Element
        Every begin and end, in the order of the file, with its line.

    Raises
    ------
    TrafficError
        If the file cannot be read, is not well-formed, declares a document type, or unpacks beyond reason.
    """
    found: list[Element] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def begins(name: str, attributes: dict[str, str]) -> None:
        found.append(Element(name, attributes, parser.CurrentLineNumber))

    def over(name: str) -> None:
        found.append(Element(name, None, parser.CurrentLineNumber))

    def refuse(*_: object) -> None:
        rule = "must not declare a document type or entities (<!DOCTYPE): they are never expanded"
        raise TrafficError([f"{file}: line {parser.CurrentLineNumber}: {rule}"])

    parser.StartElementHandler, parser.EndElementHandler = begins, over
    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = refuse, refuse
    silent = 0
    try:
        for chunk in chunks_of(Path(file)):
            parser.Parse(chunk, False)  # noqa: FBT003 - expat takes no keywords
            silent = 0 if found else silent + len(chunk)
            if silent > MOST_BYTES_A_TAG:
                rule = f"a tag must not be longer than {MOST_BYTES_A_TAG:,} bytes; is this XML?"
                raise TrafficError([f"{file}: line {parser.CurrentLineNumber}: {rule}"])
            yield from found
            found.clear()
        parser.Parse(b"", True)  # noqa: FBT003 - expat takes no keywords
    except expat.ExpatError as error:
        fault = f"{file}: line {error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
        raise TrafficError([fault]) from None
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, TrafficError):
            raise
        # What Python's codecs have against the encoding the file declares.
        raise TrafficError([f"{file}: line 1: its declared encoding cannot be read: {error}"]) from None
    yield from found

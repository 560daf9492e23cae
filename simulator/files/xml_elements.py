"""Elements of an XML file, one after the other, whatever its size."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from simulator.files.errors import FaultsError
from simulator.files.unpacked import LONGEST_BYTES, chunks_of

MOST_DEPTH = 256


class Element(NamedTuple):
    """An element that begins, or that ends: then its attributes are None."""

    name: str
    attributes: Mapping[str, str] | None
    line: int

    @property
    def ends(self) -> bool:
        """Whether this is an element's end."""
        return self.attributes is None

    @property
    def local_name(self) -> str:
        """Its name without the prefix of a namespace."""
        return self.name.rpartition(":")[2]


def elements_of(file: str | Path, *, error: type[FaultsError]) -> Iterator[Element]:
    """Go through an XML file, plain or packed, holding little more than 1 MiB of it.

    Text between elements is passed over. Documents that declare a document type are refused: nothing is ever expanded.

    Parameters
    ----------
    file
        As `opened` takes it.
    error
        Raised.

    Yields
    ------
    Element
        Every begin and end, in the order of the file, with its line; all that stand before a fault, and then it raises.

    Raises
    ------
    FaultsError
        If the file cannot be read, is empty or not well-formed, declares a document type, nests more than `MOST_DEPTH`
        elements, or has no tag in `LONGEST_BYTES`.
    """
    found: list[Element] = []
    depth = 0
    parser = expat.ParserCreate()

    def begins(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise refused(f"elements must be within at most {MOST_DEPTH} others")
        found.append(Element(name, attributes, parser.CurrentLineNumber))

    def over(name: str) -> None:
        nonlocal depth
        depth -= 1
        found.append(Element(name, None, parser.CurrentLineNumber))

    def refuse(*_: object) -> None:
        raise refused("must not declare a document type or entities (<!DOCTYPE): they are never expanded")

    def refused(rule: str) -> FaultsError:
        return error([f"{file}: line {parser.CurrentLineNumber}: {rule}"])

    def parse(chunk: bytes, *, last: bool = False) -> FaultsError | None:
        try:
            parser.Parse(chunk, last)
        except FaultsError as fault:
            return fault
        except expat.ExpatError as fault:
            return error([f"{file}: line {fault.lineno}: not well-formed XML: {expat.ErrorString(fault.code)}"])
        except (LookupError, ValueError) as fault:  # what Python's codecs have against the encoding the file declares
            return error([f"{file}: line 1: its declared encoding cannot be read: {fault}"])
        return None

    parser.StartElementHandler, parser.EndElementHandler = begins, over
    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = refuse, refuse
    silent = total = 0
    for chunk in chunks_of(Path(file), error=error):
        fault = parse(chunk)
        total += len(chunk)
        silent = 0 if found else silent + len(chunk)
        if fault is None and silent > LONGEST_BYTES:
            fault = refused(f"must have a tag in every {LONGEST_BYTES:,} bytes; is this XML?")
        yield from found
        found.clear()
        if fault is not None:
            raise fault
    if total == 0:
        raise error([f"{file}: it is empty"])
    fault = parse(b"", last=True)
    yield from found
    if fault is not None:
        raise fault


def root_of(file: Path) -> str | None:
    """Return the name of a document's outermost element, without prefix; None of what is no XML."""
    try:
        return next((element.local_name for element in elements_of(file, error=FaultsError)), None)
    except FaultsError:
        return None

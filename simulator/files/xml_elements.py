"""Elements of an XML file, one after another, whatever its size."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from simulator.files.compressed_io import LONGEST_BYTES, XML_TIMES, chunks_of
from simulator.files.errors import FaultsError

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


def elements_of(file: str | Path, *, error: type[FaultsError], times: float = XML_TIMES) -> Iterator[Element]:
    """Go through an XML file, plain or packed, holding little more than a tag of it.

    Text between elements is passed over. Documents that declare a document type are refused: nothing is ever expanded.

    Parameters
    ----------
    file
        As `opened` takes it.
    error
        Raised.
    times
        As of `opened`.

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
    parsing = _Parsing(str(file), error)
    silent = total = 0
    for chunk in chunks_of(Path(file), error=error, times=times):
        fault = parsing.parse(chunk)
        total += len(chunk)
        if fault is None and not parsing.found and silent + len(chunk) > LONGEST_BYTES:
            fault = parsing.catch_up()
        silent = 0 if parsing.found else silent + len(chunk)
        if fault is None and silent > LONGEST_BYTES:
            fault = parsing.fault(f"must have a tag in every {LONGEST_BYTES:,} bytes; is this XML?")
        yield from parsing.found
        parsing.found.clear()
        if fault is not None:
            raise fault
    if total == 0:
        raise error([f"{file}: it is empty"])
    fault = parsing.parse(b"", last=True)
    yield from parsing.found
    if fault is not None:
        raise fault


def root_of(file: Path) -> str | None:
    """Return the name of a document's outermost element, without prefix; None of what is no XML."""
    try:
        return next((element.local_name for element in elements_of(file, error=FaultsError, times=0)), None)
    except FaultsError:
        return None


class _Parsing:
    """A file while it is parsed: the elements of its last chunk, in `found`."""

    def __init__(self, file: str, error: type[FaultsError]) -> None:
        self._file, self._error = file, error
        self._depth = 0
        self.found: list[Element] = []
        self._parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._begins, self._ends
        parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = self._refuses, self._refuses

    def fault(self, rule: str) -> FaultsError:
        """Return a fault of the line that was read last."""
        return self._error([f"{self._file}: line {self._parser.CurrentLineNumber}: {rule}"])

    def parse(self, chunk: bytes, *, last: bool = False) -> FaultsError | None:
        """Go on, and return what is wrong, so that what comes before it is seen first."""
        try:
            self._parser.Parse(chunk, last)
        except FaultsError as fault:
            return fault
        except expat.ExpatError as fault:
            rule = f"not well-formed XML: {expat.ErrorString(fault.code)}"
            return self._error([f"{self._file}: line {fault.lineno}: {rule}"])
        except (LookupError, ValueError) as fault:  # what Python's codecs have against the encoding the file declares
            return self._error([f"{self._file}: line 1: its declared encoding cannot be read: {fault}"])
        return None

    def catch_up(self) -> FaultsError | None:
        """Parse what expat has put off: from its version 2.6 on, it waits for more of a tag that is long already."""
        defer = getattr(self._parser, "SetReparseDeferralEnabled", None)
        if defer is None:
            return None
        defer(0)
        fault = self.parse(b"")
        defer(1)
        return fault

    def _begins(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self.fault(f"elements must be within at most {MOST_DEPTH} others")
        self.found.append(Element(name, attributes, self._parser.CurrentLineNumber))

    def _ends(self, name: str) -> None:
        self._depth -= 1
        self.found.append(Element(name, None, self._parser.CurrentLineNumber))

    def _refuses(self, *_: object) -> None:
        raise self.fault("must not declare a document type or entities (<!DOCTYPE): they are never expanded")

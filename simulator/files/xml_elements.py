"""Iteration over the elements of an XML file of any size."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from simulator.files.compressed_io import LONGEST_BYTES, XML_TIMES, chunks_of
from simulator.files.errors import InputError

MOST_DEPTH = 256
TEXT = "#text"
"""Name of the elements that hold text, which no element of a file can have."""


class Element(NamedTuple):
    """The start of an element, or its end, for which the attributes are None, or its text, under its name."""

    name: str
    attributes: Mapping[str, str] | None
    line: int

    @property
    def ends(self) -> bool:
        """Whether this is the end of an element."""
        return self.attributes is None

    @property
    def local_name(self) -> str:
        """Name of the element without the prefix of a namespace."""
        return self.name.rpartition(":")[2]


def elements_of(
    file: str | Path,
    *,
    root: str | None = None,
    times: float = XML_TIMES,
    texts: Collection[str] = (),
    ends: bool = True,
    doctype: bool = False,
) -> Iterator[Element]:
    """Iterate over an XML file, plain or compressed, with little more than one tag of it in memory.

    Text is skipped except the text of the elements in `texts`. Documents that declare a document type are refused,
    unless `doctype` allows its name: entities are never expanded.

    Parameters
    ----------
    file
        The file; see `opened`.
    root
        Name that the outermost element must have, without the prefix of a namespace; any name if None.
    times
        Bytes of memory per byte of content; see `opened`.
    texts
        Names, without the prefix of a namespace, of the elements whose text is yielded before their end, as the
        attribute of that name of an element called `TEXT`.
    ends
        Whether ends of elements are yielded.
    doctype
        Whether the file may name a document type, as MATSim's files do. It is not read, and declarations in the file
        itself are refused.

    Yields
    ------
    Element
        Every start and end of an element, in the order of the file, with its line. All elements before a fault are
        yielded before the error is raised.

    Raises
    ------
    InputError
        If the file cannot be read, is empty or not well-formed, begins with another element, declares a document type,
        nests more than `MOST_DEPTH` elements, or has more than `LONGEST_BYTES` without a tag.
    """
    parsing = _Parsing(str(file), root, texts, ends=ends, doctype=doctype)
    silent = total = 0
    for chunk in chunks_of(Path(file), times=times):
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
        raise InputError([f"{file}: it is empty"])
    fault = parsing.parse(b"", last=True)
    yield from parsing.found
    if fault is not None:
        raise fault


def root_of(file: Path) -> str | None:
    """Return the name of a document's outermost element, without prefix; None if the file is not XML."""
    try:
        return next((element.local_name for element in elements_of(file, times=0, doctype=True)), None)
    except InputError:
        return None


class _Parsing:
    """A file being parsed: the elements of its last chunk are in `found`."""

    def __init__(self, file: str, root: str | None, texts: Collection[str], *, ends: bool, doctype: bool) -> None:
        self._file, self._root, self._texts, self._with_ends = file, root, texts, ends
        self._doctype = doctype
        self._depth = 0
        self._text: list[str] = []
        self.found: list[Element] = []
        self._parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._begins, self._ends
        parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = self._names_type, self._refuses

    def fault(self, rule: str) -> InputError:
        """Return an error about the line that was read last."""
        return InputError([f"{self._file}: line {self._parser.CurrentLineNumber}: {rule}"])

    def parse(self, chunk: bytes, *, last: bool = False) -> InputError | None:
        """Parse a chunk, and return its error, if any, so that the elements before it can be yielded first."""
        try:
            self._parser.Parse(chunk, last)
        except InputError as fault:
            return fault
        except expat.ExpatError as fault:
            rule = f"not well-formed XML: {expat.ErrorString(fault.code)}"
            return InputError([f"{self._file}: line {fault.lineno}: {rule}"])
        except (LookupError, ValueError) as fault:  # raised by Python's codecs for the encoding that the file declares
            return InputError([f"{self._file}: line 1: its declared encoding cannot be read: {fault}"])
        return None

    def catch_up(self) -> InputError | None:
        """Parse what expat has deferred: from version 2.6 on, it waits for more of a tag that is already long."""
        if (defer := getattr(self._parser, "SetReparseDeferralEnabled", None)) is None:
            return None
        defer(0)
        fault = self.parse(b"")
        defer(1)
        return fault

    def _begins(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and self._root not in (None, name.rpartition(":")[2]):
            raise self.fault(f"the file must begin with <{self._root}>, got <{name}>")
        if self._depth > MOST_DEPTH:
            raise self.fault(f"elements must be nested in at most {MOST_DEPTH} others")
        self.found.append(Element(name, attributes, self._parser.CurrentLineNumber))
        if self._texts and name.rpartition(":")[2] in self._texts:
            self._text.clear()
            self._parser.CharacterDataHandler = self._text.append

    def _ends(self, name: str) -> None:
        self._depth -= 1
        if self._texts and (local_name := name.rpartition(":")[2]) in self._texts:
            self._parser.CharacterDataHandler = None
            self.found.append(Element(TEXT, {local_name: "".join(self._text)}, self._parser.CurrentLineNumber))
        if self._with_ends:
            self.found.append(Element(name, None, self._parser.CurrentLineNumber))

    def _names_type(self, _name: str, _system: str | None, _public: str | None, has_declarations: bool) -> None:  # noqa: FBT001 - expat calls it
        if has_declarations or not self._doctype:
            self._refuses()

    def _refuses(self, *_: object) -> None:
        raise self.fault("must not declare a document type or entities (<!DOCTYPE): they are never expanded")

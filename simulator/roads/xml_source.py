"""XML files of road networks: plain or packed, read event by event, within bounds."""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn
from xml.sax import SAXException, SAXParseException, handler, make_parser

from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.sax.xmlreader import Locator

MOST_UNPACKED_BYTES = 4 * 2**30
"""A packed file that grows beyond this is refused."""
LONGEST_TAG_BYTES = 16 * 2**20
"""A file in which no tag ends within so many bytes is refused: a parser would hold all of it."""
_CHUNK_BYTES = 2**20
_PACKED = (".gz", ".bz2")


class XmlElements(handler.ContentHandler):
    """What a reader does with each element; :attr:`line` says where the file is being read."""

    locator: Locator | None = None

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802 - the parser's own name
        """Keep what knows the line."""
        super().setDocumentLocator(locator)
        self.locator = locator

    @property
    def line(self) -> int:
        """Line of the file, from 1."""
        return (self.locator and self.locator.getLineNumber()) or 1


def parse_xml(path: Path, elements: handler.ContentHandler) -> None:
    """Read an XML file, plain, ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path
        The file; its last suffix says how it is packed.
    elements
        Called for each element as it comes.

    Raises
    ------
    RoadsError
        If the file is not there, cannot be unpacked, is empty or no well-formed XML, declares a document type
        (which may hide entities without end), or is larger than a road network can be.
    """
    parser = make_parser()  # noqa: S317 - document types and entities are refused below, and size is bounded
    parser.setFeature(handler.feature_external_ges, False)  # noqa: FBT003 - the parser's own signature
    parser.setContentHandler(elements)
    elements.setDocumentLocator(parser)  # type: ignore[arg-type]  # it is its own locator, and if fed does not say so
    parser.setProperty(handler.property_lexical_handler, _NoDocumentType(path))
    try:
        for chunk in _chunks(path):
            parser.feed(chunk)  # type: ignore[attr-defined]  # typeshed: make_parser's are incremental
        parser.close()  # type: ignore[attr-defined]  # as above
    except RoadsError:
        raise
    except FileNotFoundError:
        raise RoadsError([f"{path}: no such file"]) from None
    except SAXParseException as error:
        where = f"line {error.getLineNumber()}"
        raise RoadsError([f"{path}: {where}: not well-formed XML: {error.getMessage()}"]) from error
    except SAXException as error:
        raise RoadsError([f"{path}: not well-formed XML: {error}"]) from error
    except (LookupError, ValueError) as error:  # an encoding that is none, or not one the parser has
        raise RoadsError([f"{path}: not readable as XML: {error}"]) from error
    except (OSError, EOFError, zlib.error) as error:
        raise RoadsError([f"{path}: cannot be read: {error}"]) from error


class _NoDocumentType(handler.LexicalHandler):
    """Refuses a document type: there is none in these formats, and entities come with it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def startDTD(self, name: str, public_id: str | None, system_id: str | None) -> NoReturn:  # noqa: ARG002, N802 - the parser's own signature
        raise RoadsError([f"{self.path}: declares a document type (<!DOCTYPE {name}>), which is not read"])


def _chunks(path: Path) -> Iterator[bytes]:
    """Unpack piece by piece, and stop where a file is a bomb."""
    packed = path.suffix.lower() in _PACKED
    total = since_tag = 0
    with _open(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            total += len(chunk)
            since_tag = 0 if b">" in chunk else since_tag + len(chunk)
            if since_tag > LONGEST_TAG_BYTES:
                raise RoadsError([f"{path}: no XML: no tag ends within {LONGEST_TAG_BYTES:,} bytes"])
            if packed and total > MOST_UNPACKED_BYTES:
                rule = f"unpacks to more than {MOST_UNPACKED_BYTES:,} bytes"
                raise RoadsError([f"{path}: {rule}; unpack it first if it is a road network"])
            yield chunk
    if total == 0:
        raise RoadsError([f"{path}: the file is empty"])


def _open(path: Path) -> BinaryIO | gzip.GzipFile | bz2.BZ2File:
    """Open as the suffix says."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path)
    if suffix == ".bz2":
        return bz2.open(path)
    return path.open("rb")

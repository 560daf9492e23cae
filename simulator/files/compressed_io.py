"""Content of a file, plain or compressed, read in pieces within limits."""

import bz2
import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from simulator.files.errors import FaultsError
from simulator.files.memory import NEGLIGIBLE, available_nbytes, in_words, shortage

TABLE_TIMES, XML_TIMES, JSON_TIMES = 8.0, 3.0, 13.0
"""Bytes of memory for each byte of text, measured: of tables read whole, of what is kept of XML, of JSON parsed."""
LONGEST_BYTES = 2**24
"""Of a line of text, or of what stands in XML from one tag to the next; a reader holds all of it."""

_BUFFER_BYTES = 2**20
_CHUNK_BYTES = 2**16
_MOST_PACKED = 1_032
"""Times its size that gzip can unpack to; the others go further, and are tried."""


class _Packing(NamedTuple):
    """A way to pack a file."""

    suffix: str
    magic: bytes
    name: str
    opens: Callable[[Any], Any]


_PACKINGS = (
    _Packing(".gz", b"\x1f\x8b", "gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    _Packing(".bz2", b"BZh", "bzip2", bz2.BZ2File),
    _Packing(".xz", b"\xfd7zXZ\x00", "xz", lzma.LZMAFile),
)
_BZIP2_BLOCK = (b"1AY&SY", b"\x17rE8P\x90")
"""What follows ``BZh`` and a digit: a block, or the end of an empty file."""


class _BeyondLimitError(Exception):
    """Carries the rule a file breaks."""


class _Limited(io.RawIOBase):
    """Reads lines up to a limit, and refuses to read beyond."""

    def __init__(self, stream: BinaryIO, *, longest_line: float) -> None:
        super().__init__()
        self._stream = stream
        self._line, self._longest_line = 0, longest_line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what BufferedReader hands in
        piece = self._stream.read(len(buffer))
        ends = piece.rfind(b"\n")
        if ends < 0:
            ends = piece.rfind(b"\r")
        self._line = self._line + len(piece) if ends < 0 else len(piece) - ends - 1
        if self._line > self._longest_line:
            raise _BeyondLimitError(f"a line must not be longer than {self._longest_line:,} bytes; is this text?")
        buffer[: len(piece)] = piece
        return len(piece)


@contextmanager
def opened(
    file: Path, *, error: type[FaultsError], lines: bool = False, times: float = 0.0
) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes; what is packed is unpacked on the way.

    Whatever goes wrong with it inside the block becomes one sentence.

    Parameters
    ----------
    file
        Packed by gzip, bzip2 or xz where its name ends in ``.gz``, ``.bz2`` or ``.xz``, or else where it begins so.
    error
        Raised.
    lines
        Whether it is text in lines, of which a reader holds one at least.
    times
        Bytes of memory that the reader takes for each byte of the content; 0 where it keeps little of it.

    Raises
    ------
    FaultsError
        If the file cannot be read: it is not there, is not packed as its name says, or ends early; if its content needs
        more memory than is available; if a line of it is longer than `LONGEST_BYTES`; or if what reads it as text finds
        none in UTF-8.
    """
    packing = None
    try:
        with file.open("rb") as raw:
            packing = _packing_of(file, raw.peek(10)[:10], error=error)
            if times and (said := _content_shortage(file, packing, times)):
                raise error([f"{file}: {said}"])
            with raw if packing is None else packing.opens(raw) as stream:
                longest_line = LONGEST_BYTES if lines else math.inf
                yield io.BufferedReader(_Limited(stream, longest_line=longest_line), _BUFFER_BYTES)
    except FileNotFoundError:
        raise error([f"{file}: no such file"]) from None
    except _BeyondLimitError as fault:
        raise error([f"{file}: {fault}"]) from None
    except UnicodeDecodeError as fault:
        raise error([f"{file}: must be text in UTF-8: {fault.reason}"]) from None
    except EOFError:
        name = "file" if packing is None else packing.name
        raise error([f"{file}: cannot be read: it must be whole, and its {name} ends early"]) from None
    except (OSError, zlib.error, lzma.LZMAError) as fault:
        said = (isinstance(fault, OSError) and fault.strerror) or str(fault)
        damaged = "" if packing is None else f"its {packing.name} is damaged: "
        raise error([f"{file}: cannot be read: {damaged}{said}"]) from None


def _content_shortage(file: Path, packing: _Packing | None, times: float) -> str | None:
    """Say whether the content of a file needs more memory than there is: packed content is counted, and not kept."""
    size = file.stat().st_size
    if packing is None:
        return shortage(times * size, to=f"hold its {in_words(size)}")
    most = max(NEGLIGIBLE, available_nbytes()) / times
    if (packing.name == "gzip" and size * _MOST_PACKED <= most) or shortage(math.inf, to="") is None:
        return None
    unpacked = 0
    with file.open("rb") as raw, packing.opens(raw) as stream:
        while unpacked <= most and (piece := stream.read(_BUFFER_BYTES)):
            unpacked += len(piece)
    more = "" if unpacked <= most else " or more"
    return shortage(times * unpacked, to=f"hold the {in_words(unpacked)}{more} it unpacks to")


def chunks_of(file: Path, *, error: type[FaultsError], times: float = 0.0) -> Iterator[bytes]:
    """Go through a file 64 KiB at a time, unpacked; see `opened`."""
    with opened(file, error=error, times=times) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def raw_lines(file: Path, *, error: type[FaultsError], times: float = 0.0) -> Iterator[bytes]:
    """Go through the lines of a file, unpacked, none longer than `LONGEST_BYTES`; see `opened`."""
    with opened(file, error=error, times=times) as stream:
        number = 0
        while line := stream.readline(LONGEST_BYTES + 1):
            number += 1
            if len(line) > LONGEST_BYTES:
                rule = f"a line must not be longer than {LONGEST_BYTES:,} bytes; is this text?"
                raise error([f"{file}: line {number}: {rule}"])
            yield line


def begin_of(file: Path) -> bytes:
    """Return how a file begins, for telling formats apart: at most 64 KiB, nothing of one that cannot be read."""
    try:
        with opened(file, error=FaultsError) as stream:
            return stream.read(_CHUNK_BYTES)
    except FaultsError:
        return b""


def unpacked_name(file: Path) -> str:
    """Return a file's name without ``.gz``, ``.bz2`` or ``.xz``."""
    packing = _named(file)
    return file.name if packing is None else file.name[: -len(packing.suffix)]


def _named(file: Path) -> _Packing | None:
    return next((packing for packing in _PACKINGS if file.name.lower().endswith(packing.suffix)), None)


def _packing_of(file: Path, begin: bytes, *, error: type[FaultsError]) -> _Packing | None:
    """Say how a file that begins so is packed."""
    named = _named(file)
    if named is None:
        found = next((packing for packing in _PACKINGS if begin.startswith(packing.magic)), None)
        text = found is not None and found.name == "bzip2" and not begin[4:].startswith(_BZIP2_BLOCK)
        return None if text else found
    if begin and not begin.startswith(named.magic):
        raise error([f"{file}: cannot be read: its name ends in {named.suffix}, and it is no {named.name}"])
    return named

"""Reading of plain or compressed files in pieces and within limits."""

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

from simulator.files.errors import InputError
from simulator.files.resources import NEGLIGIBLE, available_nbytes, in_words, shortage

TABLE_TIMES, XML_TIMES, JSON_TIMES = 8.0, 3.0, 13.0
"""Measured bytes of memory per byte of text: for tables read whole, for the elements kept of XML, for parsed JSON."""
LONGEST_BYTES = 2**24
"""Maximum length of a line of text, or of XML from one tag to the next, bytes; a reader holds all of it in memory."""

BUFFER_BYTES = 2**20
_CHUNK_BYTES = 2**16
_MOST_PACKED = 1_032
"""Maximum compression ratio of gzip; the other formats can exceed it, so their files are decompressed to measure."""


class _Packing(NamedTuple):
    """A compression format."""

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
"""Bytes that follow ``BZh`` and a digit: the bytes of a block, or of the end of an empty file."""


class _BeyondLimitError(Exception):
    """Carries the rule that a file breaks."""


class _Limited(io.RawIOBase):
    """A stream that raises an error if a line exceeds a limit."""

    def __init__(self, stream: BinaryIO, *, longest_line: float) -> None:
        super().__init__()
        self._stream = stream
        self._line, self._longest_line = 0, longest_line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the buffers that BufferedReader passes
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
def opened(file: Path, *, lines: bool = False, times: float = 0.0) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes, decompressed if necessary.

    Every error of reading the file inside the block is raised as one sentence.

    Parameters
    ----------
    file
        A plain file, or one compressed by gzip, bzip2 or xz. Its name ends in ``.gz``, ``.bz2`` or ``.xz``, or else
        the format is detected from its first bytes.
    lines
        Whether the content is text in lines; a reader holds at least one line in memory.
    times
        Bytes of memory that the reader takes per byte of content; 0 if it keeps little of it.

    Raises
    ------
    InputError
        If the file cannot be read: it does not exist, is not compressed as its name states, or ends early; if its
        content needs more memory than is available; if a line of it is longer than `LONGEST_BYTES`; or if it is read as
        text and is not UTF-8.
    """
    packing = None
    try:
        with file.open("rb") as raw:
            packing = _packing_of(file, raw.peek(10)[:10])
            if times and (reason := _content_shortage(file, packing, times)):
                raise InputError([f"{file}: {reason}"])
            with raw if packing is None else packing.opens(raw) as stream:
                longest_line = LONGEST_BYTES if lines else math.inf
                yield io.BufferedReader(_Limited(stream, longest_line=longest_line), BUFFER_BYTES)
    except FileNotFoundError:
        raise InputError([f"{file}: no such file"]) from None
    except _BeyondLimitError as fault:
        raise InputError([f"{file}: {fault}"]) from None
    except UnicodeDecodeError as fault:
        raise InputError([f"{file}: must be text in UTF-8: {fault.reason}"]) from None
    except EOFError:
        name = "file" if packing is None else packing.name
        raise InputError([f"{file}: cannot be read: it is incomplete: its {name} ends early"]) from None
    except (OSError, zlib.error, lzma.LZMAError) as fault:
        reason = (isinstance(fault, OSError) and fault.strerror) or str(fault)
        damaged = "" if packing is None else f"its {packing.name} is damaged: "
        raise InputError([f"{file}: cannot be read: {damaged}{reason}"]) from None


def _content_shortage(file: Path, packing: _Packing | None, times: float) -> str | None:
    """Return a sentence if a file's content needs more memory than is available; compressed content is only counted."""
    size = file.stat().st_size
    if packing is None:
        return shortage(times * size, to=f"hold its {in_words(size)}")
    most = max(NEGLIGIBLE, available_nbytes()) / times
    if (packing.name == "gzip" and size * _MOST_PACKED <= most) or shortage(math.inf, to="") is None:
        return None
    unpacked = 0
    with file.open("rb") as raw, packing.opens(raw) as stream:
        while unpacked <= most and (piece := stream.read(BUFFER_BYTES)):
            unpacked += len(piece)
    more = "" if unpacked <= most else " or more"
    return shortage(times * unpacked, to=f"hold the {in_words(unpacked)}{more} it unpacks to")


def chunks_of(file: Path, *, times: float = 0.0) -> Iterator[bytes]:
    """Yield the decompressed content of a file, 64 KiB at a time; see `opened`."""
    with opened(file, times=times) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def raw_lines(file: Path, *, times: float = 0.0) -> Iterator[bytes]:
    """Yield the lines of a decompressed file, none longer than `LONGEST_BYTES`; see `opened`."""
    with opened(file, times=times) as stream:
        number = 0
        while line := stream.readline(LONGEST_BYTES + 1):
            number += 1
            if len(line) > LONGEST_BYTES:
                rule = f"a line must not be longer than {LONGEST_BYTES:,} bytes; is this text?"
                raise InputError([f"{file}: line {number}: {rule}"])
            yield line


def begin_of(file: Path) -> bytes:
    """Return the first bytes of a file, for detecting its format: at most 64 KiB, none if it cannot be read."""
    try:
        with opened(file) as stream:
            return stream.read(_CHUNK_BYTES)
    except InputError:
        return b""


def unpacked_name(file: Path) -> str:
    """Return a file's name without ``.gz``, ``.bz2`` or ``.xz``."""
    packing = _named(file)
    return file.name if packing is None else file.name[: -len(packing.suffix)]


def _named(file: Path) -> _Packing | None:
    return next((packing for packing in _PACKINGS if file.name.lower().endswith(packing.suffix)), None)


def _packing_of(file: Path, begin: bytes) -> _Packing | None:
    """Return the compression format of a file with these first bytes, or None if it is plain."""
    if (named := _named(file)) is None:
        detected = next((packing for packing in _PACKINGS if begin.startswith(packing.magic)), None)
        text = detected is not None and detected.name == "bzip2" and not begin[4:].startswith(_BZIP2_BLOCK)
        return None if text else detected
    if begin and not begin.startswith(named.magic):
        raise InputError([f"{file}: cannot be read: its name ends in {named.suffix}, but it is not {named.name}"])
    return named

"""Source: a file of a recording, opened without trust."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from simulator.traffic.errors import TrafficError

MOST_NBYTES = 16 << 30
"""Of one file, unpacked; a larger recording is many files."""

_MOST_TIMES = 400
_ALWAYS_NBYTES = 256 << 20
_CHUNK = 1 << 20


class _UnpackedTooFarError(Exception):
    """Carries the rule a compressed file breaks."""


class _Guarded(io.RawIOBase):
    """Reads a stream and refuses to go on where it holds far more than its file could honestly hold."""

    def __init__(self, stream: BinaryIO, packed_nbytes: int) -> None:
        super().__init__()
        self._stream, self._read = stream, 0
        self._most = min(MOST_NBYTES, max(_ALWAYS_NBYTES, packed_nbytes * _MOST_TIMES))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # a writable buffer has no name in 3.11
        piece = self._stream.read(len(buffer))
        self._read += len(piece)
        if self._read > self._most:
            raise _UnpackedTooFarError(
                f"unpacks to more than {self._most:,} bytes, which no honest file of its size does"
            )
        buffer[: len(piece)] = piece
        return len(piece)


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; one that ends in ``.gz`` is unpacked on the way.

    Whatever goes wrong with it inside the block becomes one sentence.

    Raises
    ------
    TrafficError
        If the file cannot be read: it is not there, its compression is broken or ends early, or it unpacks to more
        than an honest file of its size holds.
    """
    try:
        with file.open("rb") as raw:
            packed = is_gzip(file)
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            yield io.BufferedReader(_Guarded(stream, file.stat().st_size if packed else MOST_NBYTES), _CHUNK)  # type: ignore[arg-type]  # a GzipFile reads bytes
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except EOFError:
        raise TrafficError([f"{file}: must be whole, and its gzip compression ends early"]) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TrafficError([f"{file}: ends in .gz and must be gzip: {error}"]) from None
    except _UnpackedTooFarError as error:
        raise TrafficError([f"{file}: {error}"]) from None
    except UnicodeDecodeError as error:
        raise TrafficError([f"{file}: must be text in UTF-8: {error.reason} at byte {error.start}"]) from None
    except OSError as error:
        raise TrafficError([f"{file}: cannot be read: {error.strerror or error}"]) from None


def is_gzip(file: Path) -> bool:
    """Say whether a file's name ends in ``.gz``."""
    return file.name.lower().endswith(".gz")


def plain_name(file: Path) -> str:
    """Return a file's name in lower case, without ``.gz``."""
    return file.name.lower().removesuffix(".gz")


def stem(file: Path) -> str:
    """Return a file's name without ``.gz`` and what it ends in: a vehicle's name, where a file is a vehicle."""
    name = file.name[: -len(".gz")] if is_gzip(file) else file.name
    return Path(name).stem


def first_lines(file: Path, lines: int = 3, *, most_nbytes: int = 1 << 16) -> list[str]:
    """Read the first lines of a text file that are not blank, at most 64 KiB, for telling formats apart."""
    with opened(file) as stream:
        start = stream.read(most_nbytes)
    text = start.decode("utf-8-sig", errors="replace")
    return [line for line in text.splitlines() if line.strip()][:lines]

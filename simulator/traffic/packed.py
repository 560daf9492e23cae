"""Files that may be gzipped, read in pieces, and not beyond reason."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from simulator.traffic.errors import TrafficError

CHUNK_BYTES = 1 << 20
GZIP = b"\x1f\x8b"
MOST_BYTES = 1 << 35
"""Bytes in one file beyond which it is surely not meant: 32 GiB."""
MOST_UNPACKED = 250
"""Times its own size that a gzipped file may unpack to; tables, routes and recordings unpack to 3 to 40 times."""
FREE_BYTES = 1 << 27
"""A file may always unpack to this much: 128 MiB."""


def chunks_of(file: Path) -> Iterator[bytes]:
    """Go through a file 1 MiB at a time, unpacked where its first bytes say gzip.

    Raises
    ------
    TrafficError
        If it cannot be read, or unpacks to more than can be meant.
    """
    try:
        with file.open("rb") as plain:
            packed = plain.read(2) == GZIP
        most = min(MOST_BYTES, max(FREE_BYTES, MOST_UNPACKED * file.stat().st_size)) if packed else MOST_BYTES
        read = 0
        with gzip.open(file, "rb") if packed else file.open("rb") as handle:
            while chunk := handle.read(CHUNK_BYTES):
                read += len(chunk)
                if read > most:
                    raise TrafficError([f"{file}: must not unpack to more than {most:,} bytes"])
                yield chunk
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except (OSError, EOFError, zlib.error) as error:
        raise TrafficError([f"{file}: cannot be read: {error}"]) from error


def check_unpacked(file: Path) -> None:
    """Read a gzipped file through once, so that one that grows beyond reason is found before it is held in memory.

    Raises
    ------
    TrafficError
        If a file whose name ends in ``.gz`` cannot be read, or unpacks to more than can be meant.
    """
    if file.name.lower().endswith(".gz"):
        for _ in chunks_of(file):
            pass

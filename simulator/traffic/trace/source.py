"""Source: a file of a recording, by its name and its first lines."""

from pathlib import Path

from simulator.files.unpacked import opened, unpacked_name
from simulator.traffic.errors import TrafficError


def plain_name(file: Path) -> str:
    """Return a file's name in lower case, without ``.gz`` and the like."""
    return unpacked_name(file).lower()


def stem(file: Path) -> str:
    """Return a file's name without ``.gz`` and what it ends in: a vehicle's name, where a file is a vehicle."""
    return Path(unpacked_name(file)).stem


def first_lines(file: Path, lines: int = 3, *, most_nbytes: int = 1 << 16) -> list[str]:
    """Read the first lines of a text file that are not blank, at most 64 KiB, for telling formats apart.

    Raises
    ------
    TrafficError
        If the file cannot be read.
    """
    with opened(file, error=TrafficError) as stream:
        start = stream.read(most_nbytes)
    text = start.decode("utf-8-sig", errors="replace")
    return [line for line in text.splitlines() if line.strip()][:lines]

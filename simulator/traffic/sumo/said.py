"""What SUMO writes while it runs: its errors and warnings."""

import os
import re
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

_LONGEST_READ = 1 << 20
_WARNING = b"Warning:"
_MOST_KINDS = 100
_PARTICULAR = re.compile(r"'[^']*'|[-+]?\d[\d.:]*")
"""What tells one warning from the next of its kind: names, numbers, times."""


class Warned(NamedTuple):
    """Warnings that say the same, but for names and numbers: how many, and the first of them."""

    times: int
    first: str


class Said:
    """A file for SUMO's messages, which can be had after it is closed, and a folder for `outputs`, which are lost."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "said"
        self.outputs = Path(self._folder.name) / "outputs"
        self.outputs.mkdir()
        self.file: IO[bytes] = self._path.open("wb")
        self._last = ""
        self._last_warned: tuple[Warned, ...] = ()

    def read(self) -> str:
        """Return the last of what was written, at most a MiB of it."""
        if self.file.closed:
            return self._last
        # Opened anew: SUMO writes where the other one points to.
        with self._path.open("rb") as written:
            written.seek(max(0, written.seek(0, os.SEEK_END) - _LONGEST_READ))
            return written.read().decode("utf-8", errors="replace")

    def warned(self) -> tuple[Warned, ...]:
        """Return what was warned of since the start, however long ago, in the order in which each kind came first.

        Beyond a hundred kinds, all others count as one.
        """
        if self.file.closed:
            return self._last_warned
        kinds: dict[str, Warned] = {}
        with self._path.open("rb") as written:
            for line in written:
                if line.startswith(_WARNING):
                    text = line[len(_WARNING) :].decode("utf-8", errors="replace").strip()
                    kind = _PARTICULAR.sub("", text)
                    if kind not in kinds and len(kinds) >= _MOST_KINDS:
                        kind = ""
                    times, first = kinds.get(kind, (0, text))
                    kinds[kind] = Warned(times + 1, first)
        return tuple(kinds.values())

    def close(self) -> None:
        """Remove the file; nothing if that is done."""
        if self.file.closed:
            return
        self._last, self._last_warned = self.read(), self.warned()
        self.file.close()
        self._folder.cleanup()

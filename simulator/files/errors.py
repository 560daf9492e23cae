"""Error of an input that a user gave, with all faults at once."""

import re
from collections.abc import Iterable

_LONGEST_WORD, _LONGEST = 240, 2_000


class FaultsError(ValueError):
    """Something a user gave that cannot be used; every room has a kind of its own, and names it to what reads for it.

    Parameters
    ----------
    faults
        One sentence a fault: file and line or row, or what is concerned; the rule; the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found, each on one line and cut where a value in it is long; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = [_one_line(fault) for fault in faults]
        # What it was made of, so that it can be made again: SimPy does so with what a process raises.
        super().__init__(self.faults)

    def __str__(self) -> str:
        """Write one fault a line."""
        return "\n".join(self.faults)


def _one_line(fault: str) -> str:
    """Escape what would break the line, and cut words and sentences that no one reads to their end."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(fault))
    line = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: f"{word[0][: _LONGEST_WORD - 1]}…", line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

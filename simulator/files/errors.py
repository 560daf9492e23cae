"""Error of a user's input, with all its faults."""

import re
from collections.abc import Iterable

_LONGEST_WORD, _LONGEST = 240, 2_000


class FaultsError(ValueError):
    """User input that cannot be used; each package has a subclass of its own, and passes it to the readers it calls.

    Parameters
    ----------
    faults
        One sentence per fault: file and line or row, or the subject; the rule; the value received.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found, each on one line and cut where a value in it is long; never empty.
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = [_one_line(fault) for fault in faults]
        # Pass the constructor's argument, since SimPy makes a new exception from the args of one raised in a process.
        super().__init__(self.faults)

    def __str__(self) -> str:
        """Write one fault per line."""
        return "\n".join(self.faults)


def _one_line(fault: str) -> str:
    """Escape characters that would break the line, and cut very long words and sentences."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(fault))
    line = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: f"{word[0][: _LONGEST_WORD - 1]}…", line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

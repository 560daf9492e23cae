"""Error of a user's input, with all its faults."""

import math
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

_LONGEST_WORD, _LONGEST = 240, 2_000
_First = TypeVar("_First")
_Second = TypeVar("_Second")


class UserError(ValueError):
    """An error that a user can cause: the command line prints its message alone, and ends with its `exit_code`."""

    exit_code = 2


class InputError(UserError):
    """Input of a user that cannot be used: a file, or values that do not fit it or each other.

    Every package below the composition root raises it: for roads, cells, traffic and data sets. The composition root
    knows which section of the scenario is being read, and reports the faults under its key.

    Parameters
    ----------
    faults
        One sentence per fault: file and line or row, or the subject; the rule; the value received.
    key
        Path of the scenario's key to which the faults belong, such as "roads.network"; "" if the caller knows it.

    Attributes
    ----------
    faults : list of str
        Every fault found, in the order found, each on one line and cut where a value in it is long; never empty.
    key : str
        As given.
    """

    def __init__(self, faults: Iterable[str], key: str = "") -> None:
        self.faults = [_one_line(fault) for fault in faults]
        self.key = key
        # Pass the constructor's arguments, since SimPy makes a new exception from the args of one raised in a process.
        super().__init__(self.faults, key)

    def __str__(self) -> str:
        """Write one fault per line."""
        return "\n".join(self.faults)


class ProgramError(InputError):
    """Another program cannot be used, for a reason that lies in no file: it is missing, closed, killed or too slow."""


class RejectionError(InputError):
    """Another program rejects its input, or a part of it; the faults quote what it rejects."""


def both(first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """Call two functions, and return their results.

    Raises
    ------
    InputError
        With the faults of both functions together, if either raises an `InputError`.
    """
    faults: list[str] = []
    try:
        first_result = first()
    except InputError as error:
        faults += error.faults
    try:
        second_result = second()
    except InputError as error:
        faults += error.faults
    if faults:
        raise InputError(faults)
    return first_result, second_result


def positive_faults(**values: float | None) -> list[str]:
    """Return a fault for each argument that is not a finite number above 0; None is not checked."""
    return [
        f"{name} must be a finite number above 0, got {value!r}"
        for name, value in values.items()
        if value is not None and not 0 < value < math.inf
    ]


def _one_line(fault: str) -> str:
    """Escape characters that would break the line, and cut very long words and sentences."""
    line = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in str(fault))
    line = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: f"{word[0][: _LONGEST_WORD - 1]}…", line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

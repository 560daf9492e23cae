"""Faults of a file's lines, gathered until they are too many to read."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.roads.errors import RoadsError

MOST_SHOWN = 20


@dataclass
class Faults:
    """What is wrong with the lines of a file.

    Parameters
    ----------
    file
        Named in every message.
    """

    file: str
    _said: list[str] = field(default_factory=list)

    def add(self, place: str, rule: str) -> None:
        """Note a fault.

        Parameters
        ----------
        place
            Where, as "line 12".
        rule
            What is wrong there.

        Raises
        ------
        RoadsError
            With all so far, once there are 20: what follows is likely more of the same.
        """
        self._said.append(f"{self.file}: {place}: {rule}")
        if len(self._said) == MOST_SHOWN:
            self._said.append(f"{self.file}: there may be more faults; the first {MOST_SHOWN} are shown")
            self.check()

    def check(self) -> None:
        """Raise what has been noted.

        Raises
        ------
        RoadsError
            If anything has.
        """
        if self._said:
            raise RoadsError(self._said)

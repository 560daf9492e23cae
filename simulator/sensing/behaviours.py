"""Devices that do not follow the protocol: each class changes one thing that a device does."""

from typing import Any

import numpy as np

from simulator.sensing.device import Device, Process, QuerySubject, Question, World, WrittenVector


class FixedCell(Device):
    """Says that it is in one cell wherever it is.

    Parameters
    ----------
    number, world
        As of `Device`.
    cell
        The number of the cell, from 1; 0 outside every cell.
    """

    def __init__(self, number: int, world: World, *, cell: int) -> None:
        super().__init__(number, world)
        self._cell = cell

    def cell(self, subject: QuerySubject) -> int:  # noqa: ARG002 - the same cell whatever is asked
        """Return the stated cell."""
        return self._cell


class HiddenCell(FixedCell):
    """Says that it is outside every cell while it is in the cell; parameters as of `FixedCell`."""

    def cell(self, subject: QuerySubject) -> int:
        """Return its own cell, or 0 in the hidden one."""
        own = Device.cell(self, subject)
        return 0 if own == self._cell else own


class RefusedCell(FixedCell):
    """Sends nothing in rounds at whose moment it is in the cell; parameters as of `FixedCell`."""

    def takes_part(self, question: Question) -> bool:
        """Return whether it is elsewhere."""
        return self.cell(question.subject) != self._cell

    cell = Device.cell


class RandomCell(Device):
    """Says that it is in a cell drawn at random for each query."""

    def cell(self, subject: QuerySubject) -> int:
        """Return a cell, each equally likely."""
        return int(self.rng.integers(1, subject.cells + 1))


class Amplifier(Device):
    """Writes its report's encoding many times over.

    Parameters
    ----------
    number, world
        As of `Device`.
    factor
        The number by which every entry of the encoding is multiplied.
    """

    def __init__(self, number: int, world: World, *, factor: int) -> None:
        super().__init__(number, world)
        self._factor = factor

    def report(self, question: Question, coins: Any) -> WrittenVector:
        """Return the multiplied encoding of its report."""
        vector: np.ndarray[Any, np.dtype[np.int64]] = question.mechanism.encode(super().report(question, coins))[0]
        return WrittenVector(self._factor * vector)


class SilentInRound(Device):
    """Sends nothing in one round.

    Parameters
    ----------
    number, world
        As of `Device`.
    round
        The round, from 1.
    """

    def __init__(self, number: int, world: World, *, round: int) -> None:  # noqa: A002 - the paper's word
        super().__init__(number, world)
        self._round = round

    def takes_part(self, question: Question) -> bool:
        """Return whether the question is of another round."""
        return question.round != self._round


class Late(Device):
    """Waits before it answers, and then answers about the cell that it is in.

    Parameters
    ----------
    number, world
        As of `Device`.
    wait_s
        Seconds from the question to the answer.
    """

    def __init__(self, number: int, world: World, *, wait_s: float) -> None:
        super().__init__(number, world)
        self._wait_s = wait_s

    def answer(self, question: Question) -> Process:
        """Answer after the wait."""
        yield self.wait(self._wait_s)
        yield from super().answer(question)


class Twice(Late):
    """Answers at once and, after a wait, again with new coins; parameters as of `Late`."""

    def answer(self, question: Question) -> Process:
        """Answer, wait, and answer again."""
        yield from Device.answer(self, question)
        yield self.wait(self._wait_s)
        asked = question.subject.campaign, question.subject.mechanism
        subject, coins = self.kept.get(asked, (None, None))
        if subject is not question.subject:  # the first question heard: the coins of all rounds of the second answer
            coins = question.mechanism.toss(self.memory(question), rng=self.rng)
            self.kept[asked] = question.subject, coins
        self.send(question, self.report(question, coins))

"""Views: what an observer sees. Privacy is stated for each view, never as a single ε.

Every view covers a number of queries. With several queries, the reports (or releases) of one device in all of them
are taken together. A view also names its adjacency, the change of one device that a claim hides:

- ``move``: the device is in one cell or in any other, or outside every cell; over several queries its cells at all of
  them are replaced by any others;
- ``enter_leave``: the device is in one cell, or outside every cell and answers all the same; the number of devices that
  answer does not change.

A claim for ``move`` holds for ``enter_leave`` too. All other devices' cells are known to the observer.
"""

import re
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias, get_args

from mechanisms.parameter import ParameterError, check_choice, check_integer

Adjacency = Literal["move", "enter_leave"]
ADJACENCIES: tuple[Adjacency, ...] = ("enter_leave", "move")


@dataclass(frozen=True, slots=True)
class BaseView:
    """What views have in common: whole numbers of at least 1 that may be absent, an adjacency, and a name."""

    def __post_init__(self) -> None:
        self.check_numbers()

    def check_numbers(self, **at_least: int) -> None:
        """Raise ParameterError if a number that is given is below 1, or below the least value given here."""
        for number in fields(self):
            value = getattr(self, number.name)
            if number.name == "adjacency":
                check_choice("adjacency", value, get_args(Adjacency))
            elif value is not None or number.default is not None:
                check_integer(number.name, value, at_least=at_least.get(number.name, 1))

    @property
    def name(self) -> str:
        """Name of the view, from its class and its round: ``linked_reports``, ``report_round_1`` and so on."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        return f"{name}_round_{self.round}" if isinstance(self, Report | Shuffled) else name


@dataclass(frozen=True, slots=True)
class Report(BaseView):
    """One device's report in one round, as a server of that round sees it.

    Parameters
    ----------
    round : int
        From 1.
    queries : int
        Queries in which the device's report of that round is seen.
    """

    round: int
    queries: int = 1
    adjacency: Adjacency = field(default="move", kw_only=True)


@dataclass(frozen=True, slots=True)
class LinkedReports(BaseView):
    """All reports of one device to a query, linked: the view of colluding servers or of one server of all rounds."""

    queries: int = 1
    adjacency: Adjacency = field(default="move", kw_only=True)


@dataclass(frozen=True, slots=True)
class ReleasedDifferences(BaseView):
    """The published differences of two rounds' counts over the real cells; the cells of all other devices are known.

    Parameters
    ----------
    crowd : int, optional
        Devices counted in the cell in both rounds, the device in question included. None means the worst crowd and
        requires `k`.
    k : int, optional
        Differences below `k` are suppressed. By default no difference is suppressed.
    queries : int
        Queries whose differences are published, with this crowd in each.
    other_crowd : int, optional
        Devices in the alternative cell of the device, the device itself included, for a move; by default `crowd`.
    adjacency : {"enter_leave", "move"}
        ``move`` if `other_crowd` is given.
    """

    crowd: int | None = None
    k: int | None = None
    queries: int = 1
    other_crowd: int | None = None
    adjacency: Adjacency = field(default="enter_leave", kw_only=True)

    def __post_init__(self) -> None:
        """Check the numbers, and fill in the alternative cell of a move."""
        self.check_numbers()
        if self.other_crowd is not None:
            object.__setattr__(self, "adjacency", "move")
        elif self.adjacency == "move":
            object.__setattr__(self, "other_crowd", self.crowd)
        if self.crowd is None and self.k is None:
            raise ParameterError("crowd", "must be given where nothing is suppressed", None)
        if self.other_crowd is not None and self.crowd is None:
            raise ParameterError("other_crowd", "must be given together with a crowd", self.other_crowd)


@dataclass(frozen=True, slots=True)
class ReleasedCounts(BaseView):
    """The published counts of every round, for all outputs; the cells of all other devices are known.

    Parameters
    ----------
    crowd : int, optional
        At least this many devices are counted in the cell, the device in question included; None for any number. For
        a move, this holds for both cells while the device is in them.
    queries : int
        Queries whose counts are published, with these numbers of devices in each.
    counted : int, optional
        N, devices counted in all cells and outside, the device in question included. By default the number that the
        mechanism expects, or the least that the crowd requires.
    most : int, optional
        At most this many devices are counted in the cell (for a move in each of the two), the device in question
        included; None for no limit.
    colluding, servers : int, optional
        Servers that know their own noise, and number of all servers, where each server adds noise to what it publishes.

    Raises
    ------
    ParameterError
        If a number is below 1, or `most` is below `crowd`.
    """

    crowd: int | None = None
    queries: int = 1
    counted: int | None = None
    most: int | None = field(default=None, kw_only=True)
    colluding: int | None = field(default=None, kw_only=True)
    servers: int | None = field(default=None, kw_only=True)
    adjacency: Adjacency = field(default="enter_leave", kw_only=True)

    def __post_init__(self) -> None:
        self.check_numbers(colluding=0)
        if self.most is not None and self.crowd is not None and self.most < self.crowd:
            raise ParameterError("most", f"must be at least crowd ({self.crowd})", self.most)


@dataclass(frozen=True, slots=True)
class Shuffled(BaseView):
    """The reports of all devices in one round, put in a random order in each query, independently of the reports.

    Parameters
    ----------
    round : int
        From 1.
    devices : int
        Devices whose reports are shuffled together, the same ones in every query.
    queries : int
        Queries whose shuffled reports are seen.
    """

    round: int
    devices: int
    queries: int = 1
    adjacency: Adjacency = field(default="move", kw_only=True)


@dataclass(frozen=True, slots=True)
class Shares(BaseView):
    """The secret shares of one device's reports that a coalition of servers holds.

    Parameters
    ----------
    colluding, servers : int
        Number of servers that pool their shares, and number of all servers.
    queries : int
        Queries whose shares are pooled.
    """

    colluding: int
    servers: int
    queries: int = 1
    adjacency: Adjacency = field(default="move", kw_only=True)

    def __post_init__(self) -> None:
        self.check_numbers(colluding=0)
        if self.colluding > self.servers:
            raise ParameterError("colluding", f"must not exceed servers ({self.servers})", self.colluding)


@dataclass(frozen=True, slots=True)
class LocatedReports(BaseView):
    """All reports of one device, linked, as seen by a server that is chosen by where the device is."""

    queries: int = 1
    adjacency: Adjacency = field(default="move", kw_only=True)


View: TypeAlias = Report | LinkedReports | LocatedReports | ReleasedDifferences | ReleasedCounts | Shuffled | Shares
"""The views, a closed set: claims about objects of other classes are unknown."""


def possible_adjacency(adjacency: Adjacency, *, cells: int) -> Adjacency:
    """Return the change that a claim must hide: with one cell, a device that moves enters or leaves."""
    return adjacency if cells > 1 else "enter_leave"


def with_possible_change(view: View, *, cells: int) -> View:
    """Return the view with the change of one device that is possible with so many cells (`possible_adjacency`)."""
    if possible_adjacency(view.adjacency, cells=cells) == view.adjacency:
        return view
    if isinstance(view, ReleasedDifferences):
        return replace(view, adjacency="enter_leave", other_crowd=None)
    return replace(view, adjacency="enter_leave")

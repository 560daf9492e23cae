"""Views: what an observer sees. Privacy is stated for each view, never as a single ε.

Every view covers a number of queries. With several queries, the reports (or releases) of one device in all of them
are taken together. The neighbour is the same device with arbitrary other cells at the same times. The claims state one
exception: a claim about what Sampling Privacy publishes compares a device in its cell with a device outside every cell.
"""

import re
from dataclasses import dataclass, fields
from typing import TypeAlias

from mechanisms.parameter import ParameterError, check_integer


class BaseView:
    """What views have in common: whole numbers of at least 1 that may be absent, and a name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the numbers."""
        self.check_numbers()

    def check_numbers(self, **at_least: int) -> None:
        """Raise ParameterError if a number that is given is below 1, or below the least value given here."""
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                check_integer(field.name, value, at_least=at_least.get(field.name, 1))

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


@dataclass(frozen=True, slots=True)
class LinkedReports(BaseView):
    """All reports of one device to a query, linked: the view of colluding servers or of one server of all rounds."""

    queries: int = 1


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
        Devices in the alternative cell of the device, the device itself included. By default the alternative is
        outside every cell.
    """

    crowd: int | None = None
    k: int | None = None
    queries: int = 1
    other_crowd: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        self.check_numbers()
        if self.crowd is None and self.k is None:
            raise ParameterError("crowd", "must be given where nothing is suppressed", None)
        if self.other_crowd is not None and self.crowd is None:
            raise ParameterError("other_crowd", "must be given together with a crowd", self.other_crowd)


@dataclass(frozen=True, slots=True)
class ReleasedCounts(BaseView):
    """The published counts of every round, for all outputs; the cells of all other devices are known.

    Parameters
    ----------
    crowd : int
        Devices counted in the cell, the device in question included.
    queries : int
        Queries whose counts are published, with these numbers of devices in each.
    counted : int, optional
        Devices counted in all cells and outside, the device in question included; by default the number that the
        mechanism expects. It has an effect where every device adds a share of the noise.
    """

    crowd: int
    queries: int = 1
    counted: int | None = None


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

    def __post_init__(self) -> None:
        """Check the numbers."""
        self.check_numbers(colluding=0)
        if self.colluding > self.servers:
            raise ParameterError("colluding", f"must not exceed servers ({self.servers})", self.colluding)


@dataclass(frozen=True, slots=True)
class LocatedReports(LinkedReports):
    """All reports of one device, linked, as seen by a server that is chosen by where the device is."""


View: TypeAlias = Report | LinkedReports | ReleasedDifferences | ReleasedCounts | Shuffled | Shares

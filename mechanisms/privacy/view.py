"""Views: what a party sees. Privacy is stated per view and never as one ε.

Every view is over a number of queries. Over several, the reports (or releases) of one device in all of them
are taken together, and its neighbour is the same device with any other cells at the same moments. One exception is
stated in the claims: what Sampling Privacy publishes is claimed of a device in its cell or outside every cell.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mechanisms.parameter import ParameterError, check_integer


@dataclass(frozen=True, slots=True)
class Report:
    """One device's report of one round, as a server of that round sees it.

    Parameters
    ----------
    round : int
        From 1.
    queries : int
        Queries in which the device's report of that round is seen.
    """

    round: int
    queries: int = 1

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("round", self.round, at_least=1)
        check_integer("queries", self.queries, at_least=1)

    @property
    def name(self) -> str:
        """``report_round_1``, ``report_round_2`` and so on."""
        return f"report_round_{self.round}"


@dataclass(frozen=True, slots=True)
class LinkedReports:
    """All of one device's reports to a query, known to be one device's: colluding servers, or one of all rounds."""

    queries: int = 1

    def __post_init__(self) -> None:
        """Check the number of queries."""
        check_integer("queries", self.queries, at_least=1)

    @property
    def name(self) -> str:
        """``linked_reports``."""
        return "linked_reports"


@dataclass(frozen=True, slots=True)
class ReleasedDifferences:
    """The published differences of two rounds' counts over the real cells; everybody else's cell is known.

    Parameters
    ----------
    crowd : int, optional
        Devices counted in the cell in both rounds, the one in question included. None, which needs a `k`: whatever
        crowd is worst.
    k : int, optional
        Differences below it are suppressed; none are, by default.
    queries : int
        Queries whose differences are published, with this crowd in each.
    other_crowd : int, optional
        Devices in the cell where the device may be instead, itself included; by default it is outside every
        cell instead.
    """

    crowd: int | None = None
    k: int | None = None
    queries: int = 1
    other_crowd: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("queries", self.queries, at_least=1)
        if self.k is not None:
            check_integer("k", self.k, at_least=1)
        if self.crowd is not None:
            check_integer("crowd", self.crowd, at_least=1)
        elif self.k is None:
            raise ParameterError("crowd", "must be given where nothing is suppressed", None)
        if self.other_crowd is not None:
            check_integer("other_crowd", self.other_crowd, at_least=1)
            if self.crowd is None:
                raise ParameterError("other_crowd", "must come with a crowd", self.other_crowd)

    @property
    def name(self) -> str:
        """``released_differences``."""
        return "released_differences"


@dataclass(frozen=True, slots=True)
class ReleasedCounts:
    """The published counts of every round, all outputs; everybody else's cell is known.

    Parameters
    ----------
    crowd : int
        Devices counted in the cell, the one in question included.
    queries : int
        Queries whose counts are published, with these numbers of devices in each.
    counted : int, optional
        Devices counted in all cells and outside, the one in question included; by default as many as the mechanism
        expects. It matters where every device adds a share of the noise.
    """

    crowd: int
    queries: int = 1
    counted: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("crowd", self.crowd, at_least=1)
        check_integer("queries", self.queries, at_least=1)
        if self.counted is not None:
            check_integer("counted", self.counted, at_least=1)

    @property
    def name(self) -> str:
        """``released_counts``."""
        return "released_counts"


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The reports of one round by all devices, each query's in an order of its own that is independent of them.

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

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("round", self.round, at_least=1)
        check_integer("devices", self.devices, at_least=1)
        check_integer("queries", self.queries, at_least=1)

    @property
    def name(self) -> str:
        """``shuffled_round_1``, ``shuffled_round_2`` and so on."""
        return f"shuffled_round_{self.round}"


@dataclass(frozen=True, slots=True)
class Shares:
    """The secret shares of one device's reports that some of the servers hold.

    Parameters
    ----------
    colluding, servers : int
        Servers that pool their shares, of all the servers.
    queries : int
        Queries whose shares are pooled.
    """

    colluding: int
    servers: int
    queries: int = 1

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("servers", self.servers, at_least=1)
        check_integer("colluding", self.colluding, at_least=0)
        check_integer("queries", self.queries, at_least=1)
        if self.colluding > self.servers:
            raise ParameterError("colluding", f"must not exceed servers ({self.servers})", self.colluding)

    @property
    def name(self) -> str:
        """``shares``."""
        return "shares"


View: TypeAlias = Report | LinkedReports | ReleasedDifferences | ReleasedCounts | Shuffled | Shares

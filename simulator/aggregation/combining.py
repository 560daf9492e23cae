"""Aggregators that divide devices over servers and combine what the servers hold: an interface for users' own.

A device sends all reports of a query to one server. Each server adds up the reports that it receives, and one function
combines the sums of all servers into the estimate that is published.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism
from mechanisms.privacy import LinkedReports, LocatedReports, View
from simulator.aggregation.aggregator import Aggregator, Sums
from simulator.aggregation.deployment import Cost, Deployment, Handles
from simulator.aggregation.plain_servers import Trusted
from simulator.aggregation.storage import Party, RecordedMessages
from simulator.aggregation.transcript import NETWORK, Coalition, StoredEntries
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.files.errors import InputError

LEVEL_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class ServerTally:
    """What one server holds when a query is closed.

    Attributes
    ----------
    server
        Number of the server, from 1.
    mechanism
        The mechanism that made the reports.
    counts
        (rounds, *tally_shape) int64: the sums of the reports that it counted.
    counted, asked
        Reports that it counted, and devices that were assigned to it, by round.
    asked_in_all
        Devices that the query asked, over all servers.
    arrivals_s
        By round: when the reports of devices simulated one by one arrived, late ones included; ascending, seconds.
    """

    server: int
    mechanism: LocalMechanism
    counts: Counts
    counted: tuple[int, ...]
    asked: tuple[int, ...]
    asked_in_all: int
    arrivals_s: tuple[FloatArray, ...] = ()

    @cached_property
    def own(self) -> Estimate:
        """The estimate of the devices that were assigned to this server."""
        return self.mechanism.estimate(self.counts, counted=self.counted, asked=self.asked)

    @cached_property
    def scaled(self) -> Estimate:
        """The estimate of all devices from those of this server, if devices were assigned at random.

        If n of N devices were assigned to the server, Ŷ = (N/n)·Ŷ_n. The variance of the assignment, about (N/n − 1)·Y,
        is added to that of Ŷ_n. Without any device the estimate is 0 with an infinite error.
        """
        own, asked = self.own, self.asked[self.mechanism.truth_round - 1]
        if asked == 0:
            nothing = np.zeros(len(own.count))
            return normal_estimate(nothing, nothing + np.inf, asked=self.asked_in_all)
        rate = self.asked_in_all / asked
        variance = (rate * own.std_error) ** 2 + (rate - 1.0) * np.clip(rate * own.count, 0.0, None)
        return normal_estimate(rate * own.count, np.sqrt(variance), asked=self.asked_in_all)


def normal_estimate(count: FloatArray, std_error: FloatArray, *, asked: int) -> Estimate:
    """Return an estimate whose interval is that of the normal distribution, within 0 and the devices asked.

    Parameters
    ----------
    count, std_error
        (cells,) float64.
    asked
        Devices that the query asked.
    """
    centre = np.clip(count, 0.0, asked)
    ends = [np.clip(count + sign * LEVEL_95 * std_error, 0.0, asked) for sign in (-1.0, 1.0)]
    lower, upper = np.minimum(ends[0], centre), np.maximum(ends[1], centre)
    return Estimate(count, std_error, lower, upper, "normal")


def add_estimates(tallies: Sequence[ServerTally]) -> Estimate:
    """Return the sum of the servers' own estimates, whose errors are independent."""
    parts = [tally.own for tally in tallies]
    count, variance = sum(part.count for part in parts), sum(part.std_error**2 for part in parts)
    return normal_estimate(np.asarray(count), np.sqrt(variance), asked=tallies[0].asked_in_all)


class CombiningAggregator(Protocol):
    """A user's aggregator; what is listed here is required.

    Each mechanism of each campaign has a copy of its own, so it may keep state from query to query. These attributes
    are used if it has them:

    - ``assign(n, *, rng)``: the server of each of n devices, (n,) whole numbers 1 … servers. Without it, every server
      is equally likely.
    - ``assign_by_cell(cells, *, rng)``: the same, from the devices' cells, (n,) int32, at the first question that they
      answer. A server then knows the part of the city in which its devices are, and the claims say so.
    - ``accepts(reports, mechanism)``: which of n reports are counted, (n,) bool; the others are rejected. Reports that
      are drawn as counts are not checked.
    - ``std_error(own)``: the theoretical standard error of the combined estimate, (cells,), from those of each server's
      estimate of its own devices, (servers, cells). Without it no theory is reported.
    - ``handles``: "device" (default) or "query", as in `Trusted`.
    - ``paired``: whether a server counts only devices received in every round.
    - ``delay_s``: seconds from the close of a query until its estimate is published.
    """

    servers: int
    """Number of servers."""

    def combine(self, tallies: Sequence[ServerTally]) -> Estimate:
        """Return the estimate of all devices from what the servers hold, in the order of the servers."""


@dataclass(frozen=True, kw_only=True)
class OneOfSeveral(Trusted):
    """One of several servers, which reads the reports of the devices assigned to it.

    Parameters
    ----------
    server
        Its number, from 1.
    own
        The aggregator that combines the servers' sums.
    """

    server: int
    own: Any
    keeps_arrivals: ClassVar[bool] = True

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for every mechanism
        """Return the server and the network."""
        return (f"server:{self.server}", NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round and for every mechanism
        """Return one message, to the server."""
        return ((f"server:{self.server}",),)

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:  # noqa: ARG002 - plain sums draw nothing
        """Return the aggregator of one query, which counts the reports that the user's aggregator accepts."""
        accepts = getattr(self.own, "accepts", None)
        check = None if accepts is None else lambda reports: np.asarray(accepts(reports, mechanism), dtype=np.bool_)
        return Aggregator(Sums(mechanism), paired=self.paired, accepts=check, bytes_up=self.cost(mechanism).bytes_up)


@dataclass(frozen=True, kw_only=True)
class Combining(Deployment):
    """Deployment whose devices are divided over servers by a `CombiningAggregator`.

    Parameters
    ----------
    own
        The aggregator.
    name
        Name of its kind in the scenario.

    Raises
    ------
    InputError
        If the number of servers is not a whole number of at least 1.
    ParameterError
        If the handles are unknown.
    """

    own: Any
    name: str
    sums_reports: ClassVar[bool] = False
    _copies: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the number of servers and the handles."""
        servers = getattr(self.own, "servers", None)
        if not isinstance(servers, int) or servers < 1:
            raise InputError(
                [f"{self.name}.servers must be a whole number of at least 1, got {servers!r}"], "aggregation"
            )
        super().__post_init__()

    @property
    def kind(self) -> str:
        """Name of the kind in the scenario."""
        return self.name

    @property
    def handles(self) -> Handles | None:
        """Kind of handle under which servers store reports."""
        handles: Handles = getattr(self.own, "handles", "device")
        return handles

    @property
    def paired(self) -> bool:
        """Whether only devices received in every round are counted."""
        return bool(getattr(self.own, "paired", False))

    @property
    def delay_s(self) -> float:
        """Seconds from the close of a query until its estimate is published."""
        return float(getattr(self.own, "delay_s", 0.0))

    @property
    def locates(self) -> bool:
        """Whether the server that a device reports to depends on the device's cell."""
        return hasattr(self.own, "assign_by_cell")

    @property
    def checks(self) -> bool:
        """Whether the aggregator rejects some reports."""
        return hasattr(self.own, "accepts")

    def copy_for(self, mechanism: LocalMechanism) -> Any:
        """Return the copy of the aggregator that combines the reports of a mechanism."""
        return self._copies.setdefault(id(mechanism), copy.deepcopy(self.own))

    def server(self, number: int, mechanism: LocalMechanism) -> OneOfSeveral:
        """Return the deployment of the devices that are assigned to one server."""
        handles: Handles = self.handles or "device"
        own = self.copy_for(mechanism)
        return OneOfSeveral(server=number, own=own, handles=handles, paired=self.paired, anonymous=self.anonymous)

    def assign(self, cells: Cells, mechanism: LocalMechanism, *, rng: np.random.Generator) -> IntArray:
        """Return the server of each device, (n,) int64 from 1.

        Parameters
        ----------
        cells
            (n,) int32, the devices' cells; used only by `assign_by_cell`.
        mechanism
            The mechanism that the devices run.
        rng
            Generator of the assignment.

        Raises
        ------
        InputError
            If the aggregator returns another shape, or a number that is not that of a server.
        """
        own = self.copy_for(mechanism)
        if self.locates:
            found = own.assign_by_cell(cells.copy(), rng=rng)
        elif hasattr(own, "assign"):
            found = own.assign(len(cells), rng=rng)
        else:
            found = rng.integers(1, own.servers + 1, len(cells))
        servers = np.asarray(found)
        valid = servers.shape == cells.shape and servers.dtype.kind in "iu"
        if not valid or (servers.size and not (servers.min() >= 1 and servers.max() <= own.servers)):
            rule = f"{self.name} must assign a server, 1 to {own.servers}, to each of {len(cells)} devices"
            raise InputError([f"{rule}, got {_shown(servers)}"], "aggregation")
        return servers.astype(np.int64)

    def combine(self, tallies: Sequence[ServerTally], mechanism: LocalMechanism) -> Estimate:
        """Return the combined estimate.

        Raises
        ------
        InputError
            If the aggregator returns no estimate of every cell.
        """
        estimate = self.copy_for(mechanism).combine(tallies)
        if not isinstance(estimate, Estimate) or len(estimate) != mechanism.cells:
            got = f"{type(estimate).__name__}{f' of {len(estimate)}' if isinstance(estimate, Estimate) else ''}"
            rule = f"{self.name}.combine must return an Estimate of {mechanism.cells} cells"
            raise InputError([f"{rule}, got {got}"], "aggregation")
        return estimate

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for every mechanism
        """Return the servers and the network."""
        return (*(f"server:{number}" for number in range(1, self.own.servers + 1)), NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round and for every mechanism
        """Return one message to the first server; others receive those of the devices assigned to them."""
        return (("server:1",),)

    def store_round(
        self,
        recorded: RecordedMessages,
        round_: int,
        mechanism: LocalMechanism,
        *,
        rng: np.random.Generator,  # noqa: ARG002 - handles order the entries
    ) -> Iterator[StoredEntries]:
        """Yield what each server stores: the plain reports of the devices assigned to it, under handles."""
        content = recorded.reports[round_ - 1].__getitem__
        for party in self.servers_of(mechanism):
            yield recorded.stored(party, round_, self.handles or "none", content, anonymous=self.anonymous)

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: of one plain report in a round, which one server stores."""
        return self.server(1, mechanism).cost(mechanism)

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of a device that reports to a member: all of its reports, linked, and perhaps its place."""
        return LocatedReports(queries=queries) if self.locates else LinkedReports(queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        which = "Every report of each device that reports to a member"
        share = f" ({len(members.servers)} of {len(self.servers_of(mechanism))} servers)"
        place = " The server that a device reports to shows in which part of the city it is." if self.locates else ""
        return f"{which}{share}, {self.followed(members)}.{place}"


def _shown(servers: Any) -> str:
    ends = f" from {servers.min()} to {servers.max()}" if servers.size and servers.dtype.kind in "iu" else ""
    return f"{servers.dtype} of shape {servers.shape}{ends}"


def joined_reports(parts: Iterable[Any]) -> Any:
    """Return the reports of several groups of devices as those of one.

    Reports that are not arrays need a class method ``joined``, which takes a list of such reports.
    """
    listed = list(parts)
    join = getattr(type(listed[0]), "joined", None)
    return np.concatenate(listed) if join is None else join(listed)

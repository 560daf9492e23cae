"""Aggregators that divide devices over servers and combine what the servers hold: an interface for users' own.

A device sends all reports of a query to one server. Each server adds up the reports that it receives, and one function
combines the sums of all servers into the estimate that is published.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism
from mechanisms.privacy import LinkedReports, LocatedReports, View
from simulator.aggregation.deployment import Cost, Deployment, Handles
from simulator.aggregation.server_noise import LEVEL_95, normal_estimate
from simulator.aggregation.servers import Trusted
from simulator.aggregation.transcript import NETWORK, Coalition, Party, RecordedMessages, StoredEntries
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.cells import Partition
from simulator.files.errors import InputError


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
        """The estimate of all devices from this server's devices, if devices were assigned at random.

        If n of N devices were assigned to the server, Ŷ = (N/n)·Ŷ_n. The variance of the assignment, about (N/n − 1)·Y,
        is added to the variance of Ŷ_n; a cell that looks empty has the variance of one device seen. The error of Ŷ_n
        is at least the error of its interval, which also covers cells that look empty. Without any device the estimate
        is 0 with an infinite error.
        """
        of_server, asked = self.own, self.asked[self.mechanism.truth_round - 1]
        if asked == 0:
            nothing = np.zeros(len(of_server.count))
            return normal_estimate(nothing, nothing + np.inf, asked=self.asked_in_all)
        rate = self.asked_in_all / asked
        error = np.maximum(of_server.std_error, (of_server.upper - of_server.lower) / (2.0 * LEVEL_95))
        variance = (rate * error) ** 2 + (rate - 1.0) * np.maximum(rate * of_server.count, rate)
        return normal_estimate(rate * of_server.count, np.sqrt(variance), asked=self.asked_in_all)


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
    - ``std_error(own)``: the theoretical standard error of the combined estimate, (cells,), from the standard errors of
      each server's estimate of its own devices, (servers, cells). Without it no theory is reported.
    - ``handles``: "device" (default) or "query", as in `Trusted`.
    - ``paired``: whether a server counts only devices received in every round.
    - ``delay_s``: seconds from the close of a query until its estimate is published.
    """

    servers: int
    """Number of servers."""

    def combine(self, tallies: Sequence[ServerTally]) -> Estimate:
        """Return the estimate of all devices from what the servers hold, in the order of the servers."""


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
        If an attribute of the aggregator is not as `CombiningAggregator` states.
    """

    own: Any
    name: str
    sums_reports: ClassVar[bool] = False
    _copies: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the attributes of the aggregator."""
        servers: Any = getattr(self.own, "servers", None)
        whole = isinstance(servers, int | np.integer) and not isinstance(servers, bool)
        if not whole or servers < 1:
            self._refuse("servers", "must be a whole number of at least 1", servers)
        delay_s = getattr(self.own, "delay_s", 0.0)
        number = isinstance(delay_s, int | float | np.number) and not isinstance(delay_s, bool)
        if not number or not 0.0 <= delay_s < math.inf:
            self._refuse("delay_s", "must be a number of seconds, at least 0", delay_s)
        if self.handles not in ("device", "query"):
            self._refuse("handles", 'must be "device" or "query"', self.handles)
        if not isinstance(self.paired, bool):
            self._refuse("paired", "must be True or False", self.paired)
        for name in ("assign", "assign_by_cell", "accepts", "std_error"):
            if (given := getattr(self.own, name, None)) is not None and not callable(given):
                self._refuse(name, "must be a method", given)
        super().__post_init__()

    def _refuse(self, name: str, rule: str, received: object) -> NoReturn:
        """Raise the error of an attribute, or of the answer of a method, that breaks a rule."""
        raise InputError([f"{self.name}.{name} {rule}, got {received!r}"], "aggregation")

    def has(self, name: str) -> bool:
        """Return whether the aggregator has an optional method."""
        return getattr(self.own, name, None) is not None

    @property
    def kind(self) -> str:
        """Name of the kind in the scenario."""
        return self.name

    @property
    def handles(self) -> Handles:
        """Kind of handle under which servers store reports."""
        handles: Handles = getattr(self.own, "handles", "device")
        return handles

    @property
    def paired(self) -> bool:
        """Whether only devices received in every round are counted."""
        paired: bool = getattr(self.own, "paired", False)
        return paired

    @property
    def delay_s(self) -> float:
        """Seconds from the close of a query until its estimate is published."""
        return float(getattr(self.own, "delay_s", 0.0))

    @property
    def locates(self) -> bool:
        """Whether the server that a device reports to depends on the device's cell."""
        return self.has("assign_by_cell")

    @property
    def checks(self) -> bool:
        """Whether the aggregator rejects some reports."""
        return self.has("accepts")

    def copy_for(self, mechanism: LocalMechanism) -> Any:
        """Return the copy of the aggregator that combines the reports of a mechanism."""
        if id(mechanism) not in self._copies:
            self._copies[id(mechanism)] = copy.deepcopy(self.own)
        return self._copies[id(mechanism)]

    def server(self, number: int, mechanism: LocalMechanism) -> Trusted:
        """Return the deployment of the devices that are assigned to one server."""
        accepts = partial(self.accepted, mechanism=mechanism) if self.checks else None
        return Trusted(
            server=number,
            accepts=accepts,
            keeps_arrivals=True,
            handles=self.handles,
            paired=self.paired,
            anonymous=self.anonymous,
            question_nbytes=self.question_nbytes,
        )

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
            If the aggregator returns another shape, or a number that is not a server's.
        """
        servers: IntArray
        aggregator = self.copy_for(mechanism)
        if self.locates:
            servers = self._answer("assign_by_cell", mechanism, cells.copy(), rng=rng)
        elif self.has("assign"):
            servers = self._answer("assign", mechanism, len(cells), rng=rng)
        else:
            servers = rng.integers(1, aggregator.servers + 1, len(cells))
        valid = servers.shape == cells.shape and servers.dtype.kind in "iu"
        if not valid or (servers.size and not (servers.min() >= 1 and servers.max() <= aggregator.servers)):
            rule = f"{self.name} must assign a server, 1 to {aggregator.servers}, to each of {len(cells)} devices"
            raise InputError([f"{rule}, got {_shown(servers)}"], "aggregation")
        return servers.astype(np.int64)

    def accepted(self, reports: Any, mechanism: LocalMechanism) -> Mask:
        """Return which reports the aggregator accepts, (n,) bool.

        Raises
        ------
        InputError
            If the aggregator returns another shape or type.
        """
        accepted: Mask = self._answer("accepts", mechanism, reports, mechanism)
        if accepted.shape != (len(reports),) or accepted.dtype != np.bool_:
            self._refuse("accepts", f"must return a bool for each of {len(reports)} reports", _shown(accepted))
        return accepted

    def stated_error(self, errors: FloatArray, mechanism: LocalMechanism) -> FloatArray:
        """Return the standard error that the aggregator states, (cells,), from (servers, cells); NaN if it states none.

        Raises
        ------
        InputError
            If the aggregator returns another shape, or negative numbers.
        """
        if not self.has("std_error"):
            return np.full(mechanism.cells, np.nan)
        error: FloatArray = self._answer("std_error", mechanism, errors)
        if error.shape != (mechanism.cells,) or error.dtype.kind not in "fiu" or (error < 0).any():
            self._refuse("std_error", f"must return {mechanism.cells} numbers of at least 0", _shown(error))
        return error.astype(np.float64)

    def _answer(self, name: str, mechanism: LocalMechanism, *given: Any, **named: Any) -> Any:
        """Return what an optional method of the aggregator answers, as an array."""
        try:
            return np.asarray(getattr(self.copy_for(mechanism), name)(*given, **named))
        except (TypeError, ValueError) as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # in the user's own code
            raise InputError([f"{self.name}.{name}: {error}"], "aggregation") from error

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

    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round
        """Return one message to one server; each device sends it to its own server, a `Trusted` (`server`)."""
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
            yield recorded.stored(party, round_, self.handles, content, anonymous=self.anonymous)

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
    """Return the reports of several groups of devices as the reports of one group.

    Reports that are not arrays need a class method ``joined``, which takes a list of such reports.
    """
    listed = list(parts)
    join = getattr(type(listed[0]), "joined", None)
    return np.concatenate(listed) if join is None else join(listed)


@dataclass(frozen=True, eq=False)
class RoadsideUnits:
    """Aggregator with a road-side unit for each district; the last server is for devices outside every cell.

    A district is a block of cells (`Partition.coarsened`). A device registers with the unit of the district in which it
    is asked first, and sends all reports of the query there. The unit receives messages by radio, so it knows the
    district at that moment, whatever the reports are. The published estimate is the sum of all units' estimates.

    Parameters
    ----------
    cells
        The cells of the city.
    level
        How many times the side of a cell is doubled to obtain a district, 0 or more.
    handles, paired
        As in `Trusted`.
    """

    cells: InitVar[Partition]
    level: int = 1
    handles: Handles = "device"
    paired: bool = False
    unit_of_cell: IntArray = field(init=False, repr=False)
    """(cells + 1,) int64: the number of the server of each cell, from 1; [0] is the last server."""

    def __post_init__(self, cells: Partition) -> None:
        """Give each district a unit."""
        blocks = np.asarray(cells.coarsened(self.level))
        object.__setattr__(self, "unit_of_cell", np.concatenate([[blocks.max() + 2], blocks + 1]))

    @property
    def servers(self) -> int:
        """Number of units, and one more server for devices outside every cell."""
        return int(self.unit_of_cell[0])

    def assign_by_cell(self, cells: Cells, *, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - the place determines the unit
        """Return the unit of each device, (n,) int64 from 1, from its cell, (n,) int32."""
        return self.unit_of_cell[cells]

    def combine(self, tallies: Sequence[ServerTally]) -> Estimate:
        """Return the sum of the units' estimates of their own devices."""
        return add_estimates(tallies)

    def std_error(self, own: FloatArray) -> FloatArray:
        """Return the standard error of a sum of independent estimates, (cells,), from (servers, cells)."""
        total: FloatArray = np.sqrt((own**2).sum(axis=0))
        return total

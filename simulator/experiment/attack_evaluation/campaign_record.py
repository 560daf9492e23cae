"""Record of a campaign for attacks: reports, truths, sums and published values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, LocalMechanism, SamplingPrivacy
from simulator.aggregation.deployment import Deployment, RecordedMessages
from simulator.aggregation.transcript import Released

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """One query of one mechanism: the reports and cells of some recorded vehicles, and the sums over all devices.

    Parameters
    ----------
    recorded
        Messages that the recorded vehicles sent.
    truth
        (n,) int32, their cells at the moment of truth, 0 outside.
    occupancy
        (cells + 1,) int64, number of all vehicles asked by cell at that moment, the recorded ones included.
    counts
        (rounds, *tally_shape) int64, the servers' counts over all devices.
    asked, counted
        Devices asked and reports counted, by round.
    values
        (cells,) float64, the values that a release published in place of the counts; None if there is no release.
    time_s
        The moment of truth, seconds.

    Raises
    ------
    ValueError
        If truth and recorded devices do not match, or there are fewer vehicles than recorded ones.
    """

    recorded: RecordedMessages
    truth: Cells
    occupancy: IntArray
    counts: Counts
    asked: Sequence[int]
    counted: Sequence[int]
    values: FloatArray | None = None
    time_s: float = 0.0

    def __post_init__(self) -> None:
        """Check that there is one truth for each device, and that occupancy includes the recorded vehicles."""
        if self.truth.shape != self.recorded.devices.shape:
            raise ValueError(f"truth must be of {len(self.recorded.devices)} devices, received {self.truth.shape}")
        if self.occupancy.sum() < len(self.truth):
            raise ValueError(f"occupancy must hold the {len(self.truth)} targets, received {self.occupancy.sum()}")

    @property
    def number(self) -> int:
        """The query's number, from 1."""
        return self.recorded.query

    @property
    def all_counted(self) -> bool:
        """Whether every device asked was counted in every round."""
        return list(self.asked) == list(self.counted)

    def among(self, places: IntArray) -> "QueryRecord":
        """Return the record with only the recorded devices at these positions; sums stay those of all devices."""
        return replace(self, recorded=self.recorded.among(places), truth=self.truth[places])

    def numbered(self, number: int) -> "QueryRecord":
        """Return the record with another number."""
        return replace(self, recorded=replace(self.recorded, query=number))


@dataclass(frozen=True, eq=False)
class CampaignRecord:
    """Record of one campaign of one mechanism.

    Parameters
    ----------
    deployment
        Arrangement of the servers that added up the reports.
    mechanism
        The mechanism that made the reports.
    queries
        Records of its queries, in order.
    k
        The campaign publishes differences only, and suppresses those below k; None: it publishes the counts.
    noised
        The release that replaces the counts, in words; empty if counts or differences are published.
    fleet
        (vehicles,) int64, the numbers of all vehicles in random order, with those first that are corrupted last; None:
        the recorded devices in the order of their numbers.
    """

    deployment: Deployment
    mechanism: LocalMechanism
    queries: Sequence[QueryRecord]
    k: int | None = None
    noised: str = ""
    fleet: IntArray | None = None

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties of the deployment that store something."""
        return self.deployment.parties(self.mechanism)

    @property
    def servers(self) -> int:
        """The number of servers."""
        return sum(party.startswith("server:") for party in self.parties)

    @property
    def publishes_counts(self) -> bool:
        """Whether the counts of every round are published."""
        return self.k is None and not self.noised

    @property
    def publishes_differences(self) -> bool:
        """Whether Sampling Privacy's differences are published, or can be computed from published values."""
        return isinstance(self.mechanism, SamplingPrivacy) and not self.noised

    def released(self, query: QueryRecord) -> Released:
        """Return the values published of a query."""
        counted = tuple(query.counted)
        if self.publishes_counts:
            return Released(query.number, counted, counts=query.counts)
        if not self.publishes_differences:
            return Released(query.number, counted, values=query.values)
        differences = (query.counts[1] - query.counts[0])[1:]
        suppressed = differences < (self.k or 0)
        return Released(query.number, counted, differences=np.where(suppressed, 0, differences), suppressed=suppressed)

    def all_vehicles(self) -> IntArray:
        """Return `fleet`, or the recorded devices if it is not known."""
        if self.fleet is not None:
            return self.fleet
        none = np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([none, *(query.recorded.devices for query in self.queries)]))

    def with_targets(
        self, most: int, *, corrupted: IntArray | None = None, rng: np.random.Generator
    ) -> "CampaignRecord":
        """Return the record with a limited number of targets in each query.

        Targets are drawn once for all queries, so that the same devices are preferred in every query they are in.

        Parameters
        ----------
        most
            Greatest number of targets in a query.
        corrupted
            Numbers of vehicles that cannot be targets.
        rng
            Generator that draws the targets.
        """
        none = np.empty(0, dtype=np.int64)
        every = np.unique(np.concatenate([none, *(query.recorded.devices for query in self.queries)]))
        rank = rng.permutation(len(every))
        kept = []
        for query in self.queries:
            devices = query.recorded.devices
            there = np.arange(len(devices)) if corrupted is None else np.flatnonzero(~np.isin(devices, corrupted))
            ranks = rank[np.searchsorted(every, devices[there])]
            kept.append(query.among(np.sort(there[np.argsort(ranks)[:most]])))
        return replace(self, queries=tuple(kept))

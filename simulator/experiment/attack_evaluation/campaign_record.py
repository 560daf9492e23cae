"""Record of a campaign for attacks: reports, truths, sums and what was published."""

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
    """One query of one mechanism: some devices' reports and cells, and the sums of all.

    Parameters
    ----------
    recorded
        What the recorded vehicles sent.
    truth
        (n,) int32, their cells at the moment of truth, 0 outside.
    occupancy
        (cells + 1,) int64, all vehicles asked by cell at that moment: the crowd that a recorded one is in.
    counts
        (rounds, *tally_shape) int64, what the servers counted, all devices.
    asked, counted
        Devices asked and reports counted, by round.
    values
        (cells,) float64, what a release published in place of the counts; None where there is none.
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
        """Check that there is one truth a device."""
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
        """Return the record with these of the recorded devices only; sums stay those of all devices."""
        return replace(self, recorded=self.recorded.among(places), truth=self.truth[places])

    def numbered(self, number: int) -> "QueryRecord":
        """Return the record with another number."""
        return replace(self, recorded=replace(self.recorded, query=number))


@dataclass(frozen=True, eq=False)
class CampaignRecord:
    """One campaign of one mechanism.

    Parameters
    ----------
    deployment
        Who added up the reports.
    mechanism
        Whose.
    queries
        In order.
    k
        The campaign publishes differences only, and suppresses those below k; None: it publishes the counts.
    noised
        The release that publishes in place of the counts, in words; empty where counts or differences are published.
    fleet
        (vehicles,) int64, the numbers of all vehicles in random order, those first that are the last to be corrupted;
        None: the recorded devices in the order of their numbers.
    """

    deployment: Deployment
    mechanism: LocalMechanism
    queries: Sequence[QueryRecord]
    k: int | None = None
    noised: str = ""
    fleet: IntArray | None = None

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties that store something."""
        return self.deployment.parties(self.mechanism)

    @property
    def servers(self) -> int:
        """How many of them are servers."""
        return sum(party.startswith("server:") for party in self.parties)

    @property
    def publishes_counts(self) -> bool:
        """Whether the counts of every round are published."""
        return self.k is None and not self.noised

    @property
    def publishes_differences(self) -> bool:
        """Whether Sampling Privacy's differences are published, or can be computed from what is."""
        return isinstance(self.mechanism, SamplingPrivacy) and not self.noised

    def released(self, query: QueryRecord) -> Released:
        """Return what was published of a query."""
        counted = tuple(query.counted)
        if self.publishes_counts:
            return Released(query.number, counted, counts=query.counts)
        if not self.publishes_differences:
            return Released(query.number, counted, values=query.values)
        differences = (query.counts[1] - query.counts[0])[1:]
        suppressed = differences < (self.k or 0)
        return Released(query.number, counted, differences=np.where(suppressed, 0, differences), suppressed=suppressed)

    def all_vehicles(self) -> IntArray:
        """Return `fleet`, or the recorded devices where it is not known."""
        if self.fleet is not None:
            return self.fleet
        none = np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([none, *(query.recorded.devices for query in self.queries)]))

    def with_targets(
        self, most: int, *, corrupted: IntArray | None = None, rng: np.random.Generator
    ) -> "CampaignRecord":
        """Return the record of at most so many targets a query: the same devices in every query they are in.

        Parameters
        ----------
        most
            How many.
        corrupted
            Numbers of vehicles that are no targets.
        rng
            Draws the targets.
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

"""Campaign record: what the challenger keeps of a campaign to play its games with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, LocalMechanism
from simulator.aggregation.deployment import Deployment, Recorded
from simulator.aggregation.transcript import Released

IntArray = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """One query of one mechanism: some devices' reports and cells, and everybody's sums.

    Parameters
    ----------
    recorded
        What the targets sent; a random sample of the vehicles asked.
    truth
        (n,) int32, the targets' cells at the moment of truth, 0 outside.
    occupancy
        (cells + 1,) int64, all vehicles asked by cell at that moment: what the targets are a sample of, and the crowd
        they are in.
    counts
        (rounds, *tally_shape) int64, what the servers counted, all devices.
    asked, counted
        Devices asked and reports counted, by round.

    Raises
    ------
    ValueError
        If truth and recorded devices do not match, or there are fewer vehicles than targets.
    """

    recorded: Recorded
    truth: Cells
    occupancy: IntArray
    counts: Counts
    asked: Sequence[int]
    counted: Sequence[int]

    def __post_init__(self) -> None:
        """Check that there is one truth a target."""
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
        """Return the record with these of the targets only; sums stay those of all devices."""
        recorded = self.recorded
        kept = Recorded(
            recorded.query,
            recorded.devices[places],
            [reports[places] for reports in recorded.reports],
            recorded.heard[:, places],
        )
        return replace(self, recorded=kept, truth=self.truth[places])


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
    released
        What was published, by query.
    noised
        The release that publishes in place of the counts, in words; empty where they are published, suppressed or not.
    """

    deployment: Deployment
    mechanism: LocalMechanism
    queries: Sequence[QueryRecord]
    released: Sequence[Released] = ()
    noised: str = ""

    @property
    def parties(self) -> tuple[str, ...]:
        """The parties that store something."""
        return self.deployment.parties(self.mechanism)

    @property
    def servers(self) -> int:
        """How many of them are servers."""
        return sum(party.startswith("server:") for party in self.parties)

    def with_targets(self, most: int, *, rng: np.random.Generator) -> "CampaignRecord":
        """Return the record of at most so many targets a query: the same devices in every query they are in.

        Parameters
        ----------
        most
            How many.
        rng
            Who.
        """
        nobody = np.empty(0, dtype=np.int64)
        every = np.unique(np.concatenate([nobody, *(query.recorded.devices for query in self.queries)]))
        rank = rng.permutation(len(every))
        kept = []
        for query in self.queries:
            ranks = rank[np.searchsorted(every, query.recorded.devices)]
            kept.append(query.among(np.sort(np.argsort(ranks)[:most])))
        return replace(self, queries=tuple(kept))

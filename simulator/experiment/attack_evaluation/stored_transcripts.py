"""Transcripts of the parties, restricted to recorded devices, and the device of each handle."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from simulator.aggregation.transcript import HandleKind, Transcript
from simulator.experiment.attack_evaluation.campaign_record import CampaignRecord, QueryRecord
from simulator.streams import Streams

IntArray = npt.NDArray[np.int64]

MOST_WORDS = 2**25
"""Greatest number of words of shares kept from one attack to the next: 256 MB. Beyond, each attack computes the
transcripts of each query again."""


class FiledQueries:
    """Transcripts of the queries of one campaign, or of several over the same traffic.

    Each query's transcripts are drawn from a random stream of their own.

    Parameters
    ----------
    campaigns
        Records with the recorded devices, by name. The queries of several campaigns are numbered anew, in the order of
        their moments of truth.
    name
        The mechanism's name.
    streams
        The run's generators.
    """

    def __init__(self, campaigns: Mapping[str, CampaignRecord], *, name: str, streams: Streams) -> None:
        self.campaigns, self._name, self._streams = campaigns, name, streams
        found = [(campaign, query) for campaign, record in campaigns.items() for query in record.queries]
        if len(campaigns) > 1:
            found.sort(key=lambda one: one[1].time_s)
            numbered = [query.numbered(number) for number, (_, query) in enumerate(found, start=1)]
        else:
            numbered = [query for _, query in found]
        self._origin = {
            query.number: (campaign, old.number) for query, (campaign, old) in zip(numbered, found, strict=True)
        }
        first = next(iter(campaigns.values()))
        self.record = replace(first, queries=tuple(numbered))
        """All queries; the deployment and release are those of the first campaign."""
        self._queries = {query.number: query for query in numbered}
        devices = sum(len(query.truth) for query in numbered)
        servers = max(record.servers for record in campaigns.values())
        each = first.mechanism.rounds * math.prod(first.mechanism.tally_shape) * servers
        self._kept: dict[int, dict[str, Transcript]] | None = {} if devices * each <= MOST_WORDS else None

    def origin(self, query: int) -> tuple[str, int]:
        """Return the campaign of a query, and the query's number in that campaign."""
        return self._origin[query]

    def campaign_of(self, query: int) -> CampaignRecord:
        """Return the record of a query's campaign."""
        return self.campaigns[self._origin[query][0]]

    def query(self, query: int) -> QueryRecord:
        """Return a query with all recorded devices."""
        return self._queries[query]

    def simultaneous(self, query: int) -> list[int]:
        """Return the queries with the same moment of truth, including the given one."""
        moment = self._queries[query].time_s
        return [one.number for one in self._queries.values() if one.time_s == moment or one.number == query]

    def transcripts(self, query: int) -> dict[str, Transcript]:
        """Return each party's transcript of a query, by party."""
        if self._kept is None:
            return self.file(self._queries[query])
        if query not in self._kept:
            self._kept[query] = self.file(self._queries[query])
        return self._kept[query]

    def file(self, query: QueryRecord) -> dict[str, Transcript]:
        """Return each party's transcript of a query with possibly altered reports, by party."""
        campaign, number = self._origin[query.number]
        record = self.campaigns[campaign]
        return record.deployment.transcripts(
            [query.recorded],
            campaign=campaign,
            name=self._name,
            mechanism=record.mechanism,
            rng=self._streams.of("transcripts", campaign, self._name, number),
            released=(record.released(query),),
        )

    def devices(self, query: int, kind: HandleKind, handles: IntArray) -> IntArray:
        """Return the device of each handle of a query, (n,) int64."""
        if kind == "device":
            return handles
        recorded = self._queries[query].recorded
        order = np.argsort(recorded.pseudonyms)
        return recorded.devices[order[np.searchsorted(recorded.pseudonyms, handles, sorter=order)]]


def places_of(devices: IntArray, among: Sequence[int] | IntArray) -> IntArray:
    """Return the position of each device in a list without repetitions, (n,) int64; −1 if absent."""
    listed = np.asarray(among, dtype=np.int64)
    if not len(listed):
        return np.full(len(devices), -1, dtype=np.int64)
    order = np.argsort(listed)
    found = order[np.minimum(np.searchsorted(listed, devices, sorter=order), len(listed) - 1)]
    return np.where(listed[found] == devices, found, -1).astype(np.int64)

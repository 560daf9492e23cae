"""Filed queries: what parties stored of the targets, and whose handles are whose, which only the challenger knows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.aggregation.deployment import Recorded
from simulator.aggregation.transcript import Filed, HandleKind, Transcript
from simulator.experiment.games.campaign_record import CampaignRecord
from simulator.streams import Streams

IntArray = npt.NDArray[np.int64]

MOST_WORDS = 2**25
"""Words of shares that are kept from one attack to the next: 256 MB. Beyond, each query is filed anew for each."""


class _Places:
    """Stands in for a mechanism whose reports are places, each encoded as itself."""

    def __init__(self, mechanism: Any) -> None:
        self.rounds, self.cells, self.tally_shape = mechanism.rounds, mechanism.cells, (1,)

    @staticmethod
    def encode(places: IntArray) -> IntArray:
        """Return (n, 1) int64."""
        return places[:, np.newaxis]


class FiledQueries:
    """Files the queries of a campaign, each with a stream of its own.

    Parameters
    ----------
    record
        Of the targets.
    campaign, name
        The campaign's name and the mechanism's.
    streams
        The run's generators.
    """

    def __init__(self, record: CampaignRecord, *, campaign: str, name: str, streams: Streams) -> None:
        self.record, self._campaign, self._name, self._streams = record, campaign, name, streams
        self._queries = {query.number: query for query in record.queries}
        devices = sum(len(query.truth) for query in record.queries)
        each = record.mechanism.rounds * math.prod(record.mechanism.tally_shape) * record.servers
        self._kept: dict[int, dict[str, Transcript]] | None = {} if devices * each <= MOST_WORDS else None
        self._keys: dict[int, dict[int, int]] = {}

    def transcripts(self, queries: Sequence[int]) -> dict[str, Transcript]:
        """Return what each party stored of some queries, by party."""
        filed = [self._file(query) for query in queries]
        return {
            party: Transcript(
                party,
                self._campaign,
                self._name,
                tuple(entry for one in filed for entry in one[party].filed),
                tuple(one for one in self.record.released if one.query in queries),
            )
            for party in self.record.parties
        }

    def is_target(self, query: int, kind: HandleKind, handles: IntArray) -> npt.NDArray[np.bool_]:
        """Return which handles are of targets of a query, (n,) bool: a device followed from others may not be one."""
        if kind == "device":
            return np.isin(handles, self._queries[query].recorded.devices)
        return np.ones(len(handles), dtype=np.bool_)

    def places(self, query: int, kind: HandleKind, handles: IntArray) -> IntArray:
        """Return the place of each handle's device among the targets of a query, (n,) int64."""
        if kind == "device":
            devices = self._queries[query].recorded.devices
            order = np.argsort(devices)
            found: IntArray = order[np.searchsorted(devices, handles, sorter=order)]
            return found
        if query not in self._keys:
            self._keys[query] = self._key(query)
        key = self._keys[query]
        return np.array([key[handle] for handle in handles.tolist()], dtype=np.int64)

    def _file(self, query: int) -> dict[str, Transcript]:
        if self._kept is not None and query in self._kept:
            return self._kept[query]
        filed = self._file_as(query, self._queries[query].recorded, self.record.mechanism)
        if self._kept is not None:
            self._kept[query] = filed
        return filed

    def _file_as(self, query: int, recorded: Recorded, mechanism: Any) -> dict[str, Transcript]:
        return self.record.deployment.transcripts(
            [recorded],
            campaign=self._campaign,
            name=self._name,
            mechanism=mechanism,
            rng=self._streams.of("transcripts", self._campaign, self._name, query),
        )

    def _key(self, query: int) -> dict[int, int]:
        """Return the places behind the pseudonyms of a query.

        It is filed a second time with the same randomness, each device's place in place of its report. What parties
        draw does not hang on what reports say, so the pseudonyms are the same.
        """
        recorded = self._queries[query].recorded
        marks = [np.arange(len(recorded.devices))] * len(recorded.reports)
        marked = Recorded(query, recorded.devices, marks, recorded.heard)
        filed = self._file_as(query, marked, _Places(self.record.mechanism))
        entries = [entry for transcript in filed.values() for entry in transcript.filed if entry.handle_kind == "query"]
        key: dict[int, int] = {}
        for round_ in sorted({entry.round for entry in entries}):
            held = [entry for entry in entries if entry.round == round_]
            if held[0].handles is not None:
                key.update(zip(held[0].handles.tolist(), _marks(held).tolist(), strict=True))
        return key


def _marks(held: Sequence[Filed]) -> IntArray:
    """Return the places that were filed in place of reports, adding up shares of them."""
    if held[0].content_kind == "shares":
        total = np.asarray(np.sum([np.asarray(entry.content) for entry in held], axis=0, dtype=np.uint64))
        return np.ascontiguousarray(total[:, 0]).view(np.int64)
    return np.asarray(held[0].content).astype(np.int64)

"""Records of closed queries that games play on: reports, truths, sums and published values, and what parties stored."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism, SamplingPrivacy
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import HandleKind, Released, StoredEntries, named_by
from simulator.arrays import IntArray
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, QueryRecord, answers_of_devices
from simulator.streams import Streams

REPORTS_MISSING = "not every report was counted, so the differences are not numbers of sampled devices"


class NotPlayableError(Exception):
    """A game cannot be played; the message is the reason, a sentence without its full stop."""


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
        (vehicles,) int64, the numbers of all vehicles in random order; the last are corrupted first; None:
        the recorded devices in the order of their numbers.
    operator
        Who runs the servers; None if no operator is named.
    """

    deployment: Deployment
    mechanism: LocalMechanism
    queries: Sequence[QueryRecord]
    k: int | None = None
    noised: str = ""
    fleet: IntArray | None = None
    operator: str | None = None

    @property
    def parties(self) -> dict[str, str]:
        """By their names in the run, the deployment's names of the parties that store something."""
        return {named_by(self.operator, party): party for party in self.deployment.parties(self.mechanism)}

    @property
    def servers(self) -> int:
        """The number of servers."""
        return len(self.deployment.servers_of(self.mechanism))

    @property
    def publishes_counts(self) -> bool:
        """Whether the counts of every round are published."""
        return self.k is None and not self.noised

    @property
    def publishes_differences(self) -> bool:
        """Whether Sampling Privacy's differences are published, or can be computed from published values."""
        return isinstance(self.mechanism, SamplingPrivacy) and not self.noised

    @property
    def unpublished(self) -> str:
        """Why the published values are no numbers of sampled devices, in words, where they are not."""
        return f"the published value is not a count but a release, {self.noised}" if self.noised else REPORTS_MISSING

    def sampling_privacy(self, reason: str) -> SamplingPrivacy:
        """Return the mechanism if it is Sampling Privacy; raise `NotPlayableError` with a reason for any other."""
        mechanism: Any = self.mechanism
        if not isinstance(mechanism, SamplingPrivacy):
            raise NotPlayableError(reason)
        return mechanism

    def released(self, query: QueryRecord) -> Released:
        """Return the values published of a query."""
        counted = tuple(query.counted)
        if self.publishes_counts or not self.publishes_differences:
            counts = query.counts if self.publishes_counts else None
            return Released(query.number, counted, counts=counts, values=query.values)
        differences = (query.counts[1] - query.counts[0])[1:]
        k = self.k or 0
        suppressed = differences < k
        shown = np.where(suppressed, 0, differences)
        return Released(query.number, counted, differences=shown, suppressed=suppressed, k=k)

    @property
    def devices(self) -> IntArray:
        """(devices,) int64, ascending: the numbers of all recorded devices."""
        devices = [query.recorded.devices for query in self.queries]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *devices]))

    def with_targets(self, most: int, *, spared: IntArray | None = None, rng: np.random.Generator) -> "CampaignRecord":
        """Return the record with a limited number of targets in each query.

        Targets are drawn once for all queries, so that the same devices are preferred in every query they are in.

        Parameters
        ----------
        most
            Greatest number of targets in a query.
        spared
            Numbers of vehicles that cannot be targets; by default none.
        rng
            Generator that draws the targets.
        """
        every = self.devices
        rank = rng.permutation(len(every))
        kept = []
        for query in self.queries:
            devices = query.recorded.devices
            candidates = np.arange(len(devices)) if spared is None else np.flatnonzero(~np.isin(devices, spared))
            ranks = rank[np.searchsorted(every, devices[candidates])]
            kept.append(query.among(np.sort(candidates[np.argsort(ranks)[:most]])))
        return replace(self, queries=tuple(kept))


MOST_WORDS = 2**25
"""Greatest number of words of shares kept from one attack to the next: 256 MB. Beyond, each attack computes the
transcripts of each query again."""


class StoredTranscripts:
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
        self.campaigns, self.name, self.streams = campaigns, name, streams
        queries = [(campaign, query) for campaign, record in campaigns.items() for query in record.queries]
        if len(campaigns) > 1:
            queries.sort(key=lambda pair: pair[1].time_s)
        placed = [
            query.placed(campaign, number if len(campaigns) > 1 else query.number)
            for number, (campaign, query) in enumerate(queries, start=1)
        ]
        first = next(iter(campaigns.values()))
        self.record = replace(first, queries=tuple(placed))
        """All queries; the deployment and release are the first campaign's."""
        self.fleet = self.record.devices if first.fleet is None else first.fleet
        """(vehicles,) int64: the numbers of all vehicles in random order."""
        self.others = self.fleet[1::2]
        """Every other vehicle: none of them is attacked where a prior is learned from them."""
        self._queries = {query.number: query for query in placed}
        devices = sum(len(query.truth) for query in placed)
        servers = max(record.servers for record in campaigns.values())
        each = first.mechanism.rounds * math.prod(first.mechanism.tally_shape) * servers
        self._kept: dict[int, dict[str, list[StoredEntries]]] | None = {} if devices * each <= MOST_WORDS else None

    def query(self, query: int) -> QueryRecord:
        """Return a query with all recorded devices."""
        return self._queries[query]

    def transcripts(self, query: QueryRecord) -> dict[str, list[StoredEntries]]:
        """Return what each party stored of a query, by party; drawn again if the query's reports were altered."""
        unaltered = query is self._queries[query.number]
        if unaltered and self._kept is not None and query.number in self._kept:
            return self._kept[query.number]
        record = self.campaigns[query.campaign]
        rng = self.streams.of("transcripts", query.campaign, self.name, query.number_in_campaign)
        stored = record.deployment.transcripts(query.recorded, record.mechanism, rng=rng)
        if unaltered and self._kept is not None:
            self._kept[query.number] = stored
        return stored

    def devices(self, query: int, kind: HandleKind, handles: IntArray) -> IntArray:
        """Return the device of each handle of a query, (n,) int64."""
        if kind == "device":
            return handles
        recorded = self._queries[query].recorded
        return recorded.devices[places_of(handles, recorded.pseudonyms)]


def places_of(devices: IntArray, among: Sequence[int] | IntArray) -> IntArray:
    """Return the position of each device in a list without repetitions, (n,) int64; −1 if absent."""
    return pd.Index(np.asarray(among, dtype=np.int64)).get_indexer(pd.Index(devices)).astype(np.int64)


def record_campaigns(
    queries: Sequence[Query], campaigns: Sequence[Campaign], *, fleet: IntArray
) -> dict[tuple[str, str], CampaignRecord]:
    """Return the records of closed queries that attacks need, by campaign and mechanism.

    Parameters
    ----------
    queries
        Closed queries, without queries of speeds and queries for which no vehicle's reports were kept.
    campaigns
        The campaigns of the run.
    fleet
        The numbers of all vehicles in random order.
    """
    named = {campaign.name: campaign for campaign in campaigns}
    return {
        (campaign, name): CampaignRecord(
            named[campaign].deployment,
            named[campaign].mechanisms[name],
            tuple(query.recorded[name] for query, _ in answered if name in query.recorded),
            *_replaced(named[campaign], name),
            fleet=fleet,
            operator=named[campaign].operator,
        )
        for (campaign, name), answered in answers_of_devices(queries).items()
    }


def _replaced(campaign: Campaign, name: str) -> tuple[int | None, str]:
    """Return the k below which a release suppresses a mechanism's values, and in words what replaces its counts.

    The k is None if nothing is suppressed; the words are empty if counts or differences are published.
    """
    deployment, release = campaign.deployment, campaign.release
    if deployment.noise is not None:
        return None, "the servers' noise"
    if name not in campaign.publications:
        return None, "" if deployment.sums_reports else f"the combination by {deployment.kind}"
    k = int(release["k"]) if release["kind"] == "suppress" else None
    shown = k is not None and isinstance(campaign.mechanisms[name], SamplingPrivacy)
    return k, "" if shown else campaign.release_words

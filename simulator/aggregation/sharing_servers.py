"""Sharing servers: what deployments have in common whose servers hold shares of reports and publish sums of shares."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy import LinkedReports, Shares, View
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost, Deployment, Handles
from simulator.aggregation.secret_sharing import MOST_SERVERS, WORD_NBYTES, ShareSums
from simulator.aggregation.storage import Party, RecordedMessages
from simulator.aggregation.transcript import NETWORK, Coalition, Sharing, StoredEntries

EXACT_WORDS = 2**22
"""Greatest number of words of shares up to which a query's reports are cut one by one, in about 0.2 s. If it is
exceeded, the servers' sums are drawn instead."""


@dataclass(frozen=True, kw_only=True)
class SharingServers(Deployment):
    """Deployment in which devices cut each report into shares, one for each of m servers.

    A share is a part of the report's encoding, and a message of its own. A server stores it under a handle, adds up
    the shares of the counted reports and publishes the sum; the sums of as many servers as are needed give the counts.

    The servers' sums are computed in one of two ways, which have the same distribution: every report is cut and every
    server adds up its shares; or, for many reports, the sums are drawn. Memory is bounded in both cases.

    Parameters
    ----------
    servers
        m, 2…255.
    paired
        Whether shares are stored under a one-time pseudonym per query and only complete devices are counted. At the
        end of a query the servers compare the pseudonyms received in each round, and together drop those not received
        in every round. They learn which pseudonyms were received, but no answer; and the noise of the rounds cancels
        again.
    handles
        Kind of handle under which shares are stored; "query" if they are paired, otherwise by default "device".
    exact_words
        Greatest number of words for which shares are made one by one.

    Raises
    ------
    ParameterError
        If a number is out of range, or shares are to be paired under device numbers.
    """

    servers: int = 2
    handles: Handles | None = None
    paired: bool = False
    exact_words: int = EXACT_WORDS

    def __post_init__(self) -> None:
        """Check the parameters and fill in the handles."""
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        check_integer("exact_words", self.exact_words, at_least=0)
        if self.handles is None:
            object.__setattr__(self, "handles", "query" if self.paired else "device")
        super().__post_init__()
        if self.paired and self.handles == "device":
            rule = "must be 'query' where shares are paired under one-time pseudonyms"
            raise ParameterError("handles", rule, self.handles)

    @property
    @abstractmethod
    def sharing(self) -> Sharing:
        """The sharing that cuts reports into shares."""

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for every mechanism
        """Return the servers and the network."""
        return (*(f"server:{server}" for server in range(1, self.servers + 1)), NETWORK)

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether shares are made one by one for the reports of this number of devices."""
        return devices * mechanism.rounds * self.servers * math.prod(mechanism.tally_shape) <= self.exact_words

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for every mechanism
        """Return one message to each server."""
        return tuple((server,) for server in self.servers_of(mechanism))

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query; parameters as of `Deployment.aggregator`."""
        exact = self.makes_shares(mechanism, devices)
        sums = ShareSums(mechanism, self.sharing, exact=exact, rng=rng)
        noise = self.draw_noise(mechanism, rng=rng)
        return Aggregator(sums, paired=self.paired, bytes_up=self.cost(mechanism).bytes_up, noise=noise)

    def store_round(
        self, recorded: RecordedMessages, round_: int, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> Iterator[StoredEntries]:
        """Yield the entries that each server stores: the shares that reached it, under handles.

        Servers may hold shares of different reports; they count the reports of which all servers that are needed
        received a share in time. The shares are drawn again, from the same distribution as those that were added up;
        no party sees both a report's shares and another party's sum.
        """
        shares = self.sharing.split(mechanism.encode(recorded.reports[round_ - 1]), rng=rng)
        for party, held in zip(self.servers_of(mechanism), shares, strict=True):
            yield recorded.stored(
                party,
                round_,
                self.handles or "none",
                held.__getitem__,
                content_kind="shares",
                anonymous=self.anonymous,
                sharing=self.sharing,
            )

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends each server a vector of 8-byte words."""
        vector = WORD_NBYTES * math.prod(mechanism.tally_shape)
        servers = self.servers_of(mechanism)
        return Cost(
            bytes_up=len(servers) * (vector + self.pseudonym_nbytes),
            bytes_down=QUESTION_NBYTES,
            stored_bytes=dict.fromkeys(servers, vector + self.handle_nbytes),
            between_servers=len(servers) * (len(servers) - 1) * self.pseudonym_nbytes if self.paired else 0,
            notes=self.channel_notes,
            bytes_to=dict.fromkeys(servers, vector + self.pseudonym_nbytes),
        )

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of the shares of k of m servers: it reveals nothing, or if k suffice, the linked reports."""
        colluding = len(members.servers)
        if self.sharing.needed <= colluding < self.servers:
            return LinkedReports(queries=queries)
        return Shares(colluding, self.servers, queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:  # noqa: ARG002 - the same for every mechanism
        """Return what the coalition can compute about one device."""
        colluding, needed = len(members.servers), self.sharing.needed
        if colluding >= needed:
            joined = "by adding up its" if needed == self.servers else f"from any {needed} of its"
            return f"Every report, {joined} {self.servers} shares, {self.followed(members)}."
        known = "pseudonyms were received" if self.followed_by(members) == "query" else "devices were received"
        return (
            f"Only which {known} in which round, and nothing about a report's content: {colluding} of {self.servers} "
            f"shares are uniform whatever it is{', as its class states' if self.rests_on else ''}."
        )


@dataclass(frozen=True, kw_only=True)
class OwnSharing(SharingServers):
    """Deployment whose reports are cut into shares by a user's own sharing.

    Parameters
    ----------
    own
        The user's sharing, with what `Sharing` has; it may also have `handles` and `paired`, as of `SharingServers`.
    name
        Name of its kind in the scenario.
    """

    own: Sharing
    name: str

    @property
    def kind(self) -> str:
        """Name of the kind in the scenario."""
        return self.name

    @property
    def sharing(self) -> Sharing:
        """The user's sharing."""
        return self.own

    @property
    def rests_on(self) -> str:
        """The statement of the user's class, which no test proves."""
        needed = self.own.needed
        return (
            f"Rests on what {type(self.own).__name__} states: fewer than {needed} of its shares are uniform, whatever "
            "the report is. `crowdveil check` searches for what contradicts that, and does not prove it."
        )

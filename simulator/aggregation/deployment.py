"""Deployment: the interface of an arrangement of servers, what each stores, and its costs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from mechanisms.central.grid_noise import draw_noise
from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from mechanisms.privacy import View
from mechanisms.privacy.integer_noise import IntegerNoise
from simulator.aggregation.aggregator import Aggregator, Sums
from simulator.aggregation.rounds import report_nbytes
from simulator.aggregation.server_noise import DrawnNoise
from simulator.aggregation.transcript import (
    NETWORK,
    PSEUDONYM_NBYTES,
    Coalition,
    Party,
    RecordedMessages,
    Sharing,
    StoredEntries,
)

Handles = Literal["device", "query"]
QUESTION_NBYTES = 16
"""Bytes that a device downloads in a round: the query's number and its deadline, 8 bytes each. Cells and parameters
are already installed; transport and its headers are not counted."""
HASH_NBYTES = 32
"""Bytes of a SHA-256 hash, by which a device checks that a question was published to all."""
DEVICE_NBYTES = 8
"""Bytes of a device's number as stored. It is not sent: the connection identifies the device."""

READ_PLAIN = (
    "robust has no effect here: servers read plain reports, so a report is one of the mechanism's outputs or none; "
    "no check can find a false report among those outputs."
)
OPEN_CHANNEL = (
    "A one-time pseudonym hides a device only from parties that cannot see over which connection it sends: an "
    "observer of the network, together with a server, follows it from query to query; channel.anonymous prevents this."
)
ANONYMOUS_CHANNEL = "An anonymous channel is assumed; how it is built, what it costs and its delays are not simulated."
NAMED = "Reports name their device, so an anonymous channel hides nothing here."


@dataclass(frozen=True)
class Cost:
    """Cost of a deployment in bytes, without transport.

    Parameters
    ----------
    bytes_up, bytes_down
        Bytes that a device sends and receives in a round.
    bytes_to
        By party: the part of `bytes_up` that it receives from the device, if a report consists of several messages;
        empty if it is one message.
    stored_bytes
        By party: the bytes of a report that it keeps until the query is closed.
    between_servers
        Bytes per report that the servers send one another, all together.
    notes
        What is assumed and what is simulated, one sentence each.
    """

    bytes_up: int
    bytes_down: int
    stored_bytes: Mapping[Party, int]
    between_servers: int = 0
    notes: tuple[str, ...] = ()
    bytes_to: Mapping[Party, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Deployment(ABC):
    """Arrangement of the servers that add up reports.

    It holds no state: each query of each mechanism has an `Aggregator` of its own. A kind of deployment defines which
    parties there are, the messages that a report consists of, what each party stores, and what a coalition learns.

    Besides the deployment's `parties`, a coalition may have the member "vehicles:N": N corrupted vehicles, which know
    where they were and what they sent.

    Parameters
    ----------
    robust
        Whether devices prove that their reports are valid. It has no effect where servers read plain reports: a plain
        report is one of the mechanism's outputs, or it is no report.
    anonymous
        Whether devices send over an anonymous channel: neither the network nor the party that receives a message then
        knows which device sent it, unless the report names it (`handles = "device"`).
    noise
        Noise that each server adds to each cell's count before it publishes; by default none.
    question_nbytes
        Bytes of a question.
    min_batch
        Fewest reports of each round from which the servers publish anything.
    min_gap_s
        Seconds from a query that a device answers until it answers another of the campaign.
    committed
        Whether devices answer only a question whose hash was published to all before.

    Raises
    ------
    ParameterError
        If the kind of handle is unknown.
    """

    robust: bool = False
    anonymous: bool = False
    noise: IntegerNoise | None = None
    question_nbytes: int = QUESTION_NBYTES
    min_batch: int = 1
    min_gap_s: float = 0.0
    committed: bool = False
    sums_reports: ClassVar[bool] = True
    """Whether the sum of all servers' counts is published, from which the mechanism's estimate is computed."""
    can_pair: ClassVar[bool] = True
    """Whether its servers can know which devices they received in every round."""

    def __post_init__(self) -> None:
        """Check the handles."""
        if self.handles not in {"device", "query", None}:
            raise ParameterError("handles", "must be 'device' or 'query'", self.handles)

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the kind of deployment in a scenario."""

    @property
    def paired(self) -> bool:
        """Whether only devices received in every round are counted."""
        return False

    @property
    def keeps_arrivals(self) -> bool:
        """Whether the estimate may depend on when reports arrived."""
        return False

    @property
    def locates(self) -> bool:
        """Whether the server that a device reports to depends on the device's cell."""
        return False

    @property
    def delay_s(self) -> float:
        """Seconds from the close of a query until its estimate is published."""
        return 0.0

    @property
    def handles(self) -> Handles | None:
        """Kind of handle under which servers store reports; None if they store reports without handles."""
        return None

    @property
    def sharing(self) -> Sharing | None:
        """The sharing that made the servers' shares; None if they hold none."""
        return None

    @property
    def rests_on(self) -> str:
        """On what the claims about shares rest that this project has not proved; empty if on nothing."""
        return ""

    @property
    def needed(self) -> int | None:
        """How many of a report's messages must arrive in time for it to be counted; None for all of them.

        In each round, the servers count the reports that reached the `needed` servers with the most messages in time.
        """
        return None if self.sharing is None else self.sharing.needed

    @abstractmethod
    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:
        """Return the messages that make up a report of a round, each as the parties that it passes, in order."""

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return the parties that store something: servers on the routes of the rounds, then the mixer, the network."""
        routes = (self.route(round_) for round_ in range(1, mechanism.rounds + 1))
        return (*dict.fromkeys(party for route in routes for path in route for party in reversed(path)), NETWORK)

    def store_round(
        self,
        recorded: RecordedMessages,
        round_: int,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are stored as sent
        *,
        rng: np.random.Generator,  # noqa: ARG002 - handles order the entries
    ) -> Iterator[StoredEntries]:
        """Yield what the servers and the mixer store of one round: here, plain reports under handles.

        They are stored by the one server that a report of the round is sent to; parameters as in `transcripts`.
        """
        ((server,),) = self.route(round_)
        content = recorded.reports[round_ - 1].__getitem__
        yield recorded.stored(server, round_, self.handles or "none", content, anonymous=self.anonymous)

    @abstractmethod
    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:
        """Return the view of a coalition with a server; `queries` counts those over which it can follow a device."""

    @abstractmethod
    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:
        """Return a sentence stating what a coalition with a server can compute about one device."""

    def servers_of(self, mechanism: LocalMechanism) -> list[Party]:
        """Return the servers among the parties, in order."""
        return [party for party in self.parties(mechanism) if party.startswith("server:")]

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:  # noqa: ARG002 - only shares depend on it
        """Return the aggregator of one query.

        Parameters
        ----------
        mechanism
            The mechanism that makes the reports.
        devices
            Greatest number of devices that answer one by one; it decides whether each report is cut into shares.
        rng
            Generator of what the parties draw: seeds of shares, and noise.
        """
        noise = self.draw_noise(mechanism, rng=rng)
        return Aggregator(Sums(mechanism), paired=self.paired, bytes_up=self.cost(mechanism).bytes_up, noise=noise)

    def draw_noise(self, mechanism: LocalMechanism, *, rng: np.random.Generator) -> DrawnNoise | None:
        """Return the noise that the servers add in one query; None if they add none."""
        if self.noise is None:
            return None
        shape = len(self.servers_of(mechanism)), mechanism.cells
        return DrawnNoise(self.noise, draw_noise(self.noise, math.prod(shape), rng=rng).reshape(shape))

    def transcripts(
        self, recorded: RecordedMessages, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> dict[Party, list[StoredEntries]]:
        """Return what each party stores of one query: by party, one entry per round in order.

        An observer of the network sees which device sent something when, and over which connection.

        Parameters
        ----------
        recorded
            Messages that devices sent.
        mechanism
            The mechanism that made the reports.
        rng
            Generator of shares and of the order of mixed reports.
        """
        stored: dict[Party, list[StoredEntries]] = {party: [] for party in self.parties(mechanism)}
        for round_ in range(1, len(recorded.reports) + 1):
            for entries in self.store_round(recorded, round_, mechanism, rng=rng):
                stored[entries.party].append(entries)
            network = recorded.stored(
                NETWORK, round_, "device", lambda _: None, content_kind="sealed", anonymous=self.anonymous
            )
            stored[NETWORK].append(network)
        return stored

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the bytes that a device sends and that the parties keep: here, of one plain report in a round."""
        nbytes = report_nbytes(mechanism)
        return Cost(
            bytes_up=nbytes + self.pseudonym_nbytes,
            bytes_down=self.question_nbytes,
            stored_bytes=dict.fromkeys(self.servers_of(mechanism), nbytes + self.handle_nbytes),
            notes=(*self.plain_notes, *self.channel_notes),
        )

    @property
    def pseudonym_nbytes(self) -> int:
        """Bytes that a pseudonym adds to a report; none where the connection identifies the device."""
        return PSEUDONYM_NBYTES if self.handles == "query" else 0

    @property
    def handle_nbytes(self) -> int:
        """Bytes of a handle as stored."""
        return PSEUDONYM_NBYTES if self.handles == "query" else DEVICE_NBYTES

    @property
    def plain_notes(self) -> tuple[str, ...]:
        """The note on `robust` where servers read plain reports."""
        return (READ_PLAIN,) if self.robust else ()

    @property
    def channel_notes(self) -> tuple[str, ...]:
        """The assumption about the channel, as a note of the cost."""
        if self.anonymous:
            return (NAMED if self.handles == "device" else ANONYMOUS_CHANNEL,)
        return (OPEN_CHANNEL,) if self.handles == "query" else ()

    def view(
        self, coalition: Iterable[str], mechanism: LocalMechanism, *, devices: int = 1, crowd: int = 1, queries: int = 1
    ) -> View | None:
        """Return a coalition's view of one device, without published counts; None if it sees nothing of the device.

        If no view is exactly what the coalition sees, the smallest view that includes it.

        Parameters
        ----------
        coalition
            Names of parties.
        mechanism
            The mechanism that makes the reports.
        devices
            Number of devices that answer, among whose reports shuffling mixes the device's report.
        crowd
            Number of devices in the cell, which matters if both rounds are seen without handles.
        queries
            Number of queries; one is used if a device cannot be followed from query to query.
        """
        members = Coalition.of(coalition)
        if not members.servers:
            return None
        queries = 1 if self.followed_by(members) == "query" else queries
        return self.seen_by(members, mechanism, devices, crowd, queries)

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return a sentence stating what a coalition can compute about one device."""
        members = Coalition.of(coalition)
        if members.servers:
            return self.learned_by(members, mechanism)
        parts = []
        if members.network or members.mixer:
            parts.append("which devices sent a message in which round, but not its content")
        if members.vehicles:
            parts.append("the corrupted vehicles' own reports")
        return f"Only {' and '.join(parts)}; nothing about other devices."

    def followed_by(self, members: Coalition) -> Handles | None:
        """Return the kind of handle that a coalition can follow; the network knows the device behind a pseudonym."""
        return "device" if members.network and not self.anonymous else self.handles

    def followed(self, members: Coalition) -> str:
        """Return the words that state how far a coalition can follow a device by its handle."""
        if self.followed_by(members) == "device":
            return "and which device it is, from query to query"
        return "linked within a query by its pseudonym, but not from query to query"

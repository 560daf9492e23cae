"""Deployment: the interface of an arrangement of servers, what each stores, and its costs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism, Reports
from mechanisms.privacy import View
from simulator.aggregation.accumulators import draw_pseudonyms
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.transcript import FloatArray, IntArray, Released, StoredEntries, Transcript

Handles = Literal["device", "query"]
QUESTION_NBYTES = 16
"""Bytes that a device downloads in a round: the query's number and its deadline, 8 bytes each. Cells and parameters
are already installed; transport and its headers are not counted."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Party: TypeAlias = str


@dataclass(frozen=True, eq=False)
class RecordedMessages:
    """Messages that some devices sent in one query, and when they arrived: the input of transcripts.

    Parameters
    ----------
    query
        From 1.
    devices
        (n,) int64 device numbers, no two equal.
    reports
        The mechanism's reports of these devices, by round.
    in_time
        (rounds, n) bool: whether a report arrived in time at every server it was sent to.
    arrived_s
        By party: (rounds, n) float64, the time at which a report, or its share, reached the party, late or not;
        infinite if it never did. For the network: the time at which it left the device.
    pseudonyms
        (n,) int64: each device's one-time pseudonym in this query, no two equal.
    connections
        (rounds, n) int64: the network connection over which each report came, no two of a round equal.

    Raises
    ------
    ValueError
        If rounds or devices do not match.
    """

    query: int
    devices: IntArray
    reports: Sequence[Reports]
    in_time: Mask
    arrived_s: Mapping[Party, FloatArray]
    pseudonyms: IntArray
    connections: IntArray

    def __post_init__(self) -> None:
        """Check that all columns have the same devices and rounds."""
        shape = (len(self.reports), len(self.devices))
        for name, column in (("in_time", self.in_time), ("connections", self.connections), *self.arrived_s.items()):
            if column.shape != shape:
                raise ValueError(f"{name} must be (rounds, devices) = {shape}, received {column.shape}")
        if self.pseudonyms.shape != self.devices.shape or any(len(one) != len(self.devices) for one in self.reports):
            raise ValueError(f"pseudonyms and reports must be of {len(self.devices)} devices in every round")

    @classmethod
    def draw(
        cls,
        query: int,
        devices: IntArray,
        reports: Sequence[Reports],
        in_time: Mask,
        arrived_s: Mapping[Party, FloatArray],
        *,
        rng: np.random.Generator,
    ) -> Self:
        """Return the record with pseudonyms and connections drawn; parameters and errors as of the class."""
        n = len(devices)
        connections = [draw_pseudonyms(n, rng=rng) for _ in reports]
        numbers = np.array(connections, dtype=np.int64).reshape(len(connections), n)
        return cls(query, devices, reports, in_time, arrived_s, draw_pseudonyms(n, rng=rng), numbers)

    def among(self, places: IntArray) -> Self:
        """Return the record of some of its devices, given by their positions."""
        return replace(
            self,
            devices=self.devices[places],
            reports=[reports[places] for reports in self.reports],
            in_time=self.in_time[:, places],
            arrived_s={party: arrived_s[:, places] for party, arrived_s in self.arrived_s.items()},
            pseudonyms=self.pseudonyms[places],
            connections=self.connections[:, places],
        )


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


class Deployment(Protocol):
    """Arrangement of the servers that add up reports.

    It holds no state: each query of each mechanism has an `Aggregator` of its own.

    Besides the deployment's `parties`, a coalition may have the member "vehicles:N": N corrupted vehicles, which know
    where they were and what they sent.

    `anonymous` states whether devices send over an anonymous channel: neither the network nor the party that receives a
    message then knows which device sent it, unless the report names it (`handles = "device"`).
    """

    @property
    def kind(self) -> str:
        """Name of the kind of deployment in a scenario."""

    @property
    def anonymous(self) -> bool:
        """Whether devices send over an anonymous channel."""

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return the parties that store something: its servers in order, the mixer, the network."""

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:
        """Return the messages that make up a report of a round, each as the parties that it passes, in order."""

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query.

        Parameters
        ----------
        mechanism
            The mechanism that makes the reports.
        devices
            Greatest number of devices that answer one by one; it decides whether each report is cut into shares.
        rng
            Generator of what the parties draw: seeds of shares.
        """

    def file(
        self, recorded: RecordedMessages, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> dict[Party, list[StoredEntries]]:
        """Return the entries that each party stores of one query: by party, one per round in order.

        Parameters
        ----------
        recorded
            Messages that devices sent.
        mechanism
            The mechanism that made the reports.
        rng
            Generator of shares and of the order of mixed reports.
        """

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the bytes that a device sends and that the parties keep."""

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

        Raises
        ------
        ParameterError
            If the coalition is empty, or names a party that the deployment does not have.
        """

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return a sentence stating what a coalition can compute about one device; errors as in `view`."""

    def transcripts(
        self,
        records: Iterable[RecordedMessages],
        *,
        campaign: str,
        name: str,
        mechanism: LocalMechanism,
        rng: np.random.Generator,
        released: Sequence[Released] = (),
    ) -> dict[Party, Transcript]:
        """Return each party's transcript of a campaign.

        Parameters
        ----------
        records
            By query.
        campaign, name
            The campaign's name and the mechanism's.
        mechanism
            The mechanism that made the reports.
        rng
            Generator of shares and of the order of mixed reports.
        released
            Published values, by query.
        """
        filed: dict[Party, list[StoredEntries]] = {party: [] for party in self.parties(mechanism)}
        for recorded in records:
            for party, entries in self.file(recorded, mechanism, rng=rng).items():
                filed[party].extend(entries)
        return {
            party: Transcript(party, campaign, name, tuple(entries), tuple(released))
            for party, entries in filed.items()
        }

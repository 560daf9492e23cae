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
"""What a device downloads a round: the query's number and its deadline, 8 bytes each. Cells and parameters are
installed; transport and its headers are counted nowhere."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Party: TypeAlias = str


@dataclass(frozen=True, eq=False)
class RecordedMessages:
    """What some devices sent in one query, and what arrived: all that transcripts are made of.

    Parameters
    ----------
    query
        From 1.
    devices
        (n,) int64 device numbers, no two alike.
    reports
        The mechanism's reports of these devices, by round.
    in_time
        (rounds, n) bool: what arrived in time, at every server it was meant for.
    arrived_s
        By party: (rounds, n) float64, when a report, or its share, reached the party, late or not; infinite where it
        never did. Of the network: when it left the device.
    pseudonyms
        (n,) int64: each device's one-time pseudonym in this query, no two alike.
    connections
        (rounds, n) int64: the network connection that each report came over, no two of a round alike.

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
        """Check that everything is of the same devices and rounds."""
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
        """Return the record of some of its devices, by their places."""
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
    """What a deployment costs, in bytes; transport apart.

    Parameters
    ----------
    bytes_up, bytes_down
        That a device sends and receives a round.
    bytes_to
        Of `bytes_up`, what each party receives from the device, where a report is several messages; empty where it is
        one.
    stored_bytes
        That each party keeps of a report, until the query is closed.
    between_servers
        That all servers together send one another a report.
    notes
        What is assumed and what is simulated, a sentence each.
    """

    bytes_up: int
    bytes_down: int
    stored_bytes: Mapping[Party, int]
    between_servers: int = 0
    notes: tuple[str, ...] = ()
    bytes_to: Mapping[Party, int] = field(default_factory=dict)


class Deployment(Protocol):
    """Who adds up reports. It holds no state: each query of each mechanism has an `Aggregator` of its own.

    Besides what a deployment lists in `parties`, coalitions may hold "vehicles:N", N corrupted vehicles, which know
    where they were and what they sent.

    `anonymous` states whether devices send over an anonymous channel: neither the network nor the party that receives a
    message can then tell which device sent it, unless the report names it (`handles = "device"`).
    """

    @property
    def kind(self) -> str:
        """Its name in a scenario."""

    @property
    def anonymous(self) -> bool:
        """Whether devices send over an anonymous channel."""

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return the parties that store something: its servers in order, the mixer, the network."""

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:
        """Return the messages of a report of a round, and for each the parties that it must pass, in order."""

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return what hears and adds up one query.

        Parameters
        ----------
        mechanism
            Whose reports.
        devices
            How many may answer one by one; it decides whether shares are made of each.
        rng
            What the parties draw for themselves: seeds of shares.
        """

    def file(
        self, recorded: RecordedMessages, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> dict[Party, list[StoredEntries]]:
        """Return what each party stores of one query: by party, its rounds in order.

        Parameters
        ----------
        recorded
            What devices sent.
        mechanism
            Whose reports they are.
        rng
            Shares and the order of mixed reports.
        """

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return what a device sends and what the parties keep."""

    def view(
        self, coalition: Iterable[str], mechanism: LocalMechanism, *, devices: int = 1, crowd: int = 1, queries: int = 1
    ) -> View | None:
        """Return what a coalition sees of one device, published counts apart; None if that is nothing.

        Where no view is just what it sees, the least that holds it.

        Parameters
        ----------
        coalition
            Names of parties.
        mechanism
            Whose reports.
        devices
            Devices that answer, among which shuffled reports hide.
        crowd
            Devices in the cell, which matters where both rounds are seen without handles.
        queries
            Over how many queries; one wherever a device cannot be followed from query to query.

        Raises
        ------
        ParameterError
            If the coalition is empty, or names a party that is not there.
        """

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return in plain words what a coalition can compute about one device; errors as in `view`."""

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
        """Return what each party stored of a campaign.

        Parameters
        ----------
        records
            By query.
        campaign, name
            The campaign's name and the mechanism's.
        mechanism
            Whose reports they are.
        rng
            Shares and the order of mixed reports.
        released
            What was published, by query.
        """
        filed: dict[Party, list[StoredEntries]] = {party: [] for party in self.parties(mechanism)}
        for recorded in records:
            for party, entries in self.file(recorded, mechanism, rng=rng).items():
                filed[party].extend(entries)
        return {
            party: Transcript(party, campaign, name, tuple(entries), tuple(released))
            for party, entries in filed.items()
        }

"""Deployment: which servers there are, what each stores, and what it costs and shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism, Reports
from mechanisms.privacy import View
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.transcript import Filed, IntArray, Released, Transcript

Handles = Literal["device", "query"]
QUESTION_NBYTES = 16
"""What a device downloads a round: the query's number and its deadline, 8 bytes each. Cells and parameters are
installed; transport and its headers are counted nowhere."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Party: TypeAlias = str


@dataclass(frozen=True, eq=False)
class Recorded:
    """What some devices sent in one query, and what arrived: all that transcripts are made of.

    Parameters
    ----------
    query
        From 1.
    devices
        (n,) int64 device numbers, no two alike.
    reports
        The mechanism's reports of these devices, by round.
    heard
        (rounds, n) bool: what arrived in time, at every server it was meant for.

    Raises
    ------
    ValueError
        If rounds or devices do not match.
    """

    query: int
    devices: IntArray
    reports: Sequence[Reports]
    heard: Mask

    def __post_init__(self) -> None:
        """Check that everything is of the same devices and rounds."""
        if self.heard.shape != (len(self.reports), len(self.devices)):
            raise ValueError(
                f"heard must be (rounds, devices) = {(len(self.reports), len(self.devices))}, received "
                f"{self.heard.shape}"
            )
        if any(len(reports) != len(self.devices) for reports in self.reports):
            raise ValueError(f"reports must be of {len(self.devices)} devices in every round")


@dataclass(frozen=True)
class Cost:
    """What a deployment costs, in bytes; transport apart.

    Parameters
    ----------
    bytes_up, bytes_down
        That a device sends and receives a round.
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


class Deployment(Protocol):
    """Who adds up reports. It holds no state: each query of each mechanism has an `Aggregator` of its own.

    Besides what a deployment lists in `parties`, coalitions may hold "vehicles:N", N corrupted vehicles, which know
    what they sent themselves.
    """

    @property
    def kind(self) -> str:
        """Its name in a scenario."""

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return the parties that store something: its servers in order, the mixer, the network."""

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return every party that a report of a round must reach to be counted."""

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
        self, recorded: Recorded, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> dict[Party, list[Filed]]:
        """Return what each party stores of one query: by party, its rounds in order.

        Parameters
        ----------
        recorded
            What devices sent.
        mechanism
            Whose reports they are.
        rng
            Pseudonyms, shares and mixing.
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
        records: Iterable[Recorded],
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
            Pseudonyms, shares and mixing.
        released
            What was published, by query.
        """
        filed: dict[Party, list[Filed]] = {party: [] for party in self.parties(mechanism)}
        for recorded in records:
            for party, entries in self.file(recorded, mechanism, rng=rng).items():
                filed[party].extend(entries)
        return {
            party: Transcript(party, campaign, name, tuple(entries), tuple(released))
            for party, entries in filed.items()
        }

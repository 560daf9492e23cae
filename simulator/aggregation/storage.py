"""Storage: the messages that devices sent in a query, and what a party stored of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from mechanisms.local import Reports
from simulator.aggregation.transcript import ContentKind, HandleKind, Sharing, StoredEntries
from simulator.arrays import FloatArray, IntArray, Mask

Party: TypeAlias = str

PSEUDONYM_NBYTES = 16
"""Bytes of a one-time pseudonym as sent: 128 random bits, so two of 10⁹ devices share one with probability 10⁻²⁰."""


def draw_pseudonyms(n: int, *, rng: np.random.Generator) -> IntArray:
    """Draw n different one-time pseudonyms, (n,) int64; simulated with 63 bits, drawn again while two are equal."""
    while True:
        pseudonyms = rng.integers(0, 2**63 - 1, size=n, dtype=np.int64)
        if len(np.unique(pseudonyms)) == n:
            return pseudonyms


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
        (rounds, n) bool: whether a report arrived in time at every server that had to receive it.
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

    def counted(self, *, paired: bool) -> Mask:
        """Return which reports were counted, (rounds, n) bool.

        These are the reports received in time; if paired, only those of devices received in time in every round.
        """
        return self.in_time & self.in_time.all(axis=0) if paired else self.in_time

    def stored(
        self,
        party: Party,
        round_: int,
        handle_kind: HandleKind,
        content: Callable[[IntArray], Any],
        *,
        content_kind: ContentKind = "reports",
        anonymous: bool = False,
        sharing: Sharing | None = None,
        sealed_to: str = "",
        rng: np.random.Generator | None = None,
    ) -> StoredEntries:
        """Return the entries that a party stored of one round: one per report that reached it, in time or late.

        Parameters
        ----------
        party
            The party that stores the entries.
        round_
            From 1.
        handle_kind
            Kind of handle under which entries are stored and by which they are sorted; without handles the order is
            drawn.
        content
            Function from the positions of devices to the contents stored of them.
        content_kind, sharing, sealed_to
            As in `StoredEntries`.
        anonymous
            Whether the party cannot see over which connection an entry came.
        rng
            Generator of the order of entries without handles.
        """
        arrived_s = self.arrived_s[party][round_ - 1]
        places = np.flatnonzero(np.isfinite(arrived_s))
        handles = {"device": self.devices, "query": self.pseudonyms, "none": None}[handle_kind]
        if handles is not None:
            places = places[np.argsort(handles[places])]
        elif rng is not None:
            places = rng.permutation(places)
        return StoredEntries(
            party,
            self.query,
            round_,
            handle_kind,
            None if handles is None else handles[places],
            content(places),
            content_kind,
            arrived_s[places],
            None if anonymous else self.connections[round_ - 1][places],
            sharing,
            sealed_to,
        )

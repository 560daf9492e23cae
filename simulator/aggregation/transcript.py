"""Transcripts: what each party of a deployment stored of a query, and the coalitions of parties that pool them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import Reports, Vectors
from simulator.arrays import FloatArray, IntArray, Mask

HandleKind = Literal["device", "query", "none"]
"""Handle that identifies entries: the device's number, the same in every query and at every party; a one-time
pseudonym, new in each query, the same in its rounds and at every server; or none, with entries in an order that is
independent of the devices."""
ContentKind = Literal["reports", "shares", "sealed"]
"""Content of an entry: a plain report, a share of one, or an encrypted message that the party cannot read."""

ShareVectors: TypeAlias = npt.NDArray[np.uint64]
Party: TypeAlias = str


class Sharing(Protocol):
    """Linear secret sharing among servers: the sum of several vectors' shares is a share of the sum of the vectors.

    Any `needed` − 1 shares are uniform and independent of the vectors, and any `needed` determine the others.
    """

    @property
    def servers(self) -> int:
        """Number of servers m; each holds one share."""

    @property
    def needed(self) -> int:
        """Number of shares that suffice to compute what was shared."""

    def split(self, vectors: Vectors, *, rng: np.random.Generator) -> ShareVectors:
        """Cut vectors (n, *shape) int64 into shares, (m, n, *shape) uint64 by server."""

    def sum(self, shares: ShareVectors) -> ShareVectors:
        """Return each server's sum of its shares of n vectors, (m, *shape) uint64 of (m, n, *shape)."""

    def join(self, shares: ShareVectors, servers: IntArray) -> Vectors:
        """Return the vectors (…) int64 that were shared, from the shares (k, …) of k ≥ `needed` servers, from 1.

        For fewer shares, return vectors that are independent of what was shared.
        """


@dataclass(frozen=True, eq=False, slots=True)
class StoredEntries:
    """Entries that one party stored of one round of one query: one for each report that reached it, late or not.

    Entries with handles are sorted by handle, so their order reveals nothing that the handles do not.

    Parameters
    ----------
    party
        The party that stored the entries: "server:1", …, "mixer" or "network".
    query, round
        From 1.
    handle_kind
        Kind of the handles.
    handles
        (n,) int64, no two equal; None if there are none.
    content
        Plain reports of the mechanism, n of them; (n, *tally_shape) uint64 share vectors; None if none can read
        them. Content encrypted to another party is kept here too: the party `sealed_to` can decrypt it.
    content_kind
        Kind of content as the party itself sees it.
    arrived_s
        (n,) float64: the time at which each entry arrived, seconds.
    connections
        (n,) int64: the network connection over which each entry came, new in each round, as an observer of the network
        sees it too; None if an anonymous channel hides it, or the party received the entry from another party.
    sharing
        The sharing that cut each report into shares; None if it was not cut.
    sealed_to
        The party whose key decrypts the content; empty if there is none.

    Raises
    ------
    ValueError
        If the columns do not have the same n entries, or are not of the kinds stated.
    """

    party: str
    query: int
    round: int
    handle_kind: HandleKind
    handles: IntArray | None
    content: Reports | ShareVectors | None
    content_kind: ContentKind
    arrived_s: FloatArray
    connections: IntArray | None = None
    sharing: Sharing | None = None
    sealed_to: str = ""

    def __post_init__(self) -> None:
        """Check that the columns match one another and the kinds stated."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles are required unless handle_kind is 'none', received {self.handle_kind!r}")
        sealed = self.content_kind == "sealed"
        if (self.content is None and not sealed) or (self.content is not None and sealed and not self.sealed_to):
            raise ValueError(f"content is required unless no party can decrypt it, received {self.content_kind!r}")
        columns = (self.handles, self.content, self.arrived_s, self.connections)
        lengths = {len(column) for column in columns if column is not None}
        if len(lengths) > 1:
            raise ValueError(f"all columns must be of the same entries, received {sorted(lengths)}")
        if self.handles is not None and len(np.unique(self.handles)) < len(self.handles):
            raise ValueError("handles must differ within a round")

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.arrived_s)

    @property
    def server(self) -> int:
        """Number of the party, from 1, if it is a server."""
        return int(self.party.removeprefix("server:"))


@dataclass(frozen=True, eq=False)
class Released:
    """Values that a deployment published of one query.

    Parameters
    ----------
    query
        From 1.
    counted
        Number of reports in the counts, by round.
    counts
        (rounds, *tally_shape) int64; None if they were not published.
    differences
        (cells,) int64, a suppressed one as 0; None if they were not published.
    suppressed
        (cells,) bool, which differences were too small to publish; None if none can be suppressed.
    values
        (cells,) float64, the estimates that were published beside counts, or by a release in place of them; None if
        there are none.
    k
        Differences below it are suppressed.
    leaves
        (cells + 1,) float64: the probability, by cell, that what a device sends at the moment of truth leaves it, which
        is public; None where everything leaves.
    """

    query: int
    counted: tuple[int, ...]
    counts: IntArray | None = None
    differences: IntArray | None = None
    suppressed: Mask | None = None
    values: FloatArray | None = None
    k: int = 0
    leaves: FloatArray | None = None


MIXER, NETWORK, VEHICLES = "mixer", "network", "vehicles:"
"""Parties besides servers; the number of corrupted vehicles follows the last of these words."""
MEANT = {"server:*": "*server:*", "all": "*"}
"""Members of a coalition that stand for all servers of a deployment, and for all its parties, as patterns of names."""


def named_by(operator: str | None, party: Party) -> Party:
    """Return the name of a party in a run: before an operator's servers and mixer stands the operator's name."""
    return party if operator is None or party == NETWORK else f"operator:{operator}/{party}"


def is_member(party: Party, coalition: Iterable[Party]) -> bool:
    """Return whether a coalition has a party: by its name, or by a member that stands for several parties."""
    return any(fnmatchcase(party, MEANT.get(member, member)) for member in coalition)


@dataclass(frozen=True)
class Coalition:
    """A set of parties; made by `of`.

    Parameters
    ----------
    servers
        Numbers of the servers that are members, from 1.
    mixer, network
        Whether the mixer, or an eavesdropper on the network, is a member.
    vehicles
        Number of corrupted vehicles.
    """

    servers: frozenset[int] = frozenset()
    mixer: bool = False
    network: bool = False
    vehicles: int = 0

    @classmethod
    def of(cls, parties: Iterable[str]) -> "Coalition":
        """Return the coalition of some parties of a deployment: "server:R", "mixer", "network", "vehicles:N"."""
        names = list(parties)
        servers = frozenset(int(name.removeprefix("server:")) for name in names if name.startswith("server:"))
        vehicles = sum(int(name.removeprefix(VEHICLES)) for name in names if name.startswith(VEHICLES))
        return cls(servers, MIXER in names, NETWORK in names, vehicles)


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
        if self.pseudonyms.shape != self.devices.shape or any(
            len(reports) != len(self.devices) for reports in self.reports
        ):
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

        These are the reports received in time; if paired, only the reports of devices received in time in every round.
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


def handles_of(entries: Iterable[StoredEntries], kind: str) -> IntArray:
    """Return the handles of one kind under which something was stored, ascending."""
    named = [entry.handles for entry in entries if entry.handle_kind == kind and entry.handles is not None]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *named]))

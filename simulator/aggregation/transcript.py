"""Transcripts: what each party of a deployment stored of a query, and the coalitions of parties that pool them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import Reports, Vectors
from mechanisms.parameter import ParameterError
from simulator.arrays import FloatArray, IntArray, Mask

HandleKind = Literal["device", "query", "none"]
"""Handle that identifies entries: the device's number, the same in every query and at every party; a one-time
pseudonym, new in each query, the same in its rounds and at every server; or none, with entries in an order that is
independent of the devices."""
ContentKind = Literal["reports", "shares", "sealed"]
"""Content of an entry: a plain report, a share of one, or an encrypted message that the party cannot read."""

ShareVectors: TypeAlias = npt.NDArray[np.uint64]


class Sharing(Protocol):
    """Linear secret sharing among servers: the sum of several vectors' shares is a share of the sum of the vectors.

    Any `needed` − 1 shares are uniform and independent of the vectors, and any `needed` determine the others.
    """

    @property
    def servers(self) -> int:
        """Number of servers m, each of which holds one share."""

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
        (cells,) float64, the estimates that a release published in place of counts; None if there are none.
    k
        Differences below it are suppressed.
    """

    query: int
    counted: tuple[int, ...]
    counts: IntArray | None = None
    differences: IntArray | None = None
    suppressed: Mask | None = None
    values: FloatArray | None = None
    k: int = 0


MIXER, NETWORK = "mixer", "network"
WORDS = '"server:1", "server:2", …, "mixer", "network" or "vehicles:N"'


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
        """Return the coalition of the parties named.

        Parameters
        ----------
        parties
            "server:R", "mixer", "network", "vehicles:N"; at least one.

        Raises
        ------
        ParameterError
            If there are no names, a name is not that of a party, or a party is named twice.
        """
        names = [parties] if isinstance(parties, str) else list(parties)
        if not names:
            raise ParameterError("coalition", "must have a member", names)
        if len(set(names)) < len(names):
            raise ParameterError("coalition", "must name each party once", names)
        for name in names:
            if not re.fullmatch("mixer|network|(server|vehicles):0*[1-9][0-9]*", name):
                raise ParameterError("coalition", f"must consist of {WORDS}", name)
        servers = [int(name.removeprefix("server:")) for name in names if name.startswith("server:")]
        vehicles = [int(name.removeprefix("vehicles:")) for name in names if name.startswith("vehicles:")]
        if len(vehicles) > 1 or len(set(servers)) < len(servers):
            raise ParameterError("coalition", "must name each party once", names)
        return cls(frozenset(servers), MIXER in names, NETWORK in names, sum(vehicles))

    def check_within(self, parties: Iterable[str]) -> "Coalition":
        """Return the coalition if each of its servers and its mixer is one of a deployment's parties.

        Raises
        ------
        ParameterError
            If a member is not among the parties; the message lists these.
        """
        existing = list(parties)
        members = [f"server:{server}" for server in sorted(self.servers)] + [MIXER] * self.mixer
        for member in members:
            if member not in existing:
                raise ParameterError("coalition", f"must name existing parties ({', '.join(existing)})", member)
        return self

"""Observation: what the parties of a coalition stored, and what everybody knows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from simulator.aggregation.transcript import ContentKind, Filed, HandleKind, IntArray, Released, Transcript

VEHICLES = "vehicles:"
SERVER = "server:"


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """What one colluding party stored of one round of one query: a copy of these fields of a `Filed`, no more.

    Parameters
    ----------
    party
        Who stored it.
    query, round
        From 1.
    handle_kind, handles
        What the (n,) int64 handles are; None where there are none.
    content, content_kind
        n plain reports, (n, *tally_shape) uint64 shares, or None where the party cannot read them.
    places
        (n,) int64, of a mixer: where in the server's list it put each entry.
    """

    party: str
    query: int
    round: int
    handle_kind: HandleKind
    handles: IntArray | None
    content: Any
    content_kind: ContentKind
    places: IntArray | None

    @classmethod
    def of(cls, party: str, filed: Filed) -> "Seen":
        """Copy the entries of one party."""
        return cls(
            party,
            filed.query,
            filed.round,
            filed.handle_kind,
            _copied(filed.handles),
            _copied(filed.content),
            filed.content_kind,
            _copied(filed.places),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Observation:
    """All that an attack is given: what the coalition's parties stored, and what is public.

    Made by `of` from the transcripts of the parties in the coalition. It holds no truth, no coins, no fleet, and no
    other party's transcript; nor do its arrays share memory with any.

    Parameters
    ----------
    mechanism
        Its parameters are public.
    servers
        How many servers there are: public, and what it takes to add up shares.
    parties
        Of the coalition, those that store something.
    seen
        By party, query and round.
    released
        What was published, by query.
    """

    mechanism: LocalMechanism
    servers: int
    parties: tuple[str, ...]
    seen: tuple[Seen, ...]
    released: tuple[Released, ...]

    @classmethod
    def of(
        cls, transcripts: Mapping[str, Transcript], coalition: Iterable[str], *, mechanism: LocalMechanism
    ) -> "Observation":
        """Pool what the members of a coalition stored.

        Parameters
        ----------
        transcripts
            Of all parties of a deployment, by name, of one campaign and mechanism.
        coalition
            Names of parties. Corrupted vehicles store nothing about others.
        mechanism
            Whose reports they are.

        Raises
        ------
        ParameterError
            If the coalition is empty, or names a party there is not.
        """
        members = list(dict.fromkeys(coalition))
        if not members:
            raise ParameterError("coalition", "must have a member", members)
        storing = [member for member in members if not member.startswith(VEHICLES)]
        for member in storing:
            if member not in transcripts:
                raise ParameterError("coalition", f"must be of parties there are ({', '.join(transcripts)})", member)
        published = next((transcript.released for transcript in transcripts.values()), ())
        return cls(
            mechanism,
            sum(party.startswith(SERVER) for party in transcripts),
            tuple(storing),
            tuple(Seen.of(member, filed) for member in storing for filed in transcripts[member].filed),
            tuple(published),
        )

    @property
    def cells(self) -> int:
        """V."""
        return self.mechanism.cells

    @property
    def queries(self) -> tuple[int, ...]:
        """The queries of which something is seen, ascending."""
        return tuple(sorted({entry.query for entry in self.seen}))

    def of_round(self, query: int, round_: int) -> list[Seen]:
        """Return what is seen of one round of one query."""
        return [entry for entry in self.seen if (entry.query, entry.round) == (query, round_)]


def _copied(entries: Any) -> Any:
    """Return a copy of the entries; indexing with an array makes one of packed reports too."""
    return None if entries is None else entries[np.arange(len(entries))]

"""Observation: what the parties of a coalition received, what its corrupted vehicles know, and what is public."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from simulator.aggregation.transcript import (
    ContentKind,
    FloatArray,
    HandleKind,
    IntArray,
    Released,
    StoredEntries,
    Transcript,
)

VEHICLES = "vehicles:"


@dataclass(frozen=True, eq=False, slots=True)
class StoredView:
    """What one colluding party stored of one round of one query: a copy of these fields of a `StoredEntries`, no more.

    Parameters
    ----------
    party
        Who stored it.
    query, round
        From 1.
    handle_kind, handles
        What the (n,) int64 handles are; None where there are none.
    content, content_kind
        n plain reports, (n, *tally_shape) uint64 shares, or None where no member of the coalition can read them.
    arrived_s
        (n,) float64: when each entry arrived, seconds.
    connections
        (n,) int64: over which connection; None where the party cannot tell.
    parts
        How many shares a report was cut into; 1 where it was not.
    sealed_to
        The party that the content was sealed to, whether or not it was opened; empty where it was not sealed.
    """

    party: str
    query: int
    round: int
    handle_kind: HandleKind
    handles: IntArray | None
    content: Any
    content_kind: ContentKind
    arrived_s: FloatArray
    connections: IntArray | None
    parts: int
    sealed_to: str

    @classmethod
    def of(cls, party: str, filed: StoredEntries, *, keys: Iterable[str] = ()) -> "StoredView":
        """Copy the entries of one party; what is sealed is opened if one of the parties in `keys` can open it."""
        opened = bool(filed.sealed_to) and filed.sealed_to in keys
        readable = opened or filed.content_kind != "sealed"
        return cls(
            party,
            filed.query,
            filed.round,
            filed.handle_kind,
            _copied(filed.handles),
            _copied(filed.content) if readable else None,
            "reports" if opened else filed.content_kind,
            filed.arrived_s.copy(),
            _copied(filed.connections),
            filed.parts,
            filed.sealed_to,
        )


@dataclass(frozen=True, eq=False, slots=True)
class OwnReports:
    """What the corrupted vehicles of a coalition know of one query.

    Parameters
    ----------
    query
        From 1.
    devices, pseudonyms
        (n,) int64: their own numbers and one-time pseudonyms.
    truth
        (n,) int32: the cells they were in at the moment of truth.
    reports
        By round, the n reports that they sent.
    counted
        (rounds, n) bool: which of these were counted, as the servers acknowledged.
    arrived
        By party: (rounds, n) bool, which of these reached it, as it acknowledged.
    """

    query: int
    devices: IntArray
    pseudonyms: IntArray
    truth: npt.NDArray[np.int32]
    reports: tuple[Any, ...]
    counted: npt.NDArray[np.bool_]
    arrived: Mapping[str, npt.NDArray[np.bool_]]

    def __len__(self) -> int:
        return len(self.devices)


@dataclass(frozen=True, eq=False, slots=True)
class Observation:
    """All that an attack is given: what the coalition's members received and know, and what is public.

    Made by `of` from the transcripts of the parties in the coalition. It holds no truth and no coins of vehicles that
    are not corrupted, no fleet, and no other party's transcript; nor do its arrays share memory with any.

    Parameters
    ----------
    mechanism
        Its parameters are public.
    parties
        Of the coalition, those that store something.
    seen
        By party, query and round.
    released
        What was published, by query.
    own
        What corrupted vehicles know, by query; empty without them.
    asked
        How many devices each query asked, corrupted ones included: public.
    last_vehicle
        Whether all vehicles but one are corrupted, so that what is not theirs is of the same vehicle in every query.
    """

    mechanism: LocalMechanism
    parties: tuple[str, ...]
    seen: tuple[StoredView, ...]
    released: tuple[Released, ...]
    own: tuple[OwnReports, ...] = ()
    asked: Mapping[int, int] | None = None
    last_vehicle: bool = False

    @classmethod
    def of(
        cls,
        transcripts: Mapping[str, Transcript],
        coalition: Iterable[str],
        *,
        mechanism: LocalMechanism,
        own: Sequence[OwnReports] = (),
        asked: Mapping[int, int] | None = None,
        keys: Iterable[str] | None = None,
        last_vehicle: bool = False,
    ) -> "Observation":
        """Pool what the members of a coalition received.

        Parameters
        ----------
        transcripts
            Of all parties of a deployment, by name, of one campaign and mechanism.
        coalition
            Names of parties, and "vehicles:N"; with none, only what was published is seen.
        mechanism
            Whose reports they are.
        own, asked, last_vehicle
            As of the class.
        keys
            Parties whose keys the coalition has; by default its members'.

        Raises
        ------
        ParameterError
            If the coalition names a party there is not.
        """
        members = list(dict.fromkeys(coalition))
        storing = [member for member in members if not member.startswith(VEHICLES)]
        for member in storing:
            if member not in transcripts:
                raise ParameterError("coalition", f"must be of parties there are ({', '.join(transcripts)})", member)
        published = next((transcript.released for transcript in transcripts.values()), ())
        held = set(members if keys is None else keys)
        return cls(
            mechanism,
            tuple(storing),
            tuple(StoredView.of(member, filed, keys=held) for member in storing for filed in transcripts[member].filed),
            tuple(published),
            tuple(own),
            dict(asked or {}),
            last_vehicle,
        )

    @classmethod
    def pooled(cls, parts: Sequence["Observation"]) -> "Observation":
        """Return what coalitions saw that differ from query to query; at least one, of the same mechanism."""
        return cls(
            parts[0].mechanism,
            tuple(dict.fromkeys(party for part in parts for party in part.parties)),
            tuple(seen for part in parts for seen in part.seen),
            tuple(released for part in parts for released in part.released),
            tuple(own for part in parts for own in part.own),
            {query: asked for part in parts for query, asked in (part.asked or {}).items()},
            all(part.last_vehicle for part in parts),
        )

    @property
    def cells(self) -> int:
        """V."""
        return self.mechanism.cells

    @property
    def queries(self) -> tuple[int, ...]:
        """The queries of which something is seen, ascending."""
        return tuple(sorted({seen.query for seen in self.seen} | {released.query for released in self.released}))

    def of_round(self, query: int, round_: int) -> list[StoredView]:
        """Return what is seen of one round of one query."""
        return [entry for entry in self.seen if (entry.query, entry.round) == (query, round_)]

    def of_query(self, query: int) -> "Observation":
        """Return what is seen of one query."""
        return Observation(
            self.mechanism,
            self.parties,
            tuple(entry for entry in self.seen if entry.query == query),
            tuple(released for released in self.released if released.query == query),
            tuple(own for own in self.own if own.query == query),
            self.asked,
            self.last_vehicle,
        )

    def own_of(self, query: int) -> OwnReports | None:
        """Return what corrupted vehicles know of one query; None without any."""
        return next((own for own in self.own if own.query == query), None)

    def released_of(self, query: int) -> Released | None:
        """Return what was published of one query; None if nothing was."""
        return next((released for released in self.released if released.query == query), None)

    def unknown_devices(self, query: int) -> int | None:
        """Return how many devices a query asked besides the corrupted ones; None if it is not known."""
        asked = None if self.asked is None else self.asked.get(query)
        own = self.own_of(query)
        return None if asked is None else asked - (0 if own is None else len(own))


def _copied(entries: Any) -> Any:
    """Return a copy of the entries; indexing with an array makes one of packed reports too."""
    return None if entries is None else entries[np.arange(len(entries))]

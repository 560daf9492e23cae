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
    """Entries that one colluding party stored of one round of one query: a copy of these fields of `StoredEntries`.

    Parameters
    ----------
    party
        The party that stored the entries.
    query, round
        From 1.
    handle_kind, handles
        Kind of the handles, and the (n,) int64 handles; None if there are none.
    content, content_kind
        n plain reports, (n, *tally_shape) uint64 shares, or None if no member of the coalition can read them.
    arrived_s
        (n,) float64: the time at which each entry arrived, seconds.
    connections
        (n,) int64: the connection over which each entry came; None if the party does not know it.
    parts
        Number of shares that a report was cut into; 1 if it was not cut.
    sealed_to
        The party that the content was encrypted to, whether or not it was decrypted; empty if it was not encrypted.
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
        """Copy the entries of one party; encrypted content is decrypted if a party in `keys` has its key."""
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
    """Knowledge of a coalition's corrupted vehicles about one query.

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
        (rounds, n) bool: which of these reports were counted, as acknowledged by the servers.
    arrived
        By party: (rounds, n) bool, which of these reports reached it, as acknowledged by the party.
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
    """The complete input of an attack: what the coalition's members received and know, and what is public.

    Made by `of` from the transcripts of the parties in the coalition. It holds no truth and no coins of vehicles that
    are not corrupted, no fleet, and no other party's transcript; and its arrays share no memory with any of these.

    Parameters
    ----------
    mechanism
        The mechanism, whose parameters are public.
    parties
        Members of the coalition that store something.
    seen
        Their stored entries, by party, query and round.
    released
        Published values, by query.
    own
        Knowledge of corrupted vehicles, by query; empty without such vehicles.
    asked
        Number of devices that each query asked, corrupted ones included: public.
    last_vehicle
        Whether all vehicles but one are corrupted, so that all other reports are of the same vehicle in every query.
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
        """Return the observation of a coalition whose members pool what they received.

        Parameters
        ----------
        transcripts
            Transcripts of all parties of a deployment, by name, of one campaign and mechanism.
        coalition
            Names of parties, and "vehicles:N"; with none, only published values are seen.
        mechanism
            The mechanism that made the reports.
        own, asked, last_vehicle
            As in the class.
        keys
            Parties whose keys the coalition has; by default its members.

        Raises
        ------
        ParameterError
            If the coalition names a party that does not exist.
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
        """Join the observations of a coalition that varies from query to query; at least one, of one mechanism."""
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
        """The number of cells, V."""
        return self.mechanism.cells

    @property
    def queries(self) -> tuple[int, ...]:
        """Numbers of the queries with stored entries or published values, ascending."""
        return tuple(sorted({seen.query for seen in self.seen} | {released.query for released in self.released}))

    def of_round(self, query: int, round_: int) -> list[StoredView]:
        """Return the entries of one round of one query, by party."""
        return [entry for entry in self.seen if (entry.query, entry.round) == (query, round_)]

    def of_query(self, query: int) -> "Observation":
        """Return the observation of one query."""
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
        """Return the knowledge of corrupted vehicles about one query; None without such vehicles."""
        return next((own for own in self.own if own.query == query), None)

    def released_of(self, query: int) -> Released | None:
        """Return the values published of one query; None if none were."""
        return next((released for released in self.released if released.query == query), None)

    def unknown_devices(self, query: int) -> int | None:
        """Return the number of devices that a query asked, without the corrupted ones; None if it is not known."""
        asked = None if self.asked is None else self.asked.get(query)
        own = self.own_of(query)
        return None if asked is None else asked - (0 if own is None else len(own))


def _copied(entries: Any) -> Any:
    """Return a copy of the entries; indexing with an array also copies reports that are not arrays."""
    return None if entries is None else entries[np.arange(len(entries))]

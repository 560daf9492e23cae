"""Observation: what a coalition received and knows, what is public, and which reports it can read and link."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from simulator.aggregation.transcript import VEHICLES, HandleKind, Released, StoredEntries
from simulator.arrays import Cells, IntArray, Mask


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
    truth: Cells
    reports: tuple[Any, ...]
    counted: Mask
    arrived: Mapping[str, Mask]

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
        Their stored entries, by party, query and round. Encrypted content is present if the coalition can decrypt it.
    released
        Published values, by query.
    own
        Knowledge of corrupted vehicles, by query; empty without such vehicles.
    asked
        Number of devices that each query asked, corrupted ones included: public.
    last_vehicle
        Whether all vehicles but one are corrupted, so that all other reports are of the same vehicle in every query.
    moments
        By query, the moment of truth, seconds from the start of the run: public.
    """

    mechanism: LocalMechanism
    parties: tuple[str, ...]
    seen: tuple[StoredEntries, ...]
    released: tuple[Released, ...]
    own: tuple[OwnReports, ...] = ()
    asked: Mapping[int, int] | None = None
    last_vehicle: bool = False
    moments: Mapping[int, float] | None = None
    _by_round: dict[tuple[int, int], list[StoredEntries]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the entries by query and round: a campaign may have hundreds of queries."""
        by_round: dict[tuple[int, int], list[StoredEntries]] = {}
        for entry in self.seen:
            by_round.setdefault((entry.query, entry.round), []).append(entry)
        object.__setattr__(self, "_by_round", by_round)

    @classmethod
    def of(
        cls,
        transcripts: Mapping[str, Sequence[StoredEntries]],
        coalition: Iterable[str],
        *,
        mechanism: LocalMechanism,
        released: Sequence[Released] = (),
        own: Sequence[OwnReports] = (),
        asked: Mapping[int, int] | None = None,
        keys: Iterable[str] | None = None,
        last_vehicle: bool = False,
        moments: Mapping[int, float] | None = None,
    ) -> "Observation":
        """Return the observation of a coalition whose members pool what they received.

        Parameters
        ----------
        transcripts
            What each party of a deployment stored of one campaign and mechanism, by party.
        coalition
            Names of parties, and "vehicles:N"; with none, only published values are seen.
        mechanism
            The mechanism that made the reports.
        released, own, asked, last_vehicle, moments
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
                raise ParameterError("coalition", f"must name existing parties ({', '.join(transcripts)})", member)
        held = set(members if keys is None else keys)
        return cls(
            mechanism,
            tuple(storing),
            tuple(_readable_copy(entries, held) for member in storing for entries in transcripts[member]),
            tuple(released),
            tuple(own),
            dict(asked or {}),
            last_vehicle,
            dict(moments or {}),
        )

    @classmethod
    def pooled(cls, parts: Sequence["Observation"]) -> "Observation":
        """Join the observations of a coalition that varies from query to query; at least one, of one mechanism."""
        return cls(
            parts[0].mechanism,
            tuple(dict.fromkeys(party for part in parts for party in part.parties)),
            tuple(seen for part in parts for seen in part.seen),
            tuple(released for part in parts for released in part.released),
            tuple(sent for part in parts for sent in part.own),
            {query: asked for part in parts for query, asked in (part.asked or {}).items()},
            all(part.last_vehicle for part in parts),
            {query: at for part in parts for query, at in (part.moments or {}).items()},
        )

    @property
    def queries(self) -> tuple[int, ...]:
        """Numbers of the queries with stored entries or published values, ascending."""
        return tuple(sorted({seen.query for seen in self.seen} | {released.query for released in self.released}))

    def of_round(self, query: int, round_: int) -> list[StoredEntries]:
        """Return the entries of one round of one query, by party."""
        return self._by_round.get((query, round_), [])

    def of_query(self, query: int) -> "Observation":
        """Return the observation of one query."""
        return replace(
            self,
            seen=tuple(entry for entry in self.seen if entry.query == query),
            released=tuple(released for released in self.released if released.query == query),
            own=tuple(sent for sent in self.own if sent.query == query),
            moments={one: at for one, at in (self.moments or {}).items() if one == query},
        )

    def own_of(self, query: int) -> OwnReports | None:
        """Return the knowledge of corrupted vehicles about one query; None without such vehicles."""
        return next((sent for sent in self.own if sent.query == query), None)

    def released_of(self, query: int) -> Released | None:
        """Return the values published of one query; None if none were."""
        return next((released for released in self.released if released.query == query), None)

    def unknown_devices(self, query: int) -> int | None:
        """Return the number of devices that a query asked, without the corrupted ones; None if it is not known."""
        asked = None if self.asked is None else self.asked.get(query)
        sent = self.own_of(query)
        return None if asked is None else asked - (0 if sent is None else len(sent))

    def own_tally(self, query: int, round_: int) -> tuple[Any, int]:
        """Return the tally and the number of the corrupted vehicles' counted reports of a round; 0 and 0 if none."""
        sent = self.own_of(query)
        if sent is None:
            return 0, 0
        counted = sent.counted[round_ - 1]
        return self.mechanism.tally(sent.reports[round_ - 1], where=counted), int(np.count_nonzero(counted))

    def own_occupancy(self, query: int) -> IntArray:
        """Return the number of corrupted vehicles in each cell, (cells + 1,) int64."""
        sent = self.own_of(query)
        return np.bincount([] if sent is None else sent.truth, minlength=self.mechanism.cells + 1)


def _readable_copy(entries: StoredEntries, keys: set[str]) -> StoredEntries:
    """Return a copy of the entries of one party; encrypted content is decrypted if a party in `keys` has its key."""
    opened = entries.sealed_to in keys
    readable = opened or entries.content_kind != "sealed"
    return replace(
        entries,
        handles=_copied(entries.handles),
        content=_copied(entries.content) if readable else None,
        content_kind="reports" if opened else entries.content_kind,
        arrived_s=entries.arrived_s.copy(),
        connections=_copied(entries.connections),
    )


def _copied(entries: Any) -> Any:
    """Return a copy of the entries; indexing with an array also copies reports that are not arrays."""
    return None if entries is None else entries[np.arange(len(entries))]


@dataclass(frozen=True, eq=False)
class Linked:
    """Reports that the coalition can read, of devices that are not corrupted; the same rounds of each are read.

    Parameters
    ----------
    handle_kind, handles
        (n,) int64; None if the reports of the round cannot be linked to devices, or are the only device's.
    reports
        By round, ascending, or by query and round: n plain reports, or (n, *tally_shape) int64 encodings; equal rows
        are of one device.
    """

    handle_kind: HandleKind
    handles: IntArray | None
    reports: Mapping[Any, Any]

    @property
    def rounds(self) -> tuple[Any, ...]:
        """The rounds that are read."""
        return tuple(self.reports)

    @property
    def content(self) -> Any:
        """The reports of the only round, or the first."""
        return next(iter(self.reports.values()))

    def among(self, rows: IntArray) -> "Linked":
        """Return the reports of some of the devices, given by their positions."""
        handles = None if self.handles is None else self.handles[rows]
        return Linked(self.handle_kind, handles, {key: reports[rows] for key, reports in self.reports.items()})

    def __len__(self) -> int:
        return len(self.content)


def read_round(observation: Observation, query: int, round_: int, *, partial: bool = False) -> Linked | None:
    """Return the reports of a round that the coalition can read; None if it can read none.

    A report is read if a member stores it plain, or stores it encrypted and another member has the key; or if the
    coalition holds as many of its shares as are needed, by joining them. It is read without its device if it is in a
    list without handles, or if it is the only report in the published sums besides corrupted vehicles' reports.

    Parameters
    ----------
    observation
        What the coalition observed.
    query, round_
        From 1.
    partial
        Whether to join shares even if too few are held, and to treat the result as an encoding.
    """
    seen = observation.of_round(query, round_)
    plain = [entry for entry in seen if entry.content_kind == "reports"]
    named = [_with_handles(observation, entry) for entry in plain if entry.handles is not None]
    if named:
        return _without_own(observation, query, _joined(observation, named))
    parts = [entry for entry in seen if entry.content_kind == "shares"]
    if holds_enough(parts):
        return _without_own(observation, query, _joined_shares(observation, parts))
    if plain:
        return _listed(observation, plain)
    last = _last_encoding(observation, query, round_)
    if last is None and parts and partial:
        return _without_own(observation, query, _joined_shares(observation, parts))
    return last


def holds_enough(entries: Iterable[StoredEntries]) -> bool:
    """Return whether so many different servers hold shares of a round that their shares determine the reports."""
    held = {entry.party: entry.sharing for entry in entries if entry.sharing is not None}
    return any(len(held) >= sharing.needed for sharing in held.values())


def link_rounds_of(
    observation: Observation, query: int, rounds: Sequence[int], *, partial: bool = False
) -> Iterator[Linked]:
    """Yield the devices with a readable report of these rounds, grouped by the rounds that can be read.

    Within a query reports are linked by any kind of handle. If only one device is not corrupted, the reports left over
    are its own.
    """
    parts = ((round_, read_round(observation, query, round_, partial=partial)) for round_ in sorted(rounds))
    read = {round_: part for round_, part in parts if part is not None}
    if observation.unknown_devices(query) == 1:
        read = _named_alike(read)
        alone = {
            round_: part.content for round_, part in read.items() if part.handles is None and len(part.content) == 1
        }
        if alone:
            yield Linked("none", None, alone)
    for kind in sorted({part.handle_kind for part in read.values() if part.handles is not None}):
        yield from link({round_: part for round_, part in read.items() if part.handle_kind == kind})


def link(read: Mapping[Any, Linked]) -> Iterator[Linked]:
    """Yield devices in groups: devices of a group have the same readable reports. All have one kind of handle."""
    handles, places = join(read.values())
    for which, rows in patterns(places >= 0):
        reports = {
            key: part.content[places[rows, column]] for column, (key, part) in enumerate(read.items()) if which[column]
        }
        yield Linked(next(iter(read.values())).handle_kind, handles[rows], reports)


def follow(observation: Observation, queries: Iterable[int] | None = None) -> list[Linked]:
    """Return the devices that the coalition follows from query to query, grouped by the reports that it reads.

    A device is followed if its reports are stored under its own number, if the network links its pseudonyms to it, or
    if there is no other vehicle that is not corrupted.

    Parameters
    ----------
    observation
        What the coalition observed.
    queries
        Their numbers; by default all that are observed.

    Returns
    -------
    list of Linked
        The keys of `reports` are pairs of a query and a round, in order; a device has reports of one or more queries.
    """
    rounds = range(1, observation.mechanism.rounds + 1)
    keys = [(query, round_) for query in sorted(queries or observation.queries) for round_ in rounds]
    read = {key: reports for key in keys if (reports := read_round(observation, *key)) is not None}
    followed = {key: reports for key, reports in read.items() if reports.handle_kind == "device"}
    if followed:
        return list(link(followed))
    alone = {
        (query, round_): reports.content
        for (query, round_), reports in read.items()
        if observation.last_vehicle and observation.unknown_devices(query) == 1 and len(reports.content) == 1
    }
    return [Linked("none", None, alone)] if alone else []


def join(read: Collection[Linked]) -> tuple[IntArray, IntArray]:
    """Return the handles of all reports, ascending, and the position of each in each part: (n, parts), −1 if absent."""
    lists = [np.asarray(part.handles) for part in read]
    union = np.unique(np.concatenate(lists))
    places = np.full((len(union), len(lists)), -1, dtype=np.int64)
    for column, handles in enumerate(lists):
        places[np.searchsorted(union, handles), column] = np.arange(len(handles))
    return union, places


def patterns(present: Any) -> Iterator[tuple[tuple[Any, ...], IntArray]]:
    """Yield each distinct row of an (n, k) array, and the numbers of the rows equal to it."""
    if not len(present):
        return
    distinct, of = np.unique(present, axis=0, return_inverse=True)
    for number, row in enumerate(distinct):
        yield tuple(row.tolist()), np.flatnonzero(of.reshape(-1) == number)


def _with_handles(observation: Observation, entry: StoredEntries) -> Linked:
    """Return a party's entries, under device numbers if the network knows the devices of their connections."""
    if entry.handle_kind == "query" and entry.connections is not None:
        for other in observation.of_round(entry.query, entry.round):
            if other.handle_kind == "device" and other.content_kind == "sealed" and other.connections is not None:
                order = np.argsort(other.connections)
                places = order[np.searchsorted(other.connections, entry.connections, sorter=order)]
                return Linked("device", np.asarray(other.handles)[places], {entry.round: entry.content})
    return Linked(entry.handle_kind, entry.handles, {entry.round: entry.content})


def _joined(observation: Observation, named: Sequence[Linked]) -> Linked:
    """Return the entries of several parties, each handle once; of two kinds of handles, only device numbers."""
    kind = "device" if any(part.handle_kind == "device" for part in named) else named[0].handle_kind
    alike = [part for part in named if part.handle_kind == kind]
    if len(alike) == 1:
        return alike[0]
    handles, places = join(alike)
    first = (places >= 0).argmax(axis=1)
    encodings = [observation.mechanism.encode(part.content) for part in alike]
    rows = [encodings[column][row[column]] for column, row in zip(first.tolist(), places, strict=True)]
    content = np.stack(rows) if rows else encodings[0]
    return Linked(kind, handles, {named[0].rounds[0]: content})


def _joined_shares(observation: Observation, parts: Sequence[StoredEntries]) -> Linked:
    """Return what the shares stored under the same handles join to: of each report, the first that are needed."""
    named = [_with_handles(observation, part) for part in parts]
    handles, places = join(named)
    sharing = next(part.sharing for part in parts if part.sharing is not None)
    servers = np.array([part.server for part in parts])
    needed = min(sharing.needed, len(parts))
    enough = np.flatnonzero((places >= 0).sum(axis=1) >= needed)
    first = np.argsort(places[enough] < 0, axis=1, kind="stable")[:, :needed]
    encodings = np.empty((len(enough), *named[0].content.shape[1:]), dtype=np.int64)
    for columns, rows in patterns(first):
        shares = np.stack([named[column].content[places[enough[rows], column]] for column in columns])
        encodings[rows] = sharing.join(shares, servers[list(columns)])
    return Linked(named[0].handle_kind, handles[enough], {parts[0].round: encodings})


def _without_own(observation: Observation, query: int, read: Linked) -> Linked:
    """Return the reports without corrupted vehicles' reports."""
    sent = observation.own_of(query)
    if sent is None or read.handles is None:
        return read
    others = np.flatnonzero(~np.isin(read.handles, sent.devices if read.handle_kind == "device" else sent.pseudonyms))
    return read.among(others)


def _listed(observation: Observation, plain: Sequence[StoredEntries]) -> Linked:
    """Return the reports of several parties' lists without handles; leave out corrupted vehicles' reports."""
    # A mixer holds all reports that the server's list has, and some that it did not forward. Once the server's key has
    # decrypted them (`sealed_to` names it still), the server's own list adds nothing.
    forwarded = {entry.sealed_to for entry in plain}
    lists = [_subtracted(observation, entry) for entry in plain if entry.party not in forwarded]
    if len(lists) == 1:
        return lists[0]
    encodings = np.concatenate([observation.mechanism.encode(part.content) for part in lists])
    return Linked("none", None, {plain[0].round: encodings})


def _subtracted(observation: Observation, listed: StoredEntries) -> Linked:
    """Return a list of reports without handles, without those that corrupted vehicles sent."""
    corrupted, reports = observation.own_of(listed.query), listed.content
    if corrupted is None or reports is None:
        return Linked("none", None, {listed.round: reports})
    mechanism, row = observation.mechanism, listed.round - 1
    sent = corrupted.reports[row][np.flatnonzero(corrupted.arrived[listed.party][row])]
    left_out = Counter(encoding.tobytes() for encoding in mechanism.encode(sent))
    others = []
    for place, encoding in enumerate(mechanism.encode(reports)):
        key = encoding.tobytes()
        if left_out[key]:
            left_out[key] -= 1
        else:
            others.append(place)
    return Linked("none", None, {listed.round: reports[np.array(others, dtype=np.int64)]})


def _last_encoding(observation: Observation, query: int, round_: int) -> Linked | None:
    """Return the encoding of the only counted report that is not a corrupted vehicle's; None if there is not just one.

    It is the published sums minus the reports of corrupted vehicles.
    """
    released = observation.released_of(query)
    if released is None or released.counts is None:
        return None
    tally, devices = observation.own_tally(query, round_)
    if observation.unknown_devices(query) != 1 or released.counted[round_ - 1] - devices != 1:
        return None
    return Linked("none", None, {round_: (released.counts[round_ - 1] - tally)[np.newaxis]})


def _named_alike(read: dict[int, Linked]) -> dict[int, Linked]:
    """Give the only report without a handle the handle under which the same device's other reports are read."""
    names = [part for part in read.values() if part.handles is not None and len(part.handles) == 1]
    if not names:
        return read
    kind, handles = names[0].handle_kind, names[0].handles
    return {
        round_: replace(part, handle_kind=kind, handles=handles)
        if part.handles is None and len(part.content) == 1
        else part
        for round_, part in read.items()
    }

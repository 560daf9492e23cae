"""Readable reports: the reports that a coalition can read, and which of them are of one device."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.aggregation.transcript import HandleKind, IntArray
from simulator.attacks.observation import Observation, StoredView


@dataclass(frozen=True, eq=False)
class Readable:
    """Reports of one round that the coalition can read, without those of corrupted vehicles.

    Parameters
    ----------
    handle_kind, handles
        (n,) int64, handles of the devices; None if the reports cannot be linked to devices.
    content
        n plain reports, or (n, *tally_shape) int64 encodings.
    """

    handle_kind: HandleKind
    handles: IntArray | None
    content: Any


@dataclass(frozen=True, eq=False)
class Linked:
    """Linked reports of the devices of which the same rounds are read.

    Parameters
    ----------
    rounds
        These rounds, ascending.
    handle_kind, handles
        (n,) int64; None for the only device that is not corrupted, if no handle identifies it.
    reports
        One entry per round; equal rows of all entries are of one device.
    """

    rounds: tuple[int, ...]
    handle_kind: HandleKind
    handles: IntArray | None
    reports: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.reports[0])


def read_round(observation: Observation, query: int, round_: int, *, partial: bool = False) -> Readable | None:
    """Return the reports of a round that the coalition can read; None if it can read none.

    A report is read if a member stores it plain, or stores it encrypted and another member has the key; or if the
    coalition holds all of its shares, by adding them up modulo 2⁶⁴. It is read without its device if it is in a list
    without handles, or if it is the only report in the published sums besides those of corrupted vehicles.

    Parameters
    ----------
    observation
        What the coalition observed.
    query, round_
        From 1.
    partial
        Whether to add up shares even if some are missing, and to treat the sum as an encoding.
    """
    seen = observation.of_round(query, round_)
    plain = [entry for entry in seen if entry.content_kind == "reports"]
    named = [_name(observation, entry) for entry in plain if entry.handles is not None]
    if named:
        return _without_own(observation, query, _joined(observation, named))
    parts = [entry for entry in seen if entry.content_kind == "shares"]
    if parts and len(parts) == parts[0].parts:
        return _without_own(observation, query, _added(observation, parts))
    if plain:
        return _listed(observation, plain)
    last = _last_encoding(observation, query, round_)
    if last is None and parts and partial:
        return _without_own(observation, query, _added(observation, parts))
    return last


def link_rounds_of(
    observation: Observation, query: int, rounds: Sequence[int], *, partial: bool = False
) -> Iterator[Linked]:
    """Yield the devices of which any of these rounds' reports is read, grouped by the rounds that are read.

    Within a query reports are linked by any kind of handle. If only one device is not corrupted, the reports left over
    are its own.
    """
    read = {
        round_: one
        for round_ in sorted(rounds)
        if (one := read_round(observation, query, round_, partial=partial)) is not None
    }
    if observation.unknown_devices(query) == 1:
        read = _named_alike(read)
        alone = {round_: one.content for round_, one in read.items() if one.handles is None and len(one.content) == 1}
        if alone:
            yield Linked(tuple(alone), "none", None, tuple(alone.values()))
    for kind in sorted({one.handle_kind for one in read.values() if one.handles is not None}):
        of_kind = {round_: one for round_, one in read.items() if one.handle_kind == kind}
        handles, places = join([one.handles for one in of_kind.values()])
        seen_in = list(of_kind)
        for which, rows in patterns(places >= 0):
            yield Linked(
                tuple(round_ for round_, there in zip(seen_in, which, strict=True) if there),
                kind,
                handles[rows],
                tuple(
                    of_kind[round_].content[places[rows, column]]
                    for column, round_ in enumerate(seen_in)
                    if which[column]
                ),
            )


def join(lists: Sequence[IntArray | None]) -> tuple[IntArray, IntArray]:
    """Return all handles of some lists, ascending, and the position of each in each list: (n, lists), −1 if absent."""
    known = [handles for handles in lists if handles is not None]
    union = np.unique(np.concatenate(known)) if known else np.empty(0, dtype=np.int64)
    places = np.full((len(union), len(known)), -1, dtype=np.int64)
    for column, handles in enumerate(known):
        places[np.searchsorted(union, handles), column] = np.arange(len(handles))
    return union, places


def patterns(there: Any) -> Iterator[tuple[tuple[bool, ...], IntArray]]:
    """Yield each distinct row of an (n, k) mask, and the numbers of the rows equal to it."""
    if not len(there):
        return
    alike, of = np.unique(there, axis=0, return_inverse=True)
    for number, row in enumerate(alike):
        yield tuple(row.tolist()), np.flatnonzero(of.reshape(-1) == number)


def own_tally(observation: Observation, query: int, round_: int) -> Any:
    """Return the tally and the number of the corrupted vehicles' counted reports of a round; 0 and 0 if none."""
    own = observation.own_of(query)
    if own is None:
        return 0, 0
    counted = own.counted[round_ - 1]
    tally = observation.mechanism.tally(own.reports[round_ - 1], where=counted)
    return tally, int(np.count_nonzero(counted))


def _name(observation: Observation, entry: StoredView) -> Readable:
    """Return a party's entries, under device numbers if the network knows the devices of their connections."""
    if entry.handle_kind == "query" and entry.connections is not None:
        for other in observation.of_round(entry.query, entry.round):
            if other.handle_kind == "device" and other.content_kind == "sealed" and other.connections is not None:
                order = np.argsort(other.connections)
                places = order[np.searchsorted(other.connections, entry.connections, sorter=order)]
                return Readable("device", np.asarray(other.handles)[places], entry.content)
    return Readable(entry.handle_kind, entry.handles, entry.content)


def _joined(observation: Observation, named: Sequence[Readable]) -> Readable:
    """Return the entries of several parties, each handle once; of two kinds of handles, only device numbers."""
    kind = min(one.handle_kind for one in named)
    alike = [one for one in named if one.handle_kind == kind]
    if len(alike) == 1:
        return alike[0]
    handles, places = join([one.handles for one in alike])
    first = (places >= 0).argmax(axis=1)
    encodings = [observation.mechanism.encode(one.content) for one in alike]
    content = np.stack([encodings[column][row[column]] for column, row in zip(first.tolist(), places, strict=True)])
    return Readable(kind, handles, content)


def _added(observation: Observation, parts: Sequence[StoredView]) -> Readable:
    """Return the sums of the shares stored under the same handles, modulo 2⁶⁴, as signed numbers."""
    named = [_name(observation, part) for part in parts]
    handles, places = join([one.handles for one in named])
    in_all = np.flatnonzero((places >= 0).all(axis=1))
    total = sum(one.content[places[in_all, column]] for column, one in enumerate(named))
    encodings = np.ascontiguousarray(total, dtype=np.uint64).view(np.int64)
    return Readable(named[0].handle_kind, handles[in_all], encodings)


def _without_own(observation: Observation, query: int, read: Readable) -> Readable:
    """Return the reports without those of corrupted vehicles."""
    own = observation.own_of(query)
    if own is None or read.handles is None:
        return read
    others = np.flatnonzero(~np.isin(read.handles, own.devices if read.handle_kind == "device" else own.pseudonyms))
    return Readable(read.handle_kind, read.handles[others], read.content[others])


def _listed(observation: Observation, plain: Sequence[StoredView]) -> Readable:
    """Return the reports of several parties' lists without handles, without those of corrupted vehicles."""
    # The reports that a mixer holds encrypted to a server include all of that server's list.
    forwarded = {entry.sealed_to for entry in plain}
    lists = [_subtracted(observation, entry) for entry in plain if entry.party not in forwarded]
    if len(lists) == 1:
        return lists[0]
    return Readable("none", None, np.concatenate([observation.mechanism.encode(one.content) for one in lists]))


def _subtracted(observation: Observation, listed: StoredView) -> Readable:
    """Return a list of reports without handles, without those that corrupted vehicles sent."""
    own = observation.own_of(listed.query)
    if own is None:
        return Readable("none", None, listed.content)
    mechanism, row = observation.mechanism, listed.round - 1
    sent = own.reports[row][np.flatnonzero(own.arrived[listed.party][row])]
    left_out = Counter(encoding.tobytes() for encoding in mechanism.encode(sent))
    others = []
    for place, encoding in enumerate(mechanism.encode(listed.content)):
        key = encoding.tobytes()
        if left_out[key]:
            left_out[key] -= 1
        else:
            others.append(place)
    return Readable("none", None, listed.content[np.array(others, dtype=np.int64)])


def _last_encoding(observation: Observation, query: int, round_: int) -> Readable | None:
    """Return the encoding of the only counted report that is not a corrupted vehicle's; None if there is not just one.

    It is the published sums minus the reports of corrupted vehicles.
    """
    released = observation.released_of(query)
    if released is None or released.counts is None or observation.own_of(query) is None:
        return None
    tally, devices = own_tally(observation, query, round_)
    if observation.unknown_devices(query) != 1 or released.counted[round_ - 1] - devices != 1:
        return None
    return Readable("none", None, (released.counts[round_ - 1] - tally)[np.newaxis])


def _named_alike(read: dict[int, Readable]) -> dict[int, Readable]:
    """Give the only report without a handle the handle under which the same device's other reports are read."""
    names = [one for one in read.values() if one.handles is not None and len(one.handles) == 1]
    if not names:
        return read
    kind, handles = names[0].handle_kind, names[0].handles
    return {
        round_: Readable(kind, handles, one.content) if one.handles is None and len(one.content) == 1 else one
        for round_, one in read.items()
    }

"""Evidence: the reports a coalition can read, and which of them are one device's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.aggregation.transcript import HandleKind, IntArray
from simulator.attacks.observation import Observation, Seen


@dataclass(frozen=True, eq=False)
class Readable:
    """Reports of one round that the coalition can read.

    Parameters
    ----------
    handle_kind, handles
        (n,) int64, whose they are; None where nothing tells.
    content
        n plain reports, or (n, *tally_shape) int64 encodings.
    """

    handle_kind: HandleKind
    handles: IntArray | None
    content: Any


@dataclass(frozen=True, eq=False)
class Linked:
    """Devices of which the same rounds' reports are read.

    Parameters
    ----------
    rounds
        Which, ascending.
    handle_kind, handles
        (n,) int64.
    reports
        One entry a round, rows of all belonging together.
    """

    rounds: tuple[int, ...]
    handle_kind: HandleKind
    handles: IntArray
    reports: tuple[Any, ...]


def read_round(observation: Observation, query: int, round_: int, *, partial: bool = False) -> Readable | None:
    """Return the reports of a round as far as the coalition can read them; None if it cannot.

    A report is read where it is stored plain; where all servers' shares of it are there, by adding them up modulo
    2⁶⁴; and where both a mixer's list of senders and the list it sent on are there, with its sender.

    Parameters
    ----------
    observation
        What was seen.
    query, round_
        From 1.
    partial
        Whether to add up shares even if some are missing, and to take the sum for an encoding.
    """
    seen = observation.of_round(query, round_)
    plain = [entry for entry in seen if entry.content_kind == "reports"]
    for entry in plain:
        if entry.handles is not None:
            return Readable(entry.handle_kind, entry.handles, entry.content)
    if plain:
        return _unmixed(plain[0], seen)
    parts = [entry for entry in seen if entry.content_kind == "shares"]
    if not parts or (len(parts) < observation.servers and not partial):
        return None
    return _added(parts)


def link_rounds_of(
    observation: Observation, query: int, rounds: Sequence[int], *, partial: bool = False
) -> Iterator[Linked]:
    """Yield devices by which of these rounds' reports are read; a device of which none is read comes in none.

    Within a query reports are joined by any handle.
    """
    found = {round_: read_round(observation, query, round_, partial=partial) for round_ in sorted(rounds)}
    read = {round_: one for round_, one in found.items() if one is not None and one.handles is not None}
    kinds = {one.handle_kind for one in read.values()}
    for kind in sorted(kinds):
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
    """Return all handles of some lists, ascending, and where each is in each list: (n, lists), −1 where it is not."""
    known = [handles for handles in lists if handles is not None]
    union = np.unique(np.concatenate(known)) if known else np.empty(0, dtype=np.int64)
    places = np.full((len(union), len(known)), -1, dtype=np.int64)
    for column, handles in enumerate(known):
        places[np.searchsorted(union, handles), column] = np.arange(len(handles))
    return union, places


def patterns(there: Any) -> Iterator[tuple[tuple[bool, ...], IntArray]]:
    """Yield each different row of an (n, k) mask, and the rows that are alike."""
    if not len(there):
        return
    alike, of = np.unique(there, axis=0, return_inverse=True)
    for number, row in enumerate(alike):
        yield tuple(row.tolist()), np.flatnonzero(of.reshape(-1) == number)


def _unmixed(listed: Seen, seen: Sequence[Seen]) -> Readable:
    """Return a list of reports without handles, with their senders if the mixer is there to name them."""
    for entry in seen:
        if entry.places is not None and entry.handles is not None:
            senders = np.empty_like(entry.handles)
            senders[entry.places] = entry.handles
            return Readable(entry.handle_kind, senders, listed.content)
    return Readable("none", None, listed.content)


def _added(parts: Sequence[Seen]) -> Readable:
    """Return what the shares filed under the same handles add up to, modulo 2⁶⁴, read as signed numbers."""
    handles, places = join([part.handles for part in parts])
    in_all = np.flatnonzero((places >= 0).all(axis=1))
    total = sum(part.content[places[in_all, column]] for column, part in enumerate(parts))
    encodings = np.ascontiguousarray(total, dtype=np.uint64).view(np.int64)
    return Readable(parts[0].handle_kind, handles[in_all], encodings)

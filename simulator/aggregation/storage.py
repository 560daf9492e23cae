"""Storage of reports under handles, common to all deployments, and the handles that coalitions can read."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from simulator.aggregation.accumulators import PSEUDONYM_NBYTES
from simulator.aggregation.deployment import Deployment, Handles, Party, RecordedMessages
from simulator.aggregation.transcript import NETWORK, Coalition, ContentKind, HandleKind, IntArray, StoredEntries

DEVICE_NBYTES = 8
"""Bytes of a device's number as stored. It is not sent: the connection identifies the device."""
READ_PLAIN = (
    "Robust changes nothing here: servers read plain reports, so a report is one of the mechanism's outputs or none; a "
    "lie among those outputs no check can find."
)
OPEN_CHANNEL = (
    "A one-time pseudonym hides a device only from parties that cannot see over which connection it sends: whoever "
    "observes the network, together with a server, follows it from query to query, which channel.anonymous prevents."
)
ANONYMOUS_CHANNEL = "An anonymous channel is assumed; how it is built, what it costs and its delays are not simulated."
NAMED = "Reports name their device, so an anonymous channel hides nothing here."


def check_coalition(coalition: Iterable[str], deployment: Deployment, mechanism: LocalMechanism) -> Coalition:
    """Return the coalition if its members are parties of the deployment; raise ParameterError otherwise."""
    return Coalition.of(coalition).check_within(deployment.parties(mechanism))


def check_handles(handles: str) -> None:
    """Raise ParameterError if the kind of handle is unknown."""
    if handles not in {"device", "query"}:
        raise ParameterError("handles", "must be 'device' or 'query'", handles)


def channel_notes(handles: HandleKind, *, anonymous: bool) -> tuple[str, ...]:
    """Return the assumption about the channel, as a note of a deployment's cost."""
    if handles == "device":
        return (NAMED,) if anonymous else ()
    return (ANONYMOUS_CHANNEL,) if anonymous else (OPEN_CHANNEL,)


def pseudonym_nbytes(kind: Handles) -> int:
    """Return the bytes that a pseudonym adds to a report; none where the connection identifies the device."""
    return PSEUDONYM_NBYTES if kind == "query" else 0


def handle_nbytes(kind: Handles) -> int:
    """Return the bytes of a handle as stored."""
    return PSEUDONYM_NBYTES if kind == "query" else DEVICE_NBYTES


def identified_by(kind: Handles, coalition: Coalition, *, anonymous: bool) -> Handles:
    """Return the kind of handle that a coalition can follow; the network knows the device behind a pseudonym."""
    return "device" if coalition.network and not anonymous else kind


def linked_queries(kind: Handles, queries: int) -> int:
    """Return the number of queries over which a device can be followed by its handle."""
    return queries if kind == "device" else 1


def followed(kind: Handles) -> str:
    """Return the words that state how far a device can be followed by its handle."""
    if kind == "device":
        return "and which device it is, from query to query"
    return "tied together within a query by its pseudonym, not from query to query"


def counted_in(recorded: RecordedMessages, *, paired: bool = False) -> Any:
    """Return which reports were counted, (rounds, n) bool.

    These are the reports received in time; if paired, only those of devices received in time in every round.
    """
    return recorded.in_time & recorded.in_time.all(axis=0) if paired else recorded.in_time


def file_round(
    recorded: RecordedMessages,
    party: Party,
    round_: int,
    handle_kind: HandleKind,
    content: Callable[[IntArray], Any],
    *,
    content_kind: ContentKind = "reports",
    paired: bool = False,
    anonymous: bool = False,
    parts: int = 1,
    sealed_to: str = "",
    rng: np.random.Generator | None = None,
) -> StoredEntries:
    """Return the entries that a party stored of one round: one per report that reached it, in time or late.

    Parameters
    ----------
    recorded
        Messages that devices sent.
    party
        The party that stores the entries.
    round_
        From 1.
    handle_kind
        Kind of handle under which entries are stored and by which they are sorted; without handles the order is drawn.
    content
        Function from the positions of devices in `recorded` to the contents stored of them.
    content_kind, parts, sealed_to
        As in `StoredEntries`.
    paired
        Whether only devices received in every round are counted.
    anonymous
        Whether the party cannot see over which connection an entry came.
    rng
        Generator of the order of entries without handles.
    """
    arrived_s = recorded.arrived_s[party][round_ - 1]
    places = np.flatnonzero(np.isfinite(arrived_s))
    handles = {"device": recorded.devices, "query": recorded.pseudonyms, "none": None}[handle_kind]
    if handles is None:
        places = places if rng is None else rng.permutation(places)
    else:
        places = places[np.argsort(handles[places])]
    return StoredEntries(
        recorded.query,
        round_,
        handle_kind,
        None if handles is None else handles[places],
        content(places),
        content_kind,
        arrived_s[places],
        counted_in(recorded, paired=paired)[round_ - 1][places],
        None if anonymous else recorded.connections[round_ - 1][places],
        parts,
        sealed_to,
    )


def file_network(
    recorded: RecordedMessages, *, paired: bool = False, anonymous: bool = False
) -> dict[Party, list[StoredEntries]]:
    """Return the entries of an observer of the network: which device sent when, and over which connection."""
    rounds = range(1, len(recorded.reports) + 1)
    return {
        NETWORK: [
            file_round(
                recorded,
                NETWORK,
                round_,
                "device",
                lambda places: None,  # noqa: ARG005 - contents are encrypted on the way
                content_kind="sealed",
                paired=paired,
                anonymous=anonymous,
            )
            for round_ in rounds
        ]
    }


def says_nothing(coalition: Coalition) -> str:
    """Return the words that state what parties learn that can read no report."""
    parts = []
    if coalition.network or coalition.mixer:
        parts.append("which devices sent something in which round, and not what")
    if coalition.vehicles:
        parts.append("the corrupted vehicles' own reports")
    return f"Only {' and '.join(parts)}; about another device nothing."

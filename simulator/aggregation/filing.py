"""Filing: what every deployment does alike with handles, reports and coalitions."""

from collections.abc import Iterable, Iterator

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError
from simulator.aggregation.coalition import NETWORK, Coalition
from simulator.aggregation.deployment import Deployment, Handles, Party, Recorded
from simulator.aggregation.pairing import PSEUDONYM_NBYTES, draw_pseudonyms
from simulator.aggregation.transcript import Filed, IntArray

DEVICE_NBYTES = 8
"""A device's number as stored. It is not sent: it comes with the connection."""
READ_PLAIN = (
    "Robust changes nothing here: servers read plain reports, so a report is one of the mechanism's outputs or none; a "
    "lie among those outputs no check can find."
)
ONE_TIME = (
    "A one-time pseudonym hides a device only from who does not see whose connection it comes over: an anonymous "
    "channel is assumed, and neither simulated nor counted."
)


def check_coalition(coalition: Iterable[str], deployment: Deployment, mechanism: LocalMechanism) -> Coalition:
    """Return the coalition, if its members are parties of the deployment."""
    return Coalition.of(coalition).check_within(deployment.parties(mechanism))


def check_handles(handles: str) -> None:
    """Refuse a kind of handle there is not."""
    if handles not in {"device", "query"}:
        raise ParameterError("handles", "must be 'device' or 'query'", handles)


def pseudonym_nbytes(kind: Handles) -> int:
    """Return the bytes a device adds to a report to be told from others: none where the connection says who it is."""
    return PSEUDONYM_NBYTES if kind == "query" else 0


def handle_nbytes(kind: Handles) -> int:
    """Return the bytes of a handle as stored."""
    return PSEUDONYM_NBYTES if kind == "query" else DEVICE_NBYTES


def linked_queries(kind: Handles, queries: int) -> int:
    """Return over how many of the queries a device can be followed by its handle."""
    return queries if kind == "device" else 1


def followed(kind: Handles) -> str:
    """Return in words how far a handle follows a device."""
    if kind == "device":
        return "and which device it is, from query to query"
    return "tied together within a query by its pseudonym, not from query to query"


def handles_of(recorded: Recorded, kind: Handles, *, rng: np.random.Generator) -> IntArray:
    """Return every device's handle in one query, (n,) int64: its number, or a fresh pseudonym."""
    return recorded.devices if kind == "device" else draw_pseudonyms(len(recorded.devices), rng=rng)


def heard_in_order(recorded: Recorded, handles: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each round, from 1, and the places of the devices heard in it, in the order of their handles."""
    order = np.argsort(handles)
    for round_, heard in enumerate(recorded.heard, start=1):
        yield round_, order[heard[order]]


def file_reports(recorded: Recorded, kind: Handles, *, rng: np.random.Generator) -> list[Filed]:
    """Return plain reports under handles, one entry a round."""
    handles = handles_of(recorded, kind, rng=rng)
    return [
        Filed(recorded.query, round_, kind, handles[places], recorded.reports[round_ - 1][places], "reports")
        for round_, places in heard_in_order(recorded, handles)
    ]


def file_sealed(recorded: Recorded) -> dict[Party, list[Filed]]:
    """Return what an eavesdropper on the network sees: that a device sent something in a round, not what."""
    sealed = [
        Filed(recorded.query, round_, "device", recorded.devices[places], None, "sealed")
        for round_, places in heard_in_order(recorded, recorded.devices)
    ]
    return {NETWORK: sealed}


def says_nothing(coalition: Coalition) -> str:
    """Return what parties learn that hold no report they can read."""
    parts = []
    if coalition.network or coalition.mixer:
        parts.append("which devices sent something in which round, and not what")
    if coalition.vehicles:
        parts.append("the corrupted vehicles' own reports")
    return f"Only {' and '.join(parts)}; about another device nothing."

"""Deployment `shuffled`: a mixer removes the senders from encrypted reports and forwards these in random order."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.privacy import LinkedReports, ReleasedCounts, Shuffled, View
from simulator.aggregation.accumulators import PlainSums
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost, Deployment, Party, RecordedMessages
from simulator.aggregation.round_statistics import report_nbytes
from simulator.aggregation.storage import (
    ANONYMOUS_CHANNEL,
    DEVICE_NBYTES,
    READ_PLAIN,
    check_coalition,
    file_network,
    file_round,
    says_nothing,
)
from simulator.aggregation.transcript import MIXER, NETWORK, StoredEntries

ENVELOPE_NBYTES = 48
"""Bytes that encrypting a report to the server adds: HPKE in base mode with X25519 and an AEAD tag, 32 + 16 (RFC
9180)."""


@dataclass(frozen=True)
class ShuffledReports(Deployment):
    """Deployment in which devices send encrypted reports to a mixer, which forwards them in random order.

    Reports are encrypted ("sealed") to the server. The mixer knows which device sent a sealed report and cannot decrypt
    it; it stores every sealed report that reaches it, and forwards those that reach it in time. The server stores plain
    reports without handles, each round in an independent random order. Mixer and server together can decrypt every
    report that the mixer received, whether or not it was forwarded and counted, and know which device sent it. Over an
    anonymous channel the mixer does not know the senders, and the two together cannot link reports.

    Parameters
    ----------
    robust
        Has no effect: a plain report is one of the mechanism's outputs, or it is no report.
    anonymous
        Whether devices send over an anonymous channel.
    """

    robust: bool = False
    anonymous: bool = False
    kind: ClassVar[str] = "shuffled"

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for any
        """Return the server, the mixer and the network."""
        return ("server:1", MIXER, NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for any
        """Return one message, to the mixer and from there to the server."""
        return ((MIXER, "server:1"),)

    def aggregator(
        self,
        mechanism: LocalMechanism,
        *,
        devices: int,  # noqa: ARG002 - its sums are the same for any number
        rng: np.random.Generator,  # noqa: ARG002 - sums hang on no order
    ) -> Aggregator:
        """Return the aggregator of one query."""
        return Aggregator(mechanism, sums=PlainSums(mechanism), bytes_up=self.cost(mechanism).bytes_up)

    def file(
        self,
        recorded: RecordedMessages,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are kept as they are
        *,
        rng: np.random.Generator,
    ) -> dict[Party, list[StoredEntries]]:
        """Return the entries of the mixer, senders without contents, and of the server, contents without senders."""
        mixer, server = [], []
        for round_, reports in enumerate(recorded.reports, start=1):
            mixer.append(
                file_round(
                    recorded,
                    MIXER,
                    round_,
                    "none" if self.anonymous else "device",
                    reports.__getitem__,
                    content_kind="sealed",
                    anonymous=self.anonymous,
                    sealed_to="server:1",
                    rng=rng,
                )
            )
            server.append(
                file_round(recorded, "server:1", round_, "none", reports.__getitem__, anonymous=True, rng=rng)
            )
        return {"server:1": server, MIXER: mixer, **file_network(recorded, anonymous=self.anonymous)}

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one sealed report."""
        nbytes = report_nbytes(mechanism)
        sealed = nbytes + ENVELOPE_NBYTES
        return Cost(
            bytes_up=sealed,
            bytes_down=QUESTION_NBYTES,
            stored_bytes={"server:1": nbytes, MIXER: sealed + DEVICE_NBYTES},
            between_servers=sealed,
            notes=(
                "Sealing adds 48 bytes to a report: HPKE with X25519 (RFC 9180); nothing is encrypted here.",
                *((READ_PLAIN,) if self.robust else ()),
                *((ANONYMOUS_CHANNEL,) if self.anonymous else ()),
            ),
        )

    def view(
        self,
        coalition: Iterable[str],
        mechanism: LocalMechanism,
        *,
        devices: int = 1,
        crowd: int = 1,
        queries: int = 1,
    ) -> View | None:
        """Return the view of shuffled reports (one round) or of the rounds' counts; with the mixer, of linked reports.

        Reports without handles in random order reveal their counts and nothing else.
        """
        members = check_coalition(coalition, self, mechanism)
        if not members.servers:
            return None
        if members.mixer and not self.anonymous:
            return LinkedReports(queries=queries)
        if mechanism.rounds == 1:
            return Shuffled(1, devices, queries=queries)
        return ReleasedCounts(crowd, queries=queries)

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        members = check_coalition(coalition, self, mechanism)
        if not members.servers:
            return says_nothing(members)
        if members.mixer and not self.anonymous:
            return "Every report as sent, and which device sent it, from query to query: the mixing is undone."
        rounds = "the one round" if mechanism.rounds == 1 else f"each of the {mechanism.rounds} rounds"
        return f"All reports of {rounds}, none tied to a device or to another report: how many said what, no more."

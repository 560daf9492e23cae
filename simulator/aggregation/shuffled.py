"""Deployment `shuffled`: a mixer removes the senders of reports that it cannot read, and mixes them."""

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
"""What sealing a report to the server adds: HPKE in base mode with X25519 and an AEAD tag, 32 + 16 bytes (RFC 9180)."""


@dataclass(frozen=True)
class ShuffledReports(Deployment):
    """Devices seal their reports to the server and send them to a mixer, which forwards them in random order.

    The mixer knows who sent an envelope and cannot open it; it stores every envelope that reaches it, and forwards
    those that reach it in time. The server stores plain reports without handles, each round in an order of its own.
    Mixer and server together open every envelope that the mixer received, whether or not it was forwarded and counted,
    and know who sent it. Over an anonymous channel the mixer does not know who sends, and the two together cannot link
    reports.

    Parameters
    ----------
    robust
        Changes nothing: what the server reads is one of the mechanism's outputs, or it is no report.
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
        """Return one message, to the mixer and on to the server behind it."""
        return ((MIXER, "server:1"),)

    def aggregator(
        self,
        mechanism: LocalMechanism,
        *,
        devices: int,  # noqa: ARG002 - its sums are the same for any number
        rng: np.random.Generator,  # noqa: ARG002 - sums hang on no order
    ) -> Aggregator:
        """Return what hears one query."""
        return Aggregator(mechanism, sums=PlainSums(mechanism), bytes_up=self.cost(mechanism).bytes_up)

    def file(
        self,
        recorded: RecordedMessages,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are kept as they are
        *,
        rng: np.random.Generator,
    ) -> dict[Party, list[StoredEntries]]:
        """Return what mixer and server store: names without reports, and reports without names."""
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
        """Return one sealed report up."""
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
        """Return shuffled reports of the one round, or what the rounds' counts tell, or with the mixer all, linked.

        Reports without handles in random order are their counts and no more.
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

"""Deployments whose servers read plain reports: `trusted`, `per_round` and `shuffled`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report, Shuffled, View
from simulator.aggregation.deployment import DEVICE_NBYTES, QUESTION_NBYTES, Cost, Deployment, Handles
from simulator.aggregation.rounds import report_nbytes
from simulator.aggregation.storage import Party, RecordedMessages
from simulator.aggregation.transcript import MIXER, NETWORK, Coalition, StoredEntries

ENVELOPE_NBYTES = 48
"""Bytes that encrypting a report to the server adds: HPKE in base mode with X25519 and an AEAD tag, 32 + 16 (RFC
9180)."""


@dataclass(frozen=True, kw_only=True)
class Trusted(Deployment):
    """Deployment in which one server reads every report and is trusted to publish only the counts.

    It stores each report, plain, under its device's number, or under a pseudonym that the device draws anew in each
    query.

    Parameters
    ----------
    handles
        "device" or "query".
    paired
        Whether it counts only devices received in every round. It needs no pseudonyms for that.
    """

    handles: Handles = "device"
    paired: bool = False
    kind: ClassVar[str] = "trusted"

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - one server for every mechanism
        """Return the one server, and the network."""
        return ("server:1", NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round and for every mechanism
        """Return one message, to the server."""
        return (("server:1",),)

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of all of a device's reports, linked."""
        return LinkedReports(queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        rounds = "Both reports" if mechanism.rounds == 2 else "Every report"
        return f"{rounds} of each device as sent, {self.followed(members)}."


@dataclass(frozen=True, kw_only=True)
class PerRound(Deployment):
    """Deployment in which server r receives round r of every query and no other round.

    SP 3.1 assumes such a setting: several aggregators, one of which is honest. A server stores each report of its
    round, plain, under a handle that is the same at every server. Servers publish their counts. They cannot pair,
    because comparing handles would link answers.

    Parameters
    ----------
    handles
        "device" or "query".
    """

    handles: Handles = "device"
    kind: ClassVar[str] = "per_round"

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:
        """Return a server for each round, and the network."""
        return (*(f"server:{round_}" for round_ in range(1, mechanism.rounds + 1)), NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for every mechanism
        """Return one message, to the server of the round."""
        return ((f"server:{round_}",),)

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of one round's report, or of all rounds' reports linked.

        For two servers or more the view has the reports of all rounds, even if the coalition sees only some of them.
        """
        if len(members.servers) == 1:
            return Report(min(members.servers), queries=queries)
        return LinkedReports(queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:  # noqa: ARG002 - the same for every mechanism
        """Return what the coalition can compute about one device."""
        *rounds, last = map(str, sorted(members.servers))
        if not rounds:
            return f"Each device's report of round {last} as sent, {self.followed(members)}."
        listed = f"{', '.join(rounds)} and {last}"
        return f"Each device's reports of rounds {listed}, linked to one another, {self.followed(members)}."


@dataclass(frozen=True, kw_only=True)
class ShuffledReports(Deployment):
    """Deployment in which devices send encrypted reports to a mixer, which forwards them in random order.

    Reports are encrypted ("sealed") to the server. The mixer knows which device sent a sealed report and cannot decrypt
    it; it stores every sealed report that reaches it, and forwards those that reach it in time. The server stores plain
    reports without handles, each round in an independent random order. Mixer and server together can decrypt every
    report that the mixer received, whether or not it was forwarded and counted, and know which device sent it. Over an
    anonymous channel the mixer does not know the senders, and the two together cannot link reports.
    """

    kind: ClassVar[str] = "shuffled"

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for every mechanism
        """Return the server, the mixer and the network."""
        return ("server:1", MIXER, NETWORK)

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for every mechanism
        """Return one message, to the mixer and from there to the server."""
        return ((MIXER, "server:1"),)

    def store_round(
        self,
        recorded: RecordedMessages,
        round_: int,
        mechanism: LocalMechanism,  # noqa: ARG002 - reports are stored as sent
        *,
        rng: np.random.Generator,
    ) -> Iterator[StoredEntries]:
        """Yield the entries of the mixer, senders without contents, and of the server, contents without senders."""
        content = recorded.reports[round_ - 1].__getitem__
        yield recorded.stored(
            MIXER,
            round_,
            "none" if self.anonymous else "device",
            content,
            content_kind="sealed",
            anonymous=self.anonymous,
            sealed_to="server:1",
            rng=rng,
        )
        yield recorded.stored("server:1", round_, "none", content, anonymous=True, rng=rng)

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
                *self.plain_notes,
                *self.channel_notes,
            ),
        )

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:
        """Return the view of shuffled reports (one round) or of the rounds' counts; with the mixer, of linked reports.

        Reports of one symbol without handles in random order reveal their counts and nothing else. Reports with an
        answer about each of several cells reveal more: the rounds' reports of a device can be linked by their content.
        """
        of_cells = len(mechanism.tally_shape) > 1 and mechanism.tally_shape[0] > 1
        if (members.mixer and not self.anonymous) or (mechanism.rounds > 1 and of_cells):
            return LinkedReports(queries=queries)
        if mechanism.rounds == 1:
            return Shuffled(1, devices, queries=queries)
        return ReleasedCounts(crowd, queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        if members.mixer and not self.anonymous:
            return "Every report as sent, and which device sent it, from query to query: the mixing has no effect."
        rounds = "the one round" if mechanism.rounds == 1 else f"each of the {mechanism.rounds} rounds"
        return (
            f"All reports of {rounds}, none linked to a device or to another report: only the number of "
            "reports with each value."
        )

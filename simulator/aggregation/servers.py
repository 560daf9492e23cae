"""The kinds of servers: of plain reports (trusted, per_round, shuffled), and of shares (secret_shared and others)."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report, Shares, Shuffled, View
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import DEVICE_NBYTES, Cost, Deployment, Handles
from simulator.aggregation.rounds import report_nbytes
from simulator.aggregation.secret_sharing import (
    MOST_SERVERS,
    SEED_NBYTES,
    WORD_NBYTES,
    AdditiveSharing,
    EncodingRule,
    Prio3Histogram,
    ShareSums,
    ThresholdSharing,
)
from simulator.aggregation.transcript import MIXER, Coalition, Party, RecordedMessages, Sharing, StoredEntries
from simulator.arrays import Mask

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
    server
        Its number, from 1, where it is one of several among which devices are divided.
    accepts
        Which of n reports are counted, (n,) bool; None if all are.
    keeps_arrivals
        As in `Deployment`.
    """

    handles: Handles = "device"
    paired: bool = False
    server: int = 1
    accepts: Callable[[Any], Mask] | None = None
    keeps_arrivals: bool = False
    kind: ClassVar[str] = "trusted"

    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round
        """Return one message, to the server."""
        return ((f"server:{self.server}",),)

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query, which counts the reports that are accepted."""
        aggregator = super().aggregator(mechanism, devices=devices, rng=rng)
        aggregator.accepts = self.accepts
        return aggregator

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

    SP 3.1 assumes such a setting: several aggregators, and one is honest. A server stores each report of its round,
    plain, under a handle that is the same at every server. Servers publish their counts. They cannot pair, because
    comparing handles would link answers.

    Parameters
    ----------
    handles
        "device" or "query".
    """

    handles: Handles = "device"
    kind: ClassVar[str] = "per_round"
    can_pair: ClassVar[bool] = False

    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:
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
    can_pair: ClassVar[bool] = False

    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round
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
            bytes_down=self.question_nbytes,
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


EXACT_WORDS = 2**22
"""Greatest number of words of shares up to which a query's reports are cut one by one, in about 0.2 s. If it is
exceeded, the servers' sums are drawn instead."""


@dataclass(frozen=True, kw_only=True)
class SharingServers(Deployment):
    """Deployment in which devices cut each report into shares, one for each of m servers.

    A share is a part of the report's encoding, and a message of its own. A server stores it under a handle, adds up
    the shares of the counted reports and publishes the sum; the sums of as many servers as are needed give the counts.

    The servers' sums are computed in one of two ways, which have the same distribution: every report is cut and every
    server adds up its shares; or, for many reports, the sums are drawn. Memory is bounded in both cases.

    Parameters
    ----------
    servers
        m, 2…255.
    paired
        Whether shares are stored under a one-time pseudonym per query and only complete devices are counted. At the
        end of a query the servers compare the pseudonyms received in each round, and together drop those not received
        in every round. They learn which pseudonyms were received, but no answer; and the noise of the rounds cancels
        again.
    handles
        Kind of handle under which shares are stored; "query" if they are paired, otherwise by default "device".
    exact_words
        Greatest number of words for which shares are made one by one.

    Raises
    ------
    ParameterError
        If a number is out of range, or shares are to be paired under device numbers.
    """

    servers: int = 2
    handles: Handles | None = None
    paired: bool = False
    exact_words: int = EXACT_WORDS

    def __post_init__(self) -> None:
        """Check the parameters and fill in the handles."""
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        if self.handles is None:
            object.__setattr__(self, "handles", "query" if self.paired else "device")
        super().__post_init__()
        if self.paired and self.handles == "device":
            rule = "must be 'query' where shares are paired under one-time pseudonyms"
            raise ParameterError("handles", rule, self.handles)

    @property
    @abstractmethod
    def sharing(self) -> Sharing:
        """The sharing that cuts reports into shares."""

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether shares are made one by one for the reports of this number of devices."""
        return devices * mechanism.rounds * self.servers * math.prod(mechanism.tally_shape) <= self.exact_words

    def route(self, round_: int) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same in every round
        """Return one message to each server."""
        return tuple((f"server:{server}",) for server in range(1, self.servers + 1))

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query; parameters as of `Deployment.aggregator`."""
        sums = ShareSums(mechanism, self.sharing, exact=self.makes_shares(mechanism, devices), rng=rng)
        noise = self.draw_noise(mechanism, rng=rng)
        return Aggregator(sums, paired=self.paired, bytes_up=self.cost(mechanism).bytes_up, noise=noise)

    def store_round(
        self, recorded: RecordedMessages, round_: int, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> Iterator[StoredEntries]:
        """Yield the entries that each server stores: the shares that reached it, under handles.

        Servers may hold shares of different reports; they count a report if all servers that are needed received its
        share in time. The shares are drawn again, from the same distribution as the shares that were added up; no party
        sees both a report's shares and another party's sum.
        """
        shares = self.sharing.split(mechanism.encode(recorded.reports[round_ - 1]), rng=rng)
        for party, held in zip(self.servers_of(mechanism), shares, strict=True):
            yield recorded.stored(
                party,
                round_,
                self.handles or "none",
                held.__getitem__,
                content_kind="shares",
                anonymous=self.anonymous,
                sharing=self.sharing,
            )

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends each server a share."""
        share, servers = self.share_nbytes(mechanism), self.servers_of(mechanism)
        return Cost(
            bytes_up=len(servers) * (share + self.pseudonym_nbytes),
            bytes_down=self.question_nbytes,
            stored_bytes=dict.fromkeys(servers, share + self.handle_nbytes),
            between_servers=len(servers) * (len(servers) - 1) * self.pseudonym_nbytes if self.paired else 0,
            notes=self.channel_notes,
            bytes_to=dict.fromkeys(servers, share + self.pseudonym_nbytes),
        )

    def share_nbytes(self, mechanism: LocalMechanism) -> int:
        """Return the bytes of the share that each server receives: here a vector of 8-byte words."""
        return WORD_NBYTES * math.prod(mechanism.tally_shape)

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of the shares of k of m servers: it reveals nothing, or if k suffice, the linked reports."""
        colluding = len(members.servers)
        if self.sharing.needed <= colluding < self.servers:
            return LinkedReports(queries=queries)
        return Shares(colluding, self.servers, queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:  # noqa: ARG002 - the same for every mechanism
        """Return what the coalition can compute about one device."""
        colluding, needed = len(members.servers), self.sharing.needed
        if colluding >= needed:
            joined = "by adding up its" if needed == self.servers else f"from any {needed} of its"
            return f"Every report, {joined} {self.servers} shares, {self.followed(members)}."
        received = "pseudonyms were received" if self.followed_by(members) == "query" else "devices were received"
        return (
            f"Only which {received} in which round, and nothing about a report's content: {colluding} of "
            f"{self.servers} shares are uniform whatever it is{', as its class states' if self.rests_on else ''}."
        )


EXACT_SEEDS = 2**13
"""Greatest number of seeds up to which a query's reports are cut one by one, in about 0.2 s. If it is exceeded, the
servers' sums are drawn instead."""


@dataclass(frozen=True, kw_only=True)
class SecretShared(SharingServers):
    """Deployment in which devices cut each report into additive shares modulo 2⁶⁴, one for each of m servers.

    m − 1 of the servers store a share as the seed that was sent, the last one as a vector. The sums of all servers add
    up to the counts. The words that any m − 1 servers hold are uniform whatever the reports are; all m servers
    together hold the reports. A report is lost if any of its shares is.

    Parameters
    ----------
    servers, paired, handles, exact_words
        As of `SharingServers`.
    robust
        Whether devices prove that the vector they share is a valid encoding, and servers reject invalid ones. The
        proof is simulated; see `Prio3Histogram` for the simulation and the cost.
    exact_seeds
        Greatest number of seeds for which shares are made one by one.

    Raises
    ------
    ParameterError
        If a number is out of range, or shares are to be paired under device numbers.
    """

    exact_seeds: int = EXACT_SEEDS
    kind: ClassVar[str] = "secret_shared"

    @property
    def sharing(self) -> AdditiveSharing:
        """The sharing that cuts reports into shares."""
        return AdditiveSharing(self.servers)

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether shares are made one by one for the reports of this number of devices."""
        seeds = devices * mechanism.rounds * (self.servers - 1)
        return super().makes_shares(mechanism, devices) and seeds <= self.exact_seeds

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query.

        Raises
        ------
        ParameterError
            If `robust`, and no range proof can describe honest reports.
        """
        aggregator = super().aggregator(mechanism, devices=devices, rng=rng)
        if self.robust:
            aggregator.accepts = partial(aggregator.sums.valid, holds=EncodingRule.of(mechanism).holds)
        return aggregator

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one vector and m − 1 seeds, or with range proofs Prio3's report."""
        entries, others = math.prod(mechanism.tally_shape), self.servers - 1
        if self.robust:
            proof = Prio3Histogram(entries, self.servers)
            seed, vector, public = proof.helper_share_nbytes, proof.leader_share_nbytes, proof.public_share_nbytes
            between = proof.verifier_share_nbytes
            note = (
                "Range proofs are simulated: the check is made on the plain vector, and costs what Prio3Histogram "
                "publishes (draft-irtf-cfrg-vdaf-20)."
            )
        else:
            seed, vector, public = SEED_NBYTES, WORD_NBYTES * entries, 0
            between = self.pseudonym_nbytes if self.paired else 0
            note = "Seeds are expanded by a generator that is not a cipher; a deployment would use one."
        messages = dict.fromkeys(self.servers_of(mechanism), seed + public)
        messages[f"server:{self.servers}"] = vector + public
        return Cost(
            bytes_up=vector + seed * others + public + self.pseudonym_nbytes,
            bytes_down=self.question_nbytes,
            stored_bytes={party: nbytes + self.handle_nbytes for party, nbytes in messages.items()},
            between_servers=self.servers * others * between,
            notes=(note, *self.channel_notes),
            bytes_to={party: nbytes + self.pseudonym_nbytes for party, nbytes in messages.items()},
        )


@dataclass(frozen=True, kw_only=True)
class ThresholdShared(SharingServers):
    """Deployment in which devices cut each report into m shares, one for each of m servers; any t shares suffice.

    In each round the servers count the reports that reached the t servers with the most messages in time, and these
    publish their sums. So an outage of m − t servers loses no report, and the loss of a single share may lose none.
    Fewer than t servers learn nothing about a report; t or more can read it.

    Parameters
    ----------
    servers, paired, handles, exact_words
        As of `SharingServers`; 3 servers by default.
    threshold
        t, 2…m.

    Raises
    ------
    ParameterError
        If a number is out of range, `robust` is set, or shares are to be paired under device numbers.
    """

    servers: int = 3
    threshold: int = 2
    kind: ClassVar[str] = "threshold_shared"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("threshold", self.threshold, at_least=2, at_most=self.servers)
        if self.robust:
            raise ParameterError("robust", "has no proof for threshold shares", self.robust)

    @property
    def sharing(self) -> ThresholdSharing:
        """The sharing that cuts reports into shares."""
        return ThresholdSharing(self.servers, self.threshold)


@dataclass(frozen=True, kw_only=True)
class OwnSharing(SharingServers):
    """Deployment whose reports are cut into shares by a user's own sharing.

    Parameters
    ----------
    own
        The user's sharing, with what `Sharing` has; it may also have `handles` and `paired`, as of `SharingServers`.
    name
        Name of its kind in the scenario.
    """

    own: Sharing
    name: str

    @property
    def kind(self) -> str:
        """Name of the kind in the scenario."""
        return self.name

    @property
    def sharing(self) -> Sharing:
        """The user's sharing."""
        return self.own

    @property
    def rests_on(self) -> str:
        """The statement of the user's class, which no test proves."""
        needed = self.own.needed
        return (
            f"Rests on what {type(self.own).__name__} states: fewer than {needed} of its shares are uniform, whatever "
            "the report is. `crowdveil check` searches for what contradicts that, and does not prove it."
        )

"""Deployment `secret_shared`: servers add up shares; the counts are known only from the sums of all servers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy import Shares, View
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost, Deployment, Handles
from simulator.aggregation.secret_sharing import (
    MOST_SERVERS,
    SEED_NBYTES,
    WORD_NBYTES,
    AdditiveSharing,
    EncodingRule,
    Prio3Histogram,
    ShareSums,
)
from simulator.aggregation.storage import Party, RecordedMessages
from simulator.aggregation.transcript import NETWORK, Coalition, StoredEntries

EXACT_WORDS = 2**22
EXACT_SEEDS = 2**13
"""Greatest numbers of words of shares and of seeds up to which a query's reports are cut one by one, in about 0.2 s.
If one of the two is exceeded, the servers' sums are drawn instead."""


@dataclass(frozen=True, kw_only=True)
class SecretShared(Deployment):
    """Deployment in which devices cut each report into additive shares modulo 2⁶⁴, one for each of m servers.

    A share is a part of the report's encoding. A server stores it under a handle: m − 1 of the servers as the seed that
    was sent, the last one as a vector. Each server adds up its own shares and publishes the sum; the sums of all
    servers add up to the counts. The words that any m − 1 servers hold are uniform whatever the reports are; all m
    servers together hold the reports.

    The servers' sums are computed in one of two ways, which have the same distribution (a test shows it). Up to
    `exact_words` words and `exact_seeds` seeds in a query, every report is cut and every server adds up its shares.
    Beyond, the sums are drawn: m − 1 of them uniform, and the last as the counts minus these. Memory is bounded in
    both cases.

    Parameters
    ----------
    servers
        m, 2…255.
    paired
        Whether shares are stored under a one-time pseudonym per query and only complete devices are counted. At the
        end of a query the servers compare the pseudonyms received in each round, and together drop those not received
        in every round. They learn which pseudonyms were received, but no answer; and the noise of the rounds cancels
        again.
    robust
        Whether devices prove that the vector they share is a valid encoding, and servers reject invalid ones. The
        proof is simulated; see `Prio3Histogram` for the simulation and the cost.
    handles
        Kind of handle under which shares are stored; "query" if they are paired, otherwise by default "device".
    exact_words, exact_seeds
        Greatest numbers of words and of seeds for which shares are made one by one.

    Raises
    ------
    ParameterError
        If a number is out of range, or shares are to be paired under device numbers.
    """

    servers: int = 2
    handles: Handles | None = None
    paired: bool = False
    exact_words: int = EXACT_WORDS
    exact_seeds: int = EXACT_SEEDS
    kind: ClassVar[str] = "secret_shared"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the handles."""
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        check_integer("exact_words", self.exact_words, at_least=0)
        check_integer("exact_seeds", self.exact_seeds, at_least=0)
        if self.handles is None:
            object.__setattr__(self, "handles", "query" if self.paired else "device")
        super().__post_init__()
        if self.paired and self.handles == "device":
            rule = "must be 'query' where shares are paired under one-time pseudonyms"
            raise ParameterError("handles", rule, self.handles)

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for every mechanism
        """Return the servers and the network."""
        return (*(f"server:{server}" for server in range(1, self.servers + 1)), NETWORK)

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether shares are made one by one for the reports of this number of devices."""
        reports = devices * mechanism.rounds
        words = reports * self.servers * math.prod(mechanism.tally_shape)
        return words <= self.exact_words and reports * (self.servers - 1) <= self.exact_seeds

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for every mechanism
        """Return one message to each server; a report is lost if any of its shares is."""
        return tuple((server,) for server in self.servers_of(mechanism))

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query.

        Raises
        ------
        ParameterError
            If `robust`, and no range proof can describe honest reports.
        """
        exact = self.makes_shares(mechanism, devices)
        return Aggregator(
            ShareSums(mechanism, AdditiveSharing(self.servers), exact=exact, rng=rng),
            paired=self.paired,
            rule=EncodingRule.of(mechanism) if self.robust else None,
            bytes_up=self.cost(mechanism).bytes_up,
        )

    def store_round(
        self, recorded: RecordedMessages, round_: int, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> Iterator[StoredEntries]:
        """Yield the entries that each server stores: the shares that reached it, under handles.

        Servers may hold shares of different reports; they count the reports of which all of them received a share in
        time. The shares are drawn again, from the same distribution as those that were added up; no party sees both a
        report's shares and another party's sum.
        """
        shares = AdditiveSharing(self.servers).split(mechanism.encode(recorded.reports[round_ - 1]), rng=rng)
        for party, held in zip(self.servers_of(mechanism), shares, strict=True):
            yield recorded.stored(
                party,
                round_,
                self.handles or "none",
                held.__getitem__,
                content_kind="shares",
                anonymous=self.anonymous,
                parts=self.servers,
            )

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one vector and m − 1 seeds, or with range proofs Prio3's report."""
        words, others = math.prod(mechanism.tally_shape), self.servers - 1
        if self.robust:
            proof = Prio3Histogram(words, self.servers)
            seed, vector, public = proof.helper_share_nbytes, proof.leader_share_nbytes, proof.public_share_nbytes
            between = proof.verifier_share_nbytes
            note = (
                "Range proofs are simulated: the check is made on the plain vector, and costs what Prio3Histogram "
                "publishes (draft-irtf-cfrg-vdaf-20)."
            )
        else:
            seed, vector, public = SEED_NBYTES, WORD_NBYTES * words, 0
            between = self.pseudonym_nbytes if self.paired else 0
            note = "Seeds are expanded by a generator that is not a cipher; a deployment would use one."
        messages = dict.fromkeys(self.servers_of(mechanism), seed + public)
        messages[f"server:{self.servers}"] = vector + public
        return Cost(
            bytes_up=vector + seed * others + public + self.pseudonym_nbytes,
            bytes_down=QUESTION_NBYTES,
            stored_bytes={party: nbytes + self.handle_nbytes for party, nbytes in messages.items()},
            between_servers=self.servers * others * between,
            notes=(note, *self.channel_notes),
            bytes_to={party: nbytes + self.pseudonym_nbytes for party, nbytes in messages.items()},
        )

    def seen_by(self, members: Coalition, mechanism: LocalMechanism, devices: int, crowd: int, queries: int) -> View:  # noqa: ARG002 - the view does not depend on other devices
        """Return the view of the shares of k of m servers, which reveals the linked reports if k = m, else nothing."""
        return Shares(len(members.servers), self.servers, queries=queries)

    def learned_by(self, members: Coalition, mechanism: LocalMechanism) -> str:  # noqa: ARG002 - the same for every mechanism
        """Return what the coalition can compute about one device."""
        colluding = len(members.servers)
        if colluding == self.servers:
            return f"Every report, by adding up its {self.servers} shares, {self.followed(members)}."
        known = "pseudonyms were received" if self.followed_by(members) == "query" else "devices were received"
        return (
            f"Only which {known} in which round, and nothing about a report's content: {colluding} of {self.servers} "
            "shares are uniform whatever it is."
        )

"""Deployment `secret_shared`: servers add up shares; the counts are known only from the sums of all servers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy import Shares, View
from simulator.aggregation.accumulators import ShareSums
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost, Deployment, Handles, Party, RecordedMessages
from simulator.aggregation.shares import SEED_NBYTES, WORD_NBYTES, AdditiveSharing
from simulator.aggregation.storage import (
    channel_notes,
    check_coalition,
    check_handles,
    file_network,
    file_round,
    followed,
    handle_nbytes,
    identified_by,
    linked_queries,
    pseudonym_nbytes,
    says_nothing,
)
from simulator.aggregation.transcript import NETWORK, StoredEntries
from simulator.aggregation.verifiable_shares import MOST_SERVERS, EncodingRule, Prio3Histogram

EXACT_WORDS = 2**22
EXACT_SEEDS = 2**13
"""Greatest numbers of words of shares and of seeds up to which a query's reports are cut one by one, in about 0.2 s.
Beyond either the servers' sums are drawn."""


@dataclass(frozen=True)
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
        again (papers.md, item 6).
    robust
        Whether devices prove that the vector they share is a valid encoding, and servers reject invalid ones. The
        proof is simulated; see `Prio3Histogram` for the simulation and the cost.
    handles
        Kind of handle under which shares are stored; "query" if they are paired, otherwise by default "device".
    anonymous
        Whether devices send over an anonymous channel.
    exact_words, exact_seeds
        Greatest numbers of words and of seeds for which shares are made one by one.

    Raises
    ------
    ParameterError
        If a number is out of range, or shares are to be paired under device numbers.
    """

    servers: int = 2
    paired: bool = False
    robust: bool = False
    handles: Handles | None = None
    anonymous: bool = False
    exact_words: int = EXACT_WORDS
    exact_seeds: int = EXACT_SEEDS
    kind: ClassVar[str] = "secret_shared"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the handles."""
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        check_integer("exact_words", self.exact_words, at_least=0)
        check_integer("exact_seeds", self.exact_seeds, at_least=0)
        handles: Handles = ("query" if self.paired else "device") if self.handles is None else self.handles
        check_handles(handles)
        if self.paired and handles == "device":
            raise ParameterError(
                "handles", "must be 'query' where shares are paired under one-time pseudonyms", handles
            )
        object.__setattr__(self, "handles", handles)

    def parties(self, mechanism: LocalMechanism) -> tuple[Party, ...]:  # noqa: ARG002 - the same for any
        """Return the servers and the network."""
        return (*(f"server:{server}" for server in range(1, self.servers + 1)), NETWORK)

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether shares are made one by one for the reports of this number of devices."""
        reports = devices * mechanism.rounds
        words = reports * self.servers * math.prod(mechanism.tally_shape)
        return words <= self.exact_words and reports * (self.servers - 1) <= self.exact_seeds

    def route(self, round_: int, mechanism: LocalMechanism) -> tuple[tuple[Party, ...], ...]:  # noqa: ARG002 - the same for any
        """Return one message to each server; a report is lost if any of its shares is."""
        return tuple((f"server:{server}",) for server in range(1, self.servers + 1))

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query.

        Raises
        ------
        ParameterError
            If `robust`, and no range proof can describe honest reports.
        """
        exact = self.makes_shares(mechanism, devices)
        return Aggregator(
            mechanism,
            sums=ShareSums(mechanism, AdditiveSharing(self.servers), exact=exact, rng=rng),
            paired=self.paired,
            rule=EncodingRule.of(mechanism) if self.robust else None,
            bytes_up=self.cost(mechanism).bytes_up,
        )

    def file(
        self, recorded: RecordedMessages, mechanism: LocalMechanism, *, rng: np.random.Generator
    ) -> dict[Party, list[StoredEntries]]:
        """Return the entries that each server stores: the shares that reached it, under handles.

        Servers may hold shares of different reports; they count the reports of which all of them received a share in
        time. The shares are drawn again, from the same distribution as those that were added up; no party sees both a
        report's shares and another party's sum.
        """
        sharing = AdditiveSharing(self.servers)
        filed: dict[Party, list[StoredEntries]] = {f"server:{server}": [] for server in range(1, self.servers + 1)}
        for round_, reports in enumerate(recorded.reports, start=1):
            shares = sharing.split(mechanism.encode(reports), rng=rng)
            for (party, entries), held in zip(filed.items(), shares, strict=True):
                entries.append(
                    file_round(
                        recorded,
                        party,
                        round_,
                        self._handles,
                        held.__getitem__,
                        content_kind="shares",
                        paired=self.paired,
                        anonymous=self.anonymous,
                        parts=self.servers,
                    )
                )
        return {**filed, **file_network(recorded, paired=self.paired, anonymous=self.anonymous)}

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends one vector and m − 1 seeds, or with range proofs Prio3's report."""
        words = math.prod(mechanism.tally_shape)
        pseudonym, handle = pseudonym_nbytes(self._handles), handle_nbytes(self._handles)
        assumed = channel_notes(self._handles, anonymous=self.anonymous)
        servers = [f"server:{server}" for server in range(1, self.servers + 1)]
        if self.robust:
            proof = Prio3Histogram(words, self.servers)
            public = proof.public_share_nbytes + handle
            stored = dict.fromkeys(servers, proof.helper_share_nbytes + public)
            stored[servers[-1]] = proof.leader_share_nbytes + public
            note = (
                "Range proofs are simulated: the check is made on the plain vector, and costs what Prio3Histogram "
                "publishes (draft-irtf-cfrg-vdaf-20)."
            )
            between = self.servers * (self.servers - 1) * proof.verifier_share_nbytes
            messages = dict.fromkeys(servers, proof.helper_share_nbytes + proof.public_share_nbytes + pseudonym)
            messages[servers[-1]] = proof.leader_share_nbytes + proof.public_share_nbytes + pseudonym
            bytes_up = proof.report_nbytes + pseudonym
            return Cost(bytes_up, QUESTION_NBYTES, stored, between, (note, *assumed), messages)
        stored = dict.fromkeys(servers, SEED_NBYTES + handle)
        stored[servers[-1]] = WORD_NBYTES * words + handle
        messages = dict.fromkeys(servers, SEED_NBYTES + pseudonym)
        messages[servers[-1]] = WORD_NBYTES * words + pseudonym
        return Cost(
            bytes_up=WORD_NBYTES * words + SEED_NBYTES * (self.servers - 1) + pseudonym,
            bytes_down=QUESTION_NBYTES,
            stored_bytes=stored,
            between_servers=pseudonym * self.servers * (self.servers - 1) if self.paired else 0,
            notes=("Seeds are expanded by a generator that is not a cipher; a deployment would use one.", *assumed),
            bytes_to=messages,
        )

    def view(
        self,
        coalition: Iterable[str],
        mechanism: LocalMechanism,
        *,
        devices: int = 1,  # noqa: ARG002 - nobody hides among others
        crowd: int = 1,  # noqa: ARG002 - nor here
        queries: int = 1,
    ) -> View | None:
        """Return the view of the shares of k of m servers, which reveals the linked reports if k = m, else nothing."""
        members = check_coalition(coalition, self, mechanism)
        if not members.servers:
            return None
        handles = identified_by(self._handles, members, anonymous=self.anonymous)
        return Shares(len(members.servers), self.servers, queries=linked_queries(handles, queries))

    def learns(self, coalition: Iterable[str], mechanism: LocalMechanism) -> str:
        """Return what the coalition can compute about one device."""
        members = check_coalition(coalition, self, mechanism)
        colluding = len(members.servers)
        if not colluding:
            return says_nothing(members)
        handles = identified_by(self._handles, members, anonymous=self.anonymous)
        if colluding == self.servers:
            return f"Every report, by adding up its {self.servers} shares, {followed(handles)}."
        heard = "which pseudonyms were heard in which round" if handles == "query" else "who was heard in which round"
        return (
            f"Of a report nothing: {colluding} of {self.servers} shares are uniform whatever it says. Besides, {heard}."
        )

    @property
    def _handles(self) -> Handles:
        return "device" if self.handles is None else self.handles

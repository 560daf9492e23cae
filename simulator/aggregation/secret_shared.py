"""Deployment `secret_shared`: servers add up shares; the counts are known only from the sums of all servers."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import LocalMechanism
from mechanisms.parameter import check_integer
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import QUESTION_NBYTES, Cost
from simulator.aggregation.secret_sharing import (
    SEED_NBYTES,
    WORD_NBYTES,
    AdditiveSharing,
    EncodingRule,
    Prio3Histogram,
)
from simulator.aggregation.sharing_servers import SharingServers

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

    def __post_init__(self) -> None:
        check_integer("exact_seeds", self.exact_seeds, at_least=0)
        super().__post_init__()

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
        aggregator.rule = EncodingRule.of(mechanism) if self.robust else None
        return aggregator

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

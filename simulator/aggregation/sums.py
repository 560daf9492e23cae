"""Sums: how a deployment's servers add up what they hear."""

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError
from simulator.aggregation.shares import AdditiveSharing
from simulator.aggregation.transcript import ShareVectors

Mask: TypeAlias = npt.NDArray[np.bool_]

CHUNK_WORDS = 2**20
"""Words of shares in memory at once: 8 MB."""


class Sums(Protocol):
    """The sums of one query's rounds."""

    @property
    def total(self) -> Counts:
        """(rounds, *tally_shape) int64: what all servers together have added up."""

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices; of all, if there is no mask."""

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add what one or more devices' reports add up to, (*tally_shape) int64."""

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Add vectors as written, (n, *tally_shape) int64."""


class PlainSums:
    """Sums over reports that a server reads.

    Parameters
    ----------
    mechanism
        Whose reports.
    """

    def __init__(self, mechanism: LocalMechanism) -> None:
        self._mechanism = mechanism
        self.total: Counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices; of all, if there is no mask."""
        self.total[round_ - 1] += self._mechanism.tally(reports, where=where)

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add what one or more devices' reports add up to, (*tally_shape) int64."""
        self.total[round_ - 1] += counts

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Refuse: a server that reads reports reads an outcome of the mechanism, or no report at all."""
        raise ParameterError(
            "vectors", f"cannot be written in round {round_}: servers read plain reports", len(vectors)
        )


class ShareSums:
    """Every server's sum of the shares it was sent.

    Parameters
    ----------
    mechanism
        Whose reports.
    sharing
        How they are cut.
    exact
        Whether each device's report is cut into shares and every server adds up its own; else the servers' sums are
        drawn at the end from their exact joint law. What comes as counts is always drawn.
    rng
        Where seeds come from.
    """

    def __init__(
        self, mechanism: LocalMechanism, sharing: AdditiveSharing, *, exact: bool, rng: np.random.Generator
    ) -> None:
        self._mechanism, self._sharing, self.exact, self._rng = mechanism, sharing, exact, rng
        shape = (mechanism.rounds, *mechanism.tally_shape)
        self._shares: ShareVectors = np.zeros((sharing.servers, *shape), dtype=np.uint64)
        self._drawn_later = np.zeros(shape, dtype=np.int64)
        self._waiting = np.zeros(mechanism.rounds, dtype=np.bool_)

    @property
    def by_server(self) -> ShareVectors:
        """(servers, rounds, *tally_shape) uint64: what each server has added up so far."""
        for round_ in np.flatnonzero(self._waiting).tolist():
            drawn = self._sharing.split_sum(self._drawn_later[round_], rng=self._rng)
            self._shares[:, round_] = self._sharing.add(self._shares[:, round_], drawn)
            self._drawn_later[round_] = 0
            self._waiting[round_] = False
        return self._shares

    @property
    def total(self) -> Counts:
        """(rounds, *tally_shape) int64: the servers' sums added up, in which all randomness cancels."""
        return self._sharing.combine(self.by_server)

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices; of all, if there is no mask."""
        if not self.exact:
            if where is None or where.any():
                self.add_counts(round_, self._mechanism.tally(reports, where=where))
            return
        places = np.arange(len(reports)) if where is None else np.flatnonzero(where)
        each = max(1, CHUNK_WORDS // self._shares[:, 0].size)
        for start in range(0, len(places), each):
            self.add_vectors(round_, self._mechanism.encode(reports[places[start : start + each]]))

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add what one or more devices' reports add up to, (*tally_shape) int64."""
        self._drawn_later[round_ - 1] += counts
        self._waiting[round_ - 1] = True

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Add vectors as written, (n, *tally_shape) int64, each cut into shares."""
        if len(vectors) == 0:
            return
        shares = self._sharing.split(vectors, rng=self._rng)
        sums = shares.sum(axis=1, dtype=np.uint64)
        self._shares[:, round_ - 1] = self._sharing.add(self._shares[:, round_ - 1], sums)

"""Accumulators: servers add up reports, all of them or only those of devices received in every round (pairing)."""

from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, Estimate, LocalMechanism, QuadraticVariance, Vectors
from mechanisms.local.common.intervals import CountLaw, invert_tails
from mechanisms.local.common.response_counts import ResponseCounts, estimate_between
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
        """(rounds, *tally_shape) int64: the sums over all servers."""

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices, or of all devices if there is no mask."""

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add the sum of the reports of one or more devices, (*tally_shape) int64."""

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Add vectors as the devices sent them, (n, *tally_shape) int64."""


class PlainSums:
    """Sums over plain reports, which a server can read.

    Parameters
    ----------
    mechanism
        The mechanism that made the reports.
    """

    def __init__(self, mechanism: LocalMechanism) -> None:
        self._mechanism = mechanism
        self.total: Counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices, or of all devices if there is no mask."""
        self.total[round_ - 1] += self._mechanism.tally(reports, where=where)

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add the sum of the reports of one or more devices, (*tally_shape) int64."""
        self.total[round_ - 1] += counts

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Raise ParameterError: a plain report is an outcome of the mechanism, never an arbitrary vector."""
        raise ParameterError(
            "vectors", f"cannot be written in round {round_}: servers read plain reports", len(vectors)
        )


class ShareSums:
    """Sums of shares, one for each server.

    Parameters
    ----------
    mechanism
        The mechanism that made the reports.
    sharing
        The secret sharing that cuts reports into shares.
    exact
        Whether each device's report is cut into shares and every server adds up its own. Otherwise the servers' sums
        are drawn at the end from their exact joint distribution. For reports added as counts they are always drawn.
    rng
        Generator of the seeds.
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
        """(servers, rounds, *tally_shape) uint64: each server's sums so far."""
        for round_ in np.flatnonzero(self._waiting).tolist():
            drawn = self._sharing.split_sum(self._drawn_later[round_], rng=self._rng)
            self._shares[:, round_] = self._sharing.add(self._shares[:, round_], drawn)
            self._drawn_later[round_] = 0
            self._waiting[round_] = False
        return self._shares

    @property
    def total(self) -> Counts:
        """(rounds, *tally_shape) int64: the total of the servers' sums, in which the shares' randomness cancels."""
        return self._sharing.combine(self.by_server)

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices, or of all devices if there is no mask."""
        if not self.exact:
            if where is None or where.any():
                self.add_counts(round_, self._mechanism.tally(reports, where=where))
            return
        places = np.arange(len(reports)) if where is None else np.flatnonzero(where)
        each = max(1, CHUNK_WORDS // self._shares[:, 0].size)
        for start in range(0, len(places), each):
            self.add_vectors(round_, self._mechanism.encode(reports[places[start : start + each]]))

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add the sum of the reports of one or more devices, (*tally_shape) int64."""
        self._drawn_later[round_ - 1] += counts
        self._waiting[round_ - 1] = True

    def add_vectors(self, round_: int, vectors: Vectors) -> None:
        """Cut vectors as the devices sent them, (n, *tally_shape) int64, into shares and add these."""
        if len(vectors) == 0:
            return
        shares = self._sharing.split(vectors, rng=self._rng)
        sums = shares.sum(axis=1, dtype=np.uint64)
        self._shares[:, round_ - 1] = self._sharing.add(self._shares[:, round_ - 1], sums)


PSEUDONYM_NBYTES = 16
"""Bytes of a one-time pseudonym as sent: 128 random bits, so two of 10⁹ devices share one with probability 10⁻²⁰."""


def draw_pseudonyms(n: int, *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw n different one-time pseudonyms, (n,) int64; simulated with 63 bits, drawn again while two are equal."""
    while True:
        pseudonyms = rng.integers(0, 2**63 - 1, size=n, dtype=np.int64)
        if len(np.unique(pseudonyms)) == n:
            return pseudonyms


def estimate_paired(mechanism: LocalMechanism, counts: Counts, *, paired: int, asked: int) -> Estimate:
    """Estimate the occupancy of all devices asked from those received in every round (papers.md, item 6).

    Reports of n of N devices were received in all rounds. The mechanism treats these n as a population of their own
    without missing reports, so Ŷ = (N/n)·Ŷ_n. As every device's coins are independent of the channel, the n are a
    simple random sample.

    Parameters
    ----------
    mechanism
        The mechanism whose reports were counted.
    counts
        (rounds, *tally_shape) int64, of the n devices alone.
    paired, asked
        n and N.

    Returns
    -------
    Estimate
        Unbiased. Its interval is the mechanism's own if all N were received, or if the mechanism has one round, where
        pairing changes nothing; otherwise it is that of the distribution of the count, thinning included.
    """
    rounds = mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.estimate(counts, counted=[paired] * rounds, asked=[asked] * rounds)
    within = mechanism.estimate(counts, counted=[paired] * rounds, asked=[paired] * rounds)
    count = within.count * (asked / paired)
    variance = paired_variance(mechanism, paired=paired, asked=asked)
    elsewhere, inside = _single_variances(mechanism)
    # A device in the cell that adds 1/π or 0 has a variance of 1/π − 1.
    heard, step = ResponseCounts((asked,), (paired,), truth_round=1), 1.0 + inside
    if not elsewhere.any():
        none = np.zeros((3, len(step)))
        known = np.zeros(len(step), dtype=np.int64)
        law = CountLaw(asked, paired, 1.0 / step, none[0], known, none[0], asked, none)
        ends = law.invert(np.clip(np.rint(within.count / step), 0, paired).astype(np.int64))
    else:
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), step * (asked / paired), asked)
    return estimate_between(count, variance, ends, heard)


def paired_std_error(mechanism: LocalMechanism, true_counts: Counts, *, paired: int) -> npt.NDArray[np.float64]:
    """Return the theoretical standard error of `estimate_paired` for a given truth, (cells,) float64.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    true_counts
        (cells + 1,) int64, of all devices asked.
    paired
        n, devices received in every round; with none, the standard error is infinite.
    """
    asked, rounds = int(true_counts.sum()), mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.std_error(true_counts, asked=[asked] * rounds, counted=[paired] * rounds)
    truth = true_counts[1:].astype(np.float64)
    own = mechanism.std_error(true_counts) ** 2
    variance: npt.NDArray[np.float64] = own * (asked / paired) + _thinning(truth, paired=paired, asked=asked)
    return np.sqrt(variance)


def paired_variance(mechanism: LocalMechanism, *, paired: int, asked: int) -> QuadraticVariance:
    """Return the variance of the paired estimate as a function of the truth Y of a cell.

    Devices answer independently, so on an ideal channel Var(Ŷ_n) is the sum of one term per device: v₁ in the cell, v₀
    elsewhere. On average over the sample it is n/N of the variance of all N, and Y_n is hypergeometric:

    Var(Ŷ) = (N/n)(Yv₁ + (N − Y)v₀) + (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).

    v₀ and v₁ are computed by the mechanism, for one device outside and for one in each cell. Sampling Privacy has
    v₀ = 0, so no term of its variance grows with N; this is the purpose of pairing.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    paired, asked
        n ≥ 1 and N.
    """
    elsewhere, inside = _single_variances(mechanism)
    rate = asked / paired
    sample = rate * (asked - paired) / max(asked - 1, 1)
    return QuadraticVariance(
        constant=rate * asked * elsewhere, linear=rate * (inside - elsewhere) + sample, square=-sample / asked
    )


def _single_variances(mechanism: LocalMechanism) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the variance that one device outside a cell, and one in it, adds to the estimate, (cells,) each."""
    alone, each = np.zeros((2, mechanism.cells + 1), dtype=np.int64)
    alone[0], each[1:] = 1, 1
    elsewhere = mechanism.std_error(alone) ** 2
    return elsewhere, mechanism.std_error(each) ** 2 - (mechanism.cells - 1) * elsewhere


def _thinning(truth: npt.NDArray[np.float64], *, paired: int, asked: int) -> npt.NDArray[np.float64]:
    """Return (N/n)·Y(1 − Y/N)·(N − n)/(N − 1): the variance of N/n times a hypergeometric count."""
    factor = asked / paired * (asked - paired) / max(asked - 1, 1)
    spread: npt.NDArray[np.float64] = factor * truth * (1.0 - truth / asked)
    return spread

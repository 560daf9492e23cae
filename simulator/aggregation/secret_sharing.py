"""Secret sharing: reports cut into random shares, sums of shares, and the sizes of range proofs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, DistributedLaplace, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.aggregator import Sums
from simulator.aggregation.transcript import ShareVectors, Sharing
from simulator.arrays import IntArray, Mask

WHOLE = 2**64
"""The modulus of a deployment: sums wrap around as 64-bit words do."""
LARGEST_SMALL = 2**32
WORD_NBYTES = 8
SEED_NBYTES = 16

Seeds = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class AdditiveSharing:
    """Additive secret sharing among m servers: m − 1 shares are uniform, the last is the vector minus their sum.

    A device draws m − 1 seeds of 128 bits, one for each of the servers 1…m − 1, and sends server m the vector minus
    the vectors that the seeds expand to. So a report costs one vector and m − 1 seeds, whatever m is.

    **What is simulated.** A seed is expanded by numpy's Philox keyed with it (Salmon, Moraes, Dror and Shaw 2011,
    *Parallel Random Numbers: As Easy as 1, 2, 3*): a counter-mode generator with the structure of a stream cipher. It
    passes statistical tests, but is not claimed to be a cipher. A deployment would use AES-CTR or ChaCha20. The privacy
    claimed of the shares is the privacy of uniform shares; no cryptanalysis of the expansion is simulated.

    Parameters
    ----------
    servers
        m, at least 2.
    modulus
        2⁶⁴; or 2…2³², for sharings so small that every outcome can be listed.

    Raises
    ------
    ParameterError
        If there are fewer than two servers, or the modulus has another value.
    """

    servers: int
    modulus: int = WHOLE

    def __post_init__(self) -> None:
        check_integer("servers", self.servers, at_least=2)
        if self.modulus != WHOLE and not 2 <= self.modulus <= LARGEST_SMALL:
            raise ParameterError("modulus", "must be 2⁶⁴, or in 2..2³²", self.modulus)

    @property
    def needed(self) -> int:
        """Number of shares that suffice: all m."""
        return self.servers

    def draw_seeds(self, n: int, *, rng: np.random.Generator) -> Seeds:
        """Draw (n, m − 1, 2) uint64: a seed of two words for each device and each server except the last."""
        return rng.integers(0, WHOLE - 1, size=(n, self.servers - 1, 2), dtype=np.uint64, endpoint=True)

    def expand(self, seeds: Seeds, shape: tuple[int, ...]) -> ShareVectors:
        """Expand seeds to the shares they stand for, (m − 1, n, *shape) uint64 below the modulus."""
        n, masked, _ = seeds.shape
        shares = np.empty((masked, n, math.prod(shape)), dtype=np.uint64)
        for server in range(masked):
            for device in range(n):
                stream = np.random.Generator(np.random.Philox(key=seeds[device, server]))
                shares[server, device] = self._uniform(shares.shape[2:], stream)
        return shares.reshape(masked, n, *shape)

    def complete(self, vectors: Vectors, masks: ShareVectors) -> ShareVectors:
        """Return the last server's share, uint64: the vectors minus all masks.

        Parameters
        ----------
        vectors
            (…) int64, negative entries allowed.
        masks
            (m − 1, …) uint64 below the modulus.
        """
        masked = masks.sum(axis=0, dtype=np.uint64)
        if self.modulus == WHOLE:
            last: ShareVectors = vectors.astype(np.int64, copy=False).view(np.uint64) - masked
            return last
        values = np.mod(vectors, self.modulus).astype(np.uint64)
        modulus = np.uint64(self.modulus)
        small: ShareVectors = (values + (modulus - masked % modulus)) % modulus
        return small

    def split(self, vectors: Vectors, *, rng: np.random.Generator) -> ShareVectors:
        """Cut each device's vector into shares.

        Parameters
        ----------
        vectors
            (n, *shape) int64.
        rng
            Generator of the seeds.

        Returns
        -------
        (m, n, *shape) uint64
            By server. They add up to the vectors; any m − 1 of them are uniform and independent of the vectors.
        """
        vectors = np.ascontiguousarray(vectors)
        masks = self.expand(self.draw_seeds(len(vectors), rng=rng), vectors.shape[1:])
        return np.concatenate([masks, self.complete(vectors, masks)[np.newaxis]])

    def split_sum(self, counts: Counts, *, rng: np.random.Generator) -> ShareVectors:
        """Draw the servers' sums of the shares of one or more devices whose vectors add up to `counts`.

        Sums of independent uniform shares are uniform, and all m sums add up to the counts: this is their exact joint
        distribution for any number of devices.

        Parameters
        ----------
        counts
            (*shape) int64.
        rng
            Generator of the sums of all servers but the last.

        Returns
        -------
        (m, *shape) uint64
        """
        counts = np.ascontiguousarray(counts)
        masks = self._uniform((self.servers - 1, *counts.shape), rng)
        return np.concatenate([masks, self.complete(counts, masks)[np.newaxis]])

    def sum(self, shares: ShareVectors) -> ShareVectors:
        """Return each server's sum of its shares of n vectors, (m, *shape) uint64 of (m, n, *shape)."""
        total: ShareVectors = shares.sum(axis=1, dtype=np.uint64)
        return total if self.modulus == WHOLE else total % np.uint64(self.modulus)

    def join(self, shares: ShareVectors, servers: IntArray | None = None) -> Counts:  # noqa: ARG002 - all count alike
        """Return the sum of all servers' shares (m, …), int64: exact from −2⁶³ to 2⁶³ − 1 if the modulus is 2⁶⁴.

        For a smaller modulus, the residue of the sum in 0…modulus − 1.
        """
        total = np.ascontiguousarray(shares.sum(axis=0, dtype=np.uint64))
        if self.modulus == WHOLE:
            return total.view(np.int64)
        return (total % np.uint64(self.modulus)).astype(np.int64)

    def _uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> ShareVectors:
        """Draw words uniform below the modulus, by rejection if it is not a power of two."""
        return rng.integers(0, self.modulus - 1, size=shape, dtype=np.uint64, endpoint=True)


FIELD = 2**61 - 1
"""The modulus of a deployment: a prime just below the size of a word."""
LARGEST_FIELD = 2**31
_LOW_30, _LOW_31, _LOW_32 = np.uint64(2**30 - 1), np.uint64(2**31 - 1), np.uint64(2**32 - 1)


@dataclass(frozen=True)
class ThresholdSharing:
    """Threshold sharing among m servers (Shamir 1979, *How to Share a Secret*): any t shares give the vectors.

    For each entry s a device draws a polynomial s + c₁x + … + c_{t−1}x^{t−1} with uniform coefficients over the
    integers modulo a prime, and sends server r its value at r. Any t values determine the polynomial; any t − 1 are
    uniform whatever s is. Sums of shares are shares of the sum.

    Parameters
    ----------
    servers
        m, at least 2 and below the modulus.
    threshold
        t, 2…m.
    modulus
        The prime 2⁶¹ − 1; or a prime up to 2³¹, for sharings so small that every outcome can be listed.

    Raises
    ------
    ParameterError
        If a number is out of range. Whether the modulus is prime is not checked.
    """

    servers: int
    threshold: int
    modulus: int = FIELD

    def __post_init__(self) -> None:
        if self.modulus != FIELD and not 3 <= self.modulus <= LARGEST_FIELD:
            raise ParameterError("modulus", "must be 2⁶¹ − 1, or a prime in 3..2³¹", self.modulus)
        check_integer("servers", self.servers, at_least=2, at_most=self.modulus - 1)
        check_integer("threshold", self.threshold, at_least=2, at_most=self.servers)

    @property
    def needed(self) -> int:
        """Number of shares that suffice: t."""
        return self.threshold

    def split(self, vectors: Vectors, *, rng: np.random.Generator) -> ShareVectors:
        """Cut vectors (n, *shape) int64, entries above −p/2 and below p/2, into shares (m, n, *shape) uint64 below p.

        Parameters
        ----------
        vectors
            (n, *shape) int64. Other entries are shared modulo p.
        rng
            Generator of the coefficients.
        """
        shape = (self.threshold - 1, *vectors.shape)
        return self.evaluate(vectors, rng.integers(0, self.modulus, size=shape, dtype=np.uint64))

    def evaluate(self, vectors: Vectors, coefficients: ShareVectors) -> ShareVectors:
        """Return each server's share, (m, n, *shape) uint64, given the coefficients (t − 1, n, *shape) below p."""
        prime = np.uint64(self.modulus)
        points = np.arange(1, self.servers + 1, dtype=np.uint64).reshape(-1, *(1,) * vectors.ndim)
        values: ShareVectors = np.zeros((self.servers, *vectors.shape), dtype=np.uint64)
        for coefficient in (*coefficients[::-1], np.mod(vectors, self.modulus).astype(np.uint64)):
            values = (self._times(values, points) + coefficient) % prime
        return values

    def sum(self, shares: ShareVectors) -> ShareVectors:
        """Return each server's sum of its shares of n vectors, (m, *shape) uint64 of (m, n, *shape)."""
        prime = np.uint64(self.modulus)
        # Halves of words, so that no sum of up to 2³¹ of them overflows.
        high = (shares >> np.uint64(32)).sum(axis=1, dtype=np.uint64) % prime
        low = (shares & _LOW_32).sum(axis=1, dtype=np.uint64) % prime
        total: ShareVectors = (self._times(high, np.uint64(2**32 % self.modulus)) + low) % prime
        return total

    def join(self, shares: ShareVectors, servers: IntArray) -> Vectors:
        """Return the vectors (…) int64 by interpolation at 0, from the shares (k, …) of k ≥ t servers, from 1.

        Entries are from −(p − 1)/2 to (p − 1)/2. For fewer shares they are uniform, whatever was shared.
        """
        prime, numbers = self.modulus, [int(server) for server in servers]
        total: ShareVectors = np.zeros(shares.shape[1:], dtype=np.uint64)
        for number, share in zip(numbers, shares, strict=True):
            others = [other for other in numbers if other != number]
            below = math.prod(other - number for other in others)
            weight = math.prod(others) * pow(below, -1, prime) % prime
            total = (total + self._times(share, np.uint64(weight))) % np.uint64(prime)
        signed = total.astype(np.int64)
        return np.where(signed > prime // 2, signed - prime, signed)

    def _times(self, words: ShareVectors, other: ShareVectors | np.uint64) -> ShareVectors:
        """Return the product of words below the modulus, modulo the modulus."""
        prime = np.uint64(self.modulus)
        if self.modulus != FIELD:
            small: ShareVectors = words * other % prime
            return small
        # With a = a₁2³¹ + a₀ and b = b₁2³¹ + b₀: ab = a₁b₁2⁶² + (a₁b₀ + a₀b₁)2³¹ + a₀b₀, where 2⁶¹ = 1. No term
        # overflows: the three are below 2⁶¹, 2⁶¹ + 2³² and 2⁶².
        thirty, one_more = np.uint64(30), np.uint64(31)
        a, a0, b, b0 = words >> one_more, words & _LOW_31, other >> one_more, other & _LOW_31
        middle = a * b0 + a0 * b
        product: ShareVectors = (
            (a * b << np.uint64(1)) + (middle >> thirty) + ((middle & _LOW_30) << one_more) + a0 * b0
        )
        return product % prime


CHUNK_WORDS = 2**20
"""Words of shares in memory at once: 8 MB."""


@dataclass(frozen=True, eq=False)
class SentShares:
    """Shares that devices sent, of valid encodings or not.

    Attributes
    ----------
    shares
        (servers, n, *tally_shape) uint64; 0 where a share did not arrive.
    """

    shares: ShareVectors

    def __len__(self) -> int:
        return len(self.shares[0])


class ShareSums(Sums):
    """Sums of shares, one for each server.

    Parameters
    ----------
    mechanism
        The mechanism that made the reports.
    sharing
        The secret sharing that cuts reports into shares.
    exact
        Whether each device's report is cut into shares and every server adds up its own. Otherwise the servers' sums
        are drawn at the end from their exact joint distribution: as shares of linear sharings are uniform given what
        they join to, it is the distribution of the shares of the total. For reports added as counts they are always
        drawn.
    rng
        Generator of the seeds.
    """

    def __init__(self, mechanism: LocalMechanism, sharing: Sharing, *, exact: bool, rng: np.random.Generator) -> None:
        super().__init__(mechanism)
        self._sharing, self.exact, self._rng = sharing, exact, rng
        self._shares: ShareVectors = np.zeros((sharing.servers, *self._counts.shape), dtype=np.uint64)
        self._waiting = np.zeros(mechanism.rounds, dtype=np.bool_)
        self._used = [np.arange(sharing.needed)] * mechanism.rounds

    def sums_by_server(self) -> ShareVectors:
        """Return each server's sums so far, (servers, rounds, *tally_shape) uint64; sums not yet divided are drawn."""
        for round_ in np.flatnonzero(self._waiting).tolist():
            if isinstance(self._sharing, AdditiveSharing):  # faster, as no seed is expanded
                drawn = self._sharing.split_sum(self._counts[round_], rng=self._rng)[:, np.newaxis]
            else:
                drawn = self._sharing.split(self._counts[round_][np.newaxis], rng=self._rng)
            self._add(round_, drawn)
            self._counts[round_] = 0
            self._waiting[round_] = False
        return self._shares

    def use(self, round_: int, numbers: Sequence[int]) -> None:
        """Compute a round's total from the sums of these servers, from 0."""
        self._used[round_ - 1] = np.array(numbers)

    def state(self, round_: int, number: int, stated: Callable[[Any], Any]) -> None:
        """Replace a server's sum of shares of a round by what it states; parameters as in `Sums.state`."""
        shares = self.sums_by_server()
        shares[number, round_ - 1] = stated(shares[number, round_ - 1].copy())

    @property
    def total(self) -> Counts:
        """(rounds, *tally_shape) int64: what the servers' sums join to, in which the shares' randomness cancels."""
        shares = self.sums_by_server()
        return np.stack([self._sharing.join(shares[used, row], used + 1) for row, used in enumerate(self._used)])

    def valid(self, reports: Any, holds: Callable[[Vectors], Mask]) -> Mask:
        """Return which reports' shares join to a vector of which a rule holds, (n,) bool; reports in batches all do."""
        if not isinstance(reports, SentShares):
            return super().valid(reports, holds)
        return holds(self._sharing.join(reports.shares, np.arange(1, len(reports.shares) + 1)))

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices, or of all devices if there is no mask."""
        if isinstance(reports, SentShares):
            self._add(round_ - 1, reports.shares if where is None else reports.shares[:, where])
            return
        if not self.exact:
            if where is None or where.any():
                super().add_reports(round_, reports, where)
            return
        places = np.arange(len(reports)) if where is None else np.flatnonzero(where)
        each = max(1, CHUNK_WORDS // self._shares[:, 0].size)
        for start in range(0, len(places), each):
            self._add(round_ - 1, self.shares_of(self.mechanism.encode(reports[places[start : start + each]])).shares)

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add the sum of the reports of one or more devices, (*tally_shape) int64; their shares are drawn later."""
        super().add_counts(round_, counts)
        self._waiting[round_ - 1] = True

    def shares_of(self, vectors: Vectors) -> SentShares:
        """Return vectors that devices chose freely, (n, *tally_shape) int64, as they send them: cut into shares."""
        return SentShares(self._sharing.split(vectors, rng=self._rng))

    def _add(self, row: int, shares: ShareVectors) -> None:
        """Add shares (servers, n, *tally_shape) to the servers' sums of a round."""
        sums = np.stack([self._shares[:, row], self._sharing.sum(shares)], axis=1)
        self._shares[:, row] = self._sharing.sum(sums)


FIELD_NBYTES, XOF_SEED_NBYTES = 16, 32
"""Bytes of an element of Field128, and of a seed of XofTurboShake128 (draft-irtf-cfrg-vdaf-20)."""
MOST_SERVERS = 255
MUL_DEGREE = 2
PROBES, FEWEST_PROBES, PROBE_WORDS = 256, 8, 2**22


@dataclass(frozen=True)
class EncodingRule:
    """Definition of a valid encoding: entries 0 or 1, and a fixed number of ones in each question.

    Parameters
    ----------
    questions
        Number of questions that a report answers; its encoding has one row for each.
    ones
        Number of ones in a row; None if any number is valid.
    """

    questions: int
    ones: int | None

    @classmethod
    def of(cls, mechanism: LocalMechanism) -> "EncodingRule":
        """Return the strictest rule that honest reports satisfy, found from a sample of such reports.

        Rows of a `tally_shape` (cells, outputs) are questions; a shape (outputs,) is a single question. The rule is the
        number of ones that a row has in every one of up to 256 honest reports. It is None if they differ, as with
        local hashing, whose reports support any number of symbols.

        Raises
        ------
        ParameterError
            If honest reports have entries other than 0 and 1: then no range proof applies to them.
        """
        rng = np.random.default_rng(0)
        # For long vectors a few reports suffice and save memory: reports of local hashing rarely have equally many
        # ones.
        probes = min(PROBES, max(FEWEST_PROBES, PROBE_WORDS // math.prod(mechanism.tally_shape)))
        truth = (np.arange(probes) % (mechanism.cells + 1)).astype(np.int32)
        coins = mechanism.toss(mechanism.enrol(probes, rng=rng), rng=rng)
        rounds = range(1, mechanism.rounds + 1)
        encodings = [mechanism.encode(mechanism.answer(round_, truth, coins)) for round_ in rounds]
        rows = np.concatenate(encodings).reshape(-1, mechanism.tally_shape[-1])
        # Noise added to a vector is unbounded, even if the sampled entries happen to be only 0 and 1.
        if isinstance(mechanism, DistributedLaplace) or not ((rows == 0) | (rows == 1)).all():
            kind = type(mechanism).__name__
            raise ParameterError("robust", "must be false where honest reports hold more than zeros and ones", kind)
        ones = np.unique(rows.sum(axis=1))
        return cls(math.prod(mechanism.tally_shape[:-1]), int(ones[0]) if len(ones) == 1 else None)

    def holds(self, vectors: Vectors) -> Mask:
        """Return which of (n, *tally_shape) vectors are valid encodings, (n,) bool."""
        bits: Mask = ((vectors == 0) | (vectors == 1)).reshape(len(vectors), -1).all(axis=1)
        if self.ones is None:
            return bits
        rows = vectors.reshape(len(vectors), self.questions, -1)
        # Sums of rows with other entries than 0 and 1 may wrap around; `bits` already excludes these.
        whole: Mask = (rows.sum(axis=2) == self.ones).all(axis=1)
        return bits & whole


@dataclass(frozen=True)
class Prio3Histogram:
    """The published sizes of a proof that a shared vector is one-hot, in bytes.

    Prio3Histogram of *Verifiable Distributed Aggregation Functions*, draft-irtf-cfrg-vdaf-20: the fully linear
    proof of Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai (CRYPTO 2019) over Field128 with one ParallelSum(Mul)
    gadget called once per chunk ("Validity Circuits", "Prio3Histogram", "Message Serialization"). The sums of rows are
    affine, so a vector of several one-hot rows, or of a fixed number of ones, takes a proof of the same size.

    **What is simulated.** No proof is made: the simulator checks the plain vector, accepts exactly those that satisfy
    the `EncodingRule`, and counts these bytes. The real proof's probability of accepting an invalid vector is assumed
    to be 0, and shares stay modulo 2⁶⁴ although Prio3's are modulo the prime of Field128.

    Parameters
    ----------
    length
        Entries of the vector.
    servers
        2…255.
    chunk_length
        Entries per gadget call; 0: about √length, as the draft recommends.

    Raises
    ------
    ParameterError
        If a number is out of range.
    """

    length: int
    servers: int
    chunk_length: int = 0

    def __post_init__(self) -> None:
        """Check the numbers and fill in the chunk length."""
        check_integer("length", self.length, at_least=1)
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        chunk = self.chunk_length or max(1, round(math.sqrt(self.length)))
        object.__setattr__(self, "chunk_length", check_integer("chunk_length", chunk, at_least=1))

    @property
    def proof_length(self) -> int:
        """Field elements of the proof: the gadget's wire seeds, and the coefficients of its polynomial.

        arity + degree·(P − 1) + 1, where P is the least power of two that is at least 1 + calls.
        """
        calls = -(-self.length // self.chunk_length)
        points = 1 << calls.bit_length()  # the least power of two above `calls`
        return self._arity + MUL_DEGREE * (points - 1) + 1

    @property
    def leader_share_nbytes(self) -> int:
        """Bytes of the first server's share: vector, proof, and the blind of its joint randomness."""
        return FIELD_NBYTES * (self.length + self.proof_length) + XOF_SEED_NBYTES

    @property
    def helper_share_nbytes(self) -> int:
        """Bytes of any other server's share: a seed of vector and proof, and a blind."""
        return 2 * XOF_SEED_NBYTES

    @property
    def public_share_nbytes(self) -> int:
        """Bytes of the share that every server receives: a part of the joint randomness for each server."""
        return XOF_SEED_NBYTES * self.servers

    @property
    def verifier_share_nbytes(self) -> int:
        """Bytes that each server sends the others per report: 1 + arity + 1 elements, and its part of randomness."""
        return FIELD_NBYTES * (self._arity + 2) + XOF_SEED_NBYTES

    @property
    def _arity(self) -> int:
        return 2 * self.chunk_length

"""Deployment `threshold_shared`: the shares of any t of m servers give the counts, and fewer reveal nothing."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local import Vectors
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.sharing_servers import SharingServers
from simulator.aggregation.transcript import ShareVectors
from simulator.arrays import IntArray

FIELD = 2**61 - 1
"""The modulus of a deployment: a prime just below the size of a word."""
LARGEST_SMALL = 2**31
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
        if self.modulus != FIELD and not 3 <= self.modulus <= LARGEST_SMALL:
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

    def _times(self, one: ShareVectors, other: ShareVectors | np.uint64) -> ShareVectors:
        """Return the product of words below the modulus, modulo the modulus."""
        prime = np.uint64(self.modulus)
        if self.modulus != FIELD:
            small: ShareVectors = one * other % prime
            return small
        # With a = a₁2³¹ + a₀ and b = b₁2³¹ + b₀: ab = a₁b₁2⁶² + (a₁b₀ + a₀b₁)2³¹ + a₀b₀, where 2⁶¹ = 1. No term
        # overflows: the three are below 2⁶¹, 2⁶¹ + 2³² and 2⁶².
        thirty, one_more = np.uint64(30), np.uint64(31)
        a, a0, b, b0 = one >> one_more, one & _LOW_31, other >> one_more, other & _LOW_31
        middle = a * b0 + a0 * b
        product: ShareVectors = (
            (a * b << np.uint64(1)) + (middle >> thirty) + ((middle & _LOW_30) << one_more) + a0 * b0
        )
        return product % prime


@dataclass(frozen=True, kw_only=True)
class ThresholdShared(SharingServers):
    """Deployment in which devices cut each report into m shares of which any t suffice, one for each of m servers.

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

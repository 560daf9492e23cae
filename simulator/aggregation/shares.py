"""Secret sharing: integer vectors cut into random parts that add up to them, modulo 2⁶⁴."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, Vectors
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.transcript import ShareVectors

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
    claimed of the shares is that of uniform ones; no cryptanalysis of the expansion is simulated.

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
        """Check the numbers."""
        check_integer("servers", self.servers, at_least=2)
        if self.modulus != WHOLE and not 2 <= self.modulus <= LARGEST_SMALL:
            raise ParameterError("modulus", "must be 2⁶⁴, or in 2..2³²", self.modulus)

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

    def add(self, one: ShareVectors, other: ShareVectors) -> ShareVectors:
        """Return the sum of shares or of servers' sums, entry by entry."""
        total = one + other
        return total if self.modulus == WHOLE else total % np.uint64(self.modulus)

    def combine(self, shares: ShareVectors) -> Counts:
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

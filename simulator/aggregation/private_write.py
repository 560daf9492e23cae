"""Private writes: two servers hold keys of a distributed point function, shares of the one cell that a device writes.

The tree of a key is built like the inner levels of IdpfBBCGGI21, the incremental distributed point function of
*Verifiable Distributed Aggregation Functions*, draft-irtf-cfrg-vdaf-20, section "IDPF Specification" (from Boneh,
Boyle, Corrigan-Gibbs, Gilboa and Ishai 2021), with two values at a node. It differs in three points. Only leaves have
values. Values are words modulo 2⁶⁴, not elements of Field64. And leaves too are made by XofFixedKeyAes128, where the
draft takes XofTurboShake128: its verification that a device writes only one leaf needs that, and here nothing is
verified.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mechanisms.local import LocalMechanism, Vectors
from mechanisms.parameter import ParameterError
from simulator.aggregation.aggregator import Aggregator
from simulator.aggregation.deployment import Cost
from simulator.aggregation.secret_sharing import WHOLE, WORD_NBYTES, AdditiveSharing, EncodingRule, Seeds
from simulator.aggregation.servers import EXACT_SEEDS, SharingServers
from simulator.aggregation.transcript import ShareVectors
from simulator.arrays import IntArray, Mask
from simulator.files.extras import import_extra

BLOCK_NBYTES = 16
"""Bytes of a block of AES-128, of a seed, and of a nonce."""
SLOTS = 2
"""Values at a leaf: as many words as a block has."""
DRAFT = bytes([18, 1, 0, 0, 0, 0])
"""Start of the draft's domain separation tags: its version, the class of IDPFs, and the number of IdpfBBCGGI21."""
EXTEND, CONVERT = 0, 1
"""Ends of the tags: seeds are extended to the seeds of their children, and these are converted."""
ZERO, ONE = np.uint64(0), np.uint64(1)


def leaves_of(entries: int) -> int:
    """Return the number of leaves, one for every two entries."""
    return -(-entries // SLOTS)


def levels_of(entries: int) -> int:
    """Return the number of levels of the tree below its root."""
    return max(1, (leaves_of(entries) - 1).bit_length())


def key_nbytes(entries: int) -> int:
    """Return the bytes of a key: a seed, a nonce and, the same in both keys, the correction words.

    Every level has a correction word of a seed and two bits, and the leaves have one of two words.
    """
    levels = levels_of(entries)
    return BLOCK_NBYTES * (2 + levels) + -(-2 * levels // 8) + SLOTS * WORD_NBYTES


@dataclass(frozen=True, eq=False)
class Expansion:
    """The draft's XofFixedKeyAes128 for n writes, each under keys of AES-128 derived from its nonce.

    Parameters
    ----------
    nonces
        (n, 2) uint64.
    context
        Name of the application, part of the domain separation tags.
    """

    nonces: Seeds
    context: bytes = b"crowdveil"

    def children(self, seeds: Seeds) -> tuple[Seeds, Seeds]:
        """Extend seeds (n, k, 2) to the seeds and the control bits of their children, (n, k, 2, 2) and (n, k, 2)."""
        blocks = self._blocks(EXTEND, seeds, SLOTS)
        bits = blocks[..., 0] & ONE
        blocks[..., 0] ^= bits
        return blocks, bits

    def convert(self, seeds: Seeds) -> Seeds:
        """Return the seeds (n, k, 2) from which the next level is made."""
        return self._blocks(CONVERT, seeds, 1)[:, :, 0]

    def values(self, seeds: Seeds) -> Seeds:
        """Return the two words at each node, (n, k, 2), given the seeds as before `convert`."""
        return self._blocks(CONVERT, seeds, 2)[:, :, 1]

    def _blocks(self, use: int, seeds: Seeds, number: int) -> Seeds:
        """Return the first blocks of the output for each seed, (n, k, number, 2)."""
        low, high = seeds[..., np.newaxis, 0] ^ np.arange(number, dtype=np.uint64), seeds[..., np.newaxis, 1]
        mixed = np.stack(np.broadcast_arrays(high, high ^ low), axis=-1)
        of_writes = zip(self._ciphers[use], mixed, strict=True)
        encrypted = b"".join(cipher.encrypt(row.tobytes()) for cipher, row in of_writes)
        blocks: Seeds = np.frombuffer(encrypted, dtype=np.uint64).reshape(mixed.shape) ^ mixed
        return blocks

    @cached_property
    def _ciphers(self) -> Sequence[Sequence[Any]]:
        """The ciphers of each use, of each write."""
        aes, shake = (_cryptodome(name) for name in ("Cipher.AES", "Hash.TurboSHAKE128"))
        ciphers: list[list[Any]] = []
        for use in (EXTEND, CONVERT):
            tag = DRAFT + use.to_bytes(2, "big") + self.context
            start = len(tag).to_bytes(2, "little") + tag
            keys = [shake.new(domain=2, data=start + nonce.tobytes()).read(BLOCK_NBYTES) for nonce in self.nonces]
            ciphers.append([aes.new(key, aes.MODE_ECB) for key in keys])
        return ciphers


def _cryptodome(name: str) -> Any:
    needed = "private writes need pycryptodomex"
    return import_extra(f"Cryptodome.{name}", needed=needed, extra="crypto", package="pycryptodomex")


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of n writes.

    Attributes
    ----------
    roots
        (2, n, 2) uint64: by server, the seed of the root, of two words.
    expansion
        The expansion of seeds, by the nonces.
    seeds
        (levels, n, 2) uint64: by level, the correction words of the seeds.
    bits
        (levels, n, 2) uint64: by level, the correction words of the left and the right child's control bit, 0 or 1.
    values
        (n, 2) uint64: the correction words of the values at a leaf.
    """

    roots: Seeds
    expansion: Expansion
    seeds: Seeds
    bits: Seeds
    values: Seeds


def write(leaves: IntArray, values: Seeds, roots: Seeds, expansion: Expansion, levels: int) -> Keys:
    """Make the keys of n writes: what devices do.

    Parameters
    ----------
    leaves
        (n,) int64, the leaf at which each writes, below 2^levels.
    values
        (n, 2) uint64, the values that it writes there. An honest device writes a 1 and a 0.
    roots, expansion
        As of `Keys`, drawn by the device.
    levels
        Levels of the tree.
    """
    rows = np.arange(len(leaves))
    seeds, control = np.moveaxis(roots, 0, 1), np.tile(np.array([ZERO, ONE]), (len(leaves), 1))
    seed_words, bit_words = [], []
    for level in range(levels):
        right = (leaves >> (levels - 1 - level)) & 1
        children, bits = expansion.children(seeds)
        # Off the path the children of both servers become equal; on the path exactly one has its control bit set.
        seed_word = children[rows, 0, 1 - right] ^ children[rows, 1, 1 - right]
        bit_word = bits[:, 0] ^ bits[:, 1]
        bit_word[rows, right] ^= ONE
        before = children[rows, :, right] ^ control[..., np.newaxis] * seed_word[:, np.newaxis]
        control = bits[rows, :, right] ^ control * bit_word[rows, right, np.newaxis]
        seeds = expansion.convert(before)
        seed_words.append(seed_word)
        bit_words.append(bit_word)
    first, second = np.moveaxis(expansion.values(before), 1, 0)
    difference = values - first + second
    signed = np.where(control[:, 1:] == ONE, -difference, difference)
    return Keys(roots, expansion, np.stack(seed_words), np.stack(bit_words), signed)


def expand(keys: Keys, server: int, entries: int) -> ShareVectors:
    """Expand the keys of a server, 0 or 1, to its shares of the vectors, (n, entries) uint64: what the server does."""
    leaves, n = leaves_of(entries), keys.roots.shape[1]
    seeds, control = keys.roots[server][:, np.newaxis], np.full((n, 1), server, dtype=np.uint64)
    for height, seed_word, bit_word in zip(range(len(keys.seeds))[::-1], keys.seeds, keys.bits, strict=True):
        children, bits = keys.expansion.children(seeds)
        children ^= control[..., np.newaxis, np.newaxis] * seed_word[:, np.newaxis, np.newaxis]
        bits ^= control[..., np.newaxis] * bit_word[:, np.newaxis]
        needed = -(-leaves >> height)  # above the leaves that stand for entries
        before = children.reshape(n, 2 * children.shape[1], 2)[:, :needed]
        control = bits.reshape(n, 2 * bits.shape[1])[:, :needed]
        seeds = keys.expansion.convert(before) if height else before
    shares = keys.expansion.values(before) + control[..., np.newaxis] * keys.values[:, np.newaxis]
    shares = shares.reshape(n, SLOTS * leaves)[:, :entries]
    return -shares if server else shares


@dataclass(frozen=True)
class PointSharing(AdditiveSharing):
    """Sharing among two servers by distributed point functions: a key for each server, of logarithmic size.

    The servers' shares add up to the vector modulo 2⁶⁴. A key alone is pseudorandom whatever is written, provided that
    AES-128 with a fixed key is like a random permutation (the draft, "Safe Usage of XOFs"). The seeds come from the
    generator of the run, which is no cipher. Sums of many reports are drawn as in `AdditiveSharing`.
    """

    servers: int = field(default=2, init=False)
    modulus: int = field(default=WHOLE, init=False)

    def split(self, vectors: Vectors, *, rng: np.random.Generator) -> ShareVectors:
        """Make the keys of each device's vector and expand them, (2, n, *shape) uint64.

        A vector with other entries than 0 at one leaf only takes one pair of keys. Others, which no honest device
        writes, take a pair for each leaf, and a server adds up what it expands them to.

        Parameters
        ----------
        vectors
            (n, *shape) int64.
        rng
            Generator of the seeds and the nonces.
        """
        n, entries = len(vectors), math.prod(vectors.shape[1:])
        at_leaves = np.zeros((n, leaves_of(entries), SLOTS), dtype=np.int64)
        at_leaves.reshape(n, SLOTS * leaves_of(entries))[:, :entries] = vectors.reshape(n, entries)
        written: Mask = np.any(at_leaves, axis=2)
        written[:, 0] |= ~written.any(axis=1)
        device, leaf = np.nonzero(written)
        *roots, nonces = rng.integers(0, WHOLE - 1, size=(3, len(leaf), 2), dtype=np.uint64, endpoint=True)
        values = at_leaves[device, leaf].view(np.uint64)
        keys = write(leaf, values, np.stack(roots), Expansion(nonces), levels_of(entries))
        first = np.searchsorted(device, np.arange(n))
        shares = [np.add.reduceat(expand(keys, server, entries), first, axis=0) for server in (0, 1)]
        return np.stack(shares).reshape(2, *vectors.shape)


ONE_CELL = "must be another kind for a mechanism whose report is not one cell or symbol"
"""Rule of the servers of private writes, which share a single 1."""


@dataclass(frozen=True, kw_only=True)
class PrivateWrite(SharingServers):
    """Deployment in which two servers hold keys of a distributed point function: of the cell that a report names.

    A device sends each server a key, which the server stores and expands to a share of the report's encoding. There is
    no proof that a key is of a single 1 (such as Poplar1's in the draft): a device can add any values to the two
    entries of a leaf by one pair of keys, and a server notices nothing.

    Parameters
    ----------
    servers
        2.
    paired, handles, exact_words
        As of `SharingServers`.
    exact_writes
        Greatest number of reports for which keys are made and expanded.

    Raises
    ------
    ParameterError
        If there are not two servers, `robust` is set, or shares are to be paired under device numbers.
    """

    exact_writes: int = EXACT_SEEDS
    kind: ClassVar[str] = "private_write"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.servers != 2:
            raise ParameterError("servers", "must be 2 for private writes: a point function has two keys", self.servers)
        if self.robust:
            raise ParameterError("robust", "must be false for private writes, which have no proof here", self.robust)

    @property
    def sharing(self) -> PointSharing:
        """The sharing that makes and expands keys."""
        return PointSharing()

    def makes_shares(self, mechanism: LocalMechanism, devices: int) -> bool:
        """Return whether keys are made and expanded for the reports of this number of devices."""
        return super().makes_shares(mechanism, devices) and devices * mechanism.rounds <= self.exact_writes

    def aggregator(self, mechanism: LocalMechanism, *, devices: int, rng: np.random.Generator) -> Aggregator:
        """Return the aggregator of one query.

        Raises
        ------
        ParameterError
            If a report is not one cell or symbol.
        """
        check_one_cell(mechanism)
        return super().aggregator(mechanism, devices=devices, rng=rng)

    def cost(self, mechanism: LocalMechanism) -> Cost:
        """Return the cost: a device sends each server a key."""
        note = (
            f"Keys are made and expanded for up to {self.exact_writes:,} reports and {self.exact_words:,} words of "
            "shares a query; for more, the servers' sums are drawn. No proof stops a device that writes another value "
            "than 1, or a second cell."
        )
        cost = super().cost(mechanism)
        return replace(cost, notes=(note, *cost.notes))

    def share_nbytes(self, mechanism: LocalMechanism) -> int:
        """Return the bytes of a key."""
        return key_nbytes(math.prod(mechanism.tally_shape))


def check_one_cell(mechanism: LocalMechanism) -> None:
    """Raise ParameterError for a mechanism whose reports are not encoded by a single 1."""
    try:
        one = EncodingRule.of(mechanism) == EncodingRule(questions=1, ones=1)
    except ParameterError:
        one = False
    if not one:
        raise ParameterError("kind", ONE_CELL, type(mechanism).__name__)

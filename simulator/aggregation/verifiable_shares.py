"""Costs of writing to one cell among many through two servers (private writes), and of range proofs on shares."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.local import DistributedLaplace, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError, check_integer

SEED_BITS = 128
"""λ, the bits of the generator's seed: those of an AES-128 key."""
WORD_BITS = 64
FEW_CELLS = 4096


@dataclass(frozen=True)
class PrivateWrite:
    """Two-server private writes by distributed point functions: bytes and operations per report.

    The papers assume that a device can write into a cell's counter while no server learns which cell (ALP cites
    Ostrovsky and Shoup 1997, *Private Information Storage*, the first to do so with less communication than there are
    cells). The present method is a distributed point function: a device sends each of two servers a key, which the
    server expands to a share of the one-hot vector. Nothing is expanded here; the class computes the costs, for
    comparison with those of `AdditiveSharing`.

    Sizes are those of Boyle, Gilboa and Ishai 2016, *Function Secret Sharing: Improvements and Extensions*, fig 1 and
    sec 3.2: a key is the root's seed (λ bits), a correction word of a seed and two bits (λ + 2) for each level of the
    tree, and a last one that holds the value; n(λ + 2) + λ + log₂|G| bits for 2ⁿ cells. A leaf's seed of λ bits
    holds λ/64 counters, which saves log₂(λ/64) levels ("early termination"). Keys in their 2015 paper, *Function Secret
    Sharing*, were about 4 times as long.

    Parameters
    ----------
    cells
        Counters that can be written to, V ≥ 1.
    counter_bits
        Bits of a counter, log₂|G|: 1…128.
    """

    cells: int
    counter_bits: int = WORD_BITS

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("cells", self.cells, at_least=1)
        check_integer("counter_bits", self.counter_bits, at_least=1, at_most=SEED_BITS)

    @property
    def counters_per_leaf(self) -> int:
        """Counters that one leaf's seed holds."""
        return SEED_BITS // self.counter_bits

    @property
    def leaves(self) -> int:
        """Leaves of the tree that hold the counters."""
        return -(-self.cells // self.counters_per_leaf)

    @property
    def levels(self) -> int:
        """Levels of the tree below its root."""
        return (self.leaves - 1).bit_length()

    @property
    def key_bits(self) -> int:
        """Bits of one server's key."""
        return SEED_BITS + self.levels * (SEED_BITS + 2) + self.counters_per_leaf * self.counter_bits

    @property
    def report_nbytes(self) -> int:
        """Bytes that a device sends: a key for each of two servers."""
        return 2 * -(-self.key_bits // 8)

    @property
    def device_expansions(self) -> int:
        """Calls of the generator (one seed to two) that a device makes: along its cell's path in both trees."""
        return 2 * self.levels

    @property
    def server_expansions(self) -> int:
        """Calls of the generator that a server makes to expand a key over all cells: one per node above the leaves."""
        return sum(-(-self.leaves // 2**height) for height in range(1, self.levels + 1))

    @property
    def server_additions(self) -> int:
        """Counters to which a server adds for one report: all of them."""
        return self.cells

    @property
    def vector_nbytes(self) -> int:
        """Bytes of the same report sent as one vector and one seed."""
        return -(-self.cells * self.counter_bits // 8) + SEED_BITS // 8

    @property
    def saving(self) -> float:
        """Bytes of the report as a vector and a seed over those as keys; below 1 for few cells."""
        return self.vector_nbytes / self.report_nbytes

    @classmethod
    def break_even(cls, *, counter_bits: int = WORD_BITS) -> int:
        """Return the least number of cells from which on keys are shorter than a vector and a seed."""
        # Keys grow with the logarithm of the cells: from FEW_CELLS on they are shorter for any size of counter.
        longer = [cells for cells in range(1, FEW_CELLS) if cls(cells, counter_bits).saving <= 1.0]
        return longer[-1] + 1


FIELD_NBYTES, SEED_NBYTES = 16, 32
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
        # For long vectors a few reports suffice and save memory: those of local hashing rarely have equally many ones.
        probes = min(PROBES, max(FEWEST_PROBES, PROBE_WORDS // math.prod(mechanism.tally_shape)))
        truth = (np.arange(probes) % (mechanism.cells + 1)).astype(np.int32)
        coins = mechanism.toss(mechanism.enrol(probes, rng=rng), rng=rng)
        rows = np.concatenate(
            [
                mechanism.encode(mechanism.answer(round_, truth, coins)).reshape(-1, mechanism.tally_shape[-1])
                for round_ in range(1, mechanism.rounds + 1)
            ]
        )
        # Noise added to a vector is unbounded, even if the sampled entries happen to be only 0 and 1.
        if isinstance(mechanism, DistributedLaplace) or not ((rows == 0) | (rows == 1)).all():
            kind = type(mechanism).__name__
            raise ParameterError("robust", "must be false where honest reports hold more than noughts and ones", kind)
        ones = np.unique(rows.sum(axis=1))
        return cls(math.prod(mechanism.tally_shape[:-1]), int(ones[0]) if len(ones) == 1 else None)

    def holds(self, vectors: Vectors) -> npt.NDArray[np.bool_]:
        """Return which of (n, *tally_shape) vectors are valid encodings, (n,) bool."""
        bits: npt.NDArray[np.bool_] = ((vectors == 0) | (vectors == 1)).reshape(len(vectors), -1).all(axis=1)
        if self.ones is None:
            return bits
        rows = vectors.reshape(len(vectors), self.questions, -1)
        # Sums of rows with other entries than 0 and 1 may wrap around; `bits` already excludes these.
        whole: npt.NDArray[np.bool_] = (rows.sum(axis=2) == self.ones).all(axis=1)
        return bits & whole

    def __str__(self) -> str:
        """Return the rule in words."""
        if self.ones is None:
            return "noughts and ones"
        ones = "one 1" if self.ones == 1 else f"{self.ones} ones"
        return f"noughts and ones with {ones} in each row" if self.questions > 1 else f"{ones}, noughts elsewhere"


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
        Entries per gadget call; by default about √length, as the draft recommends.

    Raises
    ------
    ParameterError
        If a number is out of range.
    """

    length: int
    servers: int
    chunk_length: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers and fill in the chunk length."""
        check_integer("length", self.length, at_least=1)
        check_integer("servers", self.servers, at_least=2, at_most=MOST_SERVERS)
        chunk = max(1, round(math.sqrt(self.length))) if self.chunk_length is None else self.chunk_length
        object.__setattr__(self, "chunk_length", check_integer("chunk_length", chunk, at_least=1))

    @property
    def proof_length(self) -> int:
        """Field elements of the proof: the gadget's wire seeds, and the coefficients of its polynomial.

        arity + degree·(P − 1) + 1, where P is the least power of two that is at least 1 + calls.
        """
        calls = -(-self.length // self._chunk)
        points = 1 << calls.bit_length()  # the least power of two above `calls`
        return self._arity + MUL_DEGREE * (points - 1) + 1

    @property
    def leader_share_nbytes(self) -> int:
        """Bytes of the first server's share: vector, proof, and the blind of its joint randomness."""
        return FIELD_NBYTES * (self.length + self.proof_length) + SEED_NBYTES

    @property
    def helper_share_nbytes(self) -> int:
        """Bytes of any other server's share: a seed of vector and proof, and a blind."""
        return 2 * SEED_NBYTES

    @property
    def public_share_nbytes(self) -> int:
        """Bytes of the share that every server receives: a part of the joint randomness for each server."""
        return SEED_NBYTES * self.servers

    @property
    def report_nbytes(self) -> int:
        """Bytes that a device sends, the public share counted once."""
        return self.leader_share_nbytes + (self.servers - 1) * self.helper_share_nbytes + self.public_share_nbytes

    @property
    def verifier_share_nbytes(self) -> int:
        """Bytes that each server sends the others per report: 1 + arity + 1 elements, and its part of randomness."""
        return FIELD_NBYTES * (self._arity + 2) + SEED_NBYTES

    @property
    def _chunk(self) -> int:
        return 1 if self.chunk_length is None else self.chunk_length

    @property
    def _arity(self) -> int:
        return 2 * self._chunk

"""Costs of writing to one cell among many through two servers (private writes), and of range proofs on shares."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.local import DistributedLaplace, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError, check_integer

SEED_BITS = 128
"""λ, the seed of the generator: AES-128's."""
WORD_BITS = 64
FEW_CELLS = 4096


@dataclass(frozen=True)
class PrivateWrite:
    """Two-server private writes by distributed point functions: bytes and operations a report.

    The papers assume that a device can write into a cell's counter while no server learns where (ALP cites Ostrovsky
    and Shoup 1997, *Private Information Storage*, the first to do so with less communication than there are cells).
    Today's way is a distributed point function: a device sends each of two servers a key, which the server expands to
    a share of the one-hot vector. Nothing is expanded here; these are the costs, beside those of `AdditiveSharing`.

    Sizes are those of Boyle, Gilboa and Ishai 2016, *Function Secret Sharing: Improvements and Extensions*, fig 1 and
    sec 3.2: a key is the root's seed (λ bits), a correction word of a seed and two bits (λ + 2) for each level of the
    tree, and a last one that carries the value; n(λ + 2) + λ + log₂|G| bits for 2ⁿ cells. A leaf's seed of λ bits
    holds λ/64 counters, which saves log₂(λ/64) levels ("early termination"). Their 2015 paper, *Function Secret
    Sharing*, had about 4 times as much.

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
        """Bytes a device sends: a key for each of two servers."""
        return 2 * -(-self.key_bits // 8)

    @property
    def device_expansions(self) -> int:
        """Calls of the generator (one seed to two) that a device makes: both paths to its cell."""
        return 2 * self.levels

    @property
    def server_expansions(self) -> int:
        """Calls of the generator that a server makes to expand one key over all cells: a node above leaves each."""
        return sum(-(-self.leaves // 2**height) for height in range(1, self.levels + 1))

    @property
    def server_additions(self) -> int:
        """Counters that a server adds to, a report: all of them."""
        return self.cells

    @property
    def vector_nbytes(self) -> int:
        """What the same report costs as one vector and one seed."""
        return -(-self.cells * self.counter_bits // 8) + SEED_BITS // 8

    @property
    def saving(self) -> float:
        """How many times fewer bytes than as a vector; below 1 for few cells."""
        return self.vector_nbytes / self.report_nbytes

    @classmethod
    def break_even(cls, *, counter_bits: int = WORD_BITS) -> int:
        """Return the number of cells from which on keys are shorter than a vector and a seed."""
        # Keys grow with the logarithm: beyond so many cells they are shorter for any counter.
        longer = [cells for cells in range(1, FEW_CELLS) if cls(cells, counter_bits).saving <= 1.0]
        return longer[-1] + 1


FIELD_NBYTES, SEED_NBYTES = 16, 32
"""An element of Field128, and a seed of XofTurboShake128 (draft-irtf-cfrg-vdaf-20)."""
MOST_SERVERS = 255
MUL_DEGREE = 2
PROBES, FEWEST_PROBES, PROBE_WORDS = 256, 8, 2**22


@dataclass(frozen=True)
class EncodingRule:
    """What a valid encoding is: noughts and ones, and so many ones in each question.

    Parameters
    ----------
    questions
        A report answers so many; its encoding is that many rows side by side.
    ones
        How many ones a row has; None where any number may be.
    """

    questions: int
    ones: int | None

    @classmethod
    def of(cls, mechanism: LocalMechanism) -> "EncodingRule":
        """Return the strictest rule that honest reports keep, found by making some of them.

        Rows of a `tally_shape` (cells, outputs) are questions; one of (outputs,) is a single one. The rule is the
        number of ones a row has in every one of up to 256 honest reports, or none if they differ, as with
        local hashing, whose reports support any number of symbols.

        Raises
        ------
        ParameterError
            If honest reports are not made of noughts and ones: then no range proves anything about them.
        """
        rng = np.random.default_rng(0)
        # Of long vectors a few are enough, as local hashing's hardly ever have equally many ones, and take less memory.
        probes = min(PROBES, max(FEWEST_PROBES, PROBE_WORDS // math.prod(mechanism.tally_shape)))
        truth = (np.arange(probes) % (mechanism.cells + 1)).astype(np.int32)
        coins = mechanism.toss(mechanism.enrol(probes, rng=rng), rng=rng)
        rows = np.concatenate(
            [
                mechanism.encode(mechanism.answer(round_, truth, coins)).reshape(-1, mechanism.tally_shape[-1])
                for round_ in range(1, mechanism.rounds + 1)
            ]
        )
        # Noise added to a vector may be anything, however rarely it is more than a nought or a one.
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
        # Sums of rows that are not all bits may wrap around; those are refused already.
        whole: npt.NDArray[np.bool_] = (rows.sum(axis=2) == self.ones).all(axis=1)
        return bits & whole

    def __str__(self) -> str:
        """In words."""
        if self.ones is None:
            return "noughts and ones"
        ones = "one 1" if self.ones == 1 else f"{self.ones} ones"
        return f"noughts and ones with {ones} in each row" if self.questions > 1 else f"{ones}, noughts elsewhere"


@dataclass(frozen=True)
class Prio3Histogram:
    """The published sizes of a proof that a shared vector is one-hot, in bytes.

    Prio3Histogram of *Verifiable Distributed Aggregation Functions*, draft-irtf-cfrg-vdaf-20: the fully linear
    proof of Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai (CRYPTO 2019) over Field128 with one ParallelSum(Mul)
    gadget called once a chunk ("Validity Circuits", "Prio3Histogram", "Message Serialization"). The sums of rows are
    affine, so a vector of several one-hot rows, or of a fixed number of ones, takes a proof of the same size.

    **What is simulated.** No proof is made: the simulator looks at the plain vector, accepts exactly those that keep
    the `EncodingRule`, and charges these bytes. The real proof's chance of passing a bad vector is taken for 0, and
    shares stay modulo 2⁶⁴ though Prio3's are modulo the prime of Field128.

    Parameters
    ----------
    length
        Entries of the vector.
    servers
        2…255.
    chunk_length
        Entries a gadget call takes; by default about √length, as the draft recommends.

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

        arity + degree·(P − 1) + 1, P the least power of two of at least 1 + calls.
        """
        calls = -(-self.length // self._chunk)
        points = 1 << calls.bit_length()  # the least power of two above `calls`
        return self._arity + MUL_DEGREE * (points - 1) + 1

    @property
    def leader_share_nbytes(self) -> int:
        """The first server's share: vector, proof, and the blind of its joint randomness."""
        return FIELD_NBYTES * (self.length + self.proof_length) + SEED_NBYTES

    @property
    def helper_share_nbytes(self) -> int:
        """Any other server's: a seed of vector and proof, and a blind."""
        return 2 * SEED_NBYTES

    @property
    def public_share_nbytes(self) -> int:
        """What every server gets: a part of the joint randomness for each."""
        return SEED_NBYTES * self.servers

    @property
    def report_nbytes(self) -> int:
        """What a device sends, the public share once."""
        return self.leader_share_nbytes + (self.servers - 1) * self.helper_share_nbytes + self.public_share_nbytes

    @property
    def verifier_share_nbytes(self) -> int:
        """What each server sends the others of each report: 1 + arity + 1 elements, and its part of the randomness."""
        return FIELD_NBYTES * (self._arity + 2) + SEED_NBYTES

    @property
    def _chunk(self) -> int:
        return 1 if self.chunk_length is None else self.chunk_length

    @property
    def _arity(self) -> int:
        return 2 * self._chunk

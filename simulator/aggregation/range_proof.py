"""Range proof: what an honest report may look like behind shares, and what proving it costs."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.local import DistributedLaplace, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError, check_integer

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

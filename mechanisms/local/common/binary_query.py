"""Binary queries: the distribution of the answers to "are you in cell c?", their coins and their counts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.packed_bits import AnswerReports, set_answers, toss_rows, words_of
from mechanisms.parameter import ParameterError
from mechanisms.privacy.hockey_stick import check_distribution

# The outputs a device gives in all rounds, by number.
Answers: TypeAlias = tuple[int, ...]
# Greatest rounding error of a probability that is 0: a claim must not depend on it.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, slots=True)
class BinaryQueryCoins:
    """Answers drawn for every device, about every cell it is not in and about the cell it may be in.

    Parameters
    ----------
    no : (n, rounds, outputs − 1, ceil(cells / 64)) uint64
        Packed answers of each round about the cells the device is not in.
    yes : (n, rounds) uint8
        Answers about the cell the device is in; one per round suffices, since it is in one cell at most.
    """

    no: NDArray[np.uint64]
    yes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.yes)


@dataclass(frozen=True, kw_only=True)
class BinaryQuery:
    """The joint distribution of a device's answers to one yes/no question, asked once or several times.

    Constructed by `build`. The answers about different cells are independent, as are those of different devices. The
    answers of one device about one cell in several rounds may depend on each other; this is their joint distribution.

    Parameters
    ----------
    outputs : tuple of str
        The names of the outputs, by number.
    answers : tuple of tuple of int
        The possible answers: one output per round.
    yes, no : tuple of float
        The probability of each possible answer, from a device in the cell and from one that is not.
    """

    outputs: tuple[str, ...]
    answers: tuple[Answers, ...]
    yes: tuple[float, ...]
    no: tuple[float, ...]

    @classmethod
    def build(
        cls, outputs: tuple[str, ...], *, yes: Mapping[Answers, float], no: Mapping[Answers, float]
    ) -> "BinaryQuery":
        """Build a question from the distributions of the answers, after checking them.

        Parameters
        ----------
        outputs : tuple of str
            The names of the outputs, by number.
        yes, no : mapping of answers to probability
            Answers of all rounds, as numbers of outputs, and their probabilities, which sum to 1 within 1e-9.

        Raises
        ------
        ParameterError
            If `yes` or `no` is no probability distribution.
        """
        possible = sorted({a for law in (yes, no) for a, p in law.items() if p != 0.0})
        laws = []
        for field, law in (("yes", yes), ("no", no)):
            masses = check_distribution(field, [law.get(answers, 0.0) for answers in possible])
            laws.append(tuple((masses / masses.sum()).tolist()))
        return cls(outputs=outputs, answers=tuple(possible), yes=laws[0], no=laws[1])

    @property
    def rounds(self) -> int:
        """The number of rounds, in each of which the question is asked once."""
        return len(self.answers[0])

    @property
    def given(self) -> NDArray[np.bool_]:
        """Whether an answer has an output in a round, (answers, rounds, outputs) bool."""
        return np.asarray(np.array(self.answers)[:, :, np.newaxis] == np.arange(len(self.outputs)))

    def in_round(self, round_: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the answer distributions in a round, from 1, of a device in the cell and one not: (outputs,) each."""
        given = self.given[:, round_ - 1].astype(np.float64)
        return np.array(self.yes) @ given, np.array(self.no) @ given

    @property
    def only_from_yes(self) -> tuple[Answers, ...]:
        """The answers that only a device in the cell can give."""
        return tuple(a for a, p, q in zip(self.answers, self.yes, self.no, strict=True) if p > 0.0 and q == 0.0)

    @property
    def only_from_no(self) -> tuple[Answers, ...]:
        """The answers that only a device not in the cell can give."""
        return tuple(a for a, p, q in zip(self.answers, self.yes, self.no, strict=True) if q > 0.0 and p == 0.0)

    def name(self, answers: Answers) -> str:
        """Return answers as text: ``(⊥1, ⊥3)``, or ``Yes`` if there is one round."""
        names = [self.outputs[output] for output in answers]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def words(self, cells: int) -> int:
        """Return the number of 64-bit words per device of coins, one round's answers and temporary arrays."""
        return ((self.rounds + 1) * (len(self.outputs) - 1) + 2) * words_of(cells)

    def toss(self, n: int, cells: int, *, rng: np.random.Generator) -> BinaryQueryCoins:
        """Draw every device's answers in every round, for the cells it is not in and the one it may be in."""
        planes = np.zeros((n, self.rounds, len(self.outputs) - 1, words_of(cells)), dtype=np.uint64)
        # Output 0 in every round needs no bit, so it comes last and has the remaining probability.
        order = sorted((i for i, q in enumerate(self.no) if q > 0.0), key=lambda i: not any(self.answers[i]))
        taken = np.zeros((n, words_of(cells)), dtype=np.uint64)
        for place, i in enumerate(order):
            rest = order[place:]
            if not any(self.answers[i]):
                break
            share = self.no[i] / math.fsum(self.no[j] for j in rest) if len(rest) > 1 else 1.0
            drawn = toss_rows(n, cells, share, rng=rng, unless=taken)
            for round_, output in enumerate(self.answers[i]):
                if output:
                    planes[:, round_, output - 1] |= drawn
            taken |= drawn
        possible = np.flatnonzero(np.array(self.yes) > 0.0)
        bounds = np.cumsum(np.array(self.yes)[possible])[:-1]
        outcome = possible[np.searchsorted(bounds, rng.random(n), side="right")]
        return BinaryQueryCoins(planes, np.array(self.answers, dtype=np.uint8)[outcome])

    def answer(self, round_: int, truth: NDArray[np.int32], coins: BinaryQueryCoins, cells: int) -> AnswerReports:
        """Return one round's answers about every cell; a device of truth 0 is in none of them."""
        planes = coins.no[:, round_ - 1].copy()
        set_answers(planes, truth, np.ascontiguousarray(coins.yes[:, round_ - 1]))
        return AnswerReports(planes, cells)

    def sample_counts(self, true_counts: NDArray[np.int64], *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw (rounds, cells, outputs) counts: a multinomial of the joint answers for each kind of holder.

        Parameters
        ----------
        true_counts : (cells + 1,) int64
            Devices outside and in each cell.
        """
        inside = true_counts[1:]
        joint = rng.multinomial(inside, self.yes) + rng.multinomial(true_counts.sum() - inside, self.no)
        counts = np.tensordot(joint, self.given.astype(np.int64), axes=([1], [0]))
        return np.ascontiguousarray(counts.transpose(1, 0, 2)).astype(np.int64, copy=False)


def remainder(field: str, value: float, *shares: float) -> float:
    """Return 1 minus the sum of the shares, or 0 if the result is only a rounding error.

    Raises
    ------
    ParameterError
        Naming `field` and its `value`, if the shares sum to more than 1.
    """
    left = 1.0 - math.fsum(shares)
    if left < -ROUNDING:
        others = math.fsum(shares) - value
        raise ParameterError(field, f"must be at most {1.0 - others:g}, 1 minus the sum of the others", value)
    return left if left > ROUNDING else 0.0


# Limits of a batch: bytes of its coins and reports, and number of devices.
BATCH_BYTES = 2**26
BATCH_DEVICES = 2**20


def batch_of_rows(words: int) -> int:
    """Return the number of devices per batch if each needs `words` 64-bit words in all."""
    return max(1, min(BATCH_DEVICES, BATCH_BYTES // (8 * words)))

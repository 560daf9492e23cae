"""Harness of the checks: devices in batches, a random stream for each check, estimates as affine maps."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.findings import Findings
from mechanisms.local.mechanism import Coins, Counts, Truth, Vectors

# Queries on which the map is tried, beside those from which it is found.
TRIED = 24
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class AffineEstimator:
    """Ŷ = A·counts + b for given numbers asked and counted.

    Counts obey relations (a round's outputs sum to its devices), so A and b are not unique; on counts that devices
    can make, and on what one device adds to them, they are.

    Parameters
    ----------
    matrix : (rounds · tally size, cells) float64
    constant : (cells,) float64
    """

    matrix: NDArray[np.float64]
    constant: NDArray[np.float64]

    @classmethod
    def fit(cls, trial: "Harness", counted: tuple[int, ...], asked: tuple[int, ...]) -> "AffineEstimator | None":
        """Find the map from the estimates of random crowds, try it on others, and return it if it is right."""
        size = trial.rounds * int(np.prod(trial.shape))
        rng = trial.generator("affine")
        queries = 2 * size + 2 * TRIED
        truth = rng.integers(0, trial.cells + 1, max(asked) * queries).astype(np.int32)
        # A few kinds of crowd, for a map found on mixtures only may be off at the edges.
        truth[: max(asked) * TRIED] = np.repeat(rng.integers(0, trial.cells + 1, TRIED), max(asked))
        vectors = trial.vectors(truth, rng=rng).reshape(queries, max(asked), trial.rounds, -1)
        rows = np.stack([vectors[:, :heard, r].sum(axis=1) for r, heard in enumerate(counted)], axis=1)
        rows = rows[rng.permutation(queries)]
        shape = (trial.rounds, *trial.shape)
        counts = rows.reshape(queries, -1).astype(np.float64)
        estimates = np.stack(
            [trial.mechanism.estimate(row.reshape(shape), counted=counted, asked=asked).count for row in rows]
        )
        design = np.column_stack([counts, np.ones(queries)])
        solution = np.linalg.lstsq(design[TRIED:], estimates[TRIED:], rcond=None)[0]
        miss = np.abs(design @ solution - estimates).max()
        if not miss <= TOLERANCE * (1.0 + np.abs(estimates).max()):
            return None
        return cls(solution[:-1], solution[-1])

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the estimates of (n, rounds, *tally_shape) counts, (n, cells)."""
        estimates: NDArray[np.float64] = counts.reshape(len(counts), -1) @ self.matrix + self.constant
        return estimates

    def contribution(self, vectors: NDArray[np.int64], *, devices: int) -> NDArray[np.float64]:
        """Return what each of (n, rounds, *tally_shape) reports adds, (n, cells), a crowd's b shared out equally."""
        added: NDArray[np.float64] = vectors.reshape(len(vectors), -1) @ self.matrix + self.constant / devices
        return added


# Checks that compare samples; each may spend an equal share of the level.
STATISTICAL_CHECKS = 9
# Devices of one simulated query, where whole queries are repeated.
CROWD = 24
# One device's encodings are held densely, and every cell's estimate is compared.
MOST_CELLS = 16
# Claims are audited for every cell of so many. Reports about more have so many outcomes that samples prove little.
MOST_AUDITED = 4
# Numbers of encodings held at a time, 64 MB.
HELD = 1 << 23


@dataclass(frozen=True)
class Harness:
    """A mechanism, how hard to look at it, and what its devices say.

    Parameters
    ----------
    mechanism : LocalMechanism
        Of whatever type: it may lack what a protocol asks for.
    seed : int
        Of everything drawn.
    level : float
        Probability of any false alarm.
    devices : int
        Devices of each truth whose reports are drawn, where distributions are compared.
    queries : int
        Queries over which claims are audited: 1 and, if more, 2.
    thorough : bool
        Whether intervals and stated errors are also compared in larger crowds.
    """

    mechanism: Any
    seed: int
    level: float
    devices: int
    queries: int
    thorough: bool = False

    @property
    def cells(self) -> int:
        """V."""
        return int(self.mechanism.cells)

    @property
    def rounds(self) -> int:
        """Answers a device gives per query."""
        return int(self.mechanism.rounds)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one round's tally."""
        return tuple(self.mechanism.tally_shape)

    @property
    def audited(self) -> tuple[int, ...]:
        """The truths for which claims are audited: outside and every cell, or the first, the middle and the last."""
        every = tuple(range(self.cells + 1))
        return every if self.cells <= MOST_AUDITED else (0, 1, (self.cells + 1) // 2, self.cells)

    @property
    def columns(self) -> list[int]:
        """Where the audited truths stand in a tally; everything, if it has no place for each cell."""
        if self.shape[0] == self.cells:
            return [cell - 1 for cell in self.audited if cell]
        return list(self.audited if self.shape[0] == self.cells + 1 else range(self.shape[0]))

    @property
    def calls(self) -> int:
        """Devices, but no more than 40,000: for what calls the mechanism once for each of so many."""
        return min(self.devices, 40_000)

    @property
    def repeats(self) -> int:
        """Queries repeated, where whole queries are."""
        return max(200, self.devices // 12)

    def generator(self, name: str) -> np.random.Generator:
        """Return the generator of this name: the same one each time, and independent of every other name's."""
        return np.random.default_rng(np.random.SeedSequence((self.seed, zlib.crc32(name.encode()))))

    def alpha(self, findings: Findings, comparisons: int) -> float:
        """Return the level of each of a check's comparisons, all the check will make, and write both down."""
        alpha = self.level / STATISTICAL_CHECKS / max(comparisons, 1)
        findings.figures["comparisons"] = comparisons
        findings.figures["alpha"] = alpha
        return alpha

    def toss(self, devices: int, *, rng: np.random.Generator) -> Coins:
        """Return the coins of newly enrolled devices."""
        return self.mechanism.toss(self.mechanism.enrol(devices, rng=rng), rng=rng)

    def answers(self, truth: Truth, coins: Coins) -> Vectors:
        """Return every round's encoded reports, (n, rounds, *tally_shape) int64, of devices that stay."""
        return self._reports([truth] * self.rounds, coins)

    def vectors(self, truth: Truth, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of newly enrolled devices, (n, rounds, *tally_shape) int64.

        At the moment of `truth_round` they are in the cells `truth`, at each other round's in random cells. A device
        takes its cell at the first round whose report depends on it, and answers the later rounds about that cell.
        """
        coins = self.toss(len(truth), rng=rng)
        if self.rounds == 1:
            return self.answers(truth, coins)
        journey = rng.integers(0, self.cells + 1, (self.rounds, len(truth)), dtype=np.int32)
        journey[self.mechanism.truth_round - 1] = truth
        journey[self.first_use :] = journey[self.first_use - 1]
        return self._reports(list(journey), coins)

    def _reports(self, truths: list[Truth], coins: Coins) -> Vectors:
        """Return the encoded reports of each round, given the cells that devices answer about in it."""
        encode, answer = self.mechanism.encode, self.mechanism.answer
        return np.stack([encode(answer(number, truth, coins)) for number, truth in enumerate(truths, 1)], axis=1)

    @cached_property
    def first_use(self) -> int:
        """The first round, from 1, whose report depends on the device's cell; `truth_round` if none does."""
        coins = self.toss(self.devices, rng=self.generator("first use"))
        cells = [np.full(self.devices, cell, dtype=np.int32) for cell in range(self.cells + 1)]
        for number in range(1, self.rounds + 1):
            outside, *inside = (self.mechanism.encode(self.mechanism.answer(number, cell, coins)) for cell in cells)
            if any(not np.array_equal(outside, reports) for reports in inside):
                return number
        return int(self.mechanism.truth_round)

    def batches(self, devices: int, *, of: int = 1) -> list[int]:
        """Return sizes, multiples of `of`, of batches that hold `devices` in all and whose encodings fit `HELD`."""
        most = max(HELD // (self.rounds * int(np.prod(self.shape))) // of, 1) * of
        return [min(most, devices - start) for start in range(0, devices, most)]

    def crowds(self, truth: Truth, repeats: int, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of a crowd asked many times over, (repeats, n, rounds, *tally_shape) int64."""
        vectors = self.vectors(np.tile(truth, repeats), rng=rng)
        return vectors.reshape(repeats, len(truth), *vectors.shape[1:])

    def counts(
        self, truth: Truth, repeats: int, *, rng: np.random.Generator, counted: tuple[int, ...] | None = None
    ) -> Vectors:
        """Return the counts of a crowd asked many times over, (repeats, rounds, *tally_shape) int64.

        Of each round, `counted` randomly chosen reports arrive; all, by default.
        """
        found = []
        for devices in self.batches(repeats * len(truth), of=len(truth)):
            vectors = self.crowds(truth, devices // len(truth), rng=rng)
            if counted is None:
                found.append(vectors.sum(axis=1))
                continue
            ranks = rng.random((self.rounds, *vectors.shape[:2])).argsort(axis=2)
            arrived = ranks < np.reshape(counted, (self.rounds, 1, 1))
            found.append(np.einsum("rtn,tnr...->tr...", arrived, vectors))
        return np.concatenate(found)

    def fit(self, *, counted: tuple[int, ...] | None = None) -> AffineEstimator | None:
        """Return the estimate of a crowd as an affine map of its counts, or nothing if it is none."""
        return AffineEstimator.fit(self, counted or (CROWD,) * self.rounds, (CROWD,) * self.rounds)

    @cached_property
    def ideal(self) -> AffineEstimator | None:
        """The affine map on an ideal channel."""
        return self.fit()

    @cached_property
    def contributions(self) -> list[NDArray[np.float64]] | None:
        """What each device adds to the estimate of each cell, by truth 0…V: (n, cells) each; None if not affine."""
        if self.ideal is None:
            return None
        rng = self.generator("contributions")
        found = []
        for cell in range(self.cells + 1):
            batches = (self.vectors(np.full(n, cell, dtype=np.int32), rng=rng) for n in self.batches(self.devices))
            found.append(np.concatenate([self.ideal.contribution(batch, devices=CROWD) for batch in batches]))
        return found

    @cached_property
    def step(self) -> NDArray[np.float64]:
        """The most one device was seen to move the estimate of each cell, (cells,)."""
        if self.contributions is None:
            return np.full(self.cells, np.nan)
        step: NDArray[np.float64] = np.max([np.ptp(values, axis=0) for values in self.contributions], axis=0)
        return step

    @cached_property
    def why_no_estimate(self) -> str:
        """Why there is nothing to estimate, where the mechanism says so by raising NotEstimableError; else empty."""
        zeros = np.zeros((self.rounds, *self.shape), dtype=np.int64)
        none = (0,) * self.rounds
        try:
            self.mechanism.estimate(zeros, counted=none, asked=none)
        except ValueError as error:
            if type(error).__name__ == "NotEstimableError":
                return f"not estimable, as the mechanism says: {error}"
        except Exception:  # noqa: BLE001 - whatever else it raises is for the checks of shapes to report
            return ""
        return ""

    @cached_property
    def states_theory(self) -> bool:
        """Whether the mechanism states its standard error from the truth."""
        return callable(getattr(self.mechanism, "std_error", None))

    def populations(self) -> dict[str, Counts]:
        """Return crowds of different make-up by name, (cells + 1,) int64 each, CROWD devices in all."""
        outside, full, mixed = (np.zeros(self.cells + 1, dtype=np.int64) for _ in range(3))
        outside[0] = full[1] = CROWD
        mixed[: min(4, self.cells + 1)] = [12, 3, 6, 3][: min(4, self.cells + 1)]
        mixed[0] += CROWD - mixed.sum()
        return {"all outside": outside, "all in cell 1": full, "mixed": mixed}


def truth_of(true_counts: Counts) -> Truth:
    """Return the devices outside and in each cell, one by one, (n,) int32."""
    return np.repeat(np.arange(len(true_counts), dtype=np.int32), true_counts)

"""Harness of the checks: batches of devices, a random stream for each check, and estimates as affine maps."""

import math
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.mechanism import Coins, Counts, Truth, Vectors
from simulator.kits.findings import Findings

# Queries on which the map is tested, in addition to those from which it is fitted.
TRIED = 24
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class AffineEstimator:
    """The affine map Ŷ = A·counts + b of an estimator, for given numbers of devices counted of `CROWD` asked.

    Counts satisfy linear relations (a round's outputs sum to its devices), so A and b are not unique. Their values on
    counts that devices can cause, and on the contribution of one device, are unique.

    Parameters
    ----------
    matrix : (rounds · tally size, cells) float64
    constant : (cells,) float64
    """

    matrix: NDArray[np.float64]
    constant: NDArray[np.float64]

    @classmethod
    def fit(cls, trial: "Harness", counted: tuple[int, ...]) -> "AffineEstimator | None":
        """Fit the map to the estimates of random crowds and test it on others; return None if it does not fit them."""
        rng, queries = trial.generator("affine"), 2 * trial.size + 2 * TRIED
        truth = trial.truths(CROWD * queries, rng=rng)
        # Some crowds have all devices in one place: a map fitted to mixtures only may be wrong at the extremes.
        truth[: CROWD * TRIED] = np.repeat(rng.integers(0, trial.cells + 1, TRIED), CROWD)
        vectors = trial.vectors(truth, rng=rng).reshape(queries, CROWD, trial.rounds, *trial.shape)
        rows = np.stack([vectors[:, :received, r].sum(axis=1) for r, received in enumerate(counted)], axis=1)
        rows = rows[rng.permutation(queries)]
        estimates = trial.estimates(rows, counted)
        design = np.column_stack([rows.reshape(queries, -1).astype(np.float64), np.ones(queries)])
        solution = np.linalg.lstsq(design[TRIED:], estimates[TRIED:], rcond=None)[0]
        miss = np.abs(design @ solution - estimates).max()
        if not miss <= TOLERANCE * (1.0 + np.abs(estimates).max()):
            return None
        return cls(solution[:-1], solution[-1])

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the estimates of (n, rounds, *tally_shape) counts, (n, cells)."""
        return counts.reshape(len(counts), -1) @ self.matrix + self.constant

    def contribution(self, vectors: NDArray[np.int64], *, devices: int) -> NDArray[np.float64]:
        """Return the contribution of each of (n, rounds, *tally_shape) reports, (n, cells), with 1/`devices` of b."""
        return vectors.reshape(len(vectors), -1) @ self.matrix + self.constant / devices


JOINT = "exact joint"
# Number of checks that compare samples; each has an equal share of the level.
STATISTICAL_CHECKS = 10
# Devices in one simulated query, in checks that repeat whole queries.
CROWD = 24
# Limited because encodings are held densely, and every cell's estimate is compared.
MOST_CELLS = 16
# Claims are audited for every cell up to this number. With more cells, reports have so many outcomes that samples
# prove little.
MOST_AUDITED = 4
# Numbers of encodings held at a time, 64 MB.
HELD = 1 << 23


class Harness:
    """A mechanism under test, the sample sizes of its checks, and the simulated reports of its devices.

    Parameters
    ----------
    mechanism : LocalMechanism
        An object of any type: it may lack optional members of the interface.
    seed : int
        Seed of all random numbers.
    level : float
        Probability of any false alarm.
    devices : int
        Number of devices of each truth whose reports are drawn to compare distributions.
    queries : int
        Greatest number of queries over which claims are audited, 1…3.
    thorough : bool
        Whether intervals and stated errors are also compared in larger crowds.

    Attributes
    ----------
    cells, rounds : int
        The number of cells V, and of the answers that a device gives per query.
    shape, size : tuple of int, int
        The shape of one round's tally, and the number of entries of all rounds' tallies.
    calls : int
        Number of devices, at most 40,000: for checks that call the mechanism once per device or crowd.
    repeats : int
        Number of repetitions in checks that repeat whole queries.
    full : tuple of int
        `CROWD` devices in each round.
    audited : tuple of int
        The truths for which claims are audited: outside and every cell, or the first, the middle and the last.
    columns : list of int
        Indices of the audited truths in a tally; all indices, if the tally has no entry for each cell.
    joint : bool
        Whether `sample_counts` is stated to have the joint law of the counts.
    states_theory : bool
        Whether the mechanism has `std_error`, its standard error given the truth.
    """

    def __init__(
        self, mechanism: Any, seed: int, level: float, devices: int, queries: int, *, thorough: bool = False
    ) -> None:
        self.mechanism, self.seed, self.level = mechanism, seed, level
        self.devices, self.queries, self.thorough = devices, queries, thorough
        self.cells, self.rounds, self.shape = int(mechanism.cells), int(mechanism.rounds), tuple(mechanism.tally_shape)
        self.size = self.rounds * math.prod(self.shape)
        self.calls, self.repeats, self.full = min(devices, 40_000), max(200, devices // 12), (CROWD,) * self.rounds
        every, some = tuple(range(self.cells + 1)), (0, 1, (self.cells + 1) // 2, self.cells)
        self.audited = every if self.cells <= MOST_AUDITED else some
        offset = self.cells + 1 - self.shape[0]
        self.columns = [cell - offset for cell in self.audited if cell >= offset]
        if offset not in (0, 1):
            self.columns = list(range(self.shape[0]))
        self.joint = getattr(mechanism, "sample_law", None) == JOINT
        self.states_theory = callable(getattr(mechanism, "std_error", None))

    def generator(self, name: str) -> np.random.Generator:
        """Return the generator of this name: the same at each call, and independent of generators of other names."""
        return np.random.default_rng(np.random.SeedSequence((self.seed, zlib.crc32(name.encode()))))

    def alpha(self, findings: Findings, comparisons: int) -> float:
        """Return the level of each comparison of a check that makes this number in all; record both in the figures."""
        alpha = self.level / STATISTICAL_CHECKS / max(comparisons, 1)
        findings.figures["comparisons"] = comparisons
        findings.figures["alpha"] = alpha
        return alpha

    def truths(self, devices: int, *, rng: np.random.Generator) -> Truth:
        """Return random truths, outside and every cell equally likely."""
        return rng.integers(0, self.cells + 1, devices).astype(np.int32)

    def count(self, truth: Truth) -> Counts:
        """Return the number of devices outside and in each cell, (cells + 1,) int64."""
        return np.bincount(truth, minlength=self.cells + 1).astype(np.int64)

    def toss(self, devices: int, *, rng: np.random.Generator) -> Coins:
        """Return the coins of newly enrolled devices."""
        return self.mechanism.toss(self.mechanism.enrol(devices, rng=rng), rng=rng)

    def answers(self, truth: Truth, coins: Coins) -> Vectors:
        """Return every round's encoded reports, (n, rounds, *tally_shape) int64, of devices that do not move."""
        return self._reports([truth] * self.rounds, coins)

    def vectors(self, truth: Truth, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of newly enrolled devices, (n, rounds, *tally_shape) int64.

        At the round `truth_round` they are in the cells `truth`, at the other rounds in random cells. A device takes
        its cell at the first round whose report depends on it, and answers the later rounds about that cell.
        """
        coins = self.toss(len(truth), rng=rng)
        if self.rounds == 1:
            return self.answers(truth, coins)
        journey = rng.integers(0, self.cells + 1, (self.rounds, len(truth)), dtype=np.int32)
        journey[self.mechanism.truth_round - 1] = truth
        journey[self.first_use :] = journey[self.first_use - 1]
        return self._reports(list(journey), coins)

    def along(self, history: tuple[int, ...], devices: int, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of devices that are in these cells at successive queries, and keep their memory.

        They are (n, queries, rounds, *tally_shape) int64, with the audited `columns` only.
        """
        batches = []
        for batch in self.batches(devices):
            memory = self.mechanism.enrol(batch, rng=rng)
            tossed = ((np.full(batch, cell, dtype=np.int32), self.mechanism.toss(memory, rng=rng)) for cell in history)
            batches.append(np.stack([self.answers(*each)[:, :, self.columns] for each in tossed], axis=1))
        return np.concatenate(batches)

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
        """Return the sizes, multiples of `of`, of batches with `devices` in all, whose encodings fit `HELD`."""
        most = max(HELD // self.size // of, 1) * of
        return [min(most, devices - start) for start in range(0, devices, most)]

    def counts(
        self, truth: Truth, repeats: int, *, rng: np.random.Generator, counted: tuple[int, ...] | None = None
    ) -> Vectors:
        """Return the counts of a crowd in repeated queries, (repeats, rounds, *tally_shape) int64.

        Of each round, `counted` randomly chosen reports arrive; all by default.
        """
        batches, crowd = [], len(truth)
        for devices in self.batches(repeats * crowd, of=crowd):
            vectors = self.vectors(np.tile(truth, devices // crowd), rng=rng)
            vectors = vectors.reshape(-1, crowd, *vectors.shape[1:])
            if counted is not None:
                ranks = rng.random((self.rounds, *vectors.shape[:2])).argsort(axis=2)
                arrived = ranks < np.reshape(counted, (self.rounds, 1, 1))
                batches.append(np.einsum("rtn,tnr...->tr...", arrived, vectors))
            else:
                batches.append(vectors.sum(axis=1))
        return np.concatenate(batches)

    def estimates(
        self, counts: NDArray[np.int64], counted: tuple[int, ...], affine: AffineEstimator | None = None
    ) -> NDArray[np.float64]:
        """Return the estimates of (repeats, rounds, *tally_shape) counts of `CROWD` devices, (repeats, cells)."""
        if affine is not None:
            return affine(counts)
        return np.stack([self.mechanism.estimate(row, counted=counted, asked=self.full).count for row in counts])

    @cached_property
    def ideal(self) -> AffineEstimator | None:
        """The affine map on an ideal channel, where all reports arrive; None if estimates are not affine."""
        return AffineEstimator.fit(self, self.full)

    @cached_property
    def contributions(self) -> list[NDArray[np.float64]] | None:
        """Contributions of devices to each cell's estimate, for truths 0…V, (n, cells) each; None if not affine."""
        if self.ideal is None:
            return None
        rng, contributions = self.generator("contributions"), []
        for cell in range(self.cells + 1):
            batches = (self.vectors(np.full(n, cell, dtype=np.int32), rng=rng) for n in self.batches(self.devices))
            contributions.append(np.concatenate([self.ideal.contribution(batch, devices=CROWD) for batch in batches]))
        return contributions

    @cached_property
    def step(self) -> NDArray[np.float64]:
        """The greatest observed range of one device's contribution to the estimate of each cell, (cells,)."""
        if self.contributions is None:
            return np.full(self.cells, np.nan)
        return np.asarray(np.max([np.ptp(values, axis=0) for values in self.contributions], axis=0))

    @cached_property
    def why_no_estimate(self) -> str:
        """The reason that there is no estimate, if the mechanism raises NotEstimableError; else empty."""
        counts, none = np.zeros((self.rounds, *self.shape), dtype=np.int64), (0,) * self.rounds
        try:
            self.mechanism.estimate(counts, counted=none, asked=none)
        except Exception as error:  # noqa: BLE001 - other errors are reported by the checks of shapes
            if isinstance(error, ValueError) and type(error).__name__ == "NotEstimableError":
                return f"not estimable, as the mechanism states: {error}"
        return ""

    def populations(self) -> dict[str, Counts]:
        """Return the true counts of different crowds by name, (cells + 1,) int64 each, with `CROWD` devices in all."""
        outside, full, mixed = (np.zeros(self.cells + 1, dtype=np.int64) for _ in range(3))
        outside[0] = full[1] = CROWD
        mixed[: min(4, self.cells + 1)] = [12, 3, 6, 3][: min(4, self.cells + 1)]
        mixed[0] += CROWD - mixed.sum()
        return {"all outside": outside, "all in cell 1": full, "mixed": mixed}


def truth_of(true_counts: Counts) -> Truth:
    """Return the truth of each device, (n,) int32, for these counts of devices outside and in each cell."""
    return np.repeat(np.arange(len(true_counts), dtype=np.int32), true_counts)


def place_of(cell: int) -> str:
    """Return where a device is, in words."""
    return f"in cell {cell}" if cell else "outside"

"""The mechanism on trial: its devices run in batches, every check with a generator of its own."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.checks.affine import AffineEstimator
from mechanisms.checks.report import Findings
from mechanisms.local.mechanism import Coins, Counts, Truth, Vectors

# Checks that compare samples; each may spend an equal share of the level.
STATISTICAL_CHECKS = 9
# Devices of one simulated query, where whole queries are repeated.
CROWD = 24
# One device's encodings are held densely, and every pair of cells is compared.
MOST_CELLS = 16


@dataclass(frozen=True)
class Trial:
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
    """

    mechanism: Any
    seed: int
    level: float
    devices: int
    queries: int

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
        """Return every round's encoded reports, (n, rounds, *tally_shape) int64."""
        rounds = [self.mechanism.encode(self.mechanism.answer(r + 1, truth, coins)) for r in range(self.rounds)]
        return np.stack(rounds, axis=1)

    def vectors(self, truth: Truth, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of newly enrolled devices, (n, rounds, *tally_shape) int64."""
        return self.answers(truth, self.toss(len(truth), rng=rng))

    def crowds(self, truth: Truth, repeats: int, *, rng: np.random.Generator) -> Vectors:
        """Return the answers of a crowd asked many times over, (repeats, n, rounds, *tally_shape) int64."""
        vectors = self.vectors(np.tile(truth, repeats), rng=rng)
        return vectors.reshape(repeats, len(truth), *vectors.shape[1:])

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
            vectors = self.vectors(np.full(self.devices, cell, dtype=np.int32), rng=rng)
            found.append(self.ideal.contribution(vectors, devices=CROWD))
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

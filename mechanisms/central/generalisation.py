"""Generalisation: cells merged into groups at a privately chosen level, then sampled and suppressed (LQS, ε-safe)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.central.release import check_held, draw_option, exponential_probabilities
from mechanisms.central.suppression import SampleThenSuppress, kept_errors, largest_step, suppress
from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.intervals import BinomialInversion
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_counts, check_epsilon, check_integer
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.subsampling import Form, SafeDelta, safe_claim
from mechanisms.privacy.view import Adjacency, possible_adjacency


@dataclass(frozen=True, kw_only=True, eq=False)
class Generalised:
    """ε-safe k-anonymization (LQS definition 6): the exponential mechanism draws the level of detail to publish.

    Level ℓ maps every cell to one of its groups. Its quality is the expected amount of position information that is
    published,

        q(ℓ) = Σ over its groups g of detail(g) · u(n_g),   u(n) = E[(D/β)·1{D ≥ k}], D ~ Bin(n, β),

    with detail(g) = 1 − ln(cells of g)/ln(cells): 1 for a single cell, 0 for a group of all. (The paper leaves q
    open.)

    *Sensitivity.* One device more or less changes n_g of one group of each level by 1, and no other. So |Δq(ℓ)| =
    detail(g)·(u(n_g + 1) − u(n_g)) ≤ max detail · max_m h(m), where h, the step of u, is never negative and greatest
    at m = ⌈k/β⌉ − 2 (proved at `mechanisms.central.suppression.largest_step`). It grows as √k; the plain number of kept
    devices would change by up to k.

    The level is drawn from all devices held, as the proof of theorem 6 requires. Then that level is sampled and
    suppressed. Where only a sample is held (`publish_sampled`), the level has to be drawn from the sample too. Theorem
    6 fails there, and `claim_sampled` gives the claim that holds instead.

    Parameters
    ----------
    levels : sequence of (cells,) int64
        Group of every cell, 0…G − 1 with none empty, the finest level first; fixed without looking at devices.
    k : int
        Groups with fewer than k devices in the sample are not published; at least 1.
    sampling : float
        β, in (0, 1].
    epsilon : float
        ε₁ of the draw; at least 0 and finite. With one level nothing is drawn and no ε is spent.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or a level is not such a map.
    """

    levels: Sequence[Integers]
    k: int
    sampling: float
    epsilon: float

    def __post_init__(self) -> None:
        checked = SampleThenSuppress(k=self.k, sampling=self.sampling)
        object.__setattr__(self, "k", checked.k)
        object.__setattr__(self, "sampling", checked.sampling)
        if np.isinf(check_epsilon(self.epsilon)):
            raise ParameterError("epsilon", "must be finite: an infinite one would always draw the best", self.epsilon)
        object.__setattr__(self, "levels", _check_levels(self.levels))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.levels[0])

    @property
    def sensitivity(self) -> float:
        """The greatest change of any level's quality by one device held."""
        return self._widest * largest_step(self.k, self.sampling)

    def qualities(self, counts: Integers) -> Floats:
        """Return q of every level, (levels,) float64, for devices held, (cells,) int64."""
        held = check_held(counts, cells=self.cells)
        totals = [self._totals(held, i) for i in self._each]
        kept = [n + kept_errors(n, self.k, self.sampling)[0] for n in totals]
        return np.array([self._detail(i) @ kept[i] for i in self._each])

    def level_probabilities(self, counts: Integers) -> Floats:
        """Return the probability of publishing each level, (levels,) float64."""
        return exponential_probabilities(
            self.qualities(counts), sensitivity=self._drawable(self.sensitivity), epsilon=self.epsilon
        )

    def draw_level(self, counts: Integers, *, rng: np.random.Generator) -> int:
        """Draw a level, 0 the finest, from all devices held."""
        return draw_option(
            self.qualities(counts), sensitivity=self._drawable(self.sensitivity), epsilon=self.epsilon, rng=rng
        )

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Draw a level from the devices held, (cells,) int64, sample them, and publish the groups with at least k."""
        level = self.draw_level(counts, rng=rng)
        return self.publish_level(rng.binomial(check_held(counts, cells=self.cells), self.sampling), level)

    def publish_sampled(self, sampled: Integers, *, rng: np.random.Generator) -> Estimate:
        """Publish the groups with at least k of the devices that sampled themselves, at a level drawn from them too.

        The quality is then Σ detail(g)·D_g·1{D_g ≥ k}, which one device changes by up to k. `claim_sampled` is the
        claim for this release.

        Parameters
        ----------
        sampled : (cells,) int64
            Devices sampled in each cell.
        rng : numpy.random.Generator
            Draws the level.
        """
        drawn = check_counts("sampled", np.asarray(sampled), (self.cells,))
        kept = [float(self._detail(i) @ suppress(self._totals(drawn, i), self.k)) for i in self._each]
        sensitivity = self._drawable(self._widest * self.k)
        return self.publish_level(drawn, draw_option(kept, sensitivity=sensitivity, epsilon=self.epsilon, rng=rng))

    def publish_level(self, sampled: Integers, level: int) -> Estimate:
        """Publish a sample, (cells,) int64, at a level: each group's devices spread evenly over its cells.

        A cell alone in its group has the group's interval. A cell in a group of several has an interval from 0 to the
        group's upper end. The standard error adds the error of even spreading, with each device in any cell of its
        group.
        """
        group, size = self.levels[level], self._sizes(level)[self.levels[level]]
        totals = suppress(self._totals(sampled, level), self.k)
        table = SampleThenSuppress(k=self.k, sampling=self.sampling).publish_sampled(totals)
        total, error = table.count[group], table.std_error[group]
        alone = np.where(size > 1, 0, totals[group])
        most = np.where(totals > 0, totals, self.k - 1)[group]
        invert = BinomialInversion(alone, most, self.sampling)
        return Estimate(
            total / size,
            np.sqrt(error**2 / size**2 + total * (size - 1.0) / size**2),
            *invert(),
            "binomial inversion",
            invert,
        )

    def std_error(self, true_counts: Integers) -> Floats:
        """Return the exact root mean square error at these (cells,) int64 counts: over levels, sampling, spreading.

        At a level it is E[(X/s − Y)²] with X the group's estimate of its n devices (`kept_errors`) and s its cells:
        E[(X − n)²]/s² + 2·E[X − n]/s·(n/s − Y) + (n/s − Y)². The errors of the levels are averaged with the
        probabilities of drawing them.
        """
        held = check_held(true_counts, field="true_counts", cells=self.cells)
        truth, squared = held.astype(np.float64), np.zeros(self.cells)
        for i, share in enumerate(self.level_probabilities(held)):
            group, size = self.levels[i], self._sizes(i)[self.levels[i]]
            totals = self._totals(held, i)
            bias, square = kept_errors(totals, self.k, self.sampling)
            spread = totals[group] / size - truth
            off = square[group] / size**2 + 2.0 * bias[group] / size * spread + spread**2
            squared += share * np.maximum(off, 0.0)
        return np.sqrt(squared)

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim of `publish`: ε₁ and the exact worst of all crowds of at least `crowd`.

        It is a bound, because at a coarser level the crowd is the group's crowd, which is at least as large and not
        known. `theorem_6` gives the paper's bound. A move is bounded by its two steps, leaving and entering.
        """
        return self._for(self._claim("worst crowd", queries, 1 if crowd is None else crowd), adjacency)

    def claim_sampled(self, *, queries: int = 1) -> Claim:
        """Return the claim of `publish_sampled`, for any crowd."""
        return self._claim("chosen on the sample", queries, 1)

    def _claim(self, form: Form, queries: int, crowd: int) -> Claim:
        check_integer("queries", queries, at_least=1)
        check_integer("crowd", crowd, at_least=1)
        options = len(self.levels)
        return safe_claim(SafeDelta(self.k, self.sampling, self.epsilon, form, options, crowd), queries)

    def _for(self, claim: Claim, adjacency: Adjacency) -> Claim:
        return claim.of_move() if possible_adjacency(adjacency, cells=self.cells) == "move" else claim

    @property
    def _each(self) -> range:
        return range(len(self.levels))

    @property
    def _widest(self) -> float:
        """The greatest detail of any group."""
        return max(float(self._detail(i).max()) for i in self._each)

    def _totals(self, counts: Integers, level: int) -> Integers:
        """Return devices by group, (groups,) int64."""
        totals = np.zeros(int(self.levels[level].max()) + 1, dtype=np.int64)
        np.add.at(totals, self.levels[level], counts)
        return totals

    def _sizes(self, level: int) -> Integers:
        """Return cells by group, (groups,) int64."""
        return np.bincount(self.levels[level])

    def _detail(self, level: int) -> Floats:
        """Return 1 − ln(size)/ln(cells) by group, (groups,) float64."""
        sizes = self._sizes(level).astype(np.float64)
        return np.ones_like(sizes) if self.cells == 1 else 1.0 - np.log(sizes) / np.log(self.cells)

    @staticmethod
    def _drawable(sensitivity: float) -> float:
        """Return the sensitivity to draw with: 1 where no level has any quality, as any value gives the same draw."""
        return sensitivity if sensitivity > 0.0 else 1.0


def _check_levels(levels: Sequence[Integers]) -> tuple[Integers, ...]:
    """Return the levels as int64 vectors that are maps onto 0…G − 1, the finest first."""
    if not isinstance(levels, Sequence) or len(levels) == 0:
        raise ParameterError("levels", "must be a sequence of at least one level", levels)
    cells = np.asarray(levels[0]).size
    if cells == 0:
        raise ParameterError("levels", "must be of at least one cell", 0)
    checked = tuple(check_counts("levels", np.asarray(level), (cells,)) for level in levels)
    groups = [np.unique(level) for level in checked]
    for index, used in enumerate(groups):
        if not np.array_equal(used, np.arange(len(used))):
            raise ParameterError("levels", f"must use every group from 0, at level {index}", used[:5].tolist())
        if index and len(used) > len(groups[index - 1]):
            raise ParameterError("levels", f"must be given the finest first, at level {index}", len(used))
    return checked


# Releases over which the error is averaged.
DRAWS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneralisedSample(Generalised):
    """`Generalised.publish_sampled` as a release of Sampling Privacy's differences, which are a sample.

    Parameters
    ----------
    levels, k, sampling, epsilon
        As in `Generalised`.
    """

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Sample the devices held, (cells,) int64, as they would sample themselves, and publish the sample."""
        return self.publish_sampled(rng.binomial(check_held(counts, cells=self.cells), self.sampling), rng=rng)

    def std_error(self, true_counts: Integers) -> Floats:
        """Return the root mean square error over 64 releases drawn at these (cells,) int64 counts.

        There is no short sum over samples and levels, because each sample has its own probabilities of the levels. The
        draws are always the same, so the result is a function of the counts. The error of a cell is off by about 10 %.
        """
        held = check_held(true_counts, field="true_counts", cells=self.cells)
        rng = np.random.default_rng(DRAWS)  # any fixed seed
        squared = np.zeros(len(held))
        for _ in range(DRAWS):
            squared += (self.publish(held, rng=rng).count - held) ** 2
        return np.sqrt(squared / DRAWS)

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim of a level drawn from the sample, for any crowd; a move is bounded by its two steps."""
        if crowd is not None:
            check_integer("crowd", crowd, at_least=1)
        return self._for(self.claim_sampled(queries=queries), adjacency)

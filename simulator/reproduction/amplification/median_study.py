"""Smooth sensitivities and errors of sampled medians, shared by HDK secs 4.3 and 4.4, with their plots."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.central.smooth_median import SmoothMedian, sampled_smooth_sensitivities
from mechanisms.privacy.audit import clopper_pearson
from simulator.reproduction.amplification.populations import SIZES, DrawnPopulation, N, lognormal, mixture
from simulator.reproduction.entry import Curve, Drawing
from simulator.streams import Streams

EPSILONS = (0.1, 0.5, 1.0)
# δ is missing from the text: conclusions are drawn at one of these values, and those that depend on δ at all of them.
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
# The δ at which the population of appendix B's seed gives the published ratios.
FITTED_DELTA = 3e-5
POPULATIONS, SAMPLES = 40, 200
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Smooth sensitivities S* of a population and of many samples from it, at one (ε, δ) and one n.

    Parameters
    ----------
    whole : float
        S* of the population.
    sampled : (samples,) float64
        S* of samples.
    epsilon, sample_epsilon : float
        ε_N and ε_n.
    """

    whole: float
    sampled: NDArray[np.float64]
    epsilon: float
    sample_epsilon: float

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Ratio of S* of each sample to that of the population, (samples,)."""
        return self.sampled / self.whole

    @property
    def noise_ratio(self) -> float:
        """Ratio of the noise's standard deviation with sampling to that without: 1 where sampling gains nothing."""
        mean_square = float(np.mean(self.ratios**2))
        return math.sqrt(mean_square) * self.epsilon / self.sample_epsilon


def sampled_ranks(size: int, samples: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return simple random samples of n of N ranks, (samples, n) int64, each ascending."""
    ranks = np.stack([rng.choice(N, size=size, replace=False, shuffle=False) for _ in range(samples)])
    ranks.sort(axis=1)
    return ranks


def sensitivities(
    population: DrawnPopulation, ranks: NDArray[np.int64], *, epsilon: float, delta: float
) -> Sensitivities:
    """Return S* of a population and of the samples with these ranks."""
    lower, upper = population.bounds
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper, sample=ranks.shape[1] / N)
    calibration = release.calibration(N)
    of = sampled_smooth_sensitivities(population.ordered, ranks, xi=calibration.xi, lower=lower, upper=upper)
    return Sensitivities(whole_sensitivity(population, epsilon=epsilon, delta=delta), of, epsilon, calibration.epsilon)


def whole_sensitivity(population: DrawnPopulation, *, epsilon: float, delta: float) -> float:
    """Return S* of a population."""
    lower, upper = population.bounds
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper)
    return release.smooth_sensitivity(population.ordered, release.calibration(N))


@lru_cache(maxsize=4)
def drawn_populations(kind: str, seed: int) -> tuple[DrawnPopulation, ...]:
    """Return populations of a kind, "lognormal" or "mixture"."""
    draw: Callable[[np.random.Generator], DrawnPopulation] = {"lognormal": lognormal, "mixture": mixture}[kind]
    rng = Streams(seed).of("reproduction", "hdk", kind)
    return tuple(draw(rng) for _ in range(POPULATIONS))


Study = dict[tuple[float, float, int], list[Sensitivities]]


@lru_cache(maxsize=4)
def sensitivity_study(kind: str, seed: int, deltas: tuple[float, ...]) -> Study:
    """Return S* by (δ, ε, n) for every drawn population; new samples are drawn for each population."""
    rng = Streams(seed).of("reproduction", "hdk", kind, "samples")
    study: Study = {(delta, epsilon, n): [] for delta in deltas for epsilon in EPSILONS for n in SIZES}
    for population in drawn_populations(kind, seed):
        ranks = {n: sampled_ranks(n, SAMPLES, rng=rng) for n in SIZES}
        for (delta, epsilon, n), found in study.items():
            found.append(sensitivities(population, ranks[n], epsilon=epsilon, delta=delta))
    return study


@lru_cache(maxsize=2 * len(RATES))
def _ranks_at(size: int, samples: int, seed: int) -> NDArray[np.int64]:
    """Return samples of n ranks, the same at every call; all ranks where n is N."""
    if size == N:
        return np.arange(N)[np.newaxis]
    return sampled_ranks(size, samples, rng=Streams(seed).of("reproduction", "hdk", "errors", size))


@cache
def _median_law(rate: float) -> NDArray[np.float64]:
    """Return the distribution of the sample median's rank at a sampling rate, (N,) float64."""
    return SimpleRandomSample(N, rate).median_law()


@lru_cache(maxsize=16)
def mean_square_errors(
    population: DrawnPopulation, seed: int, *, epsilons: tuple[float, ...], delta: float, samples: int
) -> NDArray[np.float64]:
    """Return the mean square error of the private sample median, (ε, rates) float64.

    The part due to the sample median is exact, from the distribution of its rank. The part due to the noise is an
    average over samples, which have the same ranks for every population.
    """
    lower, upper = population.bounds
    errors = np.empty((len(epsilons), len(RATES)))
    for column, rate in enumerate(RATES):
        missed = float(_median_law(rate) @ (population.ordered - population.median) ** 2)
        ranks = _ranks_at(SimpleRandomSample(N, rate).size, samples, seed)
        for row, epsilon in enumerate(epsilons):
            release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper, sample=rate)
            own = release.calibration(N)
            of = sampled_smooth_sensitivities(population.ordered, ranks, xi=own.xi, lower=lower, upper=upper)
            errors[row, column] = missed + 8.0 * float(np.mean(of**2)) / own.epsilon**2
    return errors


def holds_note(held: Sequence[bool], *, of: str = "populations drawn") -> str:
    """Return how often a conclusion held, and a 95 % lower confidence bound on the share where it holds."""
    least, _ = clopper_pearson(sum(held), len(held), alpha=0.05)
    return f"Holds in {sum(held)} of {len(held)} {of}: of at least {float(least):.1%} of all, with 95 % confidence."


def mostly(held: Sequence[bool]) -> bool:
    """Return whether a conclusion held in at least nine cases of ten."""
    return bool(sum(held) >= 0.9 * len(held))


# Probability at either end of a 95 % band.
TAIL = 0.025


def histogram(values: NDArray[np.float64], *, title: str, x_title: str, bins: int = 60) -> Drawing:
    """Return the density of values as bars."""
    heights, edges = np.histogram(values, bins=bins, density=True)
    middles = (edges[:-1] + edges[1:]) / 2
    return Drawing(title, x_title, "density", [Curve("drawn anew", middles.tolist(), heights.tolist(), kind="bars")])


def ratio_panel(
    epsilon: float, found: Mapping[int, Sensitivities], *, printed: Mapping[int, float] | None = None
) -> Drawing:
    """Return a panel of the ratio of S* of samples to that of the population, by n: median and middle 95 %."""
    sizes = list(found)
    low, middle, high = np.transpose([np.quantile(found[n].ratios, (TAIL, 0.5, 1.0 - TAIL)) for n in sizes])
    names = [f"n = {n:,}" for n in sizes]
    curves = [
        Curve("median and 95 % of samples", names, middle.tolist(), "points", low=low.tolist(), high=high.tolist())
    ]
    if printed:
        curves.append(Curve("printed median", names, [printed[n] for n in sizes], "points", published=True))
    return Drawing(f"ε = {epsilon:g}", "sample", "S* of sample / S* of population", curves, log_y=True)


def noise_panel(epsilon: float, found: Mapping[int, Sensitivities], *, unit: str) -> Drawing:
    """Return a panel of the middle 95 % of the noise, by n, exact for the smooth sensitivities found."""
    first = next(iter(found.values()))
    scales = {N: np.array([2.0 * first.whole / first.epsilon])}
    scales |= {n: 2.0 * one.sampled / one.sample_epsilon for n, one in found.items()}
    reach = [noise_reach(of) for of in scales.values()]
    names = ["population", *(f"n = {n:,}" for n in found)]
    curve = Curve("95 % of the noise", names, [0.0] * len(names), "points", low=[-end for end in reach], high=reach)
    return Drawing(f"ε = {epsilon:g}", "noise on the median of", f"noise, {unit}", [curve])


def noise_reach(scales: NDArray[np.float64]) -> float:
    """Return the magnitude exceeded with probability 5 % by Laplace noise whose scale is drawn from `scales`."""
    most = float(scales.max()) * -math.log(2.0 * TAIL)
    return float(brentq(lambda end: float(np.mean(np.exp(-end / scales))) - 2.0 * TAIL, 0.0, most * (1.0 + 1e-9)))


def error_panel(errors: NDArray[np.float64], epsilons: Sequence[float], *, title: str) -> Drawing:
    """Return a panel of ln(mean square error) against the sampling rate, with one line per ε."""
    curves = [
        Curve(f"ε = {epsilon:g}", list(RATES), np.log(row).tolist())
        for epsilon, row in zip(epsilons, errors, strict=True)
    ]
    return Drawing(title, "sampling rate n/N", "ln(mean square error)", curves, log_x=True)


def by_size(found: Mapping[tuple[float, int], Sensitivities], epsilon: float) -> dict[int, Sensitivities]:
    """Return the sensitivities at one ε, by n."""
    return {n: found[epsilon, n] for n in SIZES}

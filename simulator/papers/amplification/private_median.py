"""Figs 6 to 13 and Table 1: the private median of a population and of its samples (secs 4.3 and 4.4, appendix B).

The population is lognormal, or a mixture of betas with a gap at its median.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import t as student

from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.central.smooth_median import SmoothMedian, sampled_smooth_sensitivities
from mechanisms.privacy.audit import clopper_pearson
from mechanisms.privacy.subsampling import sample_privacy
from simulator.pages.charts import Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.amplification.noise_levels import noise_shortfall, variance_limit
from simulator.papers.amplification.populations import (
    DELTAS,
    SIZES,
    DrawnPopulation,
    N,
    histogram,
    lognormal,
    mixture,
    printed_mixture,
    seeded_lognormal,
)
from simulator.papers.published_results import Reproduction
from simulator.streams import Streams

EPSILONS = (0.1, 0.5, 1.0)
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
        """Ratio of S* of each sample to the population's S*, (samples,)."""
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
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper)
    whole = release.smooth_sensitivity(population.ordered, release.calibration(N))
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper, sample=ranks.shape[1] / N)
    calibration = release.calibration(N)
    of = sampled_smooth_sensitivities(population.ordered, ranks, xi=calibration.xi, lower=lower, upper=upper)
    return Sensitivities(whole, of, epsilon, calibration.epsilon)


@lru_cache(maxsize=4)
def drawn_populations(kind: str, seed: int) -> tuple[DrawnPopulation, ...]:
    """Return populations of a kind, "lognormal" or "mixture"."""
    draw = {"lognormal": lognormal, "mixture": mixture}[kind]
    rng = Streams(seed).of("reproduction", "hdk", kind)
    return tuple(draw(rng) for _ in range(POPULATIONS))


Study = Mapping[tuple[float, int], Sensitivities]


def _study(population: DrawnPopulation, samples: int, rng: np.random.Generator) -> Study:
    """Return S* of samples from one population at the fitted δ, by (ε, n)."""
    ranks = {n: sampled_ranks(n, samples, rng=rng) for n in SIZES}
    return {
        (epsilon, n): sensitivities(population, ranks[n], epsilon=epsilon, delta=FITTED_DELTA)
        for epsilon in EPSILONS
        for n in SIZES
    }


@lru_cache(maxsize=4)
def seeded_study(seed: int) -> Study:
    """Return S* of 1,500 samples from the lognormal population of appendix B's seed, by (ε, n)."""
    return _study(seeded_lognormal(), 1500, Streams(seed).of("reproduction", "hdk", "seeded lognormal"))


@lru_cache(maxsize=4)
def mixture_study(seed: int) -> Study:
    """Return S* of 1,000 samples from the paper's own mixture, by (ε, n)."""
    return _study(printed_mixture(), 1000, Streams(seed).of("reproduction", "hdk", "printed mixture"))


@lru_cache(maxsize=4)
def sensitivity_study(seed: int) -> dict[tuple[float, float, int], list[Sensitivities]]:
    """Return S* by (δ, ε, n) for every lognormal population; new samples are drawn for each population."""
    rng = Streams(seed).of("reproduction", "hdk", "lognormal", "samples")
    study: dict[tuple[float, float, int], list[Sensitivities]] = {
        (delta, epsilon, n): [] for delta in DELTAS for epsilon in EPSILONS for n in SIZES
    }
    for population in drawn_populations("lognormal", seed):
        ranks = {n: sampled_ranks(n, SAMPLES, rng=rng) for n in SIZES}
        for (delta, epsilon, n), drawn in study.items():
            drawn.append(sensitivities(population, ranks[n], epsilon=epsilon, delta=delta))
    return study


@lru_cache(maxsize=2 * len(RATES))
def _ranks_at(size: int, samples: int, seed: int) -> NDArray[np.int64]:
    """Return samples of n ranks, the same at every call; all ranks where n is N."""
    if size == N:
        return np.arange(N)[np.newaxis]
    return sampled_ranks(size, samples, rng=Streams(seed).of("reproduction", "hdk", "errors", size))


@cache
def _rank_distribution(rate: float) -> NDArray[np.float64]:
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
        missed = float(_rank_distribution(rate) @ (population.ordered - population.median) ** 2)
        ranks = _ranks_at(SimpleRandomSample(N, rate).size, samples, seed)
        for row, epsilon in enumerate(epsilons):
            release = SmoothMedian(epsilon=epsilon, delta=delta, lower=lower, upper=upper, sample=rate)
            calibration = release.calibration(N)
            of = sampled_smooth_sensitivities(population.ordered, ranks, xi=calibration.xi, lower=lower, upper=upper)
            errors[row, column] = missed + 8.0 * float(np.mean(of**2)) / calibration.epsilon**2
    return errors


def holds_note(held: ArrayLike) -> str:
    """Return how often a conclusion held, and a 95 % lower confidence bound on the share where it holds."""
    hits, total = int(np.sum(held)), np.size(held)
    least, _ = clopper_pearson(hits, total, alpha=0.05)
    return f"Holds in {hits} of {total} populations drawn: of at least {float(least):.1%} of all, with 95 % confidence."


def mostly(held: ArrayLike) -> bool:
    """Return whether a conclusion held in at least nine cases of ten."""
    return bool(np.sum(held) >= 0.9 * np.size(held))


# Probability at either end of a 95 % band.
TAIL = 0.025


def _draw_ratios(results: Reproduction, study: Study, printed: Mapping[tuple[float, int], float]) -> None:
    """Draw the ratio of S* of samples to the population's S*, by n: median and middle 95 %."""
    names = [f"n = {n:,}" for n in SIZES]
    for epsilon in EPSILONS:
        quantiles = [np.quantile(study[epsilon, n].ratios, (TAIL, 0.5, 1.0 - TAIL)) for n in SIZES]
        low, middle, high = np.transpose(quantiles)
        curves = [Series("median and 95 % of samples", names, middle, "points", low=low, high=high)]
        if (epsilon, SIZES[0]) in printed:
            medians = [printed[epsilon, n] for n in SIZES]
            curves.append(Series("published median", names, medians, "points", style=PUBLISHED))
        results.add_panel("ratios", curves, epsilon=epsilon)


def _draw_noise(results: Reproduction, study: Study) -> None:
    """Draw the middle 95 % of the noise, by n, exact for the smooth sensitivities found."""
    names = ["population", *(f"n = {n:,}" for n in SIZES)]
    for epsilon in EPSILONS:
        of_sizes = [study[epsilon, n] for n in SIZES]
        scales = [np.array([2.0 * of_sizes[0].whole / epsilon])]
        scales += [2.0 * of_size.sampled / of_size.sample_epsilon for of_size in of_sizes]
        reach = [noise_reach(of) for of in scales]
        low = [-end for end in reach]
        curve = Series("95 % of the noise", names, [0.0] * len(names), "points", low=low, high=reach)
        results.add_panel("noise", [curve], epsilon=epsilon)


def noise_reach(scales: NDArray[np.float64]) -> float:
    """Return the magnitude exceeded with probability 5 % by Laplace noise whose scale is drawn from `scales`."""
    most = float(scales.max()) * -math.log(2.0 * TAIL)
    return float(brentq(lambda end: float(np.mean(np.exp(-end / scales))) - 2.0 * TAIL, 0.0, most * (1.0 + 1e-9)))


def _draw_errors(results: Reproduction, errors: NDArray[np.float64], epsilons: Sequence[float]) -> None:
    """Draw ln(mean square error) against the sampling rate, with one line per ε."""
    lines = [Series(f"ε = {epsilon:g}", RATES, np.log(row)) for epsilon, row in zip(epsilons, errors, strict=True)]
    results.add_panel("errors", lines)


def lognormal_ratios(results: Reproduction, seed: int) -> None:
    """Compare the smooth sensitivities of samples with the lognormal population's (Fig 6)."""
    study, seeded = sensitivity_study(seed), seeded_study(seed)
    for epsilon, text in zip((0.1, 1.0), results.entry.printed["amplified"], strict=True):
        amplified = sample_privacy(epsilon=epsilon, share=101 / N)[0]
        hundredth = sample_privacy(epsilon=epsilon, share=0.01)[0]
        results.add_row("amplified", amplified, printed=text, epsilon=epsilon, hundredth=hundredth)
    keys = [(epsilon, n) for epsilon in (0.1, 1.0) for n in SIZES]
    printed = dict(zip(keys, results.entry.numbers["ratios"], strict=True))
    for (epsilon, n), ratio in printed.items():
        medians = {delta: _medians(study[delta, epsilon, n]) for delta in DELTAS}
        ends = {delta: _prediction(of) for delta, of in medians.items()}
        fits = any(low <= ratio <= high for low, high in ends.values())
        shown = "; ".join(f"δ = {delta:g}: {low:.2f} to {high:.2f}" for delta, (low, high) in ends.items())
        mean = float(np.exp(np.mean(np.log(medians[1e-5]))))
        results.add_row("median", mean, fits, published=ratio, epsilon=epsilon, n=n, shown=shown)
        ordered = np.sort(seeded[epsilon, n].ratios)
        # The median's standard error, from the order statistics two binomial standard deviations on either side of it,
        # and the standard error of the paper's median, of at least 1,000 samples.
        off = math.sqrt(len(ordered))
        low, high = (float(ordered[round(len(ordered) / 2 + end)]) for end in (-off, off))
        error = (high - low) / 4.0 * math.sqrt(1.0 + len(ordered) / 1000)
        median = float(np.median(ordered))
        near = abs(ratio - median) <= 3.0 * error
        results.add_row(
            "seeded", median, near, published=ratio, epsilon=epsilon, n=n, error=error, samples=len(ordered)
        )
    by_key = {key: _medians(study[1e-5, *key]) for key in seeded}
    increase = {n: by_key[1.0, n] / by_key[0.1, n] for n in SIZES}
    for name, held in (
        ("larger", np.all([of > 1 for of in by_key.values()], axis=0)),
        ("in_n", np.all([by_key[e, 101] > by_key[e, 1001] for e in EPSILONS], axis=0)),
        (
            "in_epsilon",
            np.all([(by_key[0.1, n] < by_key[0.5, n]) & (by_key[0.5, n] < by_key[1.0, n]) for n in SIZES], axis=0),
        ),
        ("pronounced", increase[101] > increase[1001]),
    ):
        results.add_row(name, f"in {np.mean(held):.0%} of populations", mostly(held), held=holds_note(held))
    results.add_row("factor_1001", N / 1001)
    results.add_row("factor_101", N / 101)
    _draw_ratios(results, seeded, printed)
    results.add_findings("seed")


def _medians(study: Sequence[Sensitivities]) -> NDArray[np.float64]:
    """Return the median ratio of each population, (populations,)."""
    return np.array([np.median(drawn.ratios) for drawn in study])


def _prediction(medians: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % prediction interval of one more population's median ratio, assuming a normal logarithm."""
    logs, count = np.log(medians), len(medians)
    reach = float(student.ppf(0.975, count - 1)) * float(logs.std(ddof=1)) * math.sqrt(1.0 + 1.0 / count)
    return math.exp(float(logs.mean()) - reach), math.exp(float(logs.mean()) + reach)


def lognormal_noise(results: Reproduction, seed: int) -> None:
    """Compare the noise on the lognormal population's median with that on a sample's (Fig 7)."""
    study = sensitivity_study(seed)
    ratios = {(e, n): np.array([drawn.noise_ratio for drawn in study[1e-5, e, n]]) for e in EPSILONS for n in SIZES}
    for claim, key, held in (
        ("ε=0.1, n=1,001: substantially less noise", (0.1, 1001), ratios[0.1, 1001] < 0.5),
        ("ε=0.1, n=101: less still", (0.1, 101), ratios[0.1, 101] < ratios[0.1, 1001]),
        ("ε=0.5, n=1,001: a small reduction is left", (0.5, 1001), ratios[0.5, 1001] < 1.0),
        ("ε=0.5, n=101: more noise", (0.5, 101), ratios[0.5, 101] > 1.0),
        ("ε=1, n=1,001: more noise", (1.0, 1001), ratios[1.0, 1001] > 1.0),
        ("ε=1, n=101: more noise", (1.0, 101), ratios[1.0, 101] > 1.0),
    ):
        ratio = ratios[key]
        shown = f"σ of the noise × {np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        results.add_row("claim", shown, np.mean(held) > 0.5, claim=claim, held=holds_note(held))
    _draw_noise(results, seeded_study(seed))


def lognormal_errors(results: Reproduction, seed: int) -> None:
    """Compare mean square errors by sampling rate and ε, for lognormal populations (Fig 8)."""
    epsilons, samples = (0.1, 0.2, 0.5, 1.0), 60
    errors = mean_square_errors(seeded_lognormal(), seed, epsilons=epsilons, delta=FITTED_DELTA, samples=4 * samples)
    gains = []
    for population in drawn_populations("lognormal", seed)[:20]:
        drawn = mean_square_errors(population, seed, epsilons=epsilons, delta=1e-5, samples=samples)
        gains.append(drawn / drawn[:, -1:])
    # (populations, ε, rates), over the error without sampling.
    below = np.stack(gains)[:, :, :-1]
    best = np.median(below.min(axis=2), axis=0)
    rate = np.array(RATES)[np.stack(gains)[:, 0].argmin(axis=1)]
    middle = below[:, 1]
    tenth, hundredth = np.median(middle[:, 3]), np.median(middle[:, 0])
    at_hundredth = np.median(below[:, 0, 0])
    for name, held, shown in (
        ("small", (below[:, 0] < 1).all(axis=1), f"MSE × {best[0]:.3f} at best"),
        ("small_rates", rate <= 0.1, f"best rate {np.median(rate):.0%}, MSE × {at_hundredth:.2f} still at 1 %"),
        (
            "middle",
            (middle[:, 0] > middle[:, 3]) & (middle[:, 3] < 1.0),
            f"ε = 0.2: MSE × {tenth:.2f} at 10 %, × {hundredth:.2f} at 1 %",
        ),
        ("large", (below[:, 3] >= 1).all(axis=1), f"MSE × {best[3]:.2f} at best"),
    ):
        results.add_row(name, shown, mostly(held), held=holds_note(held))
    results.add_row("best", best[2])
    _draw_errors(results, errors, epsilons)


def mixture_population(results: Reproduction, seed: int) -> None:
    """Draw the density of the mixture and its median (Fig 9)."""
    population = printed_mixture()
    others = [drawn.median for drawn in drawn_populations("mixture", seed)]
    gap = float(population.ordered[N // 2 + 1]) - population.median
    results.add_row("median", population.median, low=min(others), high=max(others))
    results.add_row("largest", f"the next value is {gap:.2f} away", gap > 0.3)
    results.add_panel("density", [histogram(population.ordered)])


def mixture_ratios(results: Reproduction, seed: int) -> None:
    """Compare the smooth sensitivities of samples with the mixture's (Fig 10)."""
    study = mixture_study(seed)
    for (epsilon, n), sensitivities_of in study.items():
        smaller, samples = int(np.sum(sensitivities_of.ratios < 1.0)), len(sensitivities_of.ratios)
        least, most = (float(end) for end in clopper_pearson(smaller, samples, alpha=0.025))
        values = {"samples": samples, "least": least, "most": most}
        results.add_row("smaller", smaller / samples, least > 0.5, epsilon=epsilon, n=n, **values)
    _draw_ratios(results, study, {})


def mixture_medians(results: Reproduction, _seed: int) -> None:
    """Draw the exact distribution of the mixture's sample median (Fig 11)."""
    population, near = printed_mixture(), 0.03
    edges = np.linspace(0.0, 1.0, 101)
    middles = (edges[:-1] + edges[1:]) / 2

    def window(law: NDArray[np.float64], centre: float) -> float:
        return float(law[np.abs(population.ordered - centre) <= near].sum())

    for n in SIZES:
        law = SimpleRandomSample(N, n / N).median_law()
        bars = np.histogram(population.ordered, bins=edges, weights=law)[0] / np.diff(edges)
        below, around = float(law[: N // 2 + 1].sum()), window(law, population.median)
        typical = max(window(law, float(middle)) for middle in middles[middles < population.median])
        shown = f"{below:.1%} in the lower part, {1 - below:.1%} in the upper, {around:.1%} within 0.03 of the true"
        results.add_row("modes", shown, 0.25 < below < 0.75 and around < typical / 2.0, n=n, typical=typical)
        true = Series("true median", [population.median] * 2, [0.0, float(bars.max())])
        results.add_panel("medians", [Series("exact", middles, bars, "bars"), true], n=n)


def mixture_noise(results: Reproduction, seed: int) -> None:
    """Compare the noise on the mixture's median with that on a sample's (Fig 12)."""
    study = mixture_study(seed)
    for (epsilon, n), sensitivities_of in study.items():
        squares = sensitivities_of.ratios**2
        # Relative error of the root mean square: two standard errors of the mean square, halved by the square root.
        error = float(squares.std(ddof=1) / np.sqrt(len(squares)) / squares.mean())
        reduced = sensitivities_of.noise_ratio * (1.0 + error) < 1.0
        results.add_row("reduced", sensitivities_of.noise_ratio, reduced, epsilon=epsilon, n=n, error=error)
    _draw_noise(results, study)


def mixture_errors(results: Reproduction, seed: int) -> None:
    """Compare mean square errors by sampling rate and ε, for the mixture (Fig 13)."""
    epsilons, samples = (0.1, 0.5, 1.0, 3.0, 4.0), 200
    errors = mean_square_errors(printed_mixture(), seed, epsilons=epsilons, delta=FITTED_DELTA, samples=samples)
    gains = errors[:, :-1] / errors[:, -1:]
    results.add_row("largest", max(epsilon for epsilon, row in zip(epsilons, gains, strict=True) if (row < 1.0).any()))
    for epsilon, row in zip(epsilons, gains, strict=True):
        name = "best_published" if epsilon <= 3.0 else "best"
        results.add_row(name, row.min(), epsilon=epsilon, rate=RATES[int(row.argmin())], samples=samples)
    _draw_errors(results, errors, epsilons)


TRIED = {"lognormal": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0), "mixture": (1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)}
# The table's δ and its largest ε are missing from the text: the conclusions are checked at each δ of this range.
CONCLUSION_DELTAS = (1e-3, 1e-5, 1e-8)


def largest_gains(kind: str, seed: int, delta: float) -> NDArray[np.float64]:
    """Return, per population, the largest ε tried with a gain at some rate, (populations,) float64; 0 if none."""
    largest = []
    for population in drawn_populations(kind, seed)[:10]:
        errors = mean_square_errors(population, seed, epsilons=TRIED[kind], delta=delta, samples=40)
        gains = [bool((row[:-1] < row[-1]).any()) for row in errors]
        largest.append(max((epsilon for epsilon, gain in zip(TRIED[kind], gains, strict=True) if gain), default=0.0))
    return np.array(largest)


def conclusions(results: Reproduction, seed: int) -> None:
    """Compute the four rows of Table 1, where accuracy gains from sampling can be expected."""
    limit = max(variance_limit(epsilon, rate) for epsilon in (0.001, 0.1, 1.0, 10.0) for rate in RATES[:-1])
    shortfall = min(noise_shortfall(epsilon, rate) for epsilon in (1e-12, 1e-6, 0.1, 1.0, 10.0) for rate in RATES[:-1])
    results.add_row("variance", f"the sampling variance must stay below r·2Δ²/ε², r ≤ {limit:.6f} < 1", limit < 1.0)
    results.add_row("mean", f"noise on the sample's mean always larger: 1 − √R ≥ {shortfall:.1e} > 0", shortfall > 0.0)
    ends = {kind: {delta: largest_gains(kind, seed, delta) for delta in CONCLUSION_DELTAS} for kind in TRIED}
    for kind, least, most in (("lognormal", 0.1, 1.0), ("mixture", 3.0, 5.0)):
        of = ends[kind]
        held = [bool(((gains >= least) & (gains < most)).all()) for gains in np.stack(list(of.values())).T]
        shown = "; ".join(f"δ = {delta:g}: {gains.min():g} to {gains.max():g}" for delta, gains in of.items())
        gained = f"gains up to ε = {np.median(of[1e-5]):g} (median of populations, δ = 1e-5)"
        results.add_row(kind, gained, mostly(held), shown=shown, least=least, most=most, held=holds_note(held))
    low, high = ends["lognormal"][1e-5].max(), ends["mixture"][1e-5].min()
    results.add_row("gap", f"{low:g} at most against {high:g} at least", low < high)
    names = [f"δ = {delta:g}" for delta in CONCLUSION_DELTAS]
    curves = []
    for name, by_delta in zip(("Lognormal(5, 0.5)", "two betas with a gap"), ends.values(), strict=True):
        every = np.stack(list(by_delta.values()))
        low, high = every.min(axis=1), every.max(axis=1)
        curves.append(Series(name, names, np.median(every, axis=1), "points", low=low, high=high))
    results.add_panel("gains", curves)

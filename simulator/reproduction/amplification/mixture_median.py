"""hdk-fig9 to hdk-fig13: the private median of a population with a gap at its median (HDK sec 4.4, appendix B)."""

from functools import lru_cache

import numpy as np

from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.privacy.audit import clopper_pearson
from simulator.reproduction.amplification.median_study import (
    EPSILONS,
    FITTED_DELTA,
    RATES,
    Sensitivities,
    by_size,
    drawn_populations,
    error_panel,
    histogram,
    mean_square_errors,
    noise_panel,
    ratio_panel,
    sampled_ranks,
    sensitivities,
)
from simulator.reproduction.amplification.populations import SIZES, N, printed_mixture
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.streams import Streams

PRINTED_MEDIAN, PRINTED_LARGEST_EPSILON = 0.21, 3.0
SAMPLES = 1000
ERROR_EPSILONS = (0.1, 0.5, 1.0, 3.0, 4.0)
ERROR_SAMPLES, ERROR_POPULATIONS = 200, 10
# Half the width of the window around the true median.
NEAR = 0.03
OURS = "The population is appendix B's own, by R's set.seed(123)."


@lru_cache(maxsize=4)
def mixture_study(seed: int) -> dict[tuple[float, int], Sensitivities]:
    """Return S* of samples from the paper's own population, by (ε, n)."""
    rng = Streams(seed).of("reproduction", "hdk", "printed mixture")
    ranks = {n: sampled_ranks(n, SAMPLES, rng=rng) for n in SIZES}
    return {
        (epsilon, n): sensitivities(printed_mixture(), ranks[n], epsilon=epsilon, delta=FITTED_DELTA)
        for epsilon in EPSILONS
        for n in SIZES
    }


def reproduce_population(*, seed: int) -> Reproduction:
    """Draw the population's density and its median."""
    population = printed_mixture()
    others = [one.median for one in drawn_populations("mixture", seed)]
    gap = float(population.ordered[N // 2 + 1]) - population.median
    rows = [
        Row(
            "median of the population",
            PRINTED_MEDIAN,
            population.median,
            round(population.median, 2) == PRINTED_MEDIAN,
            f"to the printed digits. {OURS} Other populations of its law have {min(others):.2f} to {max(others):.2f}.",
        ),
        Row(
            "the median is the largest value of the first component",
            "yes",
            f"the next value is {gap:.2f} away",
            gap > 0.3,
            "“the distance between the median and one of its neighbors will be large”",
        ),
    ]
    drawing = histogram(population.ordered, title="Two scaled and shifted betas, median 0.21", x_title="value")
    return Reproduction(rows=rows, drawings=[drawing])


def reproduce_ratios(*, seed: int) -> Reproduction:
    """Compare the smooth sensitivities of samples with the population's."""
    rows = []
    for (epsilon, n), found in mixture_study(seed).items():
        smaller = int(np.sum(found.ratios < 1.0))
        least, most = clopper_pearson(smaller, SAMPLES, alpha=0.025)
        rows.append(
            Row(
                f"epsilon={epsilon:g}, n={n:,}: smaller in most samples",
                "most",
                smaller / SAMPLES,
                bool(least > 0.5),
                f"Share of {SAMPLES:,} samples, 95 % interval {float(least):.3f} to {float(most):.3f}; rule: above "
                f"one half. δ = {FITTED_DELTA:g} (lost). {OURS}",
            )
        )
    drawings = [ratio_panel(epsilon, by_size(mixture_study(seed), epsilon)) for epsilon in EPSILONS]
    return Reproduction(rows=rows, drawings=drawings)


def reproduce_medians(*, seed: int) -> Reproduction:  # noqa: ARG001 - exact
    """Draw the exact distribution of the sample median."""
    population = printed_mixture()
    edges = np.linspace(0.0, 1.0, 101)
    rows, drawings = [], []
    for n in SIZES:
        law = SimpleRandomSample(N, n / N).median_law()
        bars = np.histogram(population.ordered, bins=edges, weights=law)[0] / np.diff(edges)
        middles = (edges[:-1] + edges[1:]) / 2
        below = float(law[: N // 2 + 1].sum())
        near = float(law[np.abs(population.ordered - population.median) <= NEAR].sum())
        typical = max(
            float(law[np.abs(population.ordered - middle) <= NEAR].sum())
            for middle in middles[middles < population.median]
        )
        beyond = 1.0 - below
        held = 0.25 < below < 0.75 and near < typical / 2.0
        rows.append(
            Row(
                f"n={n:,}: two modes, few medians near the true one",
                "yes",
                f"{below:.1%} in the lower part, {beyond:.1%} in the upper, {near:.1%} within {NEAR:g} of the true",
                held,
                "Exact, by the law of the sample median's rank. Rule: between a quarter and three quarters on either "
                "side of the gap, and near the true median less than half of what as wide a window holds at most "
                f"({typical:.1%}).",
            )
        )
        curves = [
            Curve("exact", middles.tolist(), bars.tolist(), kind="bars"),
            Curve("true median", [population.median] * 2, [0.0, float(bars.max())]),
        ]
        drawings.append(Drawing(f"n = {n:,}", "sample median", "density", curves))
    return Reproduction(rows=rows, drawings=drawings)


def reproduce_noise(*, seed: int) -> Reproduction:
    """Compare the noise on the population's median with that on a sample's."""
    study = mixture_study(seed)
    rows = []
    for (epsilon, n), found in study.items():
        squares = found.ratios**2
        # Relative error of the root mean square: two standard errors of the mean square, halved by the square root.
        error = float(squares.std(ddof=1) / np.sqrt(SAMPLES) / squares.mean())
        rows.append(
            Row(
                f"epsilon={epsilon:g}, n={n:,}: noise reduced",
                "yes",
                found.noise_ratio,
                found.noise_ratio * (1.0 + error) < 1.0,
                f"σ of a sample's noise over the population's, ±{error:.1%} (95 %). {OURS} "
                f"δ = {FITTED_DELTA:g} (lost).",
            )
        )
    drawings = [noise_panel(epsilon, by_size(study, epsilon), unit="same as the values") for epsilon in EPSILONS]
    return Reproduction(rows=rows, drawings=drawings)


@lru_cache(maxsize=4)
def printed_errors(seed: int) -> np.ndarray:
    """Return mean square errors of the paper's own population, (ε, rates) float64."""
    return mean_square_errors(
        printed_mixture(), seed, epsilons=ERROR_EPSILONS, delta=FITTED_DELTA, samples=ERROR_SAMPLES
    )


def reproduce_errors(*, seed: int) -> Reproduction:
    """Compare mean square errors by sampling rate and ε."""
    errors = printed_errors(seed)
    gains = errors[:, :-1] / errors[:, -1:]
    largest = max(epsilon for epsilon, row in zip(ERROR_EPSILONS, gains, strict=True) if (row < 1.0).any())
    rows = [
        Row(
            "largest ε at which sampling gains",
            PRINTED_LARGEST_EPSILON,
            largest,
            largest == PRINTED_LARGEST_EPSILON,
            f"Of ε = 0.1, 0.5, 1, 3 and 4. “gains can still be observed for values as large as 3”. {OURS}",
        )
    ]
    for epsilon, row in zip(ERROR_EPSILONS, gains, strict=True):
        best = int(row.argmin())
        told = epsilon <= PRINTED_LARGEST_EPSILON
        rows.append(
            Row(
                f"epsilon={epsilon:g}: best mean square error, over the population's",
                "below 1" if told else None,
                float(row[best]),
                bool(row[best] < 1.0) if told else None,
                f"At a rate of {RATES[best]:.0%}; bias and variance of the sample median included, exact; the noise's "
                f"averaged over {ERROR_SAMPLES} samples. δ = {FITTED_DELTA:g} (lost).",
            )
        )
    drawing = error_panel(errors, ERROR_EPSILONS, title="Two betas with a gap at the median")
    return Reproduction(rows=rows, drawings=[drawing])


ENTRIES = (
    Entry("hdk-fig9", "HDK", "Fig 9: a population with a gap at its median", reproduce_population),
    Entry(
        "hdk-fig10", "HDK", "Fig 10: smooth sensitivity of samples over the population's, with a gap", reproduce_ratios
    ),
    Entry("hdk-fig11", "HDK", "Fig 11: the law of the sample median, with a gap", reproduce_medians),
    Entry("hdk-fig12", "HDK", "Fig 12: noise on the median, with a gap", reproduce_noise),
    Entry("hdk-fig13", "HDK", "Fig 13: mean square error by sampling rate, with a gap", reproduce_errors),
)

"""hdk-fig1 and hdk-fig2: how much Laplace noise a mean and a median of 10,001 beta values need."""

import math
from itertools import pairwise

from mechanisms.central.laplace_mean import LaplaceMean
from mechanisms.central.smooth_median import SmoothMedian
from simulator.reproduction.amplification.median_study import DELTAS
from simulator.reproduction.amplification.panels import histogram
from simulator.reproduction.amplification.population import N, seeded_beta
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

# The text lost the values of ε, N and the number of repetitions; these are those under which its sentences fit.
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
REPETITIONS = 1000
PRINTED_RANGE = (-50, 100)
TENS = 5.0


def reproduce_mean(*, seed: int) -> Reproduction:  # noqa: ARG001 - all of it is theory, on the paper's own population
    """Draw the density of the population and the spread of private means (HDK sec 2.4)."""
    values = seeded_beta().ordered
    releases = {epsilon: LaplaceMean(epsilon=epsilon, lower=0.0, upper=1.0) for epsilon in EPSILONS}
    errors = {epsilon: release.std_error(values) for epsilon, release in releases.items()}
    mean = float(values.mean())
    reach = {epsilon: math.log(20.0) * release.noise_scale(N) for epsilon, release in releases.items()}
    least, most = EPSILONS[0], EPSILONS[-1]
    rows = [
        Row(
            "violins become narrower as ε rises",
            "yes",
            f"σ {errors[least]:.2e} at ε = {least:g}, {errors[most]:.2e} at {most:g}",
            all(errors[a] > errors[b] for a, b in pairwise(EPSILONS)),
            "“more concentrated around the mean … as ε increases”; exact, √2·R/(N·ε)",
        ),
        Row(
            "relatively high utility even if ε is small",
            "yes",
            f"95 % of the noise within {reach[least] / mean:.1%} of the mean at ε = {least:g}",
            reach[least] < 0.05 * mean,
            "Rule: within 5 % of the mean at the smallest ε; exact. N is lost, taken as 10,001 as in secs 4.3 and 4.4.",
        ),
        Row("global sensitivity of the mean, R/N", None, 1.0 / N, None, "the printed value is lost; R = 1"),
    ]
    names = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    drawings = [
        histogram(values, title="Density of the population, Beta(2, 10)", x_title="value"),
        Drawing(
            "Private means",
            "ε",
            "private mean",
            [
                Curve(
                    "median and 95 %",
                    names,
                    [mean] * len(names),
                    "points",
                    low=[mean - reach[epsilon] for epsilon in EPSILONS],
                    high=[mean + reach[epsilon] for epsilon in EPSILONS],
                )
            ],
        ),
    ]
    return Reproduction(rows=rows, drawings=drawings)


def reproduce_median(*, seed: int) -> Reproduction:  # noqa: ARG001 - all of it is theory, on the paper's own population
    """Compare noise by global and by smooth sensitivity on the median (HDK sec 2.4)."""
    population = seeded_beta()
    median = population.median
    ends = {end: _extreme(1.0 / EPSILONS[0], REPETITIONS, probability) for end, probability in _ENDS.items()}
    low, high = PRINTED_RANGE
    rows = [
        _range_row("smallest private median", low, -ends["high"] + median, -ends["low"] + median),
        _range_row("greatest private median", high, ends["low"] + median, ends["high"] + median),
    ]
    within = {delta: _inside(delta, median) for delta in DELTAS}
    rows.append(
        Row(
            "smooth sensitivity: almost all within the support even at the smallest ε",
            "yes",
            f"{min(within.values()):.1%} to {max(within.values()):.1%} at ε = {EPSILONS[0]:g}, by δ",
            within[1e-5] > 0.95,
            f"Rule: more than 95 % at δ = 1e-5, {within[1e-5]:.1%}; at δ = 1e-8 it is {within[1e-8]:.1%}. "
            "The text lost δ. Exact given the population, N = 10,001 by R's seed 123, our choice.",
        )
    )
    scales = {delta: [_smooth_scale(epsilon, delta) for epsilon in EPSILONS] for delta in DELTAS}
    shrunk = min(1.0 / epsilon / scale for of in scales.values() for epsilon, scale in zip(EPSILONS, of, strict=True))
    rows.append(
        Row(
            "smooth against global sensitivity: the reduction is striking",
            "yes",
            f"noise at least {shrunk:,.0f} times smaller",
            shrunk > 10.0,
            "Rule: more than ten times, at every ε and δ.",
        )
    )
    names = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    drawings = [
        _panel("Global sensitivity", names, median, [1.0 / epsilon for epsilon in EPSILONS]),
        _panel("Smooth sensitivity, δ = 1e-5", names, median, scales[1e-5]),
    ]
    finding = (
        f"The text lost ε, N and the number of repetitions. Its range of about −50 to 100 fits the smallest ε = "
        f"{EPSILONS[0]:g} with {REPETITIONS:,} repetitions, each end being a little beside the middle of what chance "
        "gives; its sentence about smooth sensitivity fits N near 10,000 and not 1,000."
    )
    return Reproduction(rows=rows, drawings=drawings, findings=[finding])


# Of the greatest of many Laplace variables.
_ENDS = {"low": 0.025, "high": 0.975}


def _extreme(scale: float, repetitions: int, probability: float) -> float:
    """Return the quantile of the greatest of so many Laplace variables: (1 − e^(−x/b)/2)^T is the probability."""
    return -scale * math.log(-2.0 * math.expm1(math.log(probability) / repetitions))


def _range_row(key: str, printed: int, low: float, high: float) -> Row:
    """Compare one end of the printed range with the interval chance gives it."""
    return Row(
        f"global sensitivity, smallest ε: {key}",
        printed,
        f"{low:.0f} to {high:.0f}",
        low - TENS <= printed <= high + TENS,
        f"95 % interval, exact, of the extreme of {REPETITIONS:,} repetitions at ε = {EPSILONS[0]:g} (both lost, and "
        "taken so as to fit); “about” is read as to the nearest ten.",
    )


def _smooth_scale(epsilon: float, delta: float) -> float:
    """Return the scale of the noise by smooth sensitivity, the bounds being 0 and 1."""
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=0.0, upper=1.0)
    return math.sqrt(release.noise_variance(seeded_beta().ordered)[0] / 2.0)


def _inside(delta: float, median: float) -> float:
    """Return the probability that the private median is within the bounds at the smallest ε."""
    scale = _smooth_scale(EPSILONS[0], delta)
    return 1.0 - 0.5 * math.exp(-median / scale) - 0.5 * math.exp(-(1.0 - median) / scale)


def _panel(title: str, names: list[str], median: float, scales: list[float]) -> Drawing:
    """Draw the spread of private medians by ε."""
    reach = [math.log(20.0) * scale for scale in scales]
    curve = Curve(
        "median and 95 %",
        names,
        [median] * len(names),
        "points",
        low=[median - end for end in reach],
        high=[median + end for end in reach],
    )
    return Drawing(title, "ε", "private median", [curve])


ENTRIES = (
    Entry("hdk-fig1", "HDK", "Fig 1: the population, and its private means by ε", reproduce_mean),
    Entry("hdk-fig2", "HDK", "Fig 2: private medians by global and by smooth sensitivity", reproduce_median),
)

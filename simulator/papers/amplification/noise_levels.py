"""Figs 1 to 5: the noise on a mean and a median of beta values, and effects that depend on the sampling rate alone."""

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechanisms.central.laplace import LaplaceMean
from mechanisms.central.smooth_median import SmoothMedian
from mechanisms.privacy.subsampling import population_privacy, sample_privacy
from simulator.pages.charts import Series
from simulator.papers.amplification.populations import DELTAS, N, histogram, seeded_beta
from simulator.papers.published_results import Reproduction

# ε, N and the number of repetitions are missing from the text; these values agree with its sentences.
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
REPETITIONS = 1000


def _spread(epsilons: tuple[float, ...], centre: float, reach: list[float]) -> Series:
    """Return the median and the middle 95 % of private values by ε."""
    low, high = [centre - end for end in reach], [centre + end for end in reach]
    names = [f"ε = {epsilon:g}" for epsilon in epsilons]
    return Series("median and 95 %", names, [centre] * len(names), "points", low=low, high=high)


def private_mean(results: Reproduction, _seed: int) -> None:
    """Draw the density of the population and the spread of private means (HDK sec 2.4, Fig 1)."""
    values = seeded_beta().ordered
    releases = [LaplaceMean(epsilon=epsilon, lower=0.0, upper=1.0) for epsilon in EPSILONS]
    errors = [release.std_error(values) for release in releases]
    mean = float(values.mean())
    reach = [math.log(20.0) * release.noise_scale(N) for release in releases]
    shown = f"σ {errors[0]:.2e} at ε = {EPSILONS[0]:g}, {errors[-1]:.2e} at {EPSILONS[-1]:g}"
    results.add_row("narrower", shown, all(a > b for a, b in pairwise(errors)))
    shown = f"95 % of the noise within {reach[0] / mean:.1%} of the mean at ε = {EPSILONS[0]:g}"
    results.add_row("utility", shown, reach[0] < 0.05 * mean)
    results.add_row("sensitivity", 1.0 / N)
    results.add_panel("density", [histogram(values)])
    results.add_panel("means", [_spread(EPSILONS, mean, reach)])


def private_median(results: Reproduction, _seed: int) -> None:
    """Compare noise by global and by smooth sensitivity on the median (HDK sec 2.4, Fig 2)."""
    median = seeded_beta().median
    # Quantiles of the greatest of many Laplace variables, in the range that the text states to the nearest ten.
    least, most = (_extreme(1.0 / EPSILONS[0], REPETITIONS, probability) for probability in (0.025, 0.975))
    for name, low, high, printed in (
        ("smallest", median - most, median - least, -50),
        ("greatest", median + least, median + most, 100),
    ):
        agrees = low - 5.0 <= printed <= high + 5.0
        results.add_row("range", f"{low:.0f} to {high:.0f}", agrees, published=printed, name=name)
    scales = {delta: [_smooth_scale(epsilon, delta) for epsilon in EPSILONS] for delta in DELTAS}
    within = {
        delta: 1.0 - 0.5 * math.exp(-median / of[0]) - 0.5 * math.exp(-(1.0 - median) / of[0])
        for delta, of in scales.items()
    }
    shown = f"{min(within.values()):.1%} to {max(within.values()):.1%} at ε = {EPSILONS[0]:g}, by δ"
    results.add_row("support", shown, within[1e-5] > 0.95, middle=within[1e-5], least=within[1e-8])
    shrunk = min(1.0 / epsilon / scale for of in scales.values() for epsilon, scale in zip(EPSILONS, of, strict=True))
    results.add_row("striking", f"noise at least {shrunk:,.0f} times smaller", shrunk > 10.0)
    for title, of in (
        ("Global sensitivity", [1.0 / e for e in EPSILONS]),
        ("Smooth sensitivity, δ = 1e-5", scales[1e-5]),
    ):
        results.add_panel("medians", [_spread(EPSILONS, median, [math.log(20.0) * scale for scale in of])], title=title)
    results.add_findings("missing")


def _extreme(scale: float, repetitions: int, probability: float) -> float:
    """Return the quantile x of the greatest of T Laplace variables: (1 − e^(−x/b)/2)^T is the given probability."""
    return -scale * math.log(-2.0 * math.expm1(math.log(probability) / repetitions))


def _smooth_scale(epsilon: float, delta: float) -> float:
    """Return the scale of the noise by smooth sensitivity, with the bounds 0 and 1."""
    release = SmoothMedian(epsilon=epsilon, delta=delta, lower=0.0, upper=1.0)
    return math.sqrt(release.noise_variance(seeded_beta().ordered)[0] / 2.0)


def amplification(results: Reproduction, _seed: int) -> None:
    """Draw ε_n against the sampling rate for several ε_N (HDK theorem 1, Fig 3)."""
    shares = [float(f"{share:.4g}") for share in np.geomspace(1e-4, 1.0, 41)]
    curves, back = [], 0.0
    for epsilon in EPSILONS:
        sampled = [sample_privacy(epsilon=epsilon, share=share)[0] for share in shares]
        again = (
            population_privacy(epsilon=of_sample, share=share)[0]
            for of_sample, share in zip(sampled, shares, strict=True)
        )
        back = max(back, *(abs(of_sample / epsilon - 1.0) for of_sample in again))
        curves.append(Series(f"ε_N = {epsilon:g}", shares, sampled))
    for epsilon in (0.1, 1.0):
        results.add_row("sample", sample_privacy(epsilon=epsilon, share=0.01)[0], epsilon=epsilon)
    off = max(abs(sample_privacy(epsilon=0.1, delta=1e-6, share=share)[1] * share / 1e-6 - 1.0) for share in shares)
    results.add_row("linear", f"δ_n·(n/N)/δ_N is 1 within {off:.0e}", off < 1e-12)
    results.add_row("inverse", back)
    amplified = sample_privacy(epsilon=0.1, share=0.01)[0]
    results.add_row("substantial", f"ε_n = {amplified:.2f} where ε_N = 0.1, at 1 %", amplified > 10 * 0.1)
    results.add_panel("epsilon", curves)


def variance_limit(epsilon: float, share: float) -> float:
    """Return r = 1 − (ε_N/ε_n)²: a sampling variance below r·2Δ²/ε_N² may leave a gain (HDK sec 4.1)."""
    return 1.0 - (epsilon / sample_privacy(epsilon=epsilon, share=share)[0]) ** 2


def sampling_variance(results: Reproduction, _seed: int) -> None:
    """Draw r against the sampling rate (HDK Fig 4): the limit of the sampling variance over the noise variance."""
    shares = np.round(np.linspace(0.005, 1.0, 200), 6)
    limits = {
        epsilon: np.array([variance_limit(epsilon, float(share)) for share in shares])
        for epsilon in (3.0, 2.0, 1.0, 0.5, 0.1, 0.01)
    }
    linear = 1.0 - shares
    steep = float(shares[-np.gradient(limits[3.0], shares) > 1.0].max(initial=0.0))
    small = (0.5, 0.1, 0.01)
    needed = {
        epsilon: float(brentq(lambda share, of=epsilon: variance_limit(of, share) - 0.5, 1e-6, 1.0))
        for epsilon in (3.0, 0.1)
    }
    results.add_row("ratio", (3.0 / 0.1) ** 2)
    shown = f"below the line at every rate; steeper than it only at rates under {steep:.1%}"
    results.add_row("below_linear", shown, (limits[3.0][:-1] < linear[:-1]).all() and steep < 0.2)
    shown = ", ".join(f"{variance_limit(tried, 0.5):.2f} (ε = {tried:g})" for tried in small)
    reversed_ = all(_quick_then_slow(limits[tried], shares) for tried in small)
    results.add_row("reversed", f"r at a rate of 50 %: {shown}", reversed_)
    results.add_row("flat", np.abs(limits[0.1] - limits[0.01]).max())
    results.add_row("square", np.abs(limits[0.01] - (1.0 - np.square(shares))).max())
    results.add_row("benchmark", f"{needed[3.0]:.3f} against {needed[0.1]:.3f}", needed[3.0] < needed[0.1])
    greatest = max(float(of.max()) for of in limits.values())
    results.add_row("no_gain", f"greatest r {greatest:.4f}", greatest < 1.0)
    results.add_panel("room", [Series(f"ε = {epsilon:g}", shares, of) for epsilon, of in limits.items()])


def _quick_then_slow(limits: NDArray[np.float64], shares: NDArray[np.float64]) -> bool:
    """Return whether r lies above the line 1 − n/N and, as rates fall, rises more slowly at 10 % than at 99 %."""
    middle = (shares >= 0.1) & (shares <= 0.99)
    slope = -np.gradient(limits, shares)[middle]
    return bool((limits > 1.0 - shares)[middle].all() and slope[0] < slope[-1])


def noise_shortfall(epsilon: float, share: float) -> float:
    """Return 1 − √R = 1 − (n/N)·ε_n/ε_N with 80 digits, where R is the noise ratio of means (HDK eq 8)."""
    with localcontext() as context:
        context.prec = 80
        exact, rate = Decimal(epsilon), Decimal(share)
        return float(1 - rate * (1 + (exact.exp() - 1) / rate).ln() / exact)


def plain_noise_ratio(epsilon: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return R in plain double arithmetic, by exp(ε) − 1 and log(1 + …), which loses all digits at tiny ε."""
    return (share * np.log(1.0 + (np.exp(epsilon) - 1.0) / share) / epsilon) ** 2


def mean_ratio(results: Reproduction, _seed: int) -> None:
    """Search for the ε below which sampling reduces the noise on a mean (HDK Fig 5)."""
    tried = np.geomspace(1e-14, 10.0, 1501)
    shares = [float(share) for share in np.geomspace(1e-4, 0.9, 33)]
    rounding = [float(tried[plain_noise_ratio(tried, share) >= 1.0].max()) for share in shares]
    smallest = min(noise_shortfall(epsilon, share) for epsilon in (1e-20, 1e-12, 1e-8, 0.1, 3.0) for share in shares)
    samples = [sample_privacy(epsilon=at, share=share)[0] for at, share in zip(rounding, shares, strict=True)]
    turn = shares[int(np.argmin(samples))]
    tiny = noise_shortfall(1e-12, 0.1)
    results.add_row("reaches_1", "no: R < 1 for every ε > 0 and n < N", smallest <= 0.0, smallest=smallest)
    results.add_row("approaches_1", f"1 − √R = {tiny:.3e} at ε = 1e-12, n/N = 0.1", 0.0 < tiny < 1e-11)
    shown = f"none; plain doubles first round R up to 1 at ε = {rounding[0]:.1e}, ε_n = {samples[0]:.1e}"
    results.add_row("needed", shown, smallest <= 0.0)
    rises = samples[0] > samples[int(np.argmin(np.abs(np.array(shares) - 0.1)))] > min(samples)
    results.add_row("rises", f"that of the rounding curve is least at {turn:.0%}, and rises below it", rises)
    results.add_row("unlikely", "impossible", smallest > 0.0)
    logs = [math.log(at) for at in rounding]
    drawn = (1e-8, 1e-6, 1e-4, 1e-2, 1.0, 3.0)
    results.add_panel(
        "rounding", [Series("greatest ε with R ≥ 1 in plain doubles; exactly, there is none", shares, logs)]
    )
    results.add_panel("sample", [Series("by rounding", shares, samples)])
    curves = [
        Series(f"n/N = {share:g}", drawn, [noise_shortfall(e, share) for e in drawn]) for share in (0.5, 0.1, 0.01)
    ]
    results.add_panel("shortfall", curves)
    results.add_findings("rounding")

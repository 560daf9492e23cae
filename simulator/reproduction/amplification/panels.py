"""Panels: the drawings that several of HDK's figures share."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from simulator.reproduction.amplification.median_study import RATES, Sensitivities
from simulator.reproduction.amplification.population import SIZES, N
from simulator.reproduction.entry import Curve, Drawing

# Half of 5 % at either end of a band.
TAIL = 0.025


def histogram(values: NDArray[np.float64], *, title: str, x_title: str, bins: int = 60) -> Drawing:
    """Return the density of values as bars."""
    heights, edges = np.histogram(values, bins=bins, density=True)
    middles = (edges[:-1] + edges[1:]) / 2
    return Drawing(title, x_title, "density", [Curve("drawn anew", middles.tolist(), heights.tolist(), kind="bars")])


def ratio_panel(
    epsilon: float, found: Mapping[int, Sensitivities], *, printed: Mapping[int, float] | None = None
) -> Drawing:
    """Return the sample's smooth sensitivity over the population's, by n: median and the middle 95 % of samples."""
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
    """Return the middle 95 % of the noise, by n, exact for the smooth sensitivities found."""
    first = next(iter(found.values()))
    scales = {N: np.array([2.0 * first.whole / first.epsilon])}
    scales |= {n: 2.0 * one.sampled / one.sample_epsilon for n, one in found.items()}
    reach = [noise_reach(of) for of in scales.values()]
    names = ["population", *(f"n = {n:,}" for n in found)]
    curve = Curve("95 % of the noise", names, [0.0] * len(names), "points", low=[-end for end in reach], high=reach)
    return Drawing(f"ε = {epsilon:g}", "noise on the median of", f"noise, {unit}", [curve])


def noise_reach(scales: NDArray[np.float64]) -> float:
    """Return what the noise exceeds, either way, with 5 %: Laplace noise of a scale drawn from these."""
    most = float(scales.max()) * -math.log(2.0 * TAIL)
    return float(brentq(lambda end: float(np.mean(np.exp(-end / scales))) - 2.0 * TAIL, 0.0, most * (1.0 + 1e-9)))


def error_panel(errors: NDArray[np.float64], epsilons: Sequence[float], *, title: str) -> Drawing:
    """Return ln(mean square error) against the sampling rate, a line for each ε."""
    curves = [
        Curve(f"ε = {epsilon:g}", list(RATES), np.log(row).tolist())
        for epsilon, row in zip(epsilons, errors, strict=True)
    ]
    return Drawing(title, "sampling rate n/N", "ln(mean square error)", curves, log_x=True)


def by_size(found: Mapping[tuple[float, int], Sensitivities], epsilon: float) -> dict[int, Sensitivities]:
    """Return those of one ε, by n."""
    return {n: found[epsilon, n] for n in SIZES}

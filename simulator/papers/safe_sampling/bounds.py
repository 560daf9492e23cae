"""Tables 1 and 2 and Figs 1 to 6: amplification by sampling, and δ of suppression after sampling (theorems 1, 5)."""

import itertools
import math
from collections.abc import Callable

import numpy as np

from mechanisms.privacy import pair_epsilon, resampled_privacy, strongly_safe_delta, worst_crowd_delta
from mechanisms.privacy.binomial import mass_above, mass_at
from mechanisms.privacy.subsampling import least_epsilon
from simulator.pages.charts import Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.published_results import Reproduction
from simulator.results.formatting import finite


def amplified(epsilon: float, sampling: float, *, delta: float = 0.0) -> tuple[float, float]:
    """Return ε and δ after sampling with a probability, of an algorithm that satisfies (ε, δ) (theorem 1)."""
    return resampled_privacy(epsilon=epsilon, delta=delta, sampling=1.0, to=sampling)


def amplification_table(results: Reproduction, _seed: int) -> None:
    """Recompute Table 1 and the text's statements about it."""
    printed, betas = results.entry.printed, results.entry.numbers["beta"]
    for i, beta in enumerate(betas):
        epsilon, small = amplified(math.log(11), beta, delta=1e-5)
        results.add_row("factor", math.exp(epsilon), printed=printed["factor"][i], beta=beta)
        results.add_row("epsilon", epsilon, printed=printed["epsilon"][i], beta=beta)
        results.add_row("delta", small, printed=printed["delta"][i], beta=beta)
    for beta, text in zip(betas, printed["epsilon_1"], strict=True):
        results.add_row("epsilon_1", amplified(1.0, beta)[0], printed=text, beta=beta)
    results.add_row("abstract", amplified(math.log(2), 0.1)[0])
    results.add_row("lemma", amplified(1.0, 0.1)[0])
    results.add_row("smith", max(amplified(1.0, b / 1000)[0] / (b / 500) for b in range(1, 1001)))
    # Sampled randomised response about a device's presence: the distribution of both outputs, without it and with it.
    yes, beta = 11 / 12, 0.1
    absent = [1.0 - yes, yes]
    present = [(1 - beta) * a + beta * b for a, b in zip(absent, absent[::-1], strict=True)]
    exact, bound = pair_epsilon(present, absent), amplified(math.log(11), beta)[0]
    results.add_row("attained", exact, abs(exact - bound) < 1e-12, bound=bound)
    rates = [0.001 * 10 ** (step / 20) for step in range(61)]
    curves = [
        Series(f"unsampled ε = {epsilon:g}", rates, [amplified(epsilon, min(rate, 1.0))[0] for rate in rates])
        for epsilon in (0.5, 1.0, math.log(11))
    ]
    table = Series("Table 1", betas, [float(text) for text in printed["epsilon_1"]], "points", style=PUBLISHED)
    results.add_panel("amplified", [*curves, table])
    results.add_findings("tight")


TABLE_K = 20
TABLE_BETAS = (0.05, 0.1, 0.2)
TABLE_EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def suppression_table(results: Reproduction, _seed: int) -> None:
    """Recompute Table 2, and the exact worst crowd beside it."""
    settings = list(itertools.product(TABLE_BETAS, TABLE_EPSILONS))
    bound, exact = (
        np.array([delta(k=TABLE_K, sampling=beta, epsilon=epsilon) for beta, epsilon in settings])
        for delta in (strongly_safe_delta, worst_crowd_delta)
    )
    shares = bound / exact
    printed = [text for beta in TABLE_BETAS for text in results.entry.printed[f"{beta:g}"]]
    for (beta, epsilon), delta, text in zip(settings, bound, printed, strict=True):
        results.add_row("theorem_5", delta, printed=text, beta=beta, epsilon=epsilon)
    for (beta, epsilon), delta, share in zip(settings, exact, shares, strict=True):
        results.add_row("exact", delta, beta=beta, epsilon=epsilon, share=share)
    lines, least = (deltas.reshape(len(TABLE_BETAS), len(TABLE_EPSILONS)) for deltas in (bound, exact))
    results.add_row("in_epsilon", "decreases" if (np.diff(lines, axis=1) < 0).all() else "does not")
    results.add_row("in_beta", "decreases" if (np.diff(lines, axis=0) > 0).all() else "does not")
    curves = []
    for beta, line, worst in zip(TABLE_BETAS, lines, least, strict=True):
        shown = [float(text) for text in results.entry.printed[f"{beta:g}"]]
        curves += [
            Series(f"β = {beta:g}, Table 2", TABLE_EPSILONS, shown, "points", style=PUBLISHED),
            Series(f"β = {beta:g}, theorem 5", TABLE_EPSILONS, line),
            Series(f"β = {beta:g}, exact worst crowd", TABLE_EPSILONS, worst),
        ]
    results.add_panel("delta", curves)
    results.add_findings("digits", "bound", low=min(shares), high=max(shares))


def tail_rate(beta: float, epsilon: float) -> float:
    """Return γ = (e^ε − 1 + β)/e^ε."""
    return 1.0 - (1.0 - beta) * math.exp(-epsilon)


def greatest_maximum(k: int, beta: float, epsilon: float) -> int:
    """Return the index of the greatest of the first 60 local maxima of the tail; 0 is the first."""
    above = np.arange(k, k + 60)
    n = np.maximum(np.ceil(above / tail_rate(beta, epsilon)) - 1.0, above)
    return int(np.argmax(mass_above(above - 1, n, beta)))


def binomial_tail(results: Reproduction, _seed: int) -> None:
    """Draw Fig 1, the binomial tail beyond γn, and find the greatest tail of many settings."""
    table = [greatest_maximum(TABLE_K, beta, epsilon) for beta in TABLE_BETAS for epsilon in TABLE_EPSILONS]
    grid = {
        (k, beta, epsilon / 100): greatest_maximum(k, beta, epsilon / 100)
        for k in (2, 5, 10, 20, 50)
        for beta in (0.05, 0.1, 0.2, 0.3, 0.4)
        for epsilon in range(math.ceil(-100 * math.log1p(-beta)), 251, 2)
    }
    later = {setting: place for setting, place in grid.items() if place}
    example = max(later, key=lambda setting: later[setting])
    k, beta, epsilon = example
    gap = max(
        abs((tail_rate(b / 20, e / 4) - b / 20) - math.expm1(e / 4) * (1 - b / 20) / math.exp(e / 4))
        for b in range(1, 20)
        for e in range(1, 13)
    )
    results.add_row("gamma", gap)
    results.add_row("later", len(later), settings=len(grid))
    results.add_row("furthest", later[example], later[example] <= 5, k=k, beta=beta, epsilon=epsilon)
    results.add_row("table", sum(place > 0 for place in table))
    gamma, n, j = tail_rate(0.2, 0.75), 100, np.arange(56)
    masses = mass_at(j, n, 0.2)
    bell = [
        Series("P[j], up to γn", j, np.where(j <= gamma * n, masses, 0), "bars"),
        Series("P[j], beyond γn: a bad output", j, np.where(j > gamma * n, masses, 0), "bars"),
    ]
    results.add_panel("bell", bell, n=n, end=gamma * n)
    crowds = np.arange(math.ceil(k / tail_rate(beta, epsilon) - 1), 6 * k + 40)
    tail = mass_above(np.floor(tail_rate(beta, epsilon) * crowds), crowds, beta)
    results.add_panel("tail", [Series("from the first n on", crowds, tail, "points")], k=k, beta=beta, epsilon=epsilon)


KS = (5, 10, 20, 30, 50)
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4)


def epsilons(beta: float, last: float = 2.5, count: int = 46) -> list[float]:
    """Return values of ε from the least to which theorem 5 applies up to `last`."""
    return [float(e) for e in np.linspace(least_epsilon(beta) + 1e-9, last, count)]


def inverse_curve(name: str, k: int, beta: float) -> Series:
    """Return the curve of 1/δ against ε."""
    x = epsilons(beta)
    return Series(name, x, [1.0 / strongly_safe_delta(k=k, sampling=beta, epsilon=e) for e in x])


def _add_correlation(results: Reproduction, curves: list[Series]) -> None:
    """Add the row that checks whether δ never increases with ε along any curve of 1/δ."""
    values = [[value for value in curve.y if value is not None] for curve in curves]
    down = all(a <= b * (1 + 1e-9) for line in values for a, b in itertools.pairwise(line))
    results.add_row("correlation", "negative" if down else "not everywhere")


def thresholds(results: Reproduction, _seed: int) -> None:
    """Draw Fig 2, 1/δ against ε for several k, and check the text's statements about it."""
    curves = [inverse_curve(f"k = {k}", k, 0.2) for k in KS]
    logs = {k: math.log10(strongly_safe_delta(k=k, sampling=0.2, epsilon=2.0)) for k in range(5, 51, 5)}
    _add_correlation(results, curves)
    for k in (5, 10, 20, 30, 40):
        results.add_row("step", logs[k + 10] - logs[k], k=k, next=k + 10)
    ks, values = np.array(list(logs)), np.array(list(logs.values()))
    straight = float(np.corrcoef(ks, values)[0, 1] ** 2)
    results.add_row("straight", straight, slope=float(10 * np.polyfit(ks, values, 1)[0]))
    results.add_panel("inverse", curves, fixed=", β = 0.2")


def sampling_rates(results: Reproduction, _seed: int) -> None:
    """Draw Fig 3, 1/δ against ε for several β, and check the text's statements about it."""
    curves = [inverse_curve(f"β = {beta:g}", 20, beta) for beta in BETAS]
    _add_correlation(results, curves)
    for epsilon in (1.0, 2.0):
        deltas = [strongly_safe_delta(k=20, sampling=beta, epsilon=epsilon) for beta in BETAS]
        ordered = all(a < b for a, b in itertools.pairwise(deltas))
        orders = math.log10(deltas[-1] / deltas[0])
        results.add_row("orders", orders, ordered and orders > 5, epsilon=epsilon)
    results.add_panel("inverse", curves, fixed=", k = 20")


PAIRS = ((15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4))


def matched_levels(results: Reproduction, _seed: int) -> None:
    """Draw Fig 4, four settings of k and β, and find the k that each β needs."""
    tried = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
    for k, beta in PAIRS[1:]:
        needed = [_needed(beta, epsilon) for epsilon in tried]
        shown = ", ".join(f"{n} at {e:g}" for n, e in zip(needed, tried, strict=True))
        span = f"{min(needed)} to {max(needed)}"
        results.add_row("needed", span, min(needed) <= k <= max(needed), published=k, beta=beta, found=shown)
    for epsilon in (0.6, 1.0, 1.5, 2.0, 2.5):
        logs = _logs(epsilon)
        shown_logs = ", ".join(f"{log:.1f}" for log in logs)
        results.add_row("spread", max(logs) - min(logs), epsilon=epsilon, logs=shown_logs)
    grid = np.arange(math.ceil(100 * least_epsilon(0.4)), 401) / 100
    spreads = [float(np.ptp(_logs(float(epsilon)))) for epsilon in grid]
    best = int(np.argmin(spreads))
    results.add_panel("inverse", [inverse_curve(f"k = {k}, β = {beta:g}", k, beta) for k, beta in PAIRS], fixed="")
    results.add_findings("unlike", epsilon=grid[best], least=10 ** spreads[best], one=10 ** float(np.ptp(_logs(1.0))))


def _logs(epsilon: float) -> list[float]:
    """Return log10(1/δ) for the four settings."""
    return [-math.log10(strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon)) for k, beta in PAIRS]


def _needed(beta: float, epsilon: float) -> int:
    """Return the least k whose δ is at most the δ of (k, β) = (15, .05)."""
    k, reference = PAIRS[0]
    target = strongly_safe_delta(k=k, sampling=reference, epsilon=epsilon)
    while strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon) > target:
        k += 1
    return k


def small_thresholds(results: Reproduction, _seed: int) -> None:
    """Draw Fig 5, 1/δ against ε for small k, and check the text's statements about it."""
    beta, ks = 0.025, (1, 2, 3, 4, 5)
    least = min(strongly_safe_delta(k=1, sampling=beta, epsilon=e) for e in epsilons(beta, 4.0, 200))
    results.add_row("least_delta", least)
    results.add_row("exact_delta", worst_crowd_delta(k=1, sampling=beta, epsilon=2.0))
    for k in ks[1:]:
        results.add_row("delta", strongly_safe_delta(k=k, sampling=beta, epsilon=2.0), k=k, power=beta**k)
    results.add_panel("inverse", [inverse_curve(f"k = {k}", k, beta) for k in ks], fixed=", β = 0.025")
    results.add_findings("not_less")


TARGET = 1e-6
LARGEST = 20.0


def least_levels(results: Reproduction, _seed: int) -> None:
    """Draw Fig 6, the least ε with δ ≤ 1e-6 against k, and check the text's statements about it."""
    ks = (*range(4, 20, 1), *range(20, 101, 5))
    lines = {beta: [search_epsilon(strongly_safe_delta, k, beta, least_epsilon(beta)) for k in ks] for beta in BETAS}
    falls = all(b <= a + 1e-9 for line in lines.values() for a, b in itertools.pairwise(line))
    results.add_row("falls", "falls" if falls else "not everywhere")
    for k in (20, 50):
        at = {beta: lines[beta][ks.index(k)] for beta in BETAS}
        shown = ", ".join(f"{value:.3f} at β = {beta:g}" for beta, value in at.items())
        results.add_row("effect", at[0.4] / at[0.05], k=k, found=shown)
    for beta in BETAS:
        start = least_epsilon(beta)
        first = next(k for k in range(1, 100) if search_epsilon(strongly_safe_delta, k, beta, start) < math.inf)
        needed = math.ceil(math.log(TARGET) / math.log(beta) - 1e-12)
        results.add_row("finite", first, beta=beta, needed=needed, start=start)
    exact = [search_epsilon(worst_crowd_delta, k, 0.2, 0.0) for k in ks]
    curves = [Series(f"β = {beta:g}", ks, finite(lines[beta])) for beta in BETAS]
    results.add_panel("least", [*curves, Series("β = 0.2, exact worst crowd", ks, finite(exact))])


def search_epsilon(delta: Callable[..., float], k: int, beta: float, start: float) -> float:
    """Return the least ε ≥ `start` with δ ≤ 1e-6, by bisection to 1e-9; infinite if there is none."""
    # Allows for the rounding of a δ that equals the target, such as .1⁶.
    target = TARGET * (1.0 + 1e-12)
    if delta(k=k, sampling=beta, epsilon=LARGEST) > target:
        return math.inf
    low, high = start, LARGEST
    if delta(k=k, sampling=beta, epsilon=low) <= target:
        return low
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if delta(k=k, sampling=beta, epsilon=middle) <= target else (middle, high)
    return high

"""Parameters of Anonymized Local Privacy that minimise the estimate's variance under a target ε."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np

from mechanisms.compiled import Floats
from mechanisms.local.yes_no import COUNT_OF, AnonymizedLocal, EstimatorChoice, check_share
from mechanisms.parameter import check_choice, check_epsilon, check_integer, check_probability

# The quantity minimised: eq 5 as published ("printed"), the variance of the count of Yes; or the estimate's variance.
Objective = Literal["estimate", "printed"]
Laws: TypeAlias = Floats
# A larger finite target is replaced by this one: the probabilities of its rarest answers would be rounding errors.
LARGEST_EPSILON = 20.0
GRID = 40
# Probabilities below ZERO are 0. Bounds on likelihood ratios hold within the relative tolerance RELATIVE.
ZERO = 1e-12
RELATIVE = 1e-9


@dataclass(frozen=True, slots=True)
class MinimalVariance:
    """A point of the frontier of privacy and variance.

    Parameters
    ----------
    mechanism : AnonymizedLocal
        The parameters found. Of four of them only π_Y1·π_1 + π_Y2·π_2 can be observed, so they are given with π_Y2 = 0.
    epsilon : float
        The target ε.
    variance : float
        The minimised variance per device: of the estimate or, with objective "printed", of the count of Yes. Infinite
        if no estimate can be made.
    """

    mechanism: AnonymizedLocal
    epsilon: float
    variance: float

    def std_error(self, devices: int) -> float:
        """Return the standard error with `devices` devices, at the share of Yes-holders used in the minimisation."""
        return math.sqrt(devices * self.variance)


def minimal_variance_parameters(
    epsilon: float,
    *,
    cells: int = 1,
    yes_share: float | None = None,
    most_sampled: float = 1.0,
    estimator: EstimatorChoice = "best",
    objective: Objective = "estimate",
) -> MinimalVariance:
    """Find the parameters of eqs 6-7 with the least variance under a target ε (ALP def 2, eq 5).

    Equation 5, min Var("Yes"|Yes) + Var("Yes"|No), is degenerate: it is 0 if no device ever answers Yes, which
    also costs no privacy, so no target ε prevents this solution (objective "printed" demonstrates it). The relevant
    quantity is the variance of the estimate: the variance of the count divided by (p − q)², or the variance of the best
    combination of the counts. With an infinite ε this too is 0, since all devices answer truthfully. Only a finite
    target ε makes the problem meaningful.

    The search is exact for a single question. The reciprocal of the variance is convex in the distributions of the
    answers, which ε and `most_sampled` confine to a polytope. So the least variance is at one of its vertices, and all
    vertices are tried. If every cell is asked about, ε is divided between the two answers that a move changes, ln max
    p/q + ln max q/p ≤ ε, and the division is found by bounded minimisation that starts from a grid.

    Result: with `most_sampled` = 1 no device should answer ⊥. Of all answers within given bounds of p/q the two-valued
    one is the most informative, and any other is that one with noise added. For a single question it is Warner's
    randomized response. For many cells with a small share in each it approaches optimised unary encoding, p = ½ and
    q = 1/(e^ε + 1). A third output costs accuracy; its benefit is that few devices give an answer other than ⊥.

    Parameters
    ----------
    epsilon : float
        Target ε of a report, at least 0; infinity allowed.
    cells : int
        The number of cells V. With one cell a move changes one answer, else two.
    yes_share : float, optional
        The share of Yes-holders, between 0 and 1; 1/(V + 1) by default.
    most_sampled : float
        The greatest probability of an answer that is not ⊥, in (0, 1].
    estimator : {"yes", "no", "silent", "best"}
        The estimator whose variance is minimised.
    objective : {"estimate", "printed"}
        The variance of the estimate, or eq 5 as published, with each kind of holder weighted by its share.

    Returns
    -------
    MinimalVariance

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """
    epsilon = check_epsilon(epsilon)
    check_integer("cells", cells, at_least=1)
    check_probability("most_sampled", most_sampled, above_zero=True)
    check_choice("estimator", estimator, get_args(EstimatorChoice))
    check_choice("objective", objective, get_args(Objective))
    share = check_share(yes_share, cells)

    def variance_of(laws: Laws) -> Floats:
        if objective == "printed":
            return _count_variance(laws, share, COUNT_OF["yes"])
        return _estimate_variance(laws, share, estimator)

    def at(up: float, down: float) -> tuple[float, Laws]:
        laws = _corners(up, down, most_sampled)
        variances = variance_of(laws)
        least = float(variances.min())
        # Solutions that differ in the names of the outputs are equally good: take the one with the least ⊥, then the
        # one in which Yes-holders answer Yes more often than No-holders, then the one with the fewest false Yes.
        equal = laws[variances <= least * (1.0 + RELATIVE)]
        yes_rates = equal[:, :, COUNT_OF["yes"]]
        silence = equal[:, :, COUNT_OF["silent"]].sum(axis=1).round(9)
        order = np.lexsort((yes_rates[:, 1], (yes_rates[:, 1] - yes_rates[:, 0]).round(9), silence))
        return least, equal[order[0]]

    bound = epsilon if math.isinf(epsilon) else min(epsilon, LARGEST_EPSILON)
    whole = cells == 1 or math.isinf(bound)
    variance, laws = at(bound, bound) if whole else _share_between_answers(at, bound)
    return MinimalVariance(_mechanism(laws, cells, estimator, share), epsilon, variance)


def _share_between_answers(at: Callable[[float, float], tuple[float, Laws]], epsilon: float) -> tuple[float, Laws]:
    """Return the least variance over all divisions of ε between max ln p/q and max ln q/p."""
    grid = np.linspace(0.0, epsilon, GRID + 1)
    coarse = [at(up, epsilon - up)[0] for up in grid]
    best = int(np.argmin(coarse))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, GRID)]
    if low == high:
        return at(epsilon, 0.0)
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - half a second, for this mechanism only

    fine = minimize_scalar(
        lambda up: min(at(up, epsilon - up)[0], 1e300), bounds=(low, high), method="bounded", options={"xatol": 1e-10}
    )
    return min((at(up, epsilon - up) for up in (float(fine.x), float(grid[best]))), key=lambda solution: solution[0])


def _corners(up: float, down: float, most_sampled: float) -> Laws:
    """Return the vertices of {p ≤ e^up·q, q ≤ e^down·p}, (vertices, 2, 3): p and q of No, Yes, ⊥.

    Four probabilities are free: the probabilities of No and of Yes for each kind of holder. At a vertex four of the
    bounds hold with equality.
    """
    # The unknowns are p and q of No, then of Yes: their sums, their signs, and the bounds of each ratio, of ⊥'s last.
    p, q = np.eye(4)[:2], np.eye(4)[2:]
    rows, limits = [p.sum(axis=0), q.sum(axis=0), *-np.eye(4)], [most_sampled] * 2 + [0.0] * 4
    for this, other, bound in ((p, q, up), (q, p, down)):
        factor = math.exp(-bound)  # e^−bound·p ≤ q: avoids large numbers
        rows += [*(factor * this - other), other.sum(axis=0) - factor * this.sum(axis=0)]
        limits += [0.0, 0.0, 1.0 - factor]
    matrix, limit = np.array(rows), np.array(limits)
    meets = np.array(list(combinations(range(len(rows)), 4)))
    systems = matrix[meets]
    regular = np.abs(np.linalg.det(systems)) > ZERO
    points = np.linalg.solve(systems[regular], limit[meets[regular]][..., np.newaxis])[..., 0]
    points = points[(points @ matrix.T <= limit + RELATIVE).all(axis=1)].reshape(-1, 2, 2)
    points = np.where(points <= ZERO, 0.0, points)
    silence = 1.0 - points.sum(axis=2, keepdims=True)
    laws = np.concatenate([points, np.where(silence <= ZERO, 0.0, silence)], axis=2)
    laws /= laws.sum(axis=2, keepdims=True)
    # The ratios of rare answers must be within the bounds too, which an absolute tolerance does not ensure.
    within = [
        laws[:, this] * math.exp(-bound) <= laws[:, other] * (1.0 + RELATIVE)
        for this, other, bound in ((0, 1, up), (1, 0, down))
    ]
    return laws[(within[0] & within[1]).all(axis=1)]


def _count_variance(laws: Laws, share: float, output: int) -> Floats:
    """Return s·p(1 − p) + (1 − s)·q(1 − q), the variance per device of the count of an output (eq 5 for Yes)."""
    p, q = laws[:, 0, output], laws[:, 1, output]
    return share * p * (1.0 - p) + (1.0 - share) * q * (1.0 - q)


def _estimate_variance(laws: Laws, share: float, estimator: EstimatorChoice) -> Floats:
    """Return the variance of the estimate per device; infinite if there is no estimate.

    The best combination has wᵀVw with V = diag m − s·ppᵀ − (1 − s)·qqᵀ, m = s·p + (1 − s)·q; as w·p = 1 and w·q
    = 0 that is Σ m·w² − s, least at w = (αp + βq)/m, where it is 1/I − s, I = A_pp − A_pq²/A_qq, A_xy = Σ xy/m.
    """
    p, q = laws[:, 0], laws[:, 1]
    infinite: Floats = np.full(len(laws), np.inf)
    if estimator != "best":
        output = COUNT_OF[estimator]
        gap = (p - q)[:, output] ** 2
        return np.divide(_count_variance(laws, share, output), gap, out=infinite, where=gap > ZERO)
    mixed = share * p + (1.0 - share) * q
    over = np.divide(1.0, mixed, out=np.zeros_like(mixed), where=mixed > 0.0)
    # With d = p − q: A_pp·A_qq − A_pq² = Σ d²/m, for s·A_pp + (1 − s)·A_pq = 1 and s·A_pq + (1 − s)·A_qq = 1.
    information = ((p - q) ** 2 * over).sum(axis=1)
    of_no = (q * q * over).sum(axis=1)
    variance: Floats = np.divide(of_no, information, out=infinite, where=information > ZERO) - share
    return np.clip(variance, 0.0, None)


def _mechanism(laws: Laws, cells: int, estimator: EstimatorChoice, share: float) -> AnonymizedLocal:
    """Return the mechanism with these distributions of No, Yes and ⊥."""
    rates = 1.0 - laws[:, COUNT_OF["silent"]]
    coins = [float(law[1] / law[:2].sum()) if law[:2].any() else 0.0 for law in laws]
    return AnonymizedLocal(
        cells=cells,
        sampling_yes_one=float(rates[0]),
        sampling_yes_two=0.0,
        sampling_no=float(rates[1]),
        first_coin=min(coins[0], 1.0),
        second_coin=0.0,
        third_coin=min(coins[1], 1.0),
        estimator=estimator,
        yes_share=share,
    )

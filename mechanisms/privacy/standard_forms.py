"""Standard forms of a claim: the trade-off curve of f-DP, Gaussian DP, zCDP, and privacy loss distributions.

All follow from the curve δ(ε) of a claim, which holds in both directions. A bound of δ gives bounds, on the safe side.
"""

import importlib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from mechanisms.compiled import Floats, ndtri_exp
from mechanisms.parameter import ParameterError, check_probability
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, Claim, LeastDelta
from mechanisms.privacy.composition import ComposedCurve, ComposedDelta, GridPair, SummedLoss, grid_pair, on_grid, split
from mechanisms.privacy.hockey_stick import pair_delta
from mechanisms.privacy.report_claims import WorstPairDelta
from mechanisms.privacy.shuffled import AmplifiedDelta

# Intervals of the grid of losses up to the root mean square loss. Results are raised by the share ROUNDING.
FINENESS, ROUNDING = 400, 1e-10
# Rényi orders, less 1: the nearest to 1, where their steps become finer, and how many are before and after it.
NEAREST, NEAR, NEAR_ORDERS, ORDERS = 1e-7, 1e-3, 200, 6_000


def trade_off(claim: Claim, false_positive_rate: float) -> float:
    """Return f(α): the least rate of missed devices of any attack with at most this rate of false alarms.

    An attack tells two neighbours apart. f(α) = sup over ε of max(0, 1 − δ(ε) − e^ε·α, e^−ε·(1 − δ(ε) − α)) (Dong, Roth
    and Su 2022, *Gaussian Differential Privacy*, proposition 2.12). As δ is convex in e^ε, this has one maximum. Any ε
    gives a lower bound.

    Parameters
    ----------
    claim : Claim
    false_positive_rate : float
        α, from 0 to 1.

    Returns
    -------
    float
        Of a claim whose δ is exact, the greatest symmetric convex f that holds; else a lower bound of it.

    Raises
    ------
    ParameterError
        If the rate is not from 0 to 1.
    """
    alpha = check_probability("false_positive_rate", false_positive_rate)
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - half a second

    def missed(loss: float) -> float:
        left = 1.0 - claim.delta(abs(loss))
        return left - math.exp(loss) * alpha if loss >= 0.0 else math.exp(loss) * (left - alpha)

    most = min(claim.epsilon, LARGEST_CROWD_EPSILON)
    ends = (-most, min(most, -math.log(max(alpha, 1e-300))))
    # With one output the losses are 0, ε and −ε, and of a listed claim those listed: there δ has kinks.
    kinks = [sign * epsilon for epsilon in (0.0, most, *(listed for listed, _ in claim.points)) for sign in (1.0, -1.0)]
    found = minimize_scalar(lambda loss: -missed(loss), bounds=ends, method="bounded", options={"xatol": 1e-12})
    return max(0.0, -float(found.fun), *(missed(loss) for loss in kinks if abs(loss) <= most))


def attack_advantage(claim: Claim, false_positive_rate: float | None = None) -> float:
    """Return the most by which an attack's true-positive rate exceeds its false-positive rate α: 1 − f(α) − α.

    Parameters
    ----------
    claim : Claim
    false_positive_rate : float, optional
        α, from 0 to 1. By default the best α for the attack, whose advantage is δ(0).
    """
    if false_positive_rate is None:
        return claim.delta(0.0)
    return max(0.0, 1.0 - trade_off(claim, false_positive_rate) - false_positive_rate)


def gaussian_mu(claim: Claim) -> float:
    """Return a bound of μ of Gaussian DP: two neighbours are as hard to tell apart as N(0, 1) and N(μ, 1), or harder.

    That is, δ(ε) ≤ Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) at every ε (Dong, Roth and Su 2022, corollary 2.13). The curve f
    of a pair on a grid of losses has kinks (α, β), and G_μ is convex. So f is above G_μ exactly if its kinks are: μ is
    the greatest Φ⁻¹(1 − α) − Φ⁻¹(β). Over independent queries μ² adds up. A δ below the range of doubles counts as 0.

    Parameters
    ----------
    claim : Claim

    Returns
    -------
    float
        The least μ, to a share of 1e-6, for randomized response and Laplace noise; infinite where none is proved, and
        where the truth may be revealed with certainty, however rarely.
    """
    of_noise = math.inf if claim.noise is None else claim.noise[1] * _discrete_gaussian_mu(claim.noise[0]) ** 2
    return math.sqrt(min(_least(claim.curve, claim.epsilon, _squared_mu), of_noise))


def concentrated_rho(claim: Claim) -> float:
    """Return a bound of ρ of zCDP: Rényi divergences D_α of neighbours are at most ρα, at every α > 1.

    Bun and Steinke 2016, *Concentrated Differential Privacy*. The divergences are those of a pair on a grid of losses
    whose δ is nowhere below the claim's. D_α is an integral over δ(ε), so they bound both directions. Pure ε gives at
    most ε·tanh(ε/2) ≤ ε²/2. Laplace noise gives ε + e^−ε − 1 (Harrison and Manurangsi 2026, *Exact zCDP
    Characterizations for Fundamental Differentially Private Mechanisms*). One discrete Gaussian count gives 1/(2σ²)
    (Canonne, Kamath and Steinke 2020, theorem 4). Over independent queries ρ adds up.

    Parameters
    ----------
    claim : Claim

    Returns
    -------
    float
        The least ρ, to a share of 1e-6, for randomized response, Laplace and discrete Gaussian noise; infinite as in
        `gaussian_mu`.
    """
    of_noise = math.inf if claim.noise is None else claim.noise[1] / (2.0 * claim.noise[0] ** 2)
    return min(_least(claim.curve, claim.epsilon, _rho), of_noise * (1.0 + ROUNDING))


def _least(curve: Callable[[float], float], epsilon: float, of_pair: Callable[[GridPair], float]) -> float:
    """Return the least bound of ρ or μ² of a curve with this ε at δ = 0, or of the curves that it is made of."""
    match curve:
        case LeastDelta():
            return min(_least(part.curve, part.epsilon, of_pair) for part in curve.claims)
        case AmplifiedDelta():
            parts = (curve.shuffled, curve.stronger, curve.local.curve)
            return min(_least(part, epsilon, of_pair) for part in parts if part is not None)
        case ComposedCurve():
            return curve.queries * _least(curve.curve, curve.limit, of_pair)
        case ComposedDelta():
            p, q = curve.p, curve.q
            single = epsilon / curve.queries
            return curve.queries * _least(lambda one: pair_delta(p, q, epsilon=one), single, of_pair)
        case WorstPairDelta() if curve.pairs:
            # The pairs themselves, in both directions.
            known = [(np.array(p), np.array(q)) for p, q in curve.pairs]
            pairs = on_grid([*known, *((q, p) for p, q in known)], FINENESS)
        case _ if math.isinf(epsilon) and curve(math.inf) > 0.0:
            return math.inf
        case _:
            # A pair whose curve is nowhere below, in both directions.
            pairs = (_grid_pair(curve, epsilon, FINENESS, 0.0),)
    return max(math.inf if pair.certain > 0.0 else of_pair(pair) for pair in pairs)


# μ, ρ and a privacy loss distribution of one claim need the same pair.
_grid_pair = lru_cache(maxsize=64)(grid_pair)


def _squared_mu(pair: GridPair) -> float:
    """Return μ² of a pair without an infinite loss."""

    def quantiles(logs: Floats) -> Floats:
        """Return Φ⁻¹ of the probabilities below each kink, from the smaller of both tails."""
        below, above = np.logaddexp.accumulate(logs)[:-1], np.logaddexp.accumulate(logs[::-1])[-2::-1]
        return np.asarray(np.where(below < above, ndtri_exp(below), -ndtri_exp(above)))

    logs = np.log(pair.masses / pair.masses.sum())
    steps = quantiles(logs - pair.steps * pair.interval) - quantiles(logs)
    return float(steps.max(initial=0.0)) ** 2 * (1.0 + ROUNDING)


def _rho(pair: GridPair) -> float:
    """Return a bound of sup D_α/α: (α − 1)·D_α is convex in α, so it is below its chords between some orders."""
    losses, summed = pair.steps * pair.interval, SummedLoss([pair], 1)

    def moments(orders: Floats) -> Floats:
        """Return t·D_{1 + t} = ln Σ P·e^(tℓ) for each t; of small ones in a form in which nothing cancels."""
        if orders[-1] * losses[-1] >= 1.0:
            return summed.log_mean(orders)
        return np.asarray(np.log1p(np.maximum(np.expm1(np.multiply.outer(orders, losses)) @ pair.masses, 0.0)))

    nearest = float(moments(np.array([NEAREST]))[0]) / NEAREST if len(losses) else 0.0
    if nearest == 0.0:
        return 0.0
    far = max(1.0, float(losses[-1]) / nearest)
    t = np.append(np.geomspace(NEAREST, NEAR, NEAR_ORDERS)[:-1], np.geomspace(NEAR, far, ORDERS))
    values = np.concatenate([moments(part) for part in np.array_split(t, 100)])
    slope = np.diff(values) / np.diff(t)
    down = np.maximum(slope * t[:-1] - values[:-1], 0.0)
    # The quotient of a chord, slope·t − down, and t·(1 + t) is greatest here. Beyond the last order, D_α is at most the
    # greatest loss.
    best = np.clip((down + np.sqrt(down * (down + slope))) / slope, t[:-1], t[1:])
    bounds = (slope * best - down) / (best * (1.0 + best))
    return max(nearest, float(bounds.max()), float(losses[-1] / (1.0 + t[-1]))) * (1.0 + ROUNDING)


@lru_cache(maxsize=64)
def _discrete_gaussian_mu(sigma: float) -> float:
    """Return a bound of μ, near 1/σ, of a count that changes by 1 under discrete Gaussian noise.

    The kinks of f are (S(k), 1 − S(k − 1)) with S(k) = P(noise ≥ k). So μ is the greatest step of z_k = Φ⁻¹(1 − S(k)),
    by symmetry for k ≥ 1. Let S(k) = R(k)·e^(−k²/2σ²)/Z. As ln R falls and is convex, ln S(k − 1)/S(k) is at most
    (2k − 1)/2σ² + r, r = ln R(K)/R(K + 1), for all k > K. The hazard of the normal distribution is convex and above z.
    And z_k ≥ k/σ − η for k ≥ K, η = 30σ/K, by Mills' ratio. So z_k − z_{k−1} is at most
    (1 + 2rσ²/(2k − 1))/(1 − 2ησ/(2k − 1))/σ, which falls with k.
    """
    last = math.ceil(5e3 * max(sigma, 1.0))
    k = np.arange(1.0, last + math.ceil(10.0 * sigma) + 3.0)
    squares = (k / sigma) ** 2 / 2.0
    logs = np.logaddexp.accumulate(-squares[::-1])[::-1]
    z = -ndtri_exp(logs[:last] - np.logaddexp(0.0, math.log(2.0) + logs[0]))
    r = float((logs + squares)[last - 1] - (logs + squares)[last])
    odd, eta = 2.0 * last + 1.0, 30.0 * sigma / last
    beyond = (1.0 + 2.0 * r * sigma**2 / odd) / (1.0 - 2.0 * eta * sigma / odd) / sigma
    return max(2.0 * float(z[0]), float(np.diff(z).max()), beyond) * (1.0 + ROUNDING)


def to_privacy_loss_distribution(claim: Claim, *, interval: float = 1e-4) -> Any:
    """Return a claim as a privacy loss distribution of dp-accounting, whose δ(ε) is nowhere below the claim's.

    Losses are divided between the two nearest multiples of the interval (Doroshenko et al. 2022, *Connect the Dots*).

    Parameters
    ----------
    claim : Claim
    interval : float
        Of the grid of losses, above 0: the same as of the distributions that it is composed with.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        The same in both directions.

    Raises
    ------
    ParameterError
        If dp-accounting is not installed.
    """
    try:
        module = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        rule = "needs dp-accounting: pip install 'crowdveil[accounting]'"
        raise ParameterError("to_privacy_loss_distribution", rule, "not installed") from None
    pair = _grid_pair(claim.curve, claim.epsilon, FINENESS, 0.0)
    rest = max(0.0, 1.0 - pair.certain - math.fsum(pair.masses))  # reveals nothing
    losses = np.append(pair.steps * pair.interval, 0.0)
    pair = split(np.append(pair.masses, rest), losses, pair.certain, interval)
    masses = dict(zip(pair.steps.tolist(), pair.masses.tolist(), strict=True))
    return module.PrivacyLossDistribution.create_from_rounded_probability(masses, pair.certain, interval)


def claim_of_privacy_loss_distribution(distribution: Any, *, basis: str) -> Claim:
    """Return the bound that a privacy loss distribution of dp-accounting proves.

    Parameters
    ----------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Made with `pessimistic_estimate`, as by default.
    basis : str
        The mechanism that it is about, and the source.
    """
    return Claim.bound(distribution.get_epsilon_for_delta(0.0), distribution.get_delta_for_epsilon, basis)

"""Claims of continuous Laplace noise: of a fixed scale, of a sample, and of a scale from smooth sensitivity."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from mechanisms.parameter import ParameterError, check_epsilon
from mechanisms.privacy.hockey_stick import INTERVAL
from mechanisms.privacy.random_sampling import sample_privacy


@dataclass(frozen=True, slots=True)
class SampledLaplaceDelta:
    """The exact δ(ε) of a sample's statistic under Laplace noise that is ε₀-private for the population.

    At n/N = 1 the pair is Lap(0, 1) and Lap(ε₀, 1): δ = 1 − e^((ε−ε₀)/2). Where every other value is at a bound, a
    sample shows the changed value with probability q = n/N, and HDK theorem 1 holds with equality: q times that, at
    the sample's own ε. It rises with q.

    Parameters
    ----------
    epsilon : float
        ε₀ > 0.
    fraction : float
        q, in (0, 1].
    """

    epsilon: float
    fraction: float = 1.0

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if epsilon >= self.epsilon:
            return 0.0
        own, of = (sample_privacy(epsilon=each, share=self.fraction)[0] for each in (epsilon, self.epsilon))
        return self.fraction * -math.expm1((own - of) / 2.0)


@dataclass(frozen=True, slots=True)
class LaplaceDelta:
    """An upper bound of δ(ε) over several queries, each Lap(0, 1) against Lap(ε₀, 1), as a function of ε.

    The pair mirrors itself and dominates that of every sample with the same ε₀ (`SampledLaplaceDelta` rises with q), so
    that it bounds any queries, sampled or not, whichever values the device has in each.

    Parameters
    ----------
    epsilon : float
        ε₀ > 0.
    queries : int
        T.
    """

    epsilon: float
    queries: int

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        if epsilon >= self.queries * self.epsilon:
            return 0.0
        return float(_losses(self).get_delta_for_epsilon(epsilon))


@cache
def _losses(noise: LaplaceDelta) -> Any:
    """Return the loss distribution of all queries together."""
    # Imported here: it takes two seconds, and most runs ask about one query.
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism  # noqa: PLC0415 - two seconds, for claims over several queries only

    single = from_laplace_mechanism(
        1.0 / noise.epsilon, pessimistic_estimate=True, value_discretization_interval=INTERVAL
    )
    return single.self_compose(noise.queries)


# Points of the ratio of two neighbours' scales at which δ is looked at, and again around the greatest of them.
RATIOS = 129


def smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ with which a statistic plus Lap(2·S*_ξ/ε) is (ε, δ)-private.

    ξ = ε/(2 ln(2/δ)) (HDK sec 2.2; Nissim, Raskhodnikova and Smith 2007, lemma 2.6 and example 3), as long as the worst
    pair of neighbours with it is within δ, which `SmoothNoiseDelta` knows exactly: for large ε it is not, and the
    greatest ξ that is takes its place. At δ = 1e-6 that begins at ε = 13.7; from ε = 41.4 on two sets of values are
    known between which the printed ξ breaks δ.

    Parameters
    ----------
    epsilon : float
        ε > 0, finite.
    delta : float
        δ in (0, 1).

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    if not 0.0 < check_epsilon(epsilon) < math.inf:
        raise ParameterError("epsilon", "must be above 0 and finite", epsilon)
    if not 0.0 < delta < 1.0:
        raise ParameterError("delta", "must be above 0 and below 1", delta)
    printed = printed_smoothing(epsilon=epsilon, delta=delta)
    # Up to ξ = ε/2 the narrower of two noises never tells more than ε of the wider: only the other direction counts.
    most = min(printed, epsilon / 2)
    if tail_delta(epsilon=epsilon, xi=most) <= delta:
        return most
    return float(
        brentq(lambda xi: tail_delta(epsilon=epsilon, xi=xi) / delta - 1.0, 1e-9 * most, most, xtol=1e-12 * most)
    )


def printed_smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ = ε/(2 ln(2/δ)) as HDK and Nissim, Raskhodnikova and Smith print it."""
    return epsilon / (2.0 * math.log(2.0 / delta))


def tail_delta(*, epsilon: float, xi: float) -> float:
    """Return the exact δ(ε) of the worst pair of neighbours under Lap(2·S*_ξ/ε), for ξ ≤ ε/2.

    Neighbours have S* within a factor e^ξ of one another and medians no further apart than the smaller of both. The
    wider noise P = Lap(0, 1) against the narrower Q = Lap(e^−ξ·ε/2, e^−ξ) tells more than ε in both tails only, from
    u = (ε/2 + ξ)/(e^ξ − 1) on one side and (3ε/2 + ξ)/(e^ξ − 1) on the other, and there P − e^ε·Q integrates to
    ½(1 − e^−ξ)·e^−u. It rises with ξ, and with the distance of the centres, so this pair is the worst.
    """
    near, far = ((half * epsilon + xi) / math.expm1(xi) for half in (0.5, 1.5))
    return -0.5 * math.expm1(-xi) * (math.exp(-near) + math.exp(-far))


def laplace_pair_delta(log_ratio: ArrayLike, shift: ArrayLike, *, epsilon: float) -> NDArray[np.float64]:
    """Return ∫ max(p − e^ε·q, 0) of P = Lap(0, 1) against Q = Lap(shift, e^log_ratio), in closed form.

    Parameters
    ----------
    log_ratio : (…) float
        ln of Q's scale, P's being 1.
    shift : (…) float
        Distance of the centres, at least 0, in units of P's scale.
    epsilon : float
        At least 0; infinity gives 0, as either may show whatever the other shows.

    Returns
    -------
    (…) float64
    """
    if math.isinf(check_epsilon(epsilon)):
        return np.zeros(np.broadcast_shapes(np.shape(log_ratio), np.shape(shift)))
    ratio, far = np.broadcast_arrays(np.asarray(log_ratio, dtype=np.float64), np.asarray(shift, dtype=np.float64))
    narrow = np.exp(-ratio)
    slope = np.expm1(-ratio)
    # The loss ln(p/q) is linear on each of three pieces: beyond P's centre, between the centres, beyond Q's.
    first = ratio + far * narrow
    between = np.clip((first - epsilon) / (1.0 + narrow), 0.0, far)
    p = -0.5 * np.expm1(-between)
    q = 0.5 * (np.exp(epsilon - (far - between) * narrow) - np.exp(epsilon - far * narrow))
    # Beyond either centre at distance u: P's density at `off` + u, Q's at `away` + u, and the loss c + slope·u.
    for off, away, start in ((np.zeros_like(far), far, first), (far, np.zeros_like(far), ratio - far)):
        crossing = np.where(slope != 0.0, (epsilon - start) / np.where(slope != 0.0, slope, 1.0), np.inf)
        inside = start > epsilon
        # Rising: from the crossing (or the centre) on. Falling or level: from the centre to the crossing, if inside.
        begin = np.where(slope > 0.0, np.maximum(crossing, 0.0), 0.0)
        end = np.where(slope > 0.0, np.inf, np.where(inside, np.where(slope < 0.0, crossing, np.inf), 0.0))
        p = p + 0.5 * (np.exp(-off - begin) - np.exp(-off - end))
        q = q + 0.5 * (np.exp(epsilon - (away + begin) * narrow) - np.exp(epsilon - (away + end) * narrow))
    delta: NDArray[np.float64] = np.maximum(p - q, 0.0)
    return delta


@dataclass(frozen=True, slots=True)
class SmoothNoiseDelta:
    """A bound of δ(ε) of a statistic plus Lap(2·S*_ξ/ε₀), as a function of ε.

    From ε₀ on it is the closed form of the worst pair, for ξ ≤ ε₀/2; below, the greatest over the ratio of the two
    scales in e^(±ξ), found on a grid that is refined once.

    Parameters
    ----------
    noise_epsilon : float
        ε₀.
    xi : float
        ξ, above 0.
    """

    noise_epsilon: float
    xi: float

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        grid = np.linspace(-self.xi, self.xi, RATIOS)
        if epsilon >= self.noise_epsilon and self.xi <= self.noise_epsilon / 2:
            return float(self._at(grid[:1], epsilon)[0])
        best = int(self._at(grid, epsilon).argmax())
        fine = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, RATIOS - 1)], RATIOS)
        return float(self._at(fine, epsilon).max())

    def _at(self, log_ratio: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
        """Return δ where the centres are as far apart as the smaller S* allows."""
        return laplace_pair_delta(
            log_ratio, self.noise_epsilon / 2 * np.exp(np.minimum(log_ratio, 0.0)), epsilon=epsilon
        )

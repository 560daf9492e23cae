"""Claims about continuous Laplace noise: of a fixed scale, on a sample, and of a scale from smooth sensitivity."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_epsilon
from mechanisms.privacy.hockey_stick import INTERVAL
from mechanisms.privacy.random_sampling import sample_privacy


@dataclass(frozen=True, slots=True)
class SampledLaplaceDelta:
    """The exact δ(ε) of a sample's statistic under Laplace noise that is ε₀-private for the population.

    At n/N = 1 the pair is Lap(0, 1) and Lap(ε₀, 1), with δ = 1 − e^((ε−ε₀)/2). Where every other value is at a bound, a
    sample contains the changed value with probability q = n/N, and HDK theorem 1 holds with equality: δ is q times the
    δ above, at the sample's own ε. It rises with q.

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

    The pair is its own mirror image and dominates the pair of every sample with the same ε₀ (`SampledLaplaceDelta`
    rises with q). So it bounds any queries, sampled or not, for any values of the device in each.

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
    # Imported here because the import takes two seconds and most runs need claims about one query only.
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism  # noqa: PLC0415 - two seconds, for claims over several queries only

    single = from_laplace_mechanism(
        1.0 / noise.epsilon, pessimistic_estimate=True, value_discretization_interval=INTERVAL
    )
    return single.self_compose(noise.queries)


# Number of ratios of two neighbours' scales at which δ is evaluated: over the range, then again around the maximum.
RATIOS = 129


def smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ with which a statistic plus Lap(2·S*_ξ/ε) is (ε, δ)-private.

    The published ξ = ε/(2 ln(2/δ)) (HDK sec 2.2; Nissim, Raskhodnikova and Smith 2007, lemma 2.6 and example 3) is
    returned as long as the δ of the worst pair of neighbours, which `SmoothNoiseDelta` gives exactly, is at most δ. For
    large ε it is greater; then the greatest ξ that keeps δ is returned. At δ = 1e-6 that begins at ε = 13.7. From
    ε = 41.4 on, two sets of values are known between which the published ξ violates δ.

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
    # Up to ξ = ε/2 the loss of the narrower noise against the wider never exceeds ε: only the other direction counts.
    most = min(printed, epsilon / 2)
    if tail_delta(epsilon=epsilon, xi=most) <= delta:
        return most
    from scipy.optimize import brentq  # noqa: PLC0415 - half a second, for noise of this kind only

    return float(
        brentq(lambda xi: tail_delta(epsilon=epsilon, xi=xi) / delta - 1.0, 1e-9 * most, most, xtol=1e-12 * most)
    )


def printed_smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ = ε/(2 ln(2/δ)) as published by HDK and by Nissim, Raskhodnikova and Smith."""
    return epsilon / (2.0 * math.log(2.0 / delta))


def tail_delta(*, epsilon: float, xi: float) -> float:
    """Return the exact δ(ε) of the worst pair of neighbours under Lap(2·S*_ξ/ε), for ξ ≤ ε/2.

    The S* of neighbours are within a factor e^ξ of each other, and their medians are no further apart than the smaller
    S*. The loss of the wider noise P = Lap(0, 1) against the narrower Q = Lap(e^−ξ·ε/2, e^−ξ) exceeds ε in the two
    tails only, from u = (ε/2 + ξ)/(e^ξ − 1) on one side and (3ε/2 + ξ)/(e^ξ − 1) on the other. There P − e^ε·Q
    integrates to ½(1 − e^−ξ)·e^−u. δ rises with ξ and with the distance of the centres, so this pair is the worst.
    """
    near, far = ((half * epsilon + xi) / math.expm1(xi) for half in (0.5, 1.5))
    return -0.5 * math.expm1(-xi) * (math.exp(-near) + math.exp(-far))


def laplace_pair_delta(log_ratio: ArrayLike, shift: ArrayLike, *, epsilon: float) -> NDArray[np.float64]:
    """Return ∫ max(p − e^ε·q, 0) of P = Lap(0, 1) against Q = Lap(shift, e^log_ratio), in closed form.

    Parameters
    ----------
    log_ratio : (…) float
        ln of the scale of Q, in units of the scale of P.
    shift : (…) float
        Distance of the centres, at least 0, in units of P's scale.
    epsilon : float
        At least 0; infinity gives 0, as both densities are positive everywhere.

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
    # Beyond either centre at distance u: P's density at `off` + u, Q's at `away` + u, and the loss start + slope·u.
    for off, away, start in ((np.zeros_like(far), far, first), (far, np.zeros_like(far), ratio - far)):
        crossing = np.where(slope != 0.0, (epsilon - start) / np.where(slope != 0.0, slope, 1.0), np.inf)
        inside = start > epsilon
        # Rising loss: from the crossing (or centre) on. Falling or level: from the centre to the crossing, if inside.
        begin = np.where(slope > 0.0, np.maximum(crossing, 0.0), 0.0)
        end = np.where(slope > 0.0, np.inf, np.where(inside, np.where(slope < 0.0, crossing, np.inf), 0.0))
        p = p + 0.5 * (np.exp(-off - begin) - np.exp(-off - end))
        q = q + 0.5 * (np.exp(epsilon - (away + begin) * narrow) - np.exp(epsilon - (away + end) * narrow))
    delta: NDArray[np.float64] = np.maximum(p - q, 0.0)
    return delta


@dataclass(frozen=True, slots=True)
class SmoothNoiseDelta:
    """A bound of δ(ε) of a statistic plus Lap(2·S*_ξ/ε₀), as a function of ε.

    For ε ≥ ε₀ and ξ ≤ ε₀/2 it is the closed form of the worst pair. Otherwise it is the greatest δ over the ratio of
    the two scales in e^(±ξ), found on a grid that is refined once.

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
        """Return δ for centres as far apart as the smaller S* allows."""
        return laplace_pair_delta(
            log_ratio, self.noise_epsilon / 2 * np.exp(np.minimum(log_ratio, 0.0)), epsilon=epsilon
        )

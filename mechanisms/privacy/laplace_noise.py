"""What Laplace noise on one number tells, all of it released or a sample's."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from mechanisms.privacy.composition import INTERVAL
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

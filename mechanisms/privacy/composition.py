"""δ(ε) over several queries, by numerical composition of privacy loss distributions."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.parameter import check_epsilon, check_integer
from mechanisms.privacy.hockey_stick import check_distribution, pair_delta

# Width of the loss grid: at most this, and at most this share of the largest loss, so that tiny losses keep their size.
INTERVAL = 1e-4
INTERVAL_SHARE = 1 / 250
# Outputs less likely than e^−230 count as telling with certainty: the accountant divides by masses that must not be
# subnormal.
LEAST_LOG_MASS = -230.0
# If all queries together tell nothing for certain less often than this, δ is 1: the accountant cannot take it.
LEAST_UNCERTAIN = 1e-14


def composed_delta(p: ArrayLike, q: ArrayLike, *, queries: int, epsilon: float, interval: float | None = None) -> float:
    """Return an upper bound of δ(ε) for telling P^T from Q^T, the larger of both directions.

    The lesser of two bounds. One composes the privacy loss distribution with losses rounded up to whole multiples of
    `interval`: too large by at most what ε − T·interval would give. The other is basic composition, T·δ(ε/T), which
    is the better one where δ is tiny.

    Parameters
    ----------
    p, q : (outputs,) float64
        What one query shows in either world; queries are independent.
    queries : int
        T, at least 1.
    epsilon : float
        At least 0; infinity gives the probability that some query tells with certainty.
    interval : float, optional
        Width of the loss grid; by default 1e-4, or 1/250 of the largest finite loss where that is less.

    Returns
    -------
    float
    """
    return ComposedDelta.from_pair(p, q, queries=queries, interval=interval)(epsilon)


@dataclass(frozen=True)
class ComposedDelta:
    """The bound of `composed_delta` as a function of ε, composed once and evaluated often.

    Parameters
    ----------
    p, q : tuple of float
        What one query shows in either world.
    queries : int
        T.
    interval : float
        Width of the loss grid.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    queries: int
    interval: float

    @classmethod
    def from_pair(cls, p: ArrayLike, q: ArrayLike, *, queries: int, interval: float | None = None) -> "ComposedDelta":
        """Check a pair and make its masses sum to 1 to the last bit, which the accountant does not check itself."""
        p, q = check_distribution("p", p), check_distribution("q", q)
        check_integer("queries", queries, at_least=1)
        if interval is None:
            both = (p > 0) & (q > 0)
            largest = float(np.abs(np.log(p[both] / q[both])).max(initial=0.0))
            interval = min(INTERVAL, INTERVAL_SHARE * largest) or INTERVAL
        return cls(tuple((p / p.sum()).tolist()), tuple((q / q.sum()).tolist()), queries, interval)

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        certain = max(self._certain(self.p, self.q), self._certain(self.q, self.p))
        if math.isinf(check_epsilon(epsilon)):
            return certain
        if certain > 1.0 - LEAST_UNCERTAIN:
            return 1.0
        return min(self.basic(epsilon), float(_loss_distribution(self).get_delta_for_epsilon(epsilon)))

    def basic(self, epsilon: float) -> float:
        """Return T·δ(ε/T), basic composition, at most 1."""
        return min(1.0, self.queries * pair_delta(self.p, self.q, epsilon=epsilon / self.queries))

    def _certain(self, p: tuple[float, ...], q: tuple[float, ...]) -> float:
        """Return the probability that at least one query shows what only P can show."""
        mass = math.fsum(a for a, b in zip(p, q, strict=True) if b == 0.0)
        return 1.0 if mass >= 1.0 else -math.expm1(self.queries * math.log1p(-mass))


@lru_cache(maxsize=64)  # each may hold megabytes
def _loss_distribution(composed: ComposedDelta) -> Any:
    """Return the loss distribution of all queries together, both directions."""
    # Imported here: it takes two seconds, and most runs ask about one query.
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions  # noqa: PLC0415 - two seconds, for claims over several queries only

    upper, lower = (_log_masses(masses) for masses in (composed.p, composed.q))
    single = from_two_probability_mass_functions(
        lower,
        upper,
        pessimistic_estimate=True,
        value_discretization_interval=composed.interval,
        log_mass_truncation_bound=LEAST_LOG_MASS,
        symmetric=False,  # its default computes one direction and presents it as both
    )
    return single.self_compose(composed.queries)


def _log_masses(masses: tuple[float, ...]) -> dict[int, float]:
    """Return ln(mass) by output, of the outputs that can happen."""
    return {i: float(np.log(mass)) for i, mass in enumerate(masses) if mass > 0.0}

"""Audit: lower bounds of ε and δ that samples prove with stated confidence."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from mechanisms.parameter import ParameterError, check_counts, check_epsilon
from mechanisms.privacy.claim import LARGEST_EPSILON


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact bounds of a probability from the successes of independent trials (Clopper and Pearson 1934).

    Parameters
    ----------
    successes, trials : (…) int
        0 ≤ successes ≤ trials; with 0 trials the bounds are 0 and 1.
    alpha : float
        Greatest probability that each end, taken alone, lies on the wrong side. Together the ends form an interval
        of confidence 1 − 2·alpha.

    Returns
    -------
    lower, upper : (…) float64

    Raises
    ------
    ParameterError
        If a count is not an integer or out of range, or alpha is not in (0, ½].
    """
    if not 0.0 < alpha <= 0.5:
        raise ParameterError("alpha", "must be above 0 and at most 1/2", alpha)
    hits, of = np.broadcast_arrays(
        check_counts("successes", successes, signed=False), check_counts("trials", trials, signed=False)
    )
    if (hits > of).any():
        raise ParameterError("successes", "must not exceed trials", int(hits[hits > of].flat[0]))
    lower = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), of - hits + 1, alpha))
    upper = np.where(hits == of, 1.0, betainccinv(hits + 1, np.maximum(of - hits, 1), alpha))
    return lower, upper


def epsilon_lower_bound(
    *, hits_p: int, trials_p: int, hits_q: int, trials_q: int, alpha: float, delta: float = 0.0
) -> float:
    """Return a lower bound of ε from the frequency of one event, wrong with probability at most alpha.

    Any (ε', δ)-private mechanism with ε' below the returned ε gives such frequencies with probability at most alpha.
    The event must be chosen before these trials. By definition P[E] ≤ e^ε·Q[E] + δ; P[E] is bounded from below and
    Q[E] from above, each with error probability alpha/2.

    Parameters
    ----------
    hits_p, trials_p, hits_q, trials_q : int
        How often the event was seen, and in how many independent trials, under P and under Q.
    alpha : float
        Greatest probability that the bound is too high.
    delta : float
        δ that the mechanism is allowed.

    Returns
    -------
    float
        At least 0.
    """
    low, high = _bounds(hits_p, trials_p, hits_q, trials_q, alpha)
    return max(math.log((low - delta) / high), 0.0) if low > delta else 0.0


def delta_lower_bound(*, hits_p: int, trials_p: int, hits_q: int, trials_q: int, epsilon: float, alpha: float) -> float:
    """Return a lower bound of δ at this ε from the frequency of one event, wrong with probability at most alpha.

    Any (ε, δ')-private mechanism with δ' below the returned δ gives such frequencies with probability at most alpha.

    Parameters
    ----------
    hits_p, trials_p, hits_q, trials_q : int
        How often an event, chosen before these trials, was seen, and in how many independent trials, under P and
        under Q.
    epsilon : float
        At least 0, finite.
    alpha : float
        Greatest probability that the bound is too high.

    Returns
    -------
    float
        At least 0.
    """
    low, high = _bounds(hits_p, trials_p, hits_q, trials_q, alpha)
    return max(low - math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON)) * high, 0.0)


def _bounds(hits_p: int, trials_p: int, hits_q: int, trials_q: int, alpha: float) -> tuple[float, float]:
    """Return a lower bound of P[E] and an upper bound of Q[E] that both hold with probability 1 − alpha."""
    low, _ = clopper_pearson(hits_p, trials_p, alpha=alpha / 2)
    _, high = clopper_pearson(hits_q, trials_q, alpha=alpha / 2)
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Witness:
    """An event that occurred under one truth and in no trial under another.

    Parameters
    ----------
    hits : int
        How often the event occurred under the first truth.
    trials : int
        Number of trials under the first truth.
    epsilon : float
        Lower bound of ε that these numbers prove.
    """

    hits: int
    trials: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class PairAudit:
    """Counts of outcomes under two truths, in two halves: the first half selects an event, the second tests it.

    Selecting and testing on the same outcomes would find an event in any noise. The bounds are for one direction: how
    much more often the event occurs under P than under Q.

    Parameters
    ----------
    choosing_p, choosing_q, testing_p, testing_q : (outcomes,) int64
        How often each outcome was seen under P and under Q, in the first and in the second half.
    """

    choosing_p: NDArray[np.int64]
    choosing_q: NDArray[np.int64]
    testing_p: NDArray[np.int64]
    testing_q: NDArray[np.int64]

    def delta_at_least(self, epsilon: float, *, alpha: float) -> float:
        """Return a lower bound of δ(ε), wrong with probability at most alpha."""
        share_p = self.choosing_p / max(int(self.choosing_p.sum()), 1)
        share_q = self.choosing_q / max(int(self.choosing_q.sum()), 1)
        event = share_p > math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON)) * share_q
        return delta_lower_bound(**self._hits(event), epsilon=epsilon, alpha=alpha)

    def epsilon_at_least(self, *, alpha: float, delta: float = 0.0) -> float:
        """Return a lower bound of ε at this δ, wrong with probability at most alpha.

        The event consists of the outcomes with the greatest ratios of P to Q, as many as give the greatest bound in the
        first half.
        """
        order = np.argsort(-(self.choosing_p + 0.5) / (self.choosing_q + 0.5), kind="stable")
        p, q = np.cumsum(self.choosing_p[order]), np.cumsum(self.choosing_q[order])
        low, _ = clopper_pearson(p, p[-1], alpha=alpha / 2)
        _, high = clopper_pearson(q, q[-1], alpha=alpha / 2)
        event = np.zeros(len(order), dtype=np.bool_)
        event[order[: int(np.argmax((low - delta) / high)) + 1]] = True
        return epsilon_lower_bound(**self._hits(event), alpha=alpha, delta=delta)

    def find_witness(self, *, least_hits: int, alpha: float) -> Witness | None:
        """Return an event seen at least `least_hits` times under P and never under Q, or None if no event is found.

        Candidates are the most frequent outcomes that occurred only under P in the first half: all of them, the most
        frequent half, the most frequent quarter and so on. `least_hits` applies to the second half; Q must give none of
        the outcomes in either half. Of several such events the one with the most hits is returned.
        """
        only = np.flatnonzero((self.choosing_q == 0) & (self.choosing_p > 0))
        only = only[np.argsort(-self.choosing_p[only], kind="stable")]
        best, size = None, len(only)
        while size:
            chosen = only[:size]
            hits = int(self.testing_p[chosen].sum())
            if hits >= least_hits and not self.testing_q[chosen].any() and (best is None or hits > best.hits):
                trials, others = int(self.testing_p.sum()), int(self.testing_q.sum())
                epsilon = epsilon_lower_bound(hits_p=hits, trials_p=trials, hits_q=0, trials_q=others, alpha=alpha)
                best = Witness(hits, trials, epsilon)
            size //= 2
        return best

    def _hits(self, event: NDArray[np.bool_]) -> dict[str, int]:
        """Return the hits and trials of an event in the second half, under P and under Q."""
        return {
            "hits_p": int(self.testing_p[event].sum()),
            "trials_p": int(self.testing_p.sum()),
            "hits_q": int(self.testing_q[event].sum()),
            "trials_q": int(self.testing_q.sum()),
        }

"""What k-anonymity by suppression is worth after sampling: theorems 1 and 5 of Li, Qardaji and Su (LQS)."""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.parameter import ParameterError, check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.random_sampling import population_privacy
from mechanisms.privacy.view import ReleasedDifferences

# Local maxima looked at together.
CHUNK = 256


def resampled_privacy(*, epsilon: float, delta: float, sampling: float, to: float) -> tuple[float, float]:
    """Return the (ε, δ) of a mechanism after sampling with `to`, from its own after sampling with `sampling`.

    LQS theorem 1: e^ε₂ − 1 = (β₂/β₁)(e^ε₁ − 1) and δ₂ = (β₂/β₁)δ₁, for β₂ ≤ β₁.

    Parameters
    ----------
    epsilon, delta : float
        ε₁ ≥ 0 and δ₁, of the mechanism with each device in it with probability β₁.
    sampling, to : float
        β₁ and β₂, in (0, 1].

    Raises
    ------
    ParameterError
        If a value is out of range, or β₂ exceeds β₁.
    """
    check_epsilon(epsilon)
    check_probability("delta", delta)
    check_probability("sampling", sampling, above_zero=True)
    if check_probability("to", to, above_zero=True) > sampling:
        raise ParameterError("to", f"must not exceed sampling ({sampling:g})", to)
    return population_privacy(epsilon=epsilon, delta=delta, share=to / sampling)


def strongly_safe_delta(*, k: int, sampling: float, epsilon: float) -> float:
    """Return d(k, β, ε), the δ of strongly safe k-anonymization after sampling (LQS theorem 5).

    d = max over n ≥ ⌈k/γ − 1⌉ of P[Bin(n, β) > γn], γ = (e^ε − 1 + β)/e^ε. The tail rises with n while
    ⌊γn⌋ + 1 = j stays the same, so its local maxima are at n_j = ⌈j/γ⌉ − 1, j = k, k + 1…; the greatest is not
    always the first. Chernoff's exp(−n·KL(γ‖β)) bounds all that follow, and ends the search.

    Parameters
    ----------
    k : int
        Values seen fewer than k times are dropped; at least 1.
    sampling : float
        β, in (0, 1).
    epsilon : float
        At least −ln(1 − β), where the theorem begins.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    k = check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    if beta == 1.0:
        raise ParameterError("sampling", "must be below 1: the theorem needs sampling", sampling)
    if check_epsilon(epsilon) < least_epsilon(beta):
        raise ParameterError("epsilon", f"must be at least −ln(1 − sampling) = {least_epsilon(beta):g}", epsilon)
    gamma = 1.0 - (1.0 - beta) * math.exp(-epsilon)
    if gamma == 1.0:
        return 0.0  # more than all of n
    away = gamma * math.log(gamma / beta) + (1.0 - gamma) * math.log((1.0 - gamma) / (1.0 - beta))
    greatest, j = 0.0, k
    while True:
        above = np.arange(j, j + CHUNK)
        n = np.maximum(np.ceil(above / gamma) - 1.0, above)
        greatest = max(greatest, float(mass_above(above - 1, n, beta).max()))
        j += CHUNK
        if math.exp(-away * (j / gamma - 1.0)) <= greatest:
            return greatest


def least_epsilon(sampling: float) -> float:
    """Return −ln(1 − β), the least ε that LQS theorem 5 speaks of."""
    return -math.log1p(-sampling)


@dataclass(frozen=True)
class StronglySafeDelta:
    """LQS theorem 5 as a function of ε; 1 below the ε at which it begins.

    Parameters
    ----------
    k : int
        Differences below it are suppressed.
    sampling : float
        β = π_s, below 1.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    k: int
    sampling: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        single = check_epsilon(epsilon) / self.queries
        if single < least_epsilon(self.sampling):
            return 1.0
        return min(1.0, self.queries * strongly_safe_delta(k=self.k, sampling=self.sampling, epsilon=single))


def strongly_safe_claim(view: ReleasedDifferences, sampling: float) -> PrivacyClaim:
    """Return what LQS theorem 5 says of suppressed differences, whatever the crowd: to stand beside the exact worst.

    Publishing only the differences, and dropping those below k, is the strongly safe k-anonymization of the
    grid of cells after sampling with β = π_s: each sampled device is its cell, and the cells were fixed
    without looking.

    Parameters
    ----------
    view : ReleasedDifferences
        Its threshold and queries; its crowd is not used.
    sampling : float
        π_s.
    """
    if view.k is None:
        return PrivacyClaim.unknown("LQS theorem 5 is about differences suppressed below some k; none are here.")
    if view.other_crowd is not None:
        return PrivacyClaim.unknown("LQS theorem 5 is about one device there or not there, not about two cells.")
    basis = "LQS theorem 5, β = π_s, at the worst crowd of all; all k sampled of a crowd of k tell with certainty"
    if sampling == 1.0:
        return PrivacyClaim.bound(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1 nothing is sampled out.")
    more = "" if view.queries == 1 else "; over T queries T·δ(ε/T), by basic composition"
    return PrivacyClaim.bound(math.inf, StronglySafeDelta(view.k, sampling, view.queries), f"{basis}{more}.")

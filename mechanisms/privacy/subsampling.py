"""Privacy of samples: amplification by sampling (HDK theorem 1), and suppression after sampling (LQS).

LQS is Li, Qardaji and Su; theorems 1, 5 and 6 are used.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mechanisms.parameter import ParameterError, check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.composition import COMPOSED, composed
from mechanisms.privacy.released import worst_crowd_delta
from mechanisms.privacy.view import ReleasedDifferences

# Above this ε, e^−ε is below the last digit of 1, and e^ε may overflow.
LARGE = 40.0


def population_privacy(*, epsilon: float, delta: float = 0.0, share: float) -> tuple[float, float]:
    """Return the population's (ε_N, δ_N) where a sample's release is (ε_n, δ_n)-private.

    HDK theorem 1, for n of N drawn by simple random sampling without replacement and neighbours of one changed value:
    ε_N = ln(1 + (n/N)(e^ε_n − 1)), δ_N = (n/N)δ_n. The same algebra holds for independent sampling with probability
    n/N and neighbours that hold one device more or less (LQS theorem 1).

    Parameters
    ----------
    epsilon, delta : float
        ε_n ≥ 0, perhaps infinite, and δ_n in [0, 1].
    share : float
        n/N, in (0, 1].

    Returns
    -------
    float, float
        Accurate to the last few digits for every ε, however small or large.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    epsilon, delta, share = _checked(epsilon, delta, share)
    if share == 1.0:
        return epsilon, delta
    if epsilon <= LARGE:
        return math.log1p(share * math.expm1(epsilon)), share * delta
    # ln(1 − q + q·e^ε), with the larger of both terms factored out.
    sampled = epsilon + math.log(share)
    if sampled > 0.0:
        return sampled + math.log1p((1.0 - share) * math.exp(-sampled)), share * delta
    return math.log1p(math.exp(sampled) - share), share * delta


def sample_privacy(*, epsilon: float, delta: float = 0.0, share: float) -> tuple[float, float]:
    """Return the (ε_n, δ_n) with which a sample may be released for the population's (ε_N, δ_N).

    HDK theorem 1 solved for the sample: ε_n = ln(1 + (N/n)(e^ε_N − 1)), δ_n = (N/n)δ_N. Where that exceeds 1, anything
    may be released.

    Parameters
    ----------
    epsilon, delta : float
        ε_N ≥ 0, perhaps infinite, and δ_N in [0, 1].
    share : float
        n/N, in (0, 1].

    Returns
    -------
    float, float
        Accurate to the last few digits for every ε; δ_n is at most 1.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    epsilon, delta, share = _checked(epsilon, delta, share)
    if share == 1.0:
        return epsilon, delta
    within = min(1.0, delta / share)
    if epsilon > LARGE:
        return epsilon - math.log(share), within
    grown = math.expm1(epsilon) / share
    # For a share so small that the quotient overflows, ln(1 + x) is ln x.
    return (math.log1p(grown) if grown < math.inf else math.log(math.expm1(epsilon)) - math.log(share)), within


def _checked(epsilon: float, delta: float, share: float) -> tuple[float, float, float]:
    """Return the three arguments after checking their ranges."""
    return check_epsilon(epsilon), check_probability("delta", delta), check_probability("share", share, above_zero=True)


# Local maxima evaluated at once.
CHUNK = 256


def resampled_privacy(*, epsilon: float, delta: float, sampling: float, to: float) -> tuple[float, float]:
    """Return the (ε, δ) of a mechanism after sampling with `to`, from its own after sampling with `sampling`.

    LQS theorem 1: e^ε₂ − 1 = (β₂/β₁)(e^ε₁ − 1) and δ₂ = (β₂/β₁)δ₁, for β₂ ≤ β₁.

    Parameters
    ----------
    epsilon, delta : float
        ε₁ ≥ 0 and δ₁, of the mechanism when each device is sampled with probability β₁.
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
    always the first. Chernoff's bound exp(−n·KL(γ‖β)) holds for all later ones and ends the search.

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
        return 0.0  # the event needs more than n successes
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
    """Return −ln(1 − β), the least ε for which LQS theorem 5 holds."""
    return -math.log1p(-sampling)


Form = Literal["paper", "worst crowd", "chosen on the sample"]


@dataclass(frozen=True)
class SafeDelta:
    """δ(ε) of suppressed counts under a map g that was itself chosen privately; 1 below the least ε at which it holds.

    **The paper's form.** The δ of ε₁-safe k-anonymization after sampling is d(k, β, ε − ε₁) (LQS theorem 6; theorem 5
    where nothing is chosen). The map g is chosen by an ε₁-differentially private mechanism, which adds ε₁ to the ε of
    theorem 5. In the paper's proof that mechanism sees all devices, before sampling, and an implementation must do the
    same. If it sees the sample, as definitions 3 and 6 together can be read, g and the count it is applied to depend on
    each other and the theorem fails.

    **Chosen on the sample.** Then options · d(k, β, ε − 2ε₁) holds. Derived here. Let g be drawn with probability p(T)
    from the sample T, which holds j of the n devices in the device's group under g. Of the samples of the other devices
    with j and with j − 1 of the group, pair one that has one more device u with one that does not:
    p(T + t) ≤ e^ε₁ p(T) ≤ e^2ε₁ p(T + u). So the likelihood ratio of (g, j) with the device t to without it is at most
    e^2ε₁ · n(1 − β)/(n − j), the ratio of theorem 5 with 2ε₁ added, and never below 1 − β. The ratio of suppressed
    outputs lies between 1 − β and e^ε₁. Only if some g is drawn with j > γn, j ≥ k is the ratio not within e^ε; for
    each of the options this has probability at most d.

    Parameters
    ----------
    k : int
        Counts below it are suppressed.
    sampling : float
        β, below 1.
    choice_epsilon : float
        ε₁, spent on the choice: a pure ε, so ε₁ and the δ of the counts at ε − ε₁ compose.
    form : {"paper", "worst crowd", "chosen on the sample"}
        The paper's d at ε − ε₁; the exact worst crowd there; or, for a choice that saw the sample, the bound above.
    options : int
        Number of maps to choose from; with 1 no ε₁ is spent.
    crowd : int
        Devices known to be in the cell, the device in question included. Under a coarser map there are as many or more.
    """

    k: int
    sampling: float
    choice_epsilon: float
    form: Form = "worst crowd"
    options: int = 2
    crowd: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        rest = check_epsilon(epsilon) - self.spent
        if rest < (0.0 if self.form == "worst crowd" else least_epsilon(self.sampling)):
            return 1.0
        if self.form == "worst crowd":
            return worst_crowd_delta(k=self.k, sampling=self.sampling, epsilon=rest, at_least=self.crowd)
        times = self.options if self.form == "chosen on the sample" else 1
        return min(1.0, times * strongly_safe_delta(k=self.k, sampling=self.sampling, epsilon=rest))

    @property
    def spent(self) -> float:
        """ε spent on the choice in one release: 0 with one option, 2ε₁ if the choice saw the sample, otherwise ε₁."""
        if self.options == 1:
            return 0.0
        return self.choice_epsilon * (2.0 if self.form == "chosen on the sample" else 1.0)


def strongly_safe_claim(view: ReleasedDifferences, sampling: float) -> Claim:
    """Return the claim of LQS theorem 5 about suppressed differences, for any crowd, to compare with the exact worst.

    Publishing only the differences, and dropping those below k, is the strongly safe k-anonymization of the
    grid of cells after sampling with β = π_s: each sampled device is mapped to its cell, and the cells were fixed
    without looking at the devices.

    Parameters
    ----------
    view : ReleasedDifferences
        Its threshold and queries; its crowd is not used.
    sampling : float
        π_s.
    """
    if view.k is None:
        return Claim.unknown("LQS theorem 5 is about differences suppressed below some k; none are here.")
    if view.other_crowd is not None:
        return Claim.unknown("LQS theorem 5 is about one device present or absent, not about two cells.")
    basis = (
        "LQS theorem 5, β = π_s, for the worst crowd size; if all k of a crowd of k are sampled, the device was present"
    )
    if sampling == 1.0:
        return Claim.infinite(ConstantDelta(1.0), f"{basis}; with π_s = 1 every device is sampled.")
    more = "" if view.queries == 1 else COMPOSED
    curve = composed(SafeDelta(view.k, sampling, 0.0, "paper"), view.queries)
    return Claim.infinite(curve, f"{basis}{more}.")


def safe_claim(curve: SafeDelta, queries: int = 1) -> Claim:
    """Return the claim of T queries with this curve each: no finite ε at δ = 0, as all n ≥ k may be sampled."""
    basis = {
        "worst crowd": "ε₁ for choosing the level, composed with the exact worst crowd of the suppressed counts",
        "chosen on the sample": "Level chosen on the sample: 2ε₁ and one δ per level, since LQS theorem 6 fails there",
    }[curve.form]
    if curve.sampling == 1.0:
        return Claim.infinite(ConstantDelta(1.0), f"{basis}; with β = 1 every device is sampled.")
    more = "" if queries == 1 else COMPOSED
    return Claim.infinite(composed(curve, queries), f"{basis}{more}.")

"""What ε₁-safe k-anonymization is worth after sampling: theorem 6 of Li, Qardaji and Su (LQS), and where it ends."""

import math
from dataclasses import dataclass
from typing import Literal

from mechanisms.parameter import ParameterError, check_epsilon, check_integer
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.released_differences import worst_crowd_delta
from mechanisms.privacy.strongly_safe import least_epsilon, strongly_safe_delta

Form = Literal["worst crowd", "theorem 6", "chosen on the sample"]


def safe_delta(*, k: int, sampling: float, epsilon: float, choice_epsilon: float) -> float:
    """Return the δ of ε₁-safe k-anonymization after sampling: d(k, β, ε − ε₁) (LQS theorem 6).

    The map g is chosen by an ε₁-differentially private mechanism, which adds ε₁ to the ε of theorem 5. The paper's
    proof has that mechanism look at all devices, before sampling: so must the implementation. Given the sample,
    as definitions 3 and 6 read together, g and the count it is applied to depend on one another and the theorem
    fails: see `sampled_choice_delta`.

    Parameters
    ----------
    k : int
        Values seen fewer than k times are dropped; at least 1.
    sampling : float
        β, in (0, 1).
    epsilon : float
        At least ε₁ − ln(1 − β).
    choice_epsilon : float
        ε₁, at least 0.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    rest = check_epsilon(epsilon) - _check_choice(choice_epsilon)
    if rest < least_epsilon(sampling):
        least = choice_epsilon + least_epsilon(sampling)
        raise ParameterError("epsilon", f"must be at least choice_epsilon − ln(1 − sampling) = {least:g}", epsilon)
    return strongly_safe_delta(k=k, sampling=sampling, epsilon=rest)


def sampled_choice_delta(*, k: int, sampling: float, epsilon: float, choice_epsilon: float, options: int) -> float:
    """Return a δ that holds where g was chosen by looking at the sample: options · d(k, β, ε − 2ε₁).

    Derived here. Let g be drawn with probability p(T) from the sample T, j of the device's n in its group under g.
    Of the other samples with j and with j − 1 of the group, pair one that has one more device u with one that has
    not: p(T + t) ≤ e^ε₁ p(T) ≤ e^2ε₁ p(T + u). So the ratio of seeing (g, j) with the device t to without is at
    most e^2ε₁ · n(1 − β)/(n − j), that of theorem 5 with 2ε₁ added, and never below 1 − β; suppressed outputs lie
    between 1 − β and e^ε₁. What is not within e^ε is that some g was drawn with j > γn, j ≥ k: for each of the
    options at most d.

    Parameters
    ----------
    k, sampling, epsilon, choice_epsilon
        As in `safe_delta`, with ε at least 2ε₁ − ln(1 − β).
    options : int
        Maps that g is chosen from; at least 1. Of one map nothing is chosen, and nothing added.
    """
    options = check_integer("options", options, at_least=1)
    spent = 0.0 if options == 1 else 2.0 * _check_choice(choice_epsilon)
    rest = check_epsilon(epsilon) - spent
    if rest < least_epsilon(sampling):
        least = spent + least_epsilon(sampling)
        raise ParameterError("epsilon", f"must be at least 2·choice_epsilon − ln(1 − sampling) = {least:g}", epsilon)
    return min(1.0, options * strongly_safe_delta(k=k, sampling=sampling, epsilon=rest))


@dataclass(frozen=True)
class SafeDelta:
    """δ(ε) of suppressed counts under a map that was itself chosen privately; 1 below the ε where it begins.

    Parameters
    ----------
    k : int
        Counts below it are suppressed.
    sampling : float
        β, below 1.
    choice_epsilon : float
        ε₁, spent on the choice: a pure ε, so ε₁ and the δ of the counts at ε − ε₁ compose.
    form : {"worst crowd", "theorem 6", "chosen on the sample"}
        The exact worst crowd at ε − ε₁; the paper's d there; or `sampled_choice_delta`.
    options : int
        Maps chosen from; 1 spends no ε₁.
    crowd : int
        Devices known to be in the cell with the one in question: under a coarser map there are as many or more.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    k: int
    sampling: float
    choice_epsilon: float
    form: Form = "worst crowd"
    options: int = 2
    crowd: int = 1
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        rest = check_epsilon(epsilon) / self.queries - self.spent
        if rest < (0.0 if self.form == "worst crowd" else least_epsilon(self.sampling)):
            return 1.0
        if self.form == "worst crowd":
            delta = worst_crowd_delta(k=self.k, sampling=self.sampling, epsilon=rest, at_least=self.crowd)
        else:
            delta = strongly_safe_delta(k=self.k, sampling=self.sampling, epsilon=rest)
        return min(1.0, self.queries * (self.options if self.form == "chosen on the sample" else 1) * delta)

    @property
    def spent(self) -> float:
        """What of ε the choice takes in one release: nothing of one option, twice ε₁ if it saw the sample."""
        if self.options == 1:
            return 0.0
        return self.choice_epsilon * (2.0 if self.form == "chosen on the sample" else 1.0)


def safe_claim(curve: SafeDelta) -> PrivacyClaim:
    """Return the claim of a curve: no finite ε at δ = 0, since all n sampled of a crowd of n ≥ k tell, and its δ."""
    basis = {
        "worst crowd": "ε₁ for choosing the level, composed with the exact worst crowd of the suppressed counts",
        "theorem 6": "LQS theorem 6, β = π_s, whatever the crowd",
        "chosen on the sample": "The level chosen on the sample: 2ε₁ and a δ a level, since LQS theorem 6 fails there",
    }[curve.form]
    if curve.sampling == 1.0:
        return PrivacyClaim.bound(math.inf, ConstantDelta(1.0), f"{basis}; with β = 1 nothing is sampled out.")
    more = "" if curve.queries == 1 else "; over T queries T·δ(ε/T), by basic composition"
    return PrivacyClaim.bound(math.inf, curve, f"{basis}{more}.")


def _check_choice(choice_epsilon: float) -> float:
    """Return ε₁ if it is finite and not negative."""
    if math.isinf(check_epsilon(choice_epsilon)):
        raise ParameterError("choice_epsilon", "must be finite", choice_epsilon)
    return choice_epsilon

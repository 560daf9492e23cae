"""Lower bounds on the growth of an estimator's error, and the privacy cost of an error that does not grow."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.algebra.estimator import Estimator
from mechanisms.algebra.protocol import Answers, Protocol
from mechanisms.parameter import ParameterError, check_epsilon, check_probability


@dataclass(frozen=True, eq=False)
class NoFreeLunch:
    """An event of linked reports that is impossible for a steady kind and possible for another kind.

    An adversary that links a device's reports distinguishes the two kinds by it.

    Parameters
    ----------
    steady, other : str
        The kind with which the error does not grow, and the kind that is distinguished from it.
    event : frozenset of answers
        Answers over all rounds.
    probabilities : mapping of kind to Fraction
        The probability of the event for each kind: 0 for `steady`.
    floor : Fraction
        g²/(g² + Var f), a lower bound of δ that depends only on the estimator's error: g is the difference of the two
        kinds' targets, and Var f the variance coefficient of `other`.
    """

    steady: str
    other: str
    event: frozenset[Answers]
    probabilities: Mapping[str, Fraction]
    floor: Fraction

    @property
    def delta(self) -> Fraction:
        """A lower bound of the linked reports' δ(ε), the same for every ε: P(event | other)."""
        return self.probabilities[self.other]


def no_free_lunch(estimator: Estimator, *, steady: str, other: str | None = None) -> NoFreeLunch:
    """Return the distinguishing event of an estimator whose error does not grow with the devices of one kind.

    **Theorem.** Let devices answer independently, with distributions that depend only on their own kind. Let an
    estimator, linear in counts of their answers, be unbiased for Σ t_k·n_k for all populations, and let its variance
    not grow with the number of a-devices. Then for every kind b with t_b ≠ t_a, the view of all of a device's answers
    distinguishes b from a with δ(ε) ≥ P_b(f ≠ t_a) ≥ g²/(g² + Var_b f) > 0 at every ε, where g = t_b − t_a. No finite ε
    holds.

    **Proof.** The estimate is Σ f(X_i) over devices, where f(x) is the sum of the coefficients of the counts that
    contain x. The estimator is unbiased for all populations, so E_k f = t_k. Devices are independent, so the variance
    is Σ n_k·Var_k f. As it does not grow with n_a, Var_a f = 0, so f(X) = t_a almost surely for an a-device, and the
    event F = {f ≠ t_a} has P_a(F) = 0. If P_b(F) were 0 too, E_b f would be t_a ≠ t_b. So
    δ(ε) ≥ P_b(F) − e^ε·P_a(F) = P_b(F) > 0. By Cauchy-Schwarz,
    g² = (E_b[(f − t_a)·1_F])² ≤ E_b(f − t_a)²·P_b(F) = (Var_b f + g²)·P_b(F). ∎

    With g = 1 the floor is 1/(1 + Var_b f). Sampling Privacy has Var f = (1 − π_s)/π_s and δ = π_s, so it attains the
    floor with equality: no protocol with constant error has a smaller δ at the same accuracy.

    Parameters
    ----------
    estimator : Estimator
    steady : str
        The kind a, with variance coefficient 0.
    other : str, optional
        The kind b; by default the one with the most probable event.

    Raises
    ------
    ParameterError
        If the error does grow with `steady`, or the target has the same weight for both kinds.
    """
    protocol = estimator.protocol
    protocol.check_kind("steady", steady)
    spread = estimator.variance_by_kind()
    if spread[steady]:
        raise ParameterError("steady", "must be a kind with variance coefficient 0", f"{steady}: {spread[steady]}")
    wanted = estimator.target[steady]
    others = [kind for kind in protocol.kinds if estimator.target[kind] != wanted]
    if not others or (other is not None and other not in others):
        raise ParameterError("other", f"must have another target than {steady!r}: one of {others}", other)
    event = frozenset(answers for answers in protocol.answers if estimator.contribution(answers) != wanted)
    probabilities = {kind: protocol.probability(kind, event) for kind in protocol.kinds}
    told = max(others, key=probabilities.__getitem__) if other is None else other
    square = (estimator.target[told] - wanted) ** 2
    return NoFreeLunch(steady, told, event, probabilities, square / (square + spread[told]))


LARGEST_EPSILON = 700.0


def growth_floor(protocol: Protocol, *, kind: str, other: str) -> Fraction:
    """Return the least variance coefficient of `kind` in any estimator that counts `other` and not `kind`: 1/χ².

    For a contribution f with E_a f = 0 and E_b f = 1, Cauchy-Schwarz gives
    1 = (E_a[f·(P_b/P_a − 1)])² ≤ Var_a f · χ²(P_b‖P_a), the bound of Hammersley, Chapman and Robbins. It is 0 exactly
    if b can give answers that are impossible for a (χ² infinite), the event that `no_free_lunch` returns. With two
    kinds and linked tallies the bound is attained.

    Parameters
    ----------
    protocol : Protocol
    kind, other : str
        a, and b whose devices are counted: t_b − t_a = 1. For another difference g, multiply the bound by g².

    Raises
    ------
    ParameterError
        If both kinds answer with the same distribution and cannot be distinguished.
    """
    of_other, of_kind = protocol.law(other), protocol.law(kind)
    if of_other == of_kind:
        raise ParameterError("other", f"must not answer by the law of {kind!r}", other)
    if any(answers not in of_kind for answers in of_other):
        return Fraction(0)
    return 1 / (sum((p * p / of_kind[answers] for answers, p in of_other.items()), Fraction(0)) - 1)


def growth_floor_at(*, epsilon: float, delta: float = 0.0, other_coefficient: float = 0.0) -> float:
    """Return the least variance coefficient of a kind, over all protocols whose linked reports are (ε, δ)-DP.

    At δ = 0 the greatest χ² under ε is (e^ε − 1)²/e^ε, so Var_a f ≥ e^ε/(e^ε − 1)² = 1/(4·sinh²(ε/2)). An estimate of
    the number of b-devices among many more a-devices thus has a standard error of at least √n_a/(2·sinh(ε/2)).
    Warner's randomized response attains it.

    For δ > 0 write P_b = B + R, with B = min(P_b, e^ε·P_a) and R the rest, of mass r ≤ δ. For a centred f
    (E_a f = 0, E_b f = 1), ∫f dR ≤ √(E_b f²·δ) = √((1 + Var_b f)·δ), and ∫f dB ≤ √(Var_a f · Var_a(dB/dP_a)). Here
    dB/dP_a lies in [0, e^ε] with mean 1 − r, so its variance is at most (1 − r)(e^ε − 1 + r) ≤ e^ε − 1 + δ. Hence

    Var_a f ≥ [1 − √(δ·(1 + Var_b f))]₊² / (e^ε − 1 + δ).

    For Var_a f = 0 this gives δ ≥ 1/(1 + Var_b f), which is the floor of `no_free_lunch`.

    Parameters
    ----------
    epsilon : float
        ε of the linked reports; infinity gives 0.
    delta : float
    other_coefficient : float
        Var_b f, the contribution of each counted device to the variance; it matters only for δ > 0.

    Returns
    -------
    float
        Per device of kind a, for t_b − t_a = 1; infinite where ε = δ = 0.
    """
    epsilon, delta = check_epsilon(epsilon), check_probability("delta", delta)
    if not (math.isfinite(other_coefficient) and other_coefficient >= 0):
        raise ParameterError("other_coefficient", "must be a finite number of at least 0", other_coefficient)
    if epsilon > LARGEST_EPSILON:
        return 0.0
    if delta == 0.0:
        half = 2.0 * math.sinh(epsilon / 2.0)
        return 1.0 / half / half if half * half else math.inf
    left = max(1.0 - math.sqrt(delta * (1.0 + other_coefficient)), 0.0)
    return left * left / (math.expm1(epsilon) + delta)

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
    """An event that a steady kind never shows and another shows: whoever links reports tells them apart by it.

    Parameters
    ----------
    steady, other : str
        The kind with which the error does not grow, and the one that is told from it.
    event : frozenset of answers
        Answers over all rounds.
    probabilities : mapping of kind to Fraction
        Of the event, by kind: 0 for `steady`.
    floor : Fraction
        g²/(g² + Var f): what δ must be at least given only the estimator's error, for g the difference of
        the two kinds' targets and Var f the variance coefficient of `other`.
    """

    steady: str
    other: str
    event: frozenset[Answers]
    probabilities: Mapping[str, Fraction]
    floor: Fraction

    @property
    def delta(self) -> Fraction:
        """A lower bound of the linked reports' δ(ε), the same at every ε however large: P(event | other)."""
        return self.probabilities[self.other]


def no_free_lunch(estimator: Estimator, *, steady: str, other: str | None = None) -> NoFreeLunch:
    """Return the distinguishing event of an estimator whose error does not grow with a kind.

    **Theorem.** Let devices answer independently, each by a law that hangs on its own kind alone. Let an
    estimator, linear in counts of their answers, be unbiased for Σ t_k·n_k whatever the populations, and let
    its variance not grow with the number of a-devices. Then for every kind b with t_b ≠ t_a, whoever sees all
    of a device's answers tells b from a with δ(ε) ≥ P_b(f ≠ t_a) ≥ g²/(g² + Var_b f) > 0 at every ε, g = t_b −
    t_a; no finite ε holds.

    **Proof.** The estimate is Σ f(X_i) over devices, f(x) the coefficients of the counts that x is in.
    Unbiased for all populations: E_k f = t_k. Independence: Var = Σ n_k·Var_k f, so not growing with n_a means
    Var_a f = 0, f(X) = t_a almost surely for an a-device. The event F = {f ≠ t_a} thus has P_a(F) = 0. Were
    P_b(F) = 0 too, E_b f would be t_a ≠ t_b. So δ(ε) ≥ P_b(F) − e^ε·P_a(F) = P_b(F) > 0. And by
    Cauchy-Schwarz g² = (E_b[(f − t_a)·1_F])² ≤ E_b(f − t_a)²·P_b(F) = (Var_b f + g²)·P_b(F). ∎

    With g = 1 the floor is 1/(1 + Var_b f). Sampling Privacy has Var f = (1 − π_s)/π_s and δ = π_s: it meets
    the floor with equality, and no protocol with constant error tells less at its accuracy.

    Parameters
    ----------
    estimator : Estimator
    steady : str
        The kind a, with variance coefficient 0.
    other : str, optional
        The kind b; by default the one that shows its event most often.

    Raises
    ------
    ParameterError
        If the error grows with `steady` after all, or the target does not tell the two kinds apart.
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
    """Return the least variance coefficient of a kind, in any estimator that counts `other` and not it: 1/χ².

    For a contribution f with E_a f = 0 and E_b f = 1, Cauchy-Schwarz gives 1 = (E_a[f·(P_b/P_a − 1)])² ≤ Var_a
    f · χ²(P_b‖P_a), the bound of Hammersley, Chapman and Robbins. It is 0 exactly where b shows answers that
    a never does (χ² infinite), which is what `no_free_lunch` finds there; with two kinds and linked tallies it
    is attained.

    Parameters
    ----------
    protocol : Protocol
    kind, other : str
        a, and b whose devices are counted: t_b − t_a = 1. For another difference g, times g².

    Raises
    ------
    ParameterError
        If both answer by one law, so that nothing tells them apart.
    """
    of_other, of_kind = protocol.law(other), protocol.law(kind)
    if of_other == of_kind:
        raise ParameterError("other", f"must not answer by the law of {kind!r}", other)
    if any(answers not in of_kind for answers in of_other):
        return Fraction(0)
    return 1 / (sum((p * p / of_kind[answers] for answers, p in of_other.items()), Fraction(0)) - 1)


def growth_floor_at(*, epsilon: float, delta: float = 0.0, other_coefficient: float = 0.0) -> float:
    """Return the least variance coefficient of a kind, in any protocol at all whose linked reports are (ε, δ)-DP.

    At δ = 0 the greatest χ² under ε is (e^ε − 1)²/e^ε, so Var_a f ≥ e^ε/(e^ε − 1)² = 1/(4·sinh²(ε/2)): an
    estimate of how many are b among many more a's has a standard error of at least √n_a/(2·sinh(ε/2)).
    Warner's randomized response attains it.

    For δ > 0 write P_b = B + R, B = min(P_b, e^ε·P_a) and R the rest, of mass r ≤ δ. For a centred f (E_a f =
    0, E_b f = 1) ∫f dR ≤ √(E_b f²·δ) = √((1 + Var_b f)·δ), and ∫f dB ≤ √(Var_a f · Var_a(dB/dP_a)), where
    dB/dP_a lies in [0, e^ε] with mean 1 − r, so has variance at most (1 − r)(e^ε − 1 + r) ≤ e^ε − 1 + δ. Hence

    Var_a f ≥ [1 − √(δ·(1 + Var_b f))]₊² / (e^ε − 1 + δ),

    in which Var_a f = 0 gives back δ ≥ 1/(1 + Var_b f), item by item the floor of `no_free_lunch`.

    Parameters
    ----------
    epsilon : float
        Of the linked reports; infinity gives 0.
    delta : float
    other_coefficient : float
        Var_b f, the variance each counted device adds; it matters only for δ > 0.

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

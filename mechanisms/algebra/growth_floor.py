"""The least that an error can grow with a kind, from how well the linked reports tell it from another."""

import math
from fractions import Fraction

from mechanisms.algebra.protocol import Protocol
from mechanisms.parameter import ParameterError, check_epsilon, check_probability

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

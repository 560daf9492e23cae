"""Lower bounds of the growth of errors, the privacy cost of none, and the sign combinations of ALP's lemma 7."""

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal, TypeAlias

from mechanisms.parameter import ParameterError, check_epsilon, check_integer, check_probability
from mechanisms.privacy.claim import LARGEST_EPSILON
from mechanisms.protocols.estimator import Estimator
from mechanisms.protocols.protocol import Answers, Protocol


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
    revealed = max(others, key=probabilities.__getitem__) if other is None else other
    square = (estimator.target[revealed] - wanted) ** 2
    return NoFreeLunch(steady, revealed, event, probabilities, square / (square + spread[revealed]))


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
        raise ParameterError("other", f"must not have the distribution of {kind!r}", other)
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


Sign: TypeAlias = Literal[-1, 1]
SIGNS: tuple[Sign, Sign] = (1, -1)
# A determinant this small is a rounding error, as the probabilities are of order one.
SINGULAR = 1e-12


@dataclass(frozen=True, slots=True)
class SignSolution:
    """One solution (YES, σ) of eqs 25 and 26.

    Parameters
    ----------
    signs : tuple of int
        The sign of σ in eq 25 and in eq 26.
    yes : float
        YES, the number of Yes-holders.
    sigma : float
        σ, not negative.
    excess : float
        The error in eq 27: its left side minus DO. It is 0 if no device answered No, else minus the count of No.
    """

    signs: tuple[Sign, Sign]
    yes: float
    sigma: float
    excess: float


@dataclass(frozen=True, slots=True)
class SignSolutions:
    """Solutions of the equations of lemma 7.

    Parameters
    ----------
    solutions : tuple of SignSolution
        The solutions with neither YES nor σ negative.
    dependent : tuple of tuple of int
        The signs with which the two equations are equivalent or contradictory, so that they determine nothing.
    """

    solutions: tuple[SignSolution, ...]
    dependent: tuple[tuple[Sign, Sign], ...]


class Tabular(typing.Protocol):
    """A mechanism that is a table."""

    @property
    def protocol(self) -> Protocol:
        """The table."""


def solve_sign_combinations(mechanism: Tabular, *, said_yes: int, silent: int, devices: int) -> SignSolutions:
    """Solve E["Yes"] ± σ = Observed("Yes") and E[⊥] ± σ = Observed(⊥) for YES and σ (ALP lemma 7, eqs 25-27).

    With each combination of signs, eqs 25 and 26 are two linear equations with two unknowns. Eq 27, their sum set
    to DO, is no independent equation if no device answers No, since then Observed("Yes") + Observed(⊥) = DO. If some
    devices answer No, it is wrong by their count. Solutions with a negative YES are dropped, as the paper prescribes.
    Those with a negative σ are dropped too: they repeat the solutions for the opposite signs.

    Findings. The single σ for both counts is based on the paper's observation that the standard deviations are equal
    at π_1 = π_2 = π_3 = 1. This is true for "Yes" and ⊥. It is not true for "No": no device answers No, σ("No") = 0,
    and the estimator of lemma 3 is 0/0. At exactly these parameters the equations give no new information: with equal
    signs the sum of the two equations is 2σ = 0, so YES is the estimate of lemma 1, and with opposite signs the
    equations are equivalent. With other parameters each pair of signs has its own solution, and no criterion selects
    the right one. So the σ found is no standard error: it is the value that makes two estimates equal which differ by
    chance. Use the best combination of the counts instead.

    Parameters
    ----------
    mechanism : AnonymizedLocal
        The table of eqs 6-7.
    said_yes, silent : int
        Observed("Yes") and Observed(⊥), for one cell.
    devices : int
        DO, at least 1.

    Returns
    -------
    SignSolutions

    Raises
    ------
    ParameterError
        If a count is negative, or the two exceed `devices`.
    """
    check_integer("devices", devices, at_least=1)
    check_integer("said_yes", said_yes, at_least=0)
    check_integer("silent", silent, at_least=0)
    if said_yes + silent > devices:
        raise ParameterError("silent", f"must be at most devices − said_yes = {devices - said_yes}", silent)
    yes, no = (mechanism.protocol.round_law(kind, 1) for kind in ("yes", "no"))
    slope = [float(yes[output] - no[output]) for output in ("1", "⊥")]
    seen = [float(n - no[output] * devices) for output, n in (("1", said_yes), ("⊥", silent))]
    solutions: dict[tuple[float, float], SignSolution] = {}
    dependent: list[tuple[Sign, Sign]] = []
    for signs in product(SIGNS, SIGNS):
        determinant = slope[0] * signs[1] - slope[1] * signs[0]
        if abs(determinant) <= SINGULAR:
            dependent.append(signs)
            continue
        count = (signs[1] * seen[0] - signs[0] * seen[1]) / determinant
        sigma = (slope[0] * seen[1] - slope[1] * seen[0]) / determinant
        # The solution is exact up to rounding errors relative to N, so a smaller σ is 0.
        if abs(sigma) <= SINGULAR * devices:
            sigma = 0.0
        if count >= 0.0 and sigma >= 0.0:
            excess = float(said_yes + silent - devices)
            solutions.setdefault((count, sigma), SignSolution(signs, count, sigma, excess))
    return SignSolutions(tuple(solutions.values()), tuple(dependent))

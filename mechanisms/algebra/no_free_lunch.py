"""Error that does not grow with a kind, and what it costs: an answer that tells for certain."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.algebra.estimator import Estimator
from mechanisms.algebra.protocol import Answers
from mechanisms.parameter import ParameterError


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

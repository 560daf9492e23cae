"""The linear unbiased estimator of least variance, or the proof that there is none."""

from collections.abc import Collection, Mapping
from fractions import Fraction

from mechanisms.algebra.elimination import ZERO, Contradiction, solve
from mechanisms.algebra.estimator import Estimator, Target, resolve_target
from mechanisms.algebra.not_estimable import Group, NotEstimable
from mechanisms.algebra.tallies import Tallies


def best_estimator(
    tallies: Tallies,
    target: Target,
    *,
    population: Mapping[str, int] | None = None,
    steady: Collection[str] = (),
) -> Estimator | NotEstimable:
    """Return the linear unbiased estimator of least variance, or the proof that none exists.

    Unbiased for every population means aᵀM = tᵀ: possible if and only if the target t is in the row space of
    the map M from populations to expected tallies. With S the covariance of the tallies for the assumed
    population, generalised least squares minimises aᵀSa under it, which is the linear system S·a + M·λ = 0,
    Mᵀ·a = t, solved over fractions. S may be singular (the outputs of a round sum to N): the system still
    has a solution, and of several equally good ones the one that leaves out the last counts is returned.

    An error that does not grow with a kind means that each of its devices contributes exactly t_k whatever it
    answers: more linear equations, one for each answer it can give.

    Parameters
    ----------
    tallies : Tallies
        What may be used.
    target : str or mapping of kind to number
        The kind whose devices are to be counted, or the weight t_k of each kind's count.
    population : mapping of kind to int, optional
        For which the variance is to be least; one device of each kind by default. The estimator is unbiased
        for all others too.
    steady : collection of str
        Kinds whose variance coefficient must be 0 ("constant error").

    Returns
    -------
    Estimator or NotEstimable
        The second is false.

    Raises
    ------
    ParameterError
        If a kind is unknown.
    """
    protocol = tallies.protocol
    wanted = resolve_target(protocol, target)
    kinds = tuple(protocol.check_kind("steady", kind) for kind in dict.fromkeys(steady))
    devices = dict.fromkeys(protocol.kinds, 1) if population is None else population
    groups: list[Group] = [(kind, None) for kind in protocol.kinds if kind not in kinds]
    groups += [(kind, answers) for kind in kinds for answers in protocol.law(kind)]
    rows = [_row(tallies, group) for group in groups]
    right = [wanted[kind] for kind, _ in groups]
    feasible = solve(rows, right)
    if isinstance(feasible, Contradiction):
        direction = {group: weight for group, weight in zip(groups, feasible.weights, strict=True) if weight}
        return NotEstimable(tallies, wanted, direction, kinds)
    covariance = tallies.covariance(devices)
    blank = [ZERO] * len(rows)
    system = [[*s, *(row[i] for row in rows)] for i, s in enumerate(covariance)] + [[*row, *blank] for row in rows]
    solution = solve(system, [ZERO] * len(covariance) + right)
    # A convex quadratic has its least value on a plane, so this one does not contradict itself.
    values = () if isinstance(solution, Contradiction) else solution[: len(covariance)]
    return Estimator(tallies, wanted, dict(zip(tallies.labels, values, strict=True)))


def _row(tallies: Tallies, group: Group) -> tuple[Fraction, ...]:
    """Return what a device of the group adds to each count in expectation, (counts,)."""
    kind, answers = group
    if answers is None:
        return tallies.per_device(kind)
    return tuple(Fraction(answers in count.answers) for count in tallies.counts)

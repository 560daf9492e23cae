"""Linear unbiased estimators of a tabular protocol: the one of least variance, or a proof that none exists.

The equations are solved exactly over fractions. If they contradict each other, the proof is a pair of populations
with different targets and equal expected tallies.
"""

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.parameter import ParameterError
from mechanisms.protocols.protocol import Answers, Number, Protocol, Tallies, exact

Target: TypeAlias = str | Mapping[str, Number]


@dataclass(frozen=True, eq=False)
class Estimator:
    """A linear estimator Σ a_c·C_c over counts, unbiased for Σ t_k·n_k for all populations n_k.

    Every count is a sum over devices, so the estimate is one too: a device that answers x *contributes* f(x), the sum
    of the coefficients of the counts that contain x. Unbiased means E_k f = t_k for each kind k. Devices are
    independent, so the variance is Σ n_k·Var_k f, linear in the populations.

    Made by `best_estimator`, or by `from_coefficients` from a published formula.

    Parameters
    ----------
    tallies : Tallies
    target : mapping of kind to Fraction
        t_k of every kind.
    coefficients : mapping of label to Fraction
        a_c of every count.
    """

    tallies: Tallies
    target: Mapping[str, Fraction]
    coefficients: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        """Check that the estimator is unbiased."""
        for kind, wanted in self.target.items():
            mean = self._mean(kind, power=1)
            if mean != wanted:
                rule = f"must be unbiased: a device of kind {kind!r} must add {wanted} in expectation"
                raise ParameterError("coefficients", rule, str(mean))

    @classmethod
    def from_coefficients(cls, tallies: Tallies, target: Target, coefficients: Mapping[str, Number]) -> "Estimator":
        """Return an estimator with given coefficients; counts that are not given have coefficient 0.

        Raises
        ------
        ParameterError
            If it is biased (the message states a kind and its expectation), or a label or kind is unknown.
        """
        for label in coefficients:
            if label not in tallies.labels:
                raise ParameterError("coefficients", f"must be of counts among {list(tallies.labels)}", label)
        values = {label: exact(f"coefficients[{label!r}]", coefficients.get(label, 0)) for label in tallies.labels}
        return cls(tallies, resolve_target(tallies.protocol, target), values)

    def __str__(self) -> str:
        """Return the estimator as a formula."""
        terms = [(value, label) for label, value in self.coefficients.items() if value]
        text = "".join(f" {'−' if value < 0 else '+'} {abs(value)}·{label}" for value, label in terms)
        return text.removeprefix(" + ").strip() or "0"

    @property
    def protocol(self) -> Protocol:
        """The protocol whose counts are used."""
        return self.tallies.protocol

    def contribution(self, answers: Answers) -> Fraction:
        """Return f(x), the contribution to the estimate of a device that answers x over all rounds."""
        return sum(
            (self.coefficients[count.label] for count in self.tallies.counts if answers in count.answers), Fraction(0)
        )

    def estimate(self, counts: Mapping[str, int]) -> Fraction:
        """Return the estimate from observed counts, given by label; all counts are required."""
        if set(counts) != set(self.coefficients):
            raise ParameterError("counts", f"must be given for each of {list(self.coefficients)}", list(counts))
        return sum((value * counts[label] for label, value in self.coefficients.items()), Fraction(0))

    def variance_by_kind(self) -> dict[str, Fraction]:
        """Return Var_k f, the contribution of one device of each kind to the variance; 0 if the error does not grow."""
        return {kind: self._mean(kind, power=2) - self._mean(kind, power=1) ** 2 for kind in self.protocol.kinds}

    def variance(self, population: Mapping[str, int]) -> Fraction:
        """Return the exact variance of the estimate for this number of devices of each kind."""
        each = self.variance_by_kind()
        return sum((n * each[kind] for kind, n in self.protocol.check_population(population).items()), Fraction(0))

    def std_error(self, population: Mapping[str, int]) -> float:
        """Return the standard error of the estimate for this number of devices of each kind."""
        return math.sqrt(self.variance(population))

    def _mean(self, kind: str, *, power: int) -> Fraction:
        """Return E_k f^power."""
        law = self.protocol.law(kind)
        return sum((p * self.contribution(answers) ** power for answers, p in law.items()), Fraction(0))


def resolve_target(protocol: Protocol, target: Target) -> dict[str, Fraction]:
    """Return t_k of every kind: 1 for the named kind and 0 for the others, or as in the mapping (0 if missing)."""
    given: Mapping[str, Number] = {target: 1} if isinstance(target, str) else target
    for kind in given:
        protocol.check_kind("target", kind)
    return {kind: exact(f"target[{kind!r}]", given.get(kind, 0)) for kind in protocol.kinds}


Row: TypeAlias = Sequence[Fraction]
ZERO = Fraction(0)
ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The proof that A·x = b has no solution: weights y of the equations with yᵀA = 0 and yᵀb = 1.

    Parameters
    ----------
    weights : (equations,) of Fraction
    """

    weights: tuple[Fraction, ...]


def solve(rows: Sequence[Row], right: Row) -> tuple[Fraction, ...] | Contradiction:
    """Return one x with A·x = b, or the contradiction, by Gauss-Jordan elimination without rounding.

    Unknowns whose columns depend on earlier columns are 0, so of several solutions the one in the first unknowns is
    returned.

    Parameters
    ----------
    rows : (equations, unknowns) of Fraction
        A, at least one equation.
    right : (equations,) of Fraction
        b.
    """
    unknowns, equations = len(rows[0]), len(rows)
    # The columns after b start as the identity; they record how each row is combined from the equations.
    table = [
        [*row, b, *(ONE if i == j else ZERO for j in range(equations))]
        for i, (row, b) in enumerate(zip(rows, right, strict=True))
    ]
    pivots: list[int] = []
    for column in range(unknowns):
        pivot = next((i for i in range(len(pivots), equations) if table[i][column]), None)
        if pivot is None:
            continue
        place = len(pivots)
        table[place], table[pivot] = table[pivot], table[place]
        scale = table[place][column]
        table[place] = [value / scale if value else ZERO for value in table[place]]
        for i, row in enumerate(table):
            factor = row[column]
            if i != place and factor:
                table[i] = [a - factor * b if b else a for a, b in zip(row, table[place], strict=True)]
        pivots.append(column)
    for row in table[len(pivots) :]:
        if row[unknowns]:
            return Contradiction(tuple(weight / row[unknowns] for weight in row[unknowns + 1 :]))
    solution = [ZERO] * unknowns
    for row, column in zip(table, pivots, strict=False):
        solution[column] = row[unknowns]
    return tuple(solution)


# Devices of a kind whose answers are random (None), or fixed to the same answers.
Group: TypeAlias = tuple[str, Answers | None]


@dataclass(frozen=True, eq=False)
class NotEstimable:
    """The proof that no estimator exists: a change of the populations that changes the target but no expected tally.

    Without conditions on the error, the direction d is one of populations: M·d = 0 and t·d ≠ 0. An estimator is
    unbiased only if aᵀM = tᵀ, which would give t·d = aᵀM·d = 0, a contradiction. If the error must not grow with some
    kind, each of its devices must contribute exactly t_k for all its answers. Then the direction may also have devices
    of this kind with fixed answers.

    The proof is checked when the object is made.

    Parameters
    ----------
    tallies : Tallies
    target : mapping of kind to Fraction
        t_k.
    direction : mapping of (kind, answers or None) to Fraction
        The change in the number of devices of the kind, with random answers (None) or with these fixed answers.
    steady : tuple of str
        Kinds with which the error must not grow.
    """

    tallies: Tallies
    target: Mapping[str, Fraction]
    direction: Mapping[Group, Fraction]
    steady: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the direction changes the target and no expected tally."""
        for kind, answers in self.direction:
            if answers is not None and (kind not in self.steady or answers not in self.tallies.protocol.law(kind)):
                raise ParameterError("direction", "must fix answers that only a device of a steady kind gives", answers)
        for label, change in self.tally_change().items():
            if change:
                raise ParameterError("direction", f"must not change the expected {label}", str(change))
        if not self.target_change:
            raise ParameterError("direction", "must change the target", "0")

    def __bool__(self) -> bool:
        """Return False, because there is no estimator."""
        return False

    def __str__(self) -> str:
        """Return a sentence that states the two populations."""
        one, other = (" + ".join(f"{n} {_name(group)}" for group, n in w.items()) or "no device" for w in self.worlds())
        return f"not estimable: {one} and {other} expect the same tallies"

    @property
    def target_change(self) -> Fraction:
        """The change of the target along the direction, t·d ≠ 0."""
        return sum((self.target[kind] * n for (kind, _), n in self.direction.items()), Fraction(0))

    def tally_change(self) -> dict[str, Fraction]:
        """Return the change of each expected tally along the direction, by label; all are 0."""
        return {
            count.label: sum(
                (
                    n
                    * (
                        self.tallies.protocol.probability(kind, count.answers)
                        if answers is None
                        else Fraction(answers in count.answers)
                    )
                    for (kind, answers), n in self.direction.items()
                ),
                Fraction(0),
            )
            for count in self.tallies.counts
        }

    def worlds(self) -> tuple[dict[Group, int], dict[Group, int]]:
        """Return two populations of whole devices with equal expected tallies and different targets."""
        scale = math.lcm(*(n.denominator for n in self.direction.values()))
        whole = {group: int(n * scale) for group, n in self.direction.items()}
        common = math.gcd(*whole.values())
        return (
            {group: n // common for group, n in whole.items() if n > 0},
            {group: -n // common for group, n in whole.items() if n < 0},
        )


def _name(group: Group) -> str:
    """Return a group in words."""
    kind, answers = group
    return kind if answers is None else f"{kind} answering {','.join(answers)}"


def best_estimator(
    tallies: Tallies, target: Target, *, population: Mapping[str, int] | None = None, steady: Collection[str] = ()
) -> Estimator | NotEstimable:
    """Return the linear unbiased estimator of least variance, or the proof that none exists.

    Unbiased for every population means aᵀM = tᵀ. This is possible if and only if the target t is in the row space of
    the map M from populations to expected tallies. With S the covariance of the tallies for the assumed population,
    generalised least squares minimises aᵀSa under this condition. That is the linear system S·a + M·λ = 0, Mᵀ·a = t,
    solved over fractions. S may be singular (the outputs of a round sum to N), but the system still has a solution; of
    several equally good ones, the one that does not use the last counts is returned.

    An error that does not grow with a kind means that each of its devices contributes exactly t_k for all its answers.
    This adds one linear equation for each answer that the kind can give.

    Parameters
    ----------
    tallies : Tallies
        The counts that the estimator may use.
    target : str or mapping of kind to number
        The kind whose devices are to be counted, or the weight t_k of each kind's count.
    population : mapping of kind to int, optional
        The population for which the variance is minimised; one device of each kind by default. The estimator is
        unbiased for all other populations too.
    steady : collection of str
        Kinds whose variance coefficient must be 0 ("constant error").

    Returns
    -------
    Estimator or NotEstimable
        A `NotEstimable` is false as a truth value.

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
    # A convex quadratic has a minimum on an affine subspace, so this system is not contradictory.
    values = () if isinstance(solution, Contradiction) else solution[: len(covariance)]
    return Estimator(tallies, wanted, dict(zip(tallies.labels, values, strict=True)))


def combined_estimator(tallies: Tallies, target: Target, *statistics: Mapping[str, Number]) -> Estimator | None:
    """Return the unbiased combination of statistics, or None if there is none: how the papers solve for YES.

    Where the statistics determine the target, and there are no more of them than kinds, it is the only one.

    Parameters
    ----------
    tallies : Tallies
    target : str or mapping of kind to number
    *statistics : mapping of label to number
        Each a sum of counts with these coefficients, for example the difference of two.
    """
    protocol, wanted = tallies.protocol, resolve_target(tallies.protocol, target)
    sums = [[exact(label, statistic.get(label, 0)) for label in tallies.labels] for statistic in statistics]
    means = [tallies.per_device(kind) for kind in protocol.kinds]
    rows = [[sum(map(operator.mul, row, mean), ZERO) for row in sums] for mean in means]
    found = solve(rows, list(wanted.values()))
    if isinstance(found, Contradiction):
        return None
    columns = zip(tallies.labels, zip(*sums, strict=True), strict=True)
    return Estimator(tallies, wanted, {label: sum(map(operator.mul, found, column), ZERO) for label, column in columns})


def _row(tallies: Tallies, group: Group) -> tuple[Fraction, ...]:
    """Return the expected contribution of one device of the group to each count, (counts,)."""
    kind, answers = group
    if answers is None:
        return tallies.per_device(kind)
    return tuple(Fraction(answers in count.answers) for count in tallies.counts)

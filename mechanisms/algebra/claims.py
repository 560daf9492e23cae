"""Privacy claims of tabular protocols, and lower bounds: the growth of errors and the privacy cost of none."""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from mechanisms.algebra.estimator import Estimator
from mechanisms.algebra.protocol import Answers, Protocol, Tallies
from mechanisms.parameter import ParameterError, check_epsilon, check_probability
from mechanisms.privacy.claim import LARGEST_EPSILON, ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.hockey_stick import dominating_pair, pair_delta, pair_epsilon
from mechanisms.privacy.view import LinkedReports, Report, View

Masses: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class WorstPairDelta:
    """The function δ(ε) that is the greatest over several pairs of distributions and both directions.

    Parameters
    ----------
    pairs : tuple of (P, Q)
        Two distributions over the same outcomes each.
    """

    pairs: tuple[tuple[Masses, Masses], ...]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Sequence[Fraction], Sequence[Fraction]]]) -> "WorstPairDelta":
        """Return the function for pairs of exact masses, converted to floats; equal masses stay equal."""
        return cls(tuple((tuple(map(float, p)), tuple(map(float, q))) for p, q in pairs))

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        return max((pair_delta(p, q, epsilon=epsilon) for p, q in self.pairs), default=0.0)

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0; infinite if some outcome is possible under only one distribution of a pair."""
        return max((pair_epsilon(p, q) for p, q in self.pairs), default=0.0)


def protocol_claim(protocol: Protocol, view: View) -> PrivacyClaim:
    """Return the exact claim about one report, or about all of a device's reports linked, over all pairs of kinds.

    Parameters
    ----------
    protocol : Protocol
    view : View
        `Report` or `LinkedReports`; for other views the claim is unknown. For published counts or estimates use
        `released_claim`.

    Returns
    -------
    PrivacyClaim
        Exact for one query. Over T queries, a device's kind may differ from query to query: ε is T times that of one
        query, and δ is a bound.
    """
    if type(view) is Report:
        if view.round > protocol.rounds:
            return PrivacyClaim.unknown(f"{protocol.name} has {protocol.rounds} rounds only.")
        rows = [tuple(protocol.round_law(kind, view.round).values()) for kind in protocol.kinds]
    elif type(view) is LinkedReports:
        answers = protocol.answers
        rows = [tuple(protocol.probability(kind, (a,)) for a in answers) for kind in protocol.kinds]
    else:
        return PrivacyClaim.unknown(f"The claim of {type(view).__name__} does not follow from one device's answers.")
    curve = WorstPairDelta.from_pairs(itertools.combinations(rows, 2))
    basis = f"Hockey-stick divergence of every pair of kinds in the table of {protocol.name}"
    epsilon = curve.epsilon
    if view.queries == 1:
        return PrivacyClaim.exact(epsilon, curve, f"{basis}.")
    if epsilon == 0.0:
        return PrivacyClaim.exact(
            0.0,
            ConstantDelta(0.0),
            f"{basis}: the distributions of all kinds are equal, so any number of queries reveals nothing.",
        )
    # The worst pair, or its direction, may differ from query to query.
    arrays = [(np.array(p), np.array(q)) for p, q in curve.pairs]
    p, q = dominating_pair([*arrays, *((q, p) for p, q in arrays)])
    return PrivacyClaim.bound(
        view.queries * epsilon if math.isfinite(epsilon) else math.inf,
        ComposedDelta.from_pair(p, q, queries=view.queries),
        f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair.",
    )


# Sums over devices, and their probabilities, both as integers over a common denominator.
Vector: TypeAlias = tuple[int, ...]
Outcomes: TypeAlias = dict[Vector, int]
LARGEST_OUTCOMES = 100_000


def released_claim(released: Tallies | Sequence[Estimator], population: Mapping[str, int]) -> PrivacyClaim:
    """Return the exact claim about published counts, or published estimates, of one population, by enumeration.

    Neighbouring populations: one device, of a kind that is present, changes to any other kind. The kinds of all other
    devices are known. What is published is a sum over devices, so its distribution is the convolution of theirs.

    Parameters
    ----------
    released : Tallies or sequence of Estimator
        The whole vector of counts, or the estimates together (which reveal only these combinations of the counts).
    population : mapping of kind to int
        Number of devices of each kind, including the one that changes. The numbers must be small, since every outcome
        is enumerated.

    Returns
    -------
    PrivacyClaim
        Exact for this population, not for others.

    Raises
    ------
    ParameterError
        If the population is empty, or more than 100,000 outcomes are possible.
    """
    protocol, each, whole = _laws_of_one(released)
    devices = protocol.check_population(population)
    if not any(devices.values()):
        raise ParameterError("population", "must hold at least one device", dict(population))
    scale = whole ** sum(devices.values())
    pairs = []
    for kind in (kind for kind, n in devices.items() if n):
        others = _convolve(each, {**devices, kind: devices[kind] - 1})
        worlds = {other: _add(others, law) for other, law in each.items()}
        for other in (other for other in protocol.kinds if other != kind):
            first, second = worlds[kind], worlds[other]
            outcomes = dict.fromkeys((*first, *second))
            pairs.append(tuple([Fraction(world.get(o, 0), scale) for o in outcomes] for world in (first, second)))
    curve = WorstPairDelta.from_pairs((p, q) for p, q in pairs)
    crowd = ", ".join(f"{n} {kind}" for kind, n in devices.items() if n)
    return PrivacyClaim.exact(
        curve.epsilon,
        curve,
        f"Enumeration of every published outcome, for {crowd}, where one device may be of any other kind.",
    )


def _laws_of_one(released: Tallies | Sequence[Estimator]) -> tuple[Protocol, dict[str, Outcomes], int]:
    """Return the protocol, the distribution of one device's contribution by kind, and the common denominator."""
    protocol, add = _released(released)
    vectors = {answers: add(answers) for answers in protocol.answers}
    unit = math.lcm(*(value.denominator for vector in vectors.values() for value in vector))
    whole = math.lcm(*(p.denominator for law in protocol.laws.values() for p in law.values()))
    each: dict[str, Outcomes] = {}
    for kind, law in protocol.laws.items():
        outcomes: Outcomes = {}
        for answers, probability in law.items():
            vector = tuple(int(value * unit) for value in vectors[answers])
            outcomes[vector] = outcomes.get(vector, 0) + int(probability * whole)
        each[kind] = outcomes
    return protocol, each, whole


def _released(released: Tallies | Sequence[Estimator]) -> tuple[Protocol, Callable[[Answers], tuple[Fraction, ...]]]:
    """Return the protocol, and a function from a device's answers to its contribution to what is published."""
    if isinstance(released, Tallies):
        counts = released.counts
        return released.protocol, lambda answers: tuple(Fraction(answers in count.answers) for count in counts)
    estimators = tuple(released)
    if not estimators or any(estimator.protocol is not estimators[0].protocol for estimator in estimators):
        raise ParameterError("released", "must be tallies, or estimators of one protocol", released)
    return estimators[0].protocol, lambda answers: tuple(estimator.contribution(answers) for estimator in estimators)


def _convolve(each: Mapping[str, Outcomes], devices: Mapping[str, int]) -> Outcomes:
    """Return the distribution of the sum of all these devices' contributions."""
    nothing = (0,) * len(next(iter(next(iter(each.values())))))
    total: Outcomes = {nothing: 1}
    for kind, n in devices.items():
        for _ in range(n):
            total = _add(total, each[kind])
    return total


def _add(one: Outcomes, other: Outcomes) -> Outcomes:
    """Return the distribution of the sum of two independent vectors."""
    total: Outcomes = {}
    for a, p in one.items():
        for b, q in other.items():
            vector = tuple(map(operator.add, a, b))
            total[vector] = total.get(vector, 0) + p * q
        if len(total) > LARGEST_OUTCOMES:
            rule = f"must leave at most {LARGEST_OUTCOMES} outcomes to list"
            raise ParameterError("population", rule, f"over {LARGEST_OUTCOMES}")
    return total


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

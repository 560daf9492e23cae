"""Privacy claims of tabular protocols: of one device's answers, and of what is published of a small population."""

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.report_claims import WorstPairDelta
from mechanisms.privacy.view import LinkedReports, Report, View
from mechanisms.protocols.estimator import Estimator
from mechanisms.protocols.protocol import Answers, Protocol, Tallies


def protocol_claim(protocol: Protocol, view: View) -> Claim:
    """Return the exact claim about one report, or about all of a device's reports linked, over all pairs of kinds.

    Parameters
    ----------
    protocol : Protocol
    view : View
        `Report` or `LinkedReports`; for other views the claim is unknown. For published counts or estimates use
        `released_claim`.

    Returns
    -------
    Claim
        Exact for one query. Over T queries, a device's kind may differ from query to query: ε is T times the ε of one
        query, and δ is a bound.
    """
    if type(view) is Report:
        if view.round > protocol.rounds:
            return Claim.unknown(f"{protocol.name} has {protocol.rounds} rounds only.")
        rows = [tuple(protocol.round_law(kind, view.round).values()) for kind in protocol.kinds]
    elif type(view) is LinkedReports:
        answers = protocol.answers
        rows = [tuple(protocol.probability(kind, (a,)) for a in answers) for kind in protocol.kinds]
    else:
        return Claim.unknown(f"The claim of {type(view).__name__} does not follow from one device's answers.")
    curve = WorstPairDelta.of(*itertools.combinations(rows, 2))
    basis = f"Hockey-stick divergence of every pair of kinds in the table of {protocol.name}"
    if view.queries > 1 and curve.epsilon == 0.0:
        basis = f"{basis}: the distributions of all kinds are equal, so any number of queries reveals nothing."
        return Claim.exact(0.0, ConstantDelta(0.0), basis)
    return curve.claim(view.queries, basis)


# Sums over devices, and their probabilities, both as integers over a common denominator.
Vector: TypeAlias = tuple[int, ...]
Outcomes: TypeAlias = dict[Vector, int]
LARGEST_OUTCOMES = 100_000


def released_claim(released: Tallies | Sequence[Estimator], population: Mapping[str, int]) -> Claim:
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
    Claim
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
            p, q = ([Fraction(world.get(o, 0), scale) for o in outcomes] for world in (first, second))
            pairs.append((p, q))
    curve = WorstPairDelta.of(*pairs)
    crowd = ", ".join(f"{n} {kind}" for kind, n in devices.items() if n)
    return Claim.exact(
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

"""Tables, exact numbers, tallies and their moments: the basis of the protocol algebra."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.protocols import Estimator, Face, ParameterError, Protocol, Tallies, sampling_privacy, warner
from mechanisms.protocols.estimator import Contradiction, solve
from mechanisms.protocols.protocol import exact


def test_float_is_read_as_its_decimal():
    assert exact("p", 0.45) == Fraction(9, 20)
    assert exact("p", np.float64(0.1)) == Fraction(1, 10)
    assert exact("p", "1/3") == exact("p", Fraction(1, 3)) == Fraction(1, 3)
    assert exact("p", 1) == 1
    for wrong in (float("nan"), float("inf"), "a third", "1/0", None, True, 1j):
        with pytest.raises(ParameterError, match=r"^p must be"):
            exact("p", wrong)


small = st.integers(-3, 3).map(Fraction)


@given(
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(small, min_size=n, max_size=n), min_size=1, max_size=4)),
    data=st.data(),
)
def test_equations_are_solved_or_proved_inconsistent(rows, data):
    right = data.draw(st.lists(small, min_size=len(rows), max_size=len(rows)))
    found = solve(rows, right)
    if isinstance(found, Contradiction):
        weights = found.weights
        assert all(sum(w * row[i] for w, row in zip(weights, rows, strict=True)) == 0 for i in range(len(rows[0])))
        assert sum(w * b for w, b in zip(weights, right, strict=True)) == 1
    else:
        assert [sum(a * x for a, x in zip(row, found, strict=True)) for row in rows] == right
    # Never both: a reachable right-hand side has a solution.
    reached = [sum((a * k for k, a in enumerate(row)), Fraction(0)) for row in rows]
    assert not isinstance(solve(rows, reached), Contradiction)


def test_faces_and_distributions_give_one_table():
    by_face = warner(truthful=0.75)
    by_law = Protocol.from_laws("the same", {"no": {"0": 0.75, "1": 0.25}, "yes": {"1": "3/4", "0": "1/4"}})
    assert by_face.laws == by_law.laws
    assert by_face.kinds == ("no", "yes")
    assert by_face.rounds == 1
    assert by_face.round_law("yes", 1) == {"0": Fraction(1, 4), "1": Fraction(3, 4)}
    assert repr(by_face) == 'Protocol("Warner\'s randomized response", 2 kinds, 1 round of 2 outputs)'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Protocol.from_laws("p", {}, outputs=[("0",)]), "^laws must hold at least one kind"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 0.5}}), r"^laws\['no'\] must sum to exactly 1"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 0.1 + 0.2, "1": 0.7}}), "write a third as '1/3'"),
        (lambda: Protocol.from_laws("p", {"no": {"0": 1.5, "1": -0.5}}), r"^laws\['no'\] must be a probability"),
        (
            lambda: Protocol.from_laws(
                "p",
                {
                    "no": {
                        "0": 1,
                    },
                    "yes": {("0", "1"): 1},
                },
            ),
            "^laws must answer the same num",
        ),
        (lambda: Protocol.from_laws("p", {"no": {"2": 1}}, outputs=[("0", "1")]), r"^laws\['no'\] must answer with"),
        (
            lambda: Protocol.from_faces("p", [Face(1, {"no": "0"}), Face(0, {"yes": "0"})]),
            "^faces must each have",
        ),
        (lambda: warner(truthful=1.5), r"^truthful must be a probability, 0 to 1, got Fraction\(3, 2\)"),
        (lambda: warner(truthful=float("nan")), "^truthful must be finite, got nan"),
        (lambda: sampling_privacy(cells=0, sampling=0.4), "^cells must be at least 1, got 0"),
        (lambda: sampling_privacy(cells=2, sampling=0), "^sampling must be a probability above 0"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank_zero=0.7), "^blank_zero must be at most 1 − sampling"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank=[0.5, 0.2]), "^blank must, with blank_zero, sum to"),
        (lambda: sampling_privacy(cells=2, sampling=0.4, blank=[0.5]), "^blank must be a number, or 2 of them"),
        (lambda: warner(truthful=1).round_law("no", 2), "^round must be in 1..1, got 2"),
        (lambda: warner(truthful=1).law("maybe"), r"^kind must be one of \['no', 'yes'\], got 'maybe'"),
        (lambda: Tallies.by_round(warner(truthful=1)).expected({"no": -1}), r"^population\['no'\] must be at least 0"),
        (lambda: Tallies.by_round(warner(truthful=1)).expected({"maybe": 1}), "^population must be one of"),
        (lambda: Tallies.by_round(warner(truthful=1)).only("C2[0]"), "^labels must be among"),
        (lambda: Tallies.by_round(warner(truthful=1)).only(), "^counts must be at least one"),
        (
            lambda: Estimator.from_coefficients(Tallies.by_round(warner(truthful=0.75)), "yes", {"C1[1]": 1}),
            "^coefficients must be unbiased: a device of kind 'no' must add 0 in expectation, got '1/4'",
        ),
        (
            lambda: Estimator.from_coefficients(Tallies.by_round(warner(truthful=0.75)), "yes", {"C9[1]": 1}),
            "^coefficients must be of counts among",
        ),
    ],
)
def test_invalid_protocols_name_field_rule_and_value(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize("linked", [False, True])
def test_expectation_and_covariance_equal_enumeration(linked):
    """Three devices, every combination of their possible answers, weighted by probability."""
    protocol = sampling_privacy(cells=2, sampling=0.45, blank_zero=0.05, blank=[0.2, 0.3], refresh=0.25)
    tallies = Tallies.linked(protocol) if linked else Tallies.by_round(protocol, silent=["2"], asked=True)
    population = {"outside": 1, "cell 1": 2}
    distributions = [protocol.law(kind).items() for kind, n in population.items() for _ in range(n)]
    places = range(len(tallies.counts))
    first = dict.fromkeys(places, Fraction(0))
    second = dict.fromkeys(itertools.product(places, places), Fraction(0))
    for outcome in itertools.product(*distributions):
        mass = math.prod(p for _, p in outcome)
        counts = [sum(answers in count.answers for answers, _ in outcome) for count in tallies.counts]
        for i in places:
            first[i] += mass * counts[i]
            for j in places:
                second[i, j] += mass * counts[i] * counts[j]
    assert list(tallies.expected(population).values()) == list(first.values())
    covariance = tallies.covariance(population)
    assert all(covariance[i][j] == mean - first[i] * first[j] for (i, j), mean in second.items())


def test_tally_labels():
    protocol = sampling_privacy(cells=1, sampling=0.5)
    assert Tallies.by_round(protocol).labels == ("C1[0]", "C1[1]", "C2[0]", "C2[1]")
    assert Tallies.by_round(protocol, silent=["0"], asked=True).labels == ("C1[1]", "C2[1]", "N")
    assert Tallies.linked(protocol).labels == ("C[0,0]", "C[1,1]", "C[0,1]")
    assert Tallies.linked(protocol).only("N", "C[0,1]").expected({"outside": 3, "cell 1": 4}) == {"N": 7, "C[0,1]": 2}
    assert repr(Tallies.by_round(protocol).only("N")) == "Tallies('Sampling Privacy', N)"

"""Releases of a small population, by enumeration, against the hand-written curves."""

import math

import pytest

from mechanisms.privacy import LinkedReports, released_differences_delta
from mechanisms.protocols import (
    ParameterError,
    Tallies,
    best_estimator,
    binary_sampling_privacy,
    protocol_claim,
    randomized_response,
    released_claim,
    sampling_privacy,
)


def difference(**given):
    """The published estimate of cell 1, which is its difference over π_s."""
    protocol = sampling_privacy(**given)
    others = [kind for kind in protocol.kinds if kind != "cell 1"]
    return best_estimator(Tallies.by_round(protocol), "cell 1", steady=others)


@pytest.mark.parametrize("crowd", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_released_differences_equal_item_3(crowd, epsilon):
    estimator = difference(cells=1, sampling=0.45)
    # One of the crowd leaves, or an outside device joins a crowd that is one smaller.
    leaves = released_claim([estimator], {"cell 1": crowd})
    joins = released_claim([estimator], {"cell 1": crowd - 1, "outside": 3})
    known = released_differences_delta(crowd=crowd, sampling=0.45, epsilon=epsilon)
    assert leaves.delta(epsilon) == pytest.approx(known, abs=1e-12)
    if crowd > 1:
        smaller = released_differences_delta(crowd=crowd - 1, sampling=0.45, epsilon=epsilon)
        assert joins.delta(epsilon) == pytest.approx(max(known, smaller), abs=1e-12)
    assert leaves.kind == "infinite"
    assert leaves.delta(math.inf) == pytest.approx(0.45**crowd, abs=1e-15)


def test_published_numbers_of_item_3():
    """n = 2, β = .45, ε = .1: .2157; whole vectors, n = 5, ε = .5: .145 with π_0 = .1, .45 with π_0 = 0, not .064."""
    pair = released_claim([difference(cells=1, sampling=0.45)], {"cell 1": 2})
    assert round(pair.delta(0.1), 4) == 0.2157
    five = {"cell 1": 5}
    assert round(released_claim([difference(cells=1, sampling=0.45)], five).delta(0.5), 3) == 0.064
    for zero, known in ((0.1, 0.145), (0, 0.45)):
        tallies = Tallies.by_round(sampling_privacy(cells=1, sampling=0.45, blank_zero=zero))
        assert released_claim(tallies, five).delta(0.5) == pytest.approx(known, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_counts_of_a_single_device_equal_its_linked_reports(epsilon):
    """Others hide a device unless its answer is impossible for them: published pairs then hide nothing."""
    for protocol, hidden in (
        (binary_sampling_privacy(sampling=0.3), False),
        (randomized_response(first_coin=0.5, second_coin=0.5), True),
    ):
        linked = protocol_claim(protocol, LinkedReports()).delta(epsilon)
        alone = released_claim(Tallies.linked(protocol), {"yes": 1}).delta(epsilon)
        among = released_claim(Tallies.linked(protocol), {"yes": 1, "no": 4}).delta(epsilon)
        assert alone == pytest.approx(linked, abs=1e-12)
        assert (among < linked - 1e-3 or linked == 0) if hidden else among == pytest.approx(linked, abs=1e-12)


def test_invalid_released_claims_are_refused():
    tallies = Tallies.by_round(randomized_response(first_coin=0.5, second_coin=0.5))
    with pytest.raises(ParameterError, match=r"^population must hold at least one device"):
        released_claim(tallies, {})
    with pytest.raises(ParameterError, match=r"^released must be tallies, or estimators of one protocol"):
        released_claim([], {"yes": 1})
    many = Tallies.linked(sampling_privacy(cells=3, sampling=0.4, refresh=0.5))
    with pytest.raises(ParameterError, match=r"^population must leave at most 100000 outcomes to list"):
        released_claim(many, {"outside": 20})

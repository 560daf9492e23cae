"""Advice: errors and successes against formulas and enumeration, parties that collude, and how much is asked for."""

import math

import pytest

from mechanisms.parameter import ParameterError
from mechanisms.planning import CityQuestion, advise
from mechanisms.planning.advice import TRUSTS

TOWN = {"people": 4000, "zones": 20, "answers_per_day": 3, "delta": 0.0}


def told_apart(steps, scale):
    """Best success of telling counts from counts one greater, of so many counts with discrete Laplace noise.

    Each count has one of two likelihood ratios, e^(±1/scale), so the number of counts with the greater one decides.
    """
    more = 1.0 / (1.0 + math.exp(-1.0 / scale))
    masses = [math.comb(steps, ups) * more**ups * (1.0 - more) ** (steps - ups) for ups in range(steps + 1)]
    return (1.0 + sum(max(0.0, masses[ups] - masses[steps - ups]) for ups in range(steps + 1))) / 2.0


@pytest.mark.parametrize(("share", "lost"), [(1.0, 0.0), (0.5, 0.1)])
def test_error_and_success_of_a_trusted_server(share, lost):
    [row] = advise(CityQuestion(**TOWN, parties=1, colluding=0, participation=share, loss=lost), ["server"])
    ratio = math.exp(-row.plan.parameters.get("epsilon", row.plan.release["epsilon"]))
    # ε of six counts: two change at each of three answers.
    assert -math.log(ratio) == pytest.approx(1 / 6, rel=1e-4)
    arriving = share * (1.0 - lost)
    noise = 2.0 * ratio / (1.0 - ratio) ** 2 / arriving**2
    for count, cell in zip((200, 20, 10), row.cells.values(), strict=True):
        error = math.sqrt(noise + count * (1.0 - arriving) / arriving)
        assert cell == {
            "count": count,
            "error": pytest.approx(error),
            "percent": pytest.approx(100 * error / count),
            "better_than_zero": error < count,
        }
    server, readers = row.learns
    assert (server.everything, server.epsilon) == (True, math.inf)
    assert readers.success == pytest.approx(told_apart(6, 1.0 / -math.log(ratio)), rel=1e-9)
    assert readers.epsilon == pytest.approx(1.0, rel=1e-4)
    assert (row.holds, readers.exact) == (True, True)
    # Hardly ever fewer answers arrive than the claims rely on.
    few = 4000 * arriving - 5 * math.sqrt(4000 * arriving * (1 - arriving))
    assert row.least_answers == pytest.approx(few, abs=2)


def test_coalitions_of_servers_that_add_noise():
    two, three = (advise(CityQuestion(**TOWN, parties=parties, colluding=2), ["noise"])[0] for parties in (2, 3))
    assert (two.holds, two.parties, three.holds) == (False, 3, True)
    assert two.plan == three.plan  # the row of a broken trust is for a third operator
    one, both, readers = three.learns
    assert 0.5 < readers.success < one.success < both.success < 1.0
    assert both.success == pytest.approx(told_apart(6, three.plan.aggregation["noise"]["scale"]), rel=1e-6)
    assert both.epsilon == pytest.approx(1.0, rel=1e-3)
    [alone] = advise(CityQuestion(**TOWN), ["noise"])
    assert [(each.party, each.everything) for each in alone.learns][1] == ("2 who collude", True)


@pytest.mark.parametrize(("colluding", "least"), [(0, [1, 2, 2, 2, 2, 1]), (1, [0, 2, 2, 2, 2, 1])])
def test_least_parties(colluding, least):
    assert [trust.parties(colluding) for trust in TRUSTS] == least
    assert [trust.parties(3) for trust in TRUSTS] == [0, 4, 4, 4, 0, 1]


def test_a_certain_crowd_is_a_row_of_its_own_only_where_it_errs_less():
    question = CityQuestion(people=400, zones=2, answers_per_day=1, occupancy=(200, 190, 180), epsilon=2.0)
    rows = advise(question, ["shuffler"])
    alone = {row.trust: row for row in rows if row.crowd is None}
    within = [row for row in rows if row.crowd is not None]
    assert len(within) == 1
    for row in within:
        assert row.crowd == row.plan.crowd == 180
        assert row.cells["mean"]["error"] < alone[row.trust].cells["mean"]["error"]
        assert row.learns[0].claim.crowd == 180
    assert all(row.plan.crowd is None for row in alone.values())


def test_what_is_asked():
    assert [CityQuestion(people=2_000_000, zones=5, per=per).queries for per in ("day", "week", "trip")] == [24, 168, 1]
    assert CityQuestion(people=2_000_000, zones=5, per="trip", trip_min=130).queries == 3
    assert CityQuestion(people=2_000_000, zones=5).delta == 1e-8
    for wrong, words in (({"colluding": 3}, "colluding"), ({"loss": 1.0}, "loss"), ({"people": 0}, "people")):
        with pytest.raises(ParameterError, match=words):
            CityQuestion(**{"people": 10, "zones": 2, **wrong})


def test_mechanisms_of_two_rounds_are_left_out_where_answers_are_lost():
    [row] = advise(CityQuestion(**TOWN, loss=0.1), ["rounds"])
    assert row.plan is None

"""The campaign queries the configured devices at the configured times."""

import numpy as np
import pytest
from campaigns_by_hand import ask_on
from roads_by_hand import ENGINES, chain

from mechanisms.local import AnonymizedDeniable, LongitudinalUnary, NoPrivacy, RandomizedResponse, SamplingPrivacy
from simulator.aggregation.servers import Trusted
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Schedule
from simulator.traffic.engine import State

EVERYONE = {"baseline": NoPrivacy(cells=3)}


def cells_of(places):
    """Three cells of 100 m along the chain: link 0, link 1, link 2."""
    return (places.link + 1).astype(np.int32)


def ask(engine, *, mechanisms=None, schedule, until, every_s=10, first=None, more=(), **answering):
    """Ten vehicles depart, at 0, 10, 20 … 90, and drive three links of 10 ticks each."""
    roads = chain(first or {"length_m": 100.0}, {"length_m": 100.0}, {"length_m": 100.0})
    trips = [(every_s * i, [0, 1, 2, 3]) for i in range(10)]
    campaign = Campaign("c", schedule, cells_of, mechanisms or EVERYONE, Trusted())
    return ask_on(engine, roads, trips, (campaign, *more), until=until, **answering)


both = pytest.mark.parametrize("engine", ENGINES)


@both
def test_devices_are_selected_in_round_one_and_truth_is_of_round_two(engine):
    # Round one at 25. Vehicles 0 (link 2, entered 20), 1 (link 1), 2 (link 0) are on the road. Round two at 35:
    # vehicle 0 arrived at 30 and answers from its last link; 1 is on link 2, 2 on link 1; 3 left at 30, not asked.
    (query,) = ask(engine, schedule=Schedule(25, 0, 1, 10, 5), until=100)
    assert query.time_s == 35
    assert query.asked_s == 25
    assert query.truth.tolist() == [0, 0, 1, 2]
    assert query.answers[0].estimate.count.tolist() == [0, 1, 2]
    assert query.answers[0].rounds[0].asked == 3
    assert (query.totals.departed, query.totals.on_road, query.totals.arrived) == (3, 3, 0)


@both
def test_movement_at_the_query_time_happens_before_the_query(engine):
    # At 30 exactly: vehicle 0 arrives, vehicle 3 departs and enters.
    (query,) = ask(engine, schedule=Schedule(30, 0, 1, 0.5, 0.5), until=100)
    assert query.totals.arrived == 1
    assert query.truth.tolist() == [0, 1, 1, 1]


@both
def test_parked_vehicles_answer_only_if_configured(engine):
    silent = ask(engine, schedule=Schedule(65, 0, 1, 1, 1), until=100)[0]
    parked = ask(engine, schedule=Schedule(65, 0, 1, 1, 1), until=100, also=[State.ARRIVED])[0]
    assert silent.answers[0].rounds[0].asked == 3
    assert parked.answers[0].rounds[0].asked == 7
    assert parked.truth.tolist() == [0, 1, 1, 5]


@both
def test_waiting_vehicles_are_asked_and_counted_only_if_configured(engine):
    # All depart at 0, and the first link has room for one: the others wait. It leaves at 10, when the next one enters.
    narrow = {"length_m": 7.0, "speed_mps": 0.7}
    asked = {"schedule": Schedule(5, 0, 1, 10, 1), "until": 100, "every_s": 0, "first": narrow}
    silent, waiting = ask(engine, **asked)[0], ask(engine, **asked, also=[State.WAITING])[0]
    assert (silent.totals.departed, silent.totals.waiting, silent.totals.on_road) == (10, 9, 1)
    assert (silent.answers[0].rounds[0].asked, waiting.answers[0].rounds[0].asked) == (1, 10)
    assert silent.truth.sum() == 1
    assert silent.occupancy.eligible.tolist() == silent.truth.tolist()
    assert silent.occupancy.came > 0
    assert waiting.occupancy.vehicles.tolist() == waiting.truth.tolist()


@both
def test_non_participants_are_never_queried(engine):
    takes_part = [True, False] * 5
    (query,) = ask(engine, schedule=Schedule(25, 0, 1, 10, 5), until=100, takes_part=takes_part, outside=7)
    assert query.answers[0].rounds[0].asked == 2 + 7
    assert query.truth.tolist() == [7, 0, 1, 1]


@both
def test_queries_follow_one_another(engine):
    closed = ask(engine, schedule=Schedule(20, 15, 4, 5, 5), until=200)
    assert [query.number for query in closed] == [1, 2, 3, 4]
    assert [query.time_s for query in closed] == [25, 40, 55, 70]


def test_query_closes_exactly_at_its_deadline():
    schedule = Schedule(20, 0, 1, 5, 4)
    assert not ask(ENGINES[0], schedule=schedule, until=29)
    assert len(ask(ENGINES[0], schedule=schedule, until=29.5)) == 1


def test_results_do_not_depend_on_engine_or_other_mechanisms():
    sampling = SamplingPrivacy(cells=3, sampling=0.4)
    schedule = Schedule(20, 15, 4, 5, 5)
    alone = ask(ENGINES[0], mechanisms={"s": sampling}, schedule=schedule, until=200, outside=9)
    company = ask(
        ENGINES[1],
        mechanisms={"r": RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2), "s": sampling},
        schedule=schedule,
        until=200,
        outside=9,
    )
    for one, other in zip(alone, company, strict=True):
        np.testing.assert_array_equal(one.answers[0].estimate.count, other.answers[1].estimate.count)
    reseeded = ask(ENGINES[0], mechanisms={"s": sampling}, schedule=schedule, until=200, outside=9, seed=2)
    assert any(
        not np.array_equal(a.answers[0].estimate.count, b.answers[0].estimate.count)
        for a, b in zip(alone, reseeded, strict=True)
    )


def test_devices_that_left_do_not_return_at_a_later_moment():
    chances = {"yes_second": 0.3, "yes_third": 0.3, "no_second": 0.3, "no_third": 0.4}
    deniable = AnonymizedDeniable(cells=3, shift=0.2, onward=0.4, **chances)
    for seed in range(4):
        for query in ask(
            ENGINES[0], mechanisms={"d": deniable}, schedule=Schedule(20, 15, 5, 5, 5), until=200, churn=0.5, seed=seed
        ):
            first, second, third = (statistics.answered for statistics in query.answers[0].rounds)
            assert first >= second >= third


def test_departed_devices_answer_only_round_one():
    closed = ask(
        ENGINES[0],
        mechanisms={"s": SamplingPrivacy(cells=3, sampling=0.4), "n": NoPrivacy(cells=3)},
        schedule=Schedule(25, 0, 1, 10, 5),
        until=100,
        outside=1000,
        churn=0.5,
    )
    (sampling, baseline) = closed[0].answers
    assert sampling.rounds[0].answered == 1003
    assert sampling.rounds[1].answered == baseline.rounds[0].answered
    assert 400 < sampling.rounds[1].answered < 600
    assert sampling.rounds[1].asked == 1003
    assert closed[0].truth.tolist() == [1000, 0, 1, 2]


@both
def test_campaigns_about_other_cells_are_answered_side_by_side(engine):
    def one_cell(places):
        return np.ones(len(places), dtype=np.int32)

    schedule = Schedule(25, 0, 1, 10, 5)
    whole = Campaign("whole", schedule, one_cell, {"baseline": NoPrivacy(cells=1)}, Trusted())
    by_link, of_all = ask(engine, schedule=schedule, until=100, more=[whole])
    assert (by_link.campaign, by_link.truth.tolist()) == ("c", [0, 0, 1, 2])
    assert (of_all.campaign, of_all.truth.tolist()) == ("whole", [0, 3])
    assert of_all.answers[0].estimate.count.tolist() == [3]


def test_campaigns_of_other_cells_ask_a_mechanism_of_the_same_name():
    """Each campaign asks about its own cells: vehicles keep bits for each, and are counted in its own."""

    def in_one_cell(places):
        return (places.link >= 0).astype(np.int32)

    schedule = Schedule(start_s=15.0, every_s=10.0, queries=2, round_gap_s=0.0, deadline_s=1.0)
    fine, coarse = (
        {"bits": LongitudinalUnary(cells=cells, epsilon_permanent=4.0, epsilon_first=2.0)} for cells in (3, 1)
    )
    other = Campaign("d", schedule, in_one_cell, coarse, Trusted())
    closed = ask(ENGINES[0], mechanisms=fine, schedule=schedule, until=40, more=[other])
    queries = {(query.campaign, query.number): query for query in closed}
    assert {key: len(query.truth) for key, query in queries.items()} == {
        ("c", 1): 4,
        ("c", 2): 4,
        ("d", 1): 2,
        ("d", 2): 2,
    }
    for number in (1, 2):
        assert queries["d", number].truth[1] == queries["c", number].truth[1:].sum() > 0
        assert [len(queries[name, number].answers[0].estimate) for name in "cd"] == [3, 1]

"""Traces over several queries: recovered from counts, joined under pseudonyms, and named by known points."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binomtest
from synthetic_campaigns import FAMILY, attack, campaign, evaluate_attacks, stray

from mechanisms.inference.traces import recover_traces, same_bits_ratio, trace_scores
from mechanisms.local import KRandomizedResponse, LongitudinalUnary, NoPrivacy, ParameterError
from simulator.aggregation.servers import PerRound, Trusted

CELLS = 6
EXACT = NoPrivacy(cells=CELLS)
PSEUDONYMS = Trusted(handles="query")


def rows_of(record, kind, coalition, **keys):
    """Findings of an attack by their metric."""
    rows, notes = evaluate_attacks(record, attack(kind, coalition, **keys))
    return {row.metric: row for row in rows}, notes


@pytest.mark.parametrize(("vehicles", "steps", "bound"), [(2, 3, 0.8643), (2, 4, 0.818844), (3, 3, 0.799076)])
def test_traces_from_exact_counts_lie_between_the_prior_and_the_optimum_by_enumeration(vehicles, steps, bound):
    """V = 3, each stays with .8, start known: the last cell is right with `bound` by the best guess, without .8."""
    chain = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    paths = [(0, *rest) for rest in product(range(3), repeat=steps - 1)]
    chance = {path: np.prod([chain[step] for step in pairwise(path)]) for path in paths}
    starts = sorted({tuple(sorted(start)) for start in product(range(3), repeat=vehicles)})
    weights = {
        start: sum(tuple(sorted(one)) == start for one in product(range(3), repeat=vehicles)) for start in starts
    }
    right = 0.0
    for start, others in product(starts, product(paths, repeat=vehicles)):
        true = (np.array(others) + np.array(start)[:, np.newaxis]) % 3
        counts = [np.bincount(step, minlength=3) for step in true.T]
        found = trace_scores(true, recover_traces(counts, [-np.log(chain)] * (steps - 1)))["same_start_last_step"]
        right += weights[start] / 3**vehicles * found * np.prod([chance[path] for path in others])
    assert 0.66 * (steps == 3) < right < bound + 1e-6


def test_each_score_by_hand():
    true, traces = np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1, 1], [2, 2, 1]])
    scores = trace_scores(true, traces)
    assert scores["published_matching"] == pytest.approx((2 / 3 + 1 / 3) / 2)  # the first takes the second's trace
    assert scores["optimal_matching"] == pytest.approx((1 / 3 + 1) / 2)
    assert scores["same_start_last_step"] == 1.0
    with pytest.raises(ParameterError, match="same number of vehicles in each step"):
        recover_traces([[1, 1], [1, 0]], [np.eye(2)])


def test_ratio_of_kept_bits_equals_enumeration():
    first, second, kept, flip = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 0.0]]), 0.3, 0.1
    shown = {(bit, one): 1 - flip if bit == one else flip for bit in (0, 1) for one in (0, 1)}
    chance = {0: 1 - kept, 1: kept}
    alone = {one: sum(chance[bit] * shown[bit, one] for bit in chance) for one in (0, 1)}

    def ratio(one, other):
        return np.log(
            sum(chance[bit] * shown[bit, one] * shown[bit, other] for bit in chance) / alone[one] / alone[other]
        )

    expected = [[sum(ratio(x, y) for x, y in zip(first[0], row, strict=True)) for row in second]]
    assert same_bits_ratio(first, second, kept=kept, flip=flip) == pytest.approx(np.array(expected))


def test_counts_tell_where_vehicles_end_if_they_say_where_vehicles_are():
    rows, _ = rows_of(campaign(Trusted(), EXACT, vehicles=300, queries=3), "trace_counts", [])
    assert rows[None].success == 1.0
    assert rows["same_start_last_step"].value == rows["published_matching_nobody_moves"].value == 1.0
    assert rows["published_matching_random_traces"].value < 0.9
    noise = campaign(
        Trusted(), KRandomizedResponse(cells=CELLS, epsilon=1e-4), vehicles=300, queries=3, move=stray(0.5)
    )
    rows, _ = rows_of(noise, "trace_counts", [])
    assert binomtest(round(300 * rows[None].success), 300, rows[None].prior, "greater").pvalue > FAMILY
    rows, notes = rows_of(campaign(Trusted(), EXACT, vehicles=3000, queries=2), "trace_counts", [])
    assert not rows
    assert "traces are recovered of at most 2,000 vehicles" in notes[0]


def test_pseudonyms_are_joined_by_exact_places_as_well_as_vehicles_in_one_cell_allow():
    """Of vehicles that stay, one is joined rightly in each occupied cell on average, with variance one."""
    record = campaign(PSEUDONYMS, EXACT, vehicles=200, queries=21)
    row = rows_of(record, "link_pseudonyms", ["server:1"])[0][None]
    occupied = np.count_nonzero(record.queries[0].occupancy)
    assert row.trials == 4000
    assert row.prior == pytest.approx(1 / 200)
    assert abs(row.success * row.trials - 20 * occupied) < 5 * np.sqrt(20 * occupied)


def test_memoised_bits_join_pseudonyms_of_vehicles_that_go_anywhere():
    memoised = LongitudinalUnary(cells=60, epsilon_permanent=3.0, epsilon_first=2.9)
    record = campaign(PSEUDONYMS, memoised, vehicles=150, queries=3, move=stray(0.0, 61))
    assert rows_of(record, "link_pseudonyms", ["server:1"], by=("bits",))[0][None].success > 0.5
    fresh = campaign(PSEUDONYMS, memoised.without_memory, vehicles=150, queries=3, move=stray(0.0, 61))
    for by in ("bits", "times"):
        row = rows_of(fresh, "link_pseudonyms", ["server:1"], by=(by,))[0][None]
        assert binomtest(round(row.success * 300), 300, 1 / 150, "greater").pvalue > FAMILY
    assert rows_of(fresh, "link_pseudonyms", ["server:1", "network"])[0][None].success == 1.0


def test_known_points_find_a_vehicle_as_often_as_exact_traces_are_alike():
    """Of vehicles that stay, one in each occupied cell is found on average, however many points are known."""
    record = campaign(PerRound(), EXACT, vehicles=400, queries=3)
    rows, _ = rows_of(record, "known_points", ["server:1"], points=(1, 3, 4))
    sizes = record.queries[0].occupancy
    for points in (1, 3):
        row = rows[f"known_{points}"]
        assert row.prior == pytest.approx(1 / 400)
        assert binomtest(round(400 * row.success), 400, np.count_nonzero(sizes) / 400).pvalue > FAMILY
        assert rows[f"unique_by_{points}"].value == np.count_nonzero(sizes == 1) / 400
    assert "known_4" not in rows


def test_known_points_need_devices_that_are_followed_and_reports_that_tell():
    record = campaign(PSEUDONYMS, EXACT, vehicles=60, queries=8, move=stray(0.2))
    rows, _ = rows_of(record, "known_points", ["server:1", "network"], points=(6,), growing=True)
    assert rows["known_6"].success > 0.9
    rows, _ = rows_of(record, "known_points", ["server:1"], points=(6,))
    assert binomtest(round(60 * rows["known_6"].success), 60, 1 / 60, "greater").pvalue > FAMILY
    unclear = campaign(
        Trusted(), KRandomizedResponse(cells=CELLS, epsilon=1e-4), vehicles=60, queries=8, move=stray(0.2)
    )
    rows, _ = rows_of(unclear, "known_points", ["server:1"], points=(6,))
    assert binomtest(round(60 * rows["known_6"].success), 60, 1 / 60, "greater").pvalue > FAMILY

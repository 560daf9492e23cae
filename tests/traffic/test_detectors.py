"""Detectors on links: what passes their positions, and the links nearest to places."""

import numpy as np
import pandas as pd
import pytest
from test_engines_agree import drive_both

from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.link_intervals import Traversals, detector_table, links_by_interval, passages

STEP_S, END_S = 0.5, 700.0


@pytest.fixture(scope="module")
def grid():
    """A grid with queues, and what a fleet drove on it until 700 s, when some vehicles are still on the road."""
    size = {"rows": 4, "columns": 4, "spacing_x_m": 150.0, "spacing_y_m": 110.0}
    roads = build_grid(**size, speed_mps=7.0, lanes=1, capacity_vph=120.0)
    (engine, env), _ = drive_both(roads, vehicles=500, duration_s=600.0, step_s=STEP_S, stuck_s=30.0, seed=11)
    env.run(until=END_S / STEP_S + 0.25)
    engine.advance()
    return roads, Traversals.of(engine, Clock(STEP_S), engine.log_by_vehicle())


def detectors_of(links, fraction, every_s=97.5):
    names = [f"{link} at {fraction}" for link in links]
    return pd.DataFrame({"name": names, "link": links, "fraction": fraction, "every_s": every_s})


def test_both_ends_of_a_link_differ_by_what_is_on_it(grid):
    roads, driven = grid
    length_m, links = roads.links.length_m, np.arange(len(roads.links), dtype=np.int32)
    by_link = links_by_interval(driven, length_m, every_s=97.5, end_s=END_S).set_index(["link", "from_s"])
    ends = []
    for fraction, counted in ((0.0, "entered"), (1.0, "left")):
        table = detector_table(driven, length_m, detectors_of(links, fraction), end_s=END_S)
        assert len(table) == len(links) * 8
        assert table["to_s"].max() == END_S
        expected = by_link[counted].reindex(pd.MultiIndex.from_frame(table[["link", "from_s"]]), fill_value=0)
        np.testing.assert_array_equal(table["count"], expected)
        ends.append(table.groupby("link")["count"].sum())
    there = np.bincount(driven.link[np.isnan(driven.leave_s)], minlength=len(links))
    np.testing.assert_array_equal(ends[0] - ends[1], there)
    assert there.sum() > 20


def test_a_detector_within_a_link_counts_by_the_trajectories_and_takes_the_speed_over_the_link(grid):
    """A vehicle passes .3 freely, but k waves after the k-th vehicle ahead left, if k places are .7 of the link."""
    roads, driven = grid
    link = int(np.bincount(driven.link).argmax())
    rows = pd.DataFrame({"link": link, "fraction": 0.3, "from_s": [50.0, 300.0], "to_s": [300.0, END_S]}, index=[7, 4])
    found = passages(driven, roads.links.length_m, rows, end_s=END_S)
    length_m = roads.links.length_m[link]
    free_s, k = length_m / 7.0, int(np.ceil(0.7 * length_m / 7.5))
    wave_s = 3600.0 / 120.0 - free_s / (length_m // 7.5)
    on = driven.link == link
    stays = sorted(zip(driven.entry_s[on], np.nan_to_num(driven.leave_s[on], nan=np.inf), strict=True))
    late = 0
    for row in rows.itertuples():
        times, spent = 0, []
        for place, (entry_s, leave_s) in enumerate(stays):
            ahead_s = stays[place - k][1] + k * wave_s if place >= k else 0.0
            at_s = max(entry_s + 0.3 * free_s, ahead_s)
            late += at_s == ahead_s
            if row.from_s <= at_s and (at_s < row.to_s or row.to_s == at_s == END_S):
                times += 1
                spent += [leave_s - entry_s] if leave_s < np.inf else []
        assert found["count"][row.Index] == times > len(rows)
        assert found["speed_mps"][row.Index] == pytest.approx(length_m / np.mean(spent))
    assert late > len(rows)
    unused = passages(driven, roads.links.length_m, rows.assign(from_s=0.0, to_s=1e-3), end_s=END_S)
    assert (unused["count"] == 0).all()
    assert unused["speed_mps"].isna().all()


def test_the_nearest_link_is_that_of_the_direction_and_the_allowed_ones(grid):
    roads, _ = grid
    links, every = roads.links, np.ones(len(roads.links), dtype=bool)
    xy = np.array([[75.0, 8.0], [75.0, 8.0], [75.0, 8.0], [np.nan, 0.0], [75.0, -60.0]])
    heading = np.array([90.0, 270.0, np.nan, np.nan, 90.0])
    link, fraction = roads.nearest_positions(xy, within_m=50.0, heading_deg=heading, allowed=every)
    east, west = roads.node_xy[links.to_node[link[:2]], 0] - roads.node_xy[links.from_node[link[:2]], 0]
    assert (east, west) == (150.0, -150.0)
    assert link[2] == min(link[0], link[1])
    assert link[3:].tolist() == [-1, -1]
    np.testing.assert_allclose(roads.locate(link[:3], fraction[:3]), [[75.0, 0.0]] * 3)
    every[link[0]] = False
    assert roads.nearest_positions(xy[:1], within_m=50.0, heading_deg=heading[:1], allowed=every)[0].tolist() == [-1]

"""The check against published flows, on a small town computed by hand: two routes between two zones."""

import json

import numpy as np
import pytest

from scenarios import ScenarioError
from simulator.experiment.flow_check import compare
from simulator.experiment.run import run_scenario
from simulator.pages.report import build_report, write_report

# Minutes: 2 (1 + v / 300) over node 5 and 3 (1 + v / 600) over node 6; all other links take a minute at any volume.
# Of 600 trips from zone 1 to zone 2, v = 4 / (1/150 + 1/200) take the first in equilibrium.
FIRST = 4 / (1 / 150 + 1 / 200)
NETWORK = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 6
<FIRST THRU NODE> 3
<NUMBER OF LINKS> 9
<END OF METADATA>
~ init term capacity length time b power speed toll type ;
1 3 9000 1000 1 0 4 0 0 1 ;
2 4 9000 1000 1 0 4 0 0 1 ;
3 1 9000 1000 1 0 4 0 0 1 ;
3 5 300 1000 2 1 1 0 0 1 ;
3 6 600 1000 3 1 1 0 0 1 ;
4 2 9000 1000 1 0 4 0 0 1 ;
4 3 9000 1000 1 0 4 0 0 1 ;
5 4 9000 1000 1 0 4 0 0 1 ;
6 4 9000 1000 1 0 4 0 0 1 ;
"""
NODES = """node x y ;
1 0 0 ;
2 4000 0 ;
3 1000 0 ;
4 3000 0 ;
5 2000 400 ;
6 2000 -400 ;
"""
TRIPS = """<NUMBER OF ZONES> 2
<TOTAL OD FLOW> 600.0
<END OF METADATA>
Origin 1
  2 : 600.0;
Origin 2
  1 : 0.0;
"""
SCENARIO = """
[scenario]
name = "two-ways"
seed = 3
duration_s = 9000

[roads]
source = "tntp"
network = "net.tntp"
nodes = "nodes.tntp"
flows = "flow.tntp"
length_unit = "m"
time_unit = "min"
crs = "EPSG:32618"

[cells]
kind = "square"
size_m = 1000

[traffic]
demand = "trips"
trips = "trips.tntp"
departures = [{ from_s = 0, to_s = 3600, share = 1.0 }]

[[campaigns]]
name = "occupancy"
start_s = 1200
queries = 1

[[mechanisms]]
name = "baseline"
kind = "no_privacy"
"""


def flows(first=FIRST):
    second = 600 - first
    rows = [
        (1, 3, 600, 1),
        (2, 4, 0, 1),
        (3, 1, 0, 1),
        (3, 5, first, 2 * (1 + first / 300)),
        (3, 6, second, 3 * (1 + second / 600)),
        (4, 2, 600, 1),
        (4, 3, 0, 1),
        (5, 4, first, 1),
        (6, 4, second, 1),
    ]
    return "From\tTo\tVolume\tCost\n" + "".join(f"{u}\t{v}\t{volume!r}\t{cost!r}\n" for u, v, volume, cost in rows)


@pytest.fixture
def town(tmp_path):
    texts = {"net.tntp": NETWORK, "nodes.tntp": NODES, "trips.tntp": TRIPS, "flow.tntp": flows(), "s.toml": SCENARIO}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


REACTIVE = ("traffic.routing=reactive", "traffic.reroute_every_s=60")


def check_of(town, *overrides):
    return run_scenario(town / "s.toml", overrides=overrides).facts["flow_check"]


def test_free_flow_uses_one_route_and_has_the_computed_gap(town):
    check = check_of(town)
    assert check["published"]["gap"] == pytest.approx(0, abs=1e-12)
    assert check["published"]["cost_difference"] == pytest.approx(0, abs=1e-12)
    assert (check["published"]["over_capacity"], check["published"]["highest_load"]) == (1, pytest.approx(FIRST / 300))
    # All take 1 + 2 (1 + 600 / 300) + 1 + 1 minutes, where 1 + 3 + 1 + 1 is possible.
    assert check["run"]["gap"] == pytest.approx((9 - 6) / 6)
    assert check["volumes"]["run"][3:5] == [600, 0]
    assert check["published"]["mean_trip_s"] == pytest.approx(60 * (3 + 2 * (1 + FIRST / 300)))
    assert (check["vehicles"], check["departed"], check["unfinished"], check["stands_for"]) == (600, 600, 0, 1)


def test_assignment_finds_the_published_flows(town):
    check = check_of(town)
    assert check["assignment"]["correlation"] > 0.99999
    assert check["assignment"]["gap"] < 1e-4
    assert check["volumes"]["assignment"][3] == pytest.approx(FIRST, abs=0.1)


def test_links_of_constant_cost_are_named_as_not_unique(town):
    (note,) = [note for note in check_of(town)["notes"] if "the same at any volume" in note]
    assert note.startswith("7 links cost the same at any volume")
    assert "not unique" in note
    text = (town / "net.tntp").read_text(encoding="utf-8")
    (town / "net.tntp").write_text(text.replace(" 1 0 4 0 0 1 ;", " 1 .1 4 0 0 1 ;"), encoding="utf-8")
    assert not any("at any volume" in note for note in check_of(town)["notes"])


def test_reactive_drivers_reduce_the_gap(town):
    stubborn, reacting = check_of(town), check_of(town, *REACTIVE)
    assert reacting["run"]["correlation"] > stubborn["run"]["correlation"]
    assert reacting["run"]["gap"] < 0.55 * stubborn["run"]["gap"]
    # In equilibrium `FIRST`: the queue before the narrow link also holds those who turn off before it, so fewer do.
    assert 200 < reacting["volumes"]["run"][3] < 550
    assert sum(reacting["volumes"]["run"][3:5]) == 600


def test_both_engines_give_the_same_check(town):
    assert check_of(town, *REACTIVE) == check_of(town, *REACTIVE, "traffic.engine=agents")


def test_share_of_the_trips_is_scaled_to_all(town):
    check = check_of(town, "traffic.share=0.5")
    assert (check["vehicles"], check["stands_for"]) == (300, 2)
    assert check["volumes"]["run"][0] == 600
    assert check["run"]["gap"] == pytest.approx(0.5)


def test_volumes_of_two_hours(town):
    """The same numbers as volumes of two hours: the same equilibrium, and half the vehicles per hour for a queue."""
    check = check_of(town, "roads.capacity_hours=2")
    assert check["published"]["gap"] == pytest.approx(0, abs=1e-12)
    assert check["published"]["over_capacity"] == 1


def test_vehicles_under_way_count_on_their_planned_routes(town):
    check = check_of(town, "scenario.duration_s=1800", "traffic.departures=uniform", "campaigns.occupancy.start_s=600")
    assert check["unfinished"] > 0
    assert check["volumes"]["run"][3] == check["volumes"]["run"][5] == 600


def test_a_scenario_without_flows_has_no_check(town):
    text = SCENARIO.replace('flows = "flow.tntp"\n', "")
    (town / "s.toml").write_text(text, encoding="utf-8")
    assert run_scenario(town / "s.toml").facts["flow_check"] is None


def test_other_trips_than_the_files_give_no_check(town):
    text = SCENARIO.replace('demand = "trips"\ntrips = "trips.tntp"', 'demand = "uniform"\nvehicles = 20')
    # Trips between any two nodes, so no node may be closed.
    (town / "net.tntp").write_text(NETWORK.replace("<FIRST THRU NODE> 3", "<FIRST THRU NODE> 1"), encoding="utf-8")
    (town / "s.toml").write_text(text, encoding="utf-8")
    facts = run_scenario(town / "s.toml").facts
    assert facts["flow_check"] is None
    assert any(note.startswith("roads.flows: not used") for note in facts["traffic"]["notes"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        ("From To Volume Cost\n1 3 many 1\n", "line 2"),
        (
            flows().replace("6\t4\t", "6\t5\t"),
            "a flow from node 6 to node 5, but there is no further link between them",
        ),
        (flows().replace("6\t4\t", "8\t9\t"), "no flow for the link from node 6 to node 4"),
    ],
)
def test_flows_that_do_not_fit_are_refused_before_the_run(town, text, named):
    (town / "flow.tntp").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        run_scenario(town / "s.toml")
    assert "flow.tntp" in str(caught.value)
    assert named in str(caught.value)


def test_report_describes_the_flow_check(town):
    run_scenario(town / "s.toml", overrides=REACTIVE).save(town / "run", render=write_report)
    page = build_report(town / "run")
    assert 'id="flows"' in page
    assert "static user equilibrium" in page
    assert "no measure of the truth of either" in page
    assert "0, within rounding" in page
    assert "3 → 5" in page
    kept = json.loads((town / "run" / "run.json").read_text(encoding="utf-8"))["flow_check"]
    assert len(kept["volumes"]["run"]) == kept["links"] == 9


def test_flow_check_does_not_detect_wrong_units(town):
    """Hours for minutes and feet for metres change no equilibrium volume, so the check cannot detect wrong units."""
    ours = run_scenario(town / "s.toml").facts["flow_check"]
    other = {"length_unit": '"feet"', "time_unit": '"hours"', "capacity_hours": "2.0"}
    wrong = run_scenario(town / "s.toml", overrides=[f"roads.{key}={value}" for key, value in other.items()])
    check = wrong.facts["flow_check"]
    assert check["assignment"]["correlation"] == pytest.approx(ours["assignment"]["correlation"], abs=1e-9)
    assert check["published"]["cost_difference"] == pytest.approx(ours["published"]["cost_difference"], abs=1e-9)
    wrong.save(town / "run", render=write_report)
    page = build_report(town / "run")
    assert "units are not shown by this" in page
    assert "units are read" not in page


def test_report_warns_of_flows_that_are_no_equilibrium(town):
    """Volumes of no equilibrium, at costs that differ: the report states this in words, not only in numbers."""
    (town / "flow.tntp").write_text(flows(first=60.0).replace("\t600\t", "\t900\t"), encoding="utf-8")
    run_scenario(town / "s.toml").save(town / "run", render=write_report)
    page = build_report(town / "run")
    assert "are not the equilibrium of these files as they were read" in page


def test_report_without_flow_check_has_no_section(town):
    (town / "s.toml").write_text(SCENARIO.replace('flows = "flow.tntp"\n', ""), encoding="utf-8")
    run_scenario(town / "s.toml").save(town / "run", render=write_report)
    assert 'id="flows"' not in build_report(town / "run")


class TestCompare:
    def test_by_hand(self):
        found = compare(np.array([2.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0]))
        assert found["slope"] == pytest.approx(3.5)
        assert found["ratio"] == pytest.approx(2.5)
        assert found["correlation"] == pytest.approx(7 / (2 * 26) ** 0.5)
        assert found["rmse"] == pytest.approx((41 / 3) ** 0.5)
        assert found["rmse_percent"] == pytest.approx(50 * (41 / 3) ** 0.5)

    def test_comparison_of_zero_volumes(self):
        found = compare(np.zeros(3), np.zeros(3))
        assert found == {"correlation": None, "slope": None, "ratio": None, "rmse": 0.0, "rmse_percent": None}

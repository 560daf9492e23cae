"""Scenarios driven by SUMO: from the file to the run directory, with the fleet engine for comparison."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine
from simulator.streams import Streams

sys.path.insert(0, str(Path(__file__).parents[1] / "traffic"))

from sumo_by_hand import ROUTES, make_net, plain_run

from simulator.files.resources import Stopwatch

SCENARIO = """
scenario = {name = "small-sumo", duration_s = 300, warmup_s = 60}
cells = {kind = "square", size_m = 100}
mechanisms = [{name = "baseline", kind = "no_privacy"}]
[roads]
source = "sumo"
path = "small.net.xml"
[traffic]
engine = "sumo"
routes = ["small.rou.xml"]
beside = "fleet"
[[campaigns]]
name = "occupancy"
start_s = 100
queries = 2
every_s = 100
round_gap_s = 20
deadline_s = 20
"""


@pytest.fixture
def folder(small_net, tmp_path):
    (tmp_path / "small.net.xml").write_bytes(small_net.read_bytes())
    (tmp_path / "small.rou.xml").write_text(ROUTES)
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture(scope="module")
def small_net(tmp_path_factory):
    return make_net(tmp_path_factory.mktemp("net"))


def test_truth_equals_the_vehicles_of_sumo_in_each_cell(folder):
    result = run(folder / "small.toml", overrides=["traffic.seed=5"])
    scenario = scenarios.load(folder / "small.toml", overrides=["traffic.seed=5"])
    city = build_city(scenario)
    engine = build_engine(scenario, city, streams=Streams(0), stopwatch=Stopwatch(), end_s=scenario.scenario.duration_s)
    seen, trips = plain_run(engine._inputs, until_s=300)
    # Flows draw their vehicles at random: those that came are stated, not the most that might have come.
    assert 0 < result.facts["vehicles"] == result.facts["traffic"]["departed"][-1] < engine.vehicles
    for query, asked_s in enumerate((100.0, 200.0), start=1):
        moment_s = asked_s + 20.0
        truth = result.estimates.query(f"query == {query} and mechanism == 'baseline'").sort_values("cell")["truth"]
        # Present at the first moment and on the road at the second: they are where SUMO writes them.
        both = [there for vehicle, there in seen[moment_s].items() if vehicle in seen[asked_s]]
        at = engine._frame.to_city(np.array([(there.x, there.y) for there in both]))
        least = np.bincount(city.cells.cell_of(at), minlength=city.cells.count + 1)[1:]
        assert (truth.to_numpy() >= least).all()
        here = next(q for q in result.facts["traffic_at_queries"] if q["query"] == query)
        assert here["on_road"] == len(seen[asked_s]) > 20
        assert here["arrived"] == sum(trip["arrival"] <= asked_s for trip in trips)
        # Only vehicles on the road are queried, and none is outside every cell.
        assert here["waiting"] > 0
        assert truth.sum() == here["on_road"]


def test_fleet_engine_drives_the_same_vehicles_for_comparison(folder):
    facts = run(folder / "small.toml").facts
    # The packages that drove the vehicles and read the roads, with their requirements.
    assert {"libsumo", "sumo-data", "sumolib", "traci"} <= facts["packages"].keys()
    traffic = facts["traffic"]
    (beside,) = traffic["beside"]
    assert (traffic["engine"], beside["engine"]) == ("sumo", "fleet")
    assert beside["times_s"] == traffic["times_s"]
    # Random flows are drawn a second time with the same seed; the fleet engine rounds departures down to its tick.
    sure = 62 + 2
    assert min(traffic["departed"][-1], beside["departed"][-1]) > sure
    assert beside["departed"][-1] == traffic["departed"][-1]
    assert set(np.subtract(beside["departed"], traffic["departed"]).tolist()) <= {0, 1, 2}
    assert beside["mean_trip_s"][-1] < traffic["mean_trip_s"][-1], "signals are SUMO's"
    assert "with 16 signals" in traffic["notes"][0]


def test_equal_seeds_give_equal_runs_and_others_differ(folder):
    first, again, other = (run(folder / "small.toml", seed=seed) for seed in (1, 1, 2))
    assert first.facts["traffic"] == again.facts["traffic"]
    assert first.estimates.equals(again.estimates)
    assert first.facts["traffic"]["on_road"] != other.facts["traffic"]["on_road"]


def test_another_campaign_changes_no_traffic_and_no_other_campaign(folder):
    text = SCENARIO + '\n[[campaigns]]\nname = "more"\nstart_s = 130\n'
    (folder / "more.toml").write_text(text)
    one, two = run(folder / "small.toml"), run(folder / "more.toml")
    assert one.facts["traffic"] == two.facts["traffic"]
    rows = two.estimates.query("campaign == 'occupancy'").reset_index(drop=True)
    assert rows["truth"].tolist() == one.estimates["truth"].tolist()


def test_configuration_file_gives_the_same_run(folder):
    (folder / "small.sumocfg").write_text(
        '<configuration><net-file value="small.net.xml"/><route-files value="small.rou.xml"/></configuration>'
    )
    text = SCENARIO.replace('routes = ["small.rou.xml"]', 'config = "small.sumocfg"')
    (folder / "config.toml").write_text(text)
    assert run(folder / "config.toml").facts["traffic"] == run(folder / "small.toml").facts["traffic"]


def test_absent_vehicles_are_never_queried(folder):
    (folder / "small.sumocfg").write_text(
        '<configuration><net-file value="small.net.xml"/><route-files value="small.rou.xml"/>'
        '<max-depart-delay value="5"/></configuration>'
    )
    keys = 'config = "small.sumocfg"\nparked = "answer"\nwaiting = "answer"'
    text = SCENARIO.replace('routes = ["small.rou.xml"]', keys)
    (folder / "impatient.toml").write_text(text)
    result = run(folder / "impatient.toml")
    for query in result.facts["traffic_at_queries"]:
        assert query["absent"] > 0
        there = query["waiting"] + query["on_road"] + query["arrived"]
        assert there + query["absent"] == query["departed"]
        asked = result.rounds.query(f"query == {query['query']}")["asked"]
        assert asked.unique().tolist() == [there]


def test_roads_of_another_source_give_positions_without_links(folder):
    grid = 'source = "grid"\nrows = 6\ncolumns = 6\nspacing_m = 120\nspeed_mps = 10'
    text = SCENARIO.replace('source = "sumo"\npath = "small.net.xml"', grid).replace('beside = "fleet"', "")
    (folder / "grid.toml").write_text(text)
    with pytest.raises(ScenarioError, match="net is required where"):
        run(folder / "grid.toml")
    (folder / "grid.toml").write_text(text.replace('engine = "sumo"', 'engine = "sumo"\nnet = "small.net.xml"'))
    result = run(folder / "grid.toml")
    assert result.estimates["truth"].sum() > 30
    assert "beside" not in result.facts["traffic"]


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (('routes = ["small.rou.xml"]', ""), "traffic.routes", "is required"),
        (('routes = ["small.rou.xml"]', 'routes = ["no.rou.xml"]'), "traffic.routes[0]", "no such file"),
        (('beside = "fleet"', 'beside = "agents"'), "traffic.beside", "fleet"),
        (('beside = "fleet"', "step_s = 0.00051"), "traffic.step_s", "whole milliseconds"),
        (('beside = "fleet"', "step_s = 0.0001"), "traffic.step_s", "whole milliseconds"),
        (('beside = "fleet"', "seed = 2147483648"), "traffic.seed", "2147483647"),
        (('beside = "fleet"', 'config = "small.rou.xml"'), "traffic.config", "leave out net, routes and additional"),
        (('beside = "fleet"', "vehicles = 5"), "traffic.vehicles", "unknown"),
    ],
    ids=["none", "missing", "beside", "step", "tiny", "seed", "both", "vehicles"],
)
def test_section_faults_name_their_key(folder, change, path, words):
    (folder / "wrong.toml").write_text(SCENARIO.replace(*change))
    with pytest.raises(ScenarioError) as caught:
        scenarios.load(folder / "wrong.toml")
    assert any(path in str(fault) and words in str(fault) for fault in caught.value.faults), str(caught.value)


@pytest.mark.parametrize(("step_s", "begin_s"), [(1, 0), (0.5, 40), (7, 0)])
def test_comparison_engine_drives_no_vehicle_that_departs_after_the_end(folder, step_s, begin_s):
    last_s = 300 // step_s * step_s  # the time of the run's last step
    departs = [0, 150, last_s - step_s, last_s, last_s + 0.001, last_s + 0.3, 300.4, 301, 305, 340, 371]
    trip = '<trip id="{}" depart="{:.3f}" from="A0B0" to="C0D0"/>'
    trips = [trip.format(number, begin_s + depart) for number, depart in enumerate(sorted(departs))]
    (folder / "small.rou.xml").write_text(f"<routes>{''.join(trips)}</routes>")
    facts = run(folder / "small.toml", overrides=[f"traffic.step_s={step_s}", f"traffic.begin_s={begin_s}"]).facts
    traffic, vehicles = facts["traffic"], facts["vehicles"]
    late = f"they depart after the run ends (second {begin_s + last_s:g})"
    (beside,) = traffic["beside"]
    assert traffic["times_s"][-1] == 300
    assert beside["departed"][-1] == traffic["departed"][-1] == sum(depart <= last_s for depart in departs)
    assert any(note.startswith(f"small.rou.xml: 7 not driven: {late}") for note in beside["notes"])
    assert traffic["departed"][-1] == vehicles, "departures after the end are not counted as vehicles of the run"


def test_departures_after_the_end_are_not_counted(folder):
    late = '<trip id="late" depart="299" from="A0B0" to="C0D0"/>'
    (folder / "small.rou.xml").write_text(f'<routes><trip id="early" depart="0" from="A0B0" to="C0D0"/>{late}</routes>')
    facts = run(folder / "small.toml", overrides=["scenario.duration_s=230"]).facts
    end_s = facts["traffic"]["times_s"][-1]
    assert 230 <= end_s < 299
    assert facts["vehicles"] == facts["traffic"]["departed"][-1] == 1
    (folder / "small.rou.xml").write_text(f"<routes>{late}</routes>")
    with pytest.raises(ScenarioError, match=f"departs within the run, from second 0 to {end_s:g} of SUMO's time"):
        run(folder / "small.toml", overrides=["scenario.duration_s=230"])


@pytest.mark.slow
def test_gridlock_in_sumo_is_reported_by_teleports_and_waiting(folder):
    flows = [("A0A1", "D3C3"), ("D0C0", "A3B3"), ("A3A2", "D0D1"), ("D3D2", "A0B0")]
    text = '<flow id="{}" begin="0" end="300" period="0.5" from="{}" to="{}"/>'
    jam = "".join(text.format(number, *ends) for number, ends in enumerate(flows))
    (folder / "small.rou.xml").write_text(f"<routes>{jam}</routes>")
    result = run(folder / "small.toml", overrides=["traffic.teleport_s=20", "traffic.seed=1"])
    own, *beside = [warning for warning in result.facts["warnings"] if "gridlock" in warning]
    traffic = result.facts["traffic"]
    assert own.startswith("gridlock: ")
    assert f"of {traffic['departed'][-1]:,} vehicles departed" in own
    assert f"forced past full links {traffic['stuck_released']:,} times" in own
    assert f"{traffic['waiting'][-1]:,} still wait to enter" in own
    assert all(warning.startswith("fleet, for comparison: gridlock") for warning in beside)


WRONG = "<vType id='odd' vClass='hover'/>"
EMPTY_CONFIG = "<configuration>{}<route-files value='small.rou.xml'/></configuration>"
GAP = '<vehicle id="v" depart="0"><route edges="A0B0 C0D0"/></vehicle>'
NO_TYPE = '<trip id="v" type="no" depart="9" from="A0B0" to="B0C0"/>'
TRIP = '<trip id="fine" depart="0" from="A0B0" to="B0C0"/>'


ALONE = pytest.param("", marks=pytest.mark.slow, id="alone")


@pytest.mark.parametrize("beside", [ALONE, pytest.param('beside = "fleet"', id="beside")])
@pytest.mark.parametrize(
    ("named", "files", "key"),
    [
        ("", {"small.rou.xml": "<routes><trip"}, "traffic.routes[0]"),
        ("", {"small.rou.xml": "<routes/>"}, "traffic.routes[0]"),
        (
            "",
            {"small.rou.xml": '<routes><vehicle id="v" depart="0"><route edges="A0B0 no"/></vehicle></routes>'},
            "traffic.routes[0]",
        ),
        ("", {"small.rou.xml": f"<routes>{TRIP}{NO_TYPE}</routes>"}, "traffic.routes[0]"),
        (
            "",
            {"small.rou.xml": f"<routes>{TRIP}{GAP}</routes>"},
            "traffic.routes[0]",
        ),
        (
            'additional = ["fine.add.xml", "odd.add.xml"]',
            {"fine.add.xml": "<additional/>", "odd.add.xml": f"<additional>{WRONG}</additional>"},
            "traffic.additional[1]",
        ),
        ('additional = ["odd.add.xml"]', {"odd.add.xml": "<additional>"}, "traffic.additional[0]"),
        ('net = "odd.net.xml"', {"odd.net.xml": "<net>"}, "traffic.net"),
        ('config = "c.sumocfg"', {"c.sumocfg": "<configuration>"}, "traffic.config"),
        ('config = "c.sumocfg"', {"c.sumocfg": EMPTY_CONFIG.format("<net-file value='no.xml'/>")}, "traffic.config"),
        ('config = "c.sumocfg"', {"c.sumocfg": EMPTY_CONFIG.format("<no value='1'/>")}, "traffic.config"),
        (
            'config = "c.sumocfg"',
            {
                "c.sumocfg": EMPTY_CONFIG.format("<net-file value='small.net.xml'/>"),
                "small.rou.xml": f"<routes>{NO_TYPE}</routes>",
            },
            "traffic.config",
        ),
    ],
)
def test_file_fault_names_the_key_of_that_file(folder, beside, named, files, key):
    for name, text in files.items():
        (folder / name).write_text(text)
    routes = "" if named.startswith("config") else 'routes = ["small.rou.xml"]'
    usual = 'routes = ["small.rou.xml"]\nbeside = "fleet"'
    assert usual in SCENARIO
    (folder / "wrong.toml").write_text(SCENARIO.replace(usual, f"{routes}\n{named}\n{beside}"))
    with pytest.raises(ScenarioError) as refusal:
        run(folder / "wrong.toml")
    assert {fault.path for fault in refusal.value.faults} == {key}, str(refusal.value)


DATA = Path(os.environ.get("CROWDVEIL_DATA", "/nowhere"), "sumo", "acosta")


@pytest.mark.slow
@pytest.mark.skipif(
    not DATA.is_dir(), reason="CROWDVEIL_DATA names no folder with sumo/acosta: real data is not part of the project"
)
def test_bologna_runs_with_the_fleet_engine_for_comparison(tmp_path):
    short = ["scenario.duration_s=600", "scenario.warmup_s=120", "campaigns.occupancy.start_s=240"]
    short += ["campaigns.occupancy.queries=2", "campaigns.occupancy.every_s=150", "traffic.seed=1"]
    result = run("bologna-sumo", overrides=short)
    facts = json.loads((result.save(tmp_path / "run") / "run.json").read_text(encoding="utf-8"))
    traffic, (beside,) = facts["traffic"], facts["traffic"]["beside"]
    assert facts["vehicles"] < 8779, "those who depart after the run are not counted"
    assert traffic["departed"][-1] > 1400
    assert beside["departed"][-1] == traffic["departed"][-1], "those of every vehicle class are driven"
    assert beside["mean_trip_s"][-1] == pytest.approx(traffic["mean_trip_s"][-1], rel=0.15)
    assert beside["on_road"][-1] == pytest.approx(traffic["on_road"][-1], rel=0.15)
    assert result.estimates.query("mechanism == 'baseline'")["truth"].sum() > 600

"""Runs whose vehicles come from files."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios import ScenarioError
from simulator import run
from simulator.cli import app

SCENARIO = """
scenario = {{name = "from-file", duration_s = 600}}
cells = {{kind = "square", size_m = 400}}
campaigns = [{{name = "once", start_s = 300, round_gap_s = 30}}]
mechanisms = [{{name = "sampling", kind = "sampling_privacy", sampling = 0.45}}]
[roads]
source = "tables"
nodes = "nodes.csv"
edges = "edges.csv"
crs = "EPSG:32618"
columns = {{node = "id", x = "x", y = "y", from = "a", to = "b", length_m = "length"}}
[traffic]
{traffic}
"""
ATTACK = """
[[attacks]]
name = "many"
kind = "poisoning"
coalition = ["vehicles:{vehicles}"]
cell = 1
targets = {vehicles}
"""


@pytest.fixture
def scenario(tmp_path):
    """Write a scenario on a two-way ring of eight nodes, with its files beside it."""
    nodes = [(i, 500_000 + 400 * (i % 4), 4_500_000 + 400 * (i // 4)) for i in range(8)]
    (tmp_path / "nodes.csv").write_text("id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in nodes))
    around = [(i, (i + 1) % 8) for i in range(8)]
    pairs = [*around, *((b, a) for a, b in around)]
    (tmp_path / "edges.csv").write_text("a,b,length\n" + "".join(f"{a},{b},400\n" for a, b in pairs))

    def written(traffic, more="", **files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        file = tmp_path / "from-file.toml"
        file.write_text(SCENARIO.format(traffic=traffic) + more)
        return file

    return written


def test_trips_of_a_table_become_vehicles(scenario):
    text = "origin,destination,trips\n0,4,100.4\n4,1,49.9\n2,2,7\n"
    file = scenario('demand = "trips"\ntrips = "od.csv"\nshare = 2', od_csv=text)
    result = run(file, seed=3)
    assert result.facts["vehicles"] in {300, 301}
    assert any("7 trips (1 pair) not driven" in note for note in result.facts["traffic"]["notes"])
    again = run(file, seed=3)
    assert result.estimates.equals(again.estimates)
    assert any(name.endswith("od.csv") for name in map(str, result.facts["data"]))


def test_given_number_of_trips_departs_by_an_hourly_profile(scenario):
    text = "origin,destination,trips\n0,4,100\n4,1,50\n"
    traffic = 'demand = "trips"\ntrips = "od.csv"\nvehicles = 40\nbegin_s = 25000\n'
    traffic += 'departures = "profile"\nprofile = "day.csv"'
    result = run(scenario(traffic, od_csv=text, day_csv="hour,share\n6,1\n7,1\n"))
    assert result.facts["vehicles"] == 40
    assert any("not driven: they depart outside the run" in note for note in result.facts["traffic"]["notes"])


def test_gravity_from_zones(scenario):
    text = "zone,production,attraction\n0,100,50\n3,100,120\n5,40,70\n"
    result = run(scenario('demand = "gravity"\nzones = "zones.csv"\nshare = 0.5', zones_csv=text))
    assert result.facts["vehicles"] == 120


def test_more_corrupted_vehicles_than_trips_are_refused(scenario):
    text = "origin,destination,trips\n0,4,20\n4,1,10\n"
    traffic = 'demand = "trips"\ntrips = "od.csv"'
    with pytest.raises(ScenarioError) as caught:
        run(scenario(traffic, ATTACK.format(vehicles=31), od_csv=text))
    assert [fault.path for fault in caught.value.faults] == ["attacks.many.coalition"]
    assert "there are only 30 vehicles" in str(caught.value)


@pytest.mark.parametrize(
    ("traffic", "files", "words"),
    [
        (
            'demand = "trips"\ntrips = "od.csv"',
            {"od_csv": "origin,destination,trips\n0,9,1\n"},
            "row 1: '9' is no node of the roads, which have 8",
        ),
        (
            'demand = "trips"\ntrips = "od.tntp"',
            {"od_tntp": "<END OF METADATA>\nOrigin 0\n1 : -5;\n"},
            "line 3: trips to a zone must be a finite number, 0 or more",
        ),
        (
            'demand = "trips"\ntrips = "od.xml"',
            {"od_xml": '<routes><vehicle id="a" depart="1"><route edges="x"/></vehicle></routes>'},
            "SUMO routes need roads read from SUMO's network",
        ),
        (
            'demand = "trips"\ntrips = ["a.csv", "b.csv"]',
            {"a_csv": "origin,destination\n0,1\n", "b_csv": "origin,destination\n0,1\n"},
            "several files of trips can be combined only if all are SUMO routes",
        ),
        (
            'vehicles = 9\ndepartures = "profile"\nprofile = "day.csv"\nbegin_s = 80000',
            {"day_csv": "hour,share\n6,1\n"},
            "no trip departs within the run, seconds 80000 to 80600",
        ),
    ],
    ids=["place", "flow", "sumo", "files", "profile"],
)
def test_file_faults_are_scenario_faults(scenario, traffic, files, words):
    with pytest.raises(ScenarioError) as caught:
        run(scenario(traffic, **files))
    assert {fault.path for fault in caught.value.faults} == {"traffic"}
    assert words in str(caught.value)


def test_bologna_on_its_given_routes():
    if not Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "sumo", "acosta").is_dir():
        pytest.skip("set CROWDVEIL_DATA to a folder with sumo/acosta to run it")
    result = run(Path(__file__).parent / "bologna_given_routes.toml")
    assert result.facts["vehicles"] > 1000
    assert any("they depart after the run ends" in note for note in result.facts["traffic"]["notes"])


def test_scenario_check_reads_the_trips(scenario):
    file = scenario('demand = "trips"\ntrips = "od.csv"', od_csv="origin,destination,trips\n0,4,20\n3,3,2\n")
    checked = CliRunner().invoke(app, ["scenarios", "check", str(file)])
    assert checked.exit_code == 0
    assert "20 vehicles" in checked.stdout
    assert "2 trips (1 pair) not driven" in checked.stderr
    file = scenario('demand = "trips"\ntrips = "od.csv"', od_csv="origin,destination,trips\n0,4,20\n3,11,2\n")
    with pytest.raises(ScenarioError, match="row 2: '11' is no node"):
        CliRunner().invoke(app, ["scenarios", "check", str(file)], catch_exceptions=False)

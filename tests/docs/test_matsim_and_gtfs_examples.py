"""The examples of MATSim's files and of GTFS feeds in the pages run as written, on tiny files."""

import gzip
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from matsim_by_hand import ONE_DAY, network_xml, plans_xml, write_events

from simulator import api

DOCS = Path(__file__).parents[2] / "docs"
REST = """
[scenario]
name = "example"
duration_s = 1200

[roads]
source = "grid"
rows = 3
columns = 3
spacing_m = 200
anchor = { lon = 9.0, lat = 48.75 }

[cells]
kind = "square"
size_m = 150

[traffic]
vehicles = 1

[[campaigns]]
name = "occupancy"
start_s = 30
queries = 1

[[mechanisms]]
name = "baseline"
kind = "no_privacy"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scenario.toml").write_text(REST)
    network = network_xml(
        more='<link id="cb" from="c" to="b" length="300" freespeed="9" capacity="900" permlanes="1"/>'
    )
    (tmp_path / "network.xml").write_text(network)
    for name in ("network.xml.gz", "output_network.xml.gz"):
        (tmp_path / name).write_bytes(gzip.compress(network.encode()))
    (tmp_path / "plans.xml").write_text(plans_xml(ONE_DAY))
    write_events(tmp_path / "output_events.xml.gz")
    with zipfile.ZipFile(tmp_path / "feed.zip", "w") as feed:
        for name, rows in {
            "stops": ["stop_id,stop_lat,stop_lon", "a,48.75,9.0", "b,48.75,9.005"],
            "routes": ["route_id,route_type", "r,3"],
            "trips": ["trip_id,route_id,service_id", "t,r,s"],
            "stop_times": ["trip_id,stop_id,stop_sequence,departure_time", "t,a,1,06:00:10", "t,b,2,06:02:00"],
            "calendar_dates": ["service_id,date,exception_type", "s,20240305,1"],
        }.items():
            feed.writestr(f"{name}.txt", "\n".join(rows))
    return tmp_path


@pytest.mark.parametrize(
    ("page", "section", "vehicles"),
    [
        ("roads", "## MATSim networks", 1),
        ("demand", "### MATSim's plans", 2),
        ("demand", "### Buses of a GTFS feed", 1),
        ("engines", "### MATSim's events", 2),
    ],
)
def test_example_runs(folder, page, section, vehicles):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").partition(f"\n{section}\n")[2]
    example = tomllib.loads(re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)[1])
    given = {name: example[name] for name in example.keys() & {"roads", "traffic"}}
    given |= {f"scenario.{key}": value for key, value in example.get("scenario", {}).items()}
    result = api.run(folder / "scenario.toml", overrides=given)
    assert result.record.vehicles == vehicles

"""The examples of MATSim's files in the pages run as written, on tiny files."""

import gzip
import re
import tomllib
from pathlib import Path

import pytest
from matsim_by_hand import network_xml, write_events

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
    write_events(tmp_path / "output_events.xml.gz")
    return tmp_path


@pytest.mark.parametrize(
    ("page", "section", "vehicles"),
    [
        ("how/roads", "## MATSim networks", 1),
        ("how/recordings", "### MATSim's events", 2),
    ],
)
def test_example_runs(folder, page, section, vehicles):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").partition(f"\n{section}\n")[2]
    example = tomllib.loads(re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)[1])
    given = {name: example[name] for name in example.keys() & {"roads", "traffic"}}
    given |= {f"scenario.{key}": value for key, value in example.get("scenario", {}).items()}
    result = api.run(folder / "scenario.toml", overrides=given)
    assert result.record.vehicles == vehicles

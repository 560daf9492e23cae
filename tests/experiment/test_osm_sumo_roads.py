"""Scenarios whose roads are an OpenStreetMap file or a SUMO network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scenarios import ScenarioError
from simulator import run

pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium and osmnx")
pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmium and osmnx")
pytest.importorskip("sumolib", reason="SUMO networks are read by sumolib")

SCENARIO = """
scenario = {{name = "small", seed = 1, duration_s = 600}}
cells = {{kind = "square", size_m = 100}}
traffic = {{vehicles = 60, demand = "uniform"}}
campaigns = [{{name = "occupancy", start_s = 300, queries = 2, every_s = 60, round_gap_s = 10, deadline_s = 10}}]
mechanisms = [{{name = "baseline", kind = "no_privacy"}}]
[roads]
source = "{source}"
path = "{path}"
{more}
"""

OSM = """<osm version="0.6">
<node id="1" lat="60.170" lon="24.940"/><node id="2" lat="60.170" lon="24.945"/>
<node id="3" lat="60.173" lon="24.945"/><node id="4" lat="60.173" lon="24.940"/>
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="highway" v="residential"/></way>
<way id="2"><nd ref="1"/><nd ref="3"/><tag k="highway" v="primary"/></way>
</osm>
"""

NET = """<net version="1.20">
<location netOffset="0,0" convBoundary="0,0,1,1" origBoundary="0,0,1,1" projParameter="!"/>
<edge id="out" from="A" to="B"><lane id="out_0" index="0" speed="13.9" length="300" shape="0,-3 300,-3"/></edge>
<edge id="back" from="B" to="A"><lane id="back_0" index="0" speed="13.9" length="300" shape="300,3 0,3"/></edge>
<edge id="exit" from="B" to="C"><lane id="exit_0" index="0" speed="13.9" length="100" shape="300,0 400,0"/></edge>
<junction id="A" type="dead_end" x="0" y="0" incLanes=""/>
<junction id="B" type="priority" x="300" y="0" incLanes=""/>
<junction id="C" type="dead_end" x="400" y="0" incLanes=""/>
</net>
"""


@pytest.fixture
def write(tmp_path):
    def _write(source, name, content, more=""):
        (tmp_path / name).write_text(content, encoding="utf-8")
        path = tmp_path / "small.toml"
        path.write_text(SCENARIO.format(source=source, path=name, more=more), encoding="utf-8")
        return path

    return _write


def test_roads_from_openstreetmap(write):
    result = run(write("osm", "town.osm", OSM))
    assert {"osmium", "osmnx", "sumolib"} & result.facts["packages"].keys() == {"osmium", "osmnx"}
    city = result.facts["city"]
    assert (city["nodes"], city["links"]) == (2, 6)
    assert "lanes taken by class of road in 6 of 6 links: residential 1 (4), primary 1 (2)" in "\n".join(city["notes"])
    assert [Path(name).name for name in result.facts["data"]] == ["town.osm"]
    assert result.estimates["truth"].sum() > 0


def test_sumo_roads_with_the_fleet_engine(write):
    more = 'keep = "strong"\nanchor = { lon = 11.3, lat = 44.5 }'
    facts = run(write("sumo", "small.net.xml", NET, more)).facts
    assert {"osmium", "osmnx", "sumolib", "libsumo"} & facts["packages"].keys() == {"sumolib"}
    city = facts["city"]
    assert (city["nodes"], city["links"]) == (2, 2)
    assert "kept the 2 nodes and 2 links of the largest part" in city["notes"][-1]
    assert "transverse Mercator about 11.3, 44.5" in city["crs"]


@pytest.mark.parametrize(
    ("source", "name", "content", "more", "message"),
    [
        (
            "osm",
            "town.osm",
            OSM.replace('"60.170"', '"160.170"'),
            "",
            "24.94 and 160.17 (are lat and lon swapped?)",
        ),
        ("osm", "town.xml", OSM, "", "the name must end in one of .osm"),
        ("sumo", "small.net.xml", OSM, "", "the file must begin with <net>"),
        ("sumo", "small.net.xml", NET, 'vehicle_class = "hovercraft"', "vehicle_class must be one of SUMO's"),
    ],
)
def test_unusable_file_is_a_fault_of_the_roads_section(write, source, name, content, more, message):
    with pytest.raises(ScenarioError) as caught:
        run(write(source, name, content, more))
    assert {fault.path for fault in caught.value.faults} == {"roads"}
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("module", "source", "name", "content"),
    [
        ("osmnx", "osm", "town.osm", OSM),
        pytest.param("sumolib", "sumo", "small.net.xml", NET, marks=pytest.mark.slow),
    ],
)
def test_missing_extra_gives_an_install_hint(write, module, source, name, content):
    """In a separate process in which the library cannot be imported."""
    path = write(source, name, content)
    code = f"import sys; sys.modules[{module!r}] = None; from simulator.cli import main; main()"
    command = [sys.executable, "-c", code, "run", str(path), "--out", str(path.parent / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert f"needs {module}: pip install 'crowdveil[" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert not (path.parent / "run").exists()

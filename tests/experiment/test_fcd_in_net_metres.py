"""SUMO's floating-car data without --fcd-output.geo: metres of the network, whose netOffset is in its file."""

import numpy as np
import pytest
from pyproj import Transformer

import scenarios
from scenarios import ScenarioError
from simulator.experiment.assembly.city import build_city
from simulator.files.errors import InputError
from simulator.formats.recordings import read_trace
from simulator.roads.sumo_frame import NetFrame

OFFSET = (-671_000.5, -5_403_000.25)
LONLAT = np.array([[11.4108, 48.7662], [11.4122, 48.7670]])
LOCATION = (
    f'<net version="1.9"><location netOffset="{OFFSET[0]},{OFFSET[1]}" convBoundary="0,0,9,9" '
    'origBoundary="0,0,9,9" projParameter="+proj=utm +zone=32 +ellps=WGS84 +datum=WGS84 +units=m +no_defs"/></net>'
)
SCENARIO = """
scenario = {{name = "fcd", seed = 1, duration_s = 60}}
roads = {{source = "none"}}
cells = {{kind = "square", size_m = 50}}
campaigns = [{{name = "count", start_s = 10, queries = 1}}]
mechanisms = [{{name = "exact", kind = "no_privacy"}}]
[traffic]
engine = "trace"
trace = "fcd.{ends}"
{keys}
"""


def write_fcd(folder, xy):
    rows = "".join(
        f'<timestep time="{60 * i}"><vehicle id="v" x="{x:.3f}" y="{y:.3f}" speed="9" lane="a_0"/></timestep>'
        for i, (x, y) in enumerate(xy)
    )
    (folder / "fcd.xml").write_text(f"<fcd-export>{rows}</fcd-export>")
    table = "".join(f"{60 * i};v;a_0;9;{x:.3f};{y:.3f}\n" for i, (x, y) in enumerate(xy))
    (folder / "fcd.csv").write_text("timestep_time;vehicle_id;vehicle_lane;vehicle_speed;vehicle_x;vehicle_y\n" + table)
    (folder / "town.net.xml").write_text(LOCATION)


@pytest.fixture
def folder(tmp_path):
    metres = np.column_stack(Transformer.from_crs("EPSG:4326", "EPSG:32632", always_xy=True).transform(*LONLAT.T))
    write_fcd(tmp_path, metres + OFFSET)
    return tmp_path


@pytest.mark.parametrize("ends", ["xml", "csv"])
def test_the_network_places_them(folder, ends):
    (folder / "s.toml").write_text(SCENARIO.format(ends=ends, keys='net = "town.net.xml"'))
    ground = build_city(scenarios.load(folder / "s.toml")).ground
    to_plane = Transformer.from_crs("EPSG:4326", ground.crs, always_xy=True)
    assert ground.bounds[:2] == pytest.approx(to_plane.transform(*LONLAT[0]), abs=0.01)
    assert ground.bounds[2:] == pytest.approx(to_plane.transform(*LONLAT[1]), abs=0.01)


@pytest.mark.parametrize("keys", ["", 'crs = "EPSG:32632"'])
def test_without_it_they_are_refused_with_the_remedy(folder, keys):
    """The network's own projection as crs would leave the offset out, and land hundreds of kilometres away."""
    (folder / "s.toml").write_text(SCENARIO.format(ends="xml", keys=keys))
    with pytest.raises(ScenarioError, match=r'netOffset\): give the network as traffic.net = "FILE.net.xml"'):
        build_city(scenarios.load(folder / "s.toml"))


def test_net_and_crs_exclude_each_other(folder):
    (folder / "s.toml").write_text(SCENARIO.format(ends="xml", keys='net = "town.net.xml"\ncrs = "EPSG:32632"'))
    with pytest.raises(ScenarioError, match="must be left out with net"):
        scenarios.load(folder / "s.toml")


def test_the_net_of_the_roads_is_used_for_metres_only(folder):
    """Its roads may also be driven by data in degrees; a network named for the data settles it."""
    frame = NetFrame.from_file(folder / "town.net.xml")
    metres = read_trace(folder / "fcd.xml", net=frame, net_stated=False)
    assert np.column_stack((metres.lon, metres.lat)) == pytest.approx(LONLAT, abs=1e-7)
    write_fcd(folder, LONLAT)
    degrees = read_trace(folder / "fcd.xml", net=frame, net_stated=False)
    assert np.column_stack((degrees.lon, degrees.lat)) == pytest.approx(LONLAT, abs=1e-3)
    close = read_trace(folder / "fcd.xml", net=frame, net_stated=True)
    assert abs(close.lon[0] - LONLAT[0, 0]) < 0.5
    assert abs(close.lat[0] - LONLAT[0, 1]) > 1e-3
    (folder / "town.net.xml").write_text("<net/>")
    with pytest.raises(InputError, match="has no <location>"):
        NetFrame.from_file(folder / "town.net.xml")

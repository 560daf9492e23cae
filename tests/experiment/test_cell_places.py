"""Cells where no traffic is are refused; the share of the vehicles' time in no cell is stated."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from pyproj import Geod, Transformer

import scenarios
from scenarios import ScenarioError
from simulator.experiment.assembly.city import build_city
from simulator.experiment.components import RunComponents
from simulator.experiment.run import run_scenario

CITIES = {"Munich": (11.57, 48.13), "New York": (-73.98, 40.75), "Sydney": (151.2, -33.87), "Nairobi": (36.82, -1.29)}


def anchored(lon, lat):
    return [f"roads.anchor.lon={lon}", f"roads.anchor.lat={lat}"]


def zones_file(path, places, *, crs=None):
    """Write a rectangle about the roads of `tiny`, from a corner at each place."""
    corners = [(0, 0), (0.006, 0), (0.006, 0.006), (0, 0.006), (0, 0)]
    rings = [[list(at(lon, lat)) for lon, lat in corners] for at in places]
    features = [
        {"type": "Feature", "properties": {"n": f"z{i}"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for i, ring in enumerate(rings)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features} | ({"crs": crs} if crs else {})))
    return [f'cells={{kind="zones",file="{path}",name="n"}}']


def refusal(overrides):
    with pytest.raises(ScenarioError) as caught:
        build_city(scenarios.load("tiny", overrides=overrides))
    (fault,) = caught.value.faults
    assert fault.path == "cells"
    return fault.rule


@pytest.mark.parametrize("city", CITIES)
def test_swapped_zones_are_refused_with_the_distance(city, tmp_path):
    """New York's and Sydney's swapped zones are not even in the plane of the city."""
    lon, lat = CITIES[city]
    cells = zones_file(tmp_path / "z.geojson", [lambda x, y: (lat + y, lon + x)])
    if abs(lon) > 90:
        assert "are longitude and latitude swapped?" in refusal([*anchored(lon, lat), *cells])
        return
    rule = refusal([*anchored(lon, lat), *cells])
    _, _, away_m = Geod(ellps="WGS84").inv(lat + 0.003, lon + 0.003, lon + 0.0027, lat + 0.0027)
    stated_km = float(re.search(r"is ([0-9,]+) km from the middle of the roads", rule)[1].replace(",", ""))
    assert stated_km == pytest.approx(away_m / 1000, abs=3)
    assert rule.endswith("with their two coordinates swapped they are in the city: swap them")


def test_zones_of_another_city_are_refused_without_that_hint(tmp_path):
    rule = refusal([*anchored(11.57, 48.13), *zones_file(tmp_path / "z.geojson", [lambda x, y: (13.4 + x, 52.5 + y)])])
    assert "are they of this city" in rule
    assert float(re.search(r"is (\d+) km", rule)[1]) == pytest.approx(503, abs=3)


def test_zones_in_metres_without_a_system_are_refused(tmp_path):
    path = tmp_path / "z.geojson"
    rule = refusal(zones_file(path, [lambda x, y: (x * 1e5, y * 1e5)]))
    assert "got 0 to 600 and 0 to 600: are they metres?" in rule
    assert 'GeoJSON without a member "crs" is in degrees of WGS84' in rule


@pytest.mark.parametrize("plane", ["lonlat", "EPSG:32632"])
@pytest.mark.parametrize("swapped", [True, False])
def test_stations_elsewhere_are_refused(swapped, plane, tmp_path):
    lonlat = np.array([[11.5712, 48.1312], [11.5723, 48.1323]])
    xy = lonlat
    if plane != "lonlat":
        xy = np.column_stack(Transformer.from_crs("EPSG:4326", plane, always_xy=True).transform(*lonlat.T))
    if swapped:
        xy = xy[:, ::-1]
    columns = ("lon", "lat") if plane == "lonlat" else ("x", "y")
    pd.DataFrame(xy, columns=columns).assign(name=["a", "b"]).to_csv(tmp_path / "s.csv", index=False)
    named = f'columns={{name="name",{columns[0]}="{columns[0]}",{columns[1]}="{columns[1]}"}}'
    crs = "" if plane == "lonlat" else f',crs="{plane}"'
    cells = [f'cells={{kind="stations",file="{tmp_path / "s.csv"}",{named},radius_m=300{crs}}}']
    there = anchored(11.57, 48.13)
    if not swapped:
        assert build_city(scenarios.load("tiny", overrides=[*there, *cells])).cells.count == 2
        return
    assert refusal([*there, *cells]).endswith("with their two coordinates swapped they are in the city: swap them")


def test_one_small_cell_is_no_whole_city(tmp_path):
    """And a cell that covers all of it is, whatever its kind."""
    corner = zones_file(tmp_path / "a.geojson", [lambda x, y: (x / 12, y / 12)])
    whole = zones_file(tmp_path / "b.geojson", [lambda x, y: (x * 2 - 0.003, y * 2 - 0.003)])
    for overrides, warned in ((corner, False), (whole, True), (["cells.size_m=5000"], True)):
        warnings = RunComponents.build(scenarios.load("tiny", overrides=overrides)).warnings()
        assert any(warning.code == "one_cell" for warning in warnings) is warned


def test_a_zone_between_two_nodes_is_in_traffic(tmp_path):
    """Vehicles pass through it, though no node is in it."""
    cells = zones_file(tmp_path / "z.geojson", [lambda x, y: (0.0004 + x / 60, y / 60 - 5e-5)])
    assert build_city(scenarios.load("tiny", overrides=cells)).cells.count == 1


def test_the_share_of_the_time_in_no_cell_is_stated(tmp_path):
    half = zones_file(tmp_path / "z.geojson", [lambda x, y: (x - 0.001, y / 3 - 0.001)])
    outside, present = [], []

    def watch(run):
        for part in range(1, 21):
            yield run.until(run.end_s * part / 20)
            vehicles = run.vehicles()
            here = vehicles["state"] == "on_road"
            present.append(int(here.sum()))
            outside.append(int((vehicles["cell"][here] == 0).sum()))

    data = run_scenario("tiny", overrides=half, processes=[watch])
    notes = data.facts["traffic"]["notes"]
    (note,) = [note for note in notes if "vehicle-time" in note]
    share = float(re.search(r"run, ([0-9.]+) %", note)[1]) / 100
    assert 0.5 < share < 1
    assert share == pytest.approx(sum(outside) / sum(present), abs=0.01)
    assert note in data.facts["warnings"]
    assert not any("vehicle-time" in note for note in run_scenario("tiny").facts["traffic"]["notes"])

"""Units of roads: a road has the same travel time in all of them, and implausible speeds give a warning."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from osm_town import NODES, WAYS, xml
from pyproj import Geod
from read_roads import read_gmns, read_osm, read_tables, read_tntp
from small_networks import tntp_network, tntp_nodes, write_gmns_text

import scenarios
from scenarios import field_types
from scenarios.field_types import METRES, METRES_PER_SECOND, size_of
from simulator.experiment.assembly.roads import build_roads
from simulator.files.errors import InputError
from simulator.files.messages import texts_of, warnings_among
from simulator.roads.plausibility import speed_warnings
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics

DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
LENGTH_M = 500.0
needs_data = pytest.mark.skipif(
    not (DATA / "tntp").is_dir(),
    reason="CROWDVEIL_DATA names no folder with tntp: real data is not part of the project",
)


def tntp(folder, mps):
    rows = ((1, 2, 1800, LENGTH_M, LENGTH_M / mps), (2, 1, 1800, LENGTH_M, LENGTH_M / mps))
    # Connectors without length and time, as in published networks, take a default and carry no information on units.
    rows += tuple((a, b, 1800, 0, 0) for a, b in ((2, 3), (3, 2)))
    (folder / "net").write_text(tntp_network(zones=0, nodes=3, first=1, rows=rows))
    (folder / "node").write_text(tntp_nodes(((1, -75, 40), (2, -75, 40.0045), (3, -75, 40.2))))
    return read_tntp(network=folder / "net", nodes=folder / "node", length_m=1.0, time_s=1.0)[1].notes()


def grid(_folder, mps):
    roads = {"source": "grid", "rows": 3, "columns": 3, "spacing_m": 200, "speed_mps": mps, "lanes": 1}
    return build_roads(scenarios.load("tiny").with_({"roads": roads}))[1]


def osm(folder, mps):
    ways = {way: (nodes, {**tags, "maxspeed": f"{mps * 3.6:g}"}) for way, (nodes, tags) in WAYS.items()}
    ways = {way: (nodes, {k: v for k, v in tags.items() if ":" not in k}) for way, (nodes, tags) in ways.items()}
    (folder / "town.osm").write_text(xml(NODES, ways))
    return read_osm(folder / "town.osm")[1].notes()


@pytest.mark.parametrize("reader", [tntp, osm, grid])
def test_implausible_speeds_give_a_warning(reader, tmp_path):
    """As for every other format: readers return tables, of which one function makes networks."""
    said = {mps: texts_of(warnings_among(reader(tmp_path, mps))) for mps in (36.0, 50.0, 13.9 / 3.6)}
    assert said[36.0] == []
    (fast,), (slow,) = said[50.0], said[13.9 / 3.6]
    assert "free-flow speed above 140 km/h (median 180 km/h, highest 180 km/h): check the units" in fast
    assert "half of the length of links has a free-flow speed of 13.9 km/h or less, slower than a bicycle" in slow


@pytest.mark.parametrize(("fast", "warned"), [(0, False), (99, False), (101, True), (1000, True)])
def test_speed_warning_depends_on_length_and_not_on_link_number(fast, warned):
    """Of 1,000 m of links, `fast` metres are above 140 km/h, in one link or in many; the others have city speeds."""
    for pieces in (1, 50):
        length = np.append(np.full(pieces, fast / pieces), np.full(3, (1000 - fast) / 3))
        speed = np.append(np.full(pieces, 40.0), np.full(3, 14.0))
        assert bool(speed_warnings(speed, length, file="f")) == warned
        unknown = np.append(speed, np.full(40, np.nan)), np.append(length, np.full(40, 1e6))
        assert speed_warnings(*unknown, file="f") == speed_warnings(speed, length, file="f")


FEET, MILES = 0.3048, 1609.344
REAL = {
    "Anaheim": ("Anaheim_net.tntp", "anaheim_nodes.geojson", "EPSG:4326", (FEET, 60.0), [(1.0, 60.0)]),
    "Chicago-Sketch": (
        "ChicagoSketch_net.tntp",
        "ChicagoSketch_node.tntp",
        "EPSG:26771",
        (MILES, 60.0),
        [(MILES, 1.0)],
    ),
    "SiouxFalls": (
        "SiouxFalls_net.tntp",
        "SiouxFalls_node.tntp",
        "EPSG:4326",
        (500.0, 36.0),
        [(500.0, 1.0), (500.0, 3600.0), (FEET, 36.0), (MILES, 36.0)],
    ),
}
"""Files, coordinate system, metres and seconds that a unit is, and others that it is not."""


@needs_data
@pytest.mark.parametrize("name", REAL)
def test_published_networks_give_warnings_only_in_wrong_units(name):
    network, nodes, crs, right, wrong = REAL[name]
    files = {"network": DATA / "tntp" / name / network, "nodes": DATA / "tntp" / name / nodes, "crs": crs}

    def warnings(units):
        length_m, time_s = units
        said = texts_of(read_tntp(**files, length_m=length_m, time_s=time_s)[1].warnings)
        return [text for text in said if "km/h" in text]

    assert warnings(right) == []
    assert [len(warnings(units)) for units in wrong] == [1] * len(wrong)


@needs_data
def test_berlin_in_metres_and_seconds_gives_a_warning():
    folder = DATA / "tntp" / "Berlin-Mitte-Center"
    files = {"network": folder / "berlin-mitte-center_net.tntp", "nodes": folder / "berlin-mitte-center_node.tntp"}
    with pytest.raises(InputError, match="agree if one unit of the coordinates is 1,60"):  # no system is stated
        read_tntp(**files, length_m=1.0, time_s=1.0)
    crs = "+proj=tmerc +lat_0=52.5 +lon_0=13.35 +to_meter=1609.344"
    (said,) = [d for d in texts_of(read_tntp(**files, length_m=1.0, time_s=1.0, crs=crs)[1].warnings) if "km/h" in d]
    assert "highest 216 km/h" in said


MILE_M = 1609.344
"""A mile, which is 5,280 feet."""
SECONDS = 96.0
SPEED_MPS = MILE_M / SECONDS
LON, LAT = -75.0, 40.0
DEGREES = Geod(ellps="WGS84").fwd(LON, LAT, 0.0, MILE_M)[1] - LAT
"""A mile along the meridian of 75° west, north of 40°."""
GRID_SCALE = 0.9996
"""Of UTM on its central meridian: a distance in its metres is that much of the distance on the ground."""


def tntp_road(tmp_path, length, unit, time, time_unit):
    (tmp_path / "net").write_text(
        tntp_network(zones=0, nodes=2, first=1, rows=((1, 2, 1800, length, time), (2, 1, 1800, length, time))),
        encoding="utf-8",
    )
    (tmp_path / "node").write_text(tntp_nodes(((1, LON, LAT), (2, LON, LAT + DEGREES))), encoding="utf-8")
    units = {"length_m": size_of(unit, METRES), "time_s": size_of(time_unit, field_types.SECONDS)}
    return read_tntp(network=tmp_path / "net", nodes=tmp_path / "node", **units)[0]


def gmns(tmp_path, length, unit, speed, speed_unit, *, config=False):
    nodes = f"node_id,x_coord,y_coord\n1,{LON},{LAT}\n2,{LON},{LAT + DEGREES}\n"
    links = f"link_id,from_node_id,to_node_id,directed,length,free_speed\n1,1,2,0,{length},{speed!r}\n"
    if config:
        return read_gmns(
            write_gmns_text(tmp_path / "g", nodes, links, config=f"long_length,speed\n{unit},{speed_unit}\n")
        )[0]
    folder = write_gmns_text(tmp_path / "g", nodes, links)
    return read_gmns(folder, length_m=size_of(unit, METRES), speed_mps=size_of(speed_unit, METRES_PER_SECOND))[0]


def tables(tmp_path, speed_column, speed, *, length_m=None):
    pd.DataFrame({"id": [1, 2], "lon": [LON, LON], "lat": [LAT, LAT + DEGREES]}).to_csv(tmp_path / "n.csv", index=False)
    edges = pd.DataFrame({"a": [1, 2], "b": [2, 1], "v": [speed, speed]})
    columns = {"node": "id", "lon": "lon", "lat": "lat", "from": "a", "to": "b", speed_column: "v"}
    if length_m is not None:
        edges["len"], columns["length_m"] = length_m, "len"
    edges.to_csv(tmp_path / "e.csv", index=False)
    return read_tables(nodes=tmp_path / "n.csv", edges=tmp_path / "e.csv", columns=columns)[0]


KPH, MPH = SPEED_MPS * 3.6, SPEED_MPS * 3600 / 1609.344

EXACT = {
    "tntp_road: feet, minutes": lambda at: tntp_road(at, 5280, "feet", 1.6, "minutes"),
    "tntp_road: miles, hours": lambda at: tntp_road(at, 1, "miles", SECONDS / 3600, "h"),
    "tntp_road: km, seconds": lambda at: tntp_road(at, 1.609344, "km", SECONDS, "s"),
    "tntp_road: a unit of its own": lambda at: tntp_road(at, 2, MILE_M / 2, 1, SECONDS),
    "gmns: metres, km/h": lambda at: gmns(at, MILE_M, "m", KPH, "kph"),
    "gmns: feet, mph": lambda at: gmns(at, 5280, "ft", MPH, "mph"),
    "gmns: miles, m/s": lambda at: gmns(at, 1, "mi", SPEED_MPS, "mps"),
    "gmns: mile, mph by the config table": lambda at: gmns(at, 1, "mile", MPH, "mph", config=True),
    "tables: metres, m/s": lambda at: tables(at, "speed_mps", SPEED_MPS, length_m=MILE_M),
    "tables: metres, km/h": lambda at: tables(at, "speed_kph", KPH, length_m=MILE_M),
    "tables: metres, mph": lambda at: tables(at, "speed_mph", MPH, length_m=MILE_M),
}
DEGREES_ALONE = {
    "gmns: degrees": lambda at: gmns(at, "", "m", KPH, "kph"),
    "tntp_road: degrees": lambda at: tntp_road(at, 0, "feet", 1.6, "minutes"),
    "tables: degrees": lambda at: tables(at, "speed_mps", SPEED_MPS),
}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_travel_time_is_equal_in_all_units(name, tmp_path):
    links = EXACT[name](tmp_path).links
    physics = LinkPhysics.build(links, Clock(1.0))
    assert links.length_m == pytest.approx([MILE_M, MILE_M], rel=1e-12)
    assert links.free_flow_s == pytest.approx([SECONDS, SECONDS], rel=1e-12)
    assert physics.free.tolist() == [96 * 1024, 96 * 1024]


@pytest.mark.parametrize("name", sorted(DEGREES_ALONE))
def test_travel_time_is_equal_from_degrees(name, tmp_path):
    links = DEGREES_ALONE[name](tmp_path).links
    assert links.length_m == pytest.approx([MILE_M * GRID_SCALE] * 2, rel=1e-6)
    # A TNTP link of length 0 keeps its free-flow time; elsewhere the time follows from length and speed.
    seconds = SECONDS if name.startswith("tntp_road") else SECONDS * GRID_SCALE
    assert links.free_flow_s == pytest.approx([seconds] * 2, rel=1e-6)
    assert LinkPhysics.build(links, Clock(1.0)).free == pytest.approx([seconds * 1024] * 2, abs=1)

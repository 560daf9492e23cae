"""Implausible vehicle speeds give a warning for every file format; those of real networks do not."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from osm_town import NODES, WAYS, xml
from read_roads import read_gmns, read_osm, read_sumo_net, read_tables, read_tntp
from small_networks import tntp_network, tntp_nodes, write_gmns_text
from test_sumo_net import LOCATION, edge, junction, lane

import scenarios
from simulator.experiment.assembly.roads import build_roads
from simulator.files.errors import InputError
from simulator.files.messages import texts_of, warnings_among
from simulator.formats.geo.geopackage import write_geopackage
from simulator.roads import build_grid
from simulator.roads.plausibility import speed_warnings

DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
LENGTH_M = 500.0


def tables(folder, mps):
    pd.DataFrame({"id": [1, 2], "lon": [-75, -75], "lat": [40, 40.0045]}).to_csv(folder / "n.csv", index=False)
    pd.DataFrame({"a": [1, 2], "b": [2, 1], "v": mps, "m": LENGTH_M}).to_csv(folder / "e.csv", index=False)
    columns = {"node": "id", "lon": "lon", "lat": "lat", "from": "a", "to": "b", "speed_mps": "v", "length_m": "m"}
    return read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=columns)[1].notes()


def tntp(folder, mps):
    rows = ((1, 2, 1800, LENGTH_M, LENGTH_M / mps), (2, 1, 1800, LENGTH_M, LENGTH_M / mps))
    # Connectors without length and time, as in published networks, take a default and carry no information on units.
    rows += tuple((a, b, 1800, 0, 0) for a, b in ((2, 3), (3, 2)))
    (folder / "net").write_text(tntp_network(zones=0, nodes=3, first=1, rows=rows))
    (folder / "node").write_text(tntp_nodes(((1, -75, 40), (2, -75, 40.0045), (3, -75, 40.2))))
    return read_tntp(network=folder / "net", nodes=folder / "node", length_m=1.0, time_s=1.0)[1].notes()


def gmns(folder, mps):
    links = "link_id,from_node_id,to_node_id,directed,length,free_speed\n"
    links += f"1,1,2,0,{LENGTH_M},{mps!r}\n2,2,3,0,9000,\n"
    nodes = "node_id,x_coord,y_coord\n1,-75,40\n2,-75,40.0045\n3,-75,40.0855\n"
    return read_gmns(write_gmns_text(folder / "g", nodes, links), length_m=1.0, speed_mps=1.0)[1].notes()


def osm(folder, mps):
    ways = {way: (nodes, {**tags, "maxspeed": f"{mps * 3.6:g}"}) for way, (nodes, tags) in WAYS.items()}
    ways = {way: (nodes, {k: v for k, v in tags.items() if ":" not in k}) for way, (nodes, tags) in ways.items()}
    (folder / "town.osm").write_text(xml(NODES, ways))
    return read_osm(folder / "town.osm")[1].notes()


def sumo(folder, mps):
    there = edge("ab", "a", "b", lane("ab", 0, speed=mps))
    back = edge("ba", "b", "a", lane("ba", 0, speed=mps, shape="100,0 0,0"))
    ends = junction("a") + junction("b", x=100.0)
    (folder / "s.net.xml").write_text(f'<net version="1.9">{LOCATION}{there}{back}{ends}</net>')
    return read_sumo_net(folder / "s.net.xml")[1].notes()


def small_grid(mps):
    return build_grid(rows=3, columns=3, spacing_x_m=200, spacing_y_m=200, speed_mps=mps, lanes=1)


def notes_of(**roads):
    return build_roads(scenarios.load("tiny").with_({"roads": roads}))[1]


def grid(_folder, mps):
    return notes_of(source="grid", rows=3, columns=3, spacing_m=200, speed_mps=mps, lanes=1)


def geopackage(folder, mps):
    write_geopackage(small_grid(mps), folder / "r.gpkg", overwrite=True)
    return notes_of(source="geopackage", path=str(folder / "r.gpkg"))


READERS = (tables, tntp, gmns, osm, sumo, grid, geopackage)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_warns_of_implausible_speeds(reader, tmp_path):
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


@pytest.mark.skipif(
    not (DATA / "tntp").is_dir(),
    reason="CROWDVEIL_DATA names no folder with tntp: real data is not part of the project",
)
@pytest.mark.parametrize("name", REAL)
def test_published_networks_give_warnings_only_in_wrong_units(name):
    network, nodes, crs, right, wrong = REAL[name]
    files = {"network": DATA / "tntp" / name / network, "nodes": DATA / "tntp" / name / nodes, "crs": crs}

    def warnings(units):
        length_m, time_s = units
        return [
            said
            for said in texts_of(read_tntp(**files, length_m=length_m, time_s=time_s)[1].warnings)
            if "km/h" in said
        ]

    assert warnings(right) == []
    assert [len(warnings(units)) for units in wrong] == [1] * len(wrong)


@pytest.mark.skipif(
    not (DATA / "tntp").is_dir(),
    reason="CROWDVEIL_DATA names no folder with tntp: real data is not part of the project",
)
def test_berlin_in_metres_and_seconds_gives_a_warning():
    folder = DATA / "tntp" / "Berlin-Mitte-Center"
    files = {"network": folder / "berlin-mitte-center_net.tntp", "nodes": folder / "berlin-mitte-center_node.tntp"}
    with pytest.raises(InputError, match="agree if one unit of the coordinates is 1,60"):  # no system is stated
        read_tntp(**files, length_m=1.0, time_s=1.0)
    crs = "+proj=tmerc +lat_0=52.5 +lon_0=13.35 +to_meter=1609.344"
    (said,) = [d for d in texts_of(read_tntp(**files, length_m=1.0, time_s=1.0, crs=crs)[1].warnings) if "km/h" in d]
    assert "highest 216 km/h" in said

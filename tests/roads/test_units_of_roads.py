"""A road of known length, in the units used by files, always has the same travel time."""

import numpy as np
import pandas as pd
import pytest
from pyproj import Geod
from read_roads import read_gmns, read_tables, read_tntp
from small_networks import tntp_network, tntp_nodes, write_gmns_text

from scenarios.field_types import in_metres, in_mps, in_seconds
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics

LENGTH_M = 1609.344
"""A mile, which is 5,280 feet."""
SECONDS = 96.0
SPEED_MPS = LENGTH_M / SECONDS
LON, LAT = -75.0, 40.0
DEGREES = Geod(ellps="WGS84").fwd(LON, LAT, 0.0, LENGTH_M)[1] - LAT
"""A mile along the meridian of 75° west, north of 40°."""
GRID_SCALE = 0.9996
"""Of UTM on its central meridian: a distance in its metres is that much of the distance on the ground."""


def tntp(tmp_path, length, unit, time, time_unit):
    (tmp_path / "net").write_text(
        tntp_network(zones=0, nodes=2, first=1, rows=((1, 2, 1800, length, time), (2, 1, 1800, length, time))),
        encoding="utf-8",
    )
    (tmp_path / "node").write_text(tntp_nodes(((1, LON, LAT), (2, LON, LAT + DEGREES))), encoding="utf-8")
    units = {"length_m": in_metres(unit), "time_s": in_seconds(time_unit)}
    return read_tntp(network=tmp_path / "net", nodes=tmp_path / "node", **units)[0]


def gmns(tmp_path, length, unit, speed, speed_unit, *, config=False):
    nodes = f"node_id,x_coord,y_coord\n1,{LON},{LAT}\n2,{LON},{LAT + DEGREES}\n"
    links = f"link_id,from_node_id,to_node_id,directed,length,free_speed\n1,1,2,0,{length},{speed!r}\n"
    if config:
        return read_gmns(
            write_gmns_text(tmp_path / "g", nodes, links, config=f"long_length,speed\n{unit},{speed_unit}\n")
        )[0]
    folder = write_gmns_text(tmp_path / "g", nodes, links)
    return read_gmns(folder, length_m=in_metres(unit), speed_mps=in_mps(speed_unit))[0]


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
    "tntp: feet, minutes": lambda at: tntp(at, 5280, "feet", 1.6, "minutes"),
    "tntp: miles, hours": lambda at: tntp(at, 1, "miles", SECONDS / 3600, "h"),
    "tntp: km, seconds": lambda at: tntp(at, 1.609344, "km", SECONDS, "s"),
    "tntp: a unit of its own": lambda at: tntp(at, 2, LENGTH_M / 2, 1, SECONDS),
    "gmns: metres, km/h": lambda at: gmns(at, LENGTH_M, "m", KPH, "kph"),
    "gmns: feet, mph": lambda at: gmns(at, 5280, "ft", MPH, "mph"),
    "gmns: miles, m/s": lambda at: gmns(at, 1, "mi", SPEED_MPS, "mps"),
    "gmns: mile, mph by the config table": lambda at: gmns(at, 1, "mile", MPH, "mph", config=True),
    "tables: metres, m/s": lambda at: tables(at, "speed_mps", SPEED_MPS, length_m=LENGTH_M),
    "tables: metres, km/h": lambda at: tables(at, "speed_kph", KPH, length_m=LENGTH_M),
    "tables: metres, mph": lambda at: tables(at, "speed_mph", MPH, length_m=LENGTH_M),
}
DEGREES_ALONE = {
    "gmns: degrees": lambda at: gmns(at, "", "m", KPH, "kph"),
    "tntp: degrees": lambda at: tntp(at, 0, "feet", 1.6, "minutes"),
    "tables: degrees": lambda at: tables(at, "speed_mps", SPEED_MPS),
}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_travel_time_is_equal_in_all_units(name, tmp_path):
    links = EXACT[name](tmp_path).links
    physics = LinkPhysics.build(links, Clock(1.0))
    assert links.length_m == pytest.approx([LENGTH_M, LENGTH_M], rel=1e-12)
    assert links.free_flow_s == pytest.approx([SECONDS, SECONDS], rel=1e-12)
    assert physics.free.tolist() == [96 * 1024, 96 * 1024]


@pytest.mark.parametrize("name", sorted(DEGREES_ALONE))
def test_travel_time_is_equal_from_degrees(name, tmp_path):
    links = DEGREES_ALONE[name](tmp_path).links
    assert links.length_m == pytest.approx([LENGTH_M * GRID_SCALE] * 2, rel=1e-6)
    # A TNTP link of length 0 keeps its free-flow time; elsewhere the time follows from length and speed.
    seconds = SECONDS if name.startswith("tntp") else SECONDS * GRID_SCALE
    assert links.free_flow_s == pytest.approx([seconds] * 2, rel=1e-6)
    assert LinkPhysics.build(links, Clock(1.0)).free == pytest.approx([seconds * 1024] * 2, abs=1)


@pytest.mark.parametrize("unit", ["m", "km", "ft", "mi"])
def test_length_is_equal_in_all_units(unit, tmp_path):
    network = tntp(tmp_path, LENGTH_M / in_metres(unit), unit, SECONDS, "s")
    assert network.links.length_m == pytest.approx(np.full(2, LENGTH_M), rel=1e-12)

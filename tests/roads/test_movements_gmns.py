"""Movements and signal timing of GMNS, read from handwritten tables, and written to GeoPackage and read back."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyogrio
import pytest
from read_roads import read_geopackage, read_gmns, read_osm, read_sumo_net
from small_networks import same_network, write_gmns_text

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.geo.geopackage import write_geopackage

DATA = Path(os.environ.get("CROWDVEIL_DATA", "nowhere"))
NODES = "node_id,x_coord,y_coord\n1,-71.10,42.36\n2,-71.09,42.36\n3,-71.09,42.37\n"
LINKS = (
    "link_id,from_node_id,to_node_id,directed,length,free_speed,lanes\n"
    "ab,1,2,1,830,36,3\nbc,2,3,0,1115,36,2\nca,3,1,1,1400,36,1\nba,2,1,1,830,36,1\n"
)
MOVEMENTS = (
    "mvmt_id,node_id,ib_link_id,start_ib_lane,end_ib_lane,ob_link_id,start_ob_lane,end_ob_lane,type,ctrl_type,"
    "allowed_uses\n"
    "m1,2,ab,1,2,bc,1,2,LEFT,signal,\n"
    "m2,2,ab,3,,bc,2,,right,signal,\n"
    "m3,2,bc,,,ba,,,thru,stop_4_way,auto\n"
    "m4,2,ab,-1,,ba,1,,uturn,yield,bike\n"
)
TIMING = {
    "signal_controller": "controller_id\nK\n",
    "signal_timing_plan": "timing_plan_id,controller_id,cycle_length\np1,K,90\np2,K,60\n",
    "signal_timing_phase": (
        "timing_phase_id,timing_plan_id,signal_phase_num,min_green,max_green,clearance,ring,barrier,position\n"
        "a,p1,1,20,,5,1,1,1\nb,p1,2,15,,5,1,1,2\nc,p1,3,30,,5,2,1,1\nd,p1,4,30,,5,1,2,1\ne,p2,1,10,,2,1,1,1\n"
    ),
    "signal_phase_mvmt": (
        "signal_phase_mvmt_id,timing_phase_id,mvmt_id,link_id,protection\n"
        "1,a,m1,,protected\n2,d,m1,,permitted\n3,b,m2,,\n4,c,m2,,rtor\n5,c,,x,\n6,e,m1,,\n"
    ),
}


def folder(path, movement=MOVEMENTS, links=LINKS, **more):
    return write_gmns_text(path / "roads", nodes=NODES, links=links, movement=movement, **more)


def rows_of(roads):
    """Return movements by the nodes at which their links begin and end."""
    links, names = roads.links, roads.node_names
    rows = {}
    for row in roads.movements.to_dict("records"):
        assert links.to_node[row["from_link"]] == links.from_node[row["to_link"]] == row["node"]
        ends = [names[links.from_node[row["from_link"]]], names[row["node"]], names[links.to_node[row["to_link"]]]]
        rows.setdefault(tuple(ends), []).append(tuple(row.values())[3:10])
    return rows


def test_movements_of_lanes_and_directions(tmp_path):
    """Lanes are counted from the inside in GMNS, and from the right here; link bc is a road for each direction."""
    roads, _ = read_gmns(folder(tmp_path))
    assert rows_of(roads) == {
        (1, 2, 3): [
            (0, 0, True, "right", None, "2", -1),
            (1, 0, True, "left", None, "2", -1),
            (2, 1, True, "left", None, "2", -1),
        ],
        (3, 2, 1): [(-1, -1, True, "straight", "all_way_stop", None, -1)],
        (1, 2, 1): [(-1, 0, False, "u_turn", "yield", None, -1)],
        (3, 2, 3): [(-1, -1, False, None, None, None, -1)],
    }
    assert roads.signals.empty


def test_phases_of_rings_become_green_windows(tmp_path):
    """Ring 1 has a 0-20 and b 25-40 before the barrier at 45 s, then d 45-75; ring 2 waits for it."""
    roads, report = read_gmns(folder(tmp_path, **TIMING))
    assert [tuple(row) for row in roads.signals.itertuples(index=False)] == [
        ("K", 0, 0.0, 20.0, True, 90.0, 0.0, False),
        ("K", 0, 45.0, 75.0, False, 90.0, 0.0, False),
        ("K", 1, 25.0, 40.0, True, 90.0, 0.0, False),
    ]
    assert [row[-2:] for row in rows_of(roads)[1, 2, 3]] == [("K", 1), ("K", 0), ("K", 0)]
    assert any("left out 1 timing plan" in text for text in texts_of(report.notes()))


def test_a_maximum_green_makes_an_actuated_signal(tmp_path):
    timing = TIMING | {"signal_timing_phase": TIMING["signal_timing_phase"].replace("a,p1,1,20,,", "a,p1,1,20,35,")}
    roads, _ = read_gmns(folder(tmp_path, **timing))
    assert roads.signals["actuated"].all()
    assert roads.signals["to_s"].tolist() == [35.0, 90.0, 55.0]


def test_tables_of_older_versions_are_named(tmp_path):
    phases = TIMING["signal_phase_mvmt"].replace("timing_phase_id", "signal_phase_id")
    roads, report = read_gmns(folder(tmp_path, **TIMING | {"signal_phase_mvmt": phases}))
    assert roads.signals.empty
    assert any("signal timing was not read: it lacks timing_phase_id" in text for text in texts_of(report.notes()))


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("movement", "m1,2,ab", "m1,2,zz", "row 1: ib_link_id must be in the link table, got 'zz'"),
        ("movement", "m1,2,", "m1,9,", "row 1: node_id must be in the node table, got '9'"),
        ("movement", "m2,", "m1,", "rows 1, 2: mvmt_id must be an identifier no other row has"),
        ("movement", "ab,1,2", "ab,1.5,2", "row 1: start_ib_lane must be a whole number"),
        ("signal_timing_phase", ",20,", ",-1,", "row 1: min_green must be a finite number, 0 or more"),
        ("signal_timing_phase", "a,p1", "a,p9", "row 1: timing_plan_id must be in the signal_timing_plan table"),
        ("signal_phase_mvmt", "1,a,", "1,z,", "row 1: timing_phase_id must be in the signal_timing_phase table"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, table, old, new, message):
    tables = {"movement": MOVEMENTS} | TIMING
    assert old in tables[table]
    tables[table] = tables[table].replace(old, new)
    with pytest.raises(InputError) as caught:
        read_gmns(folder(tmp_path, **tables))
    assert f"{table}.csv: " in caught.value.faults[0]
    assert message in re.sub(r" \(column '\w+'\)", "", caught.value.faults[0])


def same_movements(one, other):
    pd.testing.assert_frame_equal(one.movements, other.movements)
    pd.testing.assert_frame_equal(one.signals, other.signals)


def written(roads, path):
    write_geopackage(roads, path / "roads.gpkg")
    return read_geopackage(path / "roads.gpkg")


def test_written_tables_are_read_back(tmp_path):
    roads, _ = read_gmns(folder(tmp_path, **TIMING))
    yields = pd.Series([(1, 2), (), None, (0,), (), None], dtype=object)
    paths = {"length_m": [9.1, 0.1 + 0.2, np.nan, 4, 0, 3], "speed_mps": [np.nan, 7.3, 5, 5, 5, 5]}
    roads = replace(roads, movements=roads.movements.assign(**paths, place=[0, 1, 2, -1, 3, 4], yields_to=yields))
    again = written(roads, tmp_path)
    same_network(roads, again)
    same_movements(roads, again)
    assert len(roads.signals) == 3


@pytest.mark.parametrize(
    ("layer", "column", "value", "rule"),
    [
        ("movements", "to_link", 9, "row 1: to_link must be a link of layer links, got 9"),
        ("movements", "turn", "sideways", "row 1: turn must be one of straight, "),
        ("movements", "yields_to_json", "[", "row 1: yields_to_json must be JSON, got '['"),
        ("movements", "allowed", 3, "row 1: allowed must be true or false, got 3"),
        ("movements", "yields_to_json", "3", "row 1: yields_to must be a list of whole numbers of at least 0, got 3"),
        ("signals", "cycle_s", "long", "row 1: cycle_s must be a number, got 'long'"),
    ],
)
def test_layers_that_cannot_be_used_are_refused(tmp_path, layer, column, value, rule):
    roads, _ = read_gmns(folder(tmp_path, **TIMING))
    yields = pd.Series([(1,)] * len(roads.movements), dtype=object)
    write_geopackage(replace(roads, movements=roads.movements.assign(yields_to=yields)), tmp_path / "roads.gpkg")
    frame = pyogrio.read_dataframe(tmp_path / "roads.gpkg", layer=layer)
    pyogrio.write_dataframe(frame.assign(**{column: value}), tmp_path / "roads.gpkg", layer=layer)
    with pytest.raises(InputError) as caught:
        read_geopackage(tmp_path / "roads.gpkg")
    assert f"{tmp_path / 'roads.gpkg'}: layer {layer}: {rule}" in caught.value.faults[0]


REAL = {
    "sumo/pasubio/pasubio_buslanes.net.xml.gz": read_sumo_net,
    "osm_extracts/West-Oakland.osm.bz2": read_osm,
    "gmns/Lima": partial(read_gmns, crs="EPSG:3735", length_m=0.3048, speed_mps=0.44704),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_networks_are_read_back(tmp_path, name):
    if not (DATA / name).exists():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with {name} to read it")
    roads, _ = REAL[name](DATA / name)
    again = written(roads, tmp_path)
    same_network(roads, again)
    same_movements(roads, again)
    assert roads.movements.empty == (name == "gmns/Lima")

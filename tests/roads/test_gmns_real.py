"""The GMNS samples of Lima and Cambridge, read by this reader and by pandas: equal nodes, links and lengths."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely
from read_roads import read_gmns

from simulator.files.messages import texts_of

ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "gmns")
pytestmark = pytest.mark.skipif(
    not ROOT.is_dir(), reason="CROWDVEIL_DATA names no folder with gmns: real data is not part of the project"
)
LIMA = {"crs": "EPSG:3735", "length_m": 0.3048, "speed_mps": 0.44704}
"""Ohio's southern State Plane zone in feet, where Lima's coordinates are Lima; lengths in feet, speeds in mph."""


def test_lima():
    network, report = read_gmns(ROOT / "Lima", **LIMA)
    links = pd.read_csv(ROOT / "Lima" / "link.csv.gz")
    nodes = pd.read_csv(ROOT / "Lima" / "node.csv")
    assert (report.node_rows, report.link_rows) == (len(nodes), len(links))
    assert (len(network.node_names), len(network.links)) == (len(nodes), len(links))
    assert network.total_length_m == pytest.approx(links["length"].sum() * 0.3048, rel=1e-12)
    edge = links.set_index(["from_node_id", "to_node_id"])
    for start, end, data in network.graph.edges(data=True):
        row = edge.loc[start, end]
        assert data["speed_mps"] == pytest.approx(row["free_speed"] * 0.44704)
        assert (data["lanes"], data["capacity_vph"], data["class"]) == (
            row["lanes"],
            row["capacity"],
            row["facility_type"],
        )
    assert network.graph.nodes[5]["zone"] == nodes.set_index("node_id").loc[5, "zone_id"]
    lon, lat = network.to_wgs84(np.median(network.node_xy, axis=0)[None])[0]
    assert (lon, lat) == pytest.approx((-84.1, 40.74), abs=0.05)


def test_lima_geometries_start_at_their_nodes():
    network, report = read_gmns(ROOT / "Lima", **LIMA)
    starts = np.array([shapely.get_point(data["geometry"], 0).coords[0] for *_, data in network.graph.edges(data=True)])
    nodes = np.array([(network.graph.nodes[a]["x"], network.graph.nodes[a]["y"]) for a, _ in network.graph.edges()])
    assert np.hypot(*(starts - nodes).T).max() < 1
    assert not any("direction in which they run" in note for note in texts_of(report.notes()))


def test_cambridge_by_car():
    network, report = read_gmns(ROOT / "Cambridge_Multimodal_Network")
    links = pd.read_csv(ROOT / "Cambridge_Multimodal_Network" / "link.csv.gz")
    cars = links[links["allowed_us"].str.contains("auto")]
    assert len(network.links) + report.loss.links == len(cars)
    assert network.total_length_m + report.loss.length_m == pytest.approx(cars["length"].sum(), rel=1e-12)
    assert [dropped.total for dropped in report.dropped] == [len(links) - len(cars)]
    assert set(network.links.lanes.tolist()) <= set(cars["lanes"].astype(int))


def test_cambridge_lengths_and_capacities_give_warnings():
    found_warnings = texts_of(read_gmns(ROOT / "Cambridge_Multimodal_Network")[1].warnings)
    mercator = "check the unit; lengths measured in Web Mercator are too long by such a factor"
    assert any(f"0.739 times as long as its stated length: {mercator}" in warning for warning in found_warnings)
    assert any(
        "capacity is above 3,000 vehicles/h per lane in 1,885 of 1,885 links" in warning for warning in found_warnings
    )


def test_cambridge_with_swapped_coordinates_is_refused(tmp_path):
    folder = ROOT / "Cambridge_Multimodal_Network"
    nodes = pd.read_csv(folder / "node.csv")
    nodes = nodes.rename(columns={"x_coord": "y_coord", "y_coord": "x_coord"})
    nodes.to_csv(tmp_path / "node.csv", index=False)
    pd.read_csv(folder / "link.csv.gz").to_csv(tmp_path / "link.csv", index=False)
    with pytest.raises(ValueError, match=r"node\.csv: rows 1, 2, .*x_coord must be longitude"):
        read_gmns(tmp_path)


def test_lima_just_north_of_its_zone_gives_no_warning():
    assert read_gmns(ROOT / "Lima", **LIMA)[1].warnings == ()

"""The published TNTP networks, read by this reader and by plain parsing: equal nodes, links, lengths and times."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from read_roads import read_tntp

from simulator.files.messages import texts_of
from simulator.formats.tntp.files import read_flows

ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "tntp")
needs_data = pytest.mark.skipif(
    not ROOT.is_dir(), reason="CROWDVEIL_DATA names no folder with tntp: real data is not part of the project"
)
MILE, FOOT, MINUTE = 1609.344, 0.3048, 60.0
BERLIN = "+proj=tmerc +lat_0=52.5 +lon_0=13.35 +to_meter=1609.344 +datum=WGS84"
"""A system for places in miles; where on the globe they belong is not published."""
NETWORKS = {
    "SiouxFalls": ("SiouxFalls_net.tntp", "SiouxFalls_node.tntp", {"length_m": MILE, "time_s": 36.0}),
    "SiouxFalls by GeoJSON": (
        "SiouxFalls_net.tntp",
        "SiouxFallsCoordinates.geojson",
        {"length_m": MILE, "time_s": 36.0},
    ),
    "Anaheim": ("Anaheim_net.tntp", "anaheim_nodes.geojson", {"length_m": FOOT, "time_s": MINUTE}),
    "Chicago-Sketch": (
        "ChicagoSketch_net.tntp",
        "ChicagoSketch_node.tntp",
        {"length_m": MILE, "time_s": MINUTE, "crs": "EPSG:26771"},
    ),
    "Berlin-Mitte-Center": (
        "berlin-mitte-center_net.tntp",
        "berlin-mitte-center_node.tntp",
        {"length_m": 1.0, "time_s": 1.0, "crs": BERLIN},
    ),
}
by_name = pytest.mark.parametrize("name", sorted(NETWORKS))


def files(name):
    network, nodes, units = NETWORKS[name]
    folder = ROOT / name.split(" ")[0]
    return folder / network, folder / nodes, units


def parsed(path):
    """Rows of a network file as plain numbers: every row after the metadata that starts with a digit."""
    text = path.read_text(encoding="utf-8").split("<END OF METADATA>")[1]
    rows = [line.replace(";", " ").split() for line in text.splitlines() if re.match(r"\s*\d", line)]
    return np.array(rows, dtype=np.float64)


def places(path):
    """Map each node number to x and y."""
    if path.suffix == ".geojson":
        features = json.loads(path.read_text(encoding="utf-8"))["features"]
        return {f["properties"]["id"]: f["geometry"]["coordinates"][:2] for f in features}
    rows = [line.replace(";", " ").split() for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {int(row[0]): [float(row[1]), float(row[2])] for row in rows if row}


@needs_data
@by_name
def test_published_networks_equal_plain_parsing(name):
    network_file, nodes_file, units = files(name)
    network, report = read_tntp(network=network_file, nodes=nodes_file, **units)
    rows, where = parsed(network_file), places(nodes_file)
    assert (report.link_rows, report.node_rows) == (len(rows), len(where))
    assert report.links + report.loss.links == len(rows)
    assert report.nodes + report.loss.nodes == len(where)
    given = rows[:, 3] > 0
    kept = {(start, end) for start, end, _ in network.graph.edges}
    here = np.array([(int(a), int(b)) in kept for a, b in rows[:, :2]])
    assert here.sum() == report.links
    lengths = np.array([network.graph.edges[int(a), int(b), 0]["length_m"] for a, b in rows[here & given, :2]])
    assert lengths == pytest.approx(rows[here & given, 3] * units["length_m"], rel=1e-12)
    if given.all():
        total = network.total_length_m + report.loss.length_m
        assert total == pytest.approx(rows[:, 3].sum() * units["length_m"], rel=1e-12)
    timed = here & (rows[:, 4] > 0)
    seconds = [network.links.free_flow_s[network.graph.edges[int(a), int(b), 0]["link"]] for a, b in rows[timed, :2]]
    assert seconds == pytest.approx(rows[timed, 4] * units["time_s"], rel=1e-9)
    capacity = [
        network.graph.edges[int(a), int(b), 0]["lanes"] * network.graph.edges[int(a), int(b), 0]["capacity_vph"]
        for a, b in rows[here, :2]
    ]
    assert capacity == pytest.approx(rows[here, 2], rel=1e-12)


@needs_data
def test_strong_component_of_published_networks_loses_nothing():
    for name in ("SiouxFalls", "Anaheim", "Chicago-Sketch"):
        network_file, nodes_file, units = files(name)
        _, report = read_tntp(network=network_file, nodes=nodes_file, **units)
        assert (report.loss.nodes, report.lost_zones) == (0, ())


@needs_data
def test_chicago_position_and_lengths_are_plausible():
    network_file, nodes_file, units = files("Chicago-Sketch")
    network, report = read_tntp(network=network_file, nodes=nodes_file, **units)
    assert network.crs.to_epsg() == 32616
    lon, lat = network.to_wgs84(np.median(network.node_xy, axis=0)[None])[0]
    assert (lon, lat) == pytest.approx((-87.8, 41.9), abs=0.2)
    links = network.links
    straight = np.hypot(*(network.node_xy[links.to_node] - network.node_xy[links.from_node]).T)
    assert np.median(links.length_m / straight) == pytest.approx(1, abs=0.05)
    assert any("speed_mps taken as 13.9 m/s in 774 of 2,950 links" in note for note in texts_of(report.notes()))


@needs_data
def test_chicago_in_another_datum_gives_a_warning():
    network_file, nodes_file, units = files("Chicago-Sketch")
    _, report = read_tntp(network=network_file, nodes=nodes_file, **(units | {"crs": "EPSG:3435"}))
    assert "is outside the area of use of 'NAD83 / Illinois East (ftUS)'" in texts_of(report.notes())[0]


@needs_data
def test_zones_and_closed_nodes_equal_the_headers():
    for name, zones, closed in (("SiouxFalls", 24, 0), ("Anaheim", 38, 38), ("Chicago-Sketch", 387, 0)):
        network_file, nodes_file, units = files(name)
        network, _ = read_tntp(network=network_file, nodes=nodes_file, **units)
        assert sum("zone" in data for _, data in network.graph.nodes(data=True)) == zones
        assert (~network.through).sum() == closed


@needs_data
@pytest.mark.parametrize("file", ["SiouxFalls/SiouxFalls", "Anaheim/Anaheim", "Chicago-Sketch/ChicagoSketch"])
def test_published_flows(file):
    flows, rows = read_flows(ROOT / f"{file}_flow.tntp"), parsed(ROOT / f"{file}_net.tntp")
    assert len(flows) == len(rows)
    assert set(zip(flows["from"], flows["to"], strict=True)) == {(int(a), int(b)) for a, b in rows[:, :2]}
    if "Chicago" not in file:
        # The cost of a link is its time by the BPR function of the network file, at the published volume.
        times = {(int(a), int(b)): (fft, b_, p, c) for a, b, c, _, fft, b_, p, *_ in rows.tolist()}
        for start, end, volume, cost in flows.itertuples(index=False):
            fft, b_, power, capacity = times[start, end]
            assert fft * (1 + b_ * (volume / capacity) ** power) == pytest.approx(cost, rel=1e-6)

"""Lengths in an edge table compared with the positions of its nodes."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pyproj import CRS, Transformer
from read_roads import read_gmns, read_tables, read_tntp
from small_networks import tntp_network, tntp_nodes, write_gmns_text

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.plausibility import length_warnings
from simulator.roads.projection import Projection

COLUMNS = {"node": "id", "lon": "lon", "lat": "lat", "from": "src", "to": "dst", "length_m": "len"}


def street_grid(seed=5, side=6):
    """Return nodes about New York in metres of UTM zone 18, and links with detours of up to a fifth."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.uniform(60, 300, size=(2, side)), axis=1)
    row, column = np.divmod(np.arange(side**2), side)
    nodes = pd.DataFrame({"id": row * side + column, "x": 585000 + steps[0, column], "y": 4510000 + steps[1, row]})
    pairs = [(node, node + 1) for node in range(side**2) if (node + 1) % side]
    pairs += [(node, node + side) for node in range(side * (side - 1))]
    a, b = np.array(pairs).T
    xy = nodes[["x", "y"]].to_numpy()
    length = np.hypot(*(xy[b] - xy[a]).T) * rng.uniform(1, 1.2, size=len(a))
    return nodes, pd.DataFrame({"src": [*a, *b], "dst": [*b, *a], "len": [*length, *length]})


def read_grid(folder, *, lengths=1.0, places=1.0, crs="EPSG:32618"):
    nodes, edges = street_grid()
    nodes[["x", "y"]] *= places
    edges["len"] *= lengths
    nodes.to_csv(folder / "n.csv", index=False)
    edges.to_csv(folder / "e.csv", index=False)
    columns = {"node": "id", "x": "x", "y": "y", "from": "src", "to": "dst", "length_m": "len"}
    return texts_of(read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=columns, crs=crs)[1].notes())


FEET = 1 / 0.3048


@pytest.mark.parametrize(
    ("lengths", "warned"), [(1, False), (1.5, False), (FEET, True), (1 / FEET, True), (1 / 1.609344, True)]
)
def test_lengths_in_a_wrong_unit_give_a_warning(lengths, warned, tmp_path):
    notes = read_grid(tmp_path, lengths=lengths)
    assert [note for note in notes if "the straight distance between a link's nodes" in note] == notes
    assert bool(notes) == warned


def test_length_warning_bounds():
    straight = np.full(30, 100.0)
    for times, warned in ((0.89, True), (0.91, False), (1, False), (2.49, False), (2.51, True)):
        assert bool(length_warnings(straight * times, straight, file="f")) == warned


def test_long_lengths_on_a_schematic_map_give_no_warning():
    straight = np.exp(np.random.default_rng(3).normal(5, 0.6, size=200))
    length = np.full(200, np.median(straight) * 4)
    assert length_warnings(length, straight, file="f") == []
    assert length_warnings(straight * 4, straight, file="f") != []


def test_positions_far_outside_the_area_of_use_are_refused(tmp_path):
    """As for every other source of roads: tables choose their plane by the same `Projection.choose`."""
    assert read_grid(tmp_path) == []
    with pytest.raises(InputError, match="within the area of use of 'WGS 84 / UTM zone 18N'"):
        read_grid(tmp_path, places=FEET)


def test_state_plane_feet_read_as_utm_metres_give_a_warning(tmp_path):
    nodes, edges = street_grid()
    to_feet = Transformer.from_crs("EPSG:32618", "EPSG:2263", always_xy=True)
    nodes["x"], nodes["y"] = to_feet.transform(nodes["x"].to_numpy(), nodes["y"].to_numpy())
    nodes.to_csv(tmp_path / "n.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    columns = {"node": "id", "x": "x", "y": "y", "from": "src", "to": "dst"}
    files = {"nodes": tmp_path / "n.csv", "edges": tmp_path / "e.csv", "crs": "EPSG:32618"}
    (area,) = texts_of(read_tables(**files, columns=columns)[1].warnings)
    assert "is outside the area of use of 'WGS 84 / UTM zone 18N'" in area
    both = texts_of(read_tables(**files, columns=columns | {"length_m": "len"})[1].warnings)
    assert both[0] == area
    assert "the straight distance between a link's nodes" in both[1]


@pytest.mark.parametrize(
    ("crs", "lon", "lat", "warned"),
    [
        ("EPSG:3735", -84.11, 40.76, False),  # Lima, Ohio, lies 0.4 degrees north of the zone's area
        ("EPSG:3735", -84.11, 41.7, True),
        ("EPSG:25832", 12.57, 55.68, False),  # Copenhagen: Denmark uses zone 32 east of 12 degrees too
        ("EPSG:25832", 13.4, 52.5, True),
    ],
)
def test_crs_may_be_used_slightly_outside_its_area(crs, lon, lat, warned):
    projection = Projection(CRS(crs), CRS(crs))
    xy = np.array([Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(lon, lat)])
    assert bool(projection.warnings(xy, file="f")) == warned


def reader_of(reader, folder, xy, edges):
    """Write nodes at places, and links of lengths in metres, in a format, and return what reads them."""
    ends = np.column_stack((edges["src"] + 1, edges["dst"] + 1))
    if reader == "tables":
        pd.DataFrame({"id": np.arange(len(xy)), "lon": xy[:, 0], "lat": xy[:, 1]}).to_csv(folder / "n.csv", index=False)
        edges.to_csv(folder / "e.csv", index=False)
        return partial(read_tables, nodes=folder / "n.csv", edges=folder / "e.csv", columns=COLUMNS)
    if reader == "tntp":
        rows = [(a, b, 1800, length, 1) for (a, b), length in zip(ends, edges["len"], strict=True)]
        (folder / "net").write_text(tntp_network(zones=0, nodes=len(xy), first=1, rows=rows))
        (folder / "node").write_text(tntp_nodes([(i + 1, x, y) for i, (x, y) in enumerate(xy)]))
        return partial(read_tntp, network=folder / "net", nodes=folder / "node", length_m=1.0, time_s=60.0)
    node = pd.DataFrame({"node_id": np.arange(1, len(xy) + 1), "x_coord": xy[:, 0], "y_coord": xy[:, 1]})
    link = pd.DataFrame({"link_id": range(len(ends)), "from_node_id": ends[:, 0], "to_node_id": ends[:, 1]})
    link = link.assign(directed=1, length=edges["len"], free_speed=50)
    return partial(read_gmns, write_gmns_text(folder / "g", node.to_csv(index=False), link.to_csv(index=False)))


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        ("tables", r"n\.csv: rows 1, 2, .*: lon must be longitude and lat latitude"),
        ("tntp", "x must be longitude and y latitude"),
        ("gmns", r"node\.csv: rows 1, 2, .*: x_coord must be longitude and y_coord latitude"),
    ],
)
def test_swapped_coordinates_are_detected_by_link_lengths(reader, message, tmp_path):
    """Streets of a town at 10° east, 60° north: swapped, they are stretched in one direction only."""
    side = 12
    row, column = np.divmod(np.arange(side**2), side)
    lonlat = np.column_stack((10 + 0.01 * column, 60 + 0.01 * row))
    ways = [(node, node + 1, 557.0) for node in range(side**2) if (node + 1) % side]
    ways += [(node, node + side, 1113.0) for node in range(side * (side - 1))]
    edges = pd.DataFrame(ways + [(b, a, m) for a, b, m in ways], columns=["src", "dst", "len"])
    roads, report = reader_of(reader, tmp_path, lonlat, edges)()
    assert len(roads.links) == len(edges)
    assert report.warnings == ()
    with pytest.raises(InputError, match=message):
        reader_of(reader, tmp_path, lonlat[:, ::-1], edges)()


@pytest.mark.parametrize("unit_m", [1.0, 1609.344, 1e7])
@pytest.mark.parametrize("reader", ["tntp", "gmns"])
def test_coordinates_of_unknown_unit_are_refused_with_the_unit_that_fits(reader, unit_m, tmp_path):
    """As the published networks of Berlin, in miles: read as degrees, their distances are 69-fold."""
    nodes, edges = street_grid()
    xy = (nodes[["x", "y"]].to_numpy() - [585000, 4510000]) / unit_m
    xy *= min(1.0, 80 / np.abs(xy).max())  # within the range of degrees
    scale = np.hypot(*(xy[edges["dst"]] - xy[edges["src"]]).T) / edges["len"]
    read_it = reader_of(reader, tmp_path, xy, edges)
    with pytest.raises(InputError, match="no coordinate system is stated") as caught:
        read_it()
    stated_m = float(re.search(r"to_meter=([0-9.e+]+)", str(caught.value))[1])
    assert stated_m == pytest.approx(float(np.median(1 / scale)), rel=1e-3)
    roads, report = read_it(crs=f"+proj=tmerc +lat_0=40 +lon_0=-74 +to_meter={stated_m}")  # the remedy stated
    assert [warning for warning in texts_of(report.warnings) if "straight" in warning] == []
    links = roads.links
    straight_m = np.hypot(*(roads.node_xy[links.to_node] - roads.node_xy[links.from_node]).T)
    assert np.median(links.length_m / straight_m) == pytest.approx(1, abs=0.01)


def test_lengths_beside_which_distances_are_infinite_are_doubted_without_a_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (note,) = length_warnings(np.array([1e-310, 1e-309]), np.array([900.0, 500.0]), file="f.csv", units=None)
    assert "is, in the median, inf times its length" in note.text

"""Lengths in an edge table compared with the positions of its nodes."""

import numpy as np
import pandas as pd
import pytest
from pyproj import CRS, Transformer

from simulator.files.errors import InputError
from simulator.roads import read_tables
from simulator.roads.plausibility import length_warnings
from simulator.roads.projection import Projection

COLUMNS = {"node": "id", "lon": "lon", "lat": "lat", "from": "src", "to": "dst", "length_m": "len"}


def read(folder, nodes, edges):
    nodes.to_csv(folder / "n.csv", index=False)
    edges.to_csv(folder / "e.csv", index=False)
    return read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=COLUMNS)


def test_swapped_coordinates_are_detected_by_link_lengths(tmp_path):
    side = 6
    places = [
        (row * side + column, 10 + column * 0.01, 60 + row * 0.01) for row in range(side) for column in range(side)
    ]
    nodes = pd.DataFrame(places, columns=["id", "lon", "lat"])
    east = [(row * side + column, row * side + column + 1, 557.0) for row in range(side) for column in range(side - 1)]
    north = [(node, node + side, 1113.0) for node in range(side * (side - 1))]
    ways = [*east, *north]
    edges = pd.DataFrame(ways + [(b, a, m) for a, b, m in ways], columns=["src", "dst", "len"])
    assert read(tmp_path, nodes, edges)[1].notes() == []
    message = r"n\.csv: rows 0|n\.csv: rows 1, 2, .*: lon must be longitude and lat latitude"
    with pytest.raises(InputError, match=message):
        read(tmp_path, nodes.rename(columns={"lon": "lat", "lat": "lon"}), edges)


def test_lengths_unlike_the_straight_distance_give_a_warning(tmp_path):
    nodes = pd.DataFrame({"id": [1, 2], "lon": [10.0, 10.1], "lat": [60.0, 60.0]})
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "len": [5.6, 5.6]})
    assert "the straight distance between a link's nodes" in read(tmp_path, nodes, edges)[1].notes()[0]


def street_grid(seed=5, side=6):
    """Return nodes about New York in metres of UTM zone 18, and links with detours of up to a fifth."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.uniform(60, 300, size=(2, side)), axis=1)
    nodes = pd.DataFrame(
        [
            (row * side + column, 585000 + steps[0, column], 4510000 + steps[1, row])
            for row in range(side)
            for column in range(side)
        ],
        columns=["id", "x", "y"],
    )
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
    return read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=columns, crs=crs)[1].notes()


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
    (area,) = read_tables(**files, columns=columns)[1].warnings
    assert "is outside the area of use of 'WGS 84 / UTM zone 18N'" in area
    both = read_tables(**files, columns=columns | {"length_m": "len"})[1].warnings
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

"""Lengths of a table of edges held against the places of its nodes."""

import pandas as pd
import pytest

from simulator.roads import RoadsError, read_tables

COLUMNS = {"node": "id", "lon": "lon", "lat": "lat", "from": "src", "to": "dst", "length_m": "len"}


def read(folder, nodes, edges):
    nodes.to_csv(folder / "n.csv", index=False)
    edges.to_csv(folder / "e.csv", index=False)
    return read_tables(nodes=folder / "n.csv", edges=folder / "e.csv", columns=COLUMNS)


def test_swapped_coordinates_that_could_be_are_found_by_the_lengths(tmp_path):
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
    said = r"n\.csv: rows 0|n\.csv: rows 1, 2, .*: lon must be longitude and lat latitude"
    with pytest.raises(RoadsError, match=said):
        read(tmp_path, nodes.rename(columns={"lon": "lat", "lat": "lon"}), edges)


def test_lengths_that_places_do_not_bear_out_are_doubted(tmp_path):
    nodes = pd.DataFrame({"id": [1, 2], "lon": [10.0, 10.1], "lat": [60.0, 60.0]})
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "len": [5.6, 5.6]})
    assert "the straight distance between a link's nodes" in read(tmp_path, nodes, edges)[1].notes()[0]

"""The side of the road on which traffic drives: by country, by file, by key; and junctions as in a mirror."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import scenarios
from simulator.experiment.assembly.roads import build_roads
from simulator.files.messages import texts_of
from simulator.roads.driving_side import DrivingSide, side_of
from simulator.roads.junctions import complete_junctions
from simulator.roads.movements import movement_table
from simulator.roads.network import RoadNetwork

LEFT = """Dublin -6.26 53.35, Belfast -5.93 54.60, London -.13 51.51, Valletta 14.51 35.90, Nicosia 33.38 35.17, Tokyo
139.69 35.69, Osaka 135.50 34.69, Sapporo 141.35 43.06, Naha 127.68 26.21, Delhi 77.21 28.61, Mumbai 72.88
19.08, Kolkata 88.36 22.57, Karachi 67.01 24.86, Quetta 67.01 30.18, Dhaka 90.41 23.81, Colombo 79.86 6.93,
Kathmandu 85.32 27.72, Thimphu 89.64 27.47, Bangkok 100.50 13.76, Phuket 98.39 7.89, Kuala Lumpur 101.69 3.14,
Singapore 103.82 1.35, Kuching 110.34 1.56, Kota Kinabalu 116.07 5.98, Jakarta 106.85 -6.21, Bali 115.22
-8.65, Dili 125.57 -8.56, Port Moresby 147.19 -9.44, Hong Kong 114.17 22.32, Sha Tin 114.19 22.38, Macau
113.55 22.19, Perth 115.86 -31.95, Sydney 151.21 -33.87, Hobart 147.33 -42.88, Auckland 174.76 -36.85, Suva
178.44 -18.14, Cape Town 18.42 -33.92, Johannesburg 28.05 -26.20, Windhoek 17.08 -22.56, Gaborone 25.91
-24.65, Harare 31.05 -17.83, Lusaka 28.28 -15.42, Livingstone 25.86 -17.85, Maputo 32.57 -25.97, Lilongwe
33.79 -13.98, Dar es Salaam 39.28 -6.79, Nairobi 36.82 -1.29, Kampala 32.58 .35, Maseru 27.48 -29.31, Mbabane
31.14 -26.31, Port Louis 57.50 -20.16, Victoria 55.45 -4.62, Kingston -76.79 17.97, Nassau -77.34 25.04,
Bridgetown -59.62 13.10, Port of Spain -61.51 10.65, Charlotte Amalie -64.93 18.34, Georgetown -58.16 6.80,
Paramaribo -55.20 5.85, Stanley -57.86 -51.70, Hamilton -64.78 32.29"""
RIGHT = """Calais 1.86 50.95, Brest -4.49 48.39, Paris 2.35 48.86, Cherbourg -1.62 49.64, Tunis 10.18 36.80, Beirut
35.50 33.89, Seoul 126.98 37.57, Busan 129.08 35.18, Shanghai 121.47 31.23, Shenzhen 114.06 22.54, Guangzhou 113.26
23.13, Zhuhai 113.55 22.27, Manila 120.98 14.60, Zamboanga 122.07 6.92, Hanoi 105.85 21.03, Vientiane 102.60
17.97, Savannakhet 104.76 16.55, Phnom Penh 104.92 11.56, Yangon 96.16 16.84, Kabul 69.17 34.53, Tehran 51.39
35.69, Zahedan 60.86 29.50, Urumqi 87.60 43.80, Lhasa 91.11 29.65, Kunming 102.71 25.04, Luanda 13.23 -8.84,
Kinshasa 15.31 -4.33, Lubumbashi 27.48 -11.66, Goma 29.22 -1.67, Kigali 30.06 -1.95, Bujumbura 29.36 -3.38,
Addis Ababa 38.75 9.03, Juba 31.58 4.85, Mogadishu 45.34 2.04, Antananarivo 47.52 -18.91, Saint-Denis 55.45
-20.88, Cayenne -52.33 4.92, Boa Vista -60.67 2.82, Port-au-Prince -72.34 18.54, Santo Domingo -69.93 18.49,
Havana -82.38 23.13, Miami -80.19 25.76, San Juan -66.11 18.47, Fort-de-France -61.07 14.61, Caracas -66.90
10.48, Vladivostok 131.89 43.12, Taipei 121.56 25.03, Noumea 166.45 -22.28, Port Vila 168.32 -17.73, Pago Pago
-170.70 -14.28, Koror 134.48 7.34, Gulf of Guinea 0 0"""


@pytest.mark.parametrize(("cities", "left"), [(LEFT, True), (RIGHT, False)], ids=["left", "right"])
def test_the_side_is_that_of_the_country(cities, left):
    for city in cities.replace("\n", " ").split(", "):
        *_, lon, lat = city.split()
        side = side_of(np.array([[float(lon), float(lat)]]), "EPSG:4326")
        assert side.left is left, city


def test_the_middle_of_the_network_counts_and_a_stated_side_before_it():
    corners = np.array([[650_000.0, 5_650_000.0], [750_000.0, 5_750_000.0]])  # about London
    assert side_of(corners, "EPSG:32630").left
    assert side_of(corners, "EPSG:32630", "right").left is False
    assert side_of(corners - [[3e5, 3e6]], "EPSG:32630").left is False  # Spain
    assert side_of(corners - [[3e5, 3e6]], "EPSG:32630", "left").left


def _roads(*, west: bool) -> RoadNetwork:
    """Return four irregular junctions of streets of several classes and lanes, or its image in a mirror."""
    rng = np.random.default_rng(5)
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs="EPSG:32633")
    for node, (x, y) in enumerate(rng.uniform(-400, 400, (14, 2)).tolist()):
        graph.add_node(node, x=-x if west else x, y=y)
    for start in range(4):
        for end in range(start + 1, 14):
            if rng.random() < 0.6:
                kind, lanes = rng.choice(["primary", "residential"]), int(rng.integers(1, 5))
                values = {"length_m": 100.0, "speed_mps": float(rng.choice([8.0, 15.0])), "capacity_vph": 1800.0}
                for ends in ((start, end), (end, start)):
                    graph.add_edge(*ends, **values, lanes=lanes, **{"class": str(kind)})
    return RoadNetwork.from_graph(graph)


SWAPPED = {"left": "right", "right": "left", "slight_left": "slight_right", "slight_right": "slight_left"}


def _mirrored_pair() -> tuple[RoadNetwork, RoadNetwork]:
    """Return a network, some of whose turns and signals are stated, and its image with traffic on the left."""
    roads, image = _roads(west=False), _roads(west=True)
    rows = [
        {"node": 0, "from_link": start, "to_link": end, "signal": "S", "turn": "slight_left" if end % 3 else None}
        for start in np.flatnonzero(roads.links.to_node == 0).tolist()
        for end in np.flatnonzero(roads.links.from_node == 0).tolist()
    ]
    stated = movement_table(rows).astype({"node": "int64"})
    swapped = stated.assign(turn=[SWAPPED.get(turn, turn) for turn in stated["turn"]])
    return replace(roads, movements=stated), replace(image, movements=swapped, side=DrivingSide(left=True))


def test_traffic_on_the_left_of_a_mirrored_network_has_the_mirrored_movements():
    roads, image = _mirrored_pair()
    (movements, signals, _), (found, programs, _) = complete_junctions(roads), complete_junctions(image)
    assert {"left", "right", "straight", "u_turn"} <= set(movements["turn"])
    expected = movements.assign(turn=[SWAPPED.get(turn, turn) for turn in movements["turn"]])
    assert found.equals(expected)
    assert programs.equals(signals)
    wrong, _, _ = complete_junctions(replace(image, side=DrivingSide()))
    assert not wrong.equals(expected), "the side matters"


OSM = """<osm version="0.6">{nodes}
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/><tag k="oneway" v="yes"/>
<tag k="lanes" v="3"/><tag k="turn:lanes" v="left|through|right"/></way>
<way id="2"><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="highway" v="residential"/></way>
<way id="3"><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/></way>
<way id="4"><nd ref="2"/><nd ref="5"/><nd ref="1"/><tag k="highway" v="residential"/></way></osm>"""


def _osm(folder: Path, lon: float, lat: float, key: str = "") -> scenarios.Scenario:
    places = {1: (0, 0), 2: (2, 0), 3: (4, 0), 4: (2, 2), 5: (2, -2)}
    nodes = "".join(f'<node id="{n}" lon="{lon + x / 1000}" lat="{lat + y / 1000}"/>' for n, (x, y) in places.items())
    (folder / "town.osm").write_text(OSM.format(nodes=nodes), encoding="utf-8")
    scenario = scenarios.load("tiny").with_({"roads": {"source": "osm", "path": str(folder / "town.osm")}})
    return scenario.with_({"roads.driving_side": key}) if key else scenario


@pytest.mark.parametrize(
    ("lon", "lat", "key", "left"),
    [(-0.1, 51.5, "", True), (-0.1, 51.5, "right", False), (11.5, 48.1, "", False), (11.5, 48.1, "left", True)],
)
def test_the_side_of_openstreetmap_orders_lanes_and_is_noted(tmp_path, lon, lat, key, left):
    roads, notes = build_roads(_osm(tmp_path, lon, lat, key))
    assert roads is not None
    assert roads.side.left is left
    assert any("drives on the left" in text for text in texts_of(notes)) is left
    lanes = roads.movements[roads.movements["from_lane"] >= 0].groupby("turn")["from_lane"].first()
    assert (lanes["left"], lanes["right"]) == ((0, 2) if left else (2, 0)), "the turn to the near side is at the edge"
    *_, said = complete_junctions(roads)
    assert [note for note in said if note.code == "driving_side" and str(roads.side) in note.text]


def test_a_grid_has_the_side_of_its_place_or_of_the_key():
    def side(**keys):
        roads, _ = build_roads(scenarios.load("tiny").with_({f"roads.{key}": value for key, value in keys.items()}))
        return roads.side.left

    assert side() is False
    assert side(anchor={"lon": 139.7, "lat": 35.7}) is True
    assert side(driving_side="left") is True

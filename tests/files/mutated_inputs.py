"""One small input for every reader, and ways to damage it."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import geopandas as gpd
import h5py
import numpy as np
import pandas as pd
import shapely

from simulator.formats.geo.geopackage import write_geopackage
from simulator.roads import build_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.roads import RoadNetwork

for _folder in ("roads", "traffic"):  # helpers of other tests
    sys.path.append(str(Path(__file__).parents[1] / _folder))
osm_town, small_networks, trace_files = map(importlib.import_module, ("osm_town", "small_networks", "trace_files"))

HEAD = """
scenario = {name = "mutated", duration_s = 600}
campaigns = [{name = "c", start_s = 60, queries = 1}]
mechanisms = [{name = "m", kind = "no_privacy"}]
"""
SQUARE = '[cells]\nkind = "square"\nsize_m = 400\n'
FEW = "[traffic]\nvehicles = 5\n"
GRID = '[roads]\nsource = "grid"\nrows = 3\ncolumns = 3\nspacing_m = 300\nspeed_mps = 10\n'
TABLES = (
    '[roads]\nsource = "tables"\nnodes = "n{0}"\nedges = "e{0}"\n[roads.columns]\n'
    'node = "node"\nlon = "lon"\nlat = "lat"\nfrom = "from"\n'
    'to = "to"\nlength_m = "length_m"\nspeed_mps = "speed_mps"\n'
)
AT_HOME = GRID + "anchor = {lon = 11.3, lat = 44.5}\n"
NONE = '[roads]\nsource = "none"\n'
NET = """<net version="1.20">
<location netOffset="0,0" convBoundary="0,0,9,0" origBoundary="0,0,9,0" projParameter="!"/>
<edge id="ab" from="a" to="b"><lane id="ab_0" index="0" speed="10" length="100" shape="0,-2 100,-2"/></edge>
<edge id="ba" from="b" to="a"><lane id="ba_0" index="0" speed="10" length="100" shape="100,2 0,2"/></edge>
<edge id=":b_0" function="internal"><lane id=":b_0_0" index="0" speed="5" length="3" shape="9,-2 9,2"/></edge>
<junction id="a" type="priority" x="0" y="0" incLanes="ba_0" intLanes="" shape="0,0">
<request index="0" response="0" foes="0" cont="0"/></junction>
<junction id="b" type="priority" x="100" y="0" incLanes="ab_0" intLanes=":b_0_0" shape="100,0">
<request index="0" response="0" foes="0" cont="0"/></junction>
<connection from="ab" to="ba" fromLane="0" toLane="0" via=":b_0_0" dir="t" state="M"/>
<connection from=":b_0" to="ba" fromLane="0" toLane="0" dir="t" state="M"/>
<connection from="ba" to="ab" fromLane="0" toLane="0" dir="t" state="M"/>
</net>"""
ROUTES = """<routes><vType id="t" maxSpeed="9"/><route id="r" edges="ab ba"/>
<vehicle id="1" depart="1" route="r" type="t"/><trip id="2" depart="2" from="ab" to="ba"/>
<vehicle id="3" depart="0:00:03"><route edges="ab ba ab"/></vehicle>
<flow id="f" begin="0" end="60" number="4" from="ab" to="ba"/>
<flow id="g" begin="0" end="60" period="exp(0.1)" route="r"/></routes>"""
CFG = """<configuration><input><net-file value="net.net.xml"/><route-files value="r.rou.xml"/></input>
<time><begin value="0"/><step-length value="1"/></time></configuration>"""
OWNERS = "station,hour,flow,latitude,longitude\n1,7,5,40.70,-73.90\n2,7,6,40.71,-73.91\n3,8,2,40.72,-73.92\n"
STATIC = (
    '[traffic]\nengine = "static"\nowners = "{}"\n'
    'columns = {{place = "station", lon = "longitude", lat = "latitude", count = "flow", period = "hour"}}\n'
)
DEMAND = '[traffic]\ndemand = "trips"\ntrips = "{}"\nundrivable = "leave_out"\n'
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


class Input(NamedTuple):
    """A scenario, and those of its files that are damaged, by name."""

    scenario: str
    files: dict[str, bytes]


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def packed(files: dict[str, str | bytes]) -> dict[str, bytes]:
    """Return files as bytes, compressed as their names say."""
    return {
        name: PACKERS.get(Path(name).suffix, bytes)(data.encode() if isinstance(data, str) else data)
        for name, data in files.items()
    }


def written_by_libraries(folder: Path, grid: RoadNetwork) -> dict[str, dict[str, str | bytes]]:
    """Return roads, trips, zones and a matrix as files, by the name of the first."""
    lines = gpd.GeoDataFrame(geometry=grid.shapes.lines()[::2], crs=grid.crs).to_crs(4326)
    lines = lines.assign(lanes=2, oneway="no", maxspeed="50")
    lines.to_file(folder / "l.geojson")
    lines.to_file(folder / "s.shp")
    lines[["geometry"]].to_parquet(folder / "l.parquet")
    boxes = [shapely.box(*grid.bounds).buffer(10), shapely.box(*grid.bounds).buffer(10)]
    boxes[0], boxes[1] = (shapely.affinity.translate(box, east) for box, east in zip(boxes, (-320, 320), strict=True))
    gpd.GeoDataFrame({"zone": [1, 2]}, geometry=boxes, crs=grid.crs).to_crs(4326).to_file(folder / "z.geojson")
    with h5py.File(folder / "m.omx", "w") as file:
        file["data/cars"] = np.full((2, 2), 3.0)
        file["lookup/taz"] = [1, 2]
    names = {name: [name] for name in ("l.geojson", "l.parquet", "z.geojson", "m.omx")}
    names["s.shp"] = [f"s.{end}" for end in ("shp", "shx", "dbf", "prj")]
    return {first: {name: (folder / name).read_bytes() for name in all_} for first, all_ in names.items()}


def inputs(folder: Path) -> dict[str, Input]:
    """Return one input per reader; files written by libraries are first written in `folder`."""
    size = {"rows": 3, "columns": 3, "spacing_x_m": 300, "spacing_y_m": 300}
    grid = build_grid(**size, speed_mps=10, lanes=1, capacity_vph=1800, anchor=(11.3, 44.5))
    write_geopackage(grid, folder / "g.gpkg")
    nodes = "node,lon,lat\n1,11.30,44.50\n2,11.31,44.50\n3,11.31,44.51\n"
    edges = "from,to,length_m,speed_mps,lanes,class\n1,2,800,10,1,a\n2,3,1100,10,2,b\n3,1,1400,10,1,a\n2,1,800,10,1,a\n"
    od = "origin,destination,trips\n1,2,3\n2,3,4\n3,1,2.5\n"
    town = osm_town.xml()
    osm_town.write_pbf(folder / "t.osm.pbf")
    points = gpd.GeoDataFrame(
        trace_files.TIDY[["vehicle", "time_s"]].rename(columns={"time_s": "time"}),
        geometry=gpd.points_from_xy(trace_files.TIDY["lon"], trace_files.TIDY["lat"]),
        crs=4326,
    )
    points.to_parquet(folder / "points.parquet")
    written = written_by_libraries(folder, grid)
    rides = "start_lng,start_lat,end_lng,end_lat,started_at\n11.3,44.5,11.304,44.504,2026-03-02 08:00\n"
    made: dict[str, tuple[str, dict[str, str | bytes]]] = {
        "gpkg": (
            '[roads]\nsource = "geopackage"\npath = "g.gpkg"\n' + FEW,
            {"g.gpkg": (folder / "g.gpkg").read_bytes()},
        ),
        "gmns": (
            '[roads]\nsource = "gmns"\npath = "h"\nlength_unit = "m"\nspeed_unit = "kph"\n' + FEW,
            {"h/node.csv": small_networks.GMNS_NODES, "h/link.csv": small_networks.GMNS_LINKS},
        ),
        "tntp": (
            '[roads]\nsource = "tntp"\nnetwork = "a_net.tntp"\nnodes = "a_node.tntp"\nlength_unit = "miles"\n'
            'time_unit = "minutes"\n' + DEMAND.format("a_trips.tntp"),
            {
                "a_net.tntp": small_networks.tntp_network(),
                "a_node.tntp": small_networks.tntp_nodes(),
                "a_trips.tntp": "<NUMBER OF ZONES> 2\n<END OF METADATA>\nOrigin 1\n2 : 3.0;\nOrigin 2\n1 : 2.0;\n",
            },
        ),
        "pbf": (
            '[roads]\nsource = "osm"\npath = "t.osm.pbf"\n' + FEW,
            {"t.osm.pbf": (folder / "t.osm.pbf").read_bytes()},
        ),
        "sumo demand": (
            '[roads]\nsource = "sumo"\npath = "n.net.xml"\n' + DEMAND.format("r.rou.xml"),
            {"n.net.xml": NET, "r.rou.xml": ROUTES},
        ),
        "sumo engine": (
            '[roads]\nsource = "sumo"\npath = "net.net.xml"\n[traffic]\nengine = "sumo"\nconfig = "c.sumocfg"\n',
            {"net.net.xml": NET, "r.rou.xml": ROUTES, "c.sumocfg": CFG},
        ),
        "usual columns": (
            TABLES.partition("[roads.columns]")[0].format(".csv") + FEW,
            {"n.csv": nodes, "e.csv": edges.replace("800,10,1", "0.8km,10km/h,2")},
        ),
        "lines": ('[roads]\nsource = "lines"\npath = "l.geojson"\n' + FEW, written["l.geojson"]),
        "shapefile": ('[roads]\nsource = "lines"\npath = "s.shp"\n' + FEW, written["s.shp"]),
        "points": (AT_HOME + DEMAND.format("p.csv") + 'begin_s = "08:00"\n', {"p.csv": rides}),
        "lines of trips": (AT_HOME + DEMAND.format("l.parquet"), written["l.parquet"]),
        "matrix": (
            AT_HOME + DEMAND.format("m.omx") + 'trip_zones = {file = "z.geojson", name = "zone"}\n',
            written["m.omx"] | written["z.geojson"],
        ),
        "profile": (
            GRID + '[traffic]\nvehicles = 9\ndepartures = "profile"\nprofile = "p.csv"\n',
            {"p.csv": "from_s,to_s,share\n0,300,0.25\n300,600,0.75\n"},
        ),
        "zones": (
            TABLES.format(".csv") + '[traffic]\nvehicles = 9\ndemand = "gravity"\nzones = "z.csv"\n',
            {"z.csv": "zone,production,attraction\n1,5,3\n2,2,4\n3,3,3\n", "n.csv": nodes, "e.csv": edges},
        ),
        "stations": (
            NONE + STATIC.format("o.csv"),
            {"o.csv": OWNERS, "s.csv": "id,lon,lat\nx,-73.90,40.70\ny,-73.91,40.71\n"},
        ),
        "locations": (NONE + STATIC.format("o.tsv"), {"o.tsv": OWNERS.replace(",", "\t")}),
    }
    for suffix in (".csv", ".csv.gz", ".parquet"):
        n, e = (parquet(pd.read_csv(io.StringIO(text))) if suffix == ".parquet" else text for text in (nodes, edges))
        made[f"tables{suffix}"] = (TABLES.format(suffix) + FEW, {f"n{suffix}": n, f"e{suffix}": e})
        table = parquet(pd.read_csv(io.StringIO(od))) if suffix == ".parquet" else od
        made[f"trips{suffix}"] = (
            TABLES.format(".csv") + DEMAND.format(f"od{suffix}"),
            {f"od{suffix}": table, "n.csv": nodes, "e.csv": edges},
        )
    for suffix in ("", ".gz", ".bz2"):
        made[f"osm{suffix}"] = (f'[roads]\nsource = "osm"\npath = "t.osm{suffix}"\n' + FEW, {f"t.osm{suffix}": town})
    sumo_frame = trace_files.sumo_frame()
    for name, content in {
        "taxi.csv": trace_files.taxi_csv(),
        "taxi.csv.xz": trace_files.taxi_csv(),
        "tdrive.txt": trace_files.tdrive(),
        "new_a.txt": trace_files.cabspotting("a"),
        "a.gpx": trace_files.gpx(),
        "p.csv": trace_files.porto(),
        "g.plt": trace_files.geolife(),
        "f.xml": trace_files.sumo_xml(),
        "f.xml.gz": trace_files.sumo_xml(),
        "f.csv": trace_files.sumo_csv(),
        "d.json": trace_files.deck_json(),
        "k.geojson": trace_files.kepler_json(),
        "t.parquet": parquet(trace_files.TIDY.rename(columns={"time_s": "time"})),
        "f.parquet": parquet(sumo_frame),
        "points.parquet": (folder / "points.parquet").read_bytes(),
    }.items():
        made[f"trace {name}"] = (NONE + f'[traffic]\nengine = "trace"\ntrace = "{name}"\n', {name: content})
    for name, content in {
        "stations": 'kind = "stations"\nfile = "s.csv"\ncolumns = {name = "id", lon = "lon", lat = "lat"}\n',
        "locations": 'kind = "locations"\n',
    }.items():
        made[name] = (made[name][0] + "[cells]\n" + content, made[name][1])
    return {
        name: Input(HEAD + sections + ("" if "[cells]" in sections else SQUARE), packed(files))
        for name, (sections, files) in made.items()
    }


PIECES = (
    b"", b"\x00", b"\xff\xfe", b"\n", b",", b";", b"\t", b'"', b"<", b">", b"&", b"-", b"1e999", b"nan", b"inf", b"-1",
    b"9" * 25, b"9" * 5_000, b"{" * 2_000, b"[" * 100_000, b"null", b"0", b"1e-320", "é\u202e".encode(), b"x" * 70_000,
    b"<!DOCTYPE a>",
)  # fmt: skip


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Cut, replace, repeat, insert or remove a few pieces; as often in compressed content as in its plain form."""
    pack: Callable[[bytes], bytes] = bytes
    if rng.random() < 0.5:
        for magic, unpack, again in (
            (b"\x1f\x8b", gzip.decompress, PACKERS[".gz"]),
            (b"BZh", bz2.decompress, bz2.compress),
            (b"\xfd7zXZ", lzma.decompress, lzma.compress),
        ):
            if whole.startswith(magic):
                whole, pack = unpack(whole), again
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(data) + 1))
        piece = PIECES[int(rng.integers(len(PIECES)))]
        size = int(rng.choice([1, 4, 30]))
        match int(rng.integers(7)):
            case 0:
                del data[at:]
            case 1:
                data[at:at] = piece
            case 2:
                del data[at : at + size]
            case 3:
                data[at : at + size] = piece
            case 4:
                data[at:at] = bytes(data[at : at + 200]) * int(rng.integers(1, 20))
            case 5:
                _change_number(data, at, piece)
            case _ if at < len(data):
                data[at] ^= 1 << int(rng.integers(8))
            case _:
                pass
    return pack(bytes(data))


def _change_number(data: bytearray, at: int, piece: bytes) -> None:
    """Replace the next number by a piece."""
    begin = next((i for i in range(at, len(data)) if 48 <= data[i] <= 57), len(data))
    end = next((i for i in range(begin, len(data)) if not (48 <= data[i] <= 57 or data[i] == 46)), len(data))
    data[begin:end] = piece

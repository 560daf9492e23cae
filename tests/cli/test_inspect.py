"""`crowdveil inspect`: the page's examples, units and pairs that are recognised, and files that are not."""

import gzip
import json
import os
import pickle
import re
import shlex
import tomllib
import zipfile
from pathlib import Path

import pandas as pd
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how" / "inspect.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w*\n(.*?)```", PAGE, flags=re.DOTALL | re.MULTILINE))
EXAMPLES = {
    title: (lines[0], lines[1])
    for title, section in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    for block in re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    for lines in [block.splitlines()]
}
PROGRAM = re.search(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[1]
DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def written(call, folder, *paths):
    """Return what the command prints, and the scenario that it writes."""
    done = call("inspect", *paths, "--write", "made.toml")
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr, tomllib.loads((folder / "made.toml").read_text(encoding="utf-8"))


def test_page_has_the_five_examples():
    assert [title.split()[0] for title in EXAMPLES] == ["Boston:", "Trips", "A", "MATSim:", "Lima:"]


@pytest.mark.parametrize("title", EXAMPLES)
def test_example_runs_from_files_to_report(title, folder, call):
    if "OMX" in title:
        pytest.importorskip("h5py")
        exec(PROGRAM, {})  # noqa: S102 - our own page
    for line in EXAMPLES[title]:
        program, *arguments = shlex.split(line)
        done = call(*arguments, *(["--quiet", "--out", "run"] if arguments[0] == "run" else []))
        assert program == "crowdveil"
        assert done.returncode == 0, done.stderr
    assert (folder / "run" / "report.html").is_file()
    estimates = pd.read_parquet(folder / "run" / "estimates.parquet")
    assert estimates["truth"].sum() > 0
    assert 2 <= estimates["cell"].nunique() <= 100


def test_capacity_of_whole_edges_is_recognised_and_explained(folder, call):
    printed, made = written(call, folder, "boston")
    assert made["roads"]["columns"] == {"capacity_total_vph": "capacity_vph"}
    assert "above 2,600 vehicles/h per lane" in printed
    assert "missing: demand" in printed
    edges = FILES["boston/edges.csv"].replace("3600", "1800")
    (folder / "boston" / "edges.csv").write_text(edges, encoding="utf-8")
    done = call("inspect", "boston")
    assert "[roads.columns]" not in done.stdout, "a capacity that fits a lane is read as it is"


def test_units_of_tntp_are_those_that_fit(call, tmp_path):
    samples = Path(__file__).parents[2] / "data" / "samples" / "tntp"
    printed, made = written(call, tmp_path, str(samples))
    assert (made["roads"]["length_unit"], made["roads"]["time_unit"]) == ("km", "min")
    assert Path(made["traffic"]["trips"]).name == "town_trips.tntp"
    assert "without times" in printed
    assert call("run", "made.toml", "--quiet", "--out", "run").returncode == 0
    states = json.loads((tmp_path / "run" / "run.json").read_text())["traffic_at_queries"]
    assert all(one["waiting"] <= 0.05 * one["departed"] for one in states), "the roads carry the trips"


def test_speed_without_a_unit_gets_one_and_the_other_is_stated(folder, call):
    edges = FILES["boston/edges.csv"].replace("speed_kph", "speed")
    (folder / "boston" / "edges.csv").write_text(edges, encoding="utf-8")
    done = call("inspect", "boston")
    assert 'speed_kph = "speed"' in done.stdout
    assert "# also fits: columns.speed_mph = 'speed'" in done.stdout


@pytest.mark.parametrize(("day", "start"), [("", "08:00:00"), ("2024-03-05 ", "2024-03-05 08:00:00")])
def test_hour_and_date_of_trips_with_times(day, start, folder, call):
    rows = "".join(f"{1 + n % 6},{1 + (n + 1) % 6},10,{day}{8 + n // 40:02d}:{n % 60:02d}\n" for n in range(60))
    (folder / "trips.csv").write_text(f"origin,destination,trips,departure_s\n{rows}", encoding="utf-8")
    printed, made = written(call, folder, "boston", "trips.csv")
    assert made["scenario"]["start"] == start
    assert f"most of them, 400, from {day}08:00:00 to {day}09:00:00" in printed


def test_trips_alone_are_counted_and_roads_are_missing(folder, call):
    done = call("inspect", "lima/demand.csv")
    assert done.returncode == 0
    assert "260 trips between 4 places" in done.stdout
    assert "missing: roads" in done.stdout
    done = call("inspect", "lima/demand.csv", "--write", "made.toml")
    assert done.returncode == 2
    assert not (folder / "made.toml").exists()


def test_existing_file_is_kept_without_overwrite(folder, call):
    (folder / "mine.toml").write_text("mine", encoding="utf-8")
    assert call("inspect", "lima", "--write", "mine.toml").returncode == 2
    assert (folder / "mine.toml").read_text(encoding="utf-8") == "mine"
    assert call("inspect", "lima", "--write", "mine.toml", "--overwrite").returncode == 0


MILES = "1,1,2,{0},30,2,900\n2,2,3,{1},30,2,900\n3,3,4,{0},30,2,900\n4,4,1,{1},30,2,900\n"
PLACED = "node_id,x_coord,y_coord,zone_id\n1,-84.1,40.74,1\n2,-84.09,40.74,2\n3,-84.09,40.747,3\n4,-84.1,40.747,4\n"
LINK = "link_id,from_node_id,to_node_id,length,free_speed,lanes,capacity"


def gmns(folder, links, nodes=PLACED, **tables):
    """Write a GMNS folder."""
    (folder / "town").mkdir()
    for name, text in {"node": nodes, "link": links, **tables}.items():
        (folder / "town" / f"{name}.csv").write_text(text, encoding="utf-8")


def test_units_of_gmns_are_proved_by_stated_times(call, tmp_path):
    rows = MILES.format("0.5245", "0.483").splitlines()
    timed = "".join(f"{row},{float(row.split(',')[3]) * 2:.4f}\n" for row in rows)
    gmns(tmp_path, f"{LINK},VDF_fftt1\n{timed}")
    printed, made = written(call, tmp_path, "town")
    assert (made["roads"]["length_unit"], made["roads"]["speed_unit"]) == ("mi", "mph")
    assert "'VDF_fftt1', is length / speed with times in min" in printed
    text = (tmp_path / "made.toml").read_text(encoding="utf-8")
    assert "proposed" not in text
    assert "also fits" not in text


def test_units_that_nothing_proves_are_proposed_and_all_others_are_comments(call, tmp_path):
    """Feet of a plane that nothing names, as Lima's: every unit of lengths fits the places."""
    nodes = "node_id,x_coord,y_coord\n1,1500000,1000000\n2,1530000,1000000\n3,1530000,1030000\n4,1500000,1030000\n"
    gmns(tmp_path, f"{LINK}\n{MILES.format(30000, 30000)}", nodes)
    _, made = written(call, tmp_path, "town")
    assert (made["roads"]["length_unit"], made["roads"]["speed_unit"]) == ("ft", "mph")
    lines = (tmp_path / "made.toml").read_text(encoding="utf-8").splitlines()
    others = [line for line in lines if line.startswith("# also fits: ")]
    assert "# proposed: no column states the unit: length_unit = 'ft', speed_unit = 'mph' (mean trip " in "\n".join(
        lines
    )
    assert all(" km, " in line and " min)" in line for line in others)
    assert any("length_unit = 'm', speed_unit = 'kph'" in line for line in others)


def test_units_of_a_config_table_are_not_guessed(call, tmp_path):
    config = "long_length,speed\nmile,mph\n"
    gmns(tmp_path, f"{LINK}\n{MILES.format('0.5245', '0.483')}", config=config)
    _, made = written(call, tmp_path, "town")
    assert made["roads"].keys() == {"source", "path"}


def test_a_drawn_gmns_network_is_run_with_links_as_cells(call, tmp_path):
    nodes = "node_id,x_coord,y_coord,zone_id\n1,0,-0.1,1\n2,20,0,2\n3,10,8,\n4,10,-8,\n"
    links = "1,1,3,10,60,1,1800\n2,3,2,10,60,1,1800\n3,2,4,15,60,1,1800\n4,4,1,15,60,1,1800\n"
    gmns(tmp_path, f"{LINK}\n{links}", nodes)
    printed, made = written(call, tmp_path, "town")
    assert made["roads"]["coordinates"] == "none"
    assert made["cells"]["kind"] == "roads"
    assert "maps show no real places" in printed
    done = call("run", "made.toml", "--set", 'cells={kind="square",size_m=500}', "--quiet")
    assert done.returncode == 2
    assert "roads.coordinates" in done.stderr


MATSIM = """<network><nodes>{nodes}</nodes><links capperiod="01:00:00">{links}</links></network>"""


def matsim(lengths, xy=((0, 0), (600, 0), (600, 500), (0, 500))):
    """A ring of four links."""
    nodes = "".join(f'<node id="{n}" x="{x}" y="{y}"/>' for n, (x, y) in enumerate(xy))
    facts = 'freespeed="10" capacity="1800" permlanes="1" modes="car"'
    links = "".join(
        f'<link id="{n}" from="{n}" to="{(n + 1) % 4}" length="{m}" {facts}/>' for n, m in enumerate(lengths)
    )
    return MATSIM.format(nodes=nodes, links=links)


MUNICH = ((1_288_000, 6_130_000), (1_289_000, 6_130_000), (1_289_000, 6_131_000), (1_288_000, 6_131_000))


@pytest.mark.parametrize(
    ("lengths", "xy", "mercator"),
    [
        ((600, 500, 600, 0), ((0, 0), (600, 0), (600, 500), (0, 500)), False),
        ((668, 668, 668, 668), MUNICH, True),
        ((300, 300, 300, 300), MUNICH, False),
        ((1000, 1000, 1000, 1000), MUNICH, False),
    ],
    ids=["zero", "munich", "other lengths", "plane"],
)
def test_web_mercator_needs_lengths_that_prove_it(lengths, xy, mercator, call, tmp_path):
    (tmp_path / "net.xml").write_text(matsim(lengths, xy), encoding="utf-8")
    _, made = written(call, tmp_path, "net.xml")
    assert (made["roads"].get("crs") == "EPSG:3857") == mercator


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trips.csv", "origin,destination,trips\n1,3,many\n"),
        ("trips.csv", "origin,destination,trips\n1,nowhere,3\n"),
        ("trips.csv", "what,ever\n1,3\n"),
        ("trips.rou.xml", "<routes><vehicle id='a' depart='soon'><route edges='x'/></vehicle></routes>"),
        ("cars.csv", "vehicle,time,lon,lat\na,noon,-84.1,40.74\n"),
    ],
    ids=["number", "place", "columns", "routes", "recording"],
)
def test_what_failed_is_not_replaced(name, text, folder, call):
    (folder / name).write_text(text, encoding="utf-8")
    done = call("inspect", "boston", name, "--write", "made.toml")
    assert done.returncode == 2
    assert name in done.stderr
    assert not (folder / "made.toml").exists()


def test_roads_that_failed_are_not_left_out(folder, call):
    (folder / "roads.osm").write_text("<osm version='0.6'><node id='1' lat='x'/></osm>", encoding="utf-8")
    done = call("inspect", "roads.osm", "taxi.csv", "--write", "made.toml")
    assert done.returncode == 2
    assert "roads.osm" in done.stderr


def tracks(lon="lon", lat="lat", begin="2024-03-05 07:30:00", peaks=(0,)):
    """Five vehicles that are recorded for a minute each, at some hours."""
    zero = pd.Timestamp(begin)
    rows = [
        (f"car{hour}-{car}", zero + pd.Timedelta(hours=hour, seconds=70 * car + 10 * fix), 4.9 + fix / 2000, 52.37)
        for hour in peaks
        for car in range(5)
        for fix in range(7)
    ]
    return pd.DataFrame(rows, columns=["vehicle", "time", lon, lat])


def of_trips(*rows):
    return "\n".join(["origin,destination,trips,departure_s", *rows])


TOWN_TRIPS = [f"{1 + n % 6},{1 + (n + 2) % 6},1" for n in range(6)]
KINDS = {
    "seven.csv": of_trips(*(f"{trip},07:0{n // 3}" for n, trip in enumerate(TOWN_TRIPS))),
    "seconds.csv": of_trips(*(f"{trip},{86_400 + 25_200 + n}" for n, trip in enumerate(TOWN_TRIPS))),
    "untimed.csv": "\n".join(["origin,destination,trips", *TOWN_TRIPS]),
    "cars.csv": tracks().to_csv(index=False),
    "peaks.csv": tracks(peaks=(0, 10)).to_csv(index=False),
    "visits.csv": "user,time,place,lon,lat\na,2024-03-05 07:00,x,4.9,52.3\nb,2024-03-05 19:00,y,4.91,52.31\n",
}


@pytest.mark.parametrize("name", KINDS)
def test_every_query_of_the_scenario_meets_a_vehicle(name, folder, call):
    (folder / name).write_text(KINDS[name], encoding="utf-8")
    roads = ["boston"] if name in ("seven.csv", "seconds.csv", "untimed.csv") else []
    written(call, folder, *roads, name)
    done = call("run", "made.toml", "--quiet", "--out", "run")
    assert done.returncode == 0, done.stderr
    estimates = pd.read_parquet(folder / "run" / "estimates.parquet")
    assert (estimates.groupby("query")["truth"].sum() > 0).all()


def test_mechanisms_have_equal_claims_in_cells_of_thirty_vehicles(folder, call):
    printed, made = written(call, folder, "boston")
    assert call("run", "made.toml", "--quiet", "--out", "run").returncode == 0
    estimates = pd.read_parquet(folder / "run" / "estimates.parquet")
    assert (estimates.groupby("query")["truth"].mean() >= 30).all()
    stated = float(re.search(r"without congestion: (\d+) in a mean cell", printed)[1])
    assert estimates["truth"].mean() == pytest.approx(stated, rel=0.2), "without congestion nothing else delays them"
    claims = pd.read_parquet(folder / "run" / "claims.parquet")
    linked = claims[(claims["view"] == "linked_reports") & (claims["queries"] == 1) & (claims["epsilon"] == 1.0)]
    assert linked.set_index("mechanism")["delta"].to_dict() == pytest.approx(
        {"sampling": 0.1, "unary": 0.1, "baseline": 1.0}, abs=1e-5
    )
    assert "δ = 0.1" in made["scenario"]["description"]
    assert "\r" not in printed, "nothing shows in a pipe that a command runs"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "gpkg", "shp"])
def test_points_of_vehicles_are_a_recording(suffix, call, tmp_path):
    frame = (
        tracks("X", "Y").rename(columns={"vehicle": "trajectory_id", "time": "t"}).assign(fid=range(1, 36), sequence=2)
    )
    frame["t"] = frame["t"].astype("str")
    file = tmp_path / f"points.{suffix}"
    if suffix == "csv":
        frame.to_csv(file, sep=";", index=False)
    else:
        gpd = pytest.importorskip("geopandas")
        places = gpd.points_from_xy(frame["X"], frame["Y"], crs="EPSG:4326")
        shapes = gpd.GeoDataFrame(
            frame.drop(columns=["X", "Y"]).rename(columns={"trajectory_id": "traj_id"}), geometry=places
        )
        shapes.to_crs(3857).to_file(file) if suffix in ("gpkg", "shp") else shapes.to_parquet(file)
    printed, made = written(call, tmp_path, file.name)
    assert made["traffic"] == {"engine": "trace", "trace": file.name}
    assert "5 vehicles, 35 fixes" in printed


def not_a_shapefile(file):
    file.write_bytes(b"\0\0\x27\x0a" + b"\0" * 40)


def archive(file):
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("readme", "nothing")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("noise.bin", bytes(range(256)) * 9, "is binary"),
        ("empty.csv", b"", "is empty"),
        ("cut.csv.gz", gzip.compress(b"a,b\n" * 999, mtime=0)[:20], "cannot be read or unpacked"),
        ("page.xml", b"<html><body/></html>", "the outermost element <html>"),
        ("bomb.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><net>&b;</net>', "nothing in it is recognised"),
        ("object.pkl", pickle.dumps({"a": 1}), "is binary"),
        ("text.txt", b"some text\n", "1 column: 'some text'"),
        ("deep.json", b"[" * 99_999, "nests too deeply"),
        ("matrix.omx", b"\x89HDF\r\n\x1a\n" + b"x" * 99, "cannot be read as OMX"),
        ("roads.shp", not_a_shapefile, "cannot be read as ESRI Shapefile"),
        ("files.zip", archive, "is binary"),
        ("empty", Path.mkdir, "no file is in it"),
    ],
)
def test_other_files_are_refused_with_what_they_look_like(name, content, words, call, tmp_path):
    if name == "matrix.omx":
        pytest.importorskip("h5py")
    content(tmp_path / name) if callable(content) else (tmp_path / name).write_bytes(content)
    done = call("inspect", name)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("crowdveil: ")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        pytest.param("gmns/Lima", {"roads": "gmns", "demand": "trips"}, marks=[pytest.mark.slow, pytest.mark.thorough]),
        ("nyc_trips/tripstest.json.gz", {"roads": "none", "engine": "trace"}),
    ],
)
def test_real_files(place, expected, call, tmp_path):
    if not (DATA / place).exists():
        pytest.skip(f"CROWDVEIL_DATA names no folder with {place}: real data is not part of the project")
    _, made = written(call, tmp_path, str(DATA / place))
    assert {
        "roads": made["roads"]["source"],
        **{key: made["traffic"][key] for key in expected if key != "roads"},
    } == expected
    done = call("run", "made.toml", "--quiet", "--out", "run")
    assert done.returncode == 0, done.stderr

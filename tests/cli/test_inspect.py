"""`crowdveil inspect`: the examples of docs/inspect.md, units and pairs that are recognised, and files that are not."""

import gzip
import os
import pickle
import re
import shlex
import tomllib
import zipfile
from pathlib import Path

import pandas as pd
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "inspect.md").read_text(encoding="utf-8")
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


def test_page_has_the_six_examples():
    assert [title.split()[0] for title in EXAMPLES] == ["Boston:", "Trips", "A", "MATSim:", "Buses", "Lima:"]


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
    assert 4 <= estimates["cell"].nunique() <= 400


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


def test_speed_without_a_unit_gets_one_and_the_other_is_stated(folder, call):
    edges = FILES["boston/edges.csv"].replace("speed_kph", "speed")
    (folder / "boston" / "edges.csv").write_text(edges, encoding="utf-8")
    done = call("inspect", "boston")
    assert 'speed_kph = "speed"' in done.stdout
    assert "# also fits: columns.speed_mph = 'speed'" in done.stdout


def test_hour_and_share_of_trips_with_times(folder, call):
    rows = "".join(f"{1 + n % 6},{1 + (n + 1) % 6},10,{8 + n // 40}:{n % 60:02d}\n" for n in range(60))
    (folder / "trips.csv").write_text(f"origin,destination,trips,departure_s\n{rows}", encoding="utf-8")
    printed, made = written(call, folder, "boston", "trips.csv")
    assert made["scenario"]["start"] == "08:00"
    assert "most of them, 400, from 08:00 to 09:00" in printed


def test_events_are_preferred_to_plans_which_are_a_comment(folder, call):
    plans = '<population><person id="x"><plan selected="yes"></plan></person></population>'
    (folder / "matsim" / "plans.xml").write_text(plans, encoding="utf-8")
    done = call("inspect", "matsim")
    assert 'engine = "trace"' in done.stdout
    assert "# instead: trips = plans.xml" in done.stdout


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
        ("gmns/Lima", {"roads": "gmns", "demand": "trips"}),
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

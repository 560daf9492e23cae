"""The samples: reproducible, independent of CROWDVEIL_DATA, and each can be run."""

import hashlib
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import scenarios
from scenarios import ScenarioError
from scenarios.references import manifest_path, samples_path
from simulator.datasets.manifest import read_manifest
from simulator.formats.recordings import read_trace
from simulator.results.provenance import data_checksums

ROOT = Path(__file__).parents[2]
SAMPLES = read_manifest().data_set("samples")


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)


def test_samples_equal_the_output_of_the_script(tmp_path):
    subprocess.run([sys.executable, ROOT / "data" / "make_samples.py", tmp_path], check=True)
    made = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {name: hashlib.sha256(text).hexdigest() for name, text in made.items()} == {
        file.name: file.sha256 for file in SAMPLES.files
    }
    assert all((samples_path() / name).read_bytes() == text for name, text in made.items())
    assert all(len(text) < 10_000 for text in made.values())


def test_sample_cars_drive_at_their_stated_speed():
    make = runpy.run_path(str(ROOT / "data" / "make_samples.py"))
    cars = read_trace(samples_path() / "cars.fcd.xml").frame()
    assert cars["vehicle"].nunique() == 10
    assert (cars["speed_mps"] == make["SPEED_MPS"]).all()
    degrees = cars.groupby("vehicle")[["lon", "lat"]].diff().abs().dropna()
    metres = (
        degrees["lon"] / make["LON_STEP"] * make["EAST_WEST_M"]
        + degrees["lat"] / make["LAT_STEP"] * make["NORTH_SOUTH_M"]
    )
    straight = metres[(degrees == 0).any(axis=1)]
    assert len(straight) > 60
    assert straight.max() == pytest.approx(100, abs=0.5)


def test_sample_reference_needs_no_environment_variable():
    assert scenarios.locate("data:samples/taxis.csv") == samples_path() / "taxis.csv"
    assert scenarios.locate("data:samples/gmns", "folder") == samples_path() / "gmns"
    for wrong in ("data:samples/none.csv", "data:samples/../manifest.toml", "data:samples"):
        with pytest.raises(ScenarioError):
            scenarios.locate(wrong)


def test_user_folder_named_samples_is_still_found(tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    (tmp_path / "samples").mkdir()
    for name in ("mine.csv", "taxis.csv"):
        (tmp_path / "samples" / name).touch()
    assert scenarios.locate("data:samples/mine.csv") == tmp_path / "samples" / "mine.csv"
    assert scenarios.locate("data:samples/taxis.csv") == samples_path() / "taxis.csv"


def test_wheel_contains_the_samples_at_the_expected_path():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    places = {Path(source).name: target for source, target in included["force-include"].items()}
    packed = {"manifest.toml": "scenarios/manifest.toml", "samples": "scenarios/samples"}
    notebook = {"city.ipynb": "simulator/cli/templates/city.ipynb"}
    assert places == {"crowdveil.py": "crowdveil.py", **notebook, **packed}
    assert [manifest_path().name, samples_path().name] == list(packed)


def test_checksums_of_a_run_cover_folders_and_lists(tmp_path):
    roads = '[roads]\nsource = "gmns"\npath = "data:samples/gmns"\n'
    names = ("data:samples/taxis.csv", str(samples_path() / "taxis.csv"))
    recorded = f'[traffic]\nengine = "trace"\ntrace = [{", ".join(map(repr, names))}]\n'
    rest = '[cells]\nkind = "square"\nsize_m = 400\n[[campaigns]]\nstart_s = 30\n[[mechanisms]]\nkind = "no_privacy"\n'
    path = tmp_path / "mine.toml"
    path.write_text(f'[scenario]\nname = "mine"\nduration_s = 600\n{roads}{recorded}{rest}')
    found = data_checksums(scenarios.load(path))
    sums = {file.name: file.sha256 for file in SAMPLES.files}
    assert found == {
        "data:samples/gmns/link.csv": sums["gmns/link.csv"],
        "data:samples/gmns/node.csv": sums["gmns/node.csv"],
        **dict.fromkeys(names, sums["taxis.csv"]),
    }

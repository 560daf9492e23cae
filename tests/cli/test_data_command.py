"""`crowdveil data`: list and check over folders made for a test."""

import gzip
import hashlib
import json
import os
from functools import partial
from pathlib import Path

import pytest

from simulator.datasets import manifest as manifest_module

TEXT = b"a,b\n1,2\n"
REAL = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
MANIFEST = f"""
[[dataset]]
folder = "town"
title = "a town"
owner_page = "https://example.org/town"
origin = "here"
licence = "for laughs"
citation = "nobody"
attribution = "nobody"
obtain = "ask the mayor"
defects = ["none known"]

[[dataset.files]]
name = "plain.csv"
origin_path = "plain.csv"
compression = "none"
sha256 = "{hashlib.sha256(TEXT).hexdigest()}"
bytes = {len(TEXT)}
about = "letters"

[[dataset.files]]
name = "packed.csv.gz"
origin_path = "packed.csv"
compression = "gzip"
sha256 = "{hashlib.sha256(TEXT).hexdigest()}"
bytes = {len(TEXT)}
about = "letters"

[[dataset]]
folder = "village"
title = "a village that nobody has counted"
owner_page = "https://example.org/village"
origin = "elsewhere"
licence = "not stated"
citation = "nobody"
attribution = "nobody"
obtain = "walk there"
defects = ["no checksum"]
"""


@pytest.fixture
def data(call, monkeypatch, tmp_path):
    """`crowdveil data` with a manifest and a data folder made for the test."""
    path = tmp_path / "manifest.toml"
    path.write_text(MANIFEST)
    root = tmp_path / "data"
    (root / "town").mkdir(parents=True)
    monkeypatch.setattr(manifest_module, "manifest_path", lambda: path)
    monkeypatch.setenv("CROWDVEIL_DATA", str(root))
    monkeypatch.setenv("COLUMNS", "150")

    called = partial(call, "data")
    called.root, called.town = root, root / "town"
    return called


def write_data_files(data):
    (data.town / "plain.csv").write_bytes(TEXT)
    (data.town / "packed.csv.gz").write_bytes(gzip.compress(TEXT))


def test_list_shows_file_states(data):
    (data.town / "plain.csv").write_bytes(b"other")
    done = data("list")
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("town", "a town", "for laughs", "0/2 present, 1 changed", "village", "not listed", "fetchable"):
        assert words in done.stdout
    write_data_files(data)
    assert "2/2 present" in data("list").stdout


def test_list_as_json(data):
    write_data_files(data)
    (data.town / "packed.csv.gz").unlink()
    done = data("list", "--json")
    town, village = json.loads(done.stdout)
    assert (town["files"], town["present"], town["absent"], town["changed"]) == (2, 1, 1, 0)
    assert town["states"] == {"plain.csv": "ok", "packed.csv.gz": "missing"}
    assert (town["fetchable"], village["fetchable"], village["files"]) == ("no", "no", 0)
    assert (done.returncode, done.stderr) == (0, "")


def test_list_works_without_data_folder(data, monkeypatch):
    monkeypatch.delenv("CROWDVEIL_DATA")
    done = data("list")
    assert done.returncode == 0
    assert "0/2 present" in done.stdout
    assert "CROWDVEIL_DATA is not set" in done.stderr


def test_check_of_complete_data(data):
    write_data_files(data)
    for arguments in ([], ["town"], ["town", "town"]):
        done = data("check", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "town/plain.csv: ok",
            "town/packed.csv.gz: ok",
            "2 ok, 0 missing, 0 differ, 0 unlisted",
        ]


def test_check_of_incomplete_data_lists_missing_and_unlisted_files(data):
    (data.town / "plain.csv").write_bytes(TEXT)
    (data.town / "more.txt").touch()
    done = data("check", "town")
    assert done.returncode == 0
    assert "town/packed.csv.gz: missing" in done.stdout
    assert "town/more.txt: unlisted" in done.stdout
    assert "1 ok, 1 missing, 0 differ, 1 unlisted" in done.stdout


def test_check_of_changed_file_exits_with_2(data):
    write_data_files(data)
    (data.town / "plain.csv").write_bytes(b"a,b\n")
    for arguments in ([], ["town"]):
        done = data("check", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("crowdveil: town/plain.csv: differs, expected sha256")
        assert hashlib.sha256(b"a,b\n").hexdigest() in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_check_as_json(data):
    write_data_files(data)
    assert json.loads(data("check", "--json").stdout) == [
        {"folder": "town", "file": name, "state": "ok", "detail": ""} for name in ("plain.csv", "packed.csv.gz")
    ]


def test_check_without_any_data(data):
    done = data("check")
    assert (done.returncode, done.stdout) == (0, "0 ok, 0 missing, 0 differ, 0 unlisted\n")
    done = data("check", "town", "village")
    assert done.returncode == 2
    town, village = done.stderr.splitlines()
    assert "town: none of its files is under CROWDVEIL_DATA" in town
    assert "To get it: ask the mayor" in town
    assert "To get it: walk there" in village


def test_check_of_data_set_without_checksums_says_so(data):
    (data.root / "village").mkdir()
    (data.root / "village" / "count.csv").touch()
    done = data("check", "village")
    assert done.returncode == 0
    assert "village/count.csv: unlisted, the manifest lists no checksums for this data set" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "twon"], "there is no data set 'twon' (did you mean town?)"),
        (["fetch", "twon"], "did you mean town?"),
        (["fetch", "town/plain.cvs"], "there is no file 'plain.cvs' in it (did you mean plain.csv?)"),
        (["fetch", "village/x"], "there are none"),
        (["fetch"], "Missing argument"),
    ],
)
def test_unknown_data_set_or_file_name_suggests_the_nearest(data, arguments, words):
    done = data(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["check"], ["check", "town"], ["fetch", "town"]])
@pytest.mark.parametrize("where", [None, "nowhere"])
def test_missing_data_folder_gives_one_message(data, monkeypatch, arguments, where):
    if where is None:
        monkeypatch.delenv("CROWDVEIL_DATA")
    else:
        monkeypatch.setenv("CROWDVEIL_DATA", str(data.root / where))
    done = data(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert ("is not set" if where is None else "must name a folder") in done.stderr


def test_invalid_manifest_gives_one_message(data):
    (data.root.parent / "manifest.toml").write_text(MANIFEST.replace("bytes = 8", "bytes = -8"))
    done = data("list")
    assert done.returncode == 2
    assert "dataset.0.files.0.bytes" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not REAL.is_dir(), reason="CROWDVEIL_DATA names no folder: real data is not part of the project")
def test_real_data_match_the_manifest(call):
    done = call("data", "check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert {check["state"] for check in found if check["folder"] != "samples"} <= {"ok", "missing", "unlisted"}
    assert sum(check["state"] == "ok" for check in found) > 8

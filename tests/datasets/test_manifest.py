"""The manifest is complete and strict, and files in the folder of a data set are compared with it."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.references import data_set
from simulator.datasets.check import check_data_set, check_file
from simulator.datasets.manifest import DataFile, DataSet, data_root, folder_of, read_manifest
from simulator.files.errors import InputError

FILE = """
[[dataset.files]]
name = "a.csv.gz"
origin_path = "a.csv"
compression = "gzip"
sha256 = "{zeros}"
bytes = 3
rows = 1
format = "check_ins"
about = "letters"
""".format(zeros="0" * 64)
SET = """
[[dataset]]
folder = "town"
title = "a town"
owner_page = "https://example.org"
origin = "here"
licence = "not stated"
citation = "nobody"
attribution = "nobody"
obtain = "ask"
defects = ["none known"]
"""


def read(tmp_path, text):
    path = tmp_path / "manifest.toml"
    path.write_text(text, encoding="utf-8")
    return read_manifest(path)


def test_manifest_lists_every_data_set():
    manifest = read_manifest()
    held = {known.folder: len(known.files) for known in manifest}
    assert held == {
        "beijing_tdrive_sample": 1,
        "gmns": 6,
        "gowalla_nyc": 4,
        "nyc_trips": 1,
        "osm_drive_graphs": 4,
        "osm_extracts": 2,
        "pems_5min_one_station": 1,
        "pems_sensors": 6,
        "pems_typical_weekday": 4,
        "samples": 8,
        "sf_cabspotting": 3,
        "sumo": 16,
        "sumo_fcd": 1,
        "tntp": 16,
        "uci_breast_cancer": 1,
        "snap_loc_gowalla": 0,
        "tdrive": 0,
        "crawdad_cabspotting": 0,
        "pems_5min": 0,
    }


def test_addresses_are_pinned_to_the_commit_of_the_origin():
    for known in read_manifest():
        for file in known.fetchable:
            parts = re.fullmatch(r"https://raw\.githubusercontent\.com/([\w.-]+/[\w.-]+)/([0-9a-f]{40})/(.+)", file.url)
            assert parts, file.url
            repository, commit, path = parts.groups()
            assert (file.origin or known.origin).startswith(f"{repository} at commit {commit[:12]}")
            assert path == file.origin_path


def test_files_without_address_have_other_instructions():
    without = [(k, f) for k in read_manifest() if k.folder != "samples" for f in k.files if f.url is None]
    assert {f"{known.folder}/{file.name}" for known, file in without} == {
        "osm_extracts/Helsinki.osm.pbf",
        "sumo/cologne8/cologne8.net.xml.gz",
        "sumo/cologne8/cologne8.rou.xml.gz",
        "sumo_fcd/acosta_fcd_0_1800_10s.csv.gz",
    }
    for known, file in without:
        assert file.origin is not None or "sumo -n" in known.how_to_obtain


def test_scenario_messages_agree_with_the_manifest():
    for known in read_manifest():
        described = data_set(known.folder)
        words = known.title, known.licence, known.how_to_obtain
        assert (described.title, described.licence, described.obtain) == words
        assert list(described.files) == known.names


def test_no_file_is_listed_twice():
    sums = [file.sha256 for known in read_manifest() for file in known.files]
    assert len(set(sums)) == len(sums) > 60


def test_minimal_manifest(tmp_path):
    known = read(tmp_path, SET + FILE).data_set("town")
    assert known.file("a.csv.gz").rows == 1
    assert known.fetchable == ()
    with pytest.raises(InputError, match="did you mean town"):
        read(tmp_path, SET).data_set("towns")
    with pytest.raises(InputError, match=r"did you mean a\.csv\.gz"):
        known.file("b.csv.gz")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "a town"', 'title = "a town"\ncolour = "red"', "colour: Extra inputs are not permitted"),
        ('title = "a town"', "", "title: Field required"),
        ('title = "a town"', 'title = ""', "title: String should have at least 1 character"),
        ('folder = "town"', 'folder = "../town"', "folder: String should match"),
        ("https://example.org", "ftp://example.org", "must be an https address"),
        ('defects = ["none known"]', "defects = []", "defects: Tuple should have at least 1 item"),
        ('name = "a.csv.gz"', 'name = "../a.csv.gz"', "with / between its parts and no .."),
        ('name = "a.csv.gz"', 'name = "/etc/passwd.gz"', "must be a path under the data set's folder"),
        ('name = "a.csv.gz"', 'name = "a.csv"', "must end in .gz"),
        ('sha256 = "0', 'sha256 = "X', "sha256: String should match"),
        ("bytes = 3", 'bytes = "3"', "bytes: Input should be a valid integer"),
        ("bytes = 3", "bytes = 0", "bytes: Input should be greater than 0"),
        ("rows = 1", 'rows = 1\nurl = "http://example.org/a"', "must be an https address"),
        ("rows = 1", 'rows = 1\nconversion = "rds_to_csv"', "origin_sha256 is for files with a conversion"),
        ("rows = 1", "rows = 1\nlines = 2", "lines: Extra inputs"),
        ('format = "check_ins"', 'format = ""', "format: String should have at least 1 character"),
        ('compression = "gzip"', 'compression = "zip"', "compression: Input should be 'gzip' or 'none'"),
        ("[[dataset.files]]", SET + "[[dataset.files]]", "a folder must be described only once"),
        ("[[dataset.files]]", "[[dataset.files", "cannot be read as a manifest"),
        ('about = "letters"', 'about = "letters"' + FILE, "a file must be listed only once"),
    ],
    ids=range(20),
)
def test_manifest_fault_names_its_location(tmp_path, old, new, words):
    text = SET + FILE
    assert old in text
    with pytest.raises(InputError) as caught:
        read(tmp_path, text.replace(old, new, 1))
    assert words in str(caught.value)
    assert str(tmp_path / "manifest.toml") in str(caught.value)


def test_missing_manifest_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a manifest"):
        read_manifest(tmp_path / "none.toml")


TEXT = b"a,b\n1,2\n"


def data_file(name, contents=TEXT, **more):
    compression = "gzip" if name.endswith(".gz") else "none"
    return DataFile(
        name=name,
        origin_path=name,
        compression=compression,
        sha256=hashlib.sha256(contents).hexdigest(),
        bytes=len(contents),
        about="letters",
        **more,
    )


def town(*files):
    words = dict.fromkeys(("title", "origin", "licence", "citation", "attribution", "obtain"), "words")
    return DataSet(folder="town", owner_page="none", defects=("none known",), files=files, **words)


KNOWN = town(data_file("plain.csv"), data_file("deep/packed.csv.gz"))


@pytest.fixture
def there(tmp_path):
    """Both files, correct."""
    (tmp_path / "town" / "deep").mkdir(parents=True)
    (tmp_path / "town" / "plain.csv").write_bytes(TEXT)
    (tmp_path / "town" / "deep" / "packed.csv.gz").write_bytes(gzip.compress(TEXT))
    return tmp_path


def states(root):
    return [(check.name, check.state) for check in check_data_set(KNOWN, root)]


def test_correct_files_are_ok_in_any_gzip_of_the_same_contents(there):
    assert states(there) == [("plain.csv", "ok"), ("deep/packed.csv.gz", "ok")]
    (there / "town" / "deep" / "packed.csv.gz").write_bytes(gzip.compress(TEXT, compresslevel=0, mtime=7))
    assert states(there)[1] == ("deep/packed.csv.gz", "ok")


def test_absent_files_are_missing(tmp_path):
    assert states(tmp_path) == [("plain.csv", "missing"), ("deep/packed.csv.gz", "missing")]


def test_changed_file_message_has_expected_and_found_checksums(there):
    (there / "town" / "plain.csv").write_bytes(b"a,b\n1,3\n")
    check, _ = check_data_set(KNOWN, there)
    assert check.state == "differs"
    for contents in (TEXT, b"a,b\n1,3\n"):
        assert hashlib.sha256(contents).hexdigest() in str(check)
    assert str(check).startswith("town/plain.csv: differs, expected sha256")


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda whole: whole[:-9], "cannot be read"),
        (lambda whole: whole + b"junk", "cannot be read"),
        (lambda _: gzip.compress(TEXT[:-1]), "expected sha256"),
        (lambda _: gzip.compress(TEXT + b"3,4\n"), "found more"),
    ],
    ids=["cut", "junk", "short", "long"],
)
def test_damaged_gzip_differs(there, broken, words):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.write_bytes(broken(path.read_bytes()))
    check = check_data_set(KNOWN, there)[1]
    assert check.state == "differs"
    assert words in check.detail


def test_decompression_bomb_is_not_read_whole(there, monkeypatch):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.write_bytes(gzip.compress(b"0" * 200_000_000, compresslevel=1))
    seen = []
    read = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: seen.append(size) or read(self, size))
    assert check_data_set(KNOWN, there)[1].state == "differs"
    assert sum(seen) < 4_000_000


def test_uncompressed_file_gets_a_hint(there):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.rename(path.with_name("packed.csv"))
    missing, unlisted = check_data_set(KNOWN, there)[1:]
    assert (missing.state, unlisted.state) == ("missing", "unlisted")
    assert "compress it with gzip" in missing.detail


def test_extra_files_are_unlisted_and_hidden_ones_ignored(there):
    (there / "town" / "notes.txt").touch()
    (there / "town" / ".DS_Store").touch()
    assert states(there)[2:] == [("notes.txt", "unlisted")]


def test_data_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    with pytest.raises(InputError, match="is not set"):
        data_root()
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="must name a folder"):
        folder_of("town")
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    assert folder_of("town") == tmp_path / "town"


DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))


def need(folder, name):
    if not (DATA / folder / name).is_file():
        pytest.skip(f"there is no {folder}/{name} under CROWDVEIL_DATA: real data is not part of the project")


@pytest.mark.slow
def test_floating_car_data_are_reproduced_by_the_documented_commands(tmp_path):
    need("sumo_fcd", "acosta_fcd_0_1800_10s.csv.gz")
    need("sumo", "acosta/acosta.rou.xml.gz")
    sumo = pytest.importorskip("sumo", reason="making floating cars needs eclipse-sumo")
    page = (Path(__file__).parents[2] / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
    shell = page.split("```sh\nsumo ", 1)[1].split("\n```", 1)[0].replace("\\\n", " ").split()
    program = page.split("```python\n# fcd.xml to CSV\n", 1)[1].split("\n```", 1)[0]
    acosta = folder_of("sumo") / "acosta"
    command = [str(Path(sumo.SUMO_HOME) / "bin" / "sumo"), *shell]
    command[command.index("fcd.xml")] = str(tmp_path / "fcd.xml")
    done = subprocess.run([*command, "--no-warnings"], cwd=acosta, capture_output=True, text=True, check=False)
    if "1.28.0" not in subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("another version of SUMO drives otherwise")
    assert done.returncode == 0, done.stderr
    made = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    known = read_manifest().data_set("sumo_fcd")
    assert check_file(known, known.files[0], tmp_path).state == "ok"

"""The manifest is complete and strict: every file is pinned and described."""

from __future__ import annotations

import re

import pytest

from scenarios.references import data_set
from simulator.datasets.manifest import read_manifest
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
        assert (described.title, described.licence, described.obtain) == (
            known.title,
            known.licence,
            known.how_to_obtain,
        )
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
        ("rows = 1", "rows = 1\nlines = 2", "lines: Extra inputs"),
        ("rows = 1", 'rows = 1\nurl = "http://example.org/a"', "must be an https address"),
        ("rows = 1", 'rows = 1\nconversion = "rds_to_csv"', "origin_sha256 is for files with a conversion"),
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

"""`crowdveil reproduce`: output streams, exit codes, files."""

import json
import math
import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from simulator.files.errors import InputError
from simulator.papers.published_results import ENTRIES, DataError, Entry, Row, find_entries

KEYS = {"name", "paper", "title", "rows", "findings", "skipped"}


@pytest.fixture
def reproduce(call, monkeypatch):
    """`crowdveil reproduce` in an empty folder and without data sets."""
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    return partial(call, "reproduce")


def test_list_names_every_entry_and_computes_none(reproduce, monkeypatch):
    def refuse(*, seed):
        raise AssertionError(f"computed with seed {seed}")

    for entry in ENTRIES:
        monkeypatch.setitem(entry.__dict__, "reproduce", refuse)
    for arguments in (("--list",), ()):
        done = reproduce(*arguments)
        assert done.returncode == 0
        for entry, line in zip(ENTRIES, done.stdout.splitlines(), strict=True):
            assert line.split()[:2] == [entry.name, entry.paper]
            assert line.endswith(entry.title)
    assert "crowdveil reproduce NAME" in done.stderr  # the hint that is printed if no entry is named
    listed = json.loads(reproduce("--list", "--json").stdout)
    assert listed == [{"name": entry.name, "paper": entry.paper, "title": entry.title} for entry in ENTRIES]


def test_listing_entries_imports_no_heavy_library():
    script = (
        "import sys; from simulator.papers.published_results import ENTRIES; "
        "print([name for name in ('matplotlib', 'pandas', 'numba', 'scipy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_json_is_the_only_standard_output(reproduce, tmp_path):
    done = reproduce("sp-fig6", "--json")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert set(record) == KEYS
    assert record["name"] == "sp-fig6"
    assert record["paper"] == "SP"
    assert all(set(row) == {"key", "published", "computed", "agrees", "verdict", "note"} for row in record["rows"])
    assert "sp-fig6" in done.stderr
    assert list(tmp_path.iterdir()) == [], "no page unless --out is given"


def test_json_and_a_page(reproduce, tmp_path):
    done = reproduce("sp-fig1", "--json", "--out", "pages/one.html")
    assert json.loads(done.stdout)["name"] == "sp-fig1"
    assert (tmp_path / "pages" / "one.html").read_text().startswith("<!DOCTYPE html>")
    assert "pages/one.html" in done.stderr


def test_default_output_is_a_table_and_a_page_in_runs(reproduce, tmp_path):
    done = reproduce("sp-fig3")
    assert done.returncode == 0, "values that differ are findings, not failures"
    for words in ("differs", "agrees", "Found: ", "Page: runs/reproduce-sp-fig3.html"):
        assert words in done.stdout
    assert (tmp_path / "runs" / "reproduce-sp-fig3.html").is_file()


def test_entry_without_its_data_is_skipped_with_the_reason(reproduce):
    done = reproduce("sp-fig2", "--json")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert record["rows"] == []
    assert "gowalla_nyc/gowalla_events.csv.gz" in record["skipped"]
    assert "CROWDVEIL_DATA" in record["skipped"]
    words = " ".join(reproduce("sp-fig2").stdout.split())
    assert "Skipped: needs the file gowalla_nyc/gowalla_events.csv.gz" in words


@pytest.mark.parametrize(
    ("name", "near"), [("sp-fg6", "sp-fig6"), ("SP-FIG6", "sp-fig6"), ("alp-scalling", "alp-scaling"), ("al", "all")]
)
def test_unknown_entry_name_suggests_the_nearest(reproduce, tmp_path, name, near):
    done = reproduce(name)
    assert done.returncode == 2
    assert near in done.stderr
    assert repr(name) in done.stderr
    assert done.stderr.count("crowdveil: ") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_dissimilar_entry_name_lists_all_entries(reproduce):
    done = reproduce("zzzzzz")
    assert done.returncode == 2
    assert "sp-sec1-sigma, " in done.stderr


def test_unwritable_output_path_is_named_before_computing(reproduce, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "device")  # like /dev/full, which a page must not replace
    places = (("folder", "but is a folder"), ("file/page.html", "is a file"), ("device", "but is a device"))
    for out, words in places:
        done = reproduce("sp-fig6", "--out", out)
        assert done.returncode == 2
        assert words in done.stderr
        assert out in done.stderr
        assert "[1/1]" not in done.stderr


def test_seed_changes_the_result(reproduce):
    one, same, other = (reproduce("sp-fig4", "--json", "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert one == same
    assert one != other


def test_ctrl_c_exits_with_130_and_writes_no_page(reproduce, tmp_path, monkeypatch):
    def interrupted(*, seed):
        raise KeyboardInterrupt(seed)

    (entry,) = find_entries("sp-fig6")
    monkeypatch.setitem(entry.__dict__, "reproduce", interrupted)
    done = reproduce("sp-fig6")
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert not list(tmp_path.rglob("*.html"))


def test_all_gives_a_list_for_any_catalogue(reproduce, tmp_path, monkeypatch):
    entries = (
        Entry(name="one", paper="LQS", title="First", computed_by="made_here:first"),
        Entry(name="two", paper="crowdveil", title="Second", computed_by="made_here:second"),
    )

    def first(results, seed):
        results.rows.append(Row("a", None, math.inf, None, "nothing printed"))
        results.findings.append(f"seed {seed}")

    def second(_, seed):
        raise DataError(f"no data, seed {seed}")

    monkeypatch.setitem(sys.modules, "simulator.papers.made_here", SimpleNamespace(first=first, second=second))
    monkeypatch.setattr("simulator.cli.reproduce.ENTRIES", entries)
    one, two = json.loads(reproduce("all", "--seed", "3", "--json", "--out", "all.html").stdout)
    assert one["rows"][0]["computed"] == "infinite"
    assert one["findings"] == ["seed 3"]
    assert two["skipped"] == "no data, seed 3"
    assert (tmp_path / "all.html").is_file()
    assert json.loads(reproduce("one", "--json").stdout)["name"] == "one"
    with pytest.raises(InputError, match="did you mean two"):
        find_entries("tow", entries)

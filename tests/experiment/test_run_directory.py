"""The run directory: the documented files and columns, written completely or not at all."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

import scenarios
from simulator import run
from simulator.api import load
from simulator.pages.report import build_report
from simulator.results.schema import TABLES
from simulator.results.store import DirectoryError, UnfinishedRunError, fill_directory, link_latest


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "tiny"
    return run("tiny", out=out), out


def test_run_json(kept):
    _, out = kept
    facts = json.loads((out / "run.json").read_text(), parse_constant=pytest.fail)
    assert {"traffic", "protocol", "total"} <= facts["wall_s"].keys()
    assert {"vehicles", "routes", "peak"} == facts["memory_bytes"].keys()
    assert sum(seconds for phase, seconds in facts["wall_s"].items() if phase != "total") <= facts["wall_s"]["total"]
    rounds = pd.read_parquet(out / "rounds.parquet")
    assert facts["device_answers"] == rounds["answered"].sum()


def _change_record(out, change):
    facts = json.loads((out / "run.json").read_text())
    change(facts)
    (out / "run.json").write_text(json.dumps(facts))


def _change_table(out, name, change):
    change(pd.read_parquet(out / f"{name}.parquet")).to_parquet(out / f"{name}.parquet")


def read_all(directory):
    """Load a run and read its tables, each of which is read, and checked, when it is first needed."""
    loaded = load(directory)
    return [getattr(loaded, name) for name in TABLES]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda out: _change_record(out, lambda facts: facts["city"].update(crs=facts["city"]["crs"] + " added")),
            r"run\.json: city\.crs: must be a coordinate system",
        ),
        (lambda out: (out / "run.json").write_text("[" * 100_000), r"run\.json: not JSON"),
        (
            lambda out: _change_table(out, "estimates", lambda table: table.drop(columns=["truth", "lower"])),
            r"estimates\.parquet: without the columns truth, lower: restore the file",
        ),
        (
            lambda out: _change_table(out, "scores", lambda table: table.assign(rmse="large")),
            r"scores\.parquet: column rmse must have numbers",
        ),
        (
            lambda out: _change_table(out, "claims", lambda table: table.assign(view=1)),
            r"claims\.parquet: column view must have texts",
        ),
        (
            lambda out: _change_table(out, "estimates", lambda table: table.assign(mechanism="another")),
            r"estimates\.parquet: run\.json has no mechanism another",
        ),
        (
            lambda out: _change_table(out, "estimates", lambda table: table.assign(cell=table["cell"] + 1000)),
            r"estimates\.parquet: column cell must be from 1 to",
        ),
        (lambda out: _change_table(out, "cells", lambda table: table[["cell"]]), r"cells\.parquet: "),
        (lambda out: (out / "rounds.parquet").write_bytes(b"PAR1 damaged PAR1"), r"rounds\.parquet: cannot be read"),
    ],
)
def test_a_changed_file_of_a_run_is_named(kept, tmp_path, damage, message):
    shutil.copytree(kept[1], tmp_path / "run")
    damage(tmp_path / "run")
    for use in (build_report, read_all):  # `crowdveil report`; `crowdveil figures` and `export`
        with pytest.raises(UnfinishedRunError, match=message):
            use(tmp_path / "run")


def test_run_json_is_written_last(kept):
    _, out = kept
    newest = max(out.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert newest.name == "run.json"


def test_run_is_reproduced_from_its_own_scenario(kept, tmp_path):
    result, out = kept
    again = run(out / "scenario.toml", out=tmp_path / "again")
    pd.testing.assert_frame_equal(again.estimates, result.estimates)


def test_added_mechanism_or_campaign_changes_no_other_result(tmp_path):
    text = scenarios.source_text("tiny")
    more = tmp_path / "more.toml"
    more.write_text(
        "\n".join(
            [
                text.replace("[[campaigns]]", '[[campaigns]]\nname = "early"\nstart_s = 70\n\n[[campaigns]]', 1),
                '[[mechanisms]]\nname = "second"\nkind = "sampling_privacy"\nsampling = 0.3\nform = "binary"\n',
            ]
        )
    )
    alone, company = run("tiny"), run(more)
    same = company.estimates.query("campaign == 'occupancy' and mechanism != 'second'").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.estimates, same)
    assert set(company.estimates["campaign"]) == {"early", "occupancy"}


def test_geographic_cells_carry_their_global_identifier():
    result = run("tiny", overrides=["cells={kind='geographic', origin={lon=0.0, lat=0.0}}"])
    names = result.cells["name"].astype("int64")
    assert names.is_monotonic_increasing
    assert names.between(0, 2**32 - 1).all()
    assert result.estimates.query("mechanism == 'baseline'")["estimate"].sum() > 0


def test_run_is_not_overwritten_without_the_option(kept, tmp_path):
    _, out = kept
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(DirectoryError, match="--overwrite"):
        run("tiny", out=out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").write_bytes(b"miaow")
    with pytest.raises(DirectoryError, match="has other files"):
        run("tiny", out=other, overwrite=True)
    assert (other / "cat.jpg").read_bytes() == b"miaow"
    a_file = tmp_path / "file"
    a_file.write_text("")
    with pytest.raises(DirectoryError, match="must be a directory, but is a file"):
        run("tiny", out=a_file, overwrite=True)


def test_overwrite_replaces_the_whole_directory(tmp_path):
    out = tmp_path / "run"
    run("tiny", out=out)
    (out / "notes.txt").write_text("mine")
    run("tiny", seed=9, out=out, overwrite=True)
    assert json.loads((out / "run.json").read_text())["seed"] == 9
    assert not (out / "notes.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_failed_write_leaves_no_files(tmp_path):
    out = tmp_path / "run"

    def fail(staging):
        (staging / "run.json").write_text("{}")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fill_directory(out, fail, overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_concurrent_runs_take_one_directory_each(tmp_path):
    """Every run finds the first name free before any run takes it."""
    together = threading.Barrier(8)

    def write(number):
        def fill(staging):
            (staging / "run.json").write_text(str(number))
            together.wait()

        return fill_directory(tmp_path / "run", fill, overwrite=False, numbered=True)

    with ThreadPoolExecutor(8) as threads:
        places = list(threads.map(write, range(8)))
    assert {place.name for place in places} == {"run", *(f"run-{number}" for number in range(2, 9))}
    assert [int((place / "run.json").read_text()) for place in places] == list(range(8))
    assert len(list(tmp_path.iterdir())) == 8


def test_run_written_later_is_kept_under_another_name(tmp_path):
    out = tmp_path / "run"

    def fill(staging):
        (staging / "run.json").write_text("late")
        out.mkdir()
        (out / "run.json").write_text("early")

    with pytest.raises(DirectoryError, match=f"kept in {out}-2"):
        fill_directory(out, fill, overwrite=False)
    assert (out / "run.json").read_text() == "early"
    assert (tmp_path / "run-2" / "run.json").read_text() == "late"
    assert {path.name for path in tmp_path.iterdir()} == {"run", "run-2"}


def test_overwrite_refuses_a_directory_changed_in_the_meantime(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "run.json").write_text("early")

    def fill(staging):
        (staging / "run.json").write_text("late")
        (out / "run.json").rename(out / "photo.jpg")

    with pytest.raises(DirectoryError, match="kept in"):
        fill_directory(out, fill, overwrite=True)
    assert (out / "photo.jpg").read_text() == "early"
    assert (tmp_path / "run-2" / "run.json").read_text() == "late"


def test_latest_is_a_relative_link_or_absent(tmp_path, monkeypatch):
    for name in ("one", "two"):
        link_latest(tmp_path / name)
        assert (tmp_path / "latest").readlink() == Path(name)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").write_text("mine")
    link_latest(tmp_path / "one")
    assert (tmp_path / "latest").read_text() == "mine"
    (tmp_path / "latest").unlink()

    def refuse(*_, **__):
        raise OSError("no links here")

    monkeypatch.setattr("pathlib.Path.symlink_to", refuse)
    link_latest(tmp_path / "one")
    assert list(tmp_path.iterdir()) == []

"""The command line, in a process of its own or in this one: exit code and output."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import scenarios
from scenarios import Scenario

CROWDVEIL = [sys.executable, "-m", "simulator.cli"]


def crowdveil(*arguments, cwd=None, env=None):
    return subprocess.run([*CROWDVEIL, *arguments], capture_output=True, text=True, cwd=cwd, env=env, check=False)


NODES = "id,x,y\n0,500000,4500000\n1,500100,4500000\n2,500100,4500100\n"
EDGES = "a,b,len\n0,1,100\n1,2,100\n2,0,140\n"
SCENARIO = """
scenario = {name = "mine", duration_s = 120}
cells = {kind = "square", size_m = 50}
traffic = {vehicles = 20}
campaigns = [{start_s = 30, round_gap_s = 10}]
mechanisms = [{kind = "sampling_privacy", sampling = 0.4}]
[roads]
source = "tables"
nodes = "nodes.csv"
edges = "edges.csv"
crs = "EPSG:32618"
columns = { node = "id", x = "x", y = "y", from = "a", to = "b", length_m = "len" }
"""


@pytest.fixture
def user_folder(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    return tmp_path


# Override or file content, and words that the message must contain: a fault of a key, and those of files and of what
# is built of them.
BAD = {
    "unknown key": ("traffic.vehicels=5", None, ["traffic.vehicels", "unknown key", "vehicles"]),
    "cells too many to be meant": ("cells.size_m=0.005", None, ["cells", "memory needed", "--yes"]),
    "cells too small for their numbers": ("cells.size_m=0.0001", None, ["size_m = 0.0001", "cells, more than"]),
    "queries of three moments overlap": (
        "mechanisms=[{kind='anonymized_cancelling', shift=0.4}]",
        ("mine.toml", SCENARIO.replace("start_s = 30", "start_s = 30, queries = 2, every_s = 25")),
        ["campaigns.campaign.every_s", "anonymized_cancelling", "overlap", "2 times", "30 s"],
    ),
    "blanks for other cells": (
        "mechanisms=[{kind='sampling_privacy', sampling=0.4, blank=[0.3, 0.3]}]",
        None,
        ["mechanisms.sampling_privacy", "blank"],
    ),
    "plug-in that is not there": (
        "mechanisms=[{kind='no.such:Thing'}]",
        None,
        ["mechanisms.Thing.kind", "cannot be imported", "no.such"],
    ),
    "plug-in class that is not there": (
        "mechanisms=[{kind='json:Thing'}]",
        None,
        ["Thing", "cannot be imported", "json"],
    ),
    "outside more than can be counted": ("population.outside=9223372036854775807", None, ["outside", "at most"]),
    "outage of a server among many": (
        "aggregation={kind='secret_shared', servers=255}",
        ("mine.toml", SCENARIO + "[channel]\noutages = [{server = 300, from_s = 1, to_s = 2}]\n"),
        ["channel.outages[0].server", "there are server:1, server:2, …, server:255; got", "server:300"],
    ),
    "empty network": (None, ("edges.csv", "a,b,len\n"), ["roads", "edges.csv"]),
    "no usable edge": (None, ("edges.csv", "a,b,len\n0,9,5\n7,7,1\n"), ["roads", "no edge can be used", "rows 1, 2"]),
    "no path between zones": (
        None,
        ("edges.csv", "a,b,len\n0,1,100\n1,2,100\n"),
        ["roads", "in both directions"],
    ),
    "NaN coordinates": (None, ("nodes.csv", NODES.replace("500100,4500000", "nan,4500000")), ["row 2", "NaN"]),
    "missing column": (None, ("edges.csv", EDGES.replace("len", "metres")), ["len", "metres"]),
    "not a table": (None, ("nodes.csv", ""), ["nodes.csv"]),
    "duplicate nodes": (None, ("nodes.csv", NODES + "1,500300,4500000\n"), ["nodes.csv", "1"]),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_scenario_gives_one_message_and_exit_code_2(user_folder, call_in_process, case):
    override, file, words = BAD[case]
    if file:
        (user_folder / file[0]).write_text(file[1])
    done = call_in_process(
        "run", "mine.toml", "--allow-plugins", *(["--set", override] if override else []), cwd=user_folder
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("crowdveil: ") == 1
    for word in words:
        assert word in done.stderr
    assert not (user_folder / "runs").exists() or not list((user_folder / "runs").iterdir())


@pytest.mark.slow
def test_check_finds_faults_that_need_the_built_components(user_folder, call_in_process):
    """A missing server is detected only after deployments and the mechanisms' rounds are known."""
    outage = ("--set", "channel.outages=[{server='server:2', from_s=1, to_s=2}]")
    for command in ("check", "run"):
        place = ("scenarios", "check") if command == "check" else ("run",)
        done = call_in_process(*place, "mine.toml", *outage, cwd=user_folder)
        assert done.returncode == 2
        assert "channel.outages[0].server: there is none; there are server:1" in done.stderr
    shared = ("--set", "aggregation.kind=secret_shared")
    assert call_in_process("scenarios", "check", "mine.toml", *outage, *shared, cwd=user_folder).returncode == 0


def test_existing_run_is_not_overwritten_without_the_option(user_folder, call_in_process):
    assert call_in_process("run", "mine.toml", "--quiet", cwd=user_folder).returncode == 0
    again = call_in_process("run", "mine.toml", "--out", "runs/mine-1", cwd=user_folder)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    done = call_in_process("run", "mine.toml", "--overwrite", "--quiet", cwd=user_folder)
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == ""
    assert {path.name for path in (user_folder / "runs").iterdir()} == {"mine-1", "latest"}


def test_default_run_directory_is_numbered_and_latest_links_to_it(user_folder, call_in_process):
    runs = user_folder / "runs"
    (runs / "mine-1-2").mkdir(parents=True)
    (runs / "mine-1-2" / "photo.jpg").write_bytes(b"")  # not a run: must be kept
    for name in ("mine-1", "mine-1-3", "mine-1-4"):
        done = call_in_process("run", "mine.toml", cwd=user_folder)
        assert done.returncode == 0
        assert f"runs/{name}/report.html" in done.stdout
        assert (runs / name / "run.json").is_file()
        assert (runs / "latest").readlink() == Path(name)
    assert call_in_process("report", "runs/latest", cwd=user_folder).returncode == 0
    assert call_in_process("run", "mine.toml", "--quiet", "--out", "elsewhere/one", cwd=user_folder).returncode == 0
    assert (runs / "latest").readlink() == Path("mine-1-4")
    assert [path.name for path in (user_folder / "elsewhere").iterdir()] == ["one"]
    assert call_in_process("run", "mine.toml", "--quiet", "--out", "runs/two", cwd=user_folder).returncode == 0
    assert (runs / "latest").readlink() == Path("two")
    kept = (runs / "two" / "run.json").read_bytes()
    done = call_in_process(
        "run", "mine.toml", "--quiet", "--seed", "9", "--out", "runs/latest", "--overwrite", cwd=user_folder
    )
    assert done.returncode == 2
    assert "must not be a link" in done.stderr
    assert (runs / "two" / "run.json").read_bytes() == kept
    assert {path.name for path in runs.iterdir()} == {"mine-1", "mine-1-2", "mine-1-3", "mine-1-4", "two", "latest"}


def test_run_files_contain_no_absolute_paths(user_folder, call_in_process, tmp_path_factory):
    """Files in the scenario's folder are recorded by relative path, others by name, data sets by reference."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "edges.csv").write_text(EDGES + "1,1,5\n")  # one row is dropped, which gives a note
    given = ("--set", f"roads.edges='{elsewhere}/edges.csv'")
    assert call_in_process("run", "mine.toml", "--quiet", *given, cwd=user_folder).returncode == 0
    run = user_folder / "runs" / "mine-1"
    for file in run.iterdir():
        assert str(user_folder).encode() not in file.read_bytes(), file
        assert str(elsewhere).encode() not in file.read_bytes(), file
    facts = json.loads((run / "run.json").read_text())
    assert facts["data"].keys() == {"nodes.csv", "edges.csv"}
    assert facts["city"]["notes"] == ["edges.csv: dropped row 4: it leads from a node to itself"]
    assert hashlib.sha256((run / "scenario.toml").read_bytes()).hexdigest() == facts["scenario_sha256"]
    moved = user_folder / "moved"
    (user_folder / "runs").rename(moved)
    assert call_in_process("run", "moved/mine-1/scenario.toml", "--quiet", cwd=user_folder).returncode == 0
    again, first = (pd.read_parquet(runs / "mine-1" / "estimates.parquet") for runs in (user_folder / "runs", moved))
    pd.testing.assert_frame_equal(again, first)


def test_new_scenario_checks_runs_and_overwrites_nothing(tmp_path, call_in_process):
    assert call_in_process("scenarios", "new", "My town.toml", cwd=tmp_path).returncode == 0
    text = (tmp_path / "My town.toml").read_text()
    for command in (("scenarios", "check", "My town.toml"), ("run", "My town.toml", "--quiet")):
        assert call_in_process(*command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "runs" / "My-town-1" / "report.html").is_file()
    (tmp_path / "My town.toml").write_text("mine")
    for name, words in (
        ("My town.toml", "the file exists already"),
        ("town", "end in .toml"),
        ("no/a.toml", "no such"),
    ):
        refused = call_in_process("scenarios", "new", name, cwd=tmp_path)
        assert refused.returncode == 2
        assert words in refused.stderr
    assert (tmp_path / "My town.toml").read_text() == "mine"
    assert len(re.findall(r"^# [\w\[]+( =|\])", text, flags=re.MULTILINE)) > 10


def test_commented_sections_of_a_new_scenario_are_valid(tmp_path):
    """Each commented block, put in place of its section or into the one above, is valid except for missing files."""
    scenarios.write_template(tmp_path / "new.toml")
    text = (tmp_path / "new.toml").read_text()
    section = ""
    for block in re.findall(r"(?:^# (?:\[.*\]|\w+ = .*)\n)+|^\[+\w+\]+$", text, flags=re.MULTILINE):
        if not block.startswith("#"):
            section = block.strip("[]")
            continue
        tables = tomllib.loads(text)
        parsed = tomllib.loads(re.sub("^# ", "", block, flags=re.MULTILINE))
        if block.startswith("# ["):
            tables |= parsed
        else:
            tables[section] |= parsed
        found = Scenario.check(tables, tmp_path)
        faults = found if isinstance(found, list) else []
        assert [fault for fault in faults if "no such file" not in fault.rule] == [], block


def test_unwritable_output_path_is_named(user_folder, call_in_process):
    (user_folder / "file").write_text("")
    done = call_in_process("run", "mine.toml", "--out", "file/below", cwd=user_folder)
    assert done.returncode == 2
    assert "--out" in done.stderr
    assert "is a file; got file/below" in done.stderr
    assert "roads and cells" not in done.stderr  # detected before anything is simulated


BARE = """
import numpy as np
from mechanisms.local import Estimate, NoMemory
from mechanisms.privacy import Claim


class Bare:
    \"\"\"What the protocol asks for, and nothing more: k-ary randomized response by hand.\"\"\"

    rounds = truth_round = 1

    def __init__(self, *, cells, honesty):
        self.cells, self.honesty = cells, honesty
        self.tally_shape = (cells + 1,)

    def enrol(self, n, *, rng):
        return NoMemory(n)

    def toss(self, memory, *, rng):
        return rng.random(memory.devices) < self.honesty, rng.integers(self.cells + 1, size=memory.devices)

    def answer(self, round, truth, coins):
        return np.where(coins[0], truth, coins[1])

    def encode(self, reports):
        return np.eye(self.cells + 1, dtype=np.int64)[reports]

    def tally(self, reports):
        return np.bincount(reports, minlength=self.cells + 1)

    def estimate(self, counts, *, counted, asked):
        count = (counts[0, 1:] / counted[0] - (1 - self.honesty) / (self.cells + 1)) * asked[0] / self.honesty
        zero = np.zeros(self.cells)
        return Estimate(count, zero + asked[0], zero, zero + asked[0], "score")

    def sample_counts(self, true_counts, *, rng):
        truth = np.repeat(np.arange(self.cells + 1), true_counts)
        return self.tally(self.answer(1, truth, self.toss(NoMemory(len(truth)), rng=rng)))[None]

    def claim(self, view):
        return Claim.unknown("nobody has worked it out")
"""


@pytest.mark.slow
def test_plug_in_needs_only_the_protocol(user_folder):
    (user_folder / "bare.py").write_text(BARE)
    settings = ["--set", "mechanisms=[{kind='bare:Bare', honesty=0.7}]", "--set", "channel.loss=0.1", "--allow-plugins"]
    done = crowdveil("run", "mine.toml", *settings, "--set", "population.outside=50", "--out", "r", cwd=user_folder)
    assert done.returncode == 0, done.stderr
    estimates = pd.read_parquet(user_folder / "r" / "estimates.parquet")
    assert estimates["estimate"].notna().all()
    (user_folder / "bare.py").write_text(BARE.replace("def sample_counts", "def sample"))
    refused = crowdveil("run", "mine.toml", *settings, cwd=user_folder)
    assert refused.returncode == 2
    assert "must have sample_counts" in refused.stderr


def test_scenarios_list_show_schema(call):
    listed = call("scenarios", "list").stdout
    for name in ("manhattan", "tiny", "highway", "grid20", "manhattan-osm"):
        assert name in listed
    assert call("scenarios", "show", "tiny").stdout.startswith("#:schema schema.json\n# A handful of streets")
    assert 'waiting = "silent"' in call("scenarios", "show", "tiny", "--resolved").stdout
    schema = json.loads(call("scenarios", "schema").stdout)
    assert "campaigns" in schema["properties"]
    assert call("scenarios", "check", "tiny").returncode == 0

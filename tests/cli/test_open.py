"""`crowdveil open`, `crowdveil scenarios list --json`, `python -m crowdveil` and `-h`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scenarios
from simulator.cli.commands import COMMANDS, load_command
from simulator.cli.finished_runs import newest

DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture
def runs(tmp_path):
    """Two runs with pages, the newer one linked, an older study, and a folder without a page."""
    for age, name in enumerate(("runs/new", "runs/old", "studies/older")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "report.html").write_text("page")
        os.utime(tmp_path / name / "report.html", (1e9 - age, 1e9 - age))
    (tmp_path / "runs" / "latest").symlink_to("new")
    (tmp_path / "empty").mkdir()
    return tmp_path / "runs"


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="the browser is chosen by variables on Linux")
def test_open_starts_the_browser_with_the_page(runs, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    for arguments, page in (
        ((), "runs/new/report.html"),
        (("runs/old",), "runs/old/report.html"),
        (("runs/new/report.html",), "runs/new/report.html"),
    ):
        command = [sys.executable, "-m", "crowdveil", "open", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        assert done.stdout == f"{page}\n"
    opened = (tmp_path / "opened").read_text().splitlines()
    assert opened == [(runs / name / "report.html").as_uri() for name in ("new", "old", "new")]


@pytest.mark.usefixtures("runs")
def test_open_finds_the_newest_of_runs_and_studies(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert newest() == Path("runs/new/report.html")
    os.utime("studies/older/report.html")
    assert newest() == Path("studies/older/report.html")


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="there is always a display")
def test_open_prints_the_path_where_there_is_no_display(call, monkeypatch, runs):
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("a text browser would take over the terminal"))
    done = call("open", str(runs / "old"))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{runs / 'old' / 'report.html'}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is no report.html in runs or studies; crowdveil run SCENARIO makes one"),
        (("nowhere",), "there is no such folder; got nowhere"),
        (("empty",), "there is no report.html in it; crowdveil report empty writes it for a finished run; got empty"),
    ],
)
def test_open_without_a_page_gives_one_message(call, tmp_path, arguments, words):
    (tmp_path / "empty").mkdir()
    done = call("open", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"crowdveil: DIR must be a run or a study: {words}\n")


def test_scenarios_list_as_json(call):
    done = call("scenarios", "list", "--json")
    assert [row["name"] for row in json.loads(done.stdout)] == [one.name for one in scenarios.shipped()]
    assert all(row["description"] and row["file"].endswith(f"{row['name']}.toml") for row in json.loads(done.stdout))


SUBCOMMANDS = [(name, sub) for name in ("scenarios", "data", "roads") for sub in load_command(name).commands]


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), *SUBCOMMANDS])
def test_h_is_help(call, command):
    done = call(*command, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(('crowdveil', *command))} ")
    assert "-h, --help" in done.stdout
    assert not re.search(r"[^\]}]\.\.\.", done.stdout), "summaries are whole"

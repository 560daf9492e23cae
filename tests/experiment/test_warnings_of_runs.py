"""Warnings appear in the run's check, its terminal summary and the head of its report."""

import io
import itertools
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from scenarios import ScenarioError
from simulator import run
from simulator.files import resources
from simulator.pages.report import build_report, write_report
from simulator.pages.terminal_summary import print_summary

DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))

SCENARIO = """
scenario = {{name = "mistaken", duration_s = 600}}
cells = {{kind = "square", size_m = {size_m}}}
traffic = {{vehicles = 40}}
campaigns = [{{name = "c", start_s = 100, queries = 1, every_s = 100, round_gap_s = 10, deadline_s = 10}}]
mechanisms = [
    {{name = "baseline", kind = "no_privacy"}},
    {{name = "sampling", kind = "sampling_privacy", sampling = {sampling}}},
]
[roads]
source = "tables"
nodes = "n.csv"
edges = "e.csv"
crs = "EPSG:32633"
columns = {{node = "id", x = "x", y = "y", from = "a", to = "b", {speed} = "v"}}
"""


@pytest.fixture
def mistaken(tmp_path):
    """Write a ring of six nodes 400 m apart, at 50 km/h, and a road with an unknown end node."""

    def write(*, speed="speed_kph", size_m=200, sampling=0.4):
        places = [(i, 500_000 + 400 * (i % 3), 5_000_000 + 400 * (i // 3)) for i in range(6)]
        (tmp_path / "n.csv").write_text("id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in places))
        ring = [0, 1, 2, 5, 4, 3, 0]
        pairs = [*itertools.pairwise(ring), *zip(ring[1:], ring, strict=False), (0, 99)]
        (tmp_path / "e.csv").write_text("a,b,v\n" + "".join(f"{a},{b},50\n" for a, b in pairs))
        path = tmp_path / "mistaken.toml"
        path.write_text(SCENARIO.format(speed=speed, size_m=size_m, sampling=sampling))
        return path

    return write


def checked(path, call_in_process):
    """Return what `scenarios check` notes."""
    done = call_in_process("scenarios", "check", str(path), cwd=path.parent)
    assert done.returncode == 0
    return [line.removeprefix("note: ") for line in done.stderr.splitlines() if line.startswith("note: ")]


def summary(directory):
    stream = io.StringIO()
    print_summary(directory, Console(file=stream, width=10_000))
    return stream.getvalue()


def first_screen(page):
    return page[page.index("<header>") : page.index("</header>")]


def test_warnings_appear_in_summary_and_report_head(mistaken, tmp_path, call_in_process):
    path = mistaken(speed="speed_mps", sampling=0.6)
    notes = checked(path, call_in_process)
    directory = run(path).save(tmp_path / "run", render=write_report)
    facts, printed = json.loads((directory / "run.json").read_text()), summary(directory)
    speeds, sampling = facts["warnings"]
    assert "free-flow speed above 140 km/h" in speeds
    assert sampling.startswith("mechanisms.sampling: ")
    dropped = [note for note in notes if "dropped row 13" in note]
    assert sorted(notes) == sorted([speeds, sampling, *dropped])
    for note in notes:
        kind = "Note" if note in dropped else "Warning"
        assert printed.count(f"{kind}: {note}\n") == printed.count(note) == 1
    page = (directory / "report.html").read_text()
    head = first_screen(page)
    block = re.search(r'<div class="warnings".*?</div>', head, re.DOTALL)
    assert head.index('<a href="#warnings">2 warnings</a>') < head.index('class="verdict"'), "said before the result"
    assert block.start() < head.index("<table"), "before the numbers that it is about"
    assert "above 140 km/h" in block[0]
    assert "2 warnings" in block[0]
    assert "dropped" not in head, "what only informs comes later"
    assert "dropped row 13" in page


def test_run_without_warnings_has_no_warning_block(mistaken, tmp_path):
    directory = run(mistaken()).save(tmp_path / "run")
    assert json.loads((directory / "run.json").read_text())["warnings"] == []
    assert 'class="warnings"' not in build_report(directory)
    assert "Warning" not in summary(directory)


def test_many_warnings_do_not_hide_the_result(mistaken, tmp_path):
    directory = run(mistaken()).save(tmp_path / "run")
    facts = json.loads((directory / "run.json").read_text())
    facts["warnings"] = [f"warning number {number}." for number in range(9)]
    (directory / "run.json").write_text(json.dumps(facts))
    head = first_screen(build_report(directory))
    assert all(f"warning number {number}." in head for number in range(9))
    assert head.index("warning number 3.") < head.index("<summary>5 more") < head.index("warning number 4.")


@pytest.mark.parametrize("engine", ["fleet", "agents"])
def test_gridlock_gives_a_warning(engine):
    jam = ["roads.spacing_m=30", "traffic.vehicles=1500", f"traffic.engine={engine}", "cells.size_m=40"]
    assert run("tiny").facts["warnings"] == []
    facts = run("tiny", overrides=[*jam, "roads.one_way=true", "roads.capacity_vph=600"]).facts
    (message,) = facts["warnings"]
    assert message.startswith("gridlock: ")
    assert "; the limit is " in message
    assert f"of {facts['traffic']['departed'][-1]:,} vehicles departed, of 1,500 planned" in message


def test_wrong_crs_is_reported_before_the_number_of_cells(mistaken, tmp_path, monkeypatch):
    """Coordinates in miles are refused without a stated system, or if called degrees, where cells are too many."""
    monkeypatch.setattr(resources, "available_nbytes", lambda: 2e9)
    path, places = mistaken(), [(i, 0.9 + 0.25 * (i % 3), 1.3 + 0.25 * (i // 3)) for i in range(6)]
    rows = "".join(f"\t{a}\t{b}\t1800\t402\t29\t0\t4\t0\t0\t1\t;\n" for a in range(1, 7) for b in range(1, 7) if a != b)
    head = "<NUMBER OF ZONES> 6\n<NUMBER OF NODES> 6\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 30\n<END OF METADATA>\n"
    (tmp_path / "t_net").write_text(head + rows)
    (tmp_path / "t_node").write_text("node x y ;\n" + "".join(f"{i + 1} {x} {y} ;\n" for i, x, y in places))
    text = path.read_text()
    tntp = 'source = "tntp"\nnetwork = "t_net"\nnodes = "t_node"\nlength_unit = "m"\ntime_unit = "s"\n'
    for size_m in (20, 0.5):
        path.write_text(text.replace(text[text.index("source") :], tntp).replace("200", str(size_m)))
        with pytest.raises(ScenarioError) as caught:
            run(path)
        (fault,) = caught.value.faults
        assert fault.path == "roads.crs"
        assert "no coordinate system is stated: they agree if one unit of the coordinates is 1,1" in fault.rule
        path.write_text(path.read_text().replace('length_unit = "m"', 'length_unit = "m"\ncrs = "EPSG:4326"'))
        with pytest.raises(ScenarioError) as caught:
            run(path)
        first, second, cells = caught.value.faults
        assert first.path == "roads.crs"
        assert re.search(r"they span 5\d\.\d+ km by 2\d\.\d+ km, so that cells are too many", first.rule)
        assert "straight distance between a link's nodes is, in the median" in second.rule
        assert cells.path == "cells"


def test_too_many_cells_over_a_correct_city_is_a_cells_fault(mistaken, monkeypatch):
    monkeypatch.setattr(resources, "available_nbytes", lambda: 2e9)
    with pytest.raises(ScenarioError) as caught:
        run(mistaken(size_m=0.2))
    assert [fault.path for fault in caught.value.faults] == ["cells"]

"""A command that needs a package which is not installed says so before it works, and does without a decoration."""

import subprocess
import sys

import pytest

import scenarios
from scenarios import ScenarioError
from simulator.experiment.components import check_extras

WITHOUT_FIGURE = "participation.svg, .pdf, .png: not written: plots need matplotlib: pip install 'crowdveil[plot]'"


def called(folder, absent, *arguments):
    """Call the command line in a process in which a package cannot be imported."""
    code = f"import sys; sys.modules[{absent!r}] = None; from simulator.cli import main; main()"
    process = [sys.executable, "-c", code, *arguments]
    return subprocess.run(process, cwd=folder, capture_output=True, text=True, check=False, timeout=200)


def test_scenario_states_what_is_missing_before_anything_is_read(monkeypatch):
    tiny = scenarios.load("tiny")
    check_extras(tiny)
    monkeypatch.setitem(sys.modules, "h3", None)
    hexagons = tiny.with_({"cells": {"kind": "h3", "resolution": 9}})
    with pytest.raises(ScenarioError, match=r"cells\.kind: needs h3: pip install 'crowdveil\[h3\]'"):
        check_extras(hexagons)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    learning = tiny.with_({"attacks": [{"kind": "membership", "coalition": [], "learned": "logistic"}]})
    with pytest.raises(
        ScenarioError, match=r"attacks\.membership\.learned: needs sklearn: pip install 'crowdveil\[learn\]'"
    ):
        check_extras(learning)


@pytest.mark.slow
def test_study_of_hexagons_runs_no_point_without_h3(tmp_path):
    overrides = ("--set", 'cells={kind="h3", resolution=9}')
    done = called(tmp_path, "h3", "sweep", "tiny", *overrides, "--workers", "1")
    assert done.returncode == 2
    assert "pip install 'crowdveil[h3]'" in done.stderr
    assert not list(tmp_path.rglob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("film", [(), ("--film",)], ids=["figures", "film"])
def test_figures_name_the_extra_before_the_run_is_read(film, tmp_path):
    done = called(tmp_path, "matplotlib", "figures", "no-such-run", *film)
    assert done.returncode == 2
    assert done.stderr == "crowdveil: plots need matplotlib: pip install 'crowdveil[plot]'\n"


def test_participation_answers_without_its_figure(call_in_process, monkeypatch, tmp_path):
    for module in [*sys.modules]:
        if module.partition(".")[0] == "matplotlib":
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ("participation", "tiny", "--levels", "0.5", "--replicates", "1", "--workers", "0")
    done = call_in_process(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "studies" / "tiny-participation" / "report.html"
    assert page.is_file()
    assert str(page.relative_to(tmp_path)) in done.stdout
    assert "of the busiest tenth of cells are within 20 % of the truth" in done.stdout
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: {WITHOUT_FIGURE}"]
    assert not list(page.parent.glob("participation.*"))

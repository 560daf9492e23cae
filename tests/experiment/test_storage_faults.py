"""No fault at any step of writing loses a run or leaves half of one."""

import subprocess
import sys
from pathlib import Path

import pytest
import storage_faults as harness

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"


def table_of(faults):
    """Run the harness in a small process, which forks faster than this one."""
    command = [sys.executable, harness.__file__, "--faults", str(faults)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_fifty_faults_lose_no_run():
    assert "| **all** | 50 | 18 | 50 | 0 | 0 | 0 |" in table_of(50)


@pytest.mark.slow
@pytest.mark.thorough  # fifty are among the fast tests
def test_thousand_faults_are_survived_as_documented():
    table = table_of(1000)
    assert "| **all** | 1,000 | 336 | 1,000 | 0 | 0 | 0 |" in table
    assert "1,000 faults, of these 336 kills" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the child process neither locks nor starts a thread
@pytest.mark.thorough
def test_harness_detects_lost_runs_and_leftovers(monkeypatch):
    """Without the atomic exchange, and without restoring renamed directories, a kill loses the earlier run."""
    case = next(case for case in harness.CASES if not case.exchange)
    monkeypatch.setattr(harness, "CASES", (case,))
    monkeypatch.setattr(harness.atomic_write, "remove_leftovers", lambda _: None)
    (row,) = harness.inject(800).values()
    assert row["lost"] > 0
    assert row["left"] > 0

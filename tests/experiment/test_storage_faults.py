"""No fault at any step of writing loses a run or leaves half of one."""

import subprocess
import sys
from pathlib import Path

import pytest
import storage_faults as harness

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"


@pytest.mark.parametrize(
    ("faults", "kills"),
    [(50, 18), pytest.param(1000, 336, marks=[pytest.mark.slow, pytest.mark.thorough])],  # fifty are enough every day
)
def test_faults_lose_no_run(faults, kills):
    # In a small process, which forks faster than this one.
    command = [sys.executable, harness.__file__, "--faults", str(faults)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"| **all** | {faults:,} | {kills} | {faults:,} | 0 | 0 | 0 |" in table
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

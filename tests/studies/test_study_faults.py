"""No fault at any step of writing a study loses a point."""

import subprocess
import sys
from pathlib import Path

import pytest
import study_faults as harness

PAGE = Path(__file__).parents[2] / "docs" / "how" / "studies.md"


@pytest.mark.slow
def test_faults_of_every_command_lose_no_point():
    # In a small process, which forks faster than this one.
    command = [sys.executable, harness.__file__, "--faults", "28"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "| **all** | 28 | 13 | 28 | 0 | 0 | 0 | 0 | 0 |" in table


def test_page_gives_the_table_of_thousand_faults():
    assert "| **all** | 1,000 |" in PAGE.read_text(encoding="utf-8"), (
        f"run python {harness.__file__} docs/how/studies.md"
    )

"""No fault at any step of writing a study loses a point."""

import subprocess
import sys

import pytest
import study_faults as harness


@pytest.mark.slow
def test_faults_of_every_command_lose_no_point():
    # In a small process, which forks faster than this one.
    command = [sys.executable, harness.__file__, "--faults", "28"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "| **all** | 28 | 13 | 28 | 0 | 0 | 0 | 0 | 0 |" in table

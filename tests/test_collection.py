"""The tests that pytest collects have fixed names: workers that start at different times collect the same.

Continuous integration runs all tests so: with a late worker, and with a random hash in each.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FIXED = """
import gzip, pytest
@pytest.mark.parametrize("data", [gzip.compress(b"a"), b"text", b"\\x00\\xff"])
def test_bytes(data): assert data
"""
CLOCK = """
import pytest, time
@pytest.mark.parametrize("second", [str(time.time())])
def test_clock(second): assert second
"""
ADDRESS = """
import pytest
@pytest.mark.parametrize("text", [repr(object())])
def test_address(text): assert text
"""
CONTROL = """
import pytest
@pytest.mark.parametrize("text", ["\\x1f\\x8b"])
def test_control(text): assert text
"""
LONG = """
import pytest
@pytest.mark.parametrize("text", ["long"], ids=lambda text: text * 200)
def test_long(text): assert text
"""


def pytest_of(folder, *options, **variables):
    """Start pytest, with random hashes and without what this process was told."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=env | variables, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "words"),
    [
        pytest.param(FIXED, "3 passed", id="bytes have fixed ids"),
        pytest.param(CLOCK, "Different tests were collected", id="clock"),
        pytest.param(ADDRESS, "no fixed texts", id="address"),
        pytest.param(CONTROL, "no fixed texts", id="control characters"),
        pytest.param(LONG, "no fixed texts", id="long"),
    ],
)
def test_only_fixed_ids_are_collected_by_a_late_worker(module, words, tmp_path):
    for file in ("conftest.py", "verification.py"):
        shutil.copy(TESTS / file, tmp_path)
    (tmp_path / "test_ids.py").write_text(module, encoding="utf-8")
    started = pytest_of(tmp_path, "-n", "2", CROWDVEIL_TESTS_LATE_WORKER_S="1.1")
    printed, _ = started.communicate(timeout=200)
    assert words in printed
    assert (started.returncode == 0) == ("passed" in words), printed

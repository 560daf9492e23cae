"""Synthetic runs, and a real browser that opens their reports."""

import html
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from synthetic_run import SyntheticRun

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SyntheticRun().write(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SyntheticRun(columns=20, rows=25).write(tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="session")
def highway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    race = ("sampling", "randomized")
    run = SyntheticRun(1, 1, queries=400, mean=100, outside=10_000, mechanisms=race, scenario="highway")
    return run.write(tmp_path_factory.mktemp("highway"))


@pytest.fixture(scope="session")
def executable() -> str:
    """The path of an installed browser."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser to read the report in: none of {', '.join(BROWSERS)} is installed")
    return path


@pytest.fixture(scope="session")
def browse(executable: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], str]:
    """Open a page in a headless browser without any network; return the DOM once its scripts have run."""

    def open_page(page: Path, fragment: str = "") -> str:
        profile = tmp_path_factory.mktemp("profile")
        command = [
            executable, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=8000", "--window-size=1280,2400", "--enable-logging=stderr", "--dump-dom",
            page.as_uri() + fragment,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, timeout=120, check=True, env={**os.environ, "LANG": "C.UTF-8"}
        )
        written = done.stderr.decode("utf-8", "replace").splitlines()
        # Without a graphics card the browser remarks on WebGL.
        complaints = [line for line in written if "CONSOLE" in line and "WebGL" not in line]
        assert not complaints, "the page writes to the browser's console, which only errors do"
        return html.unescape(done.stdout.decode("utf-8"))

    return open_page

"""A real browser without network access, and its console messages."""

import html
import os
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def open_page(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The DOM after the page's scripts have run, and every line of its console."""
    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if executable is None:
        pytest.skip(f"no browser to read the page in: none of {', '.join(BROWSERS)} is installed")
    command = [
        executable, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND",
        "--enable-logging=stderr", "--virtual-time-budget=8000", "--window-size=1280,2400", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=120, check=True, env={**os.environ, "LANG": "C.UTF-8"})
    console_lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "CONSOLE" in line]
    return html.unescape(done.stdout.decode("utf-8")), console_lines

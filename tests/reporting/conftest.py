"""Synthetic runs, and a real browser that opens their reports."""

import html
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from synthetic_run import SyntheticRun

DRAWN_BY_SOFTWARE = "GPU stall due to ReadPixels"
"""Chromium's remark where it draws WebGL without a graphics card."""
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


@pytest.fixture(scope="module")  # while it runs, its event loop is in the way of other libraries
def chromium(executable: str) -> Iterator[Browser]:
    """A real browser."""
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page, in a context without network, and fails on any message or request."""
    contexts, complaints = [], []

    def open_(path: Path, *, width: int = 1280, height: int = 900, scheme: str = "light", fragment: str = "") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: DRAWN_BY_SOFTWARE in message.text or complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url),
        )
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("html[data-report=ready]", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def browse(open_page: Callable[..., Page]) -> Callable[..., str]:
    """Return a function that opens a page on a tall screen, and returns its DOM once its scripts have run."""
    return lambda path, fragment="": html.unescape(open_page(path, height=2400, fragment=fragment).content())

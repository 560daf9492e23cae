"""The documentation site: it builds without a warning, is whole, loads nothing from elsewhere and is accessible."""

import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from html_page import Page
from playwright.sync_api import sync_playwright

from reference_pages import REFERENCE, pages

pytestmark = pytest.mark.timeout(1150)  # all wait for the site

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {REFERENCE / name for name in pages("", "<!-- from the manifest: begin --><!-- from the manifest: end -->")}
WRITTEN = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page not in {*MADE, REFERENCE / "validation_tables.md"} - {REFERENCE / "data.md"}
    and not {"_build", "gallery", "api"} & {*page.relative_to(DOCS).parts}
]
"""Pages that are not generated."""
MAIN = (
    "index", "start/city", "start/your_mechanism", "how/python", "why/privacy", "reference/keys",
    "reference/keys/cells", "reference/columns/traffic", "reference/api", "reference/api/crowdveil.LocalMechanism",
    "reference/verification", "reference/gallery/index", "reference/gallery/tiny",
)  # fmt: skip
LOCAL = r"file:///|http://127\.0\.0\.1:|data:|blob:"
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "embed": "src"}


def sentences(text):
    """The sentences of a page outside code, tables and headings; addresses of links are no words."""
    text = re.sub(r"(?s)```.*?```|^\|.*?$|^#.*?$", " . ", text, flags=re.MULTILINE)
    text = re.sub(r"(?m)^\s*$|^\s*(?:[-*]|\d+\.) ", " . ", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?:])\s+|\s\.\s", text)


@pytest.mark.parametrize("page", WRITTEN, ids=[str(page.relative_to(DOCS)) for page in WRITTEN])
def test_written_pages_are_short_and_so_are_their_sentences(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= 2500
    assert [" ".join(words[:12]) for words in map(str.split, sentences(text)) if len(words) > 36] == []


def test_written_pages_have_at_most_forty_thousand_words():
    made = re.compile(
        r"(?s)<!-- (?:from the manifest: begin|ratios) -->.*<!-- (?:from the manifest: end|end of ratios) -->"
    )
    assert sum(len(made.sub("", page.read_text(encoding="utf-8")).split()) for page in WRITTEN) <= 40_000


def test_links_are_relative_exist_and_stay_in_the_docs():
    """They then hold on a code host and on the site; files outside the docs are named, not linked."""
    assert len(WRITTEN) > 20
    for page in [*WRITTEN, *MADE, ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if target.startswith("http"):
                continue
            place = (page.parent / target).resolve()
            made = {"gallery", "api"} & {*Path(target).parts[:-1]} or Path(target).suffix == ".html"
            assert made or place.exists(), (page, target)
            assert page.parent == ROOT or place.is_relative_to(DOCS), (page, target)


@pytest.fixture(scope="session")
def site(once):
    def build(place):
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(place)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-5000:]

    return once("site", build)


@pytest.mark.slow
def test_every_link_has_a_target_and_nothing_is_loaded_from_elsewhere(site):
    tags = {
        path: Page(path.read_text(encoding="utf-8")).tags
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    anchors = {path: {one.get("id") or one.get("name") for _, one in its} for path, its in tags.items()}
    assert len(tags) > 150
    for path, its in tags.items():
        for tag, attributes in its:
            address = attributes.get("href" if tag in {"a", "link"} else LOADING.get(tag, "")) or ""
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                assert tag == "a" or parts.scheme == "data", (path, tag, address)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, address)
            if parts.fragment and target in anchors:
                assert unquote(parts.fragment) in anchors[target], (path, address)
    for path in site.rglob("*.css"):
        loaded = re.findall(r"""(?:url\(|@import)\s*["']?([^"')]*)""", path.read_text(encoding="utf-8"))
        assert not [one for one in loaded if re.match(r"(https?:)?//", one)], path


@pytest.fixture(scope="module")
def address(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def is_fault(line):
    """Whether a line of the console is an error or a warning, and not about the speed of a machine without a GPU."""
    return line.type in {"error", "warning"} and "GL Driver Message" not in line.text


@pytest.fixture
def opened(request):
    """A page of a browser of a width and a colour scheme, and what it reported and asked for elsewhere."""
    path = shutil.which("chromium") or shutil.which("google-chrome") or pytest.skip("no browser is installed")
    width, scheme = request.param
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page, faults = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme), []
        page.on("console", lambda line: faults.append(line.text) if is_fault(line) else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda asked: re.match(LOCAL, asked.url) or faults.append(asked.url))
        yield page, faults
        browser.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "opened", [(width, scheme) for width in (390, 1280, 1920) for scheme in ("light", "dark")], indirect=True, ids=str
)
def test_main_pages_are_accessible_and_ask_nobody_else(site, address, opened):
    page, faults = opened
    for start in (address, site.as_uri()):
        for name in MAIN:
            page.goto(f"{start}/{name}.html")
            page.wait_for_load_state("networkidle")
            assert faults == [], (start, name)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            if start == address:
                found = Axe().run(page).response["violations"]
                assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == [], name
                faults.clear()  # axe reads style sheets by itself


@pytest.mark.slow
@pytest.mark.parametrize("opened", [(1280, "light")], indirect=True, ids=["wide"])
def test_search_finds_sampling_privacy(address, opened):
    page, faults = opened
    page.goto(f"{address}/search.html?q=Sampling+Privacy")
    page.wait_for_selector("#search-results ul.search li a")
    page.wait_for_function("document.querySelectorAll('#search-results ul.search li').length > 5")
    assert "Sampling Privacy" in page.locator("#search-results").inner_text()
    assert faults == []

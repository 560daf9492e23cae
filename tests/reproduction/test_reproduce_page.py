"""The page of reproduced entries: its content, no network access, and its figures in a browser."""

import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from reproduce_browser import open_page

from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.page import build_page, styled, write_page
from simulator.papers.published_results import Entry, Reproduction, Row

HOSTILE = '<script>document.title="stolen"</script><img src=x onerror="document.title=1">'


def entry(name="sp-one", title="One table", paper="SP"):
    return Entry(name=name, title=title, computed_by="module:function", paper=paper)


def done(of=None, title="A figure", note="to every digit"):
    return Reproduction(
        of or entry(),
        rows=[
            Row("first", 12, 12, True, note),
            Row("second", 0.5, 0.25, False, "half of it"),
            Row("third", None, math.inf, None, "nothing is printed"),
        ],
        charts=[
            Chart([Series("as printed", ["a", "b"], [1, 2], "points", style=PUBLISHED),
                   Series("ours", ["a", "b"], [1, 3], "bars")], Axis("group"), Axis("count"), title, "About it."),
            Chart([Series("as printed", [1, 10, 100], [1, 2, 3], style=PUBLISHED),
                   Series("ours", [1, 10, 100], [1, 3, None], low=[0.5, 2, 2], high=[2, 4, 4])],
                  Axis("devices", log=True), Axis("error", log=True), "Growth", "About growth."),
        ],
        findings=["What was found is here."],
    )  # fmt: skip


SKIPPED = Reproduction(entry("alp-two", "Another"), skipped="needs the file folder/file.csv")


class Words(HTMLParser):
    """The text outside scripts and styles, and every tag with its attributes."""

    def __init__(self, source):
        super().__init__()
        self.words, self.tags, self._inside = [], [], ""
        self.feed(source)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):  # noqa: ARG002  the base class names it
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in {"script", "style"}:
            self.words.append(data)


def test_every_value_note_and_finding_is_on_the_page():
    page = Words(build_page([done(), SKIPPED], seed=7))
    for words in (
        "One table", "J. Joy, M. Gerla, Differential Privacy By Sampling", "to every digit", "half of it", "∞",
        "What was found is here.", "1 of 2 published values agree; 1 more has none to agree with", "seed 7",
        "Skipped. needs the file folder/file.csv", "Skipped because their data are missing: alp-two.", "A figure",
        "Growth",
    ):  # fmt: skip
        assert words in page.text
    for mark in ("agrees", "differs", "not published"):  # in words, not by colour alone
        assert mark in page.text
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert {"#sp-one", "#alp-two"} <= set(links)
    ids = [attributes.get("id") for tag, attributes in page.tags if tag == "section"]
    assert {"index", "sp-one", "alp-two"} <= set(ids)


def test_page_head_counts_values_published_in_papers():
    own = done(entry("rivals", "Our own", "crowdveil"))
    page = Words(build_page([done(), own], seed=1))
    assert "Of 2 published values and conclusions 1 agree" in page.text
    assert "1 of 2 expected values agree" in page.text
    assert "Of 0" not in Words(build_page([own], seed=1)).text


def test_page_of_one_entry_has_no_index():
    page = Words(build_page([done()], seed=1))
    assert "Index" not in page.text
    assert [attributes.get("id") for tag, attributes in page.tags if tag == "section"] == ["sp-one"]


def test_page_uses_no_network_and_is_accessible():
    source = build_page([done()], seed=1)
    page = Words(source)
    assert "default-src 'none'" in source
    assert not [tag for tag, attributes in page.tags if attributes.get("src") or tag == "link"]
    figures = [attributes for _, attributes in page.tags if "data-chart" in attributes]
    assert len(figures) == 2
    assert all(attributes["aria-label"] for attributes in figures)
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")


def test_published_curves_are_hollow_and_computed_ones_filled():
    bars, lines = (styled(chart) for chart in done().charts)
    ours, published = bars.series  # the printed marks are on top
    assert published.style.hollow
    assert "published" in published.name
    assert (ours.mark, ours.style.hollow) == ("bars", False)
    assert published.x == ours.x == (0, 1), "printed points stand on the bars they belong to"
    assert (bars.x.ticks, bars.x.names) == ({0: "a", 1: "b"}, True)
    band, line, printed = lines.series
    assert (printed.mark, printed.style.dash, printed.style.hollow) == ("linked", "dash", True)
    assert line.y == (1, 3, None)
    assert (band.mark, band.low, band.high) == ("band", (0.5, 2, 2), (2, 4, 4))
    assert lines.x.log
    assert lines.y.log


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The DOM and the console's lines of a page with curves, with hostile texts and with bars over numbers."""
    folder = tmp_path_factory.mktemp("pages")
    bars = Chart([Series("P[j]", [1.0, 2.0, 3.0], [0.2, 0.5, 0.3], "bars")], Axis("j"), Axis("P"), "Bars", "Bars.")
    hostile = done(entry("alp-two", title=HOSTILE), title=HOSTILE, note=HOSTILE)
    own = Reproduction(entry("own"), [Row("one", 1, 1, True)], [bars])
    path = write_page([done(), hostile, own], folder / "below" / "page.html", seed=1)
    assert "<img src=x" not in path.read_text()
    return open_page(path, folder / "profile")


def figure(dom, name):
    start = dom.index(f'data-chart="{name}"')
    return dom[start : dom.index("</svg>", start)]


def test_browser_draws_every_figure_without_console_messages(shown):
    dom, console_lines = shown
    assert console_lines == []
    assert 'data-report="ready"' in dom
    assert len(re.findall(r'class="chart"', dom)) == 5
    assert len(re.findall(r'<rect[^>]*fill="#0072B2"', figure(dom, "own-0"))) == 3 + 1  # and the legend's


def test_a_logarithmic_axis_over_few_decades_has_ticks_between_the_powers_of_ten(shown):
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure(shown[0], "sp-one-1"))
    assert {"1", "2", "5", "10", "100"} <= set(texts)
    assert "1.5" in texts  # the values of y span less than a decade: 0.5 to 4


def test_entry_text_is_escaped(shown):
    assert "<title>stolen" not in shown[0]
    assert 'onerror="document' in shown[0]  # shown literally


def test_page_is_reproducible_and_written_atomically(tmp_path):
    path = write_page([done()], tmp_path / "page.html", seed=1)
    first = path.read_bytes()
    assert write_page([done()], path, seed=1).read_bytes() == first
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(FileExistsError):
        write_page([done()], path / "below.html", seed=1)

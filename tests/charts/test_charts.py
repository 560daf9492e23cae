"""Charts as values, and both of their renderers."""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reproduction"))

from reproduce_browser import open_page

from simulator.pages.charts import Axis, Chart, Series, Style
from simulator.pages.charts.spec import data, open_axis, over_names, with_shared_ends
from simulator.pages.charts.styles import STYLES, numbered_style, styles_of
from simulator.pages.document import Document, PageGroup, PageSection, render

X, Y = np.array([1.0, 10.0, 100.0]), [2, None, 8.5]
HOSTILE = '<img src=x> $\\frac{ & "quoted"'


def every_mark():
    """A chart for each mark, with all that its series may state."""
    red = Style("#D55E00", "square", dash="dot")
    low, high = [1.0, math.nan, 8.0], [3.0, math.nan, 9.0]
    marks = {
        "line": Series("a", X, Y, "line", red, thin=True),
        "points": Series("a", X, Y, "points", red, low, high, texts=["p", "q", "r"], bounds=[True, False, True]),
        "linked": Series("a", X, Y, "linked", red._replace(hollow=True), low, high),
        "bars": Series("a", X, Y, "bars", red, low, high, width=0.5),
        "band": Series("a", X, mark="band", style=red, low=low, high=high),
        "dashes": Series("a", X, Y, "dashes", red),
    }
    return {mark: Chart([series], Axis("x"), Axis(HOSTILE, from_zero=True)) for mark, series in marks.items()}


def test_values_are_plain_and_equal():
    series = Series("a", X, np.array([1.0, math.nan, math.inf]), low=np.zeros(3))
    assert series.x == (1.0, 10.0, 100.0)
    assert series.y == (1.0, None, None)
    assert series == Series("a", [1.0, 10.0, 100.0], [1.0, None, None], low=[0.0] * 3)


def test_json_holds_what_differs_from_the_defaults():
    chart = Chart([Series("a", [1 / 3], [2.0])], Axis("x", ticks={1: "one"}), Axis("y", log=True), "title", "about")
    stated = json.loads(json.dumps(data(chart), allow_nan=False))
    assert stated["series"] == [
        {"name": "a", "x": [0.3333333], "y": [2], "mark": "line", "style": Style("#3d4852")._asdict()}
    ]
    assert stated["x"] == {"title": "x", "ticks": [[1, "one"]]}
    assert stated["y"] == {"title": "y", "log": True}
    assert set(stated) == {"series", "x", "y"}  # the caption and the alternative are in the page's markup


def test_bars_stand_side_by_side_and_points_on_them_unless_a_line_crosses():
    bars = [Series(name, ["u", "v"], [1, 2], "bars") for name in "ab"]
    points = Series("c", ["v"], [2], "points")
    placed, axis = over_names([*bars, points], "x")
    assert axis.ticks == {0: "u", 1: "v"}
    assert placed[0].x == (-0.1875, 0.8125)
    assert placed[1].x == (0.1875, 1.1875)
    assert placed[2].x == (0.8125,)  # the first of the points on the first of the bars
    assert placed[0].width == 0.375
    placed, _ = over_names([points, Series("d", ["u", "v"], [1, 2])], "x")
    assert (placed[0].x, placed[1].x) == ((0,), (1, 0))


@pytest.mark.parametrize(
    ("log", "values", "low", "ends"),
    [
        (False, [[-10.0, 0.0], [math.nan, 30.0]], None, (-12.0, 32.0)),
        (False, [[50.0], [60.0]], None, (49.5, 60.5)),  # far above 0
        (False, [[10.0], [60.0]], [4.0], (-3.0, 63.0)),  # near 0, which is shown
        (True, [[0.0, 1.0], [8.0]], [1e-9, 0.5], (0.25 / 1.25, 10.0)),  # an interval that nearly reaches 0 is cut off
        (False, [[2.0], [2.0]], None, (1.9, 2.1)),
    ],
)
def test_a_group_shares_the_widest_ends(log, values, low, ends):
    charts = [Chart([Series("a", range(len(y)), y, low=low)], Axis("x"), Axis("y", log=log)) for y in values]
    shared = with_shared_ends(charts, "group")
    assert [chart.shared_ends for chart in shared] == [pytest.approx(ends)] * 2
    assert [chart.facet for chart in shared] == ["group"] * 2


def test_a_group_without_numbers_keeps_its_own_ends():
    empty = Chart([], Axis("x"), Axis("y"))
    assert with_shared_ends([empty]) == [empty]
    assert with_shared_ends([]) == []


def test_zero_infinite_and_unknown_values_have_places_beside_the_others():
    values = [0.0, 0.5, 4.0, math.inf, math.nan, 1e-13, 1e101]
    axis, places = open_axis("ε", values)
    zero, half, four, infinite, unknown, tiny, huge = places
    assert (half, four) == (0.5, 4.0)
    assert zero == tiny < half < four < infinite == huge < unknown
    assert axis.ticks[unknown] == "unknown"
    assert (axis.ticks[zero], axis.ticks[infinite]) == ("<1e-12", ">1e100")
    assert list(axis.ticks) == sorted(axis.ticks)
    assert axis.ends[0] < zero
    assert axis.ends[1] > unknown
    assert set(open_axis("ε", [0.5, 4.0])[0].ticks.values()).isdisjoint({"0", "∞", "unknown"})


def test_styles_are_distinct_and_the_usual_ones_fixed():
    assert len({numbered_style(place) for place in range(14)}) == 14
    styles = styles_of(["mine", "Randomized response", "Sampling Privacy"])
    assert styles == {"mine": STYLES[2], "Randomized response": STYLES[1], "Sampling Privacy": STYLES[0]}


@pytest.mark.parametrize("mark", every_mark())
@pytest.mark.parametrize("sideways", [False, True])
def test_matplotlib_draws_every_mark(mark, sideways):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    from simulator.pages.charts.matplotlib import draw  # noqa: PLC0415 - needs matplotlib

    chart = every_mark()[mark]
    ax = figure.add_subplot()
    draw(Chart(chart.series, chart.x, chart.y, sideways=sideways), ax)
    figure.canvas.draw()
    assert ax.lines or ax.patches or ax.collections or ax.images
    assert ax.get_xlabel() == "x"
    if mark == "points":
        assert [text.xy for text in ax.texts if text.get_text() == "≤"] == [(1.0, 2.0), (100.0, 8.5)]


def test_the_pages_script_draws_every_mark(tmp_path):
    drawn = list(every_mark().values())
    section = PageSection("marks", "Marks", groups=[PageGroup(charts=drawn)])
    path = tmp_path / "page.html"
    document = Document("marks", "marks", "marks", "", [section], "marks")
    path.write_text(render(document), encoding="utf-8")
    assert "const Motion" not in path.read_text(encoding="utf-8")  # scripts of the map are on pages that have one
    dom, console_lines = open_page(path, tmp_path / "profile")
    assert console_lines == []
    figures = dom.split('data-chart="')[1:]
    assert len(figures) == len(drawn)
    for mark, figure in zip(every_mark(), figures, strict=True):
        inner = figure[figure.index("clip-path=") : figure.index("</svg>")]
        assert re.search(r"<(path|rect)", inner), mark
        assert "NaN" not in inner, mark
    assert "≤" in figures[list(every_mark()).index("points")]
    assert f">{HOSTILE}<" in dom
    assert "<img src=x>" not in path.read_text(encoding="utf-8")

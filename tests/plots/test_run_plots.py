"""Plots of a run: what is drawn equals the run's tables, in the report's colours, on axes that compose."""

import math
import subprocess
import sys

import geopandas as gpd
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy import stats

import crowdveil as cv
from simulator.files.errors import InputError
from simulator.pages.charts.matplotlib import marker
from simulator.pages.charts.styles import numbered_style
from simulator.pages.plots import NothingToDrawError, RunPlots
from simulator.pages.plots.city_map import projected
from simulator.pages.run_charts import measured, style
from simulator.roads.projection import crs_about

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_hex  # noqa: E402  after the backend

PLOTS = ("map", "errors", "growth", "privacy", "attacks", "traffic")


@pytest.fixture(scope="module")
def attacked():
    """Five campaigns, four mechanisms, and attacks, with few vehicles."""
    return cv.run("collusion", overrides={"traffic.vehicles": 300})


@pytest.fixture(scope="module")
def tiny():
    return cv.run("tiny", overrides={"campaigns.0.queries": 3, "campaigns.0.every_s": 60, "population.outside": 100})


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def lines_of(ax, marker):
    """The (x, y, colour) of the lines with a marker; "" for any marker."""
    drawn = [line for line in ax.lines if line.get_marker() not in {"None", "none", "|", ""}]
    return [line for line in drawn if not marker or line.get_marker() == marker]


def labels_of(ax):
    return [tick.get_text().replace("\n", " ") for tick in ax.get_yticklabels()]


@pytest.mark.parametrize("name", PLOTS)
def test_plots_draw_on_given_axes_and_on_new_ones(attacked, name):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    method = getattr(attacked.plot, name)
    assert method(ax=axes[1]) is axes[1]
    assert not axes[0].lines
    assert not axes[0].collections
    figure.canvas.draw()
    alone = method()
    assert alone.figure is not figure
    assert alone.figure.number in plt.get_fignums()  # a notebook shows it
    alone.figure.canvas.draw()


def test_maps_show_the_values_of_the_chosen_query(tiny):
    for quantity in ("truth", "estimate", "error"):
        ax = tiny.plot.map("randomized", query=2, quantity=quantity, roads=False)
        rows = tiny.estimates.query("mechanism == 'randomized' and query == 2").sort_values("cell")
        expected = rows["estimate"] - rows["truth"] if quantity == "error" else rows[quantity]
        shown = ax.collections[0].get_array()
        assert np.allclose(shown, expected)
        bar = ax.figure.axes[-1]
        assert bar.get_ylabel() == ("estimate − truth, vehicles" if quantity == "error" else "vehicles")
        assert "query 2" in ax.get_title(loc="left")
    low, high = ax.collections[0].get_clim()
    assert low == -high  # zero is in the middle of the colours
    hatched = [collection for collection in ax.collections if collection.get_hatch()]
    assert len(hatched) == 1
    assert len(hatched[0].get_paths()) == (expected < 0).sum()


def test_truth_and_estimates_share_a_scale_that_starts_at_zero(tiny):
    scales = {tiny.plot.map(name, quantity=q, query=n, roads=False).collections[0].get_clim()
              for name in ("sampling", "baseline") for q in ("truth", "estimate") for n in (1, 3)}  # fmt: skip
    assert scales == {(0.0, max(1.0, tiny.estimates["truth"].max()))}


def test_a_map_has_a_scale_bar_of_its_stated_length_and_roads_beneath(tiny):
    ax = tiny.plot.map()
    bar = next(line for line in ax.lines if len(line.get_xdata()) == 2)
    words = next(text.get_text() for text in ax.texts if text.get_text().endswith(" m"))
    length = float(np.ptp(bar.get_xdata()))
    assert f"{length:g} m" == words
    west, _, east, _ = tiny.cells.to_crs(tiny.record.city.crs).total_bounds
    assert (east - west) / 10 < length <= (east - west) / 3
    roads = min(ax.collections, key=lambda collection: collection.get_zorder())
    assert len(roads.get_segments()) == tiny.record.city.links
    assert not any(type(c).__name__ == "LineCollection" for c in tiny.plot.map(roads=False).collections)


def test_a_map_of_places_without_coordinates_has_no_scale_bar(tiny, monkeypatch):
    city = tiny.record.city.model_copy(update={"links": 0, "crs": crs_about((0.0, 0.0)).to_json()})
    plots = tiny.plot
    monkeypatch.setattr(plots._run, "record", tiny.record.model_copy(update={"city": city}))
    ax = plots.map(roads=False)
    assert list(ax.lines) == []
    assert not any(text.get_text().endswith(" m") for text in ax.texts)


def test_a_run_that_kept_no_roads_has_a_map_of_cells_only(tiny):
    assert len(tiny.plot.map().collections) == 2
    assert len(RunPlots(tiny.with_tables(roads=None)).map().collections) == 1


def test_errors_are_those_of_the_scores_beside_theory(attacked):
    ax = attacked.plot.errors()
    run = attacked.leading
    shown = lines_of(ax, "")
    assert [line.get_xdata()[0] for line in shown] == pytest.approx(attacked.scores["rmse"].tolist())
    assert [to_hex(line.get_color()) for line in shown] == [
        style(run, name).colour.lower() for name in attacked.scores["mechanism"]
    ]
    theory = [line.get_xdata()[0] for line in ax.lines if line.get_label() == "theory"]
    assert theory == pytest.approx(attacked.scores["theory_rmse"].tolist())
    assert {text.get_text() for text in ax.texts} == set(attacked.scores["campaign"])
    assert ax.get_xlabel() == "RMSE of a cell, vehicles"


def test_intervals_of_errors_are_t_intervals_over_the_queries(tiny):
    ax = tiny.plot.errors()
    bars = [segment[:, 0] for c in ax.collections for segment in c.get_segments()]
    expected = []
    for _, rows in tiny.estimates.groupby("mechanism", sort=False):
        squares = ((rows["estimate"] - rows["truth"]) ** 2).groupby(rows["query"]).mean()
        # The same interval as on the first screen of the report: its ends are roots of those of the mean square.
        half = stats.t.ppf(0.975, 2) * stats.sem(squares)
        expected.append([math.sqrt(max(squares.mean() - half, 0.0)), math.sqrt(squares.mean() + half)])
    assert np.allclose(bars, expected)


def test_growth_shows_the_reports_curves_and_points(tiny):
    ax = tiny.plot.growth()
    run = tiny.leading
    for name in ("sampling", "randomized"):
        look, scaling = style(run, name), run.record.mechanisms_by_name[name].scaling
        own = [line for line in ax.lines if to_hex(line.get_color()) == look.colour.lower()]
        curve, points = own
        assert curve.get_xdata().tolist() == [
            n for n, error in zip(scaling.asked, scaling.std_error, strict=True) if error
        ]
        assert list(zip(points.get_xdata(), points.get_ydata(), strict=True)) == measured(run, name)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_privacy_marks_zero_finite_and_infinite(attacked):
    ax = attacked.plot.privacy()
    run = attacked.leading
    ticks = dict(zip([t.get_text() for t in ax.get_xticklabels()], ax.get_xticks(), strict=True))
    at = {}
    colours = {style(run, name).colour.lower(): name for name in run.record.mechanisms_by_name}
    rows = dict(zip(labels_of(ax), ax.get_yticks(), strict=True))
    for line in lines_of(ax, ""):
        row = min(rows, key=lambda label: abs(rows[label] - line.get_ydata()[0]))
        at[row, colours[to_hex(line.get_color())]] = line.get_xdata()[0]
    assert at["linked reports", "sampling"] == ticks["∞"]
    assert at["report round 1", "sampling"] == ticks["0"]
    claims = attacked.claims.query("view == 'report_round_2' and mechanism == 'sampling' and delta == 0")
    assert at["report round 2", "sampling"] == pytest.approx(claims["epsilon"].min())
    assert at["report round 1", "k-ary"] == pytest.approx(4.0)
    assert at["shares, 3 of 3 servers", "sampling"] == ticks["∞"] > ticks["10"]
    bounds = attacked.claims.query("view == 'shuffled_round_1' and delta == 0 and kind == 'bound'")["mechanism"]
    beside = [text for text in ax.texts if text.get_text() == "≤" and abs(text.xy[1] - rows["shuffled round 1"]) < 1.0]
    assert len(beside) == bounds.nunique() > 0


def test_unknown_claims_stand_apart_and_hide_no_known_one(tiny):
    claims = tiny.claims.copy()
    unknown = (claims["mechanism"] == "randomized") & (claims["view"] == "report_round_1")
    claims.loc[unknown, ["kind", "epsilon"]] = ["unknown", np.nan]
    ax = RunPlots(tiny.with_tables(claims=claims)).privacy()
    ticks = dict(zip([t.get_text() for t in ax.get_xticklabels()], ax.get_xticks(), strict=True))
    assert ticks["unknown"] > ticks["∞"]
    assert ticks["unknown"] in {line.get_xdata()[0] for line in lines_of(ax, "")}


def test_delta_is_that_at_the_epsilon_nearest_to_one(tiny):
    ax = tiny.plot.privacy("delta")
    rows = tiny.claims.query("view == 'linked_reports' and mechanism == 'sampling' and delta > 0")
    delta = rows.loc[(rows["epsilon"] - 1).abs().idxmin(), "delta"]
    place = dict(zip(labels_of(ax), ax.get_yticks(), strict=True))["linked reports"]
    shown = [line.get_xdata()[0] for line in lines_of(ax, "") if abs(line.get_ydata()[0] - place) < 0.5]
    assert shown == [pytest.approx(delta)]


def test_attacks_show_success_theory_and_the_prior(attacked):
    ax = attacked.plot.attacks()
    found = attacked.attacks[attacked.attacks["metric"].isna() & attacked.attacks["success"].notna()]
    assert sorted(line.get_xdata()[0] for line in lines_of(ax, "")) == pytest.approx(sorted(found["success"]))
    priors = {round(line.get_xdata()[0], 9) for line in ax.lines if line.get_label().startswith("guess without")}
    assert priors == {round(prior, 9) for prior in found["prior"]}
    theory = [line.get_xdata()[0] for line in ax.lines if line.get_label() == "theory"]
    assert sorted(theory) == pytest.approx(sorted(found["theory"].dropna()))
    assert any(label.startswith("both-servers: server:1, server:2") for label in labels_of(ax))


def test_traffic_is_that_of_the_record(tiny):
    ax = tiny.plot.traffic()
    record = tiny.record.traffic
    shown = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    assert shown == {"on the road": record.on_road, "waiting to enter": record.waiting, "arrived": record.arrived}
    assert ax.lines[0].get_xdata().tolist() == [time_s / 60 for time_s in record.times_s]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda plot: plot.map("oue"), "mechanism: must be one of sampling, randomized, baseline; got 'oue'"),
        (lambda plot: plot.map(campaign="x"), "campaign: must be one of occupancy; got 'x'"),
        (lambda plot: plot.map(query=9), "query: must be one of 1, 2, 3; got 9"),
        (lambda plot: plot.map(quantity="bias"), "quantity: must be one of truth, estimate, error; got 'bias'"),
        (lambda plot: plot.errors(unit="m/s"), "unit: must be one of vehicles; got 'm/s'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(tiny, call, message):
    with pytest.raises(InputError, match="must be one of") as caught:
        call(tiny.plot)
    assert str(caught.value) == message


def test_a_run_without_attacks_or_such_claims_says_so(tiny):
    with pytest.raises(NothingToDrawError, match="no attack of this run guesses"):
        tiny.plot.attacks()
    with pytest.raises(NothingToDrawError, match="this run has no claims about 7 queries"):
        tiny.plot.privacy(queries=7)


def test_every_report_lost_is_drawn():
    lost = cv.run("tiny", overrides={"channel.loss": 1})
    for name in ("map", "errors", "privacy", "traffic"):
        getattr(lost.plot, name)().figure.canvas.draw()
    nothing = lost.with_tables(estimates=lost.estimates.assign(estimate=np.nan))
    ax = RunPlots(nothing).map(roads=False)
    assert all(collection.get_array() is None for collection in ax.collections)  # outlines alone


def test_one_cell_is_drawn():
    one = cv.run("tiny", overrides={"cells.size_m": 10_000})
    assert len(one.cells) == 1
    for name in ("map", "errors", "growth", "privacy", "traffic"):
        getattr(one.plot, name)().figure.canvas.draw()


def test_many_cells_become_a_picture_inside_the_figure(tmp_path):
    many = cv.run("tiny", overrides={"cells.size_m": 8})
    assert len(many.cells) > 5_000
    figure = many.plot.map().figure
    figure.savefig(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size < 300_000
    assert "<image" in (tmp_path / "map.svg").read_text(encoding="utf-8")


def test_mechanisms_after_the_seventh_have_open_symbols():
    looks = [marker(numbered_style(place)) for place in range(14)]
    faces = [look["markerfacecolor"] for look in looks]
    assert faces[:7] == [look["color"] for look in looks[:7]]
    assert faces[7:] == ["white"] * 7
    assert len({(look["color"], look["marker"], look["markerfacecolor"]) for look in looks}) == 14


def test_hostile_and_foreign_names_are_shown_as_they_are(tmp_path):
    names = ["<script>alert(1)</script>", "شارع الملك", "北京市", "$\\frac{"]
    zones = gpd.GeoDataFrame(
        {"name": names},
        geometry=[shapely.box(499_900 + 200 * i, -100, 500_100 + 200 * i, 700) for i in range(4)],
        crs="EPSG:32632",
    )
    scenario = cv.Scenario(
        scenario={"name": "names", "duration_s": 300, "description": names[0]},
        roads={"source": "none"},
        cells={"kind": "zones", "file": zones, "name": "name"},
        traffic={
            "engine": "trace",
            "trace": pd.DataFrame(
                {"vehicle": ["a", "a", "b", "b"], "time": [0, 300, 0, 300], "lon": [9.0, 9.001, 9.003, 9.004],
                 "lat": [0.001] * 4}
            ),
            "gap_s": 400,
            "called": ["$x$ <script>", "$\\frac{x <script>"],
        },
        campaigns=[{"start_s": 60, "every_s": 60, "queries": 2}],
        mechanisms=[{"kind": "no_privacy"}, {"kind": "sampling_privacy", "sampling": 0.45}],
    )  # fmt: skip
    result = cv.run(scenario, out=tmp_path / "run")
    ax = result.plot.errors()
    ax.figure.canvas.draw()
    assert "<script>" in ax.get_xlabel()
    for name in ("map", "growth", "traffic"):
        getattr(result.plot, name)().figure.canvas.draw()
    html = result._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_notebook_shows_scores_and_a_map(tiny):
    html = tiny._repr_html_()
    assert html.count("<iframe") == 1
    assert html.count("<tr") == 1 + len(tiny.scores)
    assert len(html) < 400_000


def test_matplotlib_is_imported_only_by_plots_and_its_absence_names_the_extra():
    code = """
import sys
sys.modules["matplotlib"] = None
import crowdveil as cv
result = cv.run("tiny")
try:
    result.plot.map()
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "plots need matplotlib: pip install 'crowdveil[plot]'\n", done.stderr


def test_cells_without_a_plane_are_drawn_in_their_utm_zone():
    cells = gpd.GeoDataFrame(geometry=[shapely.box(11.3, 44.4, 11.4, 44.5)], crs=4326)
    assert projected(cells, None).crs.to_epsg() == 32632
    assert projected(cells, "EPSG:3857").crs.to_epsg() == 3857

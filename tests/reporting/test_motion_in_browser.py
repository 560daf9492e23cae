"""Vehicles in motion in a real browser: drawn where the traffic engine has them, lit when asked, played, counted."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from simulator.api import load, run
from simulator.pages.map_section import city_outlines
from simulator.pages.report import build_report
from simulator.results.run import RunResult
from simulator.traffic import motion

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAINT = """time => {
  const looks = {states: Array(6).fill('#ff0000'), quiet: '#0000ff', ramp: Array(8).fill('#0000ff')};
  Motion.shown.draw(time, {measure: 'none', looks});
  return document.getElementById('vehicles').toDataURL();
}"""
"""Draws all vehicles in red and all roads in blue."""
COUNTS = r"[\d,]+(?= (?:driving|standing|waiting))"


@pytest.fixture
def opened(open_page):
    return lambda directory: open_page(directory / "report.html")


def seek(page, time_s):
    page.locator("#choose-time").evaluate(
        "(node, time) => { node.value = time; node.dispatchEvent(new Event('input')); }", time_s
    )


def drawing(run_, lon_lat):
    west, north, across, down = city_outlines(run_.cells, run_.roads)["frame"]
    return (lon_lat - [west, north]) * [across, -down]


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """Return runs that write the position of every vehicle at some moments, apart from the motion for the map."""
    made = {}

    def directory(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("driven") / name
            try:
                run(name, out=made[name], overrides={"fcd.every_s": 150, "fcd.formats": ["parquet"]}, assume_yes=True)
            except ValueError as error:
                pytest.skip(str(error))
        return made[name]

    return directory


@pytest.mark.parametrize("name", ["lossy", "helsinki-osm", pytest.param("parked-cars", marks=pytest.mark.thorough)])
def test_vehicles_are_drawn_where_the_engine_has_them(driven, opened, name):
    directory = driven(name)
    page, run_ = opened(directory), RunResult.load(directory)
    written = pd.read_parquet(directory / "fcd.parquet")
    moments = [time for time in written["time_s"].unique() if (written["time_s"] == time).sum() > 50]
    for time_s in np.array(moments)[[1, len(moments) // 2, -2]]:
        rows = written[written["time_s"] == time_s].set_index("vehicle")
        found = pd.DataFrame(
            page.evaluate("time => Motion.shown.places(time)", float(time_s)), columns=["vehicle", "x", "y", "state"]
        ).set_index("vehicle")
        found = found[found["state"] != 1]  # those that wait to enter are drawn, and not asked
        # An entry that is decided after a query may be dated up to a tick before it.
        assert len(found.index.symmetric_difference(rows.index)) <= 0.002 * len(rows)
        rows = rows.loc[rows.index.intersection(found.index)]
        expected = drawing(run_, rows[["lon", "lat"]].to_numpy())
        there = found.loc[rows.index, ["x", "y"]].to_numpy()
        # Bends are left out up to 0.2 of 1,000 units, and places stored in 1/64; a bend left out also shortens a link.
        # The page knows times in 1/8 tick, no side of the road, and not when a vehicle that is on a junction left the
        # lane before it.
        away, unit_m = np.abs(there - expected).max(axis=1), 111_320 / city_outlines(run_.cells, run_.roads)["frame"][3]
        assert np.quantile(away, 0.95) < 0.6 + 6 / unit_m
        assert away.max() < 0.6 + 15 / unit_m
        standing = (found.loc[rows.index, "state"] == 3).to_numpy()
        assert 0 <= standing.mean() < 1
        # What is painted: red dots where the page has vehicles, and not where there is no vehicle.
        url = page.evaluate(PAINT, float(time_s))
        image = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGBA"))
        red = (image[..., 0] > 200) & (image[..., 2] < 60) & (image[..., 3] > 0)
        tall, wide = red.shape
        left, top, across, _ = page.evaluate("Motion.shown.box")
        middle = (there - [left, top]) * wide / across
        column, row = np.clip(np.rint(middle), 3, np.array([wide, tall]) - 4).astype(int).T
        near = np.any([red[row + j, column + i] for i in (-2, -1, 0, 1, 2) for j in (-2, -1, 0, 1, 2)], axis=0)
        assert near.all()
        assert red.mean() < 0.1


def test_play_moves_vehicles_and_shows_each_query_when_it_asks(driven, opened):
    directory = driven("lossy")
    page, result = opened(directory), load(directory)
    asked_s = sorted({query.time_s for query in result.record.traffic_at_queries})
    seek(page, asked_s[1] - 20)
    assert page.locator("#map").get_attribute("data-query") == "1"
    before = page.evaluate("Motion.shown.places(Number(document.getElementById('choose-time').value))")
    page.locator("#choose-speed").select_option("15")
    page.locator("#play").click()
    page.locator("#map[data-query='2']").wait_for(state="attached", timeout=20_000)
    status = page.locator("#motion-status").inner_text()
    page.locator("#play").click()
    time_s = float(page.locator("#choose-time").input_value())
    assert asked_s[1] <= time_s < asked_s[1] + 60
    after = page.evaluate("time => Motion.shown.places(time)", time_s)
    here = {vehicle: (x, y) for vehicle, x, y, _ in before}
    moved = [vehicle for vehicle, x, y, state in after if state == 2 and here.get(vehicle, (x, y)) != (x, y)]
    assert len(moved) > 100
    asked = result.rounds.query("query == 2 and round == 1")["asked"].max()
    assert f"{asked - result.scenario.population.outside:,} asked by query 2" in status
    page.locator("#choose-query").focus()
    page.keyboard.press("Home")
    assert float(page.locator("#choose-time").input_value()) == pytest.approx(
        result.estimates.query("query == 1")["time_s"].iloc[0], abs=1
    )


@pytest.mark.parametrize("waiting", ["silent", "answer"])
def test_waiting_vehicles_light_up_only_if_they_are_asked(waiting, opened, tmp_path):
    crowd = [{"from_s": 0, "to_s": 60, "share": 1.0}]
    changes = {"traffic.vehicles": 4000, "traffic.departures": crowd, "traffic.waiting": waiting}
    result = run("tiny", out=tmp_path / "run", overrides=changes)
    page, query = opened(tmp_path / "run"), result.record.traffic_at_queries[0]
    asked = page.evaluate("time => Motion.shown.ask(time)", query.time_s)
    expected = query.on_road + (query.waiting if waiting == "answer" else 0)
    assert result.rounds.query("query == 1")["asked"].max() == expected
    assert abs(asked - expected) <= 2, "an entry that is decided after a query may be dated up to a tick before it"


def test_the_guess_of_a_coalition_stands_beside_the_true_place(opened, tmp_path):
    result = run("collusion", out=tmp_path / "run", overrides={"traffic.vehicles": 3000})
    page, one = opened(tmp_path / "run"), result.guesses.iloc[0]
    page.locator("#choose-campaign").select_option(label=one["campaign"])
    page.locator("#choose-mechanism").select_option(one["mechanism"])
    page.locator("#choose-guess").select_option(f"{one['coalition']} ({one['name']})")
    page.locator("#choose-query").evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", int(one["query"]) - 1
    )
    status = page.locator("#motion-status").inner_text()
    assert f"Vehicle {one['vehicle']}: at this query it was in cell {one['truth']} " in status
    right = one["guess"] == one["truth"]
    assert (f"guesses it in cell {one['guess']} " in status) != right
    shape = page.locator("#stage path.guess").get_attribute("d")
    drawn = city_outlines(result.cells, RunResult.load(tmp_path / "run").roads)["paths"]
    assert shape == drawn[result.cells["cell"].tolist().index(one["guess"])]
    ring = page.locator("#stage circle.chosen")
    x, y = page.evaluate(
        "([vehicle, time]) => { const p = Motion.shown.where(vehicle, time); return [p.x, p.y]; }",
        [int(one["vehicle"]), float(one["time_s"])],
    )
    assert (float(ring.get_attribute("cx")), float(ring.get_attribute("cy"))) == pytest.approx((x, y))
    # The route through the middles of the cells, beside the guessed one.
    keys = ["name", "coalition", "campaign", "mechanism"]
    own = result.guesses[(result.guesses[keys] == one[keys]).all(axis=1)]
    hits = int((own["guess"] == own["truth"]).sum())
    assert f"Of the route, {one['coalition']} guesses {hits} of {len(own)} cells right." in status
    assert "true cells" in page.locator("#motion-scale").inner_text()
    for kind, aside, cells in (("true", -3, own["truth"]), ("guessed", 3, own["guess"])):
        route = re.findall(r"[ML](\S+) ([^L]+)", page.locator(f"#stage path.{kind}-cells").get_attribute("d"))
        pixel = page.evaluate("document.querySelector('#stage svg:last-of-type').clientWidth")
        outlines = [drawn[result.cells["cell"].tolist().index(cell)] for cell in cells]
        corners = [np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", outline), dtype=float) for outline in outlines]
        middles = np.array([(each.min(axis=0) + each.max(axis=0)) / 2 for each in corners])
        expected = middles + aside * city_outlines(result.cells)["width"] / pixel
        assert np.array(route, dtype=float) == pytest.approx(expected, abs=0.06)


def test_a_sample_is_said_to_be_one(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(motion, "MOST_ENTRIES", 100_000)
    result = run("lossy", out=tmp_path / "run")
    every = int(result.entries["vehicle"].drop_duplicates().diff().median())
    assert every > 1
    page = opened(tmp_path / "run")
    assert f"one of {every} of the run’s vehicles" in page.locator("#motion figcaption").inner_text()
    query = result.record.traffic_at_queries[1]
    seek(page, query.time_s)
    numbers = re.findall(r"([\d,]+) (?:driving|standing)", page.locator("#motion-status").inner_text())
    shown = sum(int(n.replace(",", "")) for n in numbers)
    assert shown % every == 0
    # Every n-th vehicle of those on the road, whose places in the order of departure are as good as random.
    assert abs(shown - query.on_road) < 5 * np.sqrt(every * query.on_road)


def test_the_benchmark_with_its_vehicles_is_small(shipped_run):
    assert len(build_report(shipped_run("grid20")).encode()) < 12e6


def test_counts_colours_and_files_of_the_vehicles_are_those_of_the_run(driven, opened, tmp_path):
    directory = driven("lossy")
    page = opened(directory)
    for query in load(directory).record.traffic_at_queries[:3]:
        seek(page, query.time_s)
        numbers = re.findall(COUNTS, page.locator("#motion-status").inner_text())
        driving, queued, waiting = (int(number.replace(",", "")) for number in numbers)
        assert (driving + queued, waiting) == (query.on_road, query.waiting)
    page.get_by_role("button", name="Zoom in").click()  # a picture shows the whole city all the same
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            page.locator("#motion .tools button", has_text=kind).click()
        download.value.save_as(tmp_path / f"vehicles.{kind}")
    rows = pd.read_csv(tmp_path / "vehicles.CSV")
    assert (rows["state"] == "waiting to enter").sum() == query.waiting
    assert rows["state"].isin(["driving", "standing in a queue"]).sum() == query.on_road
    assert "data:image/png;base64," in (tmp_path / "vehicles.SVG").read_text()
    with Image.open(tmp_path / "vehicles.PNG") as image:
        assert len(image.convert("RGB").getcolors(1_000_000)) > 5
    for measure, words in (("density", "vehicles per km and lane"), ("queue", "vehicles standing")):
        page.locator("#choose-roads").select_option(measure)
        assert f"linear scale, {words}" in page.locator("#motion-scale").inner_text()
    page.locator("#choose-roads").select_option("none")
    assert "scale" not in page.locator("#motion-scale").inner_text()

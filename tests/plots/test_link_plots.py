"""Plots and charts of links by interval equal sums of the run's tables."""

import matplotlib as mpl
import numpy as np
import pytest

import crowdveil as cv
from simulator.pages.map_section import city_outlines
from simulator.pages.motion_section import motion_section
from simulator.pages.plots import NothingToDrawError
from simulator.pages.traffic_section import fundamental_diagram, time_space, traffic_section

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def run_():
    return cv.run("tiny", overrides={"report.link_interval_s": 70, "traffic.vehicles": 300})


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_the_fundamental_diagram_is_that_of_all_links(run_):
    """Time and distance of single vehicles, by hand: all links together have as many vehicles as are on the road."""
    chart = traffic_section(run_).values["diagram"]
    assert chart == fundamental_diagram(run_)
    (series,) = chart.series
    km = run_.roads["length_m"].sum() / 1000.0
    entries = run_.entries[run_.entries["event"] != "departure"]
    ends = entries.groupby("vehicle")["time_s"].agg(["min", "max"])
    ends.loc[entries.groupby("vehicle")["event"].last() != "arrival", "max"] = 300.0
    for interval, (density, flow) in enumerate(zip(series.x, series.y, strict=True)):
        low, high = 70.0 * interval, min(70.0 * (interval + 1), 300.0)
        spent = (ends["max"].clip(low, high) - ends["min"].clip(low, high)).sum()
        assert density == pytest.approx(spent / (high - low) / km)
        of_interval = run_.links[run_.links["from_s"] == low]
        driven_km = (of_interval["mean_speed_mps"] * of_interval["occupied_s"]).sum() / 1000.0
        assert flow == pytest.approx(driven_km / km / ((high - low) / 3600.0))
        assert flow <= density * 18.0 * 1.001  # no vehicle is faster than 18 km/h
    assert fundamental_diagram(cv.run("tiny")) is None


def test_a_time_space_diagram_shows_the_vehicles_on_the_links_of_a_route(run_):
    vehicle = int(run_.trips.query("state == 'arrived'")["route_length_m"].idxmax())
    others, own = time_space(run_, vehicle).series
    rows = run_.entries[(run_.entries["vehicle"] == vehicle) & (run_.entries["event"] != "departure")]
    places = np.append(0.0, np.cumsum(run_.roads["length_m"].to_numpy()[rows["link"].to_numpy()[:-1]]))
    assert [x for x in own.x if x is not None][::2] == pytest.approx((rows["time_s"].to_numpy() / 60)[:-1])
    assert [y for y in own.y if y is not None][::2] == pytest.approx(places[:-1])
    assert [y for y in own.y if y is not None][1::2] == pytest.approx(places[1:])
    assert len(others.x) > 0
    assert run_.plot.time_space(vehicle).get_ylabel() == "distance along the route, m"
    assert time_space(run_) is not None
    with pytest.raises(NothingToDrawError, match="no link entries of such a vehicle"):
        run_.plot.time_space(9999)


@pytest.mark.parametrize("quantity", ["volume", "speed"])
def test_links_are_coloured_by_their_volume_or_speed(run_, quantity):
    ax = run_.plot.links(quantity)
    drawn = np.concatenate([each.get_array() for each in ax.collections if each.get_array() is not None])
    links = run_.links.assign(driven=run_.links["mean_speed_mps"] * run_.links["occupied_s"]).groupby("link").sum()
    expected = links["left"] * 12 if quantity == "volume" else links["driven"] / links["occupied_s"]
    np.testing.assert_allclose(np.sort(drawn), np.sort(expected))
    with pytest.raises(NothingToDrawError, match=r"\[report\] link_interval_s"):
        cv.run("tiny").plot.links(quantity)


def test_the_page_has_the_volume_of_each_link_in_each_interval(run_, tmp_path):
    saved = type(run_).load(run_.save(tmp_path / "run"))
    page = motion_section(saved, city_outlines(saved.cells, saved.roads))["page"]
    assert page["interval_s"] == 70.0
    counts = {name: count for name, count, _ in page["columns"]}
    assert counts["volume"] == counts["lost"] == 5 * len(saved.roads)

"""The report's traffic section: one engine or a comparison of two, in sentences that follow from the log."""

import json
import re

import pytest
from html_page import Page
from synthetic_run import SyntheticRun

from simulator.pages.report import build_report
from simulator.results.run_record import BESIDE


def record(engine, *, on_road, waiting, arrived, mean_trip_s, stuck=0, notes=(), absent=0):
    """Totals at four times: the given final values, and shares of them before."""
    shares = (0.25, 0.5, 0.75, 1.0)
    series = {
        "on_road": [round(on_road * share) for share in shares],
        "waiting": [round(waiting * share) for share in shares],
        "arrived": [round(arrived * share) for share in shares],
        "absent": [0, 0, 0, absent],
    }
    departed = [sum(counts) for counts in zip(*series.values(), strict=True)]
    return {
        "engine": engine,
        "times_s": [100.0, 200.0, 300.0, 400.0],
        "departed": departed,
        **series,
        "mean_trip_s": [None, mean_trip_s, mean_trip_s, mean_trip_s],
        "arrived_total": arrived,
        "stuck_released": stuck,
        "notes": list(notes),
    }


SUMO = record(
    "sumo", on_road=400, waiting=200, arrived=400, mean_trip_s=300.0, stuck=7, notes=["SUMO 9 drove", "a <b> note"]
)
FLEET = record("fleet", on_road=200, waiting=0, arrived=790, mean_trip_s=100.0, notes=["10 not driven: buses"])


@pytest.fixture
def report_of(tmp_path):
    """Write a synthetic run with this traffic, and return its report."""

    def build(traffic):
        directory = SyntheticRun().write(tmp_path / "run")
        facts = json.loads((directory / "run.json").read_text(encoding="utf-8"))
        statements = [
            {"code": "sumo_drove" if text == "SUMO 9 drove" else "other", "level": "note", "where": where, "text": text}
            for where, one in zip(("traffic", BESIDE), (traffic, *traffic.get("beside", [])), strict=False)
            for text in one.get("notes", [])
        ]
        facts |= {"traffic": traffic, "statements": statements}
        (directory / "run.json").write_text(json.dumps(facts), encoding="utf-8")
        return build_report(directory)

    return build


def section(page):
    found = re.search(r'<section id="traffic">.*?</section>', page, re.DOTALL)
    return found.group() if found else ""


def words(html):
    return Page(html).text


def figure_of(page):
    (embedded,) = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(embedded)["charts"]["traffic-0"]


def test_one_engine_has_a_plot_and_a_row(report_of):
    page = report_of(FLEET)
    text = words(section(page))
    assert "of 990 vehicles, at the end 200 were on the road, 0 were waiting to enter and 790 had arrived" in text
    assert "100 s after their departure on average" in text
    assert "beside" not in text
    assert [series["name"] for series in figure_of(page)["series"]] == ["on the road"]
    assert figure_of(page)["series"][0]["y"] == [50, 100, 150, 200]
    assert figure_of(page)["series"][0]["x"] == pytest.approx([100 / 60, 200 / 60, 5.0, 400 / 60])


def test_two_engines_are_compared_with_their_differences(report_of):
    page = report_of({**SUMO, "beside": [FLEET]})
    text = words(section(page))
    names = [series["name"] for series in figure_of(page)["series"]]
    assert names == ["SUMO, on the road", "SUMO, waiting to enter", "fleet engine, on the road"]
    # Areas under straight lines from 0: half of the last value times 400 s, divided by vehicles departed.
    spent, beside = 600 / 2 * 400 / 1000, 200 / 2 * 400 / 990
    assert (
        f"A vehicle spends {spent / beside:.2f} times as long in the traffic of SUMO as in the traffic of the fleet"
        in text
    )
    assert f"{spent:.0f} s against {beside:.1f} s" in text
    assert "Mean trips are of the vehicles that arrived: 40 % with SUMO, 79.8 % with the fleet engine." in text
    assert "The longest trips of SUMO have not ended" in text
    assert "The fleet engine left out 10 of the vehicles (1 %)" in text
    assert "stop at signals" in text
    assert "The fleet engine: 10 not driven: buses" in text
    assert "SUMO 9 drove" in text
    assert "SUMO: SUMO" not in text
    assert "a &lt;b&gt; note" in section(page), "what a file or SUMO says is no markup"


def test_comparison_engine_with_more_vehicles_is_reported(report_of):
    more = record("fleet", on_road=300, waiting=0, arrived=790, mean_trip_s=100.0)
    text = words(section(report_of({**SUMO, "beside": [more]})))
    assert "The fleet engine drove 90 more vehicles than SUMO" in text
    assert "left out" not in text


def test_agreeing_engines_are_reported_as_agreeing(report_of):
    near = {**FLEET, "engine": "agents", "notes": []}
    text = words(section(report_of({**FLEET, "beside": [near]})))
    assert "The two agree within 0 %" in text
    assert "signals" not in text
    assert "Mean trips are of" not in text
    assert "left out" not in text


def test_unknown_values_are_not_reported(report_of):
    unknown = record("fleet", on_road=30, waiting=0, arrived=10, mean_trip_s=None, absent=5)
    text = words(section(report_of(unknown)))
    assert "The fleet engine: of 45 vehicles" in text
    assert "the location of 5 is unknown" in text
    assert "on average" not in text
    assert "–" in text


def test_recording_is_described_without_driving(report_of):
    page = report_of(record("trace", on_road=30, waiting=0, arrived=10, mean_trip_s=None, absent=5, notes=["a gap"]))
    text = words(section(page))
    assert "Of 45 vehicles that were present at any time, 30 still were at the end" in text
    assert "10 had left for good" in text
    assert "the location of 5 is unknown" in text
    assert "a gap" in text
    assert "arrived" not in text
    assert "waiting" not in text
    assert figure_of(page)["series"][0]["y"] == [8, 15, 22, 30]


def test_constant_presence_needs_no_plot(report_of):
    still = record("static", on_road=85, waiting=0, arrived=0, mean_trip_s=None)
    for name in ("on_road", "departed"):
        still[name] = [85] * 4
    page = report_of(still)
    assert "All 85 vehicles were present throughout." in words(section(page))
    assert "figure" not in section(page)


def test_run_without_departures(report_of):
    empty = record("fleet", on_road=0, waiting=0, arrived=0, mean_trip_s=None)
    text = words(section(report_of({**empty, "beside": [{**empty, "engine": "agents"}]})))
    assert "of 0 vehicles" in text
    assert "nan" not in text.lower()


def test_run_without_log_has_no_traffic_section(report_of):
    page = report_of({})
    assert section(page) == ""
    assert 'href="#traffic"' not in page

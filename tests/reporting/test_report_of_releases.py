"""The report and the summary of released counts and speeds: units, names and claims."""

import io
import re

import pytest
from rich.console import Console

from simulator.experiment.run import run_scenario
from simulator.pages.report import build_report, write_report
from simulator.pages.terminal_summary import print_summary

MIXED = """
[scenario]
name = "mixed"
duration_s = 900
warmup_s = 300

[roads]
source = "grid"
rows = 6
columns = 6
spacing_m = 200
speed_mps = 12

[cells]
kind = "square"
size_m = 500

[traffic]
vehicles = 3000

[[mechanisms]]
name = "trusted"
kind = "no_privacy"

[[mechanisms]]
name = "randomized"
kind = "randomized_response"

[[campaigns]]
name = "noisy"
start_s = 400
release = {kind = "laplace", epsilon = 1.0}

[[campaigns]]
name = "mean"
start_s = 400
statistic = "mean_speed"
release = {kind = "laplace", epsilon = 2.0}
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "mixed.toml").write_text(MIXED, encoding="utf-8")
    result = run_scenario(folder / "mixed.toml")
    return result.save(folder / "run")


def test_errors_have_their_own_units_and_names(mixed):
    page = build_report(mixed)
    assert "Error of a cell by mechanism, in vehicles" in page
    assert "Error of a cell by mechanism, in m/s" in page
    assert "root mean square error over all cells and queries, in vehicles and m/s" in page
    assert "Exact reports, Laplace noise (ε = 1)" in page
    assert re.search(r"The error in a cell is .* with exact reports, Laplace noise \(ε = 1\)", page)
    assert re.search(r"Published mean speeds err by [\d.]+ m/s \(campaign mean\)", page)
    assert "randomized publishes its own estimates, not through laplace" in page


def test_claims_of_counts_name_places_and_those_of_speeds_speeds(mixed):
    page = build_report(mixed)
    counts = (
        "Any reader of the published counts, campaign noisy, can shift the odds between the device’s being in a "
        "cell or outside all cells at most 2.72"
    )
    speeds = (
        "Any reader of the published speeds, campaign mean, can shift the odds between any two speeds at which "
        "the device might drive at most 7.39"
    )
    assert counts in page
    assert speeds in page


def test_summary_has_one_table_per_unit(mixed):
    out = io.StringIO()
    print_summary(mixed, Console(file=out, width=160))
    text = out.getvalue()
    assert "Error of a cell, vehicles" in text
    assert "Error of a cell, m/s" in text
    assert "noisy (laplace)" in text
    assert "Note: campaigns.noisy: randomized publishes its own estimates" in text


def test_map_shows_the_unit_of_the_selected_campaign(mixed, browse):
    page = write_report(mixed)
    speeds = browse(page, "#campaign=mean&mechanism=trusted&query=1")
    assert 'data-campaign="mean"' in speeds
    assert "m/s in a cell (RMSE over" in speeds
    assert "mean speed of the vehicles asked that are in the cell" in speeds
    assert "too fast" in speeds
    assert "vehicles there" not in speeds.partition('id="status"')[2].partition("</p>")[0]


def test_a_single_cell_is_drawn_over_time_in_its_unit(tmp_path):
    (tmp_path / "one.toml").write_text(MIXED.replace("size_m = 500", "size_m = 2000"), encoding="utf-8")
    result = run_scenario(tmp_path / "one.toml")
    page = build_report(result.save(tmp_path / "run"))
    assert '"y":{"title":"m/s"' in page.replace(" ", "")
    assert page.count("truth, estimate and 95 % interval by query") == 3

"""Error against participation: exact where it must be, as theory where it is random, and flows as on the links."""

import math

import numpy as np
import pytest

import crowdveil as cv
from simulator.files.errors import InputError
from simulator.results.costs import DOWN_J, UP_J, WAKE_J
from simulator.studies.participation import (
    ALL,
    BUSIEST,
    LEVEL,
    cell_groups,
    needed_sentences,
    needed_share,
    participation_design,
    participation_tables,
)
from simulator.studies.store import StudyDirectory
from simulator.studies.sweep import Sweep
from simulator.studies.workers import processes

# Both rounds of a query are in one step of the traffic, so that no vehicle enters or arrives between them.
CITY = """
scenario = {name = "few-streets", seed = 3, duration_s = 240, warmup_s = 60}
roads = {source = "grid", rows = 8, columns = 8, spacing_m = 500, speed_mps = 12, anchor = { lon = 11.3, lat = 44.5 }}
cells = [
    {kind = "square", size_m = 700, partition = "squares"},
    {kind = "square", size_m = 2000, partition = "quarters"},
]
traffic = {vehicles = 600, departures = [{ from_s = 0, to_s = 60, share = 1.0 }]}
campaigns = [
    {name = "occupancy", start_s = 90, queries = 3, every_s = 30, round_gap_s = 0.5, deadline_s = 0.5},
    {name = "own", statistic = "mean_speed", start_s = 100, min_vehicles = 1},
]
mechanisms = [
    {name = "exact", kind = "no_privacy"},
    {name = "sampling", kind = "sampling_privacy", sampling = 0.45},
]
"""


def study(path, scenario, levels, *, replicates=1, by=None, **options):
    design = participation_design(scenario, levels, replicates=replicates, **options)
    directory = StudyDirectory(path / "study")
    Sweep(design, directory, keep="participation", start=processes(0)).run()
    first = design.settings[0].scenario
    return directory, participation_tables(directory, first, cell_groups(first, by))


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "city.toml"
    path.write_text(CITY)
    return path


@pytest.fixture(scope="module")
def found(city, tmp_path_factory):
    return study(tmp_path_factory.mktemp("found"), city, [0.2], replicates=6, by="quarters")


def row_of(tables, statistic, level, mechanism="exact", group=ALL):
    rows = tables["participation"].set_index(["statistic", "group", "participation", "mechanism"])
    return rows.loc[(statistic, group, level, mechanism)]


@pytest.mark.parametrize("statistic", ["counts", "flows", "speeds"])
def test_without_privacy_nothing_errs_once_all_take_part(found, statistic):
    for group in (ALL, BUSIEST):
        row = row_of(found[1], statistic, 1.0, group=group)
        assert row["rmse_over_mean"] == pytest.approx(0.0, abs=1e-12)
        assert row["published"] == 1.0
    assert row_of(found[1], statistic, 0.2)["rmse_over_mean"] > 0.01


def test_counts_of_some_vehicles_err_as_theory_states(found):
    directory, tables = found
    estimates = directory.read_table("estimates")
    counts = estimates[(estimates["campaign"] == "occupancy") & (estimates[LEVEL] == 0.2)]
    every = counts[counts["mechanism"] == "exact"].groupby(["replicate", "cell"])["vehicles"].mean()
    row = row_of(tables, "counts", 0.2)
    # Of n vehicles, Bin(n, p) take part: the count divided by p has the variance n (1 - p) / p.
    assert row["theory"] == pytest.approx(math.sqrt(0.8 / 0.2 / every.mean()), rel=0.01)
    # A vehicle takes part in all queries, so only cells and runs are independent; the squared error of a cell has twice
    # the square of its variance.
    spread = math.sqrt(2.0 * (every**2).sum()) / every.sum()
    assert row["rmse_over_mean"] == pytest.approx(row["theory"], rel=4 * spread / 2)
    assert 4 * spread / 2 < 0.3
    assert row_of(tables, "counts", 0.2, "sampling")["rmse_over_mean"] > 1.1 * row["rmse_over_mean"]


def test_fewer_cells_publish_a_speed_where_fewer_take_part(found):
    directory, tables = found
    estimates = directory.read_table("estimates")
    speeds = estimates[estimates["campaign"] == "mean-speeds"]
    number = speeds[speeds["mechanism"] == "exact"].groupby([LEVEL, "replicate"]).size().unstack(LEVEL)
    for statistic in ("speeds", "flows"):
        assert row_of(tables, statistic, 0.2)["published"] == pytest.approx((number[0.2] / number[1.0]).mean())


def test_groups_are_the_cells_of_a_partition_or_the_classes_of_links(found, city, tmp_path):
    of_quarters = found[1]["participation"]
    first = of_quarters[of_quarters["statistic"] == "counts"]
    scenario = cv.scenarios.load(city)
    groups = cell_groups(scenario, "quarters")
    assert set(first["group"]) == {ALL, BUSIEST, *groups}
    assert groups.value_counts().sum() == len(groups) == 25
    assert groups.loc[1] == cell_groups(scenario, "zone").loc[1]
    with pytest.raises(InputError, match="must be class, zone or a partition: squares, quarters; got 'district'"):
        cell_groups(scenario, "district")
    with pytest.raises(InputError, match=r"class needs cells.kind = \"roads\""):
        cell_groups(scenario, "class")
    links = tmp_path / "links.toml"
    streets = "speed_mps = 12, avenue_speed_mps = 20"
    text = CITY.replace('kind = "square", size_m = 700', 'kind = "roads"').replace("speed_mps = 12", streets)
    links.write_text(text)
    assert cell_groups(cv.scenarios.load(links), "class").value_counts().to_dict() == {"street": 112, "avenue": 112}


def test_the_flow_of_a_city_is_the_distance_that_its_links_state(tmp_path):
    path = tmp_path / "city.toml"
    text = CITY.replace("size_m = 700", "size_m = 20000").replace("queries = 3", "queries = 9")
    text = text.replace("every_s = 30", "every_s = 10")
    path.write_text(text.replace("traffic =", "report = {link_interval_s = 10}\ntraffic ="))
    links = cv.run(path).links
    while_asked = links[(links["from_s"] >= 90) & (links["to_s"] <= 180)]
    metres = (while_asked["mean_speed_mps"] * while_asked["occupied_s"]).sum()
    flow = row_of(study(tmp_path, path, [])[1], "flows", 1.0)["true"]
    assert flow == pytest.approx(metres / 90.0, rel=0.05)


def test_costs_are_bytes_and_wake_ups_of_a_vehicle(found):
    costs = found[1]["costs"].set_index(["campaign", "mechanism"])
    sampling = costs.loc[("occupancy", "sampling")]
    assert sampling["rounds"] == 2
    assert costs.loc[("occupancy", "exact"), "rounds"] == 1
    rounds = found[0].read_table("rounds")
    mine = rounds[(rounds["mechanism"] == "sampling") & (rounds["campaign"] == "occupancy")]
    asked = mine[mine["round"] == 1]["asked"].sum()
    assert sampling["bytes_up"] == pytest.approx(mine["bytes_up"].sum() / asked)
    assert sampling["joules"] == pytest.approx(2 * WAKE_J + UP_J * sampling["bytes_up"] + DOWN_J * 2 * 16)


def test_the_participation_needed_is_interpolated_in_logarithms(found):
    levels = [0.01, 0.1, 1.0]
    errors = (0.05 / np.sqrt(levels)).tolist()  # 0.5, 0.158, 0.05
    assert needed_share(levels, errors, 0.2) == pytest.approx((0.05 / 0.2) ** 2)
    assert needed_share(levels, errors, 0.6) == 0.01
    assert needed_share(levels, errors, 0.04) is None
    assert needed_share(levels, [0.1, 0.4, 0.1], 0.2) == pytest.approx(10**-0.5)
    sentences = list(needed_sentences(found[1]["participation"], 0.05))
    assert any("Nine in ten counts" in each and "within 5 %" in each and "with exact" in each for each in sentences)
    assert any("Even if all vehicles take part" in each and "with sampling" in each for each in sentences)


def test_the_share_of_cells_within_the_error_and_what_is_no_better_than_0(found):
    directory, tables = found
    estimates = directory.read_table("estimates")
    counts = estimates[(estimates["campaign"] == "occupancy") & (estimates["mechanism"] == "sampling")]
    near = (counts["scaled_estimate"] - counts["vehicles"]).abs() <= 0.2 * counts["vehicles"]
    row = row_of(tables, "counts", 1.0, "sampling")
    assert row["within"] == pytest.approx(near[counts[LEVEL] == 1.0].mean())
    assert 0.0 < row["within"] < row_of(tables, "counts", 1.0)["within"] == 1.0
    assert row["beats_zero"]
    useless = tables["participation"].assign(beats_zero=False)
    said = " ".join(needed_sentences(useless, 0.2))
    assert "with sampling, which errs no less than an estimate of 0 everywhere" in said


def test_a_scenario_without_counts_is_refused():
    with pytest.raises(cv.ScenarioError, match="count"):
        participation_design("speeds", [0.5], replicates=1)


OWNERS = """
scenario = {name = "owners", duration_s = 60}
roads = {source = "none"}
cells = {kind = "square", size_m = 1000}
traffic = {engine = "static", owners = "owners.csv", columns = { lon = "lon", lat = "lat" }}
campaigns = [{name = "occupancy", start_s = 0, round_gap_s = 10}]
mechanisms = [{name = "randomized", kind = "randomized_response", first_coin = 0.8, second_coin = 0.2}]
"""


def test_data_owners_that_do_not_move_have_counts_only(tmp_path):
    (tmp_path / "owners.csv").write_text("lon,lat\n" + "11.30,44.50\n" * 40 + "11.34,44.52\n" * 60)
    path = tmp_path / "owners.toml"
    path.write_text(OWNERS)
    tables = study(tmp_path, path, [0.5])[1]
    assert set(tables["participation"]["statistic"]) == {"counts"}
    assert set(tables["costs"]["mechanism"]) == {"randomized", "trusted"}
    assert row_of(tables, "counts", 1.0, "trusted")["rmse_over_mean"] == 0.0

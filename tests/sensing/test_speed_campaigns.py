"""Mean and median speeds reported to a trusted server and published: respondents, time, and error."""

import math

import numpy as np
import pandas as pd
import pytest
from campaigns_by_hand import ask_on
from roads_by_hand import ENGINES, chain
from scipy.stats import binom

from mechanisms.central import LaplaceMean
from mechanisms.central.simple_random_sample import ExactStatistic, SimpleRandomSample
from mechanisms.local import NoPrivacy
from simulator.aggregation.servers import Trusted
from simulator.experiment.run import Silent, run_scenario
from simulator.pages.report import write_report
from simulator.pages.terminal_summary import print_summary
from simulator.roads import build_grid
from simulator.sensing.campaign import Campaign
from simulator.sensing.channel import Channel, QuestionChannel, Transmission
from simulator.sensing.query import Schedule
from simulator.sensing.speed_survey import SpeedQuestion, survey_speeds
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import draw_trips
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths

BOUNDS = {"lower": 0.0, "upper": 20.0}
both = pytest.mark.parametrize("engine_type", ENGINES)


def question(release=None, *, statistic="mean_speed", min_vehicles=1):
    exact = ExactStatistic(statistic=statistic.partition("_")[0], **BOUNDS)
    return SpeedQuestion(statistic, release or exact, min_vehicles, "baseline", "exact", *BOUNDS.values())


def ask(engine_type, asked, *, start_s=11.0, gap_s=2.0, first=None, **answering):
    """Three vehicles enter 100 m at 10 m/s at 0, 2 and 4 s and leave it at 10, 12, 14 for 400 m at 20 m/s."""
    roads = chain(first or {"length_m": 100.0}, {"length_m": 400.0, "speed_mps": 20.0})
    campaign = Campaign(
        "speeds",
        Schedule(start_s, 0.0, 1, gap_s, 1.0),
        lambda places: (places.link + 1).astype(np.int32),
        {"baseline": NoPrivacy(cells=2)},
        Trusted(),
        speeds=asked,
    )
    (query,) = ask_on(engine_type, roads, [(0, [0, 1, 2])] * 3, [campaign], until=200, **answering)
    (answer,) = query.answers
    return query, answer


@both
def test_speeds_are_those_at_the_moment_of_truth(engine_type):
    # At 13: two on the second link at 20 m/s, the third 90 m along the first at 10 m/s.
    query, answer = ask(engine_type, question(), outside=5)
    assert (query.asked_s, query.time_s, query.statistic) == (13.0, 13.0, "mean_speed")
    assert query.truth.tolist() == [5, 1, 2]
    assert answer.estimate.cell.tolist() == [1, 2]
    np.testing.assert_allclose(answer.estimate.value, [10.0, 20.0])
    np.testing.assert_array_equal(answer.estimate.truth, answer.estimate.value)
    assert answer.std_error.tolist() == [0.0, 0.0]
    (account,) = answer.rounds
    assert (account.asked, account.answered, account.counted, account.bytes_up) == (8, 8, 8, 8 * 5)


@both
def test_cells_with_too_few_vehicles_have_no_row(engine_type):
    _, answer = ask(engine_type, question(min_vehicles=2))
    assert answer.estimate.cell.tolist() == [2]
    query, answer = ask(engine_type, question(min_vehicles=3))
    assert len(answer.estimate) == len(answer.std_error) == 0
    assert query.truth.tolist() == [0, 1, 2]


@both
def test_speed_queries_skip_non_participants_and_silent_parked_vehicles(engine_type):
    _, answer = ask(engine_type, question(), takes_part=[True, False, True])
    assert answer.rounds[0].asked == 2
    late = {"start_s": 100.0}
    query, answer = ask(engine_type, question(), **late)
    assert answer.rounds[0].asked == len(answer.estimate) == 0
    query, answer = ask(engine_type, question(), also=[State.ARRIVED], **late)
    assert query.truth.tolist() == [0, 0, 3]
    assert answer.estimate.value.tolist() == [0.0]


@both
def test_waiting_vehicles_have_speed_0_and_are_asked_only_if_configured(engine_type):
    narrow = {"length_m": 7.0, "speed_mps": 0.7}  # room for one vehicle, for 10 s
    query, answer = ask(engine_type, question(), first=narrow)
    assert (query.totals.waiting, query.truth.tolist()) == (1, [0, 1, 1])
    np.testing.assert_allclose(answer.estimate.value, [0.7, 20.0])
    query, answer = ask(engine_type, question(), first=narrow, also=[State.WAITING])
    assert query.truth.tolist() == [0, 2, 1]
    np.testing.assert_allclose(answer.estimate.value, [0.35, 20.0])


def test_churn_does_not_affect_a_single_round():
    _, answer = ask(ENGINES[0], question(), churn=0.9)
    assert answer.rounds[0].counted == 3


# ---- on the generated city --------------------------------------------------------------------------------------

CITY = """
[scenario]
name = "city"
duration_s = 1500
warmup_s = 600
[roads]
source = "grid"
rows = 8
columns = 8
spacing_m = 200
speed_mps = 12
[cells]
kind = "square"
size_m = 800
[traffic]
vehicles = 10_000
[[mechanisms]]
name = "trusted"
kind = "no_privacy"
[[mechanisms]]
name = "sampling"
kind = "sampling_privacy"
sampling = 0.4
[[campaigns]]
name = "mean"
start_s = 900
queries = 3
every_s = 150
statistic = "mean_speed"
release = {kind = "laplace", epsilon = 1.0}
[[campaigns]]
name = "median"
start_s = 900
queries = 3
every_s = 150
statistic = "median_speed"
release = {kind = "smooth_median", epsilon = 1.0, delta = 1e-3, sample = 0.5}
[[campaigns]]
name = "counts"
start_s = 900
queries = 3
every_s = 150
"""
ONLY_COUNTS = CITY[: CITY.index("[[campaigns]]")] + CITY[CITY.index('[[campaigns]]\nname = "counts"') :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speeds")
    (folder / "city.toml").write_text(CITY, encoding="utf-8")
    (folder / "counts.toml").write_text(ONLY_COUNTS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def city(folder):
    return run_scenario(folder / "city.toml")


def test_speeds_and_counts_are_in_the_same_tables(folder, city, tmp_path):
    campaigns = city.estimates.groupby("campaign")["mechanism"].unique().map(list).to_dict()
    assert campaigns == {"mean": ["trusted"], "median": ["trusted"], "counts": ["trusted", "sampling"]}
    scaled = city.estimates.columns.str.startswith("scaled_")
    assert not city.estimates.loc[:, ~scaled].isna().any().any()
    speeds = city.estimates[city.estimates["campaign"] != "counts"]
    assert speeds.loc[:, scaled].isna().all(axis=None)
    assert not city.estimates.loc[city.estimates["campaign"] == "counts", scaled].isna().any(axis=None)
    assert (speeds["vehicles"] >= 1).all()
    assert speeds["truth"].between(0.0, 12.0).all()
    assert speeds["truth"].nunique() > 10
    counts = city.estimates[city.estimates["campaign"] == "counts"].reset_index(drop=True)
    alone = run_scenario(folder / "counts.toml")
    pd.testing.assert_frame_equal(counts, alone.estimates, check_dtype=False)
    assert alone.estimates["truth"].dtype == np.int64
    rounds = city.rounds[city.rounds["campaign"] != "counts"]
    assert (rounds["round"] == 1).all()
    scores = city.scores.set_index(["campaign", "mechanism"])
    assert scores["statistic"].tolist() == ["mean_speed", "median_speed", "count", "count"]
    assert scores["hot_cells_recall"].isna().tolist() == [True, True, False, False]
    city.save(tmp_path / "run")
    kept = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    assert kept["hot_cells_recall"].isna().sum() == 2
    assert list(kept.columns) == list(city.scores.columns)


def test_median_is_the_lower_one_and_mean_is_exact(folder):
    overrides = ["campaigns.mean.release={kind='none'}", "campaigns.median.release={kind='none'}"]
    result = run_scenario(folder / "city.toml", overrides=overrides)
    speeds = result.estimates[result.estimates["campaign"] != "counts"]
    np.testing.assert_array_equal(speeds["estimate"], speeds["truth"])
    scores = result.scores.set_index("campaign")
    assert scores.loc["mean", "rmse"] == scores.loc["mean", "theory_rmse"] == 0.0
    assert scores.loc["mean", "interval"] == "exact"
    truth = speeds.set_index(["campaign", "query", "cell"])["truth"]
    assert (truth["median"] >= truth["mean"]).mean() > 0.5  # queues pull the mean down


def test_claims_of_speeds_are_about_values_and_name_their_release(city):
    claims = city.claims[city.claims["mechanism"] == "trusted"]
    values = claims[claims["view"] == "released_values"]
    assert values["crowd"].isna().all()
    always = values[(values["delta"] == 0) & (values["queries"] == 1)].drop_duplicates("basis")
    assert [tuple(row) for row in always[["campaign", "release"]].to_numpy()] == [
        ("mean", "laplace (epsilon = 1)"),
        ("median", "smooth_median (epsilon = 1, delta = 0.001, sample = 0.5)"),
    ]
    assert [basis.partition(". ")[0].rpartition(": ")[2] for basis in always["basis"]] == [
        "mean speeds",
        "median speeds",
    ]
    assert always["epsilon"].tolist() == [1.0, math.inf]
    at_one = values[(values["epsilon"] == 1.0) & values["basis"].str.contains("median")]
    assert 0.0 < at_one["delta"].iloc[0] <= 1e-3


def test_campaign_with_too_few_vehicles_per_cell_has_no_rows(tmp_path):
    only = CITY[: CITY.index('[[campaigns]]\nname = "median"')]
    file = tmp_path / "only.toml"
    file.write_text(only, encoding="utf-8")
    result = run_scenario(file, overrides=["campaigns.mean.min_vehicles=100000"])
    assert len(result.estimates) == 0
    (score,) = result.scores.to_dict("records")
    assert math.isnan(score["rmse"])
    assert score["cells"] == 0
    assert "released_counts" not in set(result.claims["view"])
    assert [m["name"] for m in result.facts["mechanisms"]] == ["trusted", "sampling"]
    assert result.facts["releases"][0]["notes"] == [
        "campaigns.mean: speeds are reported to trusted; sampling take no part"
    ]
    result.save(tmp_path / "run", render=write_report)
    assert "No campaign published an estimate of any cell." in (tmp_path / "run" / "report.html").read_text("utf-8")
    print_summary(tmp_path / "run")


# ---- repeated releases of one moment's speeds, against theory ----------------------------------------------------

DRAWS = 400


@pytest.fixture(scope="module")
def moment():
    """Cells and speeds of a generated city's vehicles at one moment: four cells, with queues."""
    roads = build_grid(
        rows=8, columns=8, spacing_x_m=200.0, spacing_y_m=200.0, speed_mps=12.0, lanes=1, anchor=(0.0, 0.0)
    )
    clock, paths = Clock(1.0), ShortestPaths(roads.links)
    trips = draw_trips(
        8_000,
        links=roads.links,
        paths=paths,
        demand="uniform",
        gravity_scale_s=600.0,
        departures="uniform",
        duration_s=900.0,
        clock=clock,
        rng=np.random.default_rng(5),
    )
    fleet = Fleet(
        roads.links,
        LinkPhysics.build(roads.links, clock),
        trips,
        paths.routes(trips.origin, trips.destination),
        clock=clock,
    )
    fleet.advance_to(600)
    places, speeds = fleet.places(), fleet.speeds()
    xy = roads.locate(places.link, places.fraction)
    middle = np.median(xy, axis=0)
    cells = (1 + (xy[:, 0] > middle[0]) + 2 * (xy[:, 1] > middle[1])).astype(np.int32)
    driving = places.state != State.ARRIVED
    assert np.count_nonzero(speeds[driving] < 11.0) > 50
    return cells[driving], speeds[driving]


def surveyed(asked, cells, speeds, channel, *, noise, draws=None, outside=0):
    """One survey of the speeds of vehicles in these cells: values, their standard errors and the account."""
    return survey_speeds(
        asked,
        cells=cells,
        speeds=speeds,
        outside=outside,
        bytes_up=5,
        bytes_down=16,
        channel=channel,
        transmission=Transmission(2, 100.0, 1.0),
        noise=noise,
        draws=noise if draws is None else draws,
    )


@pytest.mark.parametrize("statistic", ["mean_speed", "median_speed"])
def test_lost_vehicle_reports_add_sampling_error(moment, statistic):
    if statistic == "mean_speed":
        release = LaplaceMean(epsilon=5.0, **BOUNDS)
    else:
        release = ExactStatistic(statistic="median", **BOUNDS)
    channel = Channel(loss_two=0.5, question=QuestionChannel(loss=0.2))
    noise, chance = np.random.default_rng(23), np.random.default_rng(24)
    squares, theory, held = [], [], []
    for _ in range(DRAWS):
        asked = question(release, statistic=statistic)
        values, expected, account = surveyed(asked, *moment, channel, noise=noise, draws=chance, outside=7)
        assert account.answered + account.unheard == account.asked == len(moment[0]) + 7
        assert account.answered == account.counted + account.lost
        assert min(account.unheard, account.lost) > 0
        squares.append((values.value - values.truth) ** 2)
        theory.append(expected**2)
        held.append((values.lower <= values.truth) & (values.truth <= values.upper))
        assert values.interval == "exact, widened for lost reports"
        assert (values.lower >= 0.0).all() or statistic == "mean_speed"
    assert np.mean(held) > 0.95 - 4.5 * math.sqrt(0.05 * 0.95 / np.size(held))
    squares, theory = np.array(squares), np.mean(theory, axis=0)
    spread = np.maximum(squares.std(axis=0), math.sqrt(2.0) * theory) / math.sqrt(DRAWS)
    assert (np.abs(squares.mean(axis=0) - theory) < 4.5 * spread + 1e-9).all()
    assert theory[0] > 1.5 * release.std_error(moment[1][moment[0] == 1]) ** 2


def widened(reported, loss, release, rng):
    """Interval coverage over surveys of one cell with random report loss, among those with a row."""
    held = []
    for _ in range(400):
        cells = np.repeat(np.array([1, 2], dtype=np.int32), [len(reported), 400])
        speeds = np.concatenate([reported, np.full(400, 9.0)])
        values, _, _ = surveyed(question(release), cells, speeds, Channel(loss_two=loss), noise=rng)
        if values.cell[0] == 1:
            held.append(values.lower[0] <= values.truth[0] <= values.upper[0])
            if values.interval.endswith("unheard") and isinstance(release, ExactStatistic):
                assert values.lower[0] < values.upper[0]
    return sum(held), len(held)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("loss", [0.0, 0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("name", ["exact", pytest.param("laplace", marks=pytest.mark.slow)])
def test_mean_speed_interval_covers_at_any_loss(loss, name):
    rng = np.random.default_rng([int(1000 * loss), len(name)])
    release = ExactStatistic(statistic="mean", **BOUNDS) if name == "exact" else LaplaceMean(epsilon=2.0, **BOUNDS)
    for reported in (np.linspace(0.0, 20.0, 41), np.repeat([0.0, 20.0], [1, 11])):
        held, rows = widened(reported, loss, release, rng)
        assert held >= binom.ppf(1e-4, rows, 0.95), (len(reported), held, rows)


def test_one_lost_vehicle_widens_the_interval_of_a_mean():
    """At 1 % loss one more vehicle must be allowed for: Serfling's bound for 40 of 41 at 2.5 % is the least."""
    cells, rng = np.repeat(np.array([1, 2], dtype=np.int32), [40, 400]), np.random.default_rng(1)
    values, _, account = surveyed(question(), cells, np.full(440, 7.0), Channel(loss_two=0.01), noise=rng)
    assert account.lost > 0
    least = SimpleRandomSample(41, 40 / 41).mean_reach(20.0, alpha=0.025)
    assert least == pytest.approx(20.0 * math.sqrt((1 - 39 / 41) * math.log(2 / 0.025) / 80), rel=1e-12)
    assert values.upper[0] - 7.0 >= least
    assert 7.0 - values.lower[0] >= least


def test_duplicates_of_speed_reports_are_counted_and_cost_bytes(moment):
    channel = Channel(loss_two=0.5, duplicates=1.0)
    _, _, account = surveyed(question(), *moment, channel, noise=np.random.default_rng(1), outside=7)
    assert account.duplicates == account.counted > 0
    assert account.bytes_up == 5 * (account.answered + account.duplicates)


SLOW = """
[scenario]
name = "slow"
duration_s = 300
[roads]
source = "grid"
rows = 3
columns = 3
spacing_m = 150
speed_mps = 13.9
[cells]
kind = "square"
size_m = 150
[traffic]
vehicles = 30
[[campaigns]]
name = "mean"
start_s = 100
statistic = "mean_speed"
upper_mps = {upper}
[[mechanisms]]
kind = "no_privacy"
"""


class Heard(Silent):
    """Keeps what is reported, in order."""

    def __init__(self):
        self.reported = []

    def phase(self, name, **_):
        self.reported.append(name)

    def warn(self, text):
        self.reported.append(text)


@pytest.mark.parametrize(("upper", "said"), [(5, True), (13.8, True), (13.9, False), (20, False)])
def test_a_bound_below_the_speed_of_the_roads_is_said_before_the_run(tmp_path, upper, said):
    (tmp_path / "slow.toml").write_text(SLOW.format(upper=upper))
    heard = Heard()
    warnings = run_scenario(tmp_path / "slow.toml", progress=heard).facts["warnings"]
    texts = [text for text in heard.reported if "upper_mps" in text]
    assert [text for text in warnings if "upper_mps" in text] == texts
    assert len(texts) == said
    if said:
        assert f"campaigns.mean.upper_mps = {upper:g} m/s" in texts[0]
        assert "13.9 m/s" in texts[0]
        assert heard.reported.index(texts[0]) < heard.reported.index("traffic and queries")

"""Valid releases, whose counts they publish, and one fault for each error."""

from __future__ import annotations

import pytest

import scenarios
from scenarios import ScenarioError

RACE = """
scenario = {name = "race", duration_s = 600}
roads = {source = "grid", rows = 4, columns = 4, spacing_m = 200}
cells = {kind = "square", size_m = 200}
traffic = {vehicles = 50}
[[campaigns]]
name = "first"
start_s = 120
[[campaigns]]
name = "second"
start_s = 120
release = {kind = "laplace", epsilon = 1.0, mechanisms = ["baseline"]}
[[campaigns]]
name = "mean"
start_s = 120
statistic = "mean_speed"
release = {kind = "laplace", epsilon = 1.0, sample = 0.1}
[[campaigns]]
name = "median"
start_s = 120
statistic = "median_speed"
release = {kind = "smooth_median", epsilon = 1.0, delta = 1e-6}
[[mechanisms]]
name = "sampling"
kind = "sampling_privacy"
sampling = 0.45
[[mechanisms]]
name = "randomized"
kind = "randomized_response"
[[mechanisms]]
name = "baseline"
kind = "no_privacy"
"""

SPOILED = [
    ("release={kind='suppress', k=0, sampling=0.45}", "release.k", ["at least 1", "0"]),
    ("release={kind='suppress', k=99999999999999999999, sampling=0.45}", "release.k", ["at most 100000"]),
    ("release={kind='suppress', sampling=0.45}", "release.k", ["is required"]),
    ("release={kind='suppress', k=5, sampling=1.5}", "release.sampling", ["at most 1", "1.5"]),
    ("release={kind='suppress', k=5}", "release.sampling", ["is required", "mechanisms.baseline", "exact counts"]),
    (
        "release={kind='suppress', k=5, sampling=0.3}",
        "release.sampling",
        ["the devices' own", "mechanisms.sampling.sampling = 0.45", "0.3"],
    ),
    ("release={kind='suppress', k=5, sampling=0.45, epsilon=1.0}", "release.epsilon", ["unknown key"]),
    ("release={k=5}", "release.kind", ["is required", "suppress"]),
    ("release='suppress'", "release", ["must be a table"]),
    ("release.kind='supress'", "release.kind", ["did you mean suppress?", '"supress"']),
    ("release={kind='laplace', epsilon=0.0}", "release.epsilon", ["above 0"]),
    ("release={kind='laplace', epsilon=-1}", "release.epsilon", ["above 0", "-1"]),
    ("release={kind='laplace', epsilon=1.0, sample=0.5}", "release.sample", ['"mean_speed"', "use sampling"]),
    ("release={kind='none', sample=0.5}", "release.sample", ['"mean_speed"']),
    ("release={kind='generalise', k=5, sampling=0.45, epsilon=1, levels=0}", "release.levels", ["at least 1"]),
    ("release={kind='recode', k=5, mechanisms=[]}", "release.mechanisms", ["at least 1 item"]),
    ("release={kind='recode', k=5, mechanisms=['sampling']}", "release.mechanisms[0]", ["exact counts of all"]),
    (
        "release={kind='laplace', epsilon=1, mechanisms=['baseline', 'randomized']}",
        "release.mechanisms[1]",
        ["laplace cannot publish for it", "noisy answers", '"randomized"'],
    ),
    (
        "release={kind='laplace', epsilon=1, mechanisms=['base']}",
        "release.mechanisms[0]",
        ["no mechanism of this name", "sampling, randomized, baseline", '"base"'],
    ),
    (
        "release={kind='laplace', epsilon=1, mechanisms=['baseline', 'baseline']}",
        "release.mechanisms[1]",
        ["names must differ"],
    ),
    (
        "release={kind='smooth_median', epsilon=1, delta=1e-6}",
        "release.kind",
        ['where statistic = "count", as in campaigns.first: give it its own', '"smooth_median"'],
    ),
    ("campaigns.second.release.epsilon=0", "campaigns.second.release.epsilon", ["above 0"]),
    ("campaigns.second.release.kind='laplac'", "campaigns.second.release.kind", ["did you mean laplace?"]),
    ("campaigns.second.release.mechanisms=['no']", "campaigns.second.release.mechanisms[0]", ["no mechanism"]),
    ("campaigns.second.release=5", "campaigns.second.release", ["must be a table", "5"]),
    ("campaigns.second.min_vehicles=2", "campaigns.second.min_vehicles", ['needs statistic = "mean_speed"']),
    ("campaigns.second.upper_mps=20", "campaigns.second.upper_mps", ['needs statistic = "mean_speed"']),
    ("campaigns.mean.min_vehicles=0", "campaigns.mean.min_vehicles", ["at least 1"]),
    ("campaigns.mean.upper_mps=0", "campaigns.mean.upper_mps", ["above 0"]),
    ("campaigns.mean.lower_mps=-1", "campaigns.mean.lower_mps", ["at least 0"]),
    ("campaigns.mean.release.sample=0", "campaigns.mean.release.sample", ["above 0"]),
    ("campaigns.mean.release.sampling=0.5", "campaigns.mean.release.sampling", ['statistic = "count"', "0.5"]),
    (
        "campaigns.mean.release.mechanisms=['sampling']",
        "campaigns.mean.release.mechanisms[0]",
        ["report their speed to a trusted server", '"sampling"'],
    ),
    (
        "campaigns.mean.release={kind='suppress', k=5}",
        "campaigns.mean.release.kind",
        ['must be "none" or "laplace" where statistic = "mean_speed"', '"suppress"'],
    ),
    ("campaigns.median.release.delta=1.0", "campaigns.median.release.delta", ["below 1", "1.0"]),
    ("campaigns.median.release.delta=0.0", "campaigns.median.release.delta", ["above 0"]),
    ("campaigns.median.release.epsilon=0", "campaigns.median.release.epsilon", ["above 0"]),
    (
        "campaigns.median.release={kind='laplace', epsilon=1}",
        "campaigns.median.release.kind",
        ['must be "none" or "smooth_median"'],
    ),
    ("campaigns.median.statistic='mode'", "campaigns.median.statistic", ["mean_speed", '"mode"']),
]


@pytest.mark.parametrize(("override", "path", "fragments"), SPOILED, ids=[row[0] for row in SPOILED])
def test_each_single_error_gives_one_fault(load, only_fault, override, path, fragments):
    only_fault(lambda: load(RACE, overrides=[override]), path, *fragments)


def test_upper_must_exceed_lower(load, only_fault):
    path, overrides = "campaigns.mean.upper_mps", ["campaigns.mean.lower_mps=5", "campaigns.mean.upper_mps=5"]
    only_fault(lambda: load(RACE, overrides=overrides), path, "must be above lower_mps = 5 m/s; got 5")


def test_speed_campaigns_need_a_mechanism_without_privacy(load):
    text = RACE.replace('kind = "no_privacy"', 'kind = "oue"\nepsilon = 1.0')
    with pytest.raises(ScenarioError) as caught:
        load(text, overrides=["campaigns.second.release.mechanisms=['sampling']"])
    assert [fault.path for fault in caught.value.faults] == ["campaigns.mean.statistic", "campaigns.median.statistic"]
    assert "needs a mechanism of kind no_privacy" in str(caught.value.faults[0])


def test_release_without_usable_mechanism_gives_a_reason_for_each(load, only_fault):
    text = RACE[: RACE.index('[[mechanisms]]\nname = "baseline"')]
    text = text[: text.index('[[campaigns]]\nname = "second"')] + text[text.index("[[mechanisms]]") :]
    load(text, overrides=["release={kind='laplace', epsilon=1}"])
    for more, why in (
        (["mechanisms.sampling.refresh=0.1"], "refresh = 0"),
        (["channel.loss=0.01"], "every report arrives"),
        (["channel.churn=0.01"], "every report arrives"),
        (["channel.outages=[{server=1, from_s=10, to_s=20}]"], "every report arrives"),
        (["channel.latency_s={kind='exponential', mean_s=1}"], "every report arrives"),
        (["channel.latency_s=31"], "every report arrives"),
    ):
        overrides, noisy = ["release={kind='laplace', epsilon=1}", *more], "randomized: its server holds noisy answers"
        only_fault(lambda given=overrides: load(text, overrides=given), "release.kind", "sampling: ", why, noisy)
    load(text, overrides=["release={kind='laplace', epsilon=1}", "channel.latency_s=30"])  # exactly in time


def test_fault_of_the_default_release_is_reported_once(load, only_fault):
    text = RACE.replace(
        '[[campaigns]]\nname = "second"', '[[campaigns]]\nname = "third"\nstart_s = 9\n\n[[campaigns]]\nname = "second"'
    )
    only_fault(lambda: load(text, overrides=["release={kind='suppress', k=5}"]), "release.sampling")


def names(released):
    return [mechanism["name"] for mechanism in released.published()]


def test_mechanisms_whose_counts_are_published(load):
    scenario = load(RACE, overrides=["release={kind='laplace', epsilon=1}"])
    first, second, mean, median = scenario.released()
    assert names(first) == ["sampling", "baseline"]
    assert names(second) == ["baseline"]
    assert names(mean) == names(median) == ["baseline"]
    for channel in ("{loss=0.1}", "{question={loss=0.1}}", "{question={latency_s=16}, latency_s=15}"):  # of 30 seconds
        lossy = load(RACE, overrides=["release={kind='laplace', epsilon=1}", f"channel={channel}"])
        assert names(lossy.released()[0]) == ["baseline"]
    assert scenario.warnings() == []
    recoded = load(RACE, overrides=["release={kind='recode', k=5}"])
    assert names(recoded.released()[0]) == ["baseline"]
    assert any("vulnerable" in warning and "first" in warning for warning in recoded.warnings())


def test_only_speed_campaigns_have_speed_defaults(load, reloaded):
    scenario = load(RACE)
    mean = scenario.campaigns[2]
    assert (mean.lower_mps, mean.upper_mps, mean.min_vehicles) == (0.0, None, 2)
    first = scenario.campaigns[0]
    assert (first.lower_mps, first.upper_mps, first.min_vehicles, first.release) == (None, None, None, None)
    assert reloaded(scenario) == scenario
    assert "min_vehicles" not in scenarios.dump(
        load(RACE[: RACE.index('[[campaigns]]\nname = "mean"')] + RACE[RACE.index("[[mechanisms]]") :])
    )


@pytest.mark.parametrize(
    ("override", "path", "words"),
    [
        ("aggregation={kind='secret_shared'}", "campaigns.second.release.kind", "one trusted server"),
        (
            "aggregation={kind='trusted', paired=true}",
            "campaigns.second.release.kind",
            "does not support paired reports",
        ),
        ("campaigns.second.aggregation={kind='per_round'}", "campaigns.second.release.kind", 'aggregation.kind = "per'),
        ("campaigns.mean.aggregation={kind='shuffled'}", "campaigns.mean.aggregation.kind", "must be trusted for"),
    ],
)
def test_release_needs_one_trusted_server(tmp_path, override, path, words):
    file = tmp_path / "race.toml"
    file.write_text(RACE)
    with pytest.raises(ScenarioError) as caught:
        scenarios.load(file, overrides=[override])
    faults = {fault.path: fault for fault in caught.value.faults}
    assert words in faults[path].rule
    assert len([fault for fault in faults if "kind" in fault]) == len(faults)

"""Every mechanism that a scenario can name runs through a campaign with the error of its theory."""

import numpy as np
import pytest
from scipy import stats

import scenarios
from scenarios import ScenarioError
from scenarios.kinds import names_of
from simulator import run

LEVEL = 1e-6

MECHANISMS = [
    {"kind": "no_privacy"},
    {"kind": "sampling_privacy", "sampling": 0.45},
    {"name": "refreshed", "kind": "sampling_privacy", "sampling": 0.4, "refresh": 0.3},
    {"name": "binary", "kind": "sampling_privacy", "form": "binary", "sampling": 0.4},
    {"kind": "randomized_response"},
    {"kind": "warner", "truthful": 0.9},
    {"kind": "k_randomized_response", "epsilon": 2},
    {"kind": "sue", "epsilon": 2},
    {"kind": "oue", "epsilon": 2},
    {"kind": "the", "epsilon": 2},
    {"kind": "olh", "epsilon": 2},
    {"kind": "subset_selection", "epsilon": 2},
    {"kind": "hadamard_response", "epsilon": 2},
    {"kind": "longitudinal_unary", "epsilon_permanent": 4, "epsilon_first": 2},
    {"kind": "distributed_laplace", "epsilon": 1, "devices": 1000},
    {"kind": "sampling_and_noise", "sampling": 0.6, "says": "value"},
    {"kind": "sampled_response", "sampling": 0.8, "first_coin": 0.7, "second_coin": 0.3},
    {
        "kind": "anonymized_local",
        "sampling_yes_one": 0.5,
        "sampling_yes_two": 0.3,
        "sampling_no": 0.7,
        "first_coin": 0.8,
        "second_coin": 0.7,
        "third_coin": 0.2,
    },
    {"kind": "anonymized_first_attempt", "base": 0.5, "shift_yes": 0.3, "shift_no": 0.1},
    {"kind": "anonymized_cancelling", "shift": 0.4},
    {
        "kind": "anonymized_deniable",
        "shift": 0.6,
        "yes_second": 0.6,
        "yes_third": 0.4,
        "no_second": 0.4,
        "no_third": 0.6,
        "onward": 0.6,
    },
]


@pytest.fixture(scope="module")
def every():
    campaign = {"queries": 6, "every_s": 60, "round_gap_s": 15, "deadline_s": 15}
    changes = {"scenario.duration_s": 600, "traffic.vehicles": 4000, "mechanisms": MECHANISMS}
    changes |= {f"campaigns.occupancy.{key}": value for key, value in campaign.items()}
    return scenarios.load("tiny", overrides=changes)


@pytest.mark.parametrize("answers", ["reports", "counts"])
@pytest.mark.parametrize("loss", [0.1, pytest.param(0.0, marks=pytest.mark.slow)])
def test_errors_equal_theory(every, answers, loss):
    result = run(
        every, overrides=[f"population={{outside=700, answers='{answers}'}}", f"channel={{loss={loss}}}"], seed=11
    )
    scores = result.scores.set_index("mechanism")
    kinds = [mechanism.kind for mechanism in every.mechanisms]
    assert len(kinds) == len(scores)
    assert set(kinds) == set(names_of("mechanism"))
    errors = result.estimates.assign(error=result.estimates["estimate"] - result.estimates["truth"])
    for name, rows in errors.groupby("mechanism"):
        theory = scores.loc[name, "theory_rmse"]
        if theory == 0:
            assert (rows["error"] == 0).all()
            continue
        # Cells of one report are slightly dependent; half of them are taken as independent.
        freedom = len(rows) / 2
        bound = stats.norm.isf(LEVEL / (2 * 4 * len(scores)))
        assert abs(np.log(scores.loc[name, "rmse"] / theory)) < bound * np.sqrt(1 / (2 * freedom)) + 0.05, name
        assert abs(rows["error"].mean()) < bound * theory / np.sqrt(freedom), name
    assert not result.estimates.isna().any().any()
    assert (result.rounds[["counted", "late", "lost"]].sum(axis=1) == result.rounds["answered"]).all()


def test_mechanism_that_cannot_be_estimated_is_refused_with_the_reason(every):
    with pytest.raises(ScenarioError, match=r"mechanisms.sampling_and_noise.*two unknowns"):
        run(every, overrides=["mechanisms=[{kind='sampling_and_noise', sampling=0.5}]"])


def test_too_few_devices_for_the_noise_gives_a_warning(every):
    laplace = "mechanisms=[{{kind='distributed_laplace', epsilon=1, devices={}}}]"
    short = run(every, overrides=[laplace.format(100_000)])
    assert any("too few devices were asked" in warning for warning in short.facts["warnings"])
    enough = run(every, overrides=[laplace.format(10)])
    assert not any("weaker" in warning for warning in enough.facts["warnings"])


def test_memoised_noise_does_not_average_out_over_queries(every):
    """A parked fleet asked ten times: memoised noise does not average out, fresh noise does."""
    fleet = ["traffic.parked='answer'", "scenario.duration_s=4000", "scenario.warmup_s=700", "cells.size_m=100"]
    fleet += ["traffic.departures=[{from_s=0, to_s=10, share=1.0}]", "traffic.vehicles=2000"]
    fleet += ["campaigns=[{start_s=3000, queries=20, every_s=40, round_gap_s=10}]"]
    mechanisms = (
        "mechanisms=[{kind='longitudinal_unary', epsilon_permanent=1.0, epsilon_first=0.9}, {kind='sue', epsilon=0.9}]"
    )
    result = run(every, overrides=[*fleet, mechanisms])
    estimates = result.estimates
    truth = estimates.groupby("cell")["truth"].nunique()
    assert (truth == 1).all(), "nobody moves"
    spread = estimates.groupby(["mechanism", "cell"])["estimate"].std().groupby("mechanism").mean()
    mean_error = (
        estimates.assign(error=estimates["estimate"] - estimates["truth"])
        .groupby(["mechanism", "cell"])["error"]
        .mean()
        .abs()
        .groupby("mechanism")
        .mean()
    )
    # The mean of twenty fresh errors is √20 times smaller, .18 of its spread on average; memoised noise stays.
    assert mean_error["sue"] / spread["sue"] < 0.35
    assert mean_error["longitudinal_unary"] / spread["longitudinal_unary"] > 0.8

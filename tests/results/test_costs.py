"""What a query costs a device: sums by hand, and the time from its first question to its estimate."""

import math

import pandas as pd
import pytest

import crowdveil as cv
from simulator.results.costs import DOWN_J, UP_J, WAKE_J, costs_of


def test_costs_are_means_over_the_devices_asked_in_a_query():
    """Ten devices are asked in one query and thirty in another: all hear round one, and half of them round two."""
    names = ["query", "round", "asked", "answered", "messages_up", "bytes_up", "bytes_down", "estimate_s"]
    rows = [
        (1, 1, 10, 10, 30, 300, 160, 60.0),
        (1, 2, 10, 5, 15, 150, 160, 60.0),
        (2, 1, 30, 30, 90, 900, 480, 90.0),
        (2, 2, 30, 15, 45, 450, 480, 90.0),
    ]
    rounds = pd.DataFrame(rows, columns=names).assign(campaign="one", mechanism="sampling")
    costs = costs_of(rounds).iloc[0]
    expected = {"rounds": 2, "messages_up": 4.5, "messages_down": 2, "bytes_up": 45, "bytes_down": 32}
    expected |= {"connected_joules": 45 * UP_J + 32 * DOWN_J, "joules": 1.5 * WAKE_J + 45 * UP_J + 32 * DOWN_J}
    expected |= {"estimate_median_s": 60.0, "estimate_95_s": 90.0}
    assert costs[[*expected]].to_dict() == pytest.approx(expected)
    unknown = costs_of(rounds.assign(messages_up=math.nan, estimate_s=math.nan)).iloc[0]
    assert unknown[["messages_up", "estimate_95_s"]].isna().all()
    assert unknown["bytes_up"] == 45


def test_a_run_states_its_costs():
    """Two rounds 20 s apart, of which the second is open for 15 s, take 35 s; a mechanism of one round takes 15 s."""
    schedule = {"start_s": 60, "queries": 2, "every_s": 60, "round_gap_s": 20, "deadline_s": 15}
    question = {"loss": 0.5, "latency_s": 20.0, "bytes": 100}
    run = cv.run("tiny", overrides={"campaigns": [schedule], "channel.question": question})
    rounds, costs = run.rounds, run.costs.set_index("mechanism")
    assert (rounds["bytes_down"] == 100 * rounds["asked"]).all()
    assert (rounds["asked"] == rounds["answered"] + rounds["unheard"]).all()
    assert (rounds["late"] == rounds["answered"]).all()  # the question alone takes longer than the deadline
    assert rounds["unheard"].between(1, rounds["asked"] - 1).all()
    assert costs["estimate_95_s"].to_dict() == {"sampling": 35.0, "randomized": 15.0, "baseline": 15.0}
    (cost,) = {mechanism.cost.bytes_down for mechanism in run.record.deployments[0].mechanisms}
    assert cost == 100

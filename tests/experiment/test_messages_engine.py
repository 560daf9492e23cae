"""Runs by the message-level engine equal those by batches, whatever the channel, the servers and the mechanisms."""

import numpy as np
import pandas as pd
import pytest

import scenarios
from simulator import run

MECHANISMS = [
    {"name": "no_privacy", "kind": "no_privacy"},
    {"name": "sampling", "kind": "sampling_privacy", "sampling": 0.3},
    {"name": "binary", "kind": "sampling_privacy", "form": "binary", "sampling": 0.3},
    {"name": "coins", "kind": "randomized_response", "first_coin": 0.7, "second_coin": 0.3},
    {"name": "kary", "kind": "k_randomized_response", "epsilon": 2.0},
    {"name": "oue", "kind": "oue", "epsilon": 1.0},
    {"name": "memoised", "kind": "longitudinal_unary", "epsilon_permanent": 2.0, "epsilon_first": 1.0},
    {"name": "cancelling", "kind": "anonymized_cancelling", "shift": 0.2},
]
SERVERS = [
    {"kind": "trusted"},
    {"kind": "trusted", "paired": True},
    {"kind": "per_round"},
    {"kind": "shuffled"},
    {"kind": "secret_shared", "servers": 3},
    {"kind": "secret_shared", "servers": 2, "paired": True},
    {"kind": "threshold_shared", "servers": 4, "threshold": 3},
]
LATENCIES = [
    {"kind": "constant", "value_s": 3.0},
    {"kind": "exponential", "mean_s": 4.0},
    {"kind": "lognormal", "median_s": 4.0, "sigma": 1.0},
]
TABLES = ("estimates", "rounds", "servers", "scores", "claims", "attacks")


def random_overrides(seed):
    """Return settings of the channel, the servers, the mechanisms and the traffic of a small scenario."""
    rng = np.random.default_rng(seed)
    servers = SERVERS[rng.integers(len(SERVERS))]
    chosen = rng.choice(len(MECHANISMS), size=3, replace=False)
    channel = {"latency_s": LATENCIES[rng.integers(len(LATENCIES))], "churn": float(rng.choice([0.0, 0.1]))}
    channel["duplicates"] = float(rng.choice([0.0, 0.05]))
    channel["anonymous"] = bool(rng.random() < 0.3)
    if rng.random() < 0.5:
        channel |= {"loss": 0.2, "burst_s": float(rng.choice([0.0, 30.0]))}
    else:
        channel |= {"loss_one": 0.1, "loss_two": 0.3}
    channel["question"] = {"loss": 0.1 * int(rng.integers(2)), "latency_s": LATENCIES[rng.integers(len(LATENCIES))]}
    if rng.random() < 0.5:
        channel["outages"] = [{"server": "server:1", "from_s": 121.0, "to_s": 125.0}]
    return {
        "channel": channel,
        "aggregation": servers,
        "mechanisms": [MECHANISMS[index] for index in sorted(chosen.tolist())],
        "attacks": [{"kind": "round_one", "coalition": ["server:1"], "targets": 20}],
        "traffic.vehicles": int(rng.integers(20, 120)),
        "traffic.step_s": float(rng.choice([1.0, 0.5])),
        "population.outside": int(rng.choice([0, 50])),
        "population.answers": str(rng.choice(["auto", "reports"])),
        "campaigns.0.deadline_s": 10.0,
    }


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("seed", range(12))
def test_tables_equal_those_of_batches(seed):
    scenario = scenarios.load("tiny", overrides=random_overrides(seed), seed=seed)
    of_batches, of_messages = run(scenario), run(scenarios.load(scenario, overrides={"sensing.engine": "messages"}))
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(of_messages, table), getattr(of_batches, table), check_exact=True)
    assert not of_batches.rounds["answered"].eq(of_batches.rounds["counted"]).all()


LIARS = [{"kind": "fixed_cell", "share": 0.2, "cell": 2}, {"kind": "late", "share": 0.11, "wait_s": 3.0}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("collusion", "lossy", "on-device", "refined"),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("parked-cars", "releases", "rivals")),
    ],
)
@pytest.mark.parametrize("behaviours", [[], LIARS], ids=["honest", "liars"])
def test_shipped_scenarios_are_equal_whether_all_devices_act_or_only_those_that_misbehave(name, behaviours):
    """With an engine of each kind: `on-device` is driven by agents."""
    scenario = scenarios.load(name).with_({"behaviours": behaviours})
    some, every = (run(scenario.with_({"sensing.engine": engine})) for engine in ("batches", "messages"))
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(every, table), getattr(some, table), check_exact=True)

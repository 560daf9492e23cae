"""``budget`` of a campaign: valid keys, and the fault of each error."""

import pytest

import scenarios
from scenarios import ScenarioError

ORACLE = [{"name": "oue", "kind": "oue", "epsilon": 1.0}]
GIVEN = {"mechanisms": ORACLE, "campaigns.0.budget": {"kind": "uniform", "window": 12}}
AT = "campaigns.occupancy.budget"

# changed values, key path of the only fault, fragments of the message
SPOILED = [
    ({"campaigns.0.budget": {"kind": "unifrom", "window": 2}}, f"{AT}.kind", ["did you mean uniform?"]),
    ({"campaigns.0.budget": {"kind": "uniform"}}, f"{AT}.window", ["is required"]),
    ({"campaigns.0.budget": {"kind": "uniform", "window": 0}}, f"{AT}.window", ["at least 1"]),
    ({"campaigns.0.budget": {"kind": "uniform", "window": 2, "epsilon": 1}}, f"{AT}.epsilon", ["unknown key"]),
    (
        {"mechanisms": [*ORACLE, {"kind": "sampling_privacy", "sampling": 0.3}]},
        f"{AT}.kind",
        ["parameter epsilon of mechanisms of one round", "hadamard_response", "mechanisms.sampling_privacy", "uniform"],
    ),
    (
        {"mechanisms": [{"kind": "distributed_laplace", "epsilon": 1.0, "devices": 9}]},
        f"{AT}.kind",
        ['mechanisms.distributed_laplace is of kind "distributed_laplace"'],
    ),
    (
        {
            "campaigns.0.budget": {"kind": "absorption", "window": 2},
            "aggregation": {"kind": "secret_shared", "noise": {"kind": "discrete_laplace", "scale": 3.0}},
        },
        f"{AT}.kind",
        ["does not support aggregation.noise", "uniform does"],
    ),
    (
        {
            "campaigns.0.budget": {"kind": "population_uniform", "window": 2},
            "aggregation": {"kind": "secret_shared", "noise": {"kind": "discrete_laplace", "scale": 3.0}},
        },
        f"{AT}.kind",
        ["does not support aggregation.noise", "uniform does"],
    ),
    ({"refinements": [{"kind": "clip"}]}, f"{AT}.kind", ["does not support refinements", "refinements.clip"]),
    (
        {"attacks": [{"kind": "round_one", "coalition": ["server:1"]}]},
        f"{AT}.kind",
        ["does not support attacks", "attacks.round_one.campaigns"],
    ),
]


@pytest.mark.parametrize(("changed", "path", "fragments"), SPOILED, ids=range(len(SPOILED)))
def test_each_fault_has_its_path_and_message(only_fault, changed, path, fragments):
    only_fault(lambda: scenarios.load("tiny", overrides={**GIVEN, **changed}), path, *fragments)


def test_campaigns_of_speeds_have_no_budget():
    with pytest.raises(ScenarioError, match=r'budget\.kind.*needs statistic = "count"'):
        scenarios.load("tiny", overrides={**GIVEN, "campaigns.0.statistic": "mean_speed"})


def test_every_divisible_kind_is_accepted_and_round_trips(reloaded):
    kinds = ("k_randomized_response", "sue", "oue", "the", "olh", "subset_selection", "hadamard_response")
    every = [{"kind": kind, "epsilon": 1.0} for kind in kinds]
    scenario = scenarios.load("tiny", overrides={**GIVEN, "mechanisms": every})
    assert (scenario.campaigns[0].budget.kind, scenario.campaigns[0].budget.window) == ("uniform", 12)
    assert reloaded(scenario) == scenario


def test_attacks_on_other_campaigns_are_allowed():
    campaign = {"start_s": 120, "name": "fresh"}
    other = {"campaigns": [{**campaign, "name": "spared", "budget": GIVEN["campaigns.0.budget"]}, campaign]}
    attack = {"kind": "round_one", "coalition": ["server:1"], "campaigns": ["fresh"]}
    scenarios.load("tiny", overrides={"mechanisms": ORACLE, **other, "attacks": [attack]})

"""``[[attacks]]``: valid keys, and the fault of each error."""

import pytest

import scenarios
from scenarios import ScenarioError
from scenarios.attacks import parties_of

SHARED = "[aggregation]\nkind = 'secret_shared'\nservers = 3\n"
ONE = "coalition = ['server:1']\n"

# text of one attack on the small scenario, key path of its only fault, fragments of the message
SPOILED = [
    ("kind = 'round_too'\n" + ONE, "attacks[0].kind", ["round_one", "drop_out", "did you mean round_two?"]),
    ("name = 'x'\n" + ONE, "attacks.x.kind", ["is required", "poisoning"]),
    ("kind = 'round_one'", "attacks[0].coalition", ["is required"]),
    ("kind = 'round_one'\ncoalition = [3]", "attacks[0].coalition[0]", ["must be"]),
    ("kind = 'round_one'\ncoalition = 'server:1'", "attacks[0].coalition", ["must be a list"]),
    ("kind = 'round_one'\ncoalition = ['servers:1']", "attacks[0].coalition[0]", ["server:1", "mixer", "vehicles:100"]),
    ("kind = 'round_one'\ncoalition = ['server:0']", "attacks[0].coalition[0]", ["must name a party", "server:0"]),
    ("kind = 'poisoning'\ncoalition = ['vehicles:0']", "attacks[0].coalition[0]", ["must name a party"]),
    ("kind = 'round_one'\ncoalition = 'every'", "attacks[0].coalition", ["must be a list"]),
    ("kind = 'round_one'\ncoalition = ['mixer:*']", "attacks[0].coalition[0]", ["must name a party", "server:*"]),
    ("kind = 'round_one'\ncoalition = ['server:1', 'server:1']", "attacks[0].coalition", ["once", "2 times"]),
    (
        "kind = 'poisoning'\ncoalition = ['vehicles:1', 'vehicles:2']",
        "attacks[0].coalition",
        ["number of corrupted vehicles only once"],
    ),
    ("kind = 'round_one'\ngrowing = true\n" + ONE, "attacks[0].growing", ["must be false", "single party"]),
    ("kind = 'round_one'\nmechanisms = ['samplin']\n" + ONE, "attacks[0].mechanisms[0]", ["did you mean sampling?"]),
    ("kind = 'round_one'\nmechanisms = []\n" + ONE, "attacks[0].mechanisms", ["at least 1"]),
    ("kind = 'round_one'\ncampaigns = ['zzz']\n" + ONE, "attacks[0].campaigns[0]", ["there are rush, late", "zzz"]),
    ("kind = 'round_one'\ncampaigns = ['late', 'late']\n" + ONE, "attacks[0].campaigns", ["once", "late"]),
    ("kind = 'round_one'\ntargets = 0\n" + ONE, "attacks[0].targets", ["at least 1"]),
    ("kind = 'round_one'\nprior = 'flat'\n" + ONE, "attacks[0].prior", ["occupancy", "uniform", "flat"]),
    ("kind = 'round_one'\nprior = {kind = 'road'}\n" + ONE, "attacks[0].prior.kind", ["did you mean roads?"]),
    ("kind = 'round_one'\nprior = {kind = 'training'}\n" + ONE, "attacks[0].prior.queries", ["is required"]),
    (
        "kind = 'round_one'\nprior = {kind = 'training', queries = 2}\n" + ONE,
        "attacks[0].prior.queries",
        ["must be below 2, the queries of a campaign"],
    ),
    (
        "kind = 'round_one'\nprior = {kind = 'training', queries = 1, period = 2}\n" + ONE,
        "attacks[0].prior.period",
        ["must be at most queries", "2"],
    ),
    ("kind = 'round_one'\nk = 3\n" + ONE, "attacks[0].k", ["unknown key"]),
    ("kind = 'known_others'\nk = 0\n" + ONE, "attacks[0].k", ["at least 1"]),
    ("kind = 'longitudinal'\n" + ONE, "attacks[0].asked", ["is required"]),
    ("kind = 'longitudinal'\nasked = 2\n" + ONE, "attacks[0].asked", ["must be a list"]),
    ("kind = 'longitudinal'\nasked = [1, 3]\n" + ONE, "attacks[0].asked[1]", ["campaigns.rush.queries = 2", "3"]),
    (
        "kind = 'longitudinal'\nasked = [2]\ncampaigns = ['rush', 'late']\n" + ONE,
        "attacks[0].asked[0]",
        ["campaigns.late.queries = 1"],
    ),
    ("kind = 'longitudinal'\nasked = [2, 2, 1]\n" + ONE, "attacks[0].asked", ["once", "2 occurs 2 times"]),
    (
        "kind = 'poisoning'\ncoalition = ['vehicles:9']\nmagnitude = 99999999999999999999",
        "attacks[0].magnitude",
        ["at most 1000000000"],
    ),
    ("kind = 'poisoning'\n" + ONE, "attacks[0].coalition", ["must hold corrupted vehicles", "server:1"]),
    ("kind = 'poisoning'\ncoalition = ['vehicles:51']", "attacks[0].coalition", ["traffic.vehicles = 50"]),
    ("kind = 'poisoning'\ncoalition = ['vehicles:9']\ntargets = 8", "attacks[0].targets", ["at least the 9", "8"]),
    ("kind = 'poisoning'\ncoalition = ['vehicles:9']\ncell = 0", "attacks[0].cell", ["at least 1"]),
    ("kind = 'drop_out'\n" + ONE, "attacks[0].dropped", ["is required"]),
    ("kind = 'drop_out'\ndropped = 'all'\n" + ONE, "attacks[0].dropped", ["target", "others", "all"]),
    ("kind = 'shares'\n" + ONE, "attacks[0].kind", ["secret_shared", "no other deployment has shares"]),
    (
        "kind = 'round_one'\n" + ONE + "[[attacks]]\nkind = 'round_one'\n" + ONE,
        "attacks[1].name",
        ["names must differ", "attacks[0]"],
    ),
]


@pytest.mark.parametrize(("text", "path", "fragments"), SPOILED, ids=range(len(SPOILED)))
def test_each_fault_has_its_path_and_message(load, only_fault, valid_text, text, path, fragments):
    only_fault(lambda: load(f"{valid_text}\n[[attacks]]\n{text}\n"), path, *fragments)


def test_defaults_and_kinds(load, valid_text):
    keys = {"longitudinal": "asked = [1, 2]\n", "drop_out": "dropped = 'others'\n"}
    kinds = ["round_one", "round_two", "link_rounds", "shares", "known_others", "longitudinal", "drop_out"]
    text = "".join(f"\n[[attacks]]\nkind = '{kind}'\n{ONE}{keys.get(kind, '')}" for kind in kinds)
    text += "\n[[attacks]]\nkind = 'poisoning'\ncoalition = ['vehicles:5', 'server:3']\ngrowing = true\n"
    attacks = load(valid_text + SHARED + text).attacks
    assert [one.name for one in attacks] == [*kinds, "poisoning"]
    assert {(one.targets, one.prior, one.campaigns, one.mechanisms) for one in attacks} == {
        (2000, "occupancy", None, None)
    }
    assert (attacks[4].k, attacks[5].asked, attacks[6].dropped) == (None, (1, 2), "others")
    assert (attacks[7].cell, attacks[7].magnitude, attacks[7].growing) == (1, 1000, True)


def test_section_round_trips_and_is_omitted_if_empty(load, valid_text):
    text = valid_text + "[[attacks]]\nkind = 'known_others'\nname = 'crowd'\nk = 5\ncampaigns = ['late']\n" + ONE
    scenario = load(text)
    assert load(scenarios.dump(scenario)) == scenario
    assert "attacks" not in scenarios.dump(load(valid_text))


@pytest.mark.parametrize("written", ["'server:*'", "['server:*']", "'all'", "['all', 'vehicles:3']"])
def test_coalitions_of_every_server_or_party_exist_everywhere_and_grow(load, valid_text, written):
    text = valid_text + f"[[attacks]]\nkind = 'link_rounds'\ngrowing = true\ncoalition = {written}\n"
    scenario = load(text, overrides=["campaigns.late.aggregation={kind='shuffled'}"])
    assert parties_of(scenario.attacks[0].coalition)[0] == written.strip("[]").split(",")[0].strip("'")
    assert load(scenarios.dump(scenario)) == scenario


def test_speed_campaigns_are_not_attacked(load, valid_text):
    text = valid_text + "[[attacks]]\nkind = 'round_one'\n" + ONE
    speeds = ["campaigns.late.statistic='mean_speed'"]
    assert load(text, overrides=speeds).attacks
    with pytest.raises(ScenarioError, match=r"campaigns\[0\]: must be a campaign with statistic"):
        load(text, overrides=[*speeds, "attacks.round_one.campaigns=['late']"])


def test_faults_elsewhere_do_not_hide_faults_of_the_section(load, valid_text):
    with pytest.raises(ScenarioError) as raised:
        load(
            valid_text
            + "[[attacks]]\nkind = 'round_one'\nmechanisms = ['nobody']\ncoalition = ['server:x']\n"
            + "[[attacks]]\nkind = 'drop_out'\ngrowing = true\n"
            + ONE,
            overrides=["mechanisms.sampling.sampling=2"],
        )
    paths = [fault.path for fault in raised.value.faults]
    assert "mechanisms.sampling.sampling" in paths
    assert "attacks[0].mechanisms[0]" in paths
    assert "attacks[0].coalition[0]" in paths
    assert {"attacks[1].dropped", "attacks[1].growing"} <= set(paths)

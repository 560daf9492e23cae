"""Coalitions in whole runs: all vehicles but one, late reports, network observers, suppressed sums."""

import numpy as np
import pytest
from scipy.stats import binomtest

from scenarios import ScenarioError
from simulator import run

FAMILY = 1e-6
JOINS = "{party='server:1', from_query=5}"
PARKED = """
scenario = {{name = "parked", seed = 3, duration_s = 1200, warmup_s = 200}}
roads = {{source = "grid", rows = 6, columns = 6, spacing_m = 150}}
cells = {{kind = "square", size_m = 300}}
traffic = {{vehicles = {vehicles}, parked = "answer", departures = [{{from_s = 0, to_s = 10, share = 1.0}}]}}
mechanisms = [
    {{name = "plain", kind = "no_privacy"}},
    {{name = "sampling", kind = "sampling_privacy", sampling = 0.4}},
    {{name = "k-ary", kind = "k_randomized_response", epsilon = 2}},
]

[channel]
{channel}

{campaigns}
"""


def scenario(folder, campaigns, *, vehicles=40, channel=""):
    """A scenario file; campaigns by name, each with the keys that follow its schedule."""
    tables = [
        f'[[campaigns]]\nname = "{name}"\nstart_s = 600\nround_gap_s = 20\nevery_s = 60\ndeadline_s = 10\n{keys}\n'
        for name, keys in campaigns.items()
    ]
    file = folder / "parked.toml"
    file.write_text(PARKED.format(vehicles=vehicles, channel=channel, campaigns="\n".join(tables)))
    return file


def attacks(*sections):
    return "attacks=[" + ", ".join(sections) + "]"


def agrees(row, level=FAMILY):
    return binomtest(round(row.success * row.trials), row.trials, row.theory).pvalue > level


@pytest.fixture(scope="module")
def last_vehicle(tmp_path_factory):
    campaigns = {
        "shuffled": 'queries = 4\naggregation = {kind = "shuffled"}',
        "shared": 'queries = 2\naggregation = {kind = "secret_shared", servers = 3}',
    }
    file = scenario(tmp_path_factory.mktemp("last"), campaigns)
    sections = [
        "{kind='link_rounds', name='server', coalition=['server:1', 'vehicles:39'], campaigns=['shuffled']}",
        "{kind='link_rounds', name='two-left', coalition=['server:1', 'vehicles:38'], campaigns=['shuffled']}",
        "{kind='shares', name='one-share', coalition=['server:2', 'vehicles:39']}",
        "{kind='link_rounds', name='sums', coalition=['vehicles:39']}",
        "{kind='known_others', name='others', coalition=['vehicles:39'], mechanisms=['sampling']}",
        "{kind='longitudinal', name='asked-again', coalition=['vehicles:39'], asked=[1, 4], campaigns=['shuffled']}",
        "{kind='link_rounds', name='public', coalition=[]}",
    ]
    return run(file, overrides=[attacks(*sections)]).attacks.set_index(["name", "mechanism"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server", "one-share", "sums"])
def test_all_vehicles_but_one_find_the_reports_of_the_last(last_vehicle, name):
    plain = last_vehicle.loc[(name, "plain")]
    assert (plain["success"] == 1.0).all()
    assert (plain["prior"] < 0.5).all()
    for mechanism in ("sampling", "k-ary"):
        for _, row in last_vehicle.loc[[(name, mechanism)]].iterrows():
            assert row.trials >= 2 * (1 if row.metric == "one_vehicle" else 40)
            assert row.theory > row.prior
            assert agrees(row)


def test_list_of_two_remaining_vehicles_identifies_neither(last_vehicle):
    two, one = (last_vehicle.loc[[(name, "plain")]].query("metric.isna()") for name in ("two-left", "server"))
    assert two.success.item() < one.success.item()


def test_the_vehicle_that_is_singled_out_has_a_row_of_its_own(last_vehicle):
    """The other rows are over 40 choices of the vehicle that is left; with two left there is no such row."""
    rows = last_vehicle[last_vehicle["metric"] == "one_vehicle"]
    assert set(rows.index.get_level_values("name")) == {"server", "one-share", "sums", "others"}
    assert rows["value"].nunique() == 1
    assert (rows["unit"] == "number of the vehicle").all()
    every = last_vehicle.loc[[("server", "sampling")]]
    assert every["trials"].tolist() == [every["trials"].iloc[1] * 40, 4]
    assert (rows.loc[("server", "plain"), "success"] == 1.0).all()


def test_all_vehicles_but_one_learn_whether_the_last_was_counted(last_vehicle):
    for _, row in last_vehicle.loc[[("others", "sampling")]].iterrows():
        assert row.theory == pytest.approx(0.5 + 0.4 / 2)
        assert agrees(row)


def test_all_vehicles_but_one_link_the_last_across_queries(last_vehicle):
    rows = last_vehicle.loc[[("asked-again", "sampling")]]
    assert rows["theory"].is_monotonic_increasing
    assert rows["theory"].iloc[-1] > 0.75
    assert all(agrees(row) for _, row in rows.iterrows())


def test_coalition_without_parties_keeps_the_prior(last_vehicle):
    rows = last_vehicle.loc["public"]
    assert (rows["coalition"] == "none").all()
    assert (rows["colluding"] == 0).all()
    np.testing.assert_allclose(rows["success"], rows["prior"])


def test_coalition_of_all_vehicles_leaves_no_target(tmp_path):
    file = scenario(tmp_path, {"c": "queries = 1"}, vehicles=20)
    found = run(file, overrides=[attacks("{kind='link_rounds', coalition=['server:1', 'vehicles:20']}")])
    assert len(found.attacks) == 0
    assert any("there are no targets" in note for note in found.facts["warnings"])


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    campaigns = {
        "numbers": "queries = 2",
        "pseudonyms": 'queries = 8\naggregation = {kind = "trusted", handles = "query"}',
        "other": "queries = 2",
    }
    file = scenario(tmp_path_factory.mktemp("late"), campaigns, vehicles=700, channel="latency_s = 11")
    times = "asked=[1, 2, 4, 8]"
    both = "coalition=['server:1', 'network']"
    sections = [
        "{kind='link_rounds', coalition=['server:1'], campaigns=['numbers']}",
        f"{{kind='longitudinal', name='followed', {both}, campaigns=['pseudonyms'], {times}}}",
        f"{{kind='longitudinal', name='lost', coalition=['server:1'], campaigns=['pseudonyms'], {times}}}",
        f"{{kind='longitudinal', name='some', {both}, campaigns=['pseudonyms'], asked=[2], from_query=3, to_query=4}}",
        f"{{kind='longitudinal', name='pooled', {both}, campaigns=['numbers', 'other'], asked=[4], together=true}}",
        f"{{kind='link_rounds', name='at-once', {both}, campaigns=['numbers', 'other'], together=true}}",
        "{kind='drop_out', dropped='target', coalition=['server:1'], campaigns=['numbers']}",
        "{kind='link_rounds', name='joins', campaigns=['pseudonyms'], coalition=['network', " + JOINS + "]}",
    ]
    return run(file, overrides=[attacks(*sections)])


def test_server_learns_late_reports_that_it_did_not_count(late):
    numbers = late.rounds[late.rounds["campaign"] == "numbers"]
    assert (numbers["counted"] == 0).all()
    assert (numbers["late"] == 700).all()
    rows = late.attacks[late.attacks["name"] == "link_rounds"].set_index("mechanism")
    assert rows.loc["plain", "success"] == 1.0
    assert agrees(rows.loc["sampling"])
    assert agrees(rows.loc["k-ary"])
    # Dropped from the sums, but not from the server's storage.
    dropped = late.attacks[late.attacks["name"] == "drop_out"]
    assert len(dropped) == 2
    assert all(agrees(row) and row.success > 0.4 for _, row in dropped.iterrows())


def test_server_and_network_link_pseudonyms_as_theory_predicts(late):
    found = late.attacks.set_index(["name", "mechanism"])
    for mechanism in ("sampling", "k-ary"):
        followed, lost = found.loc[[("followed", mechanism)]], found.loc[[("lost", mechanism)]]
        assert followed["value"].tolist() == lost["value"].tolist() == [1.0, 2.0, 4.0, 8.0]
        assert followed["theory"].is_monotonic_increasing
        assert followed["theory"].iloc[-1] > lost["theory"].iloc[-1] + 0.2
        assert all(agrees(row) for _, row in followed.iterrows())
        assert all(agrees(row) for _, row in lost.iterrows())


def test_coalitions_change_with_queries_and_span_campaigns(late):
    found = late.attacks.set_index(["name", "mechanism"])

    def row(name, mechanism="sampling"):
        return found.loc[[(name, mechanism)]].iloc[0]

    two, some = found.loc[[("followed", "sampling")]].iloc[1], row("some")
    assert some["coalition"] == "server:1 (from query 3 to 4), network (from query 3 to 4)"
    assert some["theory"] == pytest.approx(two["theory"], abs=0.05)
    assert agrees(some)
    pooled, once = row("pooled"), row("at-once")
    assert pooled["campaign"] == once["campaign"] == "numbers, other"
    assert agrees(pooled)
    assert agrees(once)
    assert pooled["theory"] > once["theory"] > row("link_rounds")["theory"]
    # Without the server the network reads nothing: half of the queries are guessed from the prior.
    joins = row("joins", "plain")
    assert joins["success"] == pytest.approx(0.5 + joins["prior"] / 2, abs=0.02)


def test_anonymous_channel_hides_the_senders(tmp_path):
    campaigns = {
        "pseudonyms": 'queries = 3\naggregation = {kind = "trusted", handles = "query"}',
        "mixed": 'queries = 1\naggregation = {kind = "shuffled"}',
    }
    file = scenario(tmp_path, campaigns, vehicles=400, channel="anonymous = true")
    sections = (
        "{kind='longitudinal', coalition=['server:1', 'network'], campaigns=['pseudonyms'], asked=[1, 3]}",
        "{kind='link_rounds', coalition=['server:1', 'mixer', 'network'], campaigns=['mixed']}",
    )
    found = run(file, overrides=[attacks(*sections)])
    rows = found.attacks.set_index(["attack", "mechanism"])
    one, three = rows.loc[("longitudinal", "k-ary")]["theory"]
    assert three == pytest.approx(one, abs=0.05)
    mixed = rows.loc["link_rounds"]
    np.testing.assert_allclose(mixed["success"], mixed["prior"])
    learns = {
        (one["campaign"], tuple(entry["coalition"])): entry
        for one in found.facts["deployments"]
        for mechanism in one["mechanisms"]
        if mechanism["mechanism"] == "k-ary"
        for entry in mechanism["learns"]
    }
    assert ("pseudonyms", ("server:1", "network")) not in learns
    alone = learns["mixed", ("server:1",)]
    assert learns["mixed", ("server:1", "mixer")]["epsilon"] == alone["epsilon"]


def test_suppressed_counts_reveal_nothing(tmp_path):
    campaigns = {
        "suppressed": 'queries = 6\nrelease = {kind = "suppress", k = 40, mechanisms = ["sampling"]}',
        "open": "queries = 6",
    }
    file = scenario(tmp_path, campaigns, vehicles=150)
    sections = (
        "{kind='known_others', coalition=['network'], mechanisms=['sampling']}",
        "{kind='drop_out', name='others', dropped='others', coalition=['network'], mechanisms=['sampling']}",
        "{kind='drop_out', name='target', dropped='target', coalition=['network'], mechanisms=['sampling']}",
        "{kind='drop_out', name='server', dropped='others', coalition=['server:1'], mechanisms=['sampling']}",
    )
    found = run(file, overrides=[attacks(*sections)])
    assert found.estimates[found.estimates["campaign"] == "suppressed"]["truth"].max() < 40
    rows = found.attacks.set_index(["campaign", "name"])
    assert rows.loc[[("suppressed", "known_others")]]["theory"].item() == 0.5
    for name in ("others", "target"):
        hidden = rows.loc[[("suppressed", name)]]
        np.testing.assert_allclose(hidden["success"], hidden["prior"])
        np.testing.assert_allclose(hidden["theory"], hidden["prior"])
        assert (rows.loc[[("open", name)]]["success"].iloc[-1:] > hidden["prior"].iloc[-1] + 0.1).all()
    assert rows.loc[[("open", "known_others")]]["theory"].item() > 0.52
    # The server still stores what it received.
    server = rows.loc[[("suppressed", "server")]].iloc[0]
    assert server["success"] > 0.4
    assert agrees(server)


@pytest.mark.parametrize("answers", ["reports", "counts"])
def test_rounds_account_for_the_messages_of_each_server(tmp_path, answers):
    campaigns = {
        "shared": 'queries = 3\naggregation = {kind = "secret_shared", servers = 3}',
        "mixed": 'queries = 3\naggregation = {kind = "shuffled"}',
        "trusted": "queries = 3",
    }
    channel = (
        "loss = 0.1\nduplicates = 0.2\nlatency_s = {kind = 'exponential', mean_s = 4}\n"
        "outages = [{server = 'server:1', from_s = 620, to_s = 623}]"
    )
    file = scenario(tmp_path, campaigns, vehicles=3000, channel=channel)
    found = run(file, overrides=[f"population={{answers='{answers}'}}"])
    servers, rounds = found.servers, found.rounds
    assert list(servers.columns) == [
        *("campaign", "query", "mechanism", "round", "server"),
        *("sent", "arrived", "late", "lost", "used"),
    ]
    assert (servers["sent"] == servers["arrived"] + servers["late"] + servers["lost"]).all()
    assert (servers["used"] <= servers["arrived"]).all()
    assert (rounds["answered"] == rounds[["counted", "late", "lost", "rejected", "unpaired"]].sum(axis=1)).all()
    key = ["campaign", "query", "mechanism", "round"]
    joined = servers.merge(rounds, on=key, suffixes=("", "_reports"))
    direct = joined[joined["campaign"] != "mixed"]
    assert (direct["sent"] == direct["answered"]).all()
    mixer, behind = (
        joined[(joined["campaign"] == "mixed") & (joined["server"] == server)] for server in ("mixer", "server:1")
    )
    assert (mixer["sent"].to_numpy() == mixer["answered"].to_numpy()).all()
    assert (behind["sent"].to_numpy() == mixer["arrived"].to_numpy()).all()
    assert (behind["arrived"].to_numpy() == behind["counted"].to_numpy()).all()
    # Loss compounds over the shares: each arrives in time with p, and all three with p³.
    p = 0.9 * (1 - np.exp(-10 / 4))
    shared = joined[(joined["campaign"] == "shared") & (joined["server"] == "server:2")]
    in_time, sent, counted = (int(shared[column].sum()) for column in ("arrived", "sent", "counted"))
    assert binomtest(in_time, sent, p).pvalue > FAMILY
    third = joined[(joined["campaign"] == "shared") & (joined["round"] == 1) & (joined["query"] > 1)]
    counted, sent = (int(third[third["server"] == "server:2"][column].sum()) for column in ("counted", "sent"))
    assert binomtest(counted, sent, p**3).pvalue > FAMILY
    shares = joined[joined["campaign"] == "shared"].groupby(key)["arrived"].sum()
    copies = rounds.set_index(key).loc[shares.index, "duplicates"]
    assert binomtest(int(copies.sum()), int(shares.sum()), 0.2).pvalue > FAMILY


def test_invalid_query_windows_are_refused(tmp_path):
    file = scenario(tmp_path, {"c": "queries = 2", "d": "queries = 3"}, vehicles=20)
    for section, words in (
        ("{kind='link_rounds', coalition=['server:1'], from_query=3, to_query=2}", "to_query"),
        ("{kind='link_rounds', coalition=['server:1'], from_query=4}", "from_query"),
        ("{kind='link_rounds', coalition=[{party='server:1', from_query=2, to_query=1}]}", "to_query"),
        ("{kind='link_rounds', coalition=[{party='nobody'}]}", "coalition"),
        ("{kind='round_one', coalition=['server:1'], together=true}", "together"),
        ("{kind='longitudinal', coalition=['server:1'], asked=[6], together=true}", "asked"),
    ):
        with pytest.raises(ScenarioError, match=words):
            run(file, overrides=[attacks(section)])


SERVERS = {
    "two": 'aggregation = {kind = "secret_shared", servers = 2}',
    "four": 'aggregation = {kind = "secret_shared", servers = 4}',
    "mixed": 'aggregation = {kind = "shuffled"}',
}


@pytest.fixture(scope="module")
def three_deployments(tmp_path_factory):
    file = scenario(tmp_path_factory.mktemp("three"), SERVERS)

    def attacked(*sections):
        result = run(file, overrides=[attacks(*sections)])
        said = [text for text in result.facts["warnings"] if text.startswith("attacks.")]
        return result.attacks[result.attacks["mechanism"] == "sampling"], said

    return attacked


def coalitions(rows, name):
    """The coalitions of an attack, by campaign."""
    return {campaign: own["coalition"].tolist() for campaign, own in rows[rows["name"] == name].groupby("campaign")}


def test_every_server_and_every_party_are_those_of_each_campaign(three_deployments):
    rows, said = three_deployments(
        "{kind='shares', coalition='server:*', growing=true}",
        "{kind='link_rounds', name='linked', coalition=['server:*']}",
        "{kind='link_rounds', name='all', coalition='all'}",
        "{kind='link_rounds', name='grown', coalition='all', growing=true, campaigns=['mixed']}",
        "{kind='link_rounds', name='spanning', coalition='server:*', together=true}",
        "{kind='known_others', name='others', coalition='server:*', campaigns=['two']}",
        "{kind='longitudinal', name='asked', asked=[1], coalition='all', campaigns=['two']}",
        "{kind='drop_out', name='dropped', dropped='target', coalition='server:*', campaigns=['two']}",
    )
    first, both = "server:1", "server:1, server:2"
    four = f"{both}, server:3, server:4"
    grown = {"two": [first, both], "four": [first, both, f"{both}, server:3", four]}
    assert coalitions(rows, "shares") == grown
    of_shares = rows[rows["name"] == "shares"]
    assert ((of_shares["gain"].abs() > 1e-12) == (of_shares["colluding"] == of_shares["servers"])).all()
    assert coalitions(rows, "linked") == {"two": [both], "four": [four], "mixed": [first]}
    every = {"two": [f"{both}, network"], "four": [f"{four}, network"], "mixed": [f"{first}, mixer, network"]}
    assert coalitions(rows, "all") == every
    assert coalitions(rows, "grown") == {"mixed": [first, f"{first}, mixer", f"{first}, mixer, network"]}
    assert coalitions(rows, "spanning") == {"two, four, mixed": [four]}
    assert {tuple(found) for found in coalitions(rows, "others").values()} == {(both,)}
    assert coalitions(rows, "asked") == {"two": [f"{both}, network"]}
    assert {name for found in coalitions(rows, "dropped").values() for name in found} == {both}
    assert said == []


def test_a_coalition_that_a_campaign_lacks_is_said_and_the_others_are_tried(three_deployments):
    rows, said = three_deployments("{kind='shares', coalition=['server:1', 'server:2', 'server:3'], growing=true}")
    first, both = "server:1", "server:1, server:2"
    assert coalitions(rows, "shares") == {"two": [first, both], "four": [first, both, f"{both}, server:3"]}
    (text,) = said
    assert text.startswith("attacks.shares: two, plain, sampling, k-ary: ")
    assert text.endswith(f"coalition {both}, server:3 was not tried: there is no server:3")

    rows, said = three_deployments("{kind='link_rounds', name='mixer', coalition=['mixer', 'server:1']}")
    assert coalitions(rows, "mixer") == {"mixed": ["mixer, server:1"]}
    assert [text.partition(",")[0] for text in said] == ["attacks.mixer: two", "attacks.mixer: four"]
    assert all(text.endswith("there is no mixer") for text in said)


def test_an_attack_without_any_result_says_why(three_deployments):
    rows, said = three_deployments(
        "{kind='drop_out', name='none', dropped='target', coalition=['network'], mechanisms=['k-ary']}",
    )
    assert "none" not in set(rows["name"])
    assert any(text.startswith("attacks.none: ") for text in said)


def test_an_attack_that_is_meant_for_no_mechanism_of_the_run_says_so(tmp_path):
    overrides = [
        attacks("{kind='drop_out', name='others', coalition=['network'], dropped='target'}"),
        "mechanisms=[{kind='k_randomized_response', name='k-ary', epsilon=2}]",
    ]
    result = run(scenario(tmp_path, {"two": SERVERS["two"]}), overrides=overrides)
    assert result.attacks.empty
    assert [text.partition(": ")[0] for text in result.facts["warnings"] if "attacks." in text] == ["attacks.others"]


def test_a_campaign_that_ends_before_the_coalition_exists_is_said(tmp_path):
    campaigns = {"short": "queries = 1", "long": "queries = 3"}
    late = attacks("{kind='link_rounds', name='late', coalition=['server:1'], from_query=2}")
    result = run(scenario(tmp_path, campaigns), overrides=[late])
    assert set(result.attacks["campaign"]) == {"long"}
    (text,) = [text for text in result.facts["warnings"] if text.startswith("attacks.late")]
    assert text.startswith("attacks.late: short, ")
    assert "server:1 (from query 2) has no member at its queries" in text


OPERATORS = {
    "one": 'queries = 1\noperator = "A"\naggregation = {kind = "trusted"}',
    "two": 'queries = 1\noperator = "B"\naggregation = {kind = "secret_shared", servers = 2}',
}


def test_coalitions_across_operators_receive_what_their_parties_stored(tmp_path):
    outage = "outages = [{server = 'operator:B/server:1', from_s = 595, to_s = 605}]"
    file = scenario(tmp_path, OPERATORS, vehicles=400, channel=outage)
    a, b1, b2 = "operator:A/server:1", "operator:B/server:1", "operator:B/server:2"
    sections = [
        f"{{kind='link_rounds', coalition=['{a}', '{b1}', '{b2}'], together=true, growing=true}}",
        f"{{kind='link_rounds', name='other', coalition=['{b1}', '{b2}'], campaigns=['two']}}",
        "{kind='link_rounds', name='stars', coalition=['operator:A/*', 'operator:*/server:2'], together=true}",
        "{kind='link_rounds', name='every', coalition='all', together=true}",
        "{kind='link_rounds', name='alone', coalition=['operator:B/*']}",
    ]
    found = run(file, overrides=[attacks(*sections)])
    rows = found.attacks[found.attacks["mechanism"] == "k-ary"].set_index("name")
    grown = rows.loc["link_rounds"]
    assert grown["coalition"].tolist() == [a, f"{a}, {b1}", f"{a}, {b1}, {b2}"]
    # Both ask at one moment: A's reports tell about B's query too, a share of B's tells no more, all of B's shares do.
    alone, share, both = grown["theory"]
    assert both > share + 0.02
    assert alone == pytest.approx(share, abs=1e-12)
    assert both > rows.loc["other", "theory"] + 0.02
    assert all(agrees(row) for _, row in grown.iterrows())
    assert rows.loc["stars", "coalition"] == f"{a}, {b2}"
    assert rows.loc["stars", "theory"] == pytest.approx(share, abs=1e-12)
    assert rows.loc["every", "coalition"] == f"{a}, network, {b1}, {b2}"
    assert rows.loc["every", "theory"] == pytest.approx(both, abs=1e-12)
    assert rows.loc["alone", "campaign"] == "two"
    # Names are of an operator's own servers, and so is the outage, in round one of sampling.
    servers = found.servers.groupby("server")[["sent", "lost"]].sum()
    assert set(servers.index) == {a, b1, b2}
    assert servers["lost"].gt(0).to_dict() == {a: False, b1: True, b2: False}
    learns = {one["campaign"]: one for one in found.facts["deployments"]}
    assert learns["two"]["operator"] == "B"
    of_plain = learns["two"]["mechanisms"][0]
    assert of_plain["parties"] == [b1, b2, "network"]
    assert [one["coalition"] for one in of_plain["learns"]] == [[b1], [b1, b2], ["network"]]
    claims = found.claims[(found.claims["view"] == "received") & found.claims["at_delta_zero"]]
    pooled = claims[claims["mechanism"] == "k-ary"].set_index("coalition")["epsilon"]
    assert pooled[["operator:A/*", "operator:B/*", "operator:*/*"]].tolist() == pytest.approx([2.0, 2.0, 4.0])
    assert pooled[f"{a}, {b1}, {b2}"] == pytest.approx(4.0)
    text = found.summary()
    assert "stored by operator A: ε = 2 (exact)" in text
    assert "stored by all operators: ε ≤ 4 (bound)" in text


@pytest.mark.parametrize(
    ("coalition", "rule"),
    [
        (["server:1"], "there are network, operator:A/server:1, operator:B/server:1, operator:B/server:2; got"),
        (["operator:C/server:1"], "campaigns.one has no mechanism with all these parties"),
        (["operator:B/server:3"], "campaigns.one has no mechanism with all these parties"),
        (["operator:A/server:1", "operator:B/server:1"], "; together = true attacks campaigns with different parties"),
        (["operator:/server:1"], 'must name a party: "server:1", "operator:A/server:1"'),
    ],
)
def test_a_party_that_no_operator_has_is_one_message(tmp_path, coalition, rule):
    file = scenario(tmp_path, OPERATORS)
    with pytest.raises(ScenarioError) as refused:
        run(file, overrides=[attacks(f"{{kind='link_rounds', coalition={coalition}}}")])
    assert len(refused.value.faults) == 1
    assert rule in str(refused.value)

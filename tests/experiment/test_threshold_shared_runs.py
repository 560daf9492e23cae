"""Runs with threshold shares: what outages and losses cost, and what coalitions learn."""

import numpy as np
import pytest

import scenarios
from simulator import run

FAMILY_BOUND = 5.0  # standard deviations


def result_of(seed=1, **overrides):
    shared = {"kind": "threshold_shared", "servers": 3, "threshold": 2}
    given = {"aggregation": shared, "traffic.vehicles": 200, **overrides}
    return run(scenarios.load("tiny", overrides=given, seed=seed))


def down(*servers):
    return [{"server": f"server:{number}", "from_s": 0.0, "to_s": 300.0} for number in servers]


@pytest.mark.parametrize(("answers", "number"), [("auto", 1), ("auto", 3), ("counts", 2)])
def test_an_outage_of_the_servers_that_are_not_needed_loses_no_report(answers, number):
    keys = {"population.answers": answers, "population.outside": 50}
    ideal, result = result_of(**keys), result_of(**keys, **{"channel.outages": down(number)})
    assert (result.rounds["counted"] == result.rounds["answered"]).all()
    np.testing.assert_array_equal(result.estimates["estimate"], ideal.estimates["estimate"])
    servers = result.servers.set_index("server")
    assert (servers.loc[f"server:{number}", ["arrived", "used"]] == 0).all(axis=None)
    others = servers.drop(index=f"server:{number}")
    assert (others["used"] == others["sent"]).all()


@pytest.mark.parametrize("answers", ["auto", "counts"])
def test_an_outage_of_one_server_more_loses_every_report(answers):
    result = result_of(**{"population.answers": answers, "channel.outages": down(1, 3)})
    assert (result.rounds["lost"] == result.rounds["answered"]).all()
    assert result.rounds["counted"].sum() == 0


@pytest.mark.parametrize(("answers", "threshold"), [("reports", 2), ("reports", 3), ("counts", 2), ("auto", 3)])
def test_five_percent_of_lost_messages(answers, threshold):
    """Counted reports, against (1 − loss)^t of those sent; somewhat more where the best servers are chosen."""
    shared = {"kind": "threshold_shared", "servers": 3, "threshold": threshold}
    keys = {"channel.loss": 0.05, "channel.duplicates": 0.1, "population.outside": 20_000}
    result = result_of(**{"aggregation": shared, "population.answers": answers}, **keys)
    servers, rounds = result.servers, result.rounds
    assert (servers["sent"] == servers["arrived"] + servers["late"] + servers["lost"]).all()
    for account in rounds.itertuples():
        assert account.answered == account.counted + account.late + account.lost
        share = 0.95**threshold
        spread = FAMILY_BOUND * np.sqrt(share * (1.0 - share) * account.answered)
        # Choosing the best 2 of 3 servers adds at most the largest of three deviations to each arrival rate.
        chosen = 2 * 3.0 * np.sqrt(0.05 * 0.95 * account.answered) if threshold == 2 else 0.0
        assert -spread < account.counted - share * account.answered < spread + chosen
    used = servers.groupby(["query", "mechanism", "round"])["used"].agg(lambda column: (column > 0).sum())
    assert (used == threshold).all()
    for _, of in servers.groupby(["query", "mechanism", "round"]):
        if answers == "reports" and threshold == 2:
            assert of.loc[of["used"] > 0, "arrived"].min() >= of.loc[of["used"] == 0, "arrived"].max()


def test_coalitions_below_the_threshold_gain_nothing_and_others_what_a_trusted_server_does():
    attacks = [
        {"kind": "shares", "name": "one", "coalition": ["server:2"], "targets": 400},
        {"kind": "link_rounds", "name": "none", "coalition": ["server:3"], "targets": 400},
        {"kind": "shares", "name": "two", "coalition": ["server:1", "server:3"], "targets": 400},
        {"kind": "link_rounds", "name": "linked", "coalition": ["server:2", "server:3"], "targets": 400},
        {"kind": "link_rounds", "name": "all", "coalition": [f"server:{n}" for n in (1, 2, 3)], "targets": 400},
    ]
    keys = {"traffic.vehicles": 400, "channel.loss": 0.0}
    shared = result_of(attacks=attacks, **keys).attacks.set_index(["name", "mechanism"])
    plain = [{"kind": "link_rounds", "name": "plain", "coalition": ["server:1"], "targets": 400}]
    trusted = result_of(aggregation={"kind": "trusted"}, attacks=plain, **keys).attacks.set_index("mechanism")
    for mechanism, row in trusted.iterrows():
        for name in ("one", "none"):
            found = shared.loc[(name, mechanism)]
            assert found["gain"] == 0.0
            assert found["theory"] == pytest.approx(found["prior"], rel=1e-12)
        for name in ("two", "linked", "all"):
            found = shared.loc[(name, mechanism)]
            assert found["theory"] == pytest.approx(row["theory"])
            assert found["trials"] == row["trials"]
            # The same devices and reports; only ties are broken by other draws.
            spread = np.sqrt(row["theory"] * (1.0 - row["theory"]) / row["trials"])
            assert abs(found["success"] - found["theory"]) <= FAMILY_BOUND * spread


def test_lost_shares_of_different_servers_are_read_from_the_others():
    attacks = [{"kind": "link_rounds", "coalition": [f"server:{n}" for n in (1, 2, 3)], "targets": 400}]
    keys = {"channel.loss": 0.3, "traffic.vehicles": 400, "attacks": attacks}
    result = result_of(**keys)
    fewer = result_of(aggregation={"kind": "secret_shared", "servers": 3}, **keys)
    # Of reports of one round, .7³ + 3·.7²·.3 = .784 have two shares or more, and .7³ = .343 have all.
    for share, of in ((0.784, result), (0.343, fewer)):
        row = of.attacks.set_index("mechanism").loc["baseline"]
        # A report that is read gives the cell; for the others the guess is that of the prior.
        read = row["gain"] / (1.0 - row["prior"])
        spread = np.sqrt(share * (1.0 - share) / row["trials"]) / (1.0 - row["prior"])
        assert abs(read - share) < FAMILY_BOUND * spread


def test_report_names_the_threshold():
    result = result_of()
    (record,) = result.record.deployments
    assert (record.kind, record.servers, record.needed) == ("threshold_shared", 3, 2)

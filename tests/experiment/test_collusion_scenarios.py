"""The scenarios of colluding parties and lost reports have the results that their comments state."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import scenarios
from simulator import RunResult, run
from simulator.experiment.run import run_scenario
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import print_summary

pytestmark = pytest.mark.slow  # the scenario with all its trials takes half a minute


LEVEL = 1e-6
SAMPLING, CELLS = 0.45, 36
NAMES = ("collusion", "longitudinal", "lossy", "parked-cars", "poisoning")
MISSED = ["late", "lost", "rejected", "unpaired"]
ONE_OF_EACH = """
scenario = {name = "edge", duration_s = 900}
roads = {source = "grid", rows = 4, columns = 4, spacing_m = 150}
cells = {kind = "square", size_m = 200}
traffic = {vehicles = 40, parked = "answer", departures = [{from_s = 0, to_s = 60, share = 1.0}]}
mechanisms = [
    {name = "sampling", kind = "sampling_privacy", sampling = 0.45},
    {name = "k-ary", kind = "k_randomized_response", epsilon = 2},
]
campaigns = [
    {name = "trusted", start_s = 600, queries = 2, every_s = 100},
    {name = "per-round", start_s = 600, aggregation = {kind = "per_round"}},
    {name = "shuffled", start_s = 600, aggregation = {kind = "shuffled"}},
    {name = "shared", start_s = 600, aggregation = {kind = "secret_shared", servers = 3, paired = true}},
]
attacks = [
    {kind = "round_one", coalition = ["server:1"]},
    {kind = "round_two", coalition = ["server:2"], campaigns = ["per-round"], mechanisms = ["sampling"]},
    {kind = "link_rounds", coalition = ["server:1", "mixer"], growing = true},
    {kind = "shares", coalition = ["server:1", "server:2", "server:3"], growing = true},
    {kind = "known_others", coalition = ["network"], k = 2},
    {kind = "longitudinal", coalition = ["server:1"], campaigns = ["trusted"], asked = [1, 2]},
    {kind = "drop_out", coalition = ["network"], dropped = "others"},
    {name = "target", kind = "drop_out", coalition = ["network"], dropped = "target"},
]
"""


@pytest.fixture(scope="module")
def results(shipped_run):
    return {name: RunResult.load(shipped_run(name)) for name in NAMES}


@pytest.fixture(scope="module")
def collusion(results):
    return results["collusion"]


def _guesses(attacks):
    """Return the rows that guess a cell from what a coalition stored in one query."""
    kinds = ["round_one", "round_two", "link_rounds", "shares"]
    return attacks[attacks["attack"].isin(kinds) & attacks["metric"].isna()]


def _improbable(row, expected):
    """Return the two-sided probability of this number of correct guesses at the expected success rate.

    Queries have different expectations, so the sum of correct guesses spreads less than a binomial of their mean.
    """
    return stats.binomtest(round(row.success * row.trials), int(row.trials), expected).pvalue


def test_guess_success_equals_theory(results):
    rows = pd.concat([result.attacks for result in results.values()])
    rows = rows[rows["success"].notna() & rows["theory"].notna()]
    assert len(rows) > 100
    for row in rows.itertuples():
        assert 0.0 <= row.theory <= 1.0
        assert _improbable(row, row.theory) > LEVEL / len(rows), row


def test_linked_rounds_theory_equals_item_2(collusion):
    """Success = π_s(1 − q₀) + (1 − π_s − π₀)·g + max(q₀(π₀ + π_s), π₀·max q) (papers.md, item 2)."""
    blank = (1.0 - SAMPLING) / (CELLS + 1)
    truths = collusion.estimates.query("campaign == 'per-round' and mechanism == 'sampling'")
    rounds = collusion.rounds.query("campaign == 'per-round' and mechanism == 'sampling' and round == 2")
    expected, trials = 0.0, 0
    for query, asked in zip(rounds["query"], rounds["asked"], strict=True):
        inside = truths.loc[truths["query"] == query, "truth"].to_numpy()
        q = np.concatenate([[asked - inside.sum()], inside]) / asked
        told = SAMPLING * (1.0 - q[0]) + (1.0 - SAMPLING - blank) * q.max()
        expected += asked * (told + max(q[0] * (blank + SAMPLING), blank * q[1:].max()))
        trials += asked
    row = collusion.attacks.query("name == 'both-servers' and colluding == 2").iloc[0]
    assert row["trials"] == trials
    assert row["theory"] == pytest.approx(expected / trials, rel=1e-9)
    assert row["gain_low"] > 0.3


def test_gain_below_the_threshold_is_zero(collusion):
    rows = _guesses(collusion.attacks)
    below = rows[
        (rows["attack"] == "round_one")
        | (
            (rows["attack"] == "link_rounds")
            & rows["campaign"].isin(["per-round", "shuffled"])
            & (rows["colluding"] == 1)
        )
        | ((rows["attack"] == "shares") & (rows["colluding"] < 3))
    ]
    assert len(below) == 1 + 1 + 4 + 2 * 2 * 4
    assert below["theory"].to_numpy() == pytest.approx(below["prior"].to_numpy())
    for row in below.itertuples():
        assert _improbable(row, row.prior) > LEVEL / len(below), row
    assert (below["epsilon_lower"] == 0.0).all()
    at = rows.drop(below.index)
    assert (at["gain_low"] > 0.25).all()


def test_epsilon_lower_bounds_do_not_exceed_claims(collusion):
    """A coalition's lower bound of ε (error 10⁻⁶) is at most the claim of its view at δ = 0."""
    claims = collusion.claims
    linked = claims[(claims["view"] == "linked_reports") & (claims["delta"] == 0.0) & (claims["queries"] == 1)]
    most = dict(zip(linked["mechanism"], linked["epsilon"], strict=True))
    rows = _guesses(collusion.attacks)
    assert (rows["epsilon_lower"] <= rows["mechanism"].map(most)).all()
    assert (rows.query("attack == 'round_two'")["epsilon_lower"] <= 3.45).all()
    # A server alone has observed less than ε, and much more than nothing.
    assert (rows.query("mechanism == 'k-ary' and campaign == 'trusted'")["epsilon_lower"] > 2.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_report_is_accounted_for(results, name):
    rounds = results[name].rounds
    assert (rounds["answered"] == rounds["counted"] + rounds[MISSED].sum(axis=1)).all()
    assert (rounds["answered"] <= rounds["asked"]).all()


def test_theory_and_accounts_hold_on_a_poor_channel():
    """Late, lost, duplicated, unpaired reports and departed devices, all at once, in every kind of deployment."""
    bad = [
        "channel.loss=0.15",
        "channel.burst_s=5",
        "channel.churn=0.1",
        "channel.duplicates=0.1",
        "channel.latency_s={kind='exponential', mean_s=8.0}",
        "channel.outages=[{server='server:2', from_s=840, to_s=845}]",
    ]
    result = run("collusion", overrides=bad)
    rounds = result.rounds
    assert (rounds["answered"] == rounds["counted"] + rounds[MISSED].sum(axis=1)).all()
    assert (rounds[["late", "lost", "unpaired", "duplicates"]].sum() > 100).all()
    rows = result.attacks[result.attacks["success"].notna()]
    assert rows["theory"].notna().all()
    for row in rows.itertuples():
        assert _improbable(row, row.theory) > LEVEL / len(rows), row
    assert sum("not every report was counted" in warning for warning in result.facts["warnings"]) == 2


def test_attacks_change_no_estimate(results):
    without = run_scenario(scenarios.load("longitudinal").model_copy(update={"attacks": ()}))
    assert without.attacks.empty
    pd.testing.assert_frame_equal(without.estimates, results["longitudinal"].estimates, check_exact=True)
    pd.testing.assert_frame_equal(without.rounds, results["longitudinal"].rounds, check_exact=True)


def error_as_theory(result, tests):
    """The error of Sampling Privacy, which agrees with theory, in one of several tests."""
    score = result.scores.set_index("mechanism").loc["sampling"]
    truth = result.estimates.query("mechanism == 'sampling'")["truth"].to_numpy()
    # The variance of a squared error is about 2σ⁴: σ² is Y(1 − π_s)/π_s and the same for every cell.
    own = truth * (1.0 - SAMPLING) / SAMPLING
    each = own + max(float(score["theory_rmse"]) ** 2 - own.mean(), 0.0)
    spread = np.sqrt(2.0 * (each**2).sum()) / each.sum()
    assert abs((score["rmse"] / score["theory_rmse"]) ** 2 - 1.0) < stats.norm.isf(LEVEL / tests / 2) * spread * 1.5
    return float(score["rmse"])


def test_lost_reports_increase_the_error_unless_rounds_are_paired():
    """papers.md, item 6, at one loss: unpaired error follows theory, finally √N; paired error is equal at every N."""
    errors = {}
    for outside in (100_000, 1_000_000):
        for paired in ("false", "true"):
            result = run("lossy", overrides=[f"population.outside={outside}", f"aggregation.paired={paired}"])
            errors[outside, paired] = error_as_theory(result, 4)
            assert result.facts["loss"][0]["pairs"] == (paired == "true")
    assert errors[1_000_000, "false"] > 2.5 * errors[100_000, "false"]
    assert errors[1_000_000, "true"] == pytest.approx(errors[100_000, "true"], rel=0.1)
    assert errors[1_000_000, "false"] > 10 * errors[1_000_000, "true"]


def test_a_lost_question_is_one_loss_for_all_shares_and_pairing_mends_it():
    """With three servers 90 % of the reports are counted if one question in ten is lost, and .9³ if one message is."""
    errors = {}
    for lost, loss, question, share in (("messages", 0.1, 0.0, 0.9**3), ("questions", 0.0, 0.1, 0.9)):
        for paired in ("false", "true"):
            channel = [f"channel.loss={loss}", f"channel.question.loss={question}"]
            result = run("lossy", overrides=[*channel, "aggregation.servers=3", f"aggregation.paired={paired}"])
            errors[lost, paired] = error_as_theory(result, 4)
            rounds = result.rounds.query("mechanism == 'sampling'")[["asked", "answered", "counted", "unheard"]].sum()
            counted = share**2 if paired == "true" else share
            assert stats.binomtest(int(rounds["counted"]), int(rounds["asked"]), counted).pvalue > LEVEL
            assert rounds["asked"] == rounds["answered"] + rounds["unheard"]
            assert (rounds["unheard"] > 0) == (lost == "questions")
    assert errors["questions", "false"] < 0.65 * errors["messages", "false"]  # √((1/.9 − 1)/(1/.729 − 1)) = .55
    assert errors["questions", "false"] > 10 * errors["questions", "true"]


def test_loss_is_dependent_if_devices_leave_between_two_truthful_rounds():
    """Sampling Privacy asks round one before any device leaves; two answers after the moment of truth are not."""
    kinds = "{kind='sampling_privacy', sampling=0.45}, {kind='anonymized_cancelling', shift=0.45}"
    result = run("tiny", overrides=["channel.churn=0.2", f"mechanisms=[{kinds}]"])
    independent = {loss["mechanism"]: loss["independent"] for loss in result.facts["loss"]}
    assert independent == {"sampling_privacy": True, "anonymized_cancelling": False}


def test_loss_curves_equal_item_6():
    """V = 1000, π_s = .45, Y = 100, 1 % loss: σ = 11.4 … 74.9 unpaired (with π₀ = 0), 11.3 paired at every N."""
    from mechanisms.local import SamplingPrivacy  # noqa: PLC0415 - for this one test
    from simulator.aggregation.rounds import paired_std_error  # noqa: PLC0415 - for this one test

    mechanism = SamplingPrivacy(cells=1000, sampling=SAMPLING, blank_zero=0.0)
    unpaired, paired = [], []
    for asked in (10**5, 10**6, 10**7, 10**8):
        truth = np.zeros(1001, dtype=np.int64)
        truth[0], truth[1] = asked - 100, 100
        received = round(0.99 * asked)
        unpaired.append(float(mechanism.std_error(truth, asked=[asked] * 2, counted=[received] * 2)[0]))
        paired.append(float(paired_std_error(mechanism, truth, paired=round(0.99**2 * asked))[0]))
    assert unpaired == pytest.approx([11.4, 13.4, 26.0, 74.9], abs=0.1)
    assert paired == pytest.approx([11.2] * 4, abs=0.15)


def test_linked_vehicle_is_located_and_unlinked_one_is_not(results):
    for name, most in (("longitudinal", 8), ("parked-cars", 24)):
        rows = results[name].attacks
        rows = rows[(rows["mechanism"] == "sampling") & (rows["name"].isin(["again", "both-servers"]))]
        followed = rows.query("campaign == 'followed'").set_index("value")["success"]
        apart = rows.query("campaign == 'pseudonyms'").set_index("value")
        assert followed[most] > 0.97
        assert followed[1] < 0.6
        assert (apart["theory"] < 0.6).all()
    rows = results["longitudinal"].attacks.query("campaign == 'followed' and value == 8").set_index("mechanism")
    assert rows.loc["memoised", "theory"] < rows.loc["fresh", "theory"]


def test_range_proofs_reject_only_crafted_reports(results):
    rows = results["poisoning"].attacks
    keys = ["campaign", "mechanism", "colluding"]
    honest = rows.query("metric == 'inflation'").set_index(keys)["value"]
    crafted = rows.query("metric == 'crafted_inflation'").set_index(keys)["value"]
    assert len(honest) == len(crafted) == 3 * 4 * 4
    for campaign in ("trusted", "proven"):
        assert crafted[campaign].to_numpy() == pytest.approx(honest[campaign].to_numpy())
    assert (crafted["shared"] > 100 * honest["shared"]).all()
    # To Sampling Privacy a well-formed report is worth 1/π_s vehicles, minus the vehicles truly there.
    sampling = honest.xs("sampling", level="mechanism").reset_index()
    assert sampling["value"].to_numpy() == pytest.approx(sampling["colluding"].to_numpy() / SAMPLING, rel=0.2)


EDGES = {
    "all-devices-lost": ["channel.loss=1.0"],
    "all-leave-between-rounds": ["channel.churn=1.0"],
    "half-lost": ["channel.loss=0.5"],
    "one-device": ["traffic.vehicles=1"],
    "one-cell": ["cells.size_m=5000"],
    "nobody-asked": ["traffic.parked=silent"],
}


@pytest.mark.parametrize("edge", EDGES)
def test_edge_case_runs_hold_no_nan(edge, tmp_path):
    path = tmp_path / "edge.toml"
    path.write_text(ONE_OF_EACH, encoding="utf-8")
    result = run(path, overrides=EDGES[edge])
    directory = tmp_path / "run"
    result.save(directory)

    def refuse(constant: str) -> None:
        raise AssertionError(f"run.json holds {constant}")

    facts = json.loads((directory / "run.json").read_text(encoding="utf-8"), parse_constant=refuse)
    rounds = result.rounds
    assert (rounds["answered"] == rounds["counted"] + rounds[MISSED].sum(axis=1)).all()
    rates = result.attacks[result.attacks["success"].notna()]
    columns = ["trials", "prior", "success", "gain", "gain_low", "gain_high"]
    assert not rates[columns].isna().any().any()
    assert rates["prior"].between(0, 1).all()
    assert rates["theory"].dropna().between(0, 1).all()
    if edge == "nobody-asked":
        assert result.attacks.empty
        assert any("no targets" in warning for warning in facts["warnings"])
    else:
        assert len(rates)
    if edge in {"all-devices-lost", "one-cell"}:
        own = _guesses(result.attacks)
        assert (own["success"] <= own["prior"] + 1e-12).all()
    source = build_report(directory)
    assert ">nan" not in source
    print_summary(directory)

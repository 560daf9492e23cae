"""The claims of a run use the number of reports counted, not of devices asked."""

import math
from collections import Counter
from functools import cache, reduce

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechanisms.local import DistributedLaplace, KRandomizedResponse, SamplingPrivacy
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Shuffled
from mechanisms.privacy.rounding import rounded_up
from simulator import run
from simulator.experiment.deployment_record import CountedReports
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import print_summary

TOWN = """
scenario = {name = "town", duration_s = 900}
roads = {source = "grid", rows = 4, columns = 4, spacing_m = 150}
cells = {kind = "square", size_m = 1000}
traffic = {vehicles = 200, parked = "answer", departures = [{from_s = 0, to_s = 60, share = 1.0}]}
claims = {epsilons = [0.5, 1.0, 2.0], crowds = [20]}
campaigns = [
    {name = "first", start_s = 300, queries = 3, every_s = 120},
    {name = "second", start_s = 400, queries = 2, every_s = 100},
]
mechanisms = [
    {name = "k-ary", kind = "k_randomized_response", epsilon = 3},
    {name = "sampling", kind = "sampling_privacy", sampling = 0.3},
    {name = "laplace", kind = "distributed_laplace", epsilon = 1, devices = 250},
]
"""
"""One cell, so that a k-ary report has two values and what shuffled ones show is one number."""
NAMES = ("k-ary", "sampling", "laplace")
SHUFFLED = "aggregation={kind='shuffled'}"


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    file = tmp_path_factory.mktemp("town") / "town.toml"
    file.write_text(TOWN)
    return cache(lambda *overrides, seed=1: run(file, seed=seed, overrides=list(overrides)))


def laplace_oracle(*, epsilon, counted, devices, changed, at, reach=400):
    """Return ε at δ = 0 and δ(at) where counts are sums of shares NB(1/N, 1 − α) − NB(1/N, 1 − α), convolved.

    One device moves and so changes `changed` counts by 1. For shares of one sign the values cut off at `reach` do not
    contribute to the kept ones, and there is no cancellation.
    """
    share = stats.nbinom.pmf(np.arange(reach), 1 / devices, -math.expm1(-epsilon / changed))
    side = reduce(lambda distribution, _: np.convolve(distribution, share)[:reach], range(counted - 1), share)
    distribution = np.convolve(side, side[::-1])[reach - 41 : reach + 40]  # at −40…40
    p, q = (reduce(np.multiply.outer, [shifted] * changed).ravel() for shifted in (distribution[:-1], distribution[1:]))
    return np.log(q / p).max(), np.maximum(q - math.exp(at) * p, 0.0).sum()


@pytest.mark.parametrize("counted", [1, 14, 25, 150, 299])
@pytest.mark.parametrize("cells", [1, 4])
def test_missing_laplace_shares_weaken_the_claim_exactly(counted, cells):
    """14 and 25 of 300 devices: ε = 7.1 and 5.9, δ(1) = .94 and .88; with all devices ε = 1 and δ(1) = 0."""
    mechanism, changed = DistributedLaplace(cells=cells, epsilon=1.0, devices=300), min(2, cells)
    claim = mechanism.claim(ReleasedCounts(crowd=1, counted=counted, adjacency="move"))
    for at in (0.25, 1.0, 3.0):
        least, delta = laplace_oracle(epsilon=1.0, counted=counted, devices=300, changed=changed, at=at)
        assert claim.epsilon == pytest.approx(least, rel=1e-6)
        assert delta - 1e-12 <= claim.delta(at) <= delta + 1e-9
    if cells == 4 and counted in {14, 25}:
        assert claim.epsilon == pytest.approx({14: 7.1, 25: 5.9}[counted], abs=0.05)
        assert claim.delta(1.0) == pytest.approx({14: 0.94, 25: 0.88}[counted], abs=0.005)


def shuffled_delta(crowd, *, epsilon, at):
    """Return δ of shuffled two-valued randomized responses where all others have one value or the other."""
    bias, counts = 1 / (1 + math.exp(-epsilon)), np.arange(crowd + 1)
    worst = 0.0
    for others in (bias, 1 - bias):
        rest = stats.binom.pmf(np.arange(crowd), crowd - 1, others)
        one, other = (np.convolve(rest, [1 - yes, yes])[counts] for yes in (bias, 1 - bias))
        for p, q in ((one, other), (other, one)):
            worst = max(worst, np.maximum(p - math.exp(at) * q, 0.0).sum())
    return worst


def check_run(result):
    """Check every claim that depends on how many were counted against the run's own rounds."""
    rounds, claims = result.rounds, result.claims
    for (name, round_), rows in rounds.groupby(["mechanism", "round"]):
        crowds = {int(own["counted"].min()) for _, own in rows.groupby("campaign")}
        assert (
            set(claims[(claims["mechanism"] == name) & (claims["view"] == f"shuffled_round_{round_}")]["crowd"])
            == crowds
        )
    shuffled = claims[
        (claims["mechanism"] == "k-ary") & (claims["view"] == "shuffled_round_1") & (claims["queries"] == 1)
    ]
    for row in shuffled[shuffled["delta"] > 0].itertuples():
        assert row.delta >= shuffled_delta(row.crowd, epsilon=3.0, at=row.epsilon) * (1 - 1e-9)
        assert row.delta == KRandomizedResponse(cells=1, epsilon=3.0).claim(Shuffled(1, int(row.crowd))).delta(
            row.epsilon
        )
    counts = rounds.loc[rounds["mechanism"] == "laplace", "counted"]
    released = claims[(claims["mechanism"] == "laplace") & (claims["view"] == "released_counts")]
    always = released[released["delta"] == 0].groupby("queries")[["epsilon", "kind"]].first()
    for row in released[(released["queries"] == 1) & (released["delta"] > 0)].itertuples():
        least, delta = laplace_oracle(epsilon=1.0, counted=counts.min(), devices=250, changed=1, at=row.epsilon)
        assert always.loc[1, "epsilon"] == pytest.approx(least, rel=1e-6)
        assert delta - 1e-12 <= row.delta <= delta + 1e-9
    if 2 in always.index and counts.nunique() > 1:
        assert always.loc[2, "epsilon"] == pytest.approx(2 * always.loc[1, "epsilon"])
        assert (always.loc[1, "kind"], always.loc[2, "kind"]) == ("exact", "bound")


@pytest.mark.parametrize(("seed", "loss"), [(1, 0.3), (7, 0.9)])
def test_claims_under_loss_use_the_smallest_crowd_counted(town, seed, loss):
    check_run(town(f"channel.loss={loss}", SHUFFLED, seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["auto", "counts"])
@pytest.mark.parametrize("loss", [0.02, 0.5, 0.95])
def test_all_claims_of_a_run_follow_its_counts(town, loss, answers):
    late = "channel.latency_s={kind='exponential', mean_s=20}"
    more = ("population.participation=0.8", "channel.churn=0.1", f"population.answers='{answers}'", late)
    check_run(town(f"channel.loss={loss}", SHUFFLED, "claims.queries=[1,2]", *more, seed=2))


def test_query_without_counted_reports_weakens_no_claim(town):
    """The server is down in the first query of one campaign and in all of another."""
    campaigns = "campaigns=[{name='partly', start_s=300, queries=3, every_s=120}, {name='wholly', start_s=310}]"
    result = town(SHUFFLED, campaigns, "channel.outages=[{server='server:1', from_s=0, to_s=400}]", "channel.loss=0.2")
    shuffled = result.claims[result.claims["view"].str.startswith("shuffled")]
    for (name, round_), rows in result.rounds.groupby(["mechanism", "round"]):
        assert rows["counted"].min() == 0
        claims = shuffled[(shuffled["mechanism"] == name) & (shuffled["view"] == f"shuffled_round_{round_}")]
        assert set(claims["crowd"]) == {0, rows.loc[rows["counted"] > 0, "counted"].min()}
    nothing = shuffled[shuffled["crowd"] == 0]
    assert set(nothing["kind"]) == {"exact"}
    assert (nothing["delta"] == 0).all()
    assert nothing["epsilon"].min() == 0
    unseen = CountedReports(fewest=(0,), asked=9, uncounted=True, even=True, matched=True)
    assert unseen.claim(KRandomizedResponse(cells=1, epsilon=3.0), ReleasedCounts(1)).epsilon == 0
    assert unseen.claim(KRandomizedResponse(cells=1, epsilon=3.0), LinkedReports()).epsilon == pytest.approx(3)


def test_memoised_bits_over_queries_claim_a_crowd_of_one(town):
    """Two queries count different devices, so the crowd that a memoised mechanism's claim needs is the device alone."""
    kept = "mechanisms=[{name='kept', kind='longitudinal_unary', epsilon_permanent=4, epsilon_first=2}]"
    result = town(kept, "channel.loss=0.5", "claims.queries=[1,2]", SHUFFLED)
    rows = result.claims[result.claims["view"] == "shuffled_round_1"]
    fewest = {int(own["counted"].min()) for _, own in result.rounds.groupby("campaign")}
    assert set(rows.loc[rows["queries"] == 1, "crowd"]) == fewest
    assert set(rows.loc[rows["queries"] == 2, "crowd"]) == {1}


def released_delta(n, faces, *, received, at):
    """Return δ of both rounds' counts where n − 1 others in the cell were received twice and one device as given."""

    def add(distribution, truth, received):
        """Add a device of two outputs (SP eqs 12-15) to the distribution of the counts."""
        more = Counter()
        for counts, chance in distribution.items():
            for answers, face in zip(((0, truth), (0, 0), (1, 1)), faces, strict=True):
                seen = [(round_, answer) for round_, answer in enumerate(answers) if received[round_]]
                more[tuple(sorted((*counts, *seen)))] += chance * face
        return more

    others = reduce(lambda distribution, _: add(distribution, 1, (True, True)), range(n - 1), {(): 1.0})
    there, away = (add(others, truth, received) for truth in (1, 0))
    return max(sum(max(0.0, p[seen] - math.exp(at) * q[seen]) for seen in p) for p, q in ((there, away), (away, there)))


def test_rounds_that_counted_different_devices_are_claimed_as_linked(town):
    """By enumeration: a device counted only in round two, among others counted twice, exceeds the crowd's claim."""
    mechanism, faces = SamplingPrivacy(cells=1, sampling=0.1, blank_zero=0.01), (0.1, 0.01, 0.89)
    linked = mechanism.claim(LinkedReports())
    for n, at in ((3, 1.0), (4, 2.0)):
        ideal = mechanism.claim(ReleasedCounts(n)).delta(at)
        assert released_delta(n, faces, received=(True, True), at=at) <= ideal * (1 + 1e-9)
        assert ideal < released_delta(n, faces, received=(False, True), at=at) <= linked.delta(at)
    die = "mechanisms=[{name='die', kind='sampling_privacy', sampling=0.1, blank_zero=0.01}]"
    for paired in (False, True):
        shares = f"aggregation={{kind='secret_shared', paired={str(paired).lower()}}}"
        claims = town(die, "channel.loss=0.1", shares).claims
        rows = claims[claims["view"].str.startswith("released") & claims["delta"].gt(0)]
        assert set(rows["queries"]) == {1, 2, 3}  # one, and those of either campaign
        assert len(rows) == 3 * 24
        for row in rows.itertuples():
            released = ReleasedCounts if row.view == "released_counts" else ReleasedDifferences
            crowd = None if pd.isna(row.crowd) else row.crowd
            view = released(crowd, queries=row.queries, adjacency=row.adjacency)
            linked = mechanism.claim(LinkedReports(queries=row.queries))
            assert row.delta == (mechanism.claim(view) if paired else linked).delta(row.epsilon)
            assert paired or row.kind == "bound"


def test_claim_weakened_by_loss_gives_a_warning(town, tmp_path, capsys):
    whole = town("channel.loss=0", SHUFFLED, "mechanisms.laplace.devices=200")
    assert not any("claims are weaker" in warning for warning in whole.facts["warnings"])
    result = town("channel.loss=0.9", SHUFFLED, seed=7)
    weakened = [
        warning
        for warning in result.facts["warnings"]
        if "not all reports were counted, so its claims are weaker" in warning
    ]
    assert [warning.partition(":")[0] for warning in weakened] == [f"mechanisms.{name}" for name in NAMES]
    crowd = int(result.rounds.query("mechanism == 'k-ary'")["counted"].min())
    now, planned = (KRandomizedResponse(cells=1, epsilon=3.0).claim(Shuffled(1, n)).delta(1.0) for n in (crowd, 200))
    among = f"(among {crowd} reports instead of 200)"
    message = f"shuffled_round_1 {among}: δ(1) = {rounded_up(now)} instead of {rounded_up(planned)}"
    # The warning goes on with the query that counted the fewest, and what to do.
    fewest = result.rounds.query("mechanism == 'k-ary'").sort_values("counted").iloc[0]
    named = (
        f"query {fewest['query']} of campaign {fewest['campaign']} counted the fewest, {crowd} of {fewest['asked']}: "
    )
    assert f"{message}; {named}wait longer for reports (deadline_s)" in weakened[0]
    assert "released_differences (the rounds counted different devices): δ(1) = 0.3 instead of" in weakened[1]
    fewest = int(result.rounds.query("mechanism == 'laplace'")["counted"].min())
    assert f"released_counts (the noise of {fewest} devices only): ε = " in weakened[2]
    directory = result.save(tmp_path / "run")
    print_summary(directory)
    assert message in " ".join(capsys.readouterr().out.split())
    page = build_report(directory)
    assert message in page
    assert "Rounds counted different devices in this run" in page


def test_crowd_larger_than_counted_gives_a_warning(town):
    """Paired answers of few devices: the claims of larger crowds apply to no crowd of this run."""
    die = "mechanisms=[{name='die', kind='sampling_privacy', sampling=0.3}]"
    result = town(die, "channel.loss=0.55", "aggregation={kind='secret_shared', paired=true}", "claims.crowds=[5, 20]")
    fewest = int(result.rounds["counted"].min())
    assert 0 < fewest < 20
    weaker = [warning for warning in result.facts["warnings"] if "claims are weaker" in warning]
    now, planned = (
        SamplingPrivacy(cells=1, sampling=0.3).claim(ReleasedDifferences(n)).delta(1.0) for n in (fewest, 20)
    )
    why = f"(a query counted {fewest} devices in all, not 20 in a cell)"
    message = f"released_differences {why}: δ(1) = {rounded_up(now)} instead of"
    assert len(weaker) == 1
    assert f"{message} {rounded_up(planned)}" in weaker[0]


def test_outage_of_a_round_is_named_as_the_cause_of_weaker_claims(town):
    """A round without any received report counts too, although it reveals nothing."""
    result = town("channel.outages=[{server='server:1', from_s=290, to_s=305}]", "channel.loss=0")
    assert result.rounds["counted"].min() == 0
    lost = set(result.rounds.query("counted < asked")["mechanism"])
    weaker = [warning for warning in result.facts["warnings"] if "claims are weaker" in warning]
    named = {warning.partition(":")[0] for warning in weaker if "not all reports were counted" in warning}
    assert named == {f"mechanisms.{name}" for name in lost}


@pytest.mark.parametrize("form", ["multi", "binary"])
def test_suppressed_differences_are_claimed_as_differences_in_both_forms(form, tmp_path):
    path = tmp_path / "town.toml"
    path.write_text(TOWN.replace('kind = "sampling_privacy"', f'kind = "sampling_privacy", form = "{form}"'))
    release = {"kind": "suppress", "k": 4, "mechanisms": ["sampling"]}
    claims = run(path, overrides={"release": release}).claims
    assert set(claims[claims["release"].notna()]["view"]) == {"released_differences"}

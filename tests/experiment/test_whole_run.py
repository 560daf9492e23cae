"""Rows of a run about all its campaigns together, the marked row at δ = 0, and the readers of both."""

import itertools
import math

import numpy as np
import pytest

import crowdveil as cv
from mechanisms.local import LongitudinalUnary
from mechanisms.privacy import Claim, LinkedReports
from scenarios import ScenarioError
from simulator.experiment.claims import KEY
from simulator.pages.findings_section import first_screen
from simulator.results.claims import claims_in, with_rows_at_delta_zero
from simulator.studies.tables import Goal, leak_of

TIMED = {"name": "whole", "seed": 2, "duration_s": 200}
KEPT = {"name": "kept", "kind": "longitudinal_unary", "epsilon_permanent": 2.0, "epsilon_first": 1.999}
EXACT = {"name": "exact", "kind": "no_privacy"}
SAMPLING = {"name": "sampling", "kind": "sampling_privacy", "sampling": 0.3}
CITY = {"partition": "city", "kind": "square", "size_m": 200}
WEST = {"partition": "west", "kind": "square", "size_m": 400, "bounds": [0, 0, 400, 400]}
LAPLACE = {"kind": "laplace", "epsilon": 1.0}


def run(*campaigns, mechanisms, **sections):
    tables = {
        "scenario": TIMED,
        "roads": {"source": "grid", "rows": 3, "columns": 3, "spacing_m": 200},
        "cells": {"kind": "square", "size_m": 200},
        "traffic": {"vehicles": 60},
        "campaigns": [{"queries": 1, "round_gap_s": 10, **one} for one in campaigns],
        "mechanisms": mechanisms,
    }
    return cv.run(cv.Scenario(**(tables | sections)))


@pytest.fixture(scope="module")
def kept():
    return run({"name": "one", "start_s": 60}, {"name": "two", "start_s": 100}, mechanisms=[KEPT])


def test_campaigns_that_share_kept_bits_have_a_row_over_all_their_queries(kept):
    claims = kept.claims
    whole = claims[claims["campaigns"].notna() & claims["at_delta_zero"]].set_index("view")
    assert set(whole["campaigns"]) == {"one, two"}
    assert whole["campaign"].isna().all()
    assert (whole["adjacency"] == "move").all()
    assert whole.loc["linked_reports", ["queries", "kind"]].tolist() == [2, "exact"]
    assert 16.80 <= whole.loc["linked_reports", "epsilon"] < 17.0
    # Other views over both queries have rows too, without a section of claims.
    of_both = claims[claims["campaigns"].isna() & (claims["queries"] == 2)]
    assert {"report_round_1", "linked_reports", "released_counts"} <= set(of_both["view"])


def test_each_claim_has_one_row_at_delta_zero(kept):
    claims = kept.claims
    rows = claims.groupby([name for name in KEY if name != "epsilon"], dropna=False)["at_delta_zero"].sum()
    assert (rows == 1).all()
    assert claims.loc[claims["at_delta_zero"], "delta"].fillna(0.0).eq(0.0).all()


def test_the_summary_and_the_first_screen_begin_with_all_campaigns(kept):
    text = kept.summary()
    assert text.index("all that it sends in both campaigns, 2 queries: ε = 17.0 (exact)") < text.index(
        "its answer: ε ="
    )
    first = first_screen(kept)["sentences"][0]
    assert "links all that a device sends in both campaigns, over 2 queries" in first
    assert "ε = 17.0" in first


def test_a_run_of_one_campaign_has_no_such_rows():
    alone = run({"name": "one", "start_s": 60}, mechanisms=[KEPT])
    assert alone.claims["campaigns"].isna().all()
    assert "all campaigns" not in alone.summary()


def test_releases_of_two_partitions_at_one_moment_reveal_a_move_in_one_and_an_entry_into_the_other():
    campaigns = ({"name": "whole", "start_s": 60}, {"name": "half", "start_s": 60, "cells": "west"})
    found = run(*campaigns, mechanisms=[EXACT], cells=[CITY, WEST], release=LAPLACE)
    assert len(found.cells_of("half")) == 1
    published = found.claims[(found.claims["view"] == "published") & found.claims["at_delta_zero"]].iloc[0]
    assert (published["epsilon"], published["kind"]) == (3.0, "bound")
    assert "all that is published: ε ≤ 3 (bound)" in found.summary()
    # At two moments the sum is attained; published speeds protect no place.
    apart = run({"name": "whole", "start_s": 60}, {**campaigns[1], "start_s": 90}, mechanisms=[EXACT],
                cells=[CITY, WEST], release=LAPLACE)  # fmt: skip
    published = apart.claims[(apart.claims["view"] == "published") & apart.claims["at_delta_zero"]].iloc[0]
    assert (published["epsilon"], published["kind"]) == (3.0, "exact")
    speeds = {"name": "speeds", "start_s": 90, "statistic": "mean_speed"}
    fast = run(campaigns[0], speeds, mechanisms=[EXACT], cells=[CITY, WEST], release=LAPLACE).claims
    assert fast.loc[fast["view"] == "published", "kind"].tolist()[0] == "infinite"
    assert (fast.loc[(fast["view"] == "published") & ~fast["at_delta_zero"], "delta"] == 1.0).all()


def test_an_infinite_claim_stays_infinite_where_delta_is_no_longer_a_number():
    sections = {"claims": {"epsilons": [1.0, 4.0, 50.0], "crowds": [5000]}, "population": {"outside": 6000}}
    table = run({"name": "one", "start_s": 60}, mechanisms=[SAMPLING], **sections).claims
    differences = table[(table["view"] == "released_differences") & (table["adjacency"] == "enter_leave")].assign(
        key="k"
    )
    assert (differences.loc[differences["epsilon"] == 1.0, "delta"] == 0.0).all()
    for shown in (differences, differences.drop(columns=["at_delta_zero", "campaigns"])):  # of an earlier version
        assert leak_of(claims_in(shown), Goal("released", 1.0, adjacency="enter_leave"), 5000) == (math.inf, 0.0)
    (claim,) = claims_in(differences)
    assert (claim.epsilon, claim.kind) == (math.inf, "infinite")


def test_tables_of_earlier_versions_get_the_row_that_they_wrote_first():
    claims = run({"name": "one", "start_s": 60}, mechanisms=[KEPT, SAMPLING]).claims
    before = claims.drop(columns=["at_delta_zero", "campaigns"])
    assert with_rows_at_delta_zero(before)["at_delta_zero"].tolist() == claims["at_delta_zero"].tolist()


def test_a_bound_without_a_finite_epsilon_is_not_said_to_be_proved():
    lossy = run({"name": "one", "start_s": 60}, mechanisms=[SAMPLING], channel={"loss": 0.2}, traffic={"vehicles": 400})
    rows = lossy.claims[(lossy.claims["view"] == "released_counts") & lossy.claims["at_delta_zero"]]
    assert set(rows["reason"]) == {"rounds_differ"}
    assert np.isinf(rows["epsilon"]).all()
    assert set(rows["kind"]) == {"bound"}
    linked = lossy.claims[(lossy.claims["view"] == "linked_reports") & lossy.claims["at_delta_zero"]]
    assert set(linked["kind"]) == {"infinite"}
    open_claim = Claim.bound(math.inf, lambda _: 0.1, "A bound.")
    assert (open_claim.kind, Claim.infinite(lambda _: 0.1, "Proved.").kind) == ("bound", "infinite")
    assert (open_claim.of_move().kind, open_claim.of_move().epsilon) == ("bound", math.inf)


ONE = {"partition": "one", "kind": "square", "size_m": 1000}
BINARY = {"name": "binary", "kind": "k_randomized_response", "epsilon": 0.7}
BUSES = {"name": "buses", "operator": "A", "start_s": 60, "queries": 2, "every_s": 60}
ROADS = {"name": "roads", "operator": "B", "start_s": 75, "queries": 2, "every_s": 60, "cells": "west"}


def limited(*mechanisms, campaigns=(BUSES, ROADS), cells=(ONE, WEST), ledger, **sections):
    budgets = [{"period": "run", "exceeded": "skip", **ledger}]
    return run(*campaigns, mechanisms=list(mechanisms), cells=list(cells), ledger=budgets, **sections)


def exact_delta(queries, epsilon):
    """The greatest δ over all routes of a device that answers binary queries, each with odds e^0.7 for the truth."""
    right = 1 / (1 + math.exp(-0.7))
    answers = list(itertools.product([0, 1], repeat=queries))
    laws = [
        [math.prod(right if a == t else 1 - right for a, t in zip(y, x, strict=True)) for y in answers] for x in answers
    ]
    pairs = itertools.permutations(map(np.array, laws), 2)
    return max((np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in pairs), default=0.0)


@pytest.mark.parametrize(("epsilon", "delta", "allowed"), [(1.2, 0.1, 2), (1.4, 0.0, 2), (2.5, 0.02, 3), (0.6, 0.0, 0)])
def test_skipping_keeps_the_loss_of_a_period_below_the_ledger(epsilon, delta, allowed):
    found = limited(BINARY, EXACT, ledger={"epsilon": epsilon, "delta": delta, "mechanisms": ["binary"]})
    ledger = found.ledger
    assert ledger["outcome"].tolist() == ["asked"] * allowed + ["skipped"] * (4 - allowed)
    assert ledger["campaign"].tolist() == ["buses", "roads"] * 2
    assert exact_delta(allowed, epsilon) <= delta + 1e-12
    assert exact_delta(allowed + 1, epsilon) > delta  # the bound is so near that no query is skipped without need
    assert (ledger["spent"] <= epsilon).all()
    assert ledger["spent_by_query"].sum() == pytest.approx(ledger["spent"].max())
    assert (ledger.loc[ledger["outcome"] == "skipped", "reached"] > epsilon).all()
    for number, spent in enumerate(ledger["spent"][:allowed], start=1):
        assert exact_delta(number, spent) <= delta + 1e-9
        assert exact_delta(number, spent - 0.02) > delta
    # The claims are about the queries asked; what is not limited is asked at all.
    assert found.rounds.groupby("mechanism")["campaign"].size().to_dict() == {"exact": 4} | (
        {"binary": allowed} if allowed else {}
    )
    whole = found.claims[found.claims["campaigns"].notna() & (found.claims["mechanism"] == "binary")]
    assert set(whole.loc[whole["view"] == "linked_reports", "queries"]) == ({allowed} if allowed else set())
    assert sum("binary is not asked at" in text for text in found.facts["warnings"]) == (2 if allowed < 3 else 1)


def test_periods_begin_at_midnight_and_have_a_budget_each():
    found = limited(BINARY, ledger={"epsilon": 1.4, "period": "hour"}, scenario={**TIMED, "start": "00:58:30"})
    assert found.ledger["period"].tolist() == [1, 1, 2, 2]
    assert found.ledger["time"].tolist() == ["00:59:30", "00:59:45", "01:00:30", "01:00:45"]
    assert found.ledger["spent"].tolist() == pytest.approx([0.7, 1.4, 0.7, 1.4])
    assert "ledger" not in " ".join(found.facts["warnings"])


def test_mechanisms_without_an_epsilon_are_limited_by_their_delta_and_others_are_not_asked():
    found = limited(SAMPLING, EXACT, ledger={"epsilon": 1.0, "delta": 0.6}).ledger.set_index("mechanism")
    assert found.loc["sampling", "outcome"].tolist() == ["asked", "asked", "skipped", "skipped"]  # 1 − .7² = .51
    assert np.isinf(found.loc["exact", "reached"]).all()
    assert set(found.loc["exact", "outcome"]) == {"skipped"}


def test_a_ledger_knows_kept_bits_and_releases():
    kept = limited(KEPT, campaigns=(BUSES, {**ROADS, "cells": "one"}), ledger={"epsilon": 1e3}).ledger
    mechanism = LongitudinalUnary(cells=1, epsilon_permanent=2.0, epsilon_first=1.999)
    assert kept["reached"].tolist() == [mechanism.claim(LinkedReports(n)).epsilon for n in (1, 2, 3, 4)]
    released = limited(EXACT, release=LAPLACE, ledger={"epsilon": 2.0, "view": "published"})
    assert released.ledger["outcome"].tolist() == ["asked", "asked", "skipped", "skipped"]
    assert released.ledger["spent"].tolist() == [1.0, 2.0, 2.0, 2.0]
    assert released.record.queries == 2


def test_a_run_that_exceeds_a_ledger_is_refused_before_it_starts():
    with pytest.raises(ScenarioError) as refused:
        limited(BINARY, ledger={"epsilon": 1.5, "exceeded": "refuse"})
    (fault,) = refused.value.faults
    assert fault.path == "ledger.ledger.epsilon"
    assert fault.rule.startswith(
        "is exceeded: query 2 of campaign buses brings mechanisms.binary to ε = 2.1 at δ = 0 in period 1"
    )
    with pytest.raises(ScenarioError, match="ledger: must allow some query"):
        limited(BINARY, ledger={"epsilon": 0.6})
    absorbing = {**BUSES, "budget": {"kind": "absorption", "window": 2}}
    with pytest.raises(ScenarioError, match='exceeded: must be "refuse" beside a budget'):
        limited(BINARY, campaigns=(absorbing,), ledger={"epsilon": 1.0})
    with pytest.raises(ScenarioError, match=r"campaigns\[0\]: there is no such campaign"):
        limited(BINARY, ledger={"epsilon": 1.0, "campaigns": ["bus"]})

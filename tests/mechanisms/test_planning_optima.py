"""Plans are optimal, and "none" means none: both by scanning the alternatives."""

import math

import numpy as np
import pytest
from mechanism_statistics import planned_truth

from mechanisms import local
from mechanisms.central import SampleThenSuppress
from mechanisms.planning import Target, plan
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report

SLACK = 1.002


def only(target, name):
    [made] = [one for one in plan(target, [name], claims=False).plans if one.name == name]
    return made


def scan(make, values, claimed, target):
    """The least error of any of these parameters that meet the target."""
    errors = [math.inf]
    for value in values:
        mechanism = make(value)
        if claimed(mechanism).delta(target.epsilon) <= target.delta:
            errors.append(float(mechanism.std_error(planned_truth(target))[0]))
    return min(errors)


def linked(mechanism):
    return mechanism.claim(LinkedReports())


@pytest.mark.parametrize(("epsilon", "delta", "occupancy"), [(1.0, 0.0, 5), (0.5, 0.01, 200), (4.0, 0.0, 900)])
def test_no_other_coins_have_less_error(epsilon, delta, occupancy):
    target = Target(cells=6, population=1000, occupancy=occupancy, epsilon=epsilon, delta=delta)
    coins = [
        (first, second)
        for first in np.concatenate([np.geomspace(1e-3, 0.5, 60), 1 - np.geomspace(1e-3, 0.5, 60)])
        for second in np.concatenate([[0.0], np.geomspace(1e-5, 0.5, 40), 1 - np.geomspace(1e-5, 0.5, 40)])
    ]
    best = scan(lambda c: local.RandomizedResponse(cells=6, first_coin=c[0], second_coin=c[1]), coins, linked, target)
    made = only(target, "randomized_response")
    assert made.std_error <= best * SLACK
    assert best <= made.std_error * 1.1, "the scan is too coarse to say anything"


@pytest.mark.parametrize(("cells", "population"), [(3, 2000), (40, 2000), (1, 10**6), (300, 10**7)])
def test_no_other_refresh_has_less_error(cells, population):
    target = Target(cells=cells, population=population, occupancy=20, epsilon=2.0)
    made = only(target, "sampling_privacy_refreshed")
    best = math.inf
    for share in np.linspace(0.05, 0.95, 19):
        for refresh in np.linspace(0.05, 1.0, 20):
            # ln(1 + π_s/m) = ε at the least m, solved for π_s.
            pairs = [share * refresh * (1 - share) / cells, share * ((1 - refresh) + refresh * share)]
            odds = math.expm1(2.0) * min(pairs)
            sampling = odds / (1 + odds)
            mechanism = local.SamplingPrivacy(
                cells=cells, sampling=sampling, blank_zero=share * (1 - sampling), refresh=refresh
            )
            assert linked(mechanism).epsilon == pytest.approx(2.0)
            best = min(best, float(mechanism.std_error(planned_truth(target))[0]))
    assert made.meets
    assert made.std_error <= best * SLACK


@pytest.mark.slow
def test_no_other_threshold_has_less_error():
    target = Target(
        cells=10, population=1000, occupancy=60, view="released", epsilon=1.0, delta=1e-4, adjacency="enter_leave"
    )
    best = math.inf
    for k in range(1, 61):
        for sampling in np.linspace(0.02, 0.98, 97):
            release = SampleThenSuppress(k=k, sampling=sampling)
            error = float(release.std_error(np.array([60]))[0])
            if error < best and release.claim(crowd=None).delta(1.0) <= 1e-4:
                best = error
    made = only(target, "sampling_privacy_suppressed")
    assert made.std_error <= best * SLACK
    assert only(target, "sample_then_suppress").std_error == pytest.approx(made.std_error, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_no_other_subset_or_buckets_have_less_error(delta):
    target = Target(cells=12, population=5000, epsilon=1.5, delta=delta)
    budgets = np.linspace(0.5, 6.0, 111)
    subsets = [(size, epsilon) for size in range(1, 13) for epsilon in budgets]
    best = scan(lambda c: local.SubsetSelection(cells=12, epsilon=c[1], size=c[0]), subsets, linked, target)
    assert only(target, "subset_selection").std_error <= best * SLACK
    hashes = [(buckets, epsilon) for buckets in (2, 3, 4, 5, 6, 8, 12, 20, 50) for epsilon in budgets]
    best = scan(lambda c: local.LocalHashing(cells=12, epsilon=c[1], buckets=c[0]), hashes, linked, target)
    assert only(target, "olh").std_error <= best * SLACK


def test_no_other_histogram_threshold_has_less_error():
    target = Target(cells=1, population=74247, occupancy=148, epsilon=2.18, delta=1e-3)
    pairs = [(theta, epsilon) for theta in np.linspace(0.0, 1.0, 41) for epsilon in np.geomspace(1.0, 12.0, 120)]
    best = scan(lambda c: local.ThresholdHistogram(cells=1, epsilon=c[1], threshold=c[0]), pairs, linked, target)
    made = only(target, "the")
    assert made.std_error <= best * SLACK
    assert made.std_error < 103.3


@pytest.mark.parametrize(
    ("target", "most"),
    [
        # Large δ: many buckets, few distinguishing reports.
        (Target(cells=20, population=531931, occupancy=6, epsilon=1.362, delta=0.02), 10**9),
        # Counts are observed: the best number of buckets differs from that of one report.
        (Target(cells=7, population=22243, occupancy=894, view="released", epsilon=5.264), 500),
        (Target(cells=3, population=39281, occupancy=609, epsilon=0.336, delta=1e-3), 10**6),
    ],
)
def test_no_other_number_of_buckets_has_less_error(target, most):
    hashes = sorted({round(g) for g in np.geomspace(2, most, 25)} | set(range(2, 12)))

    def target_claim(mechanism):
        [view] = target.views(rounds=1, differences=False)
        return mechanism.claim(view)

    pairs = [(buckets, epsilon) for buckets in hashes for epsilon in np.geomspace(target.epsilon, 20.0, 80)]
    best = scan(
        lambda c: local.LocalHashing(cells=target.cells, epsilon=c[1], buckets=c[0]), pairs, target_claim, target
    )
    assert only(target, "olh").std_error <= best * SLACK


def test_no_other_blanks_have_less_error_for_released_counts():
    target = Target(
        cells=5, population=300, occupancy=8, view="released_counts", epsilon=1.0, delta=0.05, adjacency="enter_leave"
    )
    candidates = [(s, z) for s in np.linspace(0.02, 0.98, 65) for z in np.linspace(0.0, 0.999, 20)]
    best = scan(
        lambda d: local.SamplingPrivacy(cells=5, sampling=d[0], blank_zero=d[1] * (1 - d[0])),
        candidates,
        lambda m: m.claim(ReleasedCounts(8)),
        target,
    )
    assert only(target, "sampling_privacy").std_error <= best * SLACK
    target = Target(cells=5, population=300, occupancy=8, view="report", epsilon=1.0, published=False)
    best = scan(
        lambda d: local.BinarySamplingPrivacy(cells=5, sampling=d[0], blank_zero=d[1] * (1 - d[0])),
        candidates,
        lambda m: m.claim(Report(2)),
        target,
    )
    assert only(target, "sampling_privacy_binary").std_error <= best * SLACK


def test_sampling_privacy_plans_in_closed_form():
    linked_delta = only(Target(cells=50, population=10**6, epsilon=1.0, delta=1e-3), "sampling_privacy")
    assert linked_delta.parameters["sampling"] == pytest.approx(1e-3, rel=1e-6)
    over = only(Target(cells=50, population=10**6, epsilon=1.0, delta=1e-3, queries=10), "sampling_privacy")
    assert over.parameters["sampling"] == pytest.approx(-math.expm1(math.log1p(-1e-3) / 10), rel=1e-3)
    alone = Target(cells=50, population=10**6, view="report_round_2", epsilon=1.0, published=False)
    report = only(alone, "sampling_privacy")
    odds = math.expm1(1.0) / 51
    assert report.parameters["sampling"] == pytest.approx(odds / (1 + odds), rel=1e-5)
    error = only(Target(cells=50, population=10**6, occupancy=90, error=9.0), "sampling_privacy")
    assert error.parameters["sampling"] == pytest.approx(90 / (90 + 81), rel=1e-5)


@pytest.mark.parametrize("view", ["linked_reports", "released", "released_counts"])
def test_no_sampling_meets_a_target_without_plan(view):
    target = Target(cells=4, population=500, occupancy=30, view=view, epsilon=3.0)
    made = only(target, "sampling_privacy")
    assert not made.meets
    assert "π_s" in made.reason
    seen = {
        "linked_reports": LinkedReports(),
        "released": ReleasedDifferences(30),
        "released_counts": ReleasedCounts(30),
    }[view]
    for sampling in np.geomspace(1e-9, 1.0, 60):
        assert math.isinf(local.SamplingPrivacy(cells=4, sampling=sampling).claim(seen).epsilon)

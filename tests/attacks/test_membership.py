"""Membership in a series: laws against enumeration and releases, success against theory, ε against claims."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare
from synthetic_campaigns import CELLS, FAMILY, SAMPLING, agrees, attack, campaign, evaluate_attacks, run_attacks
from verification import compared

from mechanisms.central import LaplaceCounts, LocalRecoding, SampleThenSuppress, ThresholdCounts
from mechanisms.inference.evidence import Evidence, epsilon_of_trials, log_ratio
from mechanisms.inference.known_others import LastDevice, OwnPart
from mechanisms.local import HadamardResponse, KRandomizedResponse, LongitudinalUnary, NoPrivacy, SymmetricUnary
from mechanisms.privacy.integer_noise import IntegerNoise
from simulator.aggregation.servers import Trusted
from simulator.streams import Streams

EXACT = NoPrivacy(cells=CELLS)


def discrete_laplace(epsilon, reach=60):
    """Masses of a count with and without the device."""
    masses = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
    return np.append(0.0, masses) / masses.sum(), np.append(masses, 0.0) / masses.sum()


def published(release, *, queries=1, vehicles=300, seed=1):
    """A campaign of true cells whose counts are published through a release."""
    rng, record = np.random.default_rng(seed), campaign(Trusted(), EXACT, vehicles=vehicles, queries=queries, seed=seed)
    shown = [replace(one, values=release.publish(one.occupancy[1:], rng=rng).count) for one in record.queries]
    return replace(record, queries=tuple(shown), noised="a release", release=release)


def scores(record, *, coalition=(), seed=3, **keys):
    """Rows of one attack by metric; the decisions at even odds are under None."""
    keys = {"targets": 50, "knows": "others", "negatives": 100_000, "learned": None, **keys}
    rows, notes = evaluate_attacks(record, attack("membership", coalition, **keys), seed=seed)
    assert not notes
    return {row.metric: row for row in rows}


@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_evidence_of_a_series_equals_enumeration(queries, epsilon):
    p, q = discrete_laplace(epsilon, reach=12)
    outputs = list(itertools.product(range(len(p)), repeat=queries))
    joint = [np.array([math.prod(law[i] for i in output) for output in outputs]) for law in (p, q)]
    found = Evidence.of_series([((p, q), queries)])
    for share in (0.5, 0.1):
        best = np.maximum(share * joint[0], (1 - share) * joint[1]).sum()
        assert found.success(share) == pytest.approx(best, abs=2e-4)
    assert found.advantage == pytest.approx(np.maximum(joint[0] - joint[1], 0).sum(), abs=2e-4)
    order = np.argsort(np.round(log_ratio(*joint), 9), kind="stable")
    evidence = np.round(log_ratio(*joint), 9)[order]
    below = np.cumsum(joint[1][order])[np.searchsorted(evidence, evidence, side="right") - 1]
    equal = np.array([joint[1][order][evidence == value].sum() for value in evidence])
    assert found.area == pytest.approx(joint[0][order] @ (below - equal / 2), abs=2e-4)


def test_trips_under_laplace_noise_are_recognised_as_published():
    """Success of Houssiau, Rocher and de Montjoye's attack on flows with noise of scale 1/0.66, by number of trips."""
    edges = np.linspace(-40.0, 41.0, 8_002)

    def law(mean):
        below = np.where(edges < mean, 0.5 * np.exp(0.66 * (edges - mean)), 1 - 0.5 * np.exp(-0.66 * (edges - mean)))
        return np.diff(below) / np.diff(below).sum()

    for trips, success in ((1, 0.6405), (2, 0.6563), (5, 0.7535), (10, 0.8295), (32, 0.9552)):
        assert Evidence.of_series([((law(1.0), law(0.0)), trips)]).success(0.5) == pytest.approx(success, abs=2e-4)


@pytest.mark.parametrize(
    "release",
    [
        LaplaceCounts(epsilon=0.7),
        LaplaceCounts(epsilon=0.7, sampling=0.4),
        SampleThenSuppress(k=4, sampling=0.4),
        ThresholdCounts(k=12, epsilon=0.7),
    ],
)
def test_published_numbers_have_the_law_and_success_is_optimal(release):
    record = published(release)
    rows = scores(record)
    assert agrees(rows[None])
    assert rows[None].epsilon_lower <= release.claim(crowd=None).epsilon
    compared("bounds", rows[None].epsilon_lower, 0.0, allowed=release.claim(crowd=None).epsilon)
    for metric in ("auc", "advantage", "true_positives"):
        assert rows[metric].value == pytest.approx(rows[metric].theory, abs=0.02)
    # What is really published of a cell with 10 devices has the law from which the trials are drawn.
    sampling = getattr(release, "sampling", 1.0)
    noise = getattr(release, "noise", release)
    noisy = isinstance(noise, LaplaceCounts)
    masses = IntegerNoise("discrete_laplace", 1 / noise.sample_epsilon).masses(1) if noisy else None
    drawn = np.rint(release.publish(np.full(50_000, 10), rng=np.random.default_rng(2)).count * sampling).astype(int)
    k = getattr(release, "k", None)
    part = OwnPart.of_bits(sampling, 0.0, None, 1)
    last = LastDevice(np.zeros(1, int), np.array([9]), np.zeros(1, int), sampling, 0.0, part, [part],
                      None if k is None else np.array([k]), masses)  # fmt: skip
    first, _ = last.law(0)
    law, _ = last.pair(0)
    counts = np.bincount(last.shown(0, drawn) - first, minlength=len(law))[: len(law)]
    likely = law * len(drawn) > 10
    assert chisquare(np.append(counts[likely], counts[~likely].sum()) + 1e-9,
                     np.append(law[likely], max(law[~likely].sum(), 1e-12)) / law.sum() * counts.sum(), sum_check=False
                     ).pvalue > FAMILY  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("epsilon", "queries"), [(0.5, 1), (1.0, 1), (3.0, 1), (1.0, 3), (0.1, 24)])
def test_epsilon_from_below_reaches_the_claim_and_never_exceeds_it(epsilon, queries, seed):
    release = LaplaceCounts(epsilon=epsilon)
    rows = scores(published(release, queries=queries, seed=seed), seed=seed)
    assert agrees(rows[None])
    claim = release.claim(crowd=None, queries=queries)
    assert 0.9 * epsilon * queries * (queries <= 3) <= rows[None].epsilon_lower <= claim.epsilon
    compared("bounds", rows[None].epsilon_lower, 0.0, allowed=claim.epsilon)
    assert rows["epsilon_at_delta_1e-5"].value <= claim.epsilon_at(1e-5)
    alpha = 1e-3
    bounds = math.exp(claim.epsilon) * alpha, 1 - math.exp(-claim.epsilon) * (1 - alpha)
    assert rows["true_positives"].theory <= min(bounds) + 1e-4
    assert rows["advantage"].theory <= math.tanh(claim.epsilon / 2) + 1e-4
    for row in rows.values():
        assert row.success is None or row.theory is None or row.theory >= row.prior - 1e-9


@pytest.mark.parametrize(
    "mechanism",
    [KRandomizedResponse(cells=CELLS, epsilon=2.0), SymmetricUnary(cells=CELLS, epsilon=2.0),
     HadamardResponse(cells=CELLS, epsilon=2.0), SAMPLING],
)  # fmt: skip
def test_sums_of_reports_are_attacked_at_the_optimum(mechanism):
    record = campaign(Trusted(), mechanism, vehicles=60, queries=4)
    rows, reading = scores(record), scores(record, coalition=["server:1"])
    assert agrees(rows[None])
    assert agrees(reading[None])
    assert rows[None].theory <= reading[None].theory
    if not isinstance(mechanism, type(SAMPLING)):
        assert reading[None].epsilon_lower <= 4 * 2.0


def test_exact_counts_reveal_all_and_suppressed_ones_nothing():
    rows = scores(campaign(Trusted(), EXACT, vehicles=60))
    assert [rows[metric].value for metric in ("auc", "advantage", "true_positives", "published")] == [1.0] * 4
    rows = scores(published(SampleThenSuppress(k=1000, sampling=0.5)))
    assert rows["auc"].value == 0.5
    assert rows[None].theory == pytest.approx(0.5, abs=1e-12)
    assert rows[None].epsilon_lower == 0.0
    recoded = published(LocalRecoding(k=3, places=np.zeros((CELLS, 2))))
    found, (note,) = evaluate_attacks(recoded, attack("membership", []))
    assert not found
    assert "not a count but a release" in note
    assert scores(recoded, coalition=["server:1"])["auc"].value == 1.0
    kept = campaign(Trusted(), LongitudinalUnary(cells=CELLS, epsilon_permanent=2.0, epsilon_first=1.0), vehicles=60)
    found, (note,) = evaluate_attacks(kept, attack("membership", []))
    assert not found
    assert "keep coins" in note


def test_the_distribution_of_others_is_worth_less_and_a_classifier_is_no_better_than_the_optimum():
    alone = scores(published(LaplaceCounts(epsilon=0.8), vehicles=1), knows="distribution", negatives=1_000)
    assert alone[None].success > 0.5
    record = published(LaplaceCounts(epsilon=0.8), queries=6, vehicles=100)
    known = scores(record, learned="logistic", targets=2, negatives=10_000)
    guessed = scores(record, knows="distribution", learned="boosting", targets=2, negatives=10_000)
    assert 0.6 < known["learned_auc"].value < known["auc"].theory + 0.01
    assert 0.5 < guessed["learned_auc"].value < known["auc"].theory
    assert 0.5 < guessed["auc"].value < known["auc"].theory
    assert known["auc_of_victims_5"].value <= known["auc_of_victims_50"].value <= known["auc_of_victims_95"].value


def test_two_publications_of_one_moment_are_more_evidence():
    """Also if they are about different partitions: the evidence of both adds up."""
    fine = published(LaplaceCounts(epsilon=0.5))
    halves = np.concatenate([[0], (np.arange(CELLS) // 2) + 1])
    coarse_cells = NoPrivacy(cells=CELLS // 2)
    rng, merged = np.random.default_rng(4), []
    for query in fine.queries:
        occupancy = np.bincount(halves, query.occupancy).astype(np.int64)
        shown = fine.release.publish(occupancy[1:], rng=rng).count
        truth = halves[query.truth].astype(np.int32)
        recorded = replace(query.recorded, reports=[truth])
        merged.append(
            replace(query, recorded=recorded, truth=truth, occupancy=occupancy, values=shown, counts=occupancy[None])
        )
    coarse = replace(fine, mechanism=coarse_cells, queries=tuple(merged))
    keys = {"knows": "others", "negatives": 20_000, "learned": None, "together": True, "targets": 50}
    records = {("fine", "m"): fine, ("coarse", "m"): coarse}
    rows = run_attacks([attack("membership", [], **keys)], records, streams=Streams(1)).findings
    row = next(row for row in rows if row.metric is None)
    assert row.theory == pytest.approx(Evidence.of_series([(discrete_laplace(0.5), 2)]).success(0.5), abs=2e-4)
    assert agrees(row)


def test_epsilon_of_trials_is_wrong_with_its_probability_only():
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(300):
        counted, left_out = (np.where(rng.random(400) < yes, 1.0, -1.0) for yes in (0.6, 0.4))
        wrong += epsilon_of_trials(counted, left_out, alpha=0.1) > math.log(1.5)
    assert wrong <= 0.1 * 300


def test_rows_with_other_noise_or_without_a_published_number_have_other_laws():
    """Laws are kept by the key of a row, over all queries of a series."""
    part, one = OwnPart.of_bits(0.4, 0.0, None, 1), np.ones(1, dtype=np.int64)
    given = [(one, None), (one, (0.2, 0.6, 0.2)), (one, (0.1, 0.8, 0.1)), (None, None)]
    rows = [LastDevice(sums, 3 * one, one, 0.4, 0.0, part, [part], None, noise) for sums, noise in given]
    assert len({row.key(0) for row in rows}) == len({row.pair(0)[0].tobytes() for row in rows}) == 4

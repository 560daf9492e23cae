"""Trade-off curves, Gaussian DP, zCDP and privacy loss distributions against closed forms and enumeration."""

import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.special import logsumexp, ndtr, ndtri

from mechanisms.local import KRandomizedResponse, NoPrivacy, ParameterError, SymmetricUnary
from mechanisms.privacy import Claim, ConstantDelta, LinkedReports, ReleasedCounts, Report, Shuffled, pair_delta
from mechanisms.privacy.integer_noise import IntegerNoise
from mechanisms.privacy.laplace_noise import SampledLaplaceDelta
from mechanisms.privacy.published_sums import known_counts_claim
from mechanisms.privacy.report_claims import WorstPairDelta, mirror_claim
from mechanisms.privacy.standard_forms import (
    attack_advantage,
    claim_of_privacy_loss_distribution,
    concentrated_rho,
    gaussian_mu,
    to_privacy_loss_distribution,
    trade_off,
)

RATES = (0.0, 1e-6, 0.01, 0.1, 0.3, 0.5, 0.8, 1.0)
EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)


def responses(epsilon, queries=1):
    return mirror_claim(distinguishing=1 / (1 + math.exp(-epsilon)), epsilon=epsilon, queries=queries, source="coins")


def laplace(epsilon):
    return Claim.exact(epsilon, SampledLaplaceDelta(epsilon), "Laplace noise")


def gaussian_delta(mu, epsilon):
    return float(ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))


def noisy(sigma, *, queries=1, servers=1, two=False):
    view = ReleasedCounts(1, queries, colluding=0, servers=servers)
    return known_counts_claim(view, IntegerNoise("discrete_gaussian", sigma), two=two)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_randomized_response_and_laplace_noise_have_their_closed_forms(epsilon):
    e = math.exp(epsilon)
    for alpha in RATES:
        coins = max(1 - e * alpha, (1 - alpha) / e, 0.0)
        assert trade_off(responses(epsilon), alpha) == pytest.approx(coins, abs=1e-11)
        # Dong, Roth and Su 2022: f of Laplace noise.
        low, high = 0.5 / e, 0.5
        curve = 1 - e * alpha if alpha < low else 0.25 / (e * alpha) if alpha <= high else (1 - alpha) / e
        assert trade_off(laplace(epsilon), alpha) == pytest.approx(curve, abs=1e-11)
    forms = [
        (responses(epsilon), -2 * ndtri(1 / (1 + e)), epsilon * math.tanh(epsilon / 2)),
        (laplace(epsilon), 2 * ndtri(1 - 0.5 / math.sqrt(e)), epsilon + math.expm1(-epsilon)),
    ]
    for claim, mu, rho in forms:
        assert mu <= gaussian_mu(claim) <= mu * (1 + 1e-6)
        assert rho * (1 - 1e-12) <= concentrated_rho(claim) <= rho * (1 + 1e-6)
    assert rho <= epsilon**2 / 2
    assert concentrated_rho(responses(epsilon, 7)) == pytest.approx(7 * forms[0][2], rel=2e-6)


def test_gaussian_noise_has_the_trade_off_of_its_mu():
    claim = Claim.exact(math.inf, lambda epsilon: gaussian_delta(0.8, epsilon) if epsilon < 300 else 0.0, "noise")
    for alpha in RATES[1:-1]:
        assert trade_off(claim, alpha) == pytest.approx(ndtr(ndtri(1 - alpha) - 0.8), abs=1e-9)
        assert attack_advantage(claim, alpha) <= attack_advantage(claim) == claim.delta(0.0)


def random_laws(rng, truths, outputs):
    return rng.dirichlet(np.ones(outputs), truths)


def pairs_of(laws):
    return list(itertools.permutations(laws, 2))


@pytest.mark.parametrize(("truths", "outputs"), [(2, 2), (2, 5), (3, 4)])
def test_random_laws_against_the_best_tests_and_renyi_divergences(truths, outputs):
    pairs = pairs_of(random_laws(np.random.default_rng(outputs), truths, outputs))
    claim = WorstPairDelta.of(*pairs).claim(1, "random laws")
    corners, mus, rhos = [], [], []
    orders = 1 + np.append(np.geomspace(1e-5, 1, 200), np.linspace(1, 60, 1000))
    for p, q in pairs:
        likely = np.argsort(p / q)[::-1]  # the best test alarms at the outputs of the greatest likelihood ratio
        alarms, missed = np.cumsum(np.append(0, q[likely])), 1 - np.cumsum(np.append(0, p[likely]))
        corners += zip(alarms, missed, strict=True)
        mus.append(float((ndtri(1 - alarms[1:-1]) - ndtri(missed[1:-1])).max()))
        moments = logsumexp(np.multiply.outer(orders - 1, np.log(p / q)), b=p, axis=1)
        rhos.append(float((moments / (orders - 1) / orders).max()))
    for alpha in RATES:
        hull = min(
            b + (d - b) * (alpha - a) / (c - a) if c > a else min(b, d)
            for (a, b), (c, d) in itertools.product(corners, repeat=2)
            if a <= alpha <= c
        )
        assert trade_off(claim, alpha) == pytest.approx(max(hull, 0.0), abs=1e-8)
        assert trade_off(claim.listed(*EPSILONS), alpha) <= hull + 1e-12
    assert max(mus) <= gaussian_mu(claim) <= max(mus) * (1 + 1e-6)
    assert max(rhos) * (1 - 1e-9) <= concentrated_rho(claim) <= max(rhos) * (1 + 1e-4)
    # The curve alone tells less: a pair that dominates both directions.
    from_curve = Claim.exact(claim.epsilon, claim.delta, "the same curve")
    assert gaussian_mu(from_curve) == pytest.approx(max(mus), rel=1e-3)
    assert concentrated_rho(from_curve) >= max(rhos) * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 4.0, 18.9])
def test_discrete_gaussian_noise(sigma):
    assert concentrated_rho(noisy(sigma, queries=10, two=True)) == pytest.approx(20 / (2 * sigma**2), rel=1e-9)
    mu = gaussian_mu(noisy(sigma))
    assert mu >= 1 / sigma
    assert mu <= (1 + 0.05 / sigma**2) / sigma or sigma < 1
    values = np.arange(-round(40 * sigma) - 2, round(40 * sigma) + 3)
    masses = np.exp(-((values / sigma) ** 2) / 2)
    tails = np.cumsum(masses[::-1])[::-1] / masses.sum()
    places = ndtri(tails[(tails > 1e-250) & (values >= 0)])
    assert mu >= -np.diff(places).min() - 1e-12
    assert gaussian_mu(noisy(sigma, queries=9, two=True)) == pytest.approx(mu * math.sqrt(18), rel=1e-12)


def test_noise_of_several_servers_and_of_composed_and_shuffled_reports_is_no_less_than_claimed():
    mechanism = KRandomizedResponse(cells=4, epsilon=1.5)
    cases = [
        (noisy(2.0, servers=4), 1e-29),
        (noisy(1.2, servers=3, two=True), 1e-29),
        (noisy(3.0, queries=6), 1e-28),
        (mechanism.claim(LinkedReports(5)), 0.0),
        (mechanism.claim(Shuffled(1, 20, 4)), 0.0),
        (mirror_claim(distinguishing=0.6, epsilon=0.5, queries=200, source="coins"), 0.0),
        (WorstPairDelta.of(((0.2, 0.8), (0.3, 0.7))).claim(40, "coins"), 0.0),
        (SymmetricUnary(cells=1, epsilon=1.0).claim(LinkedReports(3)), 0.0),
    ]
    for claim, left_out in cases:
        mu, rho = gaussian_mu(claim), concentrated_rho(claim)
        assert math.isfinite(mu)
        assert math.isfinite(rho)
        for epsilon in EPSILONS:
            assert claim.delta(epsilon) <= gaussian_delta(mu, epsilon) * (1 + 1e-3) + left_out
            # Bun and Steinke 2016, lemma 3.6.
            assert claim.delta(epsilon) <= math.exp(-(max(epsilon - rho, 0.0) ** 2) / (4 * rho)) + left_out
    # Of noise below σ = 2 one server's counts.
    assert [concentrated_rho(claim) for claim, _ in cases[:2]] == pytest.approx([1 / 32, 1 / 1.44], rel=1e-9)
    masses = np.array(IntegerNoise("discrete_gaussian", 2.0).masses(4))
    p, q = np.append(masses, 0.0), np.append(0.0, masses)
    for order in (1.01, 2.0, 5.0):
        kept = (p > 0) & (q > 0)
        divergence = math.log((p[kept] ** order * q[kept] ** (1 - order)).sum()) / (order - 1)
        assert divergence <= order * concentrated_rho(cases[0][0]) * (1 + 1e-9)


def test_what_may_be_revealed_with_certainty_has_no_finite_form():
    certain = Claim.exact(math.inf, ConstantDelta(0.3), "three in ten")
    for claim in (certain, Claim.unknown("not computed"), noisy(2.0).about(noise=None)):
        assert gaussian_mu(claim) == concentrated_rho(claim) == math.inf
    assert [trade_off(certain, alpha) for alpha in (0.0, 0.5, 1.0)] == pytest.approx([0.7, 0.2, 0.0])
    nothing = Claim.exact(0.0, ConstantDelta(0.0), "nothing")
    assert gaussian_mu(nothing) == concentrated_rho(nothing) == attack_advantage(nothing) == 0.0
    weakest = Claim.weakest([noisy(2.0), responses(1.0)])
    assert gaussian_mu(weakest) == math.inf
    with pytest.raises(ParameterError, match="false_positive_rate must be"):
        trade_off(certain, 1.5)


@pytest.mark.parametrize(
    ("claim", "several"),
    [
        (responses(1.0), responses(1.0, 8)),
        (responses(0.3337), responses(0.3337, 8)),
        (noisy(5.0), noisy(5.0, queries=8)),
        (laplace(1.2), None),
        (Claim.unknown("not computed"), None),
        (Claim.exact(0.0, ConstantDelta(0.0), "nothing"), None),
    ],
)
def test_there_and_back_through_dp_accounting(claim, several):
    made = to_privacy_loss_distribution(claim, interval=1e-3)
    back = claim_of_privacy_loss_distribution(made, basis="read back")
    assert back.kind == "bound"
    assert claim.epsilon <= back.epsilon * (1 + 1e-12) <= claim.epsilon + 1.1e-3
    for epsilon in (*EPSILONS, math.inf):
        exact = claim.delta(epsilon)
        assert exact * (1 - 1e-12) <= back.delta(epsilon) + 1e-29
        assert back.delta(epsilon) <= exact + 1e-6
        if several is not None and epsilon < math.inf:
            composed = made.self_compose(8).get_delta_for_epsilon(epsilon)
            assert composed == pytest.approx(several.delta(epsilon), rel=2e-3, abs=1e-12)
    if several is not None and math.isinf(claim.epsilon):
        theirs = privacy_loss_distribution.from_discrete_gaussian_mechanism(5.0, value_discretization_interval=1e-3)
        mixed = made.compose(theirs).get_delta_for_epsilon(0.5)
        assert mixed == pytest.approx(noisy(5.0, queries=2).delta(0.5), rel=1e-2)


def test_without_dp_accounting_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(ParameterError, match=r"pip install 'crowdveil\[accounting\]'"):
        to_privacy_loss_distribution(responses(1.0))


def test_units_of_privacy():
    claim = responses(1.0)
    assert claim.about(Report(1)).unit == "one report"
    assert claim.about(LinkedReports()).unit == "one query"
    assert claim.about(LinkedReports(12)).unit == "12 queries of a device"
    assert claim.about(LinkedReports(12), campaigns="day,night").unit == "a device’s whole run"


def test_a_device_more_is_hidden_by_noise_on_true_counts_and_not_by_others_bits():
    """Counts of two cells: with or without a device in the first, for the numbers of others in each cell."""
    masses = np.array(IntegerNoise("discrete_laplace", 1.5).masses(1))
    view = ReleasedCounts(None, colluding=0, servers=1)
    hidden = known_counts_claim(view, IntegerNoise("discrete_laplace", 1.5), two=False)
    with_one, without = np.append(0.0, masses), np.append(masses, 0.0)
    bits = SymmetricUnary(cells=2, epsilon=1.0)
    entering = bits.claim(ReleasedCounts(None, counted=2, adjacency="enter_leave"))
    p, q = bits.true_yes, bits.false_yes
    other = np.multiply.outer([1 - p, p], [1 - q, q])  # the bits of a device in the first cell
    alone, both = np.zeros((3, 3)), np.zeros((3, 3))
    alone[:2, :2] = other
    for i, j in itertools.product((0, 1), repeat=2):
        both[i : i + 2, j : j + 2] += other[i, j] * other
    for epsilon in EPSILONS:
        # Values that only one of the two gives are ends of the noise, which the masses leave out.
        assert hidden.delta(epsilon) >= pair_delta(with_one, without, epsilon=epsilon) - 1e-30
        assert pair_delta(both.ravel(), alone.ravel(), epsilon=epsilon) > entering.delta(epsilon) + 0.1
    assert entering.kind == "exact" or entering.epsilon == bits.claim(Report(1, adjacency="enter_leave")).epsilon
    assert NoPrivacy(cells=2).claim(Report(1)).delta(math.inf) == 1.0


@pytest.mark.parametrize("name", ["privacy.md", "protocol.md"])
def test_the_example_of_the_page_runs(capsys, name):
    page = (Path(__file__).parents[2] / "docs" / "why" / name).read_text(encoding="utf-8")
    block, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", page, flags=re.DOTALL).groups()
    exec(compile(block, name, "exec"), {})  # noqa: S102 - the page's own code
    assert capsys.readouterr().out == shown

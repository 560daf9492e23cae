"""Noise by the servers: errors of runs, claims and gains against the number of colluding servers."""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, nbinom, norm

from mechanisms.central.grid_noise import draw_noise, is_below, is_below_exp
from mechanisms.local import KRandomizedResponse, NoPrivacy, SymmetricUnary
from mechanisms.privacy import ReleasedCounts
from mechanisms.privacy.integer_noise import IntegerNoise
from scenarios import ScenarioError
from simulator import run
from simulator.aggregation.server_noise import noisy_claim


@pytest.fixture(scope="module")
def result():
    return run("server-noise", seed=11)


@pytest.mark.slow
def test_gain_is_a_curve_within_its_interval(result):
    """Five rows a mechanism; intervals of 95 % widened to hold jointly for all of them with 10⁻⁶."""
    wider = norm.isf(1e-6 / 20.0) / norm.isf(0.025)
    for name, rows in result.attacks.groupby("mechanism"):
        assert rows["colluding"].tolist() == [1, 2, 3, 4, 5]
        assert (np.diff(rows["theory"]) > 0).all(), name
        theory = rows["theory"] - rows["prior"]
        assert ((rows["gain"] - theory).abs() <= wider * (rows["gain_high"] - rows["gain_low"]) / 2 + 1e-12).all(), name
        if name == "unary":  # the same trials for all: up to four servers differ only by noise that the bits hide
            assert rows["success"].iloc[:4].max() - rows["success"].iloc[:4].min() < 0.02
    exact = result.attacks[result.attacks["mechanism"] == "true-cells"]
    assert exact["success"].iloc[-1] == 1.0
    assert 0.55 < exact["theory"].iloc[0] < exact["theory"].iloc[3] < 0.8


@pytest.mark.slow
def test_guesses_stay_below_the_claims(result):
    """At even odds a guess is right at most with (e^ε + δ)/(1 + e^ε); family-wise 10⁻⁶."""
    claims = result.claims[result.claims["servers"].notna() & (result.claims["view"] == "released_counts")]
    for row in result.attacks.itertuples():
        if row.colluding == 5:
            continue
        own = claims[
            (claims["mechanism"] == row.mechanism)
            & (claims["adjacency"] == "enter_leave")
            & (claims["colluding"] == row.colluding)
            & np.isfinite(claims["epsilon"])
        ]
        most = ((np.exp(own["epsilon"]) + own["delta"]) / (1.0 + np.exp(own["epsilon"]))).min()
        assert row.success <= most + norm.isf(1e-7) * math.sqrt(0.25 / row.trials)


@pytest.mark.slow
def test_errors_contain_the_noise_of_all_servers(result):
    for score in result.scores.itertuples():
        cells = 8 * score.cells
        low, high = (math.sqrt(chi2.isf(p, cells) / cells) for p in (1 - 1e-6, 1e-6))
        assert low <= score.rmse / score.theory_rmse <= high
        assert abs(score.bias) <= 5.5 * score.theory_rmse / math.sqrt(cells)
        assert score.coverage > 0.93
    sigma = IntegerNoise("discrete_gaussian", 0.8).variance
    exact = result.scores[result.scores["mechanism"] == "true-cells"]
    assert exact["theory_rmse"].iloc[0] == pytest.approx(math.sqrt(5 * sigma), rel=1e-12)


def test_both_sensing_engines_and_counts_add_the_same_noise():
    overrides = ["campaigns.0.queries=2", "traffic.vehicles=2000", "attacks=[]"]
    plain = run("server-noise", seed=3, overrides=overrides)
    messages = run("server-noise", seed=3, overrides=[*overrides, "sensing.engine=messages"])
    pd.testing.assert_frame_equal(plain.estimates, messages.estimates)
    counts = run("server-noise", seed=3, overrides=[*overrides, "population.answers=counts"])
    shown = [one.estimates[one.estimates["mechanism"] == "true-cells"] for one in (plain, counts)]
    assert (shown[0]["estimate"].to_numpy() == shown[1]["estimate"].to_numpy()).all()


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("aggregation={kind='shuffled',noise={kind='discrete_gaussian',sigma=1}}", "aggregation.noise: needs kind"),
        ("aggregation={kind='trusted',noise={kind='discrete_gaussian',sigma=0}}", "aggregation.noise.sigma"),
        ("aggregation={kind='trusted',noise={kind='gaussian',sigma=1}}", "aggregation.noise.kind"),
        ("aggregation.noise={kind='polya',scale=2,honest=6}", "aggregation.noise.honest: must be at most the number"),
        (
            "aggregation={kind='trusted',noise={kind='discrete_laplace',scale=2}};release={kind='laplace',epsilon=1}",
            "cannot be combined with a release",
        ),
        ("mechanisms=[{name='two',kind='sampling_privacy',sampling=0.4}]", "mechanisms of one round"),
    ],
)
def test_noise_that_servers_cannot_add_is_refused(override, words):
    with pytest.raises(ScenarioError, match="noise") as refusal:
        run("server-noise", overrides=["attacks=[]", *override.split(";")])
    assert words in str(refusal.value)


def shifted_delta(noise, servers, changed, epsilon):
    """δ(ε) of one or two counts that change by 1, by convolution of the servers' noise."""
    k = np.arange(-60, 61)
    away = np.abs(k) / noise.scale
    one = np.exp(-(away**2) / 2 if noise.kind == "discrete_gaussian" else -away)
    if noise.kind == "polya":
        half = nbinom.pmf(np.arange(200), 1 / noise.honest, -math.expm1(-1 / noise.scale))
        one = np.convolve(half, half[::-1])[199 - 60 : 199 + 61]
    one /= one.sum()
    total = one
    for _ in range(servers - 1):
        total = np.convolve(total, one)
    up, down = np.append(0.0, total), np.append(total, 0.0)
    if changed == 2:
        up, down = np.multiply.outer(up, down).ravel(), np.multiply.outer(down, up).ravel()
    return np.maximum(up - math.exp(epsilon) * down, 0.0).sum()


@pytest.mark.parametrize(("kind", "shares"), [("discrete_gaussian", 1), ("discrete_laplace", 1), ("polya", 2)])
def test_claims_of_known_counts_equal_the_shifted_noise(kind, shares):
    noise = IntegerNoise(kind, 1.3, shares)
    for colluding in range(3):
        for adjacency, changed in (("enter_leave", 1), ("move", 2)):
            view = ReleasedCounts(None, 1, 50, colluding=colluding, servers=3, adjacency=adjacency)
            claim = noisy_claim(NoPrivacy(cells=4), view, noise)
            for epsilon in (0.1, 0.7, 1.5):
                expected = shifted_delta(noise, 3 - colluding, changed, epsilon)
                assert claim.delta(epsilon) == pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert claim.delta_kind == "exact"
            two = noisy_claim(KRandomizedResponse(cells=4, epsilon=3.0), view, noise)
            assert two.delta(0.5) <= shifted_delta(noise, 3 - colluding, 2, 0.5) + 1e-9


def test_noise_hides_bits_further():
    mechanism, noise = SymmetricUnary(cells=4, epsilon=6.0), IntegerNoise("discrete_gaussian", 2.0)
    for adjacency in ("enter_leave", "move"):
        view = ReleasedCounts(None, 1, 40, adjacency=adjacency)
        bare = mechanism.claim(view).delta(0.5)
        found = [
            noisy_claim(
                mechanism, ReleasedCounts(None, 1, 40, colluding=c, servers=4, adjacency=adjacency), noise
            ).delta(0.5)
            for c in range(4)
        ]
        assert (np.diff(found) > 0).all()
        assert found[-1] < bare


def test_drawn_noise_has_the_stated_distribution():
    for kind, scale, shares in (
        ("discrete_gaussian", 0.4, 1),
        ("discrete_gaussian", 3.7, 1),
        ("discrete_laplace", 1.9, 1),
        ("polya", 0.6, 2),
        ("polya", 9.0, 5),
    ):
        noise = IntegerNoise(kind, scale, shares)
        drawn = draw_noise(noise, 200_000, rng=np.random.default_rng(5))
        masses = np.array(noise.masses(1))
        middle = len(masses) // 2
        expected = 200_000 * masses
        kept = expected > 20
        found = np.bincount(np.clip(drawn + middle, 0, len(masses) - 1), minlength=len(masses))
        statistic = (((found - expected) ** 2 / np.maximum(expected, 1e-300))[kept]).sum()
        assert statistic < chi2.isf(1e-6, kept.sum())
        assert drawn.var() == pytest.approx(noise.variance, rel=0.03)


@pytest.mark.parametrize("scale", [0.4, 3.0, 25.0])
def test_opendp_draws_the_same_noise(scale):
    """Two-sample χ² tests over the values that at least ten of both samples have, family-wise 10⁻⁶."""
    opendp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    opendp.enable_features("contrib")
    integers = opendp.vector_domain(opendp.atom_domain(T=int))
    peers = {
        "discrete_gaussian": opendp.m.make_gaussian(integers, opendp.l2_distance(T=float), scale=scale),
        "discrete_laplace": opendp.m.make_laplace(integers, opendp.l1_distance(T=int), scale=scale),
    }
    for kind, peer in peers.items():
        ours = draw_noise(IntegerNoise(kind, scale), 20_000, rng=np.random.default_rng(2))
        theirs = np.array(peer([0] * 20_000))
        values = np.arange(min(ours.min(), theirs.min()), max(ours.max(), theirs.max()) + 1)
        one, other = (np.bincount(drawn - values[0], minlength=len(values)) for drawn in (ours, theirs))
        kept = one + other >= 20
        statistic = ((one - other)[kept] ** 2 / (one + other)[kept]).sum()
        assert statistic < chi2.isf(1e-6 / 6, kept.sum()), kind


def test_doubtful_trials_are_decided_by_further_bits():
    rng, word = np.random.default_rng(3), math.floor(math.exp(-0.7) * 2**63)
    assert is_below_exp(word - 2**20, Fraction(7, 10), rng=rng)
    assert not is_below_exp(word + 2**20, Fraction(7, 10), rng=rng)
    assert is_below_exp(0, Fraction(40), rng=rng)
    assert not is_below_exp(2**63 - 1, Fraction(1, 2**50), rng=rng)
    nearest = int(Decimal("-0.7").exp(Context(prec=60)) * 2**63)
    assert 0 < sum(is_below_exp(nearest, Fraction(7, 10), rng=rng) for _ in range(200)) < 200


@pytest.mark.parametrize(("scale", "shares", "servers"), [(1.0, 3, 3), (2.0, 3, 2), (2.0, 3, 5), (0.4, 4, 1)])
def test_shares_of_noise_are_differences_of_negative_binomials(scale, shares, servers):
    """The shares of h servers are whole Laplace noise with ε = 1/b; of fewer the greatest ratio is at the centre."""
    one = nbinom.pmf(np.arange(4000), servers / shares, -math.expm1(-1.0 / scale))
    whole = np.convolve(one, one[::-1])
    noise = IntegerNoise("polya", scale, shares)
    masses = np.array(noise.masses(servers))
    cut = (len(whole) - len(masses)) // 2
    large = masses > 1e-25
    assert masses[large] == pytest.approx(whole[cut : cut + len(masses)][large], rel=1e-9)
    upper = masses[len(masses) // 2 :]
    steepest = np.log(upper[:-1] / upper[1:])[upper[1:] > 1e-25].max()
    assert noise.pure_epsilon(servers) == pytest.approx(steepest, rel=0.05 if servers > shares else 1e-9)
    if servers >= shares:
        assert noise.pure_epsilon(servers) == 1.0 / scale
    assert noise.variance * shares == pytest.approx(IntegerNoise("discrete_laplace", scale).variance)


def test_fractions_are_compared_with_further_bits():
    rng, third = np.random.default_rng(3), 2**63 // 3
    decided = [is_below(third, Fraction(1, 3), rng=rng) for _ in range(300)]
    assert 150 < sum(decided) < 250  # two thirds of the interval that the word stands for are below
    assert is_below(third - 1, Fraction(1, 3), rng=rng)
    assert not is_below(third + 1, Fraction(1, 3), rng=rng)


def test_shares_of_noise_are_added_in_runs_of_both_engines():
    share = "aggregation.noise={kind='polya',scale=3.0,honest=3}"
    overrides = ["campaigns.0.queries=2", "traffic.vehicles=2000", "attacks=[]", share]
    plain = run("server-noise", seed=3, overrides=overrides)
    messages = run("server-noise", seed=3, overrides=[*overrides, "sensing.engine=messages"])
    pd.testing.assert_frame_equal(plain.estimates, messages.estimates)
    claims = plain.claims[plain.claims["colluding"].notna() & (plain.claims["mechanism"] == "true-cells")]
    entering = claims[(claims["delta"] == 0) & (claims["adjacency"] == "enter_leave") & (claims["queries"] == 1)]
    pure = entering.groupby("colluding")["epsilon"].min()
    assert pure.iloc[:3].tolist() == pytest.approx([1.0 / 3.0] * 3, rel=1e-12)
    assert (np.diff(pure.iloc[2:]) > 0).all()


def test_counts_of_no_reports_have_no_claim_with_noise():
    down = "channel.outages=[{server='server:1', from_s=0, to_s=100000}]"
    silent = run("server-noise", overrides=["campaigns.0.queries=1", "traffic.vehicles=200", "attacks=[]", down])
    assert set(silent.claims.loc[silent.claims["colluding"].notna(), "view"]) == {"shares"}
    assert silent.record.loss == []


def test_masses_of_wide_sums_keep_their_tails():
    """Of three Laplace variables by direct convolution, and of wide ones in well under a second."""
    noise = IntegerNoise("discrete_laplace", 2.0)
    k = np.arange(-300, 301)
    one = np.exp(-np.abs(k) / 2.0)
    one /= one.sum()
    whole = np.convolve(np.convolve(one, one), one)
    masses = np.array(noise.masses(3))
    cut = (len(whole) - len(masses)) // 2
    assert masses == pytest.approx(whole[cut : cut + len(masses)], rel=1e-9)
    assert len(IntegerNoise("discrete_laplace", 900.0).masses(7)) > 100_000

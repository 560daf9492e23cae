"""Intervals for a count: exact coverage by enumeration, and exact ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import BY_EPSILON
from scipy.stats import binom, hypergeom

from mechanisms import local


@given(
    successes=st.one_of(st.integers(0, 300), st.integers(0, 10**7)),
    probability=st.floats(0.005, 1.0, exclude_max=True),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.9999]),
)
def test_inverted_binomial_ends_are_exact(successes, probability, level):
    """At each end the tail test does not reject; one step further out it does."""
    half = (1 - level) / 2
    lower, upper = (int(end) for end in local.invert_binomial(successes, probability, level))
    slack = 1e-9  # two implementations of the tail agree to about this
    assert binom.sf(successes - 1, lower, probability) > half * (1 - slack)
    assert lower == successes or binom.sf(successes - 1, lower - 1, probability) <= half * (1 + slack)
    assert binom.cdf(successes, upper, probability) > half * (1 - slack)
    assert binom.cdf(successes, upper + 1, probability) <= half * (1 + slack)
    assert successes <= lower <= upper


def test_inverted_binomial_edge_cases():
    lower, upper = local.invert_binomial(np.array([[0, 1], [7, 0]]), 1.0)
    assert lower.tolist() == upper.tolist() == [[0, 1], [7, 0]]
    lower, upper = local.invert_binomial(np.array([0, 0]), 0.45)
    assert lower.tolist() == [0, 0]
    # (1 − π)^n > .025 up to n = 6
    assert upper.tolist() == [6, 6]
    lower, upper = local.invert_binomial(np.empty(0, dtype=int), 0.3)
    assert lower.shape == upper.shape == (0,)
    lower, upper = local.invert_binomial(10**7, 0.2)
    assert lower < 5 * 10**7 < upper
    width = 2 * 1.959964 * np.sqrt(10**7 * 0.8) / 0.2
    assert upper - lower == pytest.approx(width, rel=1e-3)


@pytest.mark.parametrize(
    ("successes", "probability", "level", "field"),
    [
        (-1, 0.5, 0.95, "successes"),
        (1.5, 0.5, 0.95, "successes"),
        (1, 0.0, 0.95, "probability"),
        (1, 1.1, 0.95, "probability"),
        (1, float("nan"), 0.95, "probability"),
        (1, 0.5, 1.0, "level"),
        (1, 0.5, float("nan"), "level"),
    ],
)
def test_invalid_values_are_refused(successes, probability, level, field):
    with pytest.raises(local.ParameterError, match=rf"^{field} must"):
        local.invert_binomial(successes, probability, level)


def test_sampling_privacy_intervals_cover_and_state_their_method():
    """All values of D, for every Y up to 60, through the mechanism's own estimate."""
    devices, mechanism = 60, local.SamplingPrivacy(cells=1, sampling=0.45)
    difference = np.arange(devices + 1)
    ends = []
    for d in difference:
        counts = np.array([[devices, 0], [devices - d, d]])
        estimate = mechanism.estimate(counts, counted=[devices] * 2, asked=[devices] * 2)
        assert estimate.interval == "binomial inversion"
        ends.append((estimate.lower[0], estimate.upper[0]))
    assert ends[0][1] > 0
    lower, upper = np.array(ends).T
    for truth in range(devices + 1):
        covered = (lower <= truth) & (truth <= upper)
        assert binom.pmf(difference, truth, 0.45)[covered].sum() >= 0.95
    lost = mechanism.estimate(counts, counted=[devices] * 2, asked=[devices + 1] * 2)
    assert lost.interval == "score"


LOSSES = (0.0, 0.05, 0.2, 0.5)
OCCUPANCIES = range(6)
NOMINAL = 0.95


def counted_of(devices, loss):
    return round(devices * (1.0 - loss))


def count_masses(devices, counted, truth, p, q):
    """P(C) for C = 0…n: Bin(K, p) + Bin(n − K, q) for hypergeometric K, by convolution."""
    masses = np.zeros(counted + 1)
    for held in range(max(0, counted - devices + truth), min(truth, counted) + 1):
        conditional = np.convolve(
            binom.pmf(range(held + 1), held, p), binom.pmf(range(counted - held + 1), counted - held, q)
        )
        masses += hypergeom.pmf(held, devices, truth, counted) * conditional
    return masses


def one_round(mechanism, yes_counts, devices):
    """Tallies of one round in which each of `yes_counts` belongs to a cell of its own."""
    if len(mechanism.tally_shape) == 2:
        return np.stack([devices - yes_counts, yes_counts], axis=-1)[np.newaxis]
    return np.concatenate([[0], yes_counts])[np.newaxis]


ONE_ROUND = {
    "no privacy": lambda cells: local.NoPrivacy(cells=cells),
    "some noise": lambda cells: local.RandomizedResponse(cells=cells, first_coin=0.9, second_coin=0.1),
    "rare noise": lambda cells: local.RandomizedResponse(cells=cells, first_coin=0.8, second_coin=0.004),
    "much noise": lambda cells: local.RandomizedResponse(cells=cells, first_coin=0.5, second_coin=0.5),
}
SIZES = [(name, devices) for name in ONE_ROUND for devices in (20, 60)]


# Too many answers Yes to enumerate are to be expected of the last.
@pytest.mark.parametrize(("name", "devices"), [*SIZES, ("much noise", 200)])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_round_intervals_cover_at_small_occupancies(name, devices, loss):
    counted = counted_of(devices, loss)
    yes_counts = np.arange(counted + 1)
    mechanism = ONE_ROUND[name](len(yes_counts))
    p, q = (1.0, 0.0) if name == "no privacy" else (mechanism.true_yes, mechanism.false_yes)
    estimate = mechanism.estimate(one_round(mechanism, yes_counts, counted), counted=[counted], asked=[devices])
    for truth in (*OCCUPANCIES, 10, devices // 2, devices):
        covered = (estimate.lower <= truth) & (truth <= estimate.upper)
        assert count_masses(devices, counted, truth, p, q)[covered].sum() >= NOMINAL - 1e-9, truth


@pytest.mark.parametrize("kind", BY_EPSILON)
@pytest.mark.parametrize("loss", LOSSES)
def test_frequency_oracle_intervals_cover_with_many_cells(kind, loss):
    """The support of a cell by its distribution, for any encoding: ε = 8 and 1000 cells leave few false reports."""
    devices, counted = 400, counted_of(400, loss)
    yes_counts = np.arange(counted + 1)
    oracle = BY_EPSILON[kind](cells=1000, epsilon=8.0)
    p, q = oracle.true_yes, oracle.false_yes
    # With the same distribution, and a cell for each count.
    twin = local.RandomizedResponse(cells=len(yes_counts), first_coin=p - q, second_coin=q / (1.0 - p + q))
    estimate = twin.estimate(one_round(twin, yes_counts, counted), counted=[counted], asked=[devices])
    for truth in OCCUPANCIES:
        covered = (estimate.lower <= truth) & (truth <= estimate.upper)
        assert count_masses(devices, counted, truth, p, q)[covered].sum() >= NOMINAL - 1e-9, truth
    if kind == "k-ary":
        tally = np.zeros((1, 1001), dtype=np.int64)
        tally[0, : min(6, counted)] = yes_counts[:6]
        own = oracle.estimate(tally, counted=[counted], asked=[devices])
        np.testing.assert_array_equal(own.upper[:5], estimate.upper[1:6])


@pytest.mark.parametrize("losses", [(0.0, 0.2), (0.2, 0.05)])
@pytest.mark.parametrize("blank", [0.002, 0.05])
def test_sampling_privacy_intervals_cover_under_loss(losses, blank):
    """All blanks B and sampled S, then the received part of each in either round: hypergeometric and independent."""
    devices, sampling, many = 60, 0.45, 16
    first, second = np.meshgrid(np.arange(many), np.arange(many), indexing="ij")
    counted = [counted_of(devices, loss) for loss in losses]
    mechanism = local.SamplingPrivacy(cells=many * many, sampling=sampling, blank=np.full(many * many, blank / 256 * 2))
    tallies = np.zeros((2, many * many + 1), dtype=np.int64)
    tallies[:, 1:] = first.ravel(), second.ravel()
    estimate = mechanism.estimate(tallies, counted=counted, asked=[devices] * 2)
    own = mechanism.blanks[1]
    for truth in OCCUPANCIES:
        masses = np.zeros((many, many))
        for sampled in range(truth + 1):
            chance = binom.pmf(sampled, truth, sampling)
            blanks = np.convolve(
                binom.pmf(range(truth - sampled + 1), truth - sampled, own / (1.0 - sampling)),
                binom.pmf(range(many), devices - truth, own),
            )[: many - truth]
            for held, mass in enumerate(blanks):
                one = hypergeom.pmf(range(many), devices, held, counted[0])
                two = hypergeom.pmf(range(many), devices, held + sampled, counted[1])
                masses += chance * mass * np.outer(one, two)
        assert masses.sum() > 1.0 - 1e-6
        covered = ((estimate.lower <= truth) & (truth <= estimate.upper)).reshape(many, many)
        assert (masses * covered).sum() >= NOMINAL * masses.sum() - 1e-9, truth

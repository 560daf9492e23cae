"""Coverage of count intervals with few devices and under loss: summed over all outcomes, or simulated."""

import numpy as np
import pytest
from ldp_baseline_cases import BY_EPSILON
from scipy.stats import binom, hypergeom

from mechanisms.local import NoPrivacy, RandomizedResponse, SamplingPrivacy

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
    "no privacy": lambda cells: NoPrivacy(cells=cells),
    "some noise": lambda cells: RandomizedResponse(cells=cells, first_coin=0.9, second_coin=0.1),
    "rare noise": lambda cells: RandomizedResponse(cells=cells, first_coin=0.8, second_coin=0.004),
}


@pytest.mark.parametrize("name", ONE_ROUND)
@pytest.mark.parametrize("devices", [20, 60])
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


def test_interval_of_an_empty_cell_with_four_fifths_received():
    estimate = NoPrivacy(cells=1).estimate(np.array([[4000, 0]]), counted=(4000,), asked=(5000,))
    # One or two may have been lost, with probability .2 and .04; three with .008.
    assert (estimate.lower[0], estimate.upper[0]) == (0.0, 2.0)


@pytest.mark.parametrize("kind", BY_EPSILON)
@pytest.mark.parametrize("loss", LOSSES)
def test_frequency_oracle_intervals_cover_with_many_cells(kind, loss):
    """The support of a cell by its distribution, for any encoding: ε = 8 and 1000 cells leave few false reports."""
    devices, counted = 400, counted_of(400, loss)
    yes_counts = np.arange(counted + 1)
    oracle = BY_EPSILON[kind](cells=1000, epsilon=8.0)
    p, q = oracle.true_yes, oracle.false_yes
    # With the same distribution, and a cell for each count.
    twin = RandomizedResponse(cells=len(yes_counts), first_coin=p - q, second_coin=q / (1.0 - p + q))
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
    mechanism = SamplingPrivacy(cells=many * many, sampling=sampling, blank=np.full(many * many, blank / 256 * 2))
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

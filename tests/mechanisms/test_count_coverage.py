"""Coverage of count intervals with few devices and under loss: summed over all outcomes, or simulated."""

import numpy as np
import pytest
from conformance_cases import GOOD
from ldp_baseline_cases import BY_EPSILON
from scipy.stats import binom, hypergeom

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.local.distributed_laplace import DistributedLaplace

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
@pytest.mark.parametrize("devices", [20, 60, pytest.param(1000, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize("losses", [(0.0, 0.2), (0.05, 0.05), (0.2, 0.05), (0.5, 0.5)])
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


def coverage(mechanism, truth, *, losses, devices, repeats, rng):
    """Share of intervals of cell 1 that contain the count, with independent loss of each device."""
    held = 0
    vectors = np.zeros(devices, dtype=np.int32)
    vectors[:truth] = 1
    vectors[truth:] = rng.integers(0, mechanism.cells + 1, devices - truth) * (mechanism.cells > 1)
    vectors[truth:][vectors[truth:] == 1] = 0
    for _ in range(repeats):
        coins = mechanism.toss(mechanism.enrol(devices, rng=rng), rng=rng)
        masks = [rng.random(devices) >= loss for loss in losses]
        counts = [mechanism.tally(mechanism.answer(r + 1, vectors, coins), mask) for r, mask in enumerate(masks)]
        counted = [int(mask.sum()) for mask in masks]
        estimate = mechanism.estimate(np.stack(counts), counted=counted, asked=[devices] * mechanism.rounds)
        held += int(estimate.lower[0] <= truth <= estimate.upper[0])
    return held


ESTIMABLE = [name for name in GOOD if not name.startswith("SamplingAndNoise")]
MANY = {
    "sampling, 1000 cells": SamplingPrivacy(cells=1000, sampling=0.45),
    "refreshed, 1000 cells": SamplingPrivacy(cells=1000, sampling=0.45, refresh=0.3),
    "binary sampling, 1000 cells": BinarySamplingPrivacy(cells=200, sampling=0.45, blank_zero=0.5),
    "k-ary, 1000 cells": BY_EPSILON["k-ary"](cells=1000, epsilon=8.0),
    "Laplace shares, short": DistributedLaplace(cells=3, epsilon=1.0, devices=60),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [loss if loss in {0.0, 0.2} else pytest.param(loss, marks=pytest.mark.thorough) for loss in LOSSES]
)
@pytest.mark.parametrize("name", [*ESTIMABLE, *MANY])
def test_every_mechanism_covers_at_small_occupancies(name, loss):
    mechanism = (GOOD | MANY)[name]
    rng, repeats = np.random.default_rng([int(100 * loss), len(name)]), 100
    cases = [(truth, devices) for truth in (0, 1, 3, 5) for devices in (20, 120)]
    comparisons = len(cases) * len(LOSSES) * len([*ESTIMABLE, *MANY])
    # A correct interval fails one of all comparisons in a thousand runs.
    least = binom.ppf(1e-3 / comparisons, repeats, NOMINAL)
    for truth, devices in cases:
        held = coverage(mechanism, truth, losses=[loss] * mechanism.rounds, devices=devices, repeats=repeats, rng=rng)
        assert held >= least, (truth, devices, held / repeats)

"""Statistical tests whose bounds come from theory and from the number of comparisons."""

import math

import numpy as np
from scipy.stats import chi2_contingency, norm

from mechanisms.local.distributed_laplace import DistributedLaplace

# Probability that a correct implementation fails any one call of a check below, over all its comparisons.
FAMILY = 1e-6


def z_bound(comparisons):
    """The bound that the |z| of so many standard normal scores exceed in one run of a million."""
    return float(norm.isf(FAMILY / (2 * comparisons)))


def estimate_counts(mechanism, tallies, *, counted, asked):
    """Estimates of many tallies (repeats, rounds, *tally_shape), as (repeats, cells), without intervals.

    An unbiased estimator is an affine function of the tallies. Its coefficients are those of the estimates of 0 and of
    the unit tallies. The first 20 tallies are also estimated one by one and must agree: an interval for each of
    thousands of estimates would take a hundred times as long.
    """

    def estimate(tally):
        return mechanism.estimate(tally, counted=counted, asked=asked).count

    tallies = np.stack(tallies)
    shape, rows = tallies.shape[1:], tallies.reshape(len(tallies), -1)
    if rows.shape[1] >= len(rows) // 2:
        return np.stack([estimate(tally) for tally in tallies])
    units = np.eye(rows.shape[1], dtype=np.int64)
    constant = estimate(np.zeros(shape, dtype=np.int64))
    slopes = np.stack([estimate(unit.reshape(shape)) - constant for unit in units])
    estimates = constant + rows @ slopes
    alone = np.stack([estimate(tally) for tally in tallies[:20]])
    scale = np.abs(constant).max() + np.abs(rows[:20] @ np.abs(slopes)).max()
    np.testing.assert_allclose(estimates[:20], alone, rtol=0, atol=1e-12 * scale)
    return estimates


def step_of(mechanism, *, counted, asked):
    """The most one device's answers can move an estimate: the sum over rounds of the range of the tallies' weights.

    Laplace shares are unbounded; the excess kurtosis of the noise of n of N shares is
    (1 + 4α + α²)/(2α·n/N), from the cumulants of the geometric distribution.
    """
    scale = max(asked[mechanism.truth_round - 1] / n for n in counted)
    if isinstance(mechanism, DistributedLaplace):
        alpha, share = mechanism.alpha, counted[0] / mechanism.devices
        excess = (1 + 4 * alpha + alpha**2) / (2 * alpha * share)
        return scale * math.sqrt(excess * share * mechanism.noise_variance)
    totals = {"counted": counted, "asked": asked}
    zero = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    base, step = mechanism.estimate(zero, **totals).count[0], 0.0
    cell = [i for i in np.ndindex(*mechanism.tally_shape) if len(i) == 1 or i[0] == 0]
    for r in range(mechanism.rounds):
        weights = [0.0]
        for place in cell:
            unit = zero.copy()
            unit[r][place] = 1
            weights.append(float(mechanism.estimate(unit, **totals).count[0] - base))
        step += max(weights) - min(weights)
    return step


def check_moments(samples, mean, std_error, *, step):
    """Mean and variance of (repeats, k) samples against theory.

    `step` is the largest effect of one device's answer on a value. For sums of independent terms so bounded the
    excess kurtosis is at most step²/σ², which bounds the error of a sample variance.
    """
    repeats, values = samples.shape
    bound = z_bound(2 * values)
    scores = (samples.mean(axis=0) - mean) * np.sqrt(repeats) / std_error
    assert np.abs(scores).max() < bound, ("mean", scores)
    spread = ((samples - mean) ** 2).mean(axis=0) / std_error**2
    spread_error = np.sqrt((2.0 + step**2 / std_error**2) / repeats)
    assert np.abs((spread - 1.0) / spread_error).max() < bound, ("variance", spread)


def check_same_distribution(one, other):
    """Compare two samples of whole outcomes, (repeats, k) integers each, by a chi-square test over the common ones."""
    outcomes, place = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    table = np.stack([np.bincount(part, minlength=len(outcomes)) for part in (place[: len(one)], place[len(one) :])])
    order = np.argsort(-table.sum(axis=0))
    table = table[:, order]
    rare = table.sum(axis=0) < 20
    if rare.any():
        table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 3, "too few outcomes to tell laws apart"
    assert chi2_contingency(table).pvalue > FAMILY


def planned_truth(target):
    """The true counts of a target, (V + 1,): its occupancy in cell 1 and all other devices outside."""
    return np.array([target.population - target.expected, target.expected] + [0] * (target.cells - 1))

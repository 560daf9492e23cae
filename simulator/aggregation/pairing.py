"""Pairing: estimates from the reports of those devices only that were received in every round."""

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism, QuadraticVariance
from mechanisms.local.common.intervals import CountLaw, invert_tails
from mechanisms.local.common.response_counts import ResponseCounts, estimate_between
from simulator.arrays import FloatArray


def estimate_paired(mechanism: LocalMechanism, counts: Counts, *, paired: int, asked: int) -> Estimate:
    """Estimate the occupancy of all devices asked from those received in every round.

    Reports of n of N devices were received in all rounds. The mechanism treats these n as a population of their own
    without missing reports, so Ŷ = (N/n)·Ŷ_n. As every device's coins are independent of the channel, the n are a
    simple random sample.

    Parameters
    ----------
    mechanism
        The mechanism whose reports were counted.
    counts
        (rounds, *tally_shape) int64, of the n devices alone.
    paired, asked
        n and N.

    Returns
    -------
    Estimate
        Unbiased. Its interval is the mechanism's own if all N were received, or if the mechanism has one round, where
        pairing changes nothing; otherwise it is that of the distribution of the count, thinning included.
    """
    rounds = mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.estimate(counts, counted=[paired] * rounds, asked=[asked] * rounds)
    within = mechanism.estimate(counts, counted=[paired] * rounds, asked=[paired] * rounds)
    count = within.count * (asked / paired)
    variance = paired_variance(mechanism, paired=paired, asked=asked)
    elsewhere, inside = _single_variances(mechanism)
    # A device in the cell that adds 1/π or 0 has a variance of 1/π − 1.
    received, step = ResponseCounts((asked,), (paired,), truth_round=1), 1.0 + inside
    if not elsewhere.any():
        none = np.zeros((3, len(step)))
        known = np.zeros(len(step), dtype=np.int64)
        law = CountLaw(asked, paired, 1.0 / step, none[0], known, none[0], asked, none)
        ends = law.invert(np.clip(np.rint(within.count / step), 0, paired).astype(np.int64))
    else:
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), step * (asked / paired), asked)
    return estimate_between(count, variance, ends, received)


def paired_std_error(mechanism: LocalMechanism, true_counts: Counts, *, paired: int) -> FloatArray:
    """Return the theoretical standard error of `estimate_paired` for a given truth, (cells,) float64.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    true_counts
        (cells + 1,) int64, of all devices asked.
    paired
        n, devices received in every round; with none, the standard error is infinite.
    """
    asked, rounds = int(true_counts.sum()), mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.std_error(true_counts, asked=[asked] * rounds, counted=[paired] * rounds)
    own, truth = mechanism.std_error(true_counts) ** 2, true_counts[1:].astype(np.float64)
    # The variance of N/n times a hypergeometric count, (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).
    thinning = asked / paired * (asked - paired) / max(asked - 1, 1) * truth * (1.0 - truth / asked)
    return np.sqrt(own * (asked / paired) + thinning)


def paired_variance(mechanism: LocalMechanism, *, paired: int, asked: int) -> QuadraticVariance:
    """Return the variance of the paired estimate as a function of the truth Y of a cell.

    Devices answer independently, so on an ideal channel Var(Ŷ_n) is the sum of one term per device: v₁ in the cell, v₀
    elsewhere. On average over the sample it is n/N of the variance of all N, and Y_n is hypergeometric:

    Var(Ŷ) = (N/n)(Yv₁ + (N − Y)v₀) + (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).

    v₀ and v₁ are computed by the mechanism, for one device outside and for one in each cell. Sampling Privacy has
    v₀ = 0, so no term of its variance grows with N; this is the purpose of pairing.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    paired, asked
        n ≥ 1 and N.
    """
    elsewhere, inside = _single_variances(mechanism)
    rate = asked / paired
    sample = rate * (asked - paired) / max(asked - 1, 1)
    return QuadraticVariance(
        constant=rate * asked * elsewhere, linear=rate * (inside - elsewhere) + sample, square=-sample / asked
    )


def _single_variances(mechanism: LocalMechanism) -> tuple[FloatArray, FloatArray]:
    """Return the variance that one device outside a cell, and one in it, adds to the estimate, (cells,) each."""
    alone, each = np.zeros((2, mechanism.cells + 1), dtype=np.int64)
    alone[0], each[1:] = 1, 1
    elsewhere = mechanism.std_error(alone) ** 2
    return elsewhere, mechanism.std_error(each) ** 2 - (mechanism.cells - 1) * elsewhere

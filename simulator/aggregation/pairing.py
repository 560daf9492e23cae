"""Pairing: only devices heard in every round are counted, so that the noise of the rounds cancels again."""

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, Estimate, LocalMechanism, QuadraticVariance
from mechanisms.local.parts.count_law import CountLaw
from mechanisms.local.parts.heard import Heard, estimate_between
from mechanisms.local.parts.intervals import invert_tails

PSEUDONYM_NBYTES = 16
"""A one-time pseudonym as sent: 128 random bits, so that no two of 10⁹ devices have one with probability 10⁻²⁰."""


def draw_pseudonyms(n: int, *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw n different one-time pseudonyms, (n,) int64; simulated with 63 bits, drawn again while two are alike."""
    while True:
        pseudonyms = rng.integers(0, 2**63 - 1, size=n, dtype=np.int64)
        if len(np.unique(pseudonyms)) == n:
            return pseudonyms


def estimate_paired(mechanism: LocalMechanism, counts: Counts, *, paired: int, asked: int) -> Estimate:
    """Estimate all devices asked from the tallies of those heard in every round (papers.md, item 6).

    n of N devices were heard in all rounds; to the mechanism they are a population of its own that was heard whole,
    so Ŷ = (N/n)·Ŷ_n. With every device's coins independent of the channel, the n are a simple random sample.

    Parameters
    ----------
    mechanism
        Whose reports were counted.
    counts
        (rounds, *tally_shape) int64, of the n devices alone.
    paired, asked
        n and N.

    Returns
    -------
    Estimate
        Unbiased. The mechanism's own interval where all N were heard, or where it has one round, which pairs with
        itself; else the interval of the law of the count, thinning included.
    """
    rounds = mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.estimate(counts, counted=[paired] * rounds, asked=[asked] * rounds)
    within = mechanism.estimate(counts, counted=[paired] * rounds, asked=[paired] * rounds)
    count = within.count * (asked / paired)
    variance = paired_variance(mechanism, paired=paired, asked=asked)
    elsewhere, inside = _single_variances(mechanism)
    # A device in the cell that adds 1/π or 0 has a variance of 1/π − 1.
    heard, step = Heard((asked,), (paired,), truth_round=1), 1.0 + inside
    if not elsewhere.any():
        none = np.zeros((3, len(step)))
        known = np.zeros(len(step), dtype=np.int64)
        law = CountLaw(asked, paired, 1.0 / step, none[0], known, none[0], asked, none)
        ends = law.invert(np.clip(np.rint(within.count / step), 0, paired).astype(np.int64))
    else:
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), step * (asked / paired), asked)
    return estimate_between(count, variance, ends, heard)


def paired_std_error(mechanism: LocalMechanism, true_counts: Counts, *, paired: int) -> npt.NDArray[np.float64]:
    """Return theory's standard error of that estimate from the truth, (cells,) float64.

    Parameters
    ----------
    mechanism
        Whose.
    true_counts
        (cells + 1,) int64, of all devices asked.
    paired
        n, devices heard in every round; infinite where there are none.
    """
    asked, rounds = int(true_counts.sum()), mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.std_error(true_counts, asked=[asked] * rounds, counted=[paired] * rounds)
    truth = true_counts[1:].astype(np.float64)
    own = mechanism.std_error(true_counts) ** 2
    variance: npt.NDArray[np.float64] = own * (asked / paired) + _thinning(truth, paired=paired, asked=asked)
    return np.sqrt(variance)


def paired_variance(mechanism: LocalMechanism, *, paired: int, asked: int) -> QuadraticVariance:
    """Return the variance of the paired estimate as a function of the truth Y of a cell.

    Devices answer independently, so on an ideal channel Var(Ŷ_n) is what each adds: v₁ in the cell, v₀ elsewhere.
    Over the sample it is on average n/N of what all N would have, and Y_n is hypergeometric:

    Var(Ŷ) = (N/n)(Yv₁ + (N − Y)v₀) + (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).

    The two v are asked of the mechanism, of one device outside and of one in each cell. Sampling Privacy has v₀ = 0:
    nothing of it grows with N, which is what pairing is for.

    Parameters
    ----------
    mechanism
        Whose.
    paired, asked
        n ≥ 1 and N.
    """
    elsewhere, inside = _single_variances(mechanism)
    rate = asked / paired
    sample = rate * (asked - paired) / max(asked - 1, 1)
    return QuadraticVariance(
        constant=rate * asked * elsewhere, linear=rate * (inside - elsewhere) + sample, square=-sample / asked
    )


def _single_variances(mechanism: LocalMechanism) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what one device outside the cell, and one in it, adds to the variance of its estimate, (cells,) each."""
    alone, each = np.zeros((2, mechanism.cells + 1), dtype=np.int64)
    alone[0], each[1:] = 1, 1
    elsewhere = mechanism.std_error(alone) ** 2
    return elsewhere, mechanism.std_error(each) ** 2 - (mechanism.cells - 1) * elsewhere


def _thinning(truth: npt.NDArray[np.float64], *, paired: int, asked: int) -> npt.NDArray[np.float64]:
    """Return (N/n)·Y(1 − Y/N)·(N − n)/(N − 1): the variance of N/n times a hypergeometric count."""
    factor = asked / paired * (asked - paired) / max(asked - 1, 1)
    spread: npt.NDArray[np.float64] = factor * truth * (1.0 - truth / asked)
    return spread

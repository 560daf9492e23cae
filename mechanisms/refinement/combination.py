"""Linear combination of several queries' estimates with least variance, and the variance of an estimate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.intervals import QuadraticVariance, score_interval
from mechanisms.local.mechanism import Counts
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.refinement.projections import Properties, RefinedEstimate

COMBINE = Properties("combine", non_negative=False, ordered=False)


@dataclass(frozen=True, eq=False)
class Combination:
    """The combined estimate of several queries, and its weights.

    Parameters
    ----------
    estimate : RefinedEstimate
        Unbiased if no cell's count changed over the queries; `std_error` and the interval are for that case.
    weights : (queries, cells) float64
        Weight of each query's estimate; the weights of each cell sum to 1.
    """

    estimate: RefinedEstimate
    weights: NDArray[np.float64]

    def drift(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bias, (cells,), for true counts `truth`, (queries, cells): Σ w_t·Y_t − Y_T.

        Exact, given the weights.
        """
        return np.asarray((self.weights * truth).sum(axis=0) - truth[-1])


def minimum_variance_weights(variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights, summing to 1, for which a sum of uncorrelated estimates has least variance.

    w_t = (1/s_t²)/Σ(1/s_u²): the best linear unbiased estimator of one number estimated several times (Gauss-Markov;
    by Lagrange, 2·w_t·s_t² is the same for all t).

    Parameters
    ----------
    variance : (queries, cells) float64
        s²; 0 for an exact estimate, infinite for one without information.

    Returns
    -------
    (queries, cells) float64
        Exact estimates share all the weight. Estimates without information have none, unless there are no others.

    Raises
    ------
    ParameterError
        If a variance is negative or NaN, or there is no query.
    """
    s2 = np.asarray(variance, dtype=np.float64)
    if s2.ndim != 2 or not len(s2):
        raise ParameterError("variance", "must have one row per query, at least one", s2.shape)
    if not (s2 >= 0).all():
        raise ParameterError("variance", "must not be negative", float(s2[~(s2 >= 0)][0]))
    least = s2.min(axis=0)
    # In units of the least variance, so that a very small or large variance has a finite reciprocal.
    with np.errstate(divide="ignore", invalid="ignore"):
        informative = np.where(least > 0, least / s2, np.where(s2 == 0, 1.0, 0.0))
    share = np.where(np.isinf(least), 1.0, informative)
    return np.asarray(share / share.sum(axis=0))


def combine(counts: NDArray[np.float64], laws: Sequence[QuadraticVariance], *, asked: int) -> Combination:
    """Combine the estimates of several queries into one estimate for the last query.

    **Independence.** Given the truth, the errors of the queries are independent where every query uses fresh
    randomness. A mechanism that keeps bits from query to query makes the same errors in all of them. Its errors neither
    average out nor have the variance stated here, so its estimates must not be combined in this way.

    **Which variance.** The variance of an estimate depends on the count it estimates. Weights by each estimate's own
    estimated variance prefer low estimates and are biased. For Sampling Privacy, whose variance is
    Y(1−π_s)/π_s, they give a harmonic mean of the estimates, which is too low by about (1−π_s)/π_s·(T−1)/T vehicles
    in busy cells. So the variances of all queries are taken at one pooled count of the cell, the mean of the T
    estimates within 0 and `asked`. Then w_t depends on the estimates only through the dependence of the variances'
    ratios on Y. Where the queries have the same variance law, or proportional ones, it does not depend on the
    estimates, and the combination is exactly unbiased for a constant count.

    **Drift.** If the count changes, the combination is biased for the count of the last query, by `Combination.drift`.
    Neither the standard error nor the interval includes this bias.

    Parameters
    ----------
    counts : (queries, cells) float64
        Unbiased estimates, oldest first.
    laws : sequence of QuadraticVariance
        Each query's variance as a function of the count; see `variance_law`.
    asked : int
        Devices asked in the last query.

    Returns
    -------
    Combination
        With `std_error` at the pooled count and a score interval, both for a constant count.

    Raises
    ------
    ParameterError
        If there is not one law for each query.
    """
    asked = check_integer("asked", asked, at_least=0)
    x = np.asarray(counts, dtype=np.float64)
    if x.ndim != 2 or len(x) != len(laws) or not len(x):
        raise ParameterError("laws", f"must be one per query, for counts of shape {x.shape}", len(laws))
    received = np.array([np.isfinite(law.std_error(x[0])).all() for law in laws])
    if not received.any():
        cells = x.shape[1]
        silent = RefinedEstimate(
            x[-1].copy(), np.full(cells, np.inf), np.zeros(cells), np.full(cells, float(asked)), "score", COMBINE
        )
        return Combination(silent, np.full(x.shape, 1.0 / len(x)))
    pooled = np.clip(x[received].mean(axis=0), 0.0, float(asked))
    weights = minimum_variance_weights(np.square([law.std_error(pooled) for law in laws]))
    law = _law_of_sum(weights, laws, received)
    count = (weights * x).sum(axis=0)
    lower, upper = score_interval(count, law, float(asked))
    return Combination(RefinedEstimate(count, law.std_error(pooled), lower, upper, "score", COMBINE), weights)


def spread(weights: NDArray[np.float64], std_error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of a combination, (cells,), from the queries' own, (queries, cells)."""
    used = np.where(weights > 0, std_error, 0.0)
    return np.asarray(np.sqrt(np.square(weights * used).sum(axis=0)))


def _law_of_sum(
    weights: NDArray[np.float64], laws: Sequence[QuadraticVariance], received: NDArray[np.bool_]
) -> QuadraticVariance:
    """Return Σ w_t²·Var_t as a function of the count; queries in which nothing was received have no weight."""
    parts = [(w * w, law) for w, law, any_received in zip(weights, laws, received, strict=True) if any_received]
    return QuadraticVariance(
        constant=np.sum([share * law.constant for share, law in parts], axis=0),
        linear=np.sum([share * law.linear for share, law in parts], axis=0),
        square=np.sum([share * law.square for share, law in parts], axis=0),
    )


# Greatest deviation of a variance from a quadratic that counts as rounding, as a share of the variance.
ROUNDING = 1e-9

Theory: TypeAlias = Callable[[Counts], NDArray[np.float64]]
"""Function from the (cells + 1,) truth to the standard error in each cell, given the channel of one query."""


def variance_law(theory: Theory, *, cells: int, devices: int) -> QuadraticVariance:
    """Return Var(Ŷ) = a + bY + cY² of each cell.

    An aggregator knows the mechanism, the devices asked in each round and the number of devices counted. So it knows
    the theory, but it does not know Y. The theory, exact at every truth, is evaluated at Y = 0, m and 2m in as many
    cells at once as the number of devices allows. Its value at 3m is checked against the quadratic.

    Parameters
    ----------
    theory : callable
        As `LocalMechanism.std_error`, given what was asked and counted. A cell's standard error must depend on the
        truth through the cell's own count and the number of devices alone.
    cells, devices : int
        V, and N, the devices whose cells are estimated.

    Returns
    -------
    QuadraticVariance
        Coefficients (cells,); a is infinite where nothing was received.

    Raises
    ------
    ParameterError
        If there is no theory (NaN), or the variance is not quadratic.
    """
    check_integer("cells", cells, at_least=1)
    check_integer("devices", devices, at_least=0)
    constant = _variance(theory, 0, cells=cells, devices=devices)
    if devices == 0 or np.isinf(constant).any():
        return QuadraticVariance(constant, np.zeros(cells), np.zeros(cells))
    if devices == 1:  # Y is 0 or 1 only, so a line suffices
        return QuadraticVariance(constant, _variance(theory, 1, cells=cells, devices=1) - constant, np.zeros(cells))
    step = max(1, devices // (2 * cells))
    once, twice = (_variance(theory, each, cells=cells, devices=devices) for each in (step, 2 * step))
    bend = twice - 2.0 * once + constant
    bend[np.abs(bend) <= ROUNDING * np.maximum(twice, np.maximum(once, constant))] = 0.0
    square = bend / (2.0 * step * step)
    law = QuadraticVariance(constant, (once - constant) / step - square * step, square)
    if devices >= 3 * step:
        truth = np.zeros(cells + 1, dtype=np.int64)
        truth[0], truth[1] = devices - 3 * step, 3 * step
        theirs, ours = float(theory(truth)[0]), float(law.std_error(np.full(cells, 3.0 * step))[0])
        if not np.isclose(theirs, ours, rtol=1e-6, atol=1e-9):
            raise ParameterError("theory", "must have a variance that is quadratic in the count", [ours, theirs])
    return law


def _variance(theory: Theory, each: int, *, cells: int, devices: int) -> NDArray[np.float64]:
    """Return the variance in every cell when it holds `each` devices, (cells,)."""
    together = cells if each == 0 else min(cells, devices // each)
    variances = np.empty(cells)
    for start in range(0, cells, together):
        held = slice(start, min(start + together, cells))
        truth = np.zeros(cells + 1, dtype=np.int64)
        truth[1:][held] = each
        truth[0] = devices - truth.sum()
        variances[held] = np.square(theory(truth))[held]
    if np.isnan(variances).any():
        raise ParameterError("theory", "must return a known standard error", "NaN")
    return variances

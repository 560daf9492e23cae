"""Checks of estimates against theory: bias, standard error, coverage, and the distribution of sampled counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from mechanisms.conformance.bounds import (
    SAME_LAW_COMPARISONS,
    mean_interval,
    mean_reach,
    row_keys,
    same_law,
    square_reach,
)
from mechanisms.conformance.findings import Findings, SkippedCheckError
from mechanisms.conformance.harness import CROWD, HELD, AffineEstimator, Harness, place_of, truth_of
from mechanisms.local.mechanism import Counts

JOINT = "exact joint"
# Devices of each truth in the crowd whose sampled counts a thorough check compares in spread.
IN_EACH = 10**6


def check_sample_law(trial: Harness, findings: Findings) -> None:
    """Expect that counts from sample_counts and from reports have one distribution, jointly or for each cell.

    Few devices are used, because they have few outcomes: the comparison then covers the whole joint distribution over
    outputs, cells and rounds. A thorough check also compares the spread of the counts of a large crowd.
    """
    mechanism, rng = trial.mechanism, trial.generator("sample law")
    joint = getattr(mechanism, "sample_law", None) == JOINT
    if not joint:
        findings.note("compared cell by cell, all rounds of a cell together")
    crowds = [np.array([0, 1, trial.cells], dtype=np.int32), np.array([1, 1], dtype=np.int32)]
    parts = [None] if joint else list(range(trial.shape[0]))
    comparisons = len(crowds) * len(parts) * SAME_LAW_COMPARISONS
    single = trial.alpha(findings, comparisons + (trial.rounds * int(np.prod(trial.shape)) if trial.thorough else 0))
    alpha = single * SAME_LAW_COMPARISONS
    repeats, least = max(400, trial.calls // 5), 1.0
    for truth in crowds:
        by_report = trial.counts(truth, 2 * repeats, rng=rng)
        true_counts = np.bincount(truth, minlength=trial.cells + 1).astype(np.int64)
        by_count = np.stack([mechanism.sample_counts(true_counts, rng=rng) for _ in range(repeats)])
        where = f"of devices in {truth.tolist()}"
        for part in parts:
            likely = same_law(_outcomes(by_report, part), _outcomes(by_count, part))
            least = min(least, likely)
            of = "" if part is None else f" of index {part}"
            findings.expect(
                likely >= alpha, f"sample_counts{of} and reports {where} differ in distribution, p below {likely:.1g}"
            )
    findings.figures["least p-value"] = least
    if trial.thorough:
        _check_spread(trial, findings, alpha=single)


def _check_spread(trial: Harness, findings: Findings, *, alpha: float) -> None:
    """Expect of sampled counts of a crowd of millions the variance that independent devices have.

    It is the sum over the devices; that of one device of each truth is bounded from its reports.
    """
    rng, size = trial.generator("spread"), trial.rounds * int(np.prod(trial.shape))
    crowd = np.full(trial.cells + 1, IN_EACH, dtype=np.int64)
    of_device, reach = np.zeros(size), np.zeros(size)
    for cell in range(trial.cells + 1):
        truth = np.full(min(trial.devices, HELD // size), cell, dtype=np.int32)
        reports = trial.vectors(truth, rng=rng).reshape(len(truth), size)
        squares = (reports - reports.mean(axis=0)) ** 2
        lower, upper = mean_interval(squares, alpha=alpha / 2 / (trial.cells + 1))
        of_device, reach = of_device + squares.mean(axis=0), reach + (upper - lower) / 2
    drawn = max(trial.devices // 20, FEWER)
    counts = np.stack([trial.mechanism.sample_counts(crowd, rng=rng).ravel() for _ in range(drawn)])
    off = counts - counts.mean(axis=0)
    variance = IN_EACH * of_device
    # Sums of millions are normal: no single device matters.
    most = square_reach(off, variance, step=np.zeros(size), alpha=alpha / 2) + IN_EACH * reach
    found = (off**2).sum(axis=0) / (drawn - 1)
    for i in np.flatnonzero(np.abs(found - variance) > most):
        findings.fault(
            f"sample_counts of {crowd.sum():,} devices vary by {np.sqrt(found[i]):.4g} in entry {i + 1}, reports by "
            f"{np.sqrt(variance[i]):.4g}"
        )


def _outcomes(counts: NDArray[np.int64], part: int | None) -> NDArray[np.int64]:
    """Return a key for the whole of (n, rounds, *tally_shape) counts, or for one index of their first tally axis."""
    return row_keys(counts if part is None else counts[:, :, part])


# Intervals are stated for 95 %. Exact ones cover at least that; score intervals approximately, if the noise of many
# devices adds up.
NOMINAL = 0.95
SCORE_SLACK = 0.05
FEWER = 400
# The crowd of a thorough check, and the numbers of its reports that arrive.
LARGE = 240
ARRIVED = (LARGE, 2 * LARGE // 3)
LARGE_SLACK = 0.02
# In large crowds, the mean of the variances stated with estimates may differ from the variance at the truth by this
# share.
PLUG_IN_SLACK = 0.02


def check_no_bias(trial: Harness, findings: Findings) -> None:
    """Expect that a device's contribution to a cell's estimate is 1 on average if it is in the cell, else 0."""
    _require_estimate(trial)
    if trial.contributions is None:
        _check_queries(trial, findings, variances=False)
        return
    alpha = trial.alpha(findings, (trial.cells + 1) * trial.cells)
    worst = 0.0
    for cell, added in enumerate(trial.contributions):
        lower, upper = mean_interval(added, alpha=alpha)
        expected = np.arange(1, trial.cells + 1) == cell
        for v in np.flatnonzero((expected < lower) | (expected > upper)):
            findings.fault(
                f"a device {place_of(cell)} adds {added[:, v].mean():.4g} to the estimate of cell {v + 1}, not "
                f"{int(expected[v])}, within {(upper[v] - lower[v]) / 2:.2g}",
            )
        worst = max(worst, float(np.abs(added.mean(axis=0) - expected).max()))
    findings.figures["greatest deviation"] = worst


def check_standard_error(trial: Harness, findings: Findings) -> None:
    """Expect the stated variance of devices' contributions for each truth, and its sum in a mixed crowd."""
    _require_estimate(trial)
    if not trial.states_theory:
        raise SkippedCheckError("the mechanism states no std_error of the truth")
    if trial.contributions is None:
        _check_queries(trial, findings, variances=True)
        return
    alpha = trial.alpha(findings, (trial.cells + 1) * trial.cells)
    stated, worst = [], 0.0
    for cell, added in enumerate(trial.contributions):
        crowd = np.zeros(trial.cells + 1, dtype=np.int64)
        crowd[cell] = CROWD
        stated.append(trial.mechanism.std_error(crowd) ** 2 / CROWD)
        squares = (added - (np.arange(1, trial.cells + 1) == cell)) ** 2
        lower, upper = mean_interval(squares, alpha=alpha)
        for v in np.flatnonzero((stated[-1] < lower) | (stated[-1] > upper)):
            findings.fault(
                f"a device {place_of(cell)} adds a variance of {squares[:, v].mean():.4g} to cell {v + 1}, stated as "
                f"{stated[-1][v]:.4g}, within {(upper[v] - lower[v]) / 2:.2g}",
            )
        sure = stated[-1] > 0
        if sure.any():
            worst = max(worst, float(np.abs(squares.mean(axis=0)[sure] / stated[-1][sure] - 1.0).max()))
    for name, crowd in trial.populations().items():
        added_up = crowd @ np.stack(stated)
        close = np.allclose(trial.mechanism.std_error(crowd) ** 2, added_up, rtol=1e-6, atol=1e-9)
        findings.expect(close, f"std_error² of a crowd {name} is not the sum over its devices")
    findings.figures["greatest relative deviation"] = worst


def check_loss(trial: Harness, findings: Findings) -> None:
    """Expect that the estimate stays unbiased, with the stated error, if a random part of the reports is lost."""
    _require_estimate(trial)
    rng = trial.generator("loss")
    crowd = trial.populations()["mixed"]
    rates = [(2 * CROWD // 3,) * trial.rounds]
    if trial.rounds > 1:
        rates.append((CROWD, *(CROWD // 2,) * (trial.rounds - 1)))
    alpha = trial.alpha(findings, 2 * len(rates) * trial.cells)
    for counted in rates:
        counts = trial.counts(truth_of(crowd), trial.repeats, rng=rng, counted=counted)
        estimates = _estimates(trial, counts, counted, trial.fit(counted=counted))
        theory = None
        if trial.states_theory:
            theory = trial.mechanism.std_error(crowd, asked=(CROWD,) * trial.rounds, counted=counted)
        where = f"with {' and '.join(map(str, counted))} of {CROWD} devices received"
        step = trial.step * CROWD / min(counted)
        compare_moments(findings, estimates, crowd, theory, step=step, alpha=alpha, where=where)


def check_intervals(trial: Harness, findings: Findings) -> None:
    """Expect the stated coverage of intervals; for score intervals within five per cent, if noise is near normal.

    A thorough check also uses large crowds, with and without loss. There the coverage of score intervals must be within
    two per cent. The standard errors of the estimates must agree with theory, or must not be too small if the mechanism
    states no `std_error`.
    """
    _require_estimate(trial)
    rng = trial.generator("intervals")
    populations, full = trial.populations(), (CROWD,) * trial.rounds
    alpha = trial.alpha(findings, (len(populations) + (2 * len(ARRIVED) if trial.thorough else 0)) * trial.cells)
    for name, crowd in populations.items():
        counts = trial.counts(truth_of(crowd), min(FEWER, trial.repeats), rng=rng)
        estimates = [_estimate(trial, row, full) for row in counts]
        _expect_coverage(
            findings, estimates, crowd, step=trial.step, slack=SCORE_SLACK, alpha=alpha, where=f"of a crowd {name}"
        )
    if not trial.thorough:
        return
    crowd = np.full(trial.cells + 1, LARGE // (trial.cells + 1), dtype=np.int64)
    crowd[0] += LARGE - crowd.sum()
    for arrived in ARRIVED:
        asked, counted = (LARGE,) * trial.rounds, (arrived,) * trial.rounds
        counts = trial.counts(truth_of(crowd), max(FEWER, trial.devices // 250), rng=rng, counted=counted)
        estimates = [trial.mechanism.estimate(row, counted=counted, asked=asked) for row in counts]
        where, step = f"with {arrived} of {LARGE} devices received", trial.step * LARGE / arrived
        _expect_coverage(findings, estimates, crowd, step=step, slack=LARGE_SLACK, alpha=alpha, where=where)
        stated = np.stack([e.std_error**2 for e in estimates])
        low, high = mean_interval(stated, alpha=alpha / 2)
        if trial.states_theory:
            variance = trial.mechanism.std_error(crowd, asked=asked, counted=counted) ** 2
            least, most = variance * (1 - PLUG_IN_SLACK), variance * (1 + PLUG_IN_SLACK)
        else:
            off: NDArray[np.float64] = np.stack([e.count for e in estimates]) - crowd[1:]
            variance = (off**2).mean(axis=0)
            step = np.where(np.isfinite(step), step, 2.0 * np.sqrt(variance))
            least = variance - square_reach(off, variance, step=step, alpha=alpha / 2)
            most = np.full(trial.cells, np.inf)
        for v in np.flatnonzero((high < least) | (low > most)):
            findings.fault(
                f"estimates of cell {v + 1} state a standard error of {np.sqrt(stated[:, v].mean()):.4g}, but it is "
                f"{np.sqrt(variance[v]):.4g}, {where}"
            )


def _expect_coverage(
    findings: Findings,
    estimates: list[Any],
    crowd: Counts,
    *,
    step: NDArray[np.float64],
    slack: float,
    alpha: float,
    where: str,
) -> None:
    """Expect that the intervals of one crowd's estimates have the stated coverage, less `slack` for score intervals."""
    covered = np.stack([(e.lower <= crowd[1:]) & (crowd[1:] <= e.upper) for e in estimates]).sum(axis=0)
    kind = getattr(estimates[0], "interval", "score")
    judged = np.ones(len(covered), dtype=np.bool_)
    nominal = NOMINAL - slack if kind == "score" else NOMINAL
    if kind == "score":
        judged = np.stack([e.count for e in estimates]).std(axis=0) > 3.0 * np.nan_to_num(step, nan=np.inf)
    for v in np.flatnonzero(judged):
        often = f"{covered[v]} of {len(estimates)} {kind} intervals cover cell {v + 1} {where}"
        findings.expect(bdtr(int(covered[v]), len(estimates), nominal) >= alpha, often)
        least = float(findings.figures.get("least coverage", 1.0))
        findings.figures["least coverage"] = min(least, float(covered[v]) / len(estimates))


def check_sampled_estimates(trial: Harness, findings: Findings) -> None:
    """Expect unbiased estimates with the stated error from sample_counts, in small and very large crowds."""
    _require_estimate(trial)
    rng, populations = trial.generator("sampled estimates"), trial.populations()
    alpha = trial.alpha(findings, (2 * len(populations) + 1) * trial.cells)
    asked = (CROWD,) * trial.rounds
    for name, crowd in populations.items():
        repeats = max(100, trial.calls // 24)
        counts = np.stack([trial.mechanism.sample_counts(crowd, rng=rng) for _ in range(repeats)])
        # The map fitted to reports holds for counts that devices can cause jointly. Counts drawn for each cell
        # separately need not be such counts.
        joint = getattr(trial.mechanism, "sample_law", None) == JOINT
        estimates = _estimates(trial, counts, asked, trial.ideal if joint else None)
        theory = trial.mechanism.std_error(crowd) if trial.states_theory else None
        where = f"from sample_counts of a crowd {name}"
        compare_moments(findings, estimates, crowd, theory, step=trial.step, alpha=alpha, where=where)
    if not trial.states_theory:
        return
    crowd = np.full(trial.cells + 1, 10**6, dtype=np.int64)
    crowd[0] = 10**7
    estimate = _estimate(trial, trial.mechanism.sample_counts(crowd, rng=rng), (int(crowd.sum()),) * trial.rounds).count
    log = np.log(2.0 / alpha)
    reach = np.sqrt(2.0 * log) * trial.mechanism.std_error(crowd) + np.nan_to_num(trial.step, nan=1e3) * log
    off = np.abs(estimate - crowd[1:])
    for v in np.flatnonzero(off > reach + 1e-9 * crowd[1:]):
        findings.fault(f"sample_counts of {crowd.sum():,} devices miss cell {v + 1} by {off[v]:.4g}")


def compare_moments(
    findings: Findings,
    estimates: NDArray[np.float64],
    true_counts: Counts,
    theory: NDArray[np.float64] | None,
    *,
    step: NDArray[np.float64],
    alpha: float,
    where: str,
) -> None:
    """Compare (repeats, cells) estimates with the truth, and their spread with the theoretical standard error."""
    off = estimates - true_counts[1:]
    if theory is None:
        lower, upper = mean_interval(off, alpha=alpha)
        biased = (lower > 0) | (upper < 0)
        for v in np.flatnonzero(biased):
            findings.fault(f"the estimate of cell {v + 1} is off by {off[:, v].mean():.3g} {where}")
        return
    variance = theory**2
    # If the contribution of single devices is not known, allow for the kurtosis of a sum of few of them.
    step = np.where(np.isfinite(step), step, 2.0 * theory)
    mean, square = off.mean(axis=0), (off**2).mean(axis=0)
    mean_most = mean_reach(off, variance, alpha=alpha)
    square_most = square_reach(off, variance, step=step, alpha=alpha)
    for v in np.flatnonzero(np.abs(mean) > mean_most):
        findings.fault(
            f"the estimate of cell {v + 1} is off by {mean[v]:.3g}, more than {mean_most[v]:.2g}, {where}",
        )
    for v in np.flatnonzero(np.abs(square - variance) > square_most):
        findings.fault(
            f"the standard error of cell {v + 1} is {np.sqrt(square[v]):.4g}, stated as {theory[v]:.4g}, {where}",
        )


def _check_queries(trial: Harness, findings: Findings, *, variances: bool) -> None:
    """Compare whole queries of every population, for estimates that are not an affine map of the counts."""
    findings.note(
        "the estimate is not an affine map of the counts: whole queries are compared instead, with less power"
    )
    rng, populations = trial.generator("whole queries"), trial.populations()
    alpha = trial.alpha(findings, 2 * len(populations) * trial.cells)
    for name, crowd in populations.items():
        counts = trial.counts(truth_of(crowd), trial.repeats, rng=rng)
        estimates = _estimates(trial, counts, (CROWD,) * trial.rounds, None)
        theory = trial.mechanism.std_error(crowd) if variances else None
        compare_moments(findings, estimates, crowd, theory, step=trial.step, alpha=alpha, where=f"in a crowd {name}")


def _estimate(trial: Harness, counts: Counts, asked: tuple[int, ...]) -> Any:
    return trial.mechanism.estimate(counts, counted=asked, asked=asked)


def _estimates(
    trial: Harness, counts: NDArray[np.int64], counted: tuple[int, ...], affine: AffineEstimator | None
) -> NDArray[np.float64]:
    """Return the estimates of (repeats, rounds, *tally_shape) counts, (repeats, cells)."""
    if affine is not None:
        return affine(counts)
    asked = (CROWD,) * trial.rounds
    return np.stack([trial.mechanism.estimate(row, counted=counted, asked=asked).count for row in counts])


def _require_estimate(trial: Harness) -> None:
    """Skip the check if the mechanism states that there is no estimate."""
    if trial.why_no_estimate:
        raise SkippedCheckError(trial.why_no_estimate)

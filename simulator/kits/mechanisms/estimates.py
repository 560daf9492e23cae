"""Checks of estimates against theory: bias, standard error, coverage, and the distribution of sampled counts."""

from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from mechanisms.local.mechanism import Counts
from simulator.kits.findings import Findings
from simulator.kits.mechanisms import bounds
from simulator.kits.mechanisms.harness import CROWD, HELD, AffineEstimator, Harness, place_of, truth_of

Floats = NDArray[np.float64]

# Devices of each truth in the crowd whose sampled counts a thorough check compares in spread.
IN_EACH = 10**6
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


class TriedCrowd(NamedTuple):
    """A crowd whose estimates are compared with its true counts.

    Parameters
    ----------
    true_counts : (cells + 1,) int64
        Devices outside and in each cell.
    step : (cells,) float64
        The greatest change of an estimate by one device; NaN if it is unknown.
    alpha : float
        Level of each comparison.
    where : str
        Which crowd this is, in words.
    """

    true_counts: Counts
    step: Floats
    alpha: float
    where: str


def check_no_bias(trial: Harness, findings: Findings) -> None:
    """Expect that a device's contribution to a cell's estimate is 1 on average if it is in the cell, else 0."""
    _require_estimate(trial)
    if trial.contributions is None:
        _check_queries(trial, findings, variances=False)
        return
    expected, fault = _own_cell(trial), "a device {} adds {:.4g} to the estimate of cell {}, not {:.0f}"
    _expect_means(trial, findings, trial.contributions, expected, fault, power=1)
    means = np.array([added.mean(axis=0) for added in trial.contributions])
    findings.figures["greatest deviation"] = float(np.abs(means - expected).max())


def check_standard_error(trial: Harness, findings: Findings) -> None:
    """Expect the stated variance of devices' contributions for each truth, and its sum in a mixed crowd."""
    _require_estimate(trial)
    if not trial.states_theory:
        raise SkipTest("the mechanism states no std_error of the truth")
    if trial.contributions is None:
        _check_queries(trial, findings, variances=True)
        return
    squares = [(added - expected) ** 2 for added, expected in zip(trial.contributions, _own_cell(trial), strict=True)]
    alone = CROWD * np.eye(trial.cells + 1, dtype=np.int64)
    stated = np.stack([trial.mechanism.std_error(crowd) ** 2 / CROWD for crowd in alone])
    fault = "a device {} adds a variance of {:.4g} to cell {}, stated as {:.4g}"
    _expect_means(trial, findings, squares, stated, fault, power=2)
    for name, crowd in trial.populations().items():
        close = np.allclose(trial.mechanism.std_error(crowd) ** 2, crowd @ stated, rtol=1e-6, atol=1e-9)
        findings.expect(close, f"std_error² of a crowd {name} is not the sum over its devices")
    sure = stated > 0
    ratios = np.array([square.mean(axis=0) for square in squares])[sure] / stated[sure]
    findings.figures["greatest relative deviation"] = float(np.abs(ratios - 1.0).max(initial=0.0))


def check_loss(trial: Harness, findings: Findings) -> None:
    """Expect that the estimate stays unbiased, with the stated error, if a random part of the reports is lost."""
    _require_estimate(trial)
    rng, true_counts = trial.generator("loss"), trial.populations()["mixed"]
    rates = [(2 * CROWD // 3,) * trial.rounds]
    if trial.rounds > 1:
        rates.append((CROWD, *(CROWD // 2,) * (trial.rounds - 1)))
    alpha = trial.alpha(findings, 2 * len(rates) * trial.cells)
    for counted in rates:
        counts = trial.counts(truth_of(true_counts), trial.repeats, rng=rng, counted=counted)
        estimates, theory = trial.estimates(counts, counted, AffineEstimator.fit(trial, counted)), None
        if trial.states_theory:
            theory = trial.mechanism.std_error(true_counts, asked=trial.full, counted=counted)
        where = f"with {' and '.join(map(str, counted))} of {CROWD} devices received"
        _expect_moments(
            findings, TriedCrowd(true_counts, trial.step * CROWD / min(counted), alpha, where), estimates, theory
        )


def check_intervals(trial: Harness, findings: Findings) -> None:
    """Expect the stated coverage of intervals; for score intervals within five per cent, if noise is near normal.

    A thorough check also uses large crowds, with and without loss. There the coverage of score intervals must be within
    two per cent. The standard errors of the estimates must agree with theory, or must not be too small if the mechanism
    states no `std_error`.
    """
    _require_estimate(trial)
    rng, populations = trial.generator("intervals"), trial.populations()
    alpha = trial.alpha(findings, (len(populations) + (2 * len(ARRIVED) if trial.thorough else 0)) * trial.cells)
    for name, true_counts in populations.items():
        counts = trial.counts(truth_of(true_counts), min(FEWER, trial.repeats), rng=rng)
        estimates = [trial.mechanism.estimate(row, counted=trial.full, asked=trial.full) for row in counts]
        crowd = TriedCrowd(true_counts, trial.step, alpha, f"of a crowd {name}")
        _expect_coverage(findings, crowd, estimates, slack=SCORE_SLACK)
    if not trial.thorough:
        return
    true_counts = np.full(trial.cells + 1, LARGE // (trial.cells + 1), dtype=np.int64)
    true_counts[0] += LARGE - true_counts.sum()
    for arrived in ARRIVED:
        received = {"asked": (LARGE,) * trial.rounds, "counted": (arrived,) * trial.rounds}
        repeats = max(FEWER, trial.devices // 250)
        counts = trial.counts(truth_of(true_counts), repeats, rng=rng, counted=received["counted"])
        estimates = [trial.mechanism.estimate(row, **received) for row in counts]
        where, step = f"with {arrived} of {LARGE} devices received", trial.step * LARGE / arrived
        crowd = TriedCrowd(true_counts, step, alpha, where)
        _expect_coverage(findings, crowd, estimates, slack=LARGE_SLACK)
        variance = trial.mechanism.std_error(true_counts, **received) ** 2 if trial.states_theory else None
        _expect_stated_errors(findings, crowd, estimates, variance)


def check_sampled_estimates(trial: Harness, findings: Findings) -> None:
    """Expect unbiased estimates with the stated error from sample_counts, in small and very large crowds."""
    _require_estimate(trial)
    mechanism, rng, populations = trial.mechanism, trial.generator("sampled estimates"), trial.populations()
    alpha = trial.alpha(findings, (2 * len(populations) + 1) * trial.cells)
    # The map fitted to reports holds for counts that devices can cause jointly. Counts drawn for each cell separately
    # need not be such counts.
    affine = trial.ideal if trial.joint else None
    for name, true_counts in populations.items():
        drawn = range(max(100, trial.calls // 24))
        counts = np.stack([mechanism.sample_counts(true_counts, rng=rng) for _ in drawn])
        theory = mechanism.std_error(true_counts) if trial.states_theory else None
        crowd = TriedCrowd(true_counts, trial.step, alpha, f"from sample_counts of a crowd {name}")
        _expect_moments(findings, crowd, trial.estimates(counts, trial.full, affine), theory)
    if not trial.states_theory:
        return
    large = np.full(trial.cells + 1, 10**6, dtype=np.int64)
    large[0] = 10**7
    everyone = (int(large.sum()),) * trial.rounds
    estimate = mechanism.estimate(mechanism.sample_counts(large, rng=rng), counted=everyone, asked=everyone).count
    log, off = np.log(2.0 / alpha), np.abs(estimate - large[1:])
    reach = np.sqrt(2.0 * log) * mechanism.std_error(large) + np.nan_to_num(trial.step, nan=1e3) * log
    for v in np.flatnonzero(off > reach + 1e-9 * large[1:]):
        findings.fault(f"sample_counts of {large.sum():,} devices miss cell {v + 1} by {off[v]:.4g}")


def check_sample_law(trial: Harness, findings: Findings) -> None:
    """Expect that counts from sample_counts and from reports have one distribution, jointly or for each cell.

    Few devices are used, because they have few outcomes: the comparison then covers the whole joint distribution over
    outputs, cells and rounds. A thorough check also compares the spread of the counts of a large crowd.
    """
    mechanism, rng = trial.mechanism, trial.generator("sample law")
    if not trial.joint:
        findings.note("compared cell by cell, all rounds of a cell together")
    crowds = [np.array([0, 1, trial.cells], dtype=np.int32), np.array([1, 1], dtype=np.int32)]
    parts = [None] if trial.joint else list(range(trial.shape[0]))
    comparisons = len(crowds) * len(parts) * bounds.SAME_LAW_COMPARISONS
    single = trial.alpha(findings, comparisons + (trial.size if trial.thorough else 0))
    repeats, least = max(400, trial.calls // 5), 1.0
    for truth in crowds:
        by_report = trial.counts(truth, 2 * repeats, rng=rng)
        by_count = np.stack([mechanism.sample_counts(trial.count(truth), rng=rng) for _ in range(repeats)])
        for part in parts:
            compared = (n if part is None else n[:, :, part] for n in (by_report, by_count))
            likely = bounds.same_law(*map(bounds.row_keys, compared))
            least = min(least, likely)
            of = "" if part is None else f" of index {part}"
            fault = f"sample_counts{of} and reports of devices in {truth.tolist()} differ in distribution"
            findings.expect(likely >= single * bounds.SAME_LAW_COMPARISONS, f"{fault}, p below {likely:.1g}")
    findings.figures["least p-value"] = least
    if trial.thorough:
        _check_spread(trial, findings, alpha=single)


def _check_spread(trial: Harness, findings: Findings, *, alpha: float) -> None:
    """Expect of sampled counts of a crowd of millions the variance that independent devices have.

    It is the sum over the devices; the variance of one device of each truth is bounded from its reports.
    """
    rng, size = trial.generator("spread"), trial.size
    crowd = np.full(trial.cells + 1, IN_EACH, dtype=np.int64)
    of_device, reach = np.zeros(size), np.zeros(size)
    for cell in range(trial.cells + 1):
        truth = np.full(min(trial.devices, HELD // size), cell, dtype=np.int32)
        reports = trial.vectors(truth, rng=rng).reshape(len(truth), size)
        squares = (reports - reports.mean(axis=0)) ** 2
        lower, upper = bounds.mean_interval(squares, alpha=alpha / 2 / (trial.cells + 1))
        of_device, reach = of_device + squares.mean(axis=0), reach + (upper - lower) / 2
    drawn = max(trial.devices // 20, FEWER)
    counts = np.stack([trial.mechanism.sample_counts(crowd, rng=rng).ravel() for _ in range(drawn)])
    off, variance = counts - counts.mean(axis=0), IN_EACH * of_device
    # Sums of millions are normal: no single device matters.
    most = bounds.square_reach(off, variance, step=np.zeros(size), alpha=alpha / 2) + IN_EACH * reach
    spread = (off**2).sum(axis=0) / (drawn - 1)
    for i in np.flatnonzero(np.abs(spread - variance) > most):
        vary = f"vary by {np.sqrt(spread[i]):.4g} in entry {i + 1}, reports by {np.sqrt(variance[i]):.4g}"
        findings.fault(f"sample_counts of {crowd.sum():,} devices {vary}")


def _own_cell(trial: Harness) -> Floats:
    """Return what a device of each truth should add to the estimate of each cell, (cells + 1, cells)."""
    return np.eye(trial.cells + 1)[:, 1:]


def _expect_means(
    trial: Harness, findings: Findings, samples: list[Floats], expected: Floats, fault: str, *, power: int
) -> None:
    """Expect the means of (devices, cells) samples of each truth, which are contributions to a power.

    `fault` is a template with fields for the place of a device, the mean, the cell, and what is expected.
    """
    alpha, widest = trial.alpha(findings, expected.size), np.ptp(np.concatenate(trial.contributions or samples), axis=0)
    for truth, (sample, stated) in enumerate(zip(samples, expected, strict=True)):
        # A report too rare for this truth's devices is seen from the devices of other truths.
        lower, upper = bounds.mean_interval(sample, alpha=alpha, widest=widest**power)
        for v in np.flatnonzero((stated < lower) | (stated > upper)):
            fault_of_cell = fault.format(place_of(truth), sample[:, v].mean(), v + 1, stated[v])
            findings.fault(f"{fault_of_cell}, within {(upper[v] - lower[v]) / 2:.2g}")


def _expect_coverage(findings: Findings, crowd: TriedCrowd, estimates: list[Any], *, slack: float) -> None:
    """Expect that the intervals of one crowd's estimates have the stated coverage, less `slack` for score intervals."""
    true, kind = crowd.true_counts[1:], getattr(estimates[0], "interval", "score")
    covered = np.stack([(e.lower <= true) & (true <= e.upper) for e in estimates]).sum(axis=0)
    judged, nominal = np.ones(len(covered), dtype=np.bool_), NOMINAL
    if kind == "score":
        spread, nominal = np.stack([e.count for e in estimates]).std(axis=0), NOMINAL - slack
        judged = spread > 3.0 * np.nan_to_num(crowd.step, nan=np.inf)
    for v in np.flatnonzero(judged):
        often = f"{covered[v]} of {len(estimates)} {kind} intervals cover cell {v + 1} {crowd.where}"
        findings.expect(bdtr(int(covered[v]), len(estimates), nominal) >= crowd.alpha, often)
        least = float(findings.figures.get("least coverage", 1.0))
        findings.figures["least coverage"] = min(least, float(covered[v]) / len(estimates))


def _expect_stated_errors(findings: Findings, crowd: TriedCrowd, estimates: list[Any], variance: Floats | None) -> None:
    """Expect that standard errors stated with estimates agree with theory, or without it are not too small."""
    stated = np.stack([e.std_error**2 for e in estimates])
    low, high = bounds.mean_interval(stated, alpha=crowd.alpha / 2)
    if variance is not None:
        least, most = variance * (1 - PLUG_IN_SLACK), variance * (1 + PLUG_IN_SLACK)
    else:
        off: Floats = np.stack([e.count for e in estimates]) - crowd.true_counts[1:]
        variance = (off**2).mean(axis=0)
        step = np.where(np.isfinite(crowd.step), crowd.step, 2.0 * np.sqrt(variance))
        least = variance - bounds.square_reach(off, variance, step=step, alpha=crowd.alpha / 2)
        most = np.full(len(least), np.inf)
    for v in np.flatnonzero((high < least) | (low > most)):
        fault = f"a standard error of {np.sqrt(stated[:, v].mean()):.4g}, but it is {np.sqrt(variance[v]):.4g}"
        findings.fault(f"estimates of cell {v + 1} state {fault}, {crowd.where}")


def _expect_moments(findings: Findings, crowd: TriedCrowd, estimates: Floats, theory: Floats | None) -> None:
    """Compare (repeats, cells) estimates with the truth, and their spread with the theoretical standard error."""
    off = estimates - crowd.true_counts[1:]
    mean, square = off.mean(axis=0), (off**2).mean(axis=0)
    if theory is None:
        lower, upper = bounds.mean_interval(off, alpha=crowd.alpha)
        for v in np.flatnonzero((lower > 0) | (upper < 0)):
            findings.fault(f"the estimate of cell {v + 1} is off by {mean[v]:.3g} {crowd.where}")
        return
    # If the contribution of single devices is not known, allow for the kurtosis of a sum of few of them.
    variance, step = theory**2, np.where(np.isfinite(crowd.step), crowd.step, 2.0 * theory)
    most = bounds.mean_reach(off, variance, alpha=crowd.alpha)
    for v in np.flatnonzero(np.abs(mean) > most):
        fault = f"the estimate of cell {v + 1} is off by {mean[v]:.3g}, more than {most[v]:.2g}"
        findings.fault(f"{fault}, {crowd.where}")
    most = bounds.square_reach(off, variance, step=step, alpha=crowd.alpha)
    for v in np.flatnonzero(np.abs(square - variance) > most):
        fault = f"the standard error of cell {v + 1} is {np.sqrt(square[v]):.4g}, stated as {theory[v]:.4g}"
        findings.fault(f"{fault}, {crowd.where}")


def _check_queries(trial: Harness, findings: Findings, *, variances: bool) -> None:
    """Compare whole queries of every population, for estimates that are not an affine map of the counts."""
    reason = "the estimate is not an affine map of the counts"
    findings.note(f"{reason}: whole queries are compared instead, with less power")
    rng, populations = trial.generator("whole queries"), trial.populations()
    alpha = trial.alpha(findings, 2 * len(populations) * trial.cells)
    for name, true_counts in populations.items():
        counts = trial.counts(truth_of(true_counts), trial.repeats, rng=rng)
        theory = trial.mechanism.std_error(true_counts) if variances else None
        crowd = TriedCrowd(true_counts, trial.step, alpha, f"in a crowd {name}")
        _expect_moments(findings, crowd, trial.estimates(counts, trial.full), theory)


def _require_estimate(trial: Harness) -> None:
    """Skip the check if the mechanism states that there is no estimate."""
    if trial.why_no_estimate:
        raise SkipTest(trial.why_no_estimate)

"""Sampled counts and individual reports: one law, in the sense the mechanism states."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.checks.bounds import SAME_LAW_COMPARISONS, row_keys, same_law
from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial

JOINT = "exact joint"


def check_sample_law(trial: Trial, findings: Findings) -> None:
    """Expect one law of few devices' counts, whole or cell by cell, from sample_counts and from reports.

    Few devices have few outcomes, so that everything a joint law says is seen: between outputs, cells and rounds.
    """
    mechanism, rng = trial.mechanism, trial.generator("sample law")
    joint = getattr(mechanism, "sample_law", None) == JOINT
    if not joint:
        findings.note("compared cell by cell, all rounds of a cell together")
    crowds = [np.array([0, 1, trial.cells], dtype=np.int32), np.array([1, 1], dtype=np.int32)]
    parts = [None] if joint else list(range(trial.shape[0]))
    comparisons = len(crowds) * len(parts) * SAME_LAW_COMPARISONS
    alpha = trial.alpha(findings, comparisons) * SAME_LAW_COMPARISONS
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
                likely >= alpha, f"sample_counts{of} and reports {where} differ in law, p below {likely:.1g}"
            )
    findings.figures["least p-value"] = least


def _outcomes(counts: NDArray[np.int64], part: int | None) -> NDArray[np.int64]:
    """Return a key for the whole of (n, rounds, *tally_shape) counts, or for one index of their first tally axis."""
    return row_keys(counts if part is None else counts[:, :, part])

"""Check of the likelihood by which attacks guess: its ratios are those of the frequencies of reports."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import COMMON, mean_interval, row_keys
from mechanisms.conformance.findings import Findings, SkippedCheckError
from mechanisms.conformance.harness import Harness
from mechanisms.inference.likelihood import report_law
from mechanisms.inference.report_law import NoLikelihoodError

Events = dict[str, NDArray[np.bool_]]
DECILES = 10
# Greatest number of entries of a tally whose values are events.
ENTRIES = 16
# Reports whose likelihood is compared with that of their encodings.
SOME = 500


def check_likelihood(trial: Harness, findings: Findings) -> None:
    """Expect, of each round and of all linked, the posterior of two truths that the reports of both have.

    Of two truths s and t with equally many reports, a report x is of t with probability P(x | t)/(P(x | s) + P(x | t)),
    which the likelihood determines. So among the reports of any event, chosen on one half of the sample, the share of
    those of t is the mean of these probabilities on the other half. Events are the most frequent reports, those more
    frequent under one truth, the values of each entry, and ranges of the stated probability.
    """
    rounds = tuple(range(1, trial.rounds + 1))
    views = dict.fromkeys([*((number,) for number in rounds), rounds])
    try:
        laws = {seen: report_law(trial.mechanism, seen) for seen in views}
    except NoLikelihoodError:
        words = "the mechanism has no log_likelihood: the project's attacks are not tried on it, which proves nothing"
        raise SkippedCheckError(words) from None
    rng = trial.generator("likelihood")
    samples, plain = [], []
    for cell in trial.audited:
        truth = np.full(trial.calls, cell, dtype=np.int32)
        coins = trial.toss(len(truth), rng=rng)
        plain.append([trial.mechanism.answer(number, truth, coins) for number in rounds])
        samples.append([trial.mechanism.encode(report) for report in plain[-1]])
    pairs = list(combinations(range(len(samples)), 2))
    judged = []
    for seen, law in laws.items():
        held = [[sample[number - 1] for number in seen] for sample in samples]
        logs = [law.log_likelihood(sample) for sample in held]
        where = f"of round {seen[0]}" if len(seen) == 1 else "of all rounds"
        raw = [law.log_likelihood([sample[number - 1][:SOME] for number in seen]) for sample in plain]
        same = all(_alike(one, other[:SOME]) for one, other in zip(raw, logs, strict=True))
        if not findings.expect(same, f"reports and their encodings differ in log_likelihood {where}"):
            return
        keys = [row_keys(np.stack(sample, axis=1)) for sample in held]
        for one, other in pairs:
            truths = np.array([trial.audited[one], trial.audited[other]])
            both = np.concatenate([logs[one], logs[other]])[:, truths]
            own = np.repeat([0, 1], trial.calls)
            name = f"{where} by devices in {truths[0]} and {truths[1]}"
            if not findings.expect(
                np.isfinite(both[np.arange(len(both)), own]).all(), f"reports {name}: impossible ones were drawn"
            ):
                return
            stated = 1.0 / (1.0 + np.exp(np.clip(both[:, 0] - both[:, 1], -700.0, 700.0)))
            vectors = np.concatenate([np.stack(held[i], axis=1).reshape(trial.calls, -1) for i in (one, other)])
            events = _events(np.concatenate([keys[one], keys[other]]), own, vectors[:, :ENTRIES], stated)
            judged.append((name, own - stated, events))
    alpha = trial.alpha(findings, sum(len(events) for _, _, events in judged))
    tested = np.arange(2 * trial.calls) % 2 == 1
    worst = 0.0
    for name, off, events in judged:
        table = np.stack([np.where(event, off, 0.0)[tested] for event in events.values()], axis=1)
        lower, upper = mean_interval(table, alpha=alpha, span=2.0)
        worst = max(worst, float(np.abs(table.mean(axis=0)).max()))
        for column in np.flatnonzero((lower > 0.0) | (upper < 0.0)):
            event = list(events.values())[column][tested]
            real = np.repeat([0.0, 1.0], trial.calls)[tested][event].mean()
            wrong = real - off[tested][event].mean()
            words = f"of reports {name} with {list(events)[column]}, {real:.1%} are of the latter"
            findings.fault(f"{words}; by log_likelihood {wrong:.1%}")
    findings.figures["greatest deviation"] = worst


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Return whether rows of logarithms are the same up to a constant per row."""
    with np.errstate(invalid="ignore"):
        one, other = (logs - logs.max(axis=1, keepdims=True) for logs in (one, other))
    return np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)


def _events(
    keys: NDArray[np.int64], own: NDArray[np.int64], vectors: NDArray[np.int64], stated: NDArray[np.float64]
) -> Events:
    """Return events by name, each (reports,) bool, chosen on the reports with even numbers."""
    outcomes, place = np.unique(keys, return_inverse=True)
    counts = [np.bincount(place[::2][own[::2] == truth], minlength=len(outcomes)) for truth in (0, 1)]
    events: Events = {"any content": np.ones(len(keys), dtype=np.bool_)}
    for number, outcome in enumerate(np.argsort(-(counts[0] + counts[1]), kind="stable")[:COMMON], start=1):
        events[f"the most frequent content but {number - 1}"] = place == outcome
    events["contents that are more frequent of the latter"] = (counts[1] > counts[0])[place]
    for entry, column in enumerate(vectors.T, start=1):
        events[f"entry {entry} above its median"] = column > np.median(column[::2])
    for share in np.unique(np.quantile(stated[::2], np.arange(1, DECILES) / DECILES)):
        events[f"a stated probability above {share:.3g}"] = stated > share
    return events

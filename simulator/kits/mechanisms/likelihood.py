"""Check of the likelihood by which attacks guess: its ratios are the ratios of the frequencies of reports."""

from itertools import combinations
from typing import NamedTuple
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.likelihood import report_law
from mechanisms.inference.report_law import NoLikelihoodError
from simulator.kits.findings import Findings
from simulator.kits.mechanisms.bounds import COMMON, bernstein, row_keys
from simulator.kits.mechanisms.harness import Harness

DECILES = 10
# Greatest number of entries of a tally whose values are events.
ENTRIES = 16
# Reports whose likelihood is compared with the likelihood of their encodings.
SOME = 500


class PairOfTruths(NamedTuple):
    """Reports of devices of two truths, with what their likelihood states.

    Parameters
    ----------
    name : str
        The rounds and the truths, in words.
    latter : (reports,) int64
        1 for reports of the second truth, else 0.
    stated : (reports,) float64
        Probability that a report is of the second truth, by its likelihood.
    events : dict
        Events by name, each (reports,) bool, chosen on the reports with even numbers.
    """

    name: str
    latter: NDArray[np.int64]
    stated: NDArray[np.float64]
    events: dict[str, NDArray[np.bool_]]


def check_likelihood(trial: Harness, findings: Findings) -> None:
    """Expect, of each round and of all linked, the posterior of two truths that the reports of both have.

    Of two truths s and t with equally many reports, a report x is of t with probability P(x | t)/(P(x | s) + P(x | t)),
    which the likelihood determines. So among the reports of any event, chosen on one half of the sample, the share of
    reports of t is the mean of these probabilities on the other half. Events are the most frequent reports, the reports
    more frequent under one truth, the values of each entry, and ranges of the stated probability.
    """
    rounds = tuple(range(1, trial.rounds + 1))
    views = dict.fromkeys([*((number,) for number in rounds), rounds])
    try:
        laws = {seen: report_law(trial.mechanism, seen) for seen in views}
    except NoLikelihoodError:
        reason = "the mechanism has no log_likelihood: the project's attacks are not tried on it, which proves nothing"
        raise SkipTest(reason) from None
    rng, reports = trial.generator("likelihood"), []
    for cell in trial.audited:
        truth = np.full(trial.calls, cell, dtype=np.int32)
        coins = trial.toss(len(truth), rng=rng)
        reports.append([trial.mechanism.answer(number, truth, coins) for number in rounds])
    encoded = [[trial.mechanism.encode(report) for report in row] for row in reports]
    latter, pairs = np.repeat([0, 1], trial.calls), []
    for seen, law in laws.items():
        where = f"of round {seen[0]}" if len(seen) == 1 else "of all rounds"
        logs = [law.log_likelihood([row[number - 1] for number in seen]) for row in encoded]
        raw = [law.log_likelihood([row[number - 1][:SOME] for number in seen]) for row in reports]
        same = all(_alike(first, second[:SOME]) for first, second in zip(raw, logs, strict=True))
        if not findings.expect(same, f"reports and their encodings differ in log_likelihood {where}"):
            return
        vectors = [np.stack([row[number - 1] for number in seen], axis=1) for row in encoded]
        for first, second in combinations(range(len(encoded)), 2):
            name = f"{where} by devices in {trial.audited[first]} and {trial.audited[second]}"
            both = np.concatenate([logs[first], logs[second]])[:, [trial.audited[first], trial.audited[second]]]
            possible = np.isfinite(both[np.arange(len(both)), latter]).all()
            if not findings.expect(possible, f"reports {name}: impossible ones were drawn"):
                return
            stated = 1.0 / (1.0 + np.exp(np.clip(both[:, 0] - both[:, 1], -700.0, 700.0)))
            events = _events(np.concatenate([vectors[first], vectors[second]]), latter, stated)
            pairs.append(PairOfTruths(name, latter, stated, events))
    alpha = trial.alpha(findings, sum(len(pair.events) for pair in pairs))
    off = [_expect_shares(pair, findings, alpha=alpha) for pair in pairs]
    findings.figures["greatest deviation"] = max(off, default=0.0)


def _expect_shares(pair: PairOfTruths, findings: Findings, *, alpha: float) -> float:
    """Expect in each event as many reports of the second truth as is stated; return the greatest deviation."""
    worst, each = 0.0, len(pair.latter) // 2
    for event_name, event in pair.events.items():
        latter, stated = (values[1::2][event[1::2]] for values in (pair.latter, pair.stated))
        off = abs(float((latter - stated).sum()) / each)
        worst = max(worst, off)
        # Of each report the truth is 0 or 1, with the variance that the stated probability has.
        if off > bernstein(each, np.array((stated * (1.0 - stated)).sum() / each), np.ones(()), alpha):
            share = f"of reports {pair.name} with {event_name}, {latter.mean():.1%} are of the latter"
            findings.fault(f"{share}; by log_likelihood {stated.mean():.1%}")
    return worst


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Return whether rows of logarithms are the same up to a constant per row."""
    with np.errstate(invalid="ignore"):
        one, other = (logs - logs.max(axis=1, keepdims=True) for logs in (one, other))
    return np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)


def _events(
    vectors: NDArray[np.int64], latter: NDArray[np.int64], stated: NDArray[np.float64]
) -> dict[str, NDArray[np.bool_]]:
    """Return the events of `PairOfTruths`."""
    outcomes, place = np.unique(row_keys(vectors), return_inverse=True)
    counts = [np.bincount(place[::2][latter[::2] == truth], minlength=len(outcomes)) for truth in (0, 1)]
    events = {"any content": np.ones(len(vectors), dtype=np.bool_)}
    for number, outcome in enumerate(np.argsort(-(counts[0] + counts[1]), kind="stable")[:COMMON], start=1):
        rank = "the most frequent content" if number == 1 else f"the content of frequency rank {number}"
        events[rank] = place == outcome
    events["contents that are more frequent of the latter"] = (counts[1] > counts[0])[place]
    for entry, column in enumerate(vectors.reshape(len(vectors), -1)[:, :ENTRIES].T, start=1):
        events[f"entry {entry} above its median"] = column > np.median(column[::2])
    for share in np.unique(np.quantile(stated[::2], np.arange(1, DECILES) / DECILES)):
        events[f"a stated probability above {share:.3g}"] = stated > share
    return events

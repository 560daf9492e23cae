"""Checks of privacy claims: well formed, consistent, and not below what samples of reports or of a crowd prove."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, partial
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.audit import PairAudit
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import (
    ADJACENCIES,
    LinkedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
)
from simulator.kits.findings import Findings
from simulator.kits.mechanisms.bounds import row_keys, wilson_interval
from simulator.kits.mechanisms.harness import Harness

EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0)
ROUNDING = 1e-9
# An event that distinguishes with certainty must be found if it is expected EXPECTED_HITS times, and counts as found
# from LEAST_HITS occurrences on.
EXPECTED_HITS = 500
LEAST_HITS = 30

# Numbers of a report that are looked at, and how many values one must have for its parts to be compared instead.
NUMBERS, MANY = 4, 256

Keys = NDArray[np.int64]
History = tuple[int, ...]
Sample = Callable[[], Mapping[History, Keys]]
Cut = Callable[[NDArray[np.uint64]], NDArray[np.uint64]]


def check_claims_sound(trial: Harness, findings: Findings) -> None:
    """Expect each claim to be a `Claim` with a δ in [0, 1] that does not increase with ε.

    The claim about a view that contains another view must not be smaller.
    """
    # A report of a round that the mechanism does not have is a view too, with an unknown claim.
    views: list[View] = [*_views(trial), Report(trial.rounds + 1), *further_views(trial.rounds)]
    claims = {view: trial.mechanism.claim(view) for view in views}
    fine, coarse = [*np.linspace(0.0, 8.0, 17).tolist(), math.inf], [*EPSILONS, math.inf]
    for view, claim in claims.items():
        name = _name(view)
        if not isinstance(claim, Claim):  # a run writes more of it than its ε and δ
            findings.fault(f"the claim of {name} must be a mechanisms.privacy.Claim, got {type(claim).__name__}")
        elif claim.kind != "unknown":
            _check_curve(claim, name, fine if view.queries == 1 else coarse, findings)
    if findings.faults:
        return
    proved = {view: claim for view, claim in claims.items() if claim.kind != "unknown"}
    curves = {view: np.array([claim.delta(epsilon) for epsilon in EPSILONS]) for view, claim in proved.items()}
    for less, more in itertools.permutations(proved, 2):
        # Only an exact claim about less is a lower bound of what more reveals.
        if proved[less].delta_kind == "exact" and _sees_more(more, less):
            no_less = proved[less].kind == "bound" or proved[more].epsilon >= proved[less].epsilon - ROUNDING
            no_less = no_less and bool((curves[more] >= curves[less] - 1e-6).all())
            findings.expect(no_less, f"{more!r} claims less than {less!r}")


def _check_curve(claim: Any, name: str, epsilons: Sequence[float], findings: Findings) -> None:
    """Expect a δ in [0, 1] that falls with ε and ends at the claim's ε."""
    deltas = np.array([claim.delta(epsilon) for epsilon in epsilons])
    if findings.expect(((deltas >= 0) & (deltas <= 1)).all(), f"δ of {name} leaves [0, 1]"):
        findings.expect((np.diff(deltas) <= ROUNDING).all(), f"δ of {name} rises with ε")
        if math.isfinite(claim.epsilon):
            end = claim.delta(claim.epsilon * (1 + 1e-9))
            fault = f"δ of {name} is {rounded_up(end)} at ε = {rounded_up(claim.epsilon)}, where it ends"
            findings.expect(end <= ROUNDING, fault)


def further_views(rounds: int) -> list[View]:
    """Return views that do not all have samples: more queries and devices, both adjacencies, and shares."""
    views: list[View] = [Shares(1, 2), Shares(2, 3), Shares(3, 3), LinkedReports(24)]
    for queries, adjacency in itertools.product((1, 3), ADJACENCIES):
        views += [LinkedReports(queries, adjacency=adjacency), Shares(2, 2, queries, adjacency=adjacency)]
        views += [Report(number + 1, queries, adjacency=adjacency) for number in range(rounds)]
        views += [ReleasedCounts(crowd, queries, adjacency=adjacency) for crowd in (None, 2, 3, 12)]
        views += [ReleasedCounts(2, queries, 100, adjacency=adjacency), Shuffled(1, 12, queries, adjacency=adjacency)]
        if rounds == 2:
            views += [ReleasedDifferences(crowd, None, queries, adjacency=adjacency) for crowd in (2, 12)]
    return list(dict.fromkeys(views))


def check_claims_hold(trial: Harness, findings: Findings) -> None:
    """Expect no claim about reports below the bound that an event chosen on one part of a sample proves on the rest.

    The shares of all servers are the reports. A claim for entering or leaving is about one cell and outside. Reports
    are compared by their encodings, and by what else they contain (`raw_samples`).
    """
    # Views of the same reports are consecutive and share a sample.
    sample = lru_cache(maxsize=1)(partial(_report_keys, trial))
    views: list[View] = []
    for view in _views(trial):
        views += [view, replace(view, adjacency="enter_leave")]
        views += [Shares(2, 2, view.queries)] if isinstance(view, LinkedReports) else []
    audits: list[tuple[Any, dict[str, Sample]]] = []
    for view, claim in known_claims(trial, findings, views).items():
        keys: Sample = partial(sample, *_shown(trial, view))
        if view.adjacency == "move":
            samples = {_name(view): keys}
            if isinstance(view, Report) and view.queries == 1:
                samples |= {f"{_name(view)}, {what}": part for what, part in raw_samples(trial, view.round).items()}
        else:
            name = f"{_name(view)}, entering or leaving cell"
            samples = {f"{name} {cell}": partial(_among, keys, {0, cell}) for cell in (1, trial.cells)}
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _among(sample: Sample, cells: set[int]) -> dict[History, Keys]:
    """Return the histories of a sample that are in these cells throughout."""
    return {history: keys for history, keys in sample().items() if cells.issuperset(history)}


def check_infinite_claims(trial: Harness, findings: Findings) -> None:
    """Expect, for every claim of infinite ε, an event that is possible for one truth and impossible for another."""
    claims = known_claims(trial, findings, _views(trial))
    infinite = {view: claim for view, claim in claims.items() if claim.kind == "infinite"}
    if not infinite:
        raise SkipTest("no view of reports is claimed infinite")
    for view, claim in infinite.items():
        pairs = pair_audits(_report_keys(trial, *_shown(trial, view)), parts=4, alpha=trial.level)
        tried = (pair.audit.find_witness(least_hits=LEAST_HITS, alpha=trial.level) for pair in pairs)
        best = max(filter(None, tried), key=lambda witness: witness.hits, default=None)
        what = f"no event of {_name(view)} distinguishes two truths with certainty, though ε is claimed infinite"
        if best is not None:
            findings.figures[f"{_name(view)}: produced by one truth only"] = f"{best.hits} of {best.trials}"
        elif claim.delta_kind == "exact" and claim.delta(math.inf) * trial.devices / 2 >= EXPECTED_HITS:
            findings.fault(what)
        else:
            findings.note(f"{what}: too rare to test with {trial.devices:,} devices, or only bounded")


def expect_claims_hold(trial: Harness, findings: Findings, claims: Sequence[tuple[Any, Mapping[str, Sample]]]) -> None:
    """Compare claims with lower bounds of ε and δ, each from one or several named samples.

    Every ordered pair of a sample's histories is a candidate. The first two parts of the sample choose the pair and the
    event, and the other parts test that event. So only this comparison counts for the level.
    """
    if not claims:
        raise SkipTest("nothing is claimed")
    alpha = trial.alpha(findings, sum(len(samples) for _, samples in claims) * (len(EPSILONS) + 1))
    for claim, samples in claims:
        # If ε is finite, δ is checked below it. At or above it δ is 0, which the bound of ε tests.
        finite = math.isfinite(claim.epsilon)
        at = [claim.epsilon * share for share in (0.0, 0.25, 0.5, 0.75, 0.9)] if finite else EPSILONS
        claimed = {epsilon: claim.delta(epsilon) for epsilon in at}
        for name, sample in samples.items():
            pairs = pair_audits(sample(), parts=8 if trial.thorough else 4, alpha=alpha)
            best = max(pairs, key=lambda pair: (pair.low / pair.high).max())
            proved = best.audit.epsilon_at_least(alpha=alpha)
            proof = f"{name}: ε is at least {proved:.4g} {best.between}"
            findings.expect(proved <= claim.epsilon + ROUNDING, f"{proof}, claimed {rounded_up(claim.epsilon, 4)}")
            for epsilon, delta in claimed.items():
                best = max(pairs, key=partial(PairSample.approximate_delta, epsilon=epsilon))
                least = best.audit.delta_at_least(epsilon, alpha=alpha)
                proof = f"{name}: δ({epsilon:.3g}) is at least {least:.4g} {best.between}"
                findings.expect(least <= delta + ROUNDING, f"{proof}, claimed {rounded_up(delta, 4)}")
            findings.figures[f"{name}: ε proved"] = f"{proved:.3g}, claimed {rounded_up(claim.epsilon)}"


@dataclass(frozen=True, eq=False)
class PairSample:
    """The outcomes of two histories: an exact audit, and approximate bounds to select the pair before the audit.

    Parameters
    ----------
    one, other : tuple of int
        The histories.
    low, high : (events,) float64
        For the sets of outcomes with the greatest ratios in the first part of the sample: approximate lower bounds of
        their probability under `one` and upper bounds under `other`, from the second part.
    audit : PairAudit
        The first two parts of the sample choose the event, the others test it.
    """

    one: History
    other: History
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    audit: PairAudit

    @property
    def between(self) -> str:
        """Both histories as text, for messages."""
        return f"between {self.one} and {self.other}"

    def approximate_delta(self, epsilon: float) -> float:
        """Return an approximation of the δ(ε) that the audit will prove."""
        return float((self.low - math.exp(epsilon) * self.high).max())


def pair_audits(keys: Mapping[History, Keys], *, parts: int, alpha: float) -> list[PairSample]:
    """Return an audit of every ordered pair of histories, with their samples split into equal parts."""
    outcomes = np.unique(np.concatenate([np.unique(shown) for shown in keys.values()]))
    counts = {}
    for history, shown in keys.items():
        place = 3 * np.searchsorted(outcomes, shown) + np.minimum(np.arange(len(shown)) % parts, 2)
        counts[history] = np.bincount(place, minlength=3 * len(outcomes)).reshape(-1, 3).T
    audits = []
    for one, other in itertools.permutations(counts, 2):
        p, q = counts[one], counts[other]
        chosen = (p[:2] + q[:2]).any(axis=0)
        # Outcomes that occur only in the test part are in no event, so they are merged into one.
        p, q = (np.column_stack([n[:, chosen], n[:, ~chosen].sum(axis=1)]) for n in (p, q))
        order = np.argsort(-(p[0] + 0.5) / (q[0] + 0.5), kind="stable")
        low, _ = wilson_interval(np.cumsum(p[1, order]), int(p[1].sum()), alpha=alpha)
        _, high = wilson_interval(np.cumsum(q[1, order]), int(q[1].sum()), alpha=alpha)
        audits.append(PairSample(one, other, low, high, PairAudit(p[0] + p[1], q[0] + q[1], p[2], q[2])))
    return audits


def _views(trial: Harness) -> list[View]:
    """Return the views of a device's reports: each round alone, and all rounds linked, for each number of queries."""
    views: list[View] = []
    for queries in range(1, trial.queries + 1):
        views += [Report(r + 1, queries=queries) for r in range(trial.rounds)]
        views.append(LinkedReports(queries=queries))
    return views


def _shown(trial: Harness, view: Report | LinkedReports | Any) -> tuple[tuple[int, ...], int]:
    """Return the rounds, from 0, whose reports a view contains, and its number of queries."""
    return (view.round - 1,) if isinstance(view, Report) else tuple(range(trial.rounds)), view.queries


def known_claims(trial: Harness, findings: Findings, views: Sequence[View]) -> dict[View, Any]:
    """Return the claims that are not unknown, by view, and note the views with unknown claims."""
    claims = {view: trial.mechanism.claim(view) for view in views}
    unknown = dict.fromkeys(_name(view) for view, claim in claims.items() if claim.kind == "unknown")
    if unknown:
        findings.note(f"unknown: {', '.join(unknown)}")
    return {view: claim for view, claim in claims.items() if claim.kind != "unknown"}


def _report_keys(trial: Harness, rounds: tuple[int, ...], queries: int) -> dict[History, Keys]:
    """Return the reports of some rounds by devices of each history, as one key per device.

    A history is a device's cell at each query. The histories are those that stay in one audited cell, and in two
    queries those that move between two cells in either direction. A device keeps its memory from query to query.
    """
    rng = trial.generator(f"claims {rounds} {queries}")
    histories: list[History] = [(cell,) * queries for cell in trial.audited]
    if queries == 2:
        moves = itertools.pairwise(trial.audited[:3])
        histories += [history for cells in moves for history in itertools.product(cells, repeat=2)]
    return {h: row_keys(trial.along(h, trial.devices, rng=rng)[:, :, list(rounds)]) for h in dict.fromkeys(histories)}


def _sees_more(more: View, less: View) -> bool:
    """Return whether the view `more` contains all of the view `less`, or hides a greater change of the device."""
    if more.queries < less.queries or (less.adjacency, more.adjacency) == ("move", "enter_leave"):
        return False
    whole = isinstance(more, LinkedReports) or (isinstance(more, Shares) and more.colluding == more.servers)
    if isinstance(less, Report | LinkedReports) and whole:
        return True
    # Otherwise the same view, of more queries or of a greater change; a crowd is at least so many devices.
    if isinstance(less, ReleasedCounts) and isinstance(more, ReleasedCounts) and less.crowd and more.crowd:
        less = replace(less, crowd=more.crowd) if more.crowd < less.crowd and not more.counted else less
    return more == replace(less, queries=more.queries, adjacency=more.adjacency)


def _name(view: View) -> str:
    return view.name if view.queries == 1 else f"{view.name} of {view.queries} queries"


def raw_samples(trial: Harness, number: int) -> dict[str, Sample]:
    """Return samples of parts of a round's reports, each with a key per device for every audited truth, by name.

    If encodings are compared in some of their entries only, a part is those together with the sum of all entries. If
    there are more reports than encodings, parts are the numbers in a report: their values if these are few, else each
    byte, and the remainders of divisions by V and V + 1.
    """
    samples: dict[str, Sample] = {}
    if len(trial.columns) < trial.shape[0]:
        samples["with the sum of all entries"] = partial(_each_truth, trial, number, partial(_with_sum, trial))
    truth = np.ones(trial.calls, dtype=np.int32)
    few = trial.mechanism.answer(number, truth, trial.toss(trial.calls, rng=trial.generator("some raw reports")))
    numbers = _numbers(few)
    if len(np.unique(row_keys(numbers))) > len(np.unique(row_keys(trial.mechanism.encode(few)))):
        held = lru_cache(maxsize=1)(partial(_each_truth, trial, number, _numbers))
        for i, values in enumerate(numbers.T):
            cuts: dict[str, Cut] = {"": lambda whole: whole}
            if len(np.unique(values)) > MANY:
                cuts = {f"byte {k} of ": partial(_digit, 256**k, 256) for k in range(8)}
                cuts |= {f"the remainder by {m} of ": partial(_digit, 1, m) for m in (trial.cells, trial.cells + 1)}
            for name, cut in cuts.items():
                samples[f"{name}number {i + 1} in it"] = partial(_cut, held, i, cut)
    return samples


def _each_truth(trial: Harness, number: int, part: Callable[[Any], Keys]) -> dict[History, Keys]:
    """Return a part of the reports of devices of each audited truth."""
    rng, mechanism = trial.generator("raw reports"), trial.mechanism
    parts: dict[History, Keys] = {}
    for cell in trial.audited:
        tossed = ((np.full(n, cell, dtype=np.int32), trial.toss(n, rng=rng)) for n in trial.batches(trial.devices))
        parts[(cell,)] = np.concatenate([part(mechanism.answer(number, truth, coins)) for truth, coins in tossed])
    return parts


def _with_sum(trial: Harness, reports: Any) -> Keys:
    vectors = trial.mechanism.encode(reports)
    return row_keys(np.concatenate([vectors[:, trial.columns], vectors.sum(axis=1, keepdims=True)], axis=1))


def _numbers(reports: Any) -> NDArray[np.int64]:
    """Return the first numbers in each report, (n, numbers): from an array, from its fields, or from attributes."""
    held: list[Any] = [reports]
    if is_dataclass(reports):
        held = [getattr(reports, each.name) for each in fields(reports)]
    elif not isinstance(reports, np.ndarray):
        held = list(getattr(reports, "__dict__", {}).values())
    columns: list[NDArray[np.int64]] = [np.empty((len(reports), 0), dtype=np.int64)]
    for array in held:
        if not isinstance(array, np.ndarray) or array.ndim == 0 or len(array) != len(reports):
            continue
        for column in [array[name] for name in array.dtype.names] if array.dtype.names else [array]:
            if column.dtype.kind in "biuf":
                # Floating-point numbers by their bits.
                whole = (
                    column.astype(np.float64).view(np.int64) if column.dtype.kind == "f" else column.astype(np.int64)
                )
                columns.append(whole.reshape(len(reports), -1))
    return np.concatenate(columns, axis=1)[:, :NUMBERS]


def _cut(held: Callable[[], Mapping[History, Keys]], i: int, cut: Cut) -> dict[History, Keys]:
    """Return a part of the i-th number in the reports of every truth."""
    wholes = {history: np.ascontiguousarray(numbers[:, i]).view(np.uint64) for history, numbers in held().items()}
    return {history: cut(whole).astype(np.int64) for history, whole in wholes.items()}


def _digit(unit: int, base: int, whole: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return one digit of whole numbers to a base: the digit that counts this unit."""
    return whole // np.uint64(unit) % np.uint64(base)

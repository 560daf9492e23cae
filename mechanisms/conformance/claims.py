"""Checks of privacy claims: well formed, consistent, and not below what samples of reports or of a crowd prove."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import row_keys, wilson_interval
from mechanisms.conformance.findings import Findings, SkippedCheckError
from mechanisms.conformance.harness import Harness
from mechanisms.privacy.audit import PairAudit
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled, View

EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0)
KINDS = ("exact", "bound", "infinite", "unknown")
ROUNDING = 1e-9
# An event that distinguishes with certainty must be found if it is expected EXPECTED_HITS times, and counts as found
# from LEAST_HITS occurrences on.
EXPECTED_HITS = 500
LEAST_HITS = 30

Keys = NDArray[np.int64]
History = tuple[int, ...]
Sample = Callable[[], Mapping[History, Keys]]


def check_claims_are_sound(trial: Harness, findings: Findings) -> None:
    """Expect each claim to be consistent: its kind, its ε, and a δ in [0, 1] that does not increase with ε.

    The claim about a view that contains another view must not be smaller.
    """
    others: list[View] = [ReleasedCounts(2), ReleasedDifferences(2), Shuffled(1, 10), Shares(1, 2), Shares(2, 2)]
    # A report of a round that the mechanism does not have is a view too, with an unknown claim.
    views: list[View] = [*_views(trial), Report(trial.rounds + 1), *others]
    claims = {view: trial.mechanism.claim(view) for view in views}
    grid = [*np.linspace(0.0, 8.0, 17).tolist(), math.inf]
    for view, claim in claims.items():
        name = _name(view)
        missing = [a for a in ("kind", "epsilon", "delta") if not hasattr(claim, a)]
        if not findings.expect(not missing, f"the claim of {name} lacks {', '.join(missing)}"):
            continue
        if not findings.expect(claim.kind in KINDS, f"the kind of the claim of {name} is {claim.kind!r}"):
            continue
        if claim.kind == "unknown":
            findings.expect(math.isnan(claim.epsilon), f"{name} is unknown but claims ε = {claim.epsilon}")
            continue
        same = (claim.kind == "infinite") == math.isinf(claim.epsilon)
        findings.expect(same and claim.epsilon >= 0, f"{name} is {claim.kind} but claims ε = {claim.epsilon}")
        deltas = np.array([claim.delta(epsilon) for epsilon in grid])
        if findings.expect(((deltas >= 0) & (deltas <= 1)).all(), f"δ of {name} leaves [0, 1]"):
            findings.expect((np.diff(deltas) <= ROUNDING).all(), f"δ of {name} rises with ε")
            if math.isfinite(claim.epsilon):
                end = claim.delta(claim.epsilon * (1 + 1e-9))
                words = f"δ of {name} is {rounded_up(end)} at ε = {rounded_up(claim.epsilon)}, where it ends"
                findings.expect(end <= ROUNDING, words)
    for one, more in itertools.permutations(_views(trial), 2):
        if not findings.faults and _sees_more(more, one):
            _expect_no_less(findings, claims[one], claims[more], f"{_name(more)} claims less than {_name(one)}")


def check_claims_hold(trial: Harness, findings: Findings) -> None:
    """Expect no claim about reports below the bound that an event chosen on one part of a sample proves on the rest."""
    # Views of the same reports are consecutive and share a sample.
    sample = lru_cache(maxsize=1)(partial(_report_keys, trial))
    claims = _claimed(trial, findings, _views(trial))
    samples = {view: {_name(view): partial(sample, *_shown(trial, view))} for view in claims}
    expect_claims_hold(trial, findings, [(claim, samples[view]) for view, claim in claims.items()])


def check_infinite_claims_have_witnesses(trial: Harness, findings: Findings) -> None:
    """Expect, for every claim of infinite ε, an event that is possible for one truth and impossible for another."""
    claims = _claimed(trial, findings, _views(trial))
    infinite = {view: claim for view, claim in claims.items() if claim.kind == "infinite"}
    if not infinite:
        raise SkippedCheckError("no view of reports is claimed infinite")
    for view, claim in infinite.items():
        pairs = pair_audits(_report_keys(trial, *_shown(trial, view)), parts=4, alpha=trial.level)
        found = [pair.audit.find_witness(least_hits=LEAST_HITS, alpha=trial.level) for pair in pairs]
        witnesses = [witness for witness in found if witness is not None]
        if witnesses:
            best = max(witnesses, key=lambda witness: witness.hits)
            findings.figures[f"{_name(view)}: produced by one truth only"] = f"{best.hits} of {best.trials}"
            continue
        expected = claim.delta(math.inf) * trial.devices / 2
        what = f"no event of {_name(view)} distinguishes two truths with certainty, though ε is claimed infinite"
        if getattr(claim, "delta_kind", "exact") == "exact" and expected >= EXPECTED_HITS:
            findings.fault(what)
        else:
            findings.note(f"{what}: too rare to test with {trial.devices:,} devices, or only bounded")


def expect_claims_hold(trial: Harness, findings: Findings, claims: Sequence[tuple[Any, Mapping[str, Sample]]]) -> None:
    """Compare claims with lower bounds of ε and δ, each from one or several named samples.

    Every ordered pair of a sample's histories is a candidate. The first two parts of the sample choose the pair and the
    event, and the other parts test that event. So only this comparison counts for the level.
    """
    if not claims:
        raise SkippedCheckError("nothing is claimed")
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
            findings.expect(
                proved <= claim.epsilon + ROUNDING,
                f"{name}: ε is at least {proved:.4g} between {best.histories}, claimed {rounded_up(claim.epsilon, 4)}",
            )
            for epsilon, delta in claimed.items():
                best = max(pairs, key=partial(PairSample.approximate_delta, epsilon=epsilon))
                least = best.audit.delta_at_least(epsilon, alpha=alpha)
                findings.expect(
                    least <= delta + ROUNDING,
                    f"{name}: δ({epsilon:.3g}) is at least {least:.4g} between {best.histories}, "
                    f"claimed {rounded_up(delta, 4)}",
                )
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
    def histories(self) -> str:
        """Both histories as text, for messages."""
        return f"{self.one} and {self.other}"

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
        known = (p[:2] + q[:2]).any(axis=0)
        # Outcomes that occur only in the test part are in no event, so they are merged into one.
        p, q = (np.column_stack([n[:, known], n[:, ~known].sum(axis=1)]) for n in (p, q))
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


def _claimed(trial: Harness, findings: Findings, views: Sequence[View]) -> dict[View, Any]:
    """Return the claims that are not unknown, by view, and note the views with unknown claims."""
    claims = {view: trial.mechanism.claim(view) for view in views}
    unknown = dict.fromkeys(_name(view) for view, claim in claims.items() if claim.kind == "unknown")
    if unknown:
        findings.note(f"unknown: {', '.join(unknown)}")
    return {view: claim for view, claim in claims.items() if claim.kind != "unknown"}


def _report_keys(trial: Harness, rounds: tuple[int, ...], queries: int) -> dict[History, Keys]:
    """Return the reports of some rounds by devices of each history, as one key per device.

    A history is a device's cell at each query. The histories are those that stay in one audited cell, and those that
    move between two cells in either direction. A device keeps its memory from query to query.
    """
    rng = trial.generator(f"claims {rounds} {queries}")
    histories: list[History] = [(cell,) * queries for cell in trial.audited]
    if queries > 1:
        moves = itertools.pairwise(trial.audited[:3])
        histories += [history for cells in moves for history in itertools.product(cells, repeat=queries)]
    keys = {}
    for history in dict.fromkeys(histories):
        found = []
        for devices in trial.batches(trial.devices):
            memory = trial.mechanism.enrol(devices, rng=rng)
            shown = []
            for cell in history:
                truth = np.full(devices, cell, dtype=np.int32)
                vectors = trial.answers(truth, trial.mechanism.toss(memory, rng=rng))
                shown.append(vectors[:, list(rounds)][:, :, trial.columns])
            found.append(row_keys(np.stack(shown, axis=1)))
        keys[history] = np.concatenate(found)
    return keys


def _sees_more(more: View, one: View) -> bool:
    """Return whether the view `more` contains all of the view `one`."""
    if more.queries < one.queries or not isinstance(one, Report | LinkedReports):
        return False
    return isinstance(more, LinkedReports) or (
        isinstance(more, Report) and isinstance(one, Report) and more.round == one.round
    )


def _expect_no_less(findings: Findings, one: Any, more: Any, fault: str) -> None:
    """Expect the claim about a larger view to be no smaller than an exact claim about a view that it contains."""
    if getattr(one, "delta_kind", "bound") != "exact" or "unknown" in (one.kind, more.kind):
        return
    low = [epsilon for epsilon in EPSILONS if more.delta(epsilon) < one.delta(epsilon) - 1e-6]
    findings.expect(not low and (more.epsilon >= one.epsilon - ROUNDING or one.kind == "bound"), fault)


def _name(view: View) -> str:
    return view.name if view.queries == 1 else f"{view.name} of {view.queries} queries"


CROWDS = (1, 2, 3)
SHUFFLED = (1, 3)
MOST_ANSWERS = 1_000_000


def check_releases_hold(trial: Harness, findings: Findings) -> None:
    """Expect no claim about published counts or shuffled reports of small crowds below what simulated crowds prove.

    Over several queries devices keep their memory; one device moves and the others stay.
    """
    views: list[View] = []
    for queries in range(1, trial.queries + 1):
        views += [ReleasedCounts(crowd=n, queries=queries) for n in CROWDS]
        if trial.rounds == 2:
            views += [ReleasedDifferences(crowd=n, queries=queries) for n in CROWDS]
            views.append(ReleasedDifferences(crowd=3, k=2, queries=queries))
        views += [Shuffled(round=r + 1, devices=n, queries=queries) for r in range(trial.rounds) for n in SHUFFLED]
    publish = lru_cache(maxsize=1)(partial(_published, trial))
    audits: list[tuple[Any, dict[str, Sample]]] = []
    for view, claim in _claimed(trial, findings, views).items():
        samples: dict[str, Sample] = {}
        for cell in dict.fromkeys((1, trial.cells)):
            name = f"{view!r}, cell {cell}"
            samples[name] = partial(_keys, publish, view, cell)
            if isinstance(view, ReleasedCounts):
                # If noise causes many outcomes, the published count of the cell alone may prove more.
                samples[f"{name} alone"] = partial(_keys, publish, view, cell, trial.columns.index(_index(trial, cell)))
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _keys(
    publish: Callable[[View, int], dict[History, NDArray[np.int64]]], view: View, cell: int, index: int | None = None
) -> dict[History, Keys]:
    """Return keys of what is published for each history: all of it, or one index of the tallies."""
    return {
        history: row_keys(seen if index is None else seen[:, :, :, index])
        for history, seen in publish(view, cell).items()
    }


def _published(trial: Harness, view: Any, cell: int) -> dict[History, NDArray[np.int64]]:
    """Return what is published about crowds in a cell, (crowds, queries, …), for each history of one of their devices.

    In each query this device is in the cell or outside every cell. For a shuffled view of a single query, it may also
    be in another cell.
    """
    crowd = view.devices if isinstance(view, Shuffled) else view.crowd
    # Distributed noise needs the mechanism's number of devices; those beyond the crowd are outside every cell.
    devices = crowd if isinstance(view, Shuffled) else max(crowd, int(getattr(trial.mechanism, "devices", 0)))
    truth = np.zeros(devices, dtype=np.int32)
    truth[:crowd] = cell
    repeats = min(trial.devices // 2, max(MOST_ANSWERS // devices, 100))
    histories: list[History] = list(itertools.product((cell, 0), repeat=view.queries))
    if view.queries == 1 and trial.cells > 1 and isinstance(view, Shuffled):
        histories.append((cell % trial.cells + 1,))
    rng, worlds = trial.generator(f"{view!r} {cell}"), {}
    for history in histories:
        found = []
        for batch in trial.batches(repeats * devices, of=devices):
            memory = trial.mechanism.enrol(batch, rng=rng)
            queries = []
            for place in history:
                truth[0] = place
                vectors = trial.answers(np.tile(truth, batch // devices), trial.mechanism.toss(memory, rng=rng))
                vectors = vectors[:, :, trial.columns]
                queries.append(_seen(trial, view, vectors.reshape(-1, devices, *vectors.shape[1:])))
            found.append(np.stack(queries, axis=1))
        worlds[history] = np.concatenate(found)
    return worlds


def _seen(trial: Harness, view: Any, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a view reveals of one query's (crowds, devices, rounds, *tally_shape) reports, one row per crowd."""
    if isinstance(view, Shuffled):
        reports = vectors[:, :, view.round - 1]
        keys = row_keys(reports.reshape(-1, *reports.shape[2:])).reshape(reports.shape[:2])
        return np.sort(keys, axis=1)
    counts: NDArray[np.int64] = vectors.sum(axis=1)
    if isinstance(view, ReleasedCounts):
        return counts
    # Over the real cells: all outputs but the first, or the last output of each cell, which is Yes.
    difference = counts[:, 1] - counts[:, 0]
    difference = difference[:, 1:] if len(trial.shape) == 1 else difference[..., -1]
    return difference if view.k is None else np.where(difference < view.k, 0, difference)


def _index(trial: Harness, cell: int) -> int:
    """Return the index of a cell in the tally, which may or may not have an entry for outside before it."""
    return cell - 1 if trial.shape[0] == trial.cells else cell

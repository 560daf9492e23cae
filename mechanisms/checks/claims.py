"""Claims: well formed, consistent, and never smaller than what samples prove."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.checks.bounds import row_keys
from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial
from mechanisms.privacy.audit import PairAudit
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled, View

EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0)
KINDS = ("exact", "bound", "infinite", "unknown")
ROUNDING = 1e-9
# An event that tells with certainty is looked for where it should be seen this often, and is one if seen so often.
EXPECTED_HITS = 500
LEAST_HITS = 30

Keys = NDArray[np.int64]
History = tuple[int, ...]


def check_claims_are_sound(trial: Trial, findings: Findings) -> None:
    """Expect one story of each claim: its kind, its ε, a δ in [0, 1] that never rises; seeing more tells no less."""
    others: list[View] = [ReleasedCounts(2), ReleasedDifferences(2), Shuffled(1, 10), Shares(1, 2), Shares(2, 2)]
    # Reports of a round the mechanism does not have are a view too: nothing is known of them.
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
                findings.expect(end <= ROUNDING, f"δ of {name} is {end:g} at ε = {claim.epsilon:g}, where it ends")
    for one, more in itertools.permutations(_views(trial), 2):
        if not findings.faults and _sees_more(more, one):
            _expect_no_less(findings, claims[one], claims[more], f"{_name(more)} claims less than {_name(one)}")


def check_claims_hold(trial: Trial, findings: Findings) -> None:
    """Expect no claim about reports below what an event chosen in one half of the devices proves in the other."""
    audits = []
    for view, claim in _claimed(trial, findings).items():
        keys = _report_keys(trial, view)
        audits.append((_name(view), claim, keys, list(itertools.permutations(keys, 2))))
    expect_claims_hold(trial, findings, audits)


def check_infinite_claims_tell(trial: Trial, findings: Findings) -> None:
    """Expect to find, where no finite ε is claimed, an event that one truth makes and another never does."""
    infinite = {view: claim for view, claim in _claimed(trial, findings).items() if claim.kind == "infinite"}
    if not infinite:
        findings.skip("no view of reports is claimed infinite")
    for view, claim in infinite.items():
        keys = _report_keys(trial, view)
        audits = [pair_audit(keys[a], keys[b]) for a, b in itertools.permutations(keys, 2)]
        found = [audit.find_witness(least_hits=LEAST_HITS, alpha=trial.level) for audit in audits]
        witnesses = [witness for witness in found if witness is not None]
        if witnesses:
            best = max(witnesses, key=lambda witness: witness.hits)
            findings.figures[f"{_name(view)}: seen by one truth only"] = f"{best.hits} of {best.trials}"
            continue
        expected = claim.delta(math.inf) * trial.devices / 2
        what = f"no event of {_name(view)} tells one truth from another for certain, though ε is claimed infinite"
        if getattr(claim, "delta_kind", "exact") == "exact" and expected >= EXPECTED_HITS:
            findings.fault(what)
        else:
            findings.note(f"{what}: too rare, or only bounded, for {trial.devices:,} devices")


def expect_claims_hold(
    trial: Trial, findings: Findings, audits: Sequence[tuple[str, Any, dict[Any, Keys], list[tuple[Any, Any]]]]
) -> None:
    """Audit claims from below, each over ordered pairs of worlds of which samples are at hand."""
    if not audits:
        findings.skip("nothing is claimed")
        return
    alpha = trial.alpha(findings, sum(len(pairs) * (len(EPSILONS) + 1) for *_, pairs in audits))
    for name, claim, keys, pairs in audits:
        finite = math.isfinite(claim.epsilon)
        # Where ε is finite, δ is looked at below it; at or above it, δ = 0 is what the bound of ε tests.
        epsilons = [claim.epsilon * share for share in (0.0, 0.25, 0.5, 0.75, 0.9)] if finite else list(EPSILONS)
        claimed = {epsilon: claim.delta(epsilon) for epsilon in epsilons}
        proved = 0.0
        for one, other in pairs:
            audit = pair_audit(keys[one], keys[other])
            epsilon = audit.epsilon_at_least(alpha=alpha)
            proved = max(proved, epsilon)
            findings.expect(
                epsilon <= claim.epsilon + ROUNDING,
                f"{name}: ε is at least {epsilon:.4g} between {one} and {other}, claimed {claim.epsilon:.4g}",
            )
            for at, delta in claimed.items():
                least = audit.delta_at_least(at, alpha=alpha)
                findings.expect(
                    least <= delta + ROUNDING,
                    f"{name}: δ({at:.3g}) is at least {least:.4g} between {one} and {other}, claimed {delta:.4g}",
                )
        findings.figures[f"{name}: ε proved"] = f"{proved:.3g}, claimed {claim.epsilon:.3g}"


def pair_audit(one: Keys, other: Keys) -> PairAudit:
    """Count two samples' outcomes, by halves."""
    outcomes, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    parts = (place[: len(one)], place[len(one) :])
    choosing, testing = (
        [np.bincount(part[half], minlength=len(outcomes)) for part in parts]
        for half in (slice(None, None, 2), slice(1, None, 2))
    )
    return PairAudit(choosing[0], choosing[1], testing[0], testing[1])


def _views(trial: Trial) -> list[View]:
    """Return what one server sees of a device, and all of them together."""
    queries = (1, 2)[: trial.queries]
    reports: list[View] = [Report(r + 1, queries=q) for q in queries for r in range(trial.rounds)]
    return [*reports, *(LinkedReports(queries=q) for q in queries)]


def _claimed(trial: Trial, findings: Findings) -> dict[View, Any]:
    """Return the claims of those views that are not unknown, and say which are."""
    claims = {view: trial.mechanism.claim(view) for view in _views(trial)}
    unknown = [_name(view) for view, claim in claims.items() if claim.kind == "unknown"]
    if unknown:
        findings.note(f"unknown: {', '.join(unknown)}")
    return {view: claim for view, claim in claims.items() if claim.kind != "unknown"}


def _report_keys(trial: Trial, view: Report | LinkedReports | Any) -> dict[History, Keys]:
    """Return what devices of each history show of themselves in a view, a key each.

    A history is the cell at each query: staying anywhere, and going between two cells either way.
    """
    rng, cells = trial.generator(f"claims {_name(view)}"), range(trial.cells + 1)
    histories: list[History] = [(cell,) * view.queries for cell in cells]
    if view.queries == 2:
        histories += [(0, 1), (1, 0), *([(1, 2), (2, 1)] if trial.cells > 1 else [])]
    keys = {}
    for history in histories:
        memory = trial.mechanism.enrol(trial.devices, rng=rng)
        shown = []
        for cell in history:
            truth = np.full(trial.devices, cell, dtype=np.int32)
            vectors = trial.answers(truth, trial.mechanism.toss(memory, rng=rng))
            shown.append(vectors[:, view.round - 1] if isinstance(view, Report) else vectors)
        keys[history] = row_keys(np.stack(shown, axis=1))
    return keys


def _sees_more(more: View, one: View) -> bool:
    """Whether one view holds all of another."""
    if more.queries < one.queries or not isinstance(one, Report | LinkedReports):
        return False
    return isinstance(more, LinkedReports) or (
        isinstance(more, Report) and isinstance(one, Report) and more.round == one.round
    )


def _expect_no_less(findings: Findings, one: Any, more: Any, fault: str) -> None:
    """Expect a claim of more to be no smaller than an exact claim of less."""
    if getattr(one, "delta_kind", "bound") != "exact" or "unknown" in (one.kind, more.kind):
        return
    low = [epsilon for epsilon in EPSILONS if more.delta(epsilon) < one.delta(epsilon) - 1e-6]
    findings.expect(not low and (more.epsilon >= one.epsilon - ROUNDING or one.kind == "bound"), fault)


def _name(view: View) -> str:
    return view.name if view.queries == 1 else f"{view.name} of {view.queries} queries"

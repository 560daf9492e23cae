"""Run of all conformance checks on a mechanism, of this project or a user's own: `check_mechanism`.

All checks run at two numbers of cells, because a fault may occur at one of them only, and those of claims at a third.
The table lists, in order, the fault that each check finds, or what it checks:

===================== ==============================================================================================
attributes            a method or attribute missing or of the wrong kind
reports               shapes and dtypes of reports, encodings and tallies; a batch of one, an empty batch; reports or
                      memory from which a run cannot take some devices
estimates             shapes and dtypes of estimates, standard errors and sampled counts; a result that is no `Estimate`
answer_draws_nothing  an answer that draws random numbers: all coins must be drawn before the truth is known
others_stay           a report that depends on another device's truth
early_rounds          a `truth_round` that is not the first whose reports depend on the truth
hidden_state          an answer, a toss or an estimate that depends on earlier calls
nothing_written_on    memory, coins, truths or counts that a method modifies
own_coins             devices that share coins, or have another distribution in a batch than alone
no_bias               a biased estimate
standard_error        a stated standard error that is not that of the estimate
loss                  bias or a wrong standard error if reports are lost
intervals             intervals with too low a coverage
sampled_estimates     sample_counts with another mean or variance, in small and in very large crowds
sample_law            sample_counts and reports that differ in the stated distribution, joint or of each cell; if
                      thorough also in the spread of counts of millions of devices
claims_sound          a claim that is no `Claim`, is inconsistent, or smaller than that of a view that has less
claims_hold           an ε or δ claimed for reports, or for all their shares, below what samples prove, also of what a
                      report holds beside its encoding
infinite_claims       an ε claimed infinite although no event distinguishes two truths with certainty
likelihood            reports with other frequencies than those by which attacks guess (`log_likelihood`)
releases_hold         an ε or δ claimed for published counts or shuffled reports below what samples prove, also for
                      devices that keep their memory from query to query
bad_inputs            a wrong truth, round, mask, count or total that raises no ValueError or TypeError with a message
===================== ==============================================================================================

A mechanism must have `cells`, `rounds`, `truth_round`, `tally_shape`, `enrol`, `toss`, `answer`, `encode`, `tally`,
`estimate`, `sample_counts` and `claim`. `std_error` given the truth, `sample_law`, `batch`, `warnings` and
`log_likelihood` may be absent: then the checks that depend on them are left out, and the report states it. If
`estimate` raises a ``NotEstimableError`` (a ValueError), estimates are not checked. A mechanism whose published counts
are private only among N devices states N in `devices`: then crowds are filled up to N with devices outside every cell.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from mechanisms.parameter import ParameterError, check_integer
from simulator.kits.findings import CheckResult, ConformanceReport, Findings, checks_of, run_check
from simulator.kits.mechanisms import bad_inputs, claims, estimates, interface, likelihood, releases
from simulator.kits.mechanisms.harness import Harness

LEVEL = 1e-6
DEVICES = 40_000
QUICK = 5
THOROUGH = 50
LEAST_DEVICES = 2_000
# Cells of the second instance: MORE_CELLS, unless the first instance has at least as many.
FEW_CELLS, MORE_CELLS = 3, 10
# Cells of a third instance, of which only the claims over one query are checked, with as many devices as of the first.
MANY_CELLS = 32
CLAIMS = ("claims_sound", "claims_hold", "releases_hold")

CHECKS = {
    name: check
    for module in (interface, estimates, claims, likelihood, releases, bad_inputs)
    for name, check in checks_of(vars(module)).items()
}


def check_mechanism(
    mechanism: Any,
    *,
    cells: int = FEW_CELLS,
    seed: int = 0,
    level: float = LEVEL,
    devices: int = DEVICES,
    queries: int = 3,
    sizes: int = 2,
    quick: bool = False,
    thorough: bool = False,
    raise_failures: bool = True,
) -> ConformanceReport:
    """Run all checks on a mechanism, and raise or return every failure, not only the first.

    Parameters
    ----------
    mechanism : LocalMechanism or callable
        An instance with at most 16 cells; or a class or function that makes one, called with `cells`. A second instance
        has 10 cells, or 3 if the first has 10 or more. If the first is given as an instance of a dataclass, the second
        is a copy with other `cells`. If it cannot be made, the result of `attributes` states why.
    cells : int
        Number of cells of the first instance, if `mechanism` makes it.
    seed : int
        Seed of all random numbers: the same seed gives the same report.
    level : float
        Greatest probability that a correct mechanism fails, over all comparisons of all checks together. Each
        statistical check has an equal share, split equally over its comparisons; the figures state their number.
    devices : int
        Number of devices of each truth whose reports are drawn to compare distributions, at least 2,000. More devices
        reveal smaller faults. At the second number of cells a fifth of them are drawn.
    queries : int
        Greatest number of queries over which claims are audited, 1…3.
    sizes : int
        How many numbers of cells all checks are run at, 1 or 2; if 2, claims are also checked with 32 cells.
    quick : bool
        Use a fifth of the devices, one query and one number of cells.
    thorough : bool
        Use 50 times the devices, and check intervals, standard errors, sampled counts and claims of larger crowds too.
        This takes one minute or several.
    raise_failures : bool
        Raise an error if any check fails; if False, always return the report.

    Returns
    -------
    ConformanceReport
        The result of each check.

    Raises
    ------
    ConformanceError
        If a check fails; it states all failed checks and has the `report`.
    ParameterError
        If `level`, `devices`, `queries` or `sizes` is out of range, or both `quick` and `thorough` are given.

    Examples
    --------
    >>> from mechanisms.local import SamplingPrivacy
    >>> check_mechanism(SamplingPrivacy(cells=2, sampling=0.4), quick=True).passed
    True
    """
    check_integer("seed", seed, at_least=0)
    check_integer("devices", devices, at_least=LEAST_DEVICES)
    check_integer("queries", queries, at_least=1, at_most=3)
    check_integer("sizes", sizes, at_least=1, at_most=2)
    if not 0.0 < level < 1.0:
        raise ParameterError("level", "must be between 0 and 1, both excluded", level)
    if quick and thorough:
        raise ParameterError("thorough", "must be False where quick is True", thorough)
    if quick:
        devices, queries, sizes = max(LEAST_DEVICES, devices // QUICK), 1, 1
    if thorough:
        devices *= THOROUGH
    # A mechanism may be callable too. Its type has an `answer`; the type of a class or a function has none.
    makes = callable(mechanism) and not hasattr(type(mechanism), "answer")
    first, attributes, trials = mechanism(cells=cells) if makes else mechanism, Findings(), []
    interface.expect_attributes(first, attributes)
    if attributes.faults:
        others = [CheckResult(name, "skipped", "not run: attributes are missing or wrong") for name in CHECKS]
    else:
        more = MORE_CELLS if first.cells < MORE_CELLS else FEW_CELLS
        further = ((more, max(LEAST_DEVICES, devices // QUICK), queries), (MANY_CELLS, devices, 1))
        share = level / (2 * sizes - 1)
        trials = [Harness(first, seed, share, devices, queries, thorough=thorough)]
        for number, fewer, most in further if sizes > 1 else ():
            if (other := _resize(mechanism if makes else None, first, number, attributes)) is None:
                break
            trials.append(Harness(other, seed, share, fewer, most, thorough=thorough))
        others = [_run_at_sizes(name, trials) for name in CHECKS]
    sizes_checked, results = tuple(trial.cells for trial in trials[:2]), (attributes.result("attributes"), *others)
    report = ConformanceReport(_write(first), seed, level, results, sizes_checked, _limits(trials))
    if raise_failures:
        report.raise_for_failures()
    return report


def _run_at_sizes(name: str, trials: list[Harness]) -> CheckResult:
    """Return the result of a check at every number of cells; at the third one only claims are checked."""
    result = run_check(name, CHECKS[name], trials[0])
    for trial in trials[1:] if name in CLAIMS else trials[1:2]:
        result = result.join(run_check(name, CHECKS[name], trial), f"with {trial.cells} cells")
    return result


def _resize(make: Callable[..., Any] | None, first: Any, cells: int, findings: Findings) -> Any:
    """Return the mechanism with another number of cells, or None with the reason among the findings."""
    try:
        other = make(cells=cells) if make else dataclasses.replace(first, cells=cells)
    except Exception as error:  # noqa: BLE001 - a user's mechanism may raise anything
        hint = "" if make else "; a class or a function of `cells` can be checked instead"
        findings.note(f"not checked with {cells} cells, as it cannot be made ({type(error).__name__}: {error}){hint}")
        return None
    faults = Findings()
    interface.expect_attributes(other, faults, most_cells=MANY_CELLS)
    if not faults.faults and other.cells != cells:
        findings.note(f"not checked with {cells} cells: made with so many, it has {other.cells}")
        return None
    findings.faults += [f"with {cells} cells: {fault}" for fault in faults.faults]
    return None if faults.faults else other


def _limits(trials: list[Harness]) -> str:
    """Return what checks of this size cannot see, in one paragraph."""
    if not trials:
        return ""
    first = trials[0]
    crowd, cells = max(releases.crowds_of(first, 1)), max(trial.cells for trial in trials)
    queries = "one query" if first.queries == 1 else f"{first.queries} queries"
    rare = first.devices // 2 // claims.EXPECTED_HITS
    sampled = "" if first.thorough else " a spread of sample_counts that is wrong by a few per cent (--thorough),"
    return (
        f"Not seen at this size: claims that are wrong only with more than {cells} cells, {crowd} devices in a cell or "
        f"{queries}; a claim that is too small by less than samples of {first.devices:,} devices tell, so what fewer "
        f"than 1 in {rare:,} devices reveal;{sampled} what a part of a report reveals that its encoding does not "
        "contain, unless one of its bytes or a remainder by the number of cells shows it."
    )


def _write(mechanism: Any) -> str:
    """Return the mechanism's `repr` in one line, or the name of its type if `repr` raises an error."""
    try:
        return " ".join(repr(mechanism).split())
    except Exception:  # noqa: BLE001 - a user's mechanism may raise anything
        return type(mechanism).__name__

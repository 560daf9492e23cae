"""Contract of mechanisms, this project's and users' own: `MechanismContract`, and `check_mechanism` that runs it.

All checks run at two numbers of cells, because a fault may occur at one of them only; checks of claims run at a third.
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
standard_error        a stated standard error that the estimate does not have
loss                  bias or a wrong standard error if reports are lost
intervals             intervals with too low a coverage
sampled_estimates     sample_counts with another mean or variance, in small and in very large crowds
sample_law            sample_counts and reports that differ in the stated distribution, joint or of each cell; if
                      thorough also in the spread of counts of millions of devices
claims_sound          a claim that is no `Claim`, is inconsistent, or is smaller than the claim about a view that
                      has less
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
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

from mechanisms.parameter import ParameterError, check_integer
from simulator.kits.contract import Contract, checked
from simulator.kits.findings import CheckResult, ConformanceReport, Findings, run_check, words_of
from simulator.kits.mechanisms import claims, estimates, interface, likelihood, releases
from simulator.kits.mechanisms.harness import Harness

QUICK = 5
THOROUGH = 50
LEAST_DEVICES = 2_000
# Cells of the second instance: MORE_CELLS, unless the first instance has at least as many.
FEW_CELLS, MORE_CELLS = 3, 10
# Cells of a third instance, with as many devices as the first; only its claims over one query are checked.
MANY_CELLS = 32
CLAIMS = ("claims_sound", "claims_hold", "releases_hold")


class MechanismContract(Contract):
    """What a mechanism must satisfy; a subclass makes the mechanism with a number of cells.

    Attributes
    ----------
    cells : int
        Number of cells of the first instance, at most 16. A second instance has 10 cells, or 3 if the first has 10 or
        more. If it cannot be made, the result of `attributes` states why.
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

    Examples
    --------
    >>> class TestSampling(MechanismContract):
    ...     quick = True
    ...
    ...     def make(self, *, cells):
    ...         return SamplingPrivacy(cells=cells, sampling=0.4)
    """

    cells: int = FEW_CELLS
    devices: int = 40_000
    queries: int = 3
    sizes: int = 2
    quick: bool = False
    thorough: bool = False

    test_attributes = checked(interface.check_attributes)
    test_reports = checked(interface.check_reports)
    test_estimates = checked(interface.check_estimates)
    test_answer_draws_nothing = checked(interface.check_answer_draws_nothing)
    test_others_stay = checked(interface.check_others_stay)
    test_early_rounds = checked(interface.check_early_rounds)
    test_hidden_state = checked(interface.check_hidden_state)
    test_nothing_written_on = checked(interface.check_nothing_written_on)
    test_own_coins = checked(interface.check_own_coins)
    test_no_bias = checked(estimates.check_no_bias)
    test_standard_error = checked(estimates.check_standard_error)
    test_loss = checked(estimates.check_loss)
    test_intervals = checked(estimates.check_intervals)
    test_sampled_estimates = checked(estimates.check_sampled_estimates)
    test_sample_law = checked(estimates.check_sample_law)
    test_claims_sound = checked(claims.check_claims_sound)
    test_claims_hold = checked(claims.check_claims_hold)
    test_infinite_claims = checked(claims.check_infinite_claims)
    test_likelihood = checked(likelihood.check_likelihood)
    test_releases_hold = checked(releases.check_releases_hold)
    test_bad_inputs = checked(interface.check_bad_inputs)

    @abstractmethod
    def make(self, *, cells: int) -> Any:
        """Return the mechanism with this number of cells."""

    @classmethod
    def of(cls, make: Any, **settings: Any) -> Self:
        """Return the contract of a mechanism, with these attributes in place of the class's.

        Parameters
        ----------
        make : LocalMechanism or callable
            A class or function that makes a mechanism, called with `cells`. Or an instance with at most 16 cells; the
            others are copies of it with other `cells` if it is a dataclass.
        **settings
            Attributes of the class.
        """
        # A mechanism may be callable too. Its type has an `answer`; the type of a class or a function has none.
        if callable(make) and not hasattr(type(make), "answer"):
            return super().of(make, **settings)

        def copied(*, cells: int) -> Any:
            if cells == own:
                return make
            try:
                return dataclasses.replace(make, cells=cells)
            except Exception as error:
                raise type(error)(f"{error}; a class or a function of `cells` can be checked instead") from error

        own = getattr(make, "cells", None)
        return super().of(copied, **settings, cells=own)

    def result(self, name: str) -> CheckResult:
        """Return the result of a check at every number of cells; at the third one only claims are checked."""
        attributes, _, trials = _trials(type(self))
        if name == "attributes":
            return attributes.result(name)
        if not trials:
            return CheckResult(name, "skipped", "not run: attributes are missing or wrong")
        check = self.checks()[name]
        result = run_check(name, check, trials[0])
        for trial in trials[1:] if name in CLAIMS else trials[1:2]:
            result = result.join(run_check(name, check, trial), f"with {trial.cells} cells")
        return result

    def report(self) -> ConformanceReport:
        """Run all checks.

        Raises
        ------
        ParameterError
            If `level`, `devices`, `queries` or `sizes` is out of range, or both `quick` and `thorough` are given.
        """
        _, first, trials = _trials(type(self))
        sizes, results = tuple(trial.cells for trial in trials[:2]), tuple(map(self.result, self.checks()))
        return ConformanceReport(words_of(first), self.seed, self.level, results, sizes, _limits(trials))


@lru_cache(maxsize=1)
def _trials(contract: type[MechanismContract]) -> tuple[Findings, Any, list[Harness]]:
    """Return what is found of the attributes, the first mechanism, and the trials; the tests of a class share them."""
    self, findings = contract(), Findings()
    check_integer("seed", self.seed, at_least=0)
    check_integer("devices", self.devices, at_least=LEAST_DEVICES)
    check_integer("queries", self.queries, at_least=1, at_most=3)
    check_integer("sizes", self.sizes, at_least=1, at_most=2)
    if not 0.0 < self.level < 1.0:
        raise ParameterError("level", "must be between 0 and 1, both excluded", self.level)
    if self.quick and self.thorough:
        raise ParameterError("thorough", "must be False where quick is True", self.thorough)
    devices, queries, sizes = self.devices, self.queries, self.sizes
    if self.quick:
        devices, queries, sizes = max(LEAST_DEVICES, devices // QUICK), 1, 1
    if self.thorough:
        devices *= THOROUGH
    first = self.make(cells=self.cells)
    interface.check_attributes(first, findings)
    if findings.faults:
        return findings, first, []
    level = self.level / (2 * sizes - 1)
    trials = [Harness(first, self.seed, level, devices, queries, thorough=self.thorough)]
    more = MORE_CELLS if first.cells < MORE_CELLS else FEW_CELLS
    further = ((more, max(LEAST_DEVICES, devices // QUICK), queries), (MANY_CELLS, devices, 1))
    for cells, fewer, most in further if sizes > 1 else ():
        if (other := _resized(self.make, cells, findings)) is None:
            break
        trials.append(Harness(other, self.seed, level, fewer, most, thorough=self.thorough))
    return findings, first, trials


def _resized(make: Callable[..., Any], cells: int, findings: Findings) -> Any:
    """Return the mechanism with another number of cells, or None with the reason among the findings."""
    try:
        other = make(cells=cells)
    except Exception as error:  # noqa: BLE001 - a user's mechanism may raise anything
        findings.note(f"not checked with {cells} cells, as it cannot be made ({type(error).__name__}: {error})")
        return None
    faults = Findings()
    interface.check_attributes(other, faults, most_cells=MANY_CELLS)
    if not faults.faults and other.cells != cells:
        findings.note(f"not checked with {cells} cells: made with so many, it has {other.cells}")
        return None
    findings.faults += [f"with {cells} cells: {fault}" for fault in faults.faults]
    return None if faults.faults else other


def check_mechanism(mechanism: Any, *, raise_failures: bool = True, **settings: Any) -> ConformanceReport:
    """Run all checks on a mechanism, and raise or return every failure, not only the first.

    Parameters
    ----------
    mechanism : LocalMechanism or callable
        As for `MechanismContract.of`.
    raise_failures : bool
        Raise an error if any check fails; if False, always return the report.
    **settings
        Attributes of `MechanismContract`, such as `quick`, `seed` or `devices`.

    Returns
    -------
    ConformanceReport
        The result of each check.

    Raises
    ------
    ConformanceError
        If a check fails; it states all failed checks and has the `report`.
    ParameterError
        If a setting is out of range.

    Examples
    --------
    >>> from mechanisms.local import SamplingPrivacy
    >>> check_mechanism(SamplingPrivacy(cells=2, sampling=0.4), quick=True).passed
    True
    """
    report = MechanismContract.of(mechanism, **settings).report()
    if raise_failures:
        report.raise_for_failures()
    return report


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

"""Contract of aggregators: `AggregatorContract`, and `check_aggregator` that runs it."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.stats import norm

from mechanisms.local import KRandomizedResponse, LocalMechanism, NoPrivacy
from scenarios import Scenario, ScenarioError
from simulator.aggregation.combining import Combining, ServerTally
from simulator.arrays import FloatArray, IntArray
from simulator.experiment.run import run_scenario
from simulator.kits.contract import Contract, reported
from simulator.kits.findings import ConformanceReport, Findings, global_random_states
from simulator.kits.mechanisms.interface import ESTIMATE
from simulator.kits.shares import check_too_few_shares
from simulator.results.run import RunResult

QUERIES, VEHICLES, OUTSIDE = 8, 600, 400
REPETITIONS = 200
SHARED, SUBSETS = 500, 10
LARGEST_BIAS = 0.02
"""Greatest bias that passes, as a share of a cell's devices: a median of few servers is not exactly unbiased."""
LEAST_COVERAGE = 0.8
LARGEST_FACTOR = 1.75
"""Greatest factor between stated and real standard errors that passes: an error may be a bound, as of a median."""


class AggregatorContract(Contract):
    """What an aggregator must satisfy, in small runs and on sums drawn directly.

    Of an aggregator that cuts reports into shares, `own_storage` expects that too few shares depend neither on the
    report nor on one another (`simulator.kits.shares`), and `unbiased` that enough shares give the report.

    Attributes
    ----------
    noisy
        Number of queries with noisy reports whose errors are compared with the stated ones.
    """

    noisy: int = 400

    test_runs = reported("runs", "Expect no error in a small run, an `Estimate`, and a server for every device.")
    test_accounts = reported("accounts", "Expect accounts that add up: every device at one server, no report lost.")
    test_own_storage = reported("own_storage", "Expect that a combination does not modify the servers' sums.")
    test_repeatable = reported("repeatable", "Expect the same estimate from the same sums, and from the same seed.")
    test_global_random = reported("global_random", "Expect no draw from NumPy's or Python's global random numbers.")
    test_unbiased = reported("unbiased", "Expect estimates of the mechanism `no_privacy` that are right on average.")
    test_intervals = reported("intervals", "Expect the truth in four fifths of the 95 % intervals at least.")
    test_errors = reported("errors", "Expect stated standard errors within a factor of 1.75 of those of noisy reports.")

    @abstractmethod
    def make(self) -> Any:
        """Return the aggregator."""

    def report(self) -> ConformanceReport:
        """Run all checks; a sound aggregator fails with probability below 10⁻⁶."""
        findings = {name: Findings() for name in self.checks()}
        self._examine(findings)
        return self.report_of(getattr(self.make, "__name__", repr(self.make)), findings, cells=9)

    def _examine(self, findings: Mapping[str, Findings]) -> None:
        """Record what each check finds."""
        states = global_random_states()
        ways = ((0.0, "reports"), (0.0, "reports"), (0.2, "auto"))
        runs = [_run(self.make, findings["runs"], seed=self.seed, loss=loss, answers=answers) for loss, answers in ways]
        findings["global_random"].expect(global_random_states() == states, "global random numbers were drawn; use rng")
        lossless, again, lossy = runs
        if lossless is None or again is None or lossy is None:
            for name in findings.keys() - {"runs", "global_random"}:
                findings[name].applies = False
            return
        aggregator, same = self.make(), lossless.estimates.equals(again.estimates)
        findings["repeatable"].expect(same, "two runs with the same seed published different estimates")
        _check_intervals(lossless, findings["intervals"])
        if hasattr(aggregator, "combine"):
            _check_accounts(lossless, lossy, findings["accounts"], messages=1)
            _check_sums(self, findings)
            _check_errors(self, findings["errors"])
        else:
            _check_accounts(lossless, lossy, findings["accounts"], messages=aggregator.servers)
            findings["unbiased"].call(_check_sharing, self, findings)
            findings["errors"].applies = False


def check_aggregator(make: Callable[[], Any], **settings: Any) -> ConformanceReport:
    """Run all checks on a user's own aggregator.

    Parameters
    ----------
    make
        A class or function that makes the aggregator, called without arguments.
    **settings
        Attributes of `AggregatorContract`, such as `seed`.

    Returns
    -------
    ConformanceReport
        The result of each check.
    """
    return AggregatorContract.of(make, **settings).report()


def _run(make: Callable[[], Any], findings: Findings, *, seed: int, loss: float, answers: str) -> RunResult | None:
    """Run a small scenario with the aggregator; None, and a fault, if it ends with an error."""
    try:
        scenario = Scenario(
            scenario={"name": "conformance", "duration_s": 1200, "seed": seed + 1},
            roads={"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200, "speed_mps": 2},
            cells={"kind": "square", "size_m": 200},
            traffic={"vehicles": VEHICLES, "parked": "answer", "departures": [{"from_s": 0, "to_s": 60, "share": 1.0}]},
            population={"outside": OUTSIDE, "answers": answers},
            campaigns=[{"start_s": 100, "every_s": 60, "queries": QUERIES}],
            mechanisms=[{"kind": "no_privacy"}, {"kind": "sampling_privacy", "sampling": 0.45}],
            channel={"loss": loss},
            aggregation={"kind": make() if not isinstance(make, type) else make},
        )
        return run_scenario(scenario, motion=False)
    except ScenarioError as error:
        findings.fault("; ".join(f"{fault.rule}" for fault in error.faults))
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        findings.fault(f"{type(error).__name__}: {error}")
    return None


def _check_accounts(lossless: RunResult, lossy: RunResult, findings: Findings, *, messages: int) -> None:
    """Check the accounts of two runs in which a report consists of a number of messages."""
    keys = ["query", "mechanism", "round"]
    for name, result in (("without loss", lossless), ("with loss", lossy)):
        servers = result.servers.groupby(keys, sort=True)[["sent", "used"]].sum()
        rounds = result.rounds.set_index(keys).sort_index()
        sent = (servers["sent"] == messages * rounds["answered"]).all()
        findings.expect(sent, f"{name}: servers were sent other than was answered")
        used = (servers["used"] >= rounds["counted"]).all() and (servers["used"] <= messages * rounds["counted"]).all()
        findings.expect(used, f"{name}: servers used other than was counted")
    kept = lossless.rounds["counted"] + lossless.rounds["rejected"]
    findings.expect((kept == lossless.rounds["answered"]).all(), "reports were lost on a channel without loss")


def _check_intervals(result: RunResult, findings: Findings) -> None:
    table = result.estimates
    within = (table["lower"] - 1e-9 <= table["truth"]) & (table["truth"] <= table["upper"] + 1e-9)
    for name, share in within.groupby(table["mechanism"]).mean().items():
        findings.figures[f"coverage {name}"] = round(float(share), 3)
        fault = f"{name}: {100 * share:.0f} % of the 95 % intervals contain the truth"
        findings.expect(share >= LEAST_COVERAGE, fault)


def _queries(
    contract: AggregatorContract, mechanism: LocalMechanism, truth: IntArray, repetitions: int, rng: np.random.Generator
) -> Iterator[tuple[Combining, list[IntArray], list[ServerTally]]]:
    """Yield new aggregators, the true counts of each one's servers, and the sums that its servers hold."""
    cells = np.repeat(np.arange(5, dtype=np.int32), truth)
    for _ in range(repetitions):
        deployment = Combining(own=contract.make(), name="aggregator")
        servers = deployment.assign(cells, mechanism, rng=rng)
        of = [np.bincount(cells[servers == server + 1], minlength=5) for server in range(deployment.own.servers)]
        tallies = []
        for number, true in enumerate(of, start=1):
            counts, devices = mechanism.sample_counts(true, rng=rng), int(true.sum())
            asked = (devices,)
            tallies.append(ServerTally(number, mechanism, counts, asked, asked, len(cells), (np.zeros(devices),)))
        yield deployment, of, tallies


def _check_sums(contract: AggregatorContract, findings: Mapping[str, Findings]) -> None:
    """Check the combination on sums of exact reports that are drawn directly."""
    mechanism, rng = NoPrivacy(cells=4), np.random.default_rng(contract.seed)
    truth = rng.multinomial(3_000, [0.3, 0.25, 0.2, 0.15, 0.1])
    errors = []
    for deployment, of, tallies in _queries(contract, mechanism, truth, REPETITIONS, rng):
        twin = copy.deepcopy(deployment)
        estimate = deployment.combine(tallies, mechanism)
        unchanged = all(np.array_equal(tally.counts[0], kept) for tally, kept in zip(tallies, of, strict=True))
        if not findings["own_storage"].expect(unchanged, "combine modified the sums of a server"):
            return
        repeated = twin.combine([copy.copy(tally) for tally in tallies], mechanism)
        same = all(np.array_equal(getattr(estimate, name), getattr(repeated, name)) for name in ESTIMATE)
        if not findings["repeatable"].expect(same, "the same sums gave different estimates"):
            return
        errors.append(estimate.count - truth[1:])
    _check_bias(np.array(errors), truth[1:], findings["unbiased"], level=contract.level)


def _check_errors(contract: AggregatorContract, findings: Findings) -> None:
    """Compare the errors that are stated for noisy reports with the real ones, over all cells and repetitions.

    The mean of M squares of independent normal errors, M = 1,600, is within a share of 4.75·√(2/M) of their variance,
    but with probability 10⁻⁶ on either side; the root is within about half of that share.
    """
    mechanism, rng = KRandomizedResponse(cells=4, epsilon=2.0), np.random.default_rng(contract.seed)
    truth = np.array([900, 750, 600, 450, 300])
    squares: list[FloatArray] = []
    stated: dict[str, list[FloatArray]] = {"combine": [], "std_error": []}
    for deployment, of, tallies in _queries(contract, mechanism, truth, contract.noisy, rng):
        estimate, aggregator = deployment.combine(tallies, mechanism), deployment.own
        squares.append((estimate.count - truth[1:]) ** 2)
        stated["combine"].append(estimate.std_error**2)
        if callable(getattr(aggregator, "std_error", None)):
            of_servers = np.stack([mechanism.std_error(n) for n in of])
            stated["std_error"].append(np.asarray(aggregator.std_error(of_servers)) ** 2)
    real, most = np.mean(squares), LARGEST_FACTOR * (1 + norm.isf(contract.level) * np.sqrt(2 / np.size(squares)) / 2)
    for name, variances in stated.items():
        if variances:
            factor = float(np.sqrt(np.mean(variances) / real))
            findings.figures[f"stated by {name}, over the real one"] = round(factor, 3)
            findings.expect(1 / most <= factor <= most, f"{name} states an error of {factor:.2f} times the real one")


def _check_sharing(contract: AggregatorContract, findings: Mapping[str, Findings]) -> None:
    """Check that enough shares give the vectors and their sum, and that fewer do not depend on the vectors."""
    sharing, rng = contract.make(), np.random.default_rng(contract.seed)
    vectors = rng.integers(-3, 4, size=(SHARED, 4))
    shares = sharing.split(vectors, rng=rng)
    shape, got = (sharing.servers, *vectors.shape), f"{shares.dtype} of shape {shares.shape}"
    if not findings["unbiased"].expect(shares.shape == shape and shares.dtype == np.uint64, f"split returned {got}"):
        return
    for _ in range(SUBSETS):
        which = np.sort(rng.permutation(sharing.servers)[: sharing.needed])
        joined = sharing.join(shares[which], which + 1)
        findings["unbiased"].expect_equal(joined, vectors, f"shares of servers {which + 1} do not give the vectors")
        total = sharing.join(sharing.sum(shares)[which], which + 1)
        fault = f"sums of servers {which + 1} do not give the sum"
        findings["unbiased"].expect_equal(total, vectors.sum(axis=0), fault)
    check_too_few_shares(sharing, findings["own_storage"], rng=rng, level=contract.level)


def _check_bias(errors: Any, truth: IntArray, findings: Findings, *, level: float) -> None:
    """Check the mean of (repetitions, cells) errors: each cell at the level over the number of cells."""
    spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    limit = norm.isf(level / (2 * len(truth))) * spread + LARGEST_BIAS * truth
    for cell, (mean, most, devices) in enumerate(zip(errors.mean(axis=0), limit, truth.tolist(), strict=True), start=1):
        fault = f"cell {cell} with {devices} devices: wrong by {mean:.1f} on average, at most {most:.1f} by chance"
        findings.expect(abs(mean) <= most + 1e-9, fault)
    findings.figures["comparisons"] = len(truth)

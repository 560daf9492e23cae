"""What the checks of users' cells and engines have in common: a small city, and the run of a table of checks."""

import pickle
import random  # noqa: TID251 - to see whether a user's code draws from it
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from mechanisms.conformance.findings import CheckResult, ConformanceReport, Findings, Trial, run_check
from simulator.roads import RoadNetwork, build_grid

INTERFACE = "interface"
"""Name of the check that comes first: if it fails, the others are skipped."""


def small_city() -> RoadNetwork:
    """Return the roads of a generated grid: five streets and six avenues, 1 km by 0.8 km."""
    return build_grid(rows=5, columns=6, spacing_x_m=200.0, spacing_y_m=200.0, speed_mps=10.0, lanes=1)


def report_of(
    subject: str,
    prepare: Callable[[Findings], Trial | None],
    checks: Mapping[str, Callable[[Trial, Findings], None]],
    seed: int,
) -> ConformanceReport:
    """Run checks, and return all results; an exception that the user's code raises is a fault of the check.

    Parameters
    ----------
    subject
        What is checked, in words.
    prepare
        Makes what the other checks need; its findings are those of the check ``interface``.
    checks
        The other checks, by name.
    seed
        Seed of all random numbers.
    """
    findings, trial = Findings(), None
    try:
        trial = prepare(findings)
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        findings.fault(f"raises {type(error).__name__}: {error}")
    results = [findings.result(INTERFACE)]
    if trial is None or findings.faults:
        results += [CheckResult(name, "skipped", "not run: the interface is wrong") for name in checks]
    else:
        results += [run_check(name, check, trial) for name, check in checks.items()]
    return ConformanceReport(subject, seed, 0.0, tuple(results), ())


def global_random_states() -> bytes:
    """Return the states of the global random numbers of NumPy and Python, to see whether a user's code draws any."""
    return pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002 - to see whether they change


@contextmanager
def seeded_global_randomness(seed: int) -> Iterator[None]:
    """Seed the global random numbers of NumPy and Python in the block, for code that draws them, and restore them."""
    states = global_random_states()
    np.random.seed(seed)  # noqa: NPY002, TID251 - other people's code draws from it
    random.seed(seed)
    try:
        yield
    finally:
        numpys, pythons = pickle.loads(states)  # noqa: S301 - pickled a moment ago
        np.random.set_state(numpys)  # noqa: NPY002 - as it was
        random.setstate(pythons)

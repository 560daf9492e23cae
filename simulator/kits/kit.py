"""What the checks of users' parts of a simulation have in common: a small city, their run, and global randomness."""

import pickle
import random  # noqa: TID251 - to see whether a user's code draws from it
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simulator.experiment.assembly.constructors import missing_methods
from simulator.files.errors import InputError
from simulator.kits.mechanisms.findings import ConformanceReport, Findings, Trial, run_checks
from simulator.roads import RoadNetwork, build_grid


def small_city() -> RoadNetwork:
    """Return the roads of a generated grid: five streets and six avenues, 1 km by 0.8 km."""
    return build_grid(rows=5, columns=6, spacing_x_m=200.0, spacing_y_m=200.0, speed_mps=10.0, lanes=1)


def report_of(
    make: Callable[..., Any],
    prepare: Callable[[Callable[..., Any], int, Findings], Trial],
    checks: Mapping[str, Callable[[Trial, Findings], None]],
    seed: int,
) -> ConformanceReport:
    """Run checks, and return all results; an `InputError` of `prepare` is a list of faults of the check ``interface``.

    Parameters
    ----------
    make
        What makes the user's object, or the object.
    prepare
        Makes what the other checks need from `make` and the seed; it may record findings.
    checks
        The other checks, by name.
    seed
        Seed of all random numbers.
    """

    def prepared(findings: Findings) -> Trial | None:
        try:
            return prepare(make, seed, findings)
        except InputError as error:
            findings.faults += error.faults
            return None

    return run_checks(getattr(make, "__name__", type(make).__name__), prepared, checks, seed=seed)


def require_methods(role: str, instance: Any) -> None:
    """Raise an `InputError` if an object lacks methods of its role."""
    if missing := missing_methods(role, instance):
        raise InputError([f"must have {', '.join(missing)}"])


def check_randomness(trial: Any, findings: Findings) -> None:
    """Check that numpy's and Python's global generators are as before, after the trial is done again."""
    before = global_random_states()
    trial.again()
    findings.expect(global_random_states() == before, "uses global random numbers: use the given rng")


def global_random_states() -> bytes:
    """Return the states of the global random numbers of NumPy and Python, to see whether a user's code draws any."""
    return pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002 - to see whether they change

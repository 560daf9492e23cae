"""Point of a study: one run, its key, and what is kept of its result."""

import hashlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

import pandas as pd

import scenarios
from scenarios import Scenario
from simulator.experiment.run import run_scenario, setting_sha256
from simulator.files.errors import InputError
from simulator.files.resources import peak_memory_nbytes, permitting
from simulator.results.run import RunResult
from simulator.results.tables import relative_errors

KEPT: Mapping[str, tuple[str, ...]] = {
    "scores": ("scores", "claims", "attacks"),
    "estimates": ("scores", "claims", "attacks", "estimates"),
    "all": ("scores", "claims", "attacks", "estimates", "rounds", "servers"),
    "probe": ("rounds", "asked_deciles"),
    "evaluation": ("scores", "claims", "rounds", "deciles"),
    "participation": ("scores", "estimates", "rounds"),
}
"""The tables of every run that a study keeps: the first three by `--keep`, the others by other commands."""

_AGAIN_S = 0.1
"""Seconds after which the end of a point that takes too long is tried again, where something discarded the error."""


class DifferentVersionError(InputError):
    """A worker whose source or data are not the study's; its results would not be comparable."""


@dataclass(frozen=True)
class Point:
    """One run of a study.

    Attributes
    ----------
    key
        Hash of all that determines the run's numbers; see `setting_sha256`.
    number, setting, replicate
        From 1: of the point, of its combination of values, and of its repetition.
    seed
        Seed of the run.
    scenario
        The scenario of the setting, with another seed.
    """

    key: str
    number: int
    setting: int
    replicate: int
    seed: int
    scenario: Scenario

    @classmethod
    def of(cls, scenario: Scenario, sha256: str, *, number: int, setting: int, replicate: int) -> Self:
        """Return the point of a setting, whose `setting_sha256` is given, and a replicate."""
        seed = scenario.seed + replicate - 1
        return cls(_key(sha256, seed), number, setting, replicate, seed, scenario)


@dataclass(frozen=True)
class PointResult:
    """What is kept of a run.

    Attributes
    ----------
    key
        Key of the point.
    tables
        The tables kept, by name, with the columns of a run directory.
    warnings
        What may mislead a reader of this run.
    wall_s
        Duration of the run, seconds.
    peak_nbytes
        Peak memory of the worker so far, bytes; None where the system does not report it.
    """

    key: str
    tables: Mapping[str, pd.DataFrame]
    warnings: tuple[str, ...]
    wall_s: float
    peak_nbytes: int | None


class PointTimeoutError(Exception):
    """A point that took longer than the study permits; no `InputError`, which a run would attribute to a key."""


@contextmanager
def _within(timeout_s: float | None) -> Iterator[None]:
    """End the block by an error once it has taken longer.

    Raises
    ------
    PointTimeoutError
        If it has.
    InputError
        If the system, or a worker that runs points in threads, as Dask's workers do, has no alarm for it.
    """
    if timeout_s is None:
        yield
        return
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        raise InputError(["timeout (--timeout): needs worker processes on Linux or macOS; leave it out"])

    stopped: list[PointTimeoutError] = []

    def stop(*_: object) -> None:
        if sys.exc_info()[1] is None:  # else something cleans up
            stopped.append(PointTimeoutError(f"it took longer than {timeout_s:g} s (--timeout)"))
            raise stopped[-1]

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, timeout_s, _AGAIN_S)
    try:
        yield
    except Exception:
        if stopped:  # code that was interrupted may raise another error in its place
            raise stopped[-1] from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def run_point(
    point: Point, kept: Sequence[str], *, assume_yes: bool = False, timeout_s: float | None = None
) -> PointResult:
    """Simulate a point, in whichever process this is.

    Parameters
    ----------
    point
        The point.
    kept
        Names of the tables to keep.
    assume_yes
        Continue if the estimated memory exceeds the available memory.
    timeout_s
        Longest time of the run, seconds; None for any.

    Raises
    ------
    PointTimeoutError
        If the run takes longer than `timeout_s`.
    DifferentVersionError
        If the source, the data or the users' classes that this process finds are not the key's.
    ScenarioError
        If the scenario has a fault that only a run finds.
    """
    if _key(setting_sha256(point.scenario), point.seed) != point.key:
        worker = "this worker"
        with suppress(KeyError, ValueError):  # no worker of a Dask cluster
            worker = f"the worker {sys.modules['distributed'].get_worker().address}"
        raise DifferentVersionError(
            [f"{worker} has another version of crowdveil, of a data file or of a class than the study was made with"]
        )
    began = time.perf_counter()
    scenario = scenarios.load(point.scenario, seed=point.seed)
    with permitting(assume_yes), _within(timeout_s):
        result = run_scenario(scenario, motion=False, cached=True)
    return PointResult(
        point.key,
        {name: _table(result, name) for name in kept},
        tuple(result.record.warnings),
        time.perf_counter() - began,
        peak_memory_nbytes(),
    )


def _table(result: RunResult, name: str) -> pd.DataFrame:
    """Return a table of a run, or its errors by decile: of all vehicles, or of the devices asked."""
    if name in ("deciles", "asked_deciles"):
        return relative_errors((result if name == "asked_deciles" else result.leading).estimates)
    table: pd.DataFrame = getattr(result, name)
    return table


def _key(sha256: str, seed: int) -> str:
    return hashlib.sha256(f"{sha256} {seed}".encode()).hexdigest()[:40]

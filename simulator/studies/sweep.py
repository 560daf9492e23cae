"""Sweep: runs the points of a design that are not finished yet, and keeps what is finished whatever happens."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

import scenarios
from scenarios import ScenarioError
from scenarios.overrides import plain
from simulator.experiment.components import check_extras
from simulator.experiment.run import build_only, cache_fault
from simulator.files.errors import InputError
from simulator.files.extras import own_version
from simulator.files.resources import permitting
from simulator.results.formatting import counted
from simulator.results.provenance import package_versions, source_sha256
from simulator.studies.design import Design
from simulator.studies.point import KEPT, DifferentVersionError, Point, PointResult, PointTimeoutError, run_point
from simulator.studies.store import DESIGN, FACTS, FAILURES, SCENARIO, STUDY_FORMAT, StudyDirectory
from simulator.studies.workers import CLUSTER_LOST, Start, Workers, processes

_FLUSH_S = 5.0
"""Seconds of finished points that are lost if this process is killed."""


class StudyError(InputError):
    """A study that could not be finished; what is finished is kept."""


@dataclass(frozen=True)
class Failure:
    """A point that failed twice.

    Attributes
    ----------
    point
        The point.
    error
        What happened, in one line or more.
    """

    point: Point
    error: str


@dataclass
class Sweep:
    """The work on a study, from the command to the tables; inside `opened`, iterate over `outcomes`.

    Attributes
    ----------
    design
        What is varied.
    directory
        Where results are kept.
    keep
        Which tables of each run are kept.
    start
        Starts the workers.
    remote
        Whether the workers are of a cluster, which may have other packages than this process.
    shard
        (i, N): only the i-th of N equal parts of the points, i from 1.
    assume_yes
        Continue if the estimated memory exceeds the available memory.
    timeout_s
        Longest time of a point, seconds, after which it counts as failed; None for any.
    points
        Every point of the design.
    todo
        The points of this shard that were not finished before.
    failures
        The points that failed, so far.
    notes
        What the user should know about the design and earlier results.
    """

    design: Design
    directory: StudyDirectory
    keep: str = "scores"
    start: Start = field(default_factory=processes)
    remote: bool = False
    shard: tuple[int, int] = (1, 1)
    assume_yes: bool = False
    timeout_s: float | None = None
    points: list[Point] = field(init=False)
    todo: list[Point] = field(init=False, default_factory=list)
    failures: list[Failure] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    workers: str = field(init=False, default="")
    _begun: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        if self.keep not in KEPT:
            raise InputError([f"keep (--keep): must be scores, estimates or all; got {self.keep!r}"])
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise InputError([f"timeout (--timeout): must be above 0 seconds; got {self.timeout_s:g}"])
        self.points, self.notes = self.design.points(), [*self.design.notes]
        index, of = self.shard
        first, last = (len(self.points) * part // of for part in (index - 1, index))
        self.todo = self.points[first:last]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the directory, and find out which points are not finished yet.

        Raises
        ------
        InputError
            If the directory cannot be used.
        ScenarioError
            If a package that a point needs is not installed, or a user's own class refuses its parameters in a setting.
        """
        for setting in () if self.remote else self.design.settings:
            check_extras(setting.scenario)
        self._check_own_kinds()
        with self.directory.locked():
            self._take_up()
            yield

    def run(self, show: Callable[[str, float], None] = lambda _words, _share: None) -> None:
        """Do all the work; what failed is in `failures`, and what else can go wrong as in `outcomes`.

        Parameters
        ----------
        show
            Is called with what is done in words, and its share of the work, after each point.
        """
        with self.opened():
            total = max(len(self.todo), 1)
            for done, _ in enumerate(chain([None], self.outcomes())):
                show(f"{self.design.name}: {done:,} of {counted(total, 'point')}", done / total)

    def progress(self) -> str:
        """How many points are finished and kept, in words, for a study that is stopped."""
        kept = len(self.directory.finished() & {point.key for point in self.points})
        return f"{kept:,} of {len(self.points):,} points are finished and kept: the same command goes on"

    def outcomes(self) -> Iterator[PointResult | Failure]:
        """Run the points to do, in the opened directory, and yield each as it finishes or has failed twice.

        Yields
        ------
        PointResult or Failure
            In no particular order. If the iteration ends early, what is finished is kept.

        Raises
        ------
        InputError
            If the workers cannot be used.
        StudyError
            If results can no longer be written, or the cluster is lost.
        """
        buffer: list[PointResult] = []
        flushed = time.monotonic()
        try:
            for outcome in self._outcomes():
                if isinstance(outcome, Failure):
                    self.failures.append(outcome)
                else:
                    buffer.append(outcome)
                if buffer and time.monotonic() - flushed > _FLUSH_S:
                    self._flush(buffer)
                    flushed = time.monotonic()
                yield outcome
        finally:
            self._flush(buffer)
        self._finish()

    def _check_own_kinds(self) -> None:
        """Build each setting whose own classes have other parameters than those before, which no schema can check."""
        checked: list[object] = []
        for setting in self.design.settings:
            scenario = setting.scenario
            sections = sorted({at.partition(".")[0] for at, _, _ in scenario.own_kinds()})
            tables = [plain(getattr(scenario, name)) for name in sections]
            if tables and tables not in checked:
                checked.append(tables)
                with permitting(self.assume_yes):
                    build_only(scenario)

    def _take_up(self) -> None:
        """Compare the directory with the design, and write down what will be done.

        A study of other points is not changed before a point of this design is finished.
        """
        before = self.directory.facts() if (self.directory.path / FACTS).is_file() else None
        if before is not None:
            _check_kept(self.directory, before, self.keep)
        done, keys = self.directory.finished(), {point.key for point in self.points}
        if others := len(done - keys):
            changed = before is not None and before["source_sha256"] != source_sha256()
            what = "crowdveil's source" if changed else "the design, the data or the source"
            self.notes.append(
                f"{others:,} finished points in {self.directory.path} are not of this study ({what} has changed): "
                f"they are kept in {self.directory.path / 'earlier'} and not used"
            )
        if fault := cache_fault():
            self.notes.append(fault)
        self.todo = [point for point in self.todo if point.key not in done]
        self._begun = not done or bool(done & keys)
        if self._begun:
            self._write_design(len(done & keys))

    def _write_design(self, finished: int) -> None:
        self.directory.write_facts({**self._facts(), "finished": finished})
        self.directory.write_scenario(self.design.settings[0].scenario)
        self.directory.write_table(DESIGN, self.design.table(self.points))

    def _facts(self) -> dict[str, Any]:
        """Return the content of ``study.json`` for a study that has nothing finished."""
        return {
            "format": STUDY_FORMAT,
            "name": self.design.name,
            "version": own_version(),
            "source_sha256": source_sha256(),
            "factors": list(self.design.factors),
            "settings": len(self.design.settings),
            "replicates": self.design.replicates,
            "points": len(self.points),
            "finished": 0,
            "failed": len(self.failures),
            "complete": False,
            "shard": list(self.shard),
            "keep": self.keep,
            "workers": self.workers,
            "packages": package_versions(),
        }

    def _flush(self, buffer: list[PointResult]) -> None:
        if buffer:
            with self._writing(self.progress):
                if not self._begun:
                    self._begun = True
                    self._write_design(0)
                results, buffer[:] = buffer[:], []
                self.directory.add(results)

    def _finish(self) -> None:
        """Join the results, and record how far the study is.

        Raises
        ------
        StudyError
            If no point of this design could be run, and the directory holds a study of other points.
        """
        if not self._begun and self.failures:
            first = self.failures[0]
            kept = f"no point could be run, and the study in {self.directory.path} is as it was"
            raise StudyError([f"{kept}; point {first.point.number}: {first.error}"])
        table = self.design.table(self.points)
        rows = {failure.point.key: failure.error for failure in self.failures}
        failed = table[table["key"].isin(rows.keys())]
        with self._writing(lambda: "all finished points are kept: the same command goes on"):
            self.directory.finish(table, failed.assign(error=failed["key"].map(rows)), self._facts())

    @contextmanager
    def _writing(self, kept: Callable[[], str]) -> Iterator[None]:
        """Report an error of the file system in the block.

        Raises
        ------
        StudyError
            With the file, the reason, and what `kept` returns.
        """
        try:
            yield
        except OSError as error:
            fault = f"{error.filename or self.directory.path}: {(error.strerror or str(error)).lower()}"
            raise StudyError([f"{fault}; {kept()}"]) from error

    def _outcomes(self) -> Iterator[PointResult | Failure]:
        """Yield the outcome of every point to do; a point that fails is run once more at the end, alone."""
        again: list[Point] = []
        for outcome, point in self._attempts(deque(self.todo), alone=False):
            if isinstance(outcome, PointResult):
                yield outcome
            else:
                again.append(point)
        for outcome, point in self._attempts(deque(again), alone=True):
            yield outcome if isinstance(outcome, PointResult) else Failure(point, outcome)

    def _attempts(self, waiting: deque[Point], *, alone: bool) -> Iterator[tuple[PointResult | str, Point]]:
        """Yield the outcome of one attempt at each point: its result, or what went wrong."""
        work = partial(run_point, kept=KEPT[self.keep], assume_yes=self.assume_yes, timeout_s=self.timeout_s)
        while waiting:
            with ExitStack() as stack:
                workers: Workers = stack.enter_context(self.start())
                self.workers = workers.described
                running: dict[Future[PointResult], Point] = {}
                broken = False
                while running or (waiting and not broken):
                    # One more than can run at once, so that no worker waits for the next.
                    while waiting and not broken and len(running) < (1 if alone else workers.slots() + 1):
                        try:
                            running[workers.executor.submit(work, waiting[0])] = waiting[0]
                        except BrokenExecutor:  # a process ended since the last result
                            broken = True
                            break
                        waiting.popleft()
                    self.notes += [note for note in workers.left_out if note not in self.notes]
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        # A pool that lost a process runs nothing more, and the next round starts another.
                        broken |= not future.cancelled() and isinstance(future.exception(), BrokenExecutor)
                        yield _outcome(future), running.pop(future)


def _outcome(future: Future[PointResult]) -> PointResult | str:
    """Return the result of a call, or what went wrong in words.

    Raises
    ------
    StudyError
        If no other call can succeed.
    """
    try:
        return future.result()
    except BrokenExecutor:
        return "its worker process was killed, perhaps for lack of memory"
    except DifferentVersionError as error:
        raise StudyError([f"{error}; finished points are kept"]) from error
    except CancelledError as error:
        raise StudyError([CLUSTER_LOST]) from error
    except ScenarioError as error:
        return "; ".join(map(str, error.faults))
    except (InputError, PointTimeoutError) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever one point raises must not end the others
        return f"{type(error).__name__}: {error}"


def _check_kept(directory: StudyDirectory, facts: Mapping[str, Any], keep: str) -> None:
    """Check that a study keeps the same tables as the one in a directory, whose facts are given.

    Raises
    ------
    InputError
        If not.
    """
    if facts["keep"] != keep:
        rule = f"must be {facts['keep']}, as the study in {directory.path} was begun, or name another directory"
        raise InputError([f"keep (--keep): {rule}; got {keep}"])


def merge(directories: Sequence[Path], out: Path) -> StudyDirectory:
    """Join the shards of a study in one directory.

    Parameters
    ----------
    directories
        The directories of the shards.
    out
        The new directory, or an earlier one of the same study.

    Returns
    -------
    StudyDirectory
        The joined study; `study.json` says how many of its points are finished.

    Raises
    ------
    InputError
        If a directory holds no study, or one of another design or version; or if `out` holds a study that keeps other
        tables.
    """
    shards = [StudyDirectory(path) for path in directories]
    facts = [shard.facts() for shard in shards]
    designs = [shard.read_table(DESIGN) for shard in shards]
    for shard, fact, design in zip(shards, facts, designs, strict=True):
        unlike = [name for name in ("source_sha256", "keep", "factors") if fact[name] != facts[0][name]]
        if unlike or not design.equals(designs[0]):
            what = f"{unlike[0]} differs" if unlike else "its points differ"
            raise InputError([f"merge (--merge): {shard.path} is not of the same study as {shards[0].path}: {what}"])
    joined = StudyDirectory(out)
    with joined.locked():
        if (out / FACTS).is_file():
            _check_kept(joined, joined.facts(), facts[0]["keep"])
        whole = {**facts[0], "shard": [1, 1], "complete": False}
        joined.write_facts(whole)
        joined.write_scenario(scenarios.load(shards[0].path / SCENARIO, files_exist=False))
        joined.write_table(DESIGN, designs[0])
        joined.take_over(shards)
        failed = pd.concat([shard.read_table(FAILURES) for shard in shards], ignore_index=True)
        joined.finish(designs[0], failed, whole)
    return joined

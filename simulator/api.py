"""Public functions of the library, which `crowdveil` and `simulator` export: run, load, compare, sweep, evaluate."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from scenarios import Overrides, Scenario
from scenarios.in_memory import new_folder
from simulator.experiment.comparison import DifferentTruthError, compare
from simulator.experiment.result import RunData
from simulator.experiment.run import Progress, run_scenario
from simulator.experiment.run_directory import TABLES, check_free
from simulator.experiment.run_handle import RunHandle, UserProcess
from simulator.files.available_memory import permitting
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.reporting import FinishedRun, write_report
from simulator.reporting.terminal_summary import LEAST_WIDTH, print_run
from simulator.roads import RoadNetwork
from simulator.roads.schema import faults_of
from simulator.roads.writers import write_geoparquet
from simulator.sensing.messages import Behaviour, Device, Party
from simulator.studies.design import Design, is_design, read_design
from simulator.studies.evaluate import DATA, MECHANISMS, Evaluation, Goal
from simulator.studies.point import PointResult
from simulator.studies.store import StudyDirectory
from simulator.studies.study import Study
from simulator.studies.sweep import Sweep
from simulator.studies.workers import start_of

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = [
    "Behaviour",
    "Device",
    "DifferentTruthError",
    "Party",
    "RunHandle",
    "RunResult",
    "Study",
    "compare",
    "evaluate",
    "load",
    "roads_of",
    "run",
    "sweep",
    "sweep_points",
]


class RunResult(RunData):
    """The result of a run: its tables as data frames, its record, and a summary in words."""

    @classmethod
    def of(cls, data: RunData) -> Self:
        """Return the result with the content of a run directory."""
        return cls(**vars(data))

    def summary(self) -> str:
        """Return the summary that `crowdveil run` prints: errors, claims, attacks, notes and warnings."""
        text = StringIO()
        wall_s = self.record.wall_s if self.stopwatch is None else self.stopwatch.wall_s()
        record = self.record.model_copy(update={"wall_s": wall_s})
        tables = {name: getattr(self, name) for name in ("cells", *TABLES)}
        # In a notebook, rich would otherwise show the text itself, or write codes for colours into it.
        console = Console(file=text, width=LEAST_WIDTH, force_jupyter=False, force_terminal=False)
        print_run(FinishedRun(Path(), record=record, tables=tables), console)
        return text.getvalue()


def roads_of(graph: "nx.MultiDiGraph[Any]") -> dict[str, str]:
    """Return the section `roads` of a scenario whose roads are a networkx graph.

    Parameters
    ----------
    graph
        A graph of OSMnx, or one with the attributes of `simulator.roads.schema`: `crs` of the graph, projected; `x` and
        `y` of nodes; `length_m`, `speed_mps`, `lanes` and `capacity_vph` (per lane) of edges, and perhaps `geometry`.

    Returns
    -------
    dict
        With the source and the path of the files to which the graph was written; saving a run copies them.

    Raises
    ------
    InputError
        If the graph is neither.
    """
    folder = new_folder("roads")
    if faults := faults_of(graph):
        if not any("osmid" in data for _, _, data in graph.edges(data=True)):
            raise InputError(faults)
        osmnx = import_extra("osmnx.io", needed="a graph of OSMnx needs osmnx", extra="osm")
        osmnx.save_graphml(graph, folder / "roads.graphml")
        return {"source": "osm", "path": str(folder / "roads.graphml")}
    write_geoparquet(RoadNetwork.from_graph(graph), folder)
    return {"source": "geoparquet", "path": str(folder)}


def load(directory: str | Path) -> RunResult:
    """Read the result of an earlier run from its directory.

    The data files that its scenario names need not exist any more.

    Parameters
    ----------
    directory
        A directory that `run` or `crowdveil run` wrote.

    Returns
    -------
    RunResult
        With the same tables, scenario and record; floating-car data are not loaded.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run, a file is missing, or a later version wrote it.
    """
    return RunResult.load(directory)


def run(
    scenario: Scenario | str | Path = "manhattan",
    *,
    seed: int | None = None,
    overrides: Overrides = (),
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
    assume_yes: bool = False,
    processes: Iterable[UserProcess] = (),
    behaviour: Behaviour | None = None,
) -> RunResult:
    """Simulate a scenario and, if `out` is given, save the result and its report there.

    Parameters
    ----------
    scenario
        The name of a shipped scenario (see `crowdveil scenarios list`), the path of a file, or a `Scenario` that was
        already read, or made in Python.
    seed
        Used instead of the scenario's seed.
    overrides
        Values that replace those of the scenario: a mapping ``{"a.b": v}`` or strings ``"a.b=v"``, where ``a.b`` is
        the key's path in the file; an item of a list is given by its name or index.
    out
        Run directory to write.
    overwrite
        Replace an earlier run in that directory.
    progress
        Called with the progress of the run.
    allow_plugins
        Import the classes that the scenario names as ``package.module:Class``. Their code runs with all permissions
        of the calling user. The environment variable ``CROWDVEIL_ALLOW_PLUGINS=1`` allows it too.
    untrusted
        Refuse a scenario that names such a class, engine ``sumo``, or a file outside its folder and
        ``CROWDVEIL_DATA``. The environment variable ``CROWDVEIL_UNTRUSTED=1`` refuses them too.
    assume_yes
        Continue if the estimated memory exceeds the available memory.
    processes
        Functions that take a `RunHandle` and return a generator: SimPy processes that run beside the campaigns.
    behaviour
        Devices and parties that do not follow the protocol; they need ``sensing.engine = "messages"``.

    Returns
    -------
    RunResult
        With `estimates`, `rounds`, `scores`, `claims` and `attacks` as data frames.

    Raises
    ------
    ScenarioError
        If the scenario is faulty, with all faults at once; or if it needs more memory than is available.
    TypeError
        If `scenario` or `overrides` is of another type.
    DirectoryError
        If `out` may not be written; this is checked before the simulation starts.

    Examples
    --------
    >>> from simulator import run
    >>> result = run("tiny", seed=7)
    >>> sorted(result.scores["mechanism"])
    ['baseline', 'randomized', 'sampling']
    >>> result = run("tiny", overrides={"mechanisms.sampling.sampling": 0.3, "traffic.vehicles": 100})
    >>> result.facts["vehicles"]
    100
    """
    if out is not None:
        check_free(Path(out), overwrite=overwrite)
    with permitting(assume_yes):
        result = RunResult.of(
            run_scenario(
                scenario,
                seed=seed,
                overrides=overrides,
                progress=progress,
                allow_plugins=allow_plugins,
                untrusted=untrusted,
                processes=processes,
                behaviour=behaviour,
            )
        )
        if out is not None:
            result.save(out, overwrite=overwrite, render=write_report)
    return result


def sweep(
    scenario: Scenario | str | Path,
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    replicates: int | None = None,
    out: str | Path | None = None,
    keep: str = "scores",
    scheduler: str = "processes",
    workers: int | None = None,
    assume_yes: bool = False,
    **options: Any,
) -> Study:
    """Run a scenario with varied values, and return all results.

    Parameters
    ----------
    scenario
        The name of a shipped scenario, the path of a file, a `Scenario`; or the path of a design, which says itself
        what is varied.
    vary
        The values of each key path, such as ``{"mechanisms.sampling.sampling": [0.1, 0.2]}``; every combination is run.
    replicates
        Runs of each combination, with seeds one apart, the same for all combinations. Default: 1, or the design's.
    out
        Directory of the study; results that are there already are used. By default a temporary one.
    keep
        Tables kept of each run: ``"scores"`` (with claims and attacks), ``"estimates"`` too, or ``"all"``.
    scheduler
        ``"processes"`` of this machine, or ``"dask://HOST:PORT"``.
    workers
        Number of processes; by default as many as cores and memory allow; 0 to run in this process, which objects given
        in Python need. A script that starts processes must do so under ``if __name__ == "__main__":``.
    assume_yes
        Continue if the estimated memory exceeds the available memory.
    options
        `seed`, `overrides`, `allow_plugins` and `untrusted`, as in `run`.

    Returns
    -------
    Study
        With `points`, `scores`, `claims`, `attacks`, `failures` and `warnings` as data frames, which all have the
        varied values in columns of their own type.

    Raises
    ------
    ScenarioError
        If the scenario has a fault with any of the values.
    InputError
        If another argument, the directory or the workers cannot be used.
    """
    work = _work(scenario, vary, replicates, out, keep, scheduler, workers, assume_yes=assume_yes, **options)
    with work.opened():
        for _ in work.outcomes():
            pass
    return Study.load(work.directory.path)


def sweep_points(
    scenario: Scenario | str | Path,
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    replicates: int | None = None,
    out: str | Path | None = None,
    keep: str = "scores",
    scheduler: str = "processes",
    workers: int | None = None,
    assume_yes: bool = False,
    **options: Any,
) -> Iterator[tuple[dict[str, Any], PointResult]]:
    """Run a scenario with varied values, and yield each point when it is finished; parameters as in `sweep`.

    Yields
    ------
    labels : dict
        `point`, `setting`, `replicate`, `seed`, and the value of each varied key path.
    result : PointResult
        With `tables`, a data frame for each table kept. Points that fail are left out: `sweep`, called afterwards
        with the same `out`, runs them again and lists their errors.
    """
    work = _work(scenario, vary, replicates, out, keep, scheduler, workers, assume_yes=assume_yes, **options)
    points = {point.key: point for point in work.points}
    with work.opened():
        for outcome in work.outcomes():
            if isinstance(outcome, PointResult):
                point = points[outcome.key]
                labels = {"point": point.number, "setting": point.setting, "replicate": point.replicate}
                values = work.design.settings[point.setting - 1].values
                yield {**labels, "seed": point.seed, **values}, outcome


def evaluate(
    mechanisms: Sequence[str] = MECHANISMS,
    data: Sequence[str] = DATA,
    *,
    view: str = "linked_reports",
    epsilon: float | None = None,
    delta: float = 0.0,
    error: float | None = None,
    adjacency: str = "move",
    queries: int = 1,
    k: int | None = None,
    replicates: int = 5,
    out: str | Path | None = None,
    scheduler: str = "processes",
    workers: int | None = None,
    assume_yes: bool = False,
    **options: Any,
) -> dict[str, "pd.DataFrame"]:
    """Evaluate mechanisms over data sets, each set by the planner for one target.

    Parameters
    ----------
    mechanisms
        Names of the planner's families; files with ``[[mechanisms]]`` and classes ``package.module:Class``, which are
        taken as they are.
    data
        Names of shipped scenarios, or files. Those that cannot be used are left out, and the table says why.
    view, epsilon, delta, error, adjacency, queries, k
        The target, as in `mechanisms.planning.Target`.
    replicates
        Runs of each data set, with seeds one apart.
    out, scheduler, workers, assume_yes
        As in `sweep`.
    options
        `seed`, `allow_plugins` and `untrusted`, as in `run`.

    Returns
    -------
    dict of DataFrame
        ``evaluation``, ``deciles``, ``leaks`` and ``differences``; docs/studies.md lists their columns.

    Raises
    ------
    InputError
        If no data set or no mechanism can be used.
    ParameterError
        If the target is none.
    """
    goal = Goal(view, epsilon, delta, error, adjacency, queries, k)
    work = Evaluation(
        goal,
        data,
        mechanisms,
        directory=_folder(out),
        replicates=replicates,
        start=start_of(scheduler, workers),
        options=options,
        assume_yes=assume_yes,
    )
    for stage in work.stages():
        with stage.opened():
            for _ in stage.outcomes():
                pass
    return work.write()


def _work(
    scenario: Scenario | str | Path,
    vary: Mapping[str, Sequence[Any]] | None,
    replicates: int | None,
    out: str | Path | None,
    keep: str,
    scheduler: str,
    workers: int | None,
    *,
    assume_yes: bool,
    **options: Any,
) -> Sweep:
    """Return the work of a sweep; parameters as in `sweep`."""
    if not isinstance(scenario, Scenario) and is_design(scenario):
        if vary:
            raise InputError(["vary: the file of a design names what is varied itself"])
        design = read_design(Path(scenario), replicates=replicates, **options)
    else:
        design = Design.of_grid(scenario, vary or {}, replicates=1 if replicates is None else replicates, **options)
    return Sweep(
        design, StudyDirectory(_folder(out)), keep=keep, start=start_of(scheduler, workers), assume_yes=assume_yes
    )


def _folder(out: str | Path | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="crowdveil-")) if out is None else Path(out)

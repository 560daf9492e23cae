"""Public functions of the library, which `crowdveil` and `simulator` export: run, load and compare."""

from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios import Overrides, Scenario
from scenarios.references import new_folder
from simulator.experiment.run import ProgressReceiver, run_scenario
from simulator.experiment.run_handle import RunHandle, UserProcess
from simulator.files.errors import InputError
from simulator.files.resources import permitting
from simulator.pages.notebook import NotebookProgress, RunMap, summary_html
from simulator.pages.plots import RunPlots
from simulator.pages.report import write_report
from simulator.results.compare import DifferentTruthError, compare
from simulator.results.run import ACCESSORS, RunResult
from simulator.results.store import check_free
from simulator.roads import RoadNetwork
from simulator.roads.raw_network import build
from simulator.roads.schema import EDGE_NUMBERS, faults_of
from simulator.sensing.device import Behaviour, Device, Party
from simulator.studies.workers import executor_of

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Behaviour",
    "Device",
    "DifferentTruthError",
    "Party",
    "RunHandle",
    "RunResult",
    "compare",
    "load",
    "roads_of",
    "run",
]


def _summary(run: RunResult) -> Any:
    from simulator.pages.terminal_summary import summary_text  # noqa: PLC0415 - rich is slow to import

    return lambda: summary_text(run.with_tables(record=run.timed_record))


# A run knows no pages: what a user sees of it is added here, where both are known.
ACCESSORS |= {"plot": RunPlots, "summary": _summary, "map": lambda run: partial(RunMap, run)}
ACCESSORS["_repr_html_"] = lambda run: partial(summary_html, run)


def roads_of(graph: "nx.Graph[Any]") -> dict[str, str]:
    """Return the section `roads` of a scenario whose roads are a networkx graph.

    Parameters
    ----------
    graph
        A graph of OSMnx, or one with the attributes of `simulator.roads.schema`: `crs` of the graph, projected; `x` and
        `y` of nodes; `length_m`, `speed_mps`, `lanes` and `capacity_vph` (per lane) of edges, and perhaps `geometry`. A
        graph whose edges have none of the four numbers is read as a graph of OSMnx: by `length` (else the geometry),
        `highway` and the other tags, and defaults by class. An edge of an undirected graph becomes a road in both
        directions, unless its attribute `oneway` says otherwise; `from` and `to` then name its nodes.

    Returns
    -------
    dict
        With the source and the path of the GeoPackage to which the roads were written; saving a run copies it.

    Raises
    ------
    InputError
        If the graph is neither, or the direction of an edge is unknown.
    """
    from simulator.formats.geo.geopackage import write_geopackage  # noqa: PLC0415 - for graphs only
    from simulator.formats.osm.graphs import directed, read_streets  # noqa: PLC0415 - as above

    path, roads = new_folder("roads") / "roads.gpkg", directed(graph)
    if faults := faults_of(roads):
        edges = [data.keys() for _, _, data in roads.edges(data=True)]
        if not any("osmid" in data for data in edges) and not all(data.isdisjoint(EDGE_NUMBERS) for data in edges):
            raise InputError(faults)
        raw = read_streets(roads)
        write_geopackage(build(raw)[0], path, remarks=raw.remarks)
    else:
        write_geopackage(RoadNetwork.from_graph(roads), path)
    return {"source": "geopackage", "path": str(path)}


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
    progress: ProgressReceiver | bool = True,
    allow_plugins: bool = False,
    untrusted: bool = False,
    assume_yes: bool = False,
    processes: Iterable[UserProcess] = (),
    behaviour: Behaviour | None = None,
    workers: Any = None,
    scheduler: str = "processes",
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
        Values that replace the scenario's: a mapping ``{"a.b": v}`` or strings ``"a.b=v"``, where ``a.b`` is the key's
        path in the file; an item of a list is given by its name or index.
    out
        Run directory to write.
    overwrite
        Replace an earlier run in that directory.
    progress
        Called with the progress of the run. By default a notebook shows a bar while the run goes on, and a script
        prints nothing; False for no bar.
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
    workers
        Where batches of devices answer: a number of processes of this machine, an executor of
        `concurrent.futures`, or a client of a Dask cluster. By default in this process. No number depends on it.
    scheduler
        ``processes``, or ``dask://HOST:PORT`` for the workers of a Dask cluster.

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
    bar = NotebookProgress(shown=progress) if isinstance(progress, bool) else nullcontext(progress)
    with permitting(assume_yes), executor_of(workers, scheduler) as executor, bar as receiver:
        result = run_scenario(
            scenario,
            seed=seed,
            overrides=overrides,
            progress=receiver,
            allow_plugins=allow_plugins,
            untrusted=untrusted,
            processes=processes,
            behaviour=behaviour,
            workers=executor,
        )
        if out is not None:
            result.save(out, overwrite=overwrite, render=write_report)
    return result

"""Public functions for studies: `sweep`, `sweep_points` and `evaluate`."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scenarios import Scenario
from scenarios.kinds import is_given
from simulator.files.errors import InputError
from simulator.pages.notebook import NotebookProgress
from simulator.studies.design import design_of
from simulator.studies.evaluate import DATA, MECHANISMS, Evaluation
from simulator.studies.point import PointResult
from simulator.studies.report import write_report
from simulator.studies.store import Study, StudyDirectory
from simulator.studies.sweep import Sweep
from simulator.studies.tables import Goal
from simulator.studies.workers import running


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
    timeout_s: float | None = None,
    progress: bool = True,
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
        Directory of the study, where its report is written too; results that are there already are used. By default a
        temporary one.
    keep
        Tables kept of each run: ``"scores"`` (with claims and attacks), ``"estimates"`` too, or ``"all"``.
    scheduler
        ``"processes"`` of this machine, or ``"dask://HOST:PORT"``.
    workers
        Number of processes; by default as many as cores and memory allow; 0 to run in this process, which objects given
        in Python need. A script that starts processes must do so under ``if __name__ == "__main__":``.
    assume_yes
        Continue if the estimated memory exceeds the available memory.
    timeout_s
        Longest time of a point, seconds, after which it counts as failed.
    progress
        Show in a notebook how many points are finished.
    **options
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
    options |= {"replicates": replicates, "out": out, "keep": keep, "scheduler": scheduler, "workers": workers}
    work = _work(scenario, vary, assume_yes=assume_yes, timeout_s=timeout_s, **options)
    with NotebookProgress(shown=progress) as bar:
        work.run(bar.show)
    study = Study.load(work.directory.path)
    if out is not None:
        write_report(study, out)
    return study


def sweep_points(
    scenario: Scenario | str | Path, vary: Mapping[str, Sequence[Any]] | None = None, **options: Any
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
    work = _work(scenario, vary, **options)
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
    timeout_s: float | None = None,
    progress: bool = True,
    **options: Any,
) -> dict[str, pd.DataFrame]:
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
    out, scheduler, workers, assume_yes, timeout_s, progress
        As in `sweep`.
    **options
        `seed`, `allow_plugins` and `untrusted`, as in `run`.

    Returns
    -------
    dict of DataFrame
        ``evaluation``, a row for each data set and mechanism, with its planned `parameters`: `rmse`, error of a cell in
        vehicles, with `lower` and `upper`, the ends of its 95 % interval; `relative_rmse`, in mean occupancies;
        `zero_rmse`, error of estimating 0, and `beats_zero`, whether `rmse` is less; `hot_cells_recall` and `coverage`,
        as in `scores`; `epsilon` at δ = 0 and `delta` at the target's ε, of the target's queries, the largest of all
        runs; `campaign_epsilon` and `campaign_delta`, of all `queries`; `crowd`, devices certain to be in a cell on
        which the claim relies, null for any number; `meets`, whether every run is within the target; `participation`,
        the share of the vehicles that take part; `bytes_up` of a device in a query; `runs`, and the `reason` why there
        are none. ``deciles``, a row for each tenth of the cells by mean occupancy, 1 the emptiest: their number
        `cells`, `occupancy`, `rmse` and `relative_error`. ``leaks``, a row for each view: `epsilon`, `delta`.
        ``differences``, a row for each pair of mechanisms on the same runs: the `difference` of their errors with
        `lower` and `upper`, and their `ratio` with `ratio_lower` and `ratio_upper`.

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
        options=options,
        running=running(scheduler, workers, assume_yes=assume_yes, timeout_s=timeout_s),
    )
    with NotebookProgress(shown=progress) as bar:
        for stage in work.stages():
            stage.run(bar.show)
    return work.write()


def _work(
    scenario: Scenario | str | Path,
    vary: Mapping[str, Sequence[Any]] | None,
    *,
    replicates: int | None = None,
    out: str | Path | None = None,
    scheduler: str = "processes",
    workers: int | None = None,
    keep: str = "scores",
    assume_yes: bool = False,
    timeout_s: float | None = None,
    **options: Any,
) -> Sweep:
    """Return the work of a sweep; parameters as in `sweep`."""
    design = design_of(scenario, vary or {}, replicates=replicates, **options)
    given = {at for setting in design.settings for at, _, kind in setting.scenario.own_kinds() if is_given(kind)}
    if given and workers != 0:
        rule = "is given in Python, and worker processes do not find it"
        instead = 'use workers=0, or name "package.module:Class" with allow_plugins=True'
        raise InputError([f"{at}: {rule}: {instead}" for at in sorted(given)])
    how = running(scheduler, workers, assume_yes=assume_yes, timeout_s=timeout_s)
    return Sweep(design, StudyDirectory(_folder(out)), keep=keep, **how)


def _folder(out: str | Path | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="crowdveil-")) if out is None else Path(out)

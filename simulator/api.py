"""The library's front door: `from simulator import run`."""

from collections.abc import Sequence
from pathlib import Path

from scenarios import Scenario
from simulator.experiment.directory import check_free
from simulator.experiment.progress import Progress
from simulator.experiment.result import RunResult
from simulator.experiment.run import run_scenario
from simulator.reporting import write_report


def run(
    scenario: Scenario | str | Path = "manhattan",
    *,
    seed: int | None = None,
    overrides: Sequence[str] = (),
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> RunResult:
    """Simulate a scenario and, if `out` is given, keep the result with its report.

    Parameters
    ----------
    scenario
        A shipped name (see `crowdveil scenarios list`), a file, or a scenario already read.
    seed
        Instead of the scenario's.
    overrides
        "a.b=v" each, as `--set` on the command line.
    out
        Run directory to write.
    overwrite
        Replace an earlier run there.
    progress
        Told how far the run is.

    Returns
    -------
    RunResult
        With `estimates`, `rounds`, `scores`, `claims` and `attacks` as data frames.

    Raises
    ------
    ScenarioError
        For whatever is wrong with the scenario, all of it at once.
    DirectoryError
        If `out` may not be written; known before anything is simulated.

    Examples
    --------
    >>> from simulator import run
    >>> result = run("tiny", seed=7)
    >>> sorted(result.scores["mechanism"])
    ['baseline', 'randomized', 'sampling']
    """
    if out is not None:
        check_free(Path(out), overwrite=overwrite)
    result = run_scenario(scenario, seed=seed, overrides=overrides, progress=progress)
    if out is not None:
        result.save(out, overwrite=overwrite, render=write_report)
    return result

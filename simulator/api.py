"""Public functions of the library: `from simulator import run`."""

from pathlib import Path

from scenarios import Overrides, Scenario
from simulator.experiment.result import RunResult
from simulator.experiment.run import Progress, run_scenario
from simulator.experiment.run_directory import check_free
from simulator.files.available_memory import permitting
from simulator.reporting import write_report


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
) -> RunResult:
    """Simulate a scenario and, if `out` is given, save the result and its report there.

    Parameters
    ----------
    scenario
        The name of a shipped scenario (see `crowdveil scenarios list`), the path of a file, or a `Scenario` that was
        already read, or made from tables by `Scenario.model_validate`.
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
        result = run_scenario(
            scenario,
            seed=seed,
            overrides=overrides,
            progress=progress,
            allow_plugins=allow_plugins,
            untrusted=untrusted,
        )
        if out is not None:
            result.save(out, overwrite=overwrite, render=write_report)
    return result

"""`crowdveil run`: simulate a scenario, and write its run directory."""

from contextlib import nullcontext
from pathlib import Path

from simulator.cli.common import load_scenario, print_files_outside, saying_what_is_kept
from simulator.cli.options import AllowPlugins, Overrides, Quiet, Reference, Seed, Untrusted, Yes, command


@command
def run(
    scenario: Reference,
    *,
    set_: Overrides = None,
    seed: Seed = None,
    out: Path | None = None,
    overwrite: bool = False,
    scheduler: str = "processes",
    workers: int | None = None,
    quiet: Quiet = False,
    allow_plugins: AllowPlugins = False,
    untrusted: Untrusted = False,
    yes: Yes = False,
) -> None:
    """Simulate a scenario and write its run directory, report included.

    Parameters
    ----------
    out
        Run directory; if not given, runs/NAME-SEED, else runs/NAME-SEED-2, …
    overwrite
        Replace an earlier run in that directory.
    scheduler : processes|dask://HOST:PORT
        Where batches of devices answer.
    workers
        Processes; if not given, this process alone. No number depends on it.
    """
    checked = load_scenario(scenario, set_, seed=seed, allow_plugins=allow_plugins, untrusted=untrusted)
    # Imported only here: a scenario with a fault is refused before.
    from simulator.experiment.run import run_scenario  # noqa: PLC0415 - imported only when needed
    from simulator.files.resources import permitting  # noqa: PLC0415 - imported only when needed
    from simulator.pages.report import write_report  # noqa: PLC0415 - imported only when needed
    from simulator.pages.terminal_summary import Progress, print_summary  # noqa: PLC0415 - imported only when needed
    from simulator.results.provenance import files_outside  # noqa: PLC0415 - imported only when needed
    from simulator.results.store import check_free, link_latest  # noqa: PLC0415 - imported only when needed
    from simulator.studies.workers import executor_of  # noqa: PLC0415 - imported only when needed

    directory = out or Path("runs") / f"{checked.name}-{checked.seed}"
    numbered = out is None and not overwrite
    check_free(directory, overwrite=overwrite, numbered=numbered)
    with permitting(yes), nullcontext() if quiet else Progress() as progress:
        with executor_of(workers, scheduler) as executor:
            result = run_scenario(checked, progress=progress, workers=executor)
        directory = result.save(directory, overwrite=overwrite, numbered=numbered)
        if directory.parent.resolve() == Path("runs").resolve():
            link_latest(directory)
        with saying_what_is_kept(f"the run is kept in {directory}; crowdveil report {directory} writes its page"):
            saved = result.add_report(directory, write_report)
    named_by_files = {*result.facts["files_outside"]} - {*files_outside(checked)}
    print_files_outside(sorted(named_by_files))
    if not quiet:
        print_summary(saved)

"""`crowdveil sweep`: run a scenario with varied values, repeatedly, and resume where it stopped."""

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simulator.cli.common import saying_what_is_kept
from simulator.cli.options import Overrides, StudyOptions, command, options_of, scenario_names
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from simulator.studies.store import StudyDirectory
    from simulator.studies.sweep import Sweep

_INDEX_VARIABLES = ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX")


@partial(command, after=options_of(StudyOptions))
def sweep(
    references: Annotated[list[str], typer.Argument(autocompletion=scenario_names)],
    *,
    vary: list[str] | None = None,
    replicates: int | None = None,
    set_: Overrides = None,
    keep: Literal["scores", "estimates", "all"] = "scores",
    shard: str | None = None,
    merge: bool = False,
    out: Path | None = None,
    **given: Any,
) -> None:
    """Run a scenario with varied values, and go on where an earlier command stopped; exit code 1 if points failed.

    Parameters
    ----------
    references : SCENARIO|DESIGN.toml
        A scenario, or the file of a design; with --merge, directories.
    vary : A.B=V1,V2
        Values of a key; several options: every combination.
    replicates
        Runs of each setting, with seeds one apart; 1 if not given.
    keep
        Tables kept of each run, besides claims and attacks.
    shard : I/N
        Only the I-th of N parts of the points, for jobs that share no disk.
    merge
        Join the shards in the directories given, in --out.
    out
        Directory of the study; if not given, studies/NAME. A study there goes on.
    """
    from simulator.studies.design import design_of, parse_vary  # noqa: PLC0415 - imported only when needed
    from simulator.studies.store import StudyDirectory  # noqa: PLC0415 - imported only when needed
    from simulator.studies.sweep import Sweep  # noqa: PLC0415 - imported only when needed
    from simulator.studies.sweep import merge as merged  # noqa: PLC0415 - imported only when needed

    common = StudyOptions(**given)
    if merge:
        if out is None:
            raise InputError(["out (--out): --merge needs the directory that the shards are joined in"])
        finish(merged([Path(reference) for reference in references], out), quiet=common.quiet)
        return
    scenario, *others = references
    if others:
        raise InputError(
            [f"SCENARIO: must be one scenario or one design, unless --merge is given; got {', '.join(references)}"]
        )
    options = {"overrides": tuple(set_ or ()), **common.loading()}
    design = design_of(scenario, parse_vary(vary or ()), replicates=replicates, **options)
    part = parse_shard(shard)
    name = design.name if part == (1, 1) else f"{design.name}-{part[0]}-of-{part[1]}"
    directory = StudyDirectory(out or Path("studies") / name)
    run_with_progress(Sweep(design, directory, keep=keep, shard=part, **common.running()), quiet=common.quiet)
    finish(directory, quiet=common.quiet)


def parse_shard(text: str | None) -> tuple[int, int]:
    """Return (i, N) of ``i/N``; the number of an array job stands for ``i`` if that is left out: ``/N``.

    Raises
    ------
    InputError
        If it has another form, or there is no array job.
    """
    if text is None:
        return 1, 1
    index, slash, of = text.partition("/")
    if not index and slash:
        variables = {name: os.environ[name] for name in _INDEX_VARIABLES if name in os.environ}
        if not variables:
            names = " nor ".join(_INDEX_VARIABLES)
            raise InputError([f"shard (--shard): /N is for array jobs, and neither {names} is set; got {text!r}"])
        name, value = next(iter(variables.items()))
        # Kubernetes counts from 0, and SLURM from the least number of --array.
        least = os.environ.get("SLURM_ARRAY_TASK_MIN", "1") if name == _INDEX_VARIABLES[0] else "0"
        index = str(int(value) - int(least) + 1) if value.isdecimal() and least.isdecimal() else value
    if not (index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise InputError([f"shard (--shard): must be I/N, whole numbers with I from 1 to N; got {text!r}"])
    return int(index), int(of)


def run_with_progress(work: "Sweep", *, quiet: bool) -> None:
    """Do the work, and show how far it is and how long it will take, on standard error; if `quiet`, failures alone."""
    from rich.console import Console  # noqa: PLC0415 - imported only when needed
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn  # noqa: PLC0415 - imported only when needed

    from simulator.results.formatting import duration  # noqa: PLC0415 - imported only when needed
    from simulator.studies.sweep import Failure  # noqa: PLC0415 - imported only when needed

    console, failures = (Console(stderr=True, quiet=silent) for silent in (quiet, False))
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with work.opened(), Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        printed = 0

        def print_new_notes() -> None:
            nonlocal printed
            for note in work.notes[printed:]:
                console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
            printed = len(work.notes)

        print_new_notes()
        total, said, began = len(work.todo), 0, time.monotonic()
        console.print(f"{len(work.points):,} points; {total:,} are to be run", highlight=False)
        task = bar.add_task(work.design.name, total=total)
        try:
            for done, outcome in enumerate(work.outcomes(), start=1):
                bar.advance(task)
                print_new_notes()
                if isinstance(outcome, Failure):
                    failures.print(f"point {outcome.point.number} failed twice: {outcome.error}", markup=False)
                if not console.is_terminal and done * 10 // total > said:
                    said = done * 10 // total
                    left = (time.monotonic() - began) / done * (total - done)
                    remaining = f", about {duration(left)} left" if done < total else ""
                    console.print(f"{done:,} of {total:,} points{remaining}", highlight=False)
        except (KeyboardInterrupt, SystemExit):
            console.print(work.progress(), highlight=False)
            raise


def finish(directory: "StudyDirectory", *, quiet: bool) -> None:
    """Write the report of a study, and say where it is and what is missing; exit with 1 if points failed."""
    from simulator.studies.report import write_report  # noqa: PLC0415 - imported only when needed
    from simulator.studies.store import Study  # noqa: PLC0415 - imported only when needed

    with saying_what_is_kept(f"all results are kept in {directory.path}; the same command writes their page"):
        study = Study.load(directory.path)
        page = write_report(study, directory.path)
    if not quiet:
        total = len(study.points) + study.missing
        typer.echo(f"{len(study.points):,} of {total:,} points are finished, {len(study.failures):,} failed: {page}")
    if len(study.failures):
        total, first = len(study.points) + study.missing, study.failures["error"].iloc[0]
        typer.echo(f"{len(study.failures):,} of {total:,} points failed, the first with: {first}", err=True)
        raise typer.Exit(1)

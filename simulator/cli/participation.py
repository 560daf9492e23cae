"""`crowdveil participation`: error of counts, flows and speeds against the share of the vehicles that take part."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from simulator.cli.common import print_notes
from simulator.cli.options import Overrides, Reference, StudyOptions, command, options_of
from simulator.cli.sweep import run_with_progress


@partial(command, after=options_of(StudyOptions))
def participation(
    scenario: Reference,
    *,
    levels: str = "0.01,0.03,0.1,0.3,1",
    replicates: int = 5,
    by: str | None = None,
    within: Annotated[float, typer.Option(min=0.001)] = 0.2,
    set_: Overrides = None,
    out: Path | None = None,
    **given: Any,
) -> None:
    """Find how many vehicles must take part: error of counts, flows and speeds against participation.

    Parameters
    ----------
    levels : P1,P2,…
        Shares of the vehicles that take part; 1 is added.
    replicates
        Runs of each level, with seeds one apart.
    by : class|zone|PARTITION
        Errors by class of road too, or by zone: the cells of a partition.
    within : SHARE
        Relative error for which the necessary participation is stated.
    out
        Directory of the study; if not given, studies/NAME-participation. A study there goes on.
    """
    from simulator.studies.design import parse_vary  # noqa: PLC0415 - imported only when needed
    from simulator.studies.participation import LEVEL, cell_groups, participation_design, write_participation  # noqa: PLC0415 - imported only when needed
    from simulator.studies.store import StudyDirectory  # noqa: PLC0415 - imported only when needed
    from simulator.studies.sweep import Sweep  # noqa: PLC0415 - imported only when needed

    common = StudyOptions(**given)
    options = {"overrides": tuple(set_ or ()), **common.loading()}
    shares = parse_vary([f"{LEVEL}={levels}"])[LEVEL]
    design = participation_design(scenario, shares, replicates=replicates, **options)
    directory = StudyDirectory(out or Path("studies") / f"{design.name}-participation")
    groups = cell_groups(design.settings[0].scenario, by)
    work = Sweep(design, directory, keep="participation", **common.running())
    run_with_progress(work, quiet=common.quiet)
    if work.failures:  # every error needs the run of its seed in which all vehicles take part
        typer.echo("no page: the same command runs the points that failed again, and keeps the others", err=True)
        raise typer.Exit(1)
    sentences, notes = write_participation(directory, design.settings[0].scenario, groups, within=within)
    print_notes(notes)
    if not common.quiet:
        typer.echo("\n".join([*sentences, str(directory.path / "report.html")]))

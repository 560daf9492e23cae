"""The command line: `crowdveil`."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from simulator.termination import one_line_exit

with one_line_exit():  # Ctrl-C while these are imported
    import shlex

    import typer

    from scenarios import ScenarioError
    from simulator.data_command import data_app
    from simulator.planning.command import plan
    from simulator.roads_command import roads_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from mechanisms.conformance import ConformanceReport
    from scenarios import Scenario

app = typer.Typer(
    name="crowdveil",
    help="Simulate vehicular crowdsourcing under a privacy protocol: how good is the traffic picture, and what does "
    "each party learn about a driver?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
scenarios_app = typer.Typer(help="Scenario files: list, show, new, check, schema.", no_args_is_help=True)
app.add_typer(scenarios_app, name="scenarios")
app.add_typer(data_app, name="data")
app.add_typer(roads_app, name="roads")

Reference = Annotated[str, typer.Argument(metavar="SCENARIO", help="A shipped name or a file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="A.B=V", help="Change a value, list items by name or index: mechanisms.sampling.sampling=0.3"
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Go on where memory may not suffice.")]
Seed = Annotated[int | None, typer.Option(help="Instead of the scenario's.", min=0)]
AllowPlugins = Annotated[
    bool, typer.Option("--allow-plugins", help="Import the classes the scenario names; CROWDVEIL_ALLOW_PLUGINS=1 too.")
]
Untrusted = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        help="Refuse plug-ins, engine sumo, and files outside the scenario's folder and CROWDVEIL_DATA; "
        "CROWDVEIL_UNTRUSTED=1 too.",
    ),
]


@app.callback(invoke_without_command=True)
def crowdveil(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Answer options that need no command."""
    if version:
        from simulator.experiment.provenance import own_version  # noqa: PLC0415  # imports wait until needed

        typer.echo(f"crowdveil {own_version()}")
        raise typer.Exit


@app.command()
def run(
    scenario: Reference,
    *,
    set_: Overrides = None,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; if not given, runs/NAME-SEED, else runs/NAME-SEED-2, …")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
    allow_plugins: AllowPlugins = False,
    untrusted: Untrusted = False,
    yes: Yes = False,
) -> None:
    """Simulate a scenario and write its run directory, report included."""
    # Imports wait until needed: `--help` answers at once.
    from simulator.experiment.provenance import files_outside, outside_note  # noqa: PLC0415
    from simulator.experiment.run import run_scenario  # noqa: PLC0415
    from simulator.experiment.run_directory import check_free, link_latest  # noqa: PLC0415
    from simulator.files.memory import permitting  # noqa: PLC0415
    from simulator.reporting import Progress, print_summary, write_report  # noqa: PLC0415

    checked = _load(scenario, set_, seed, allow_plugins=allow_plugins, untrusted=untrusted)
    directory = out or Path("runs") / f"{checked.name}-{checked.seed}"
    numbered = out is None and not overwrite
    check_free(directory, overwrite=overwrite, numbered=numbered)
    with permitting(yes), nullcontext() if quiet else Progress() as progress:
        result = run_scenario(checked, progress=progress)
        directory = result.save(directory, overwrite=overwrite, numbered=numbered, render=write_report)
        if directory.parent.resolve() == Path("runs").resolve():
            link_latest(directory)
    if named_by_files := sorted({*result.facts["files_outside"]} - {*files_outside(checked)}):
        typer.echo(outside_note(named_by_files), err=True)
    if not quiet:
        print_summary(directory)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A finished run.")],
) -> None:
    """Write report.html of a finished run again."""
    from simulator.reporting import write_report  # noqa: PLC0415

    typer.echo(write_report(directory))


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|all]", help="An entry, or all; without it, the list.", show_default=False),
    ] = None,
    *,
    list_: Annotated[bool, typer.Option("--list", help="List names, papers and titles; compute nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON alone; no page unless --out is given.")] = False,
    seed: Annotated[int, typer.Option(help="Of everything drawn.", min=0)] = 1,
    out: Annotated[Path | None, typer.Option(help="The HTML page; runs/reproduce-NAME.html if not given.")] = None,
) -> None:
    """Compute the papers' tables and figures anew, published beside computed; exit code 0 even where they differ."""
    from simulator.reproduction import command  # noqa: PLC0415  # imports wait until needed

    if name is not None and not list_:
        command.reproduce(name, seed=seed, as_json=json, out=out)
        return
    command.print_list(as_json=json)
    if not list_:
        typer.echo("crowdveil reproduce NAME computes one, crowdveil reproduce all every one.", err=True)


@app.command()
def check(
    mechanism: Annotated[
        str, typer.Argument(metavar="PACKAGE.MODULE:CLASS", help="Any class; of mechanisms.local, its name will do.")
    ],
    *,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter: sampling=0.3")
    ] = None,
    cells: Annotated[
        int,
        typer.Option(
            help="Cells of the instance that is checked; another has 10, or 3 if these are more.", min=1, max=16
        ),
    ] = 3,
    seed: Annotated[int, typer.Option(help="Of everything drawn.", min=0)] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer devices, one query, one number of cells.")] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="50 times the devices, large crowds: finds smaller faults, in minutes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that a mechanism keeps every promise; exit code 1 if it does not."""
    from mechanisms.conformance import check_mechanism  # noqa: PLC0415

    if quick and thorough:
        raise typer.BadParameter("--quick and --thorough cannot be given together")
    make = _mechanism_factory(mechanism, set_ or [])
    try:
        make(cells=cells)
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{mechanism} refuses its parameters: {error}") from error
    report = check_mechanism(make, cells=cells, seed=seed, quick=quick, thorough=thorough, raise_failures=False)
    if json:
        from json import dumps  # noqa: PLC0415

        typer.echo(dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print_conformance(report)
    raise typer.Exit(0 if report.passed else 1)


def _mechanism_factory(reference: str, settings: list[str]) -> "Callable[..., object]":
    """Import a class and return what makes an instance of it, given `cells`.

    Raises
    ------
    MechanismError
        If it cannot be imported, or a setting cannot be read.
    """
    import importlib  # noqa: PLC0415

    from scenarios.overrides import apply_overrides  # noqa: PLC0415

    module, colon, name = reference.partition(":")
    if not colon:
        module, name = "mechanisms.local", reference
    _find_own_modules()
    parameters: dict[str, Any] = {}
    if faults := apply_overrides(parameters, settings):
        raise MechanismError("; ".join(str(fault) for fault in faults))
    try:
        make = getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's module may raise anything while it is imported
        raise MechanismError(f"{reference} cannot be imported ({type(error).__name__}: {error})") from error
    return lambda *, cells: make(**{"cells": cells, **parameters})


def _load(
    scenario: str, overrides: list[str] | None, seed: int | None, *, allow_plugins: bool, untrusted: bool
) -> "Scenario":
    """Read a scenario, and say which files outside its folder it reads."""
    import scenarios  # noqa: PLC0415

    checked = scenarios.load(
        scenario, overrides=tuple(overrides or ()), seed=seed, allow_plugins=allow_plugins, untrusted=untrusted
    )
    if outside := checked.files_outside():
        from simulator.experiment.provenance import outside_note  # noqa: PLC0415

        typer.echo(outside_note(outside), err=True)
    if checked.permissions.allow_plugins:
        _find_own_modules()
    return checked


def _find_own_modules() -> None:
    """Let modules in the working directory be imported: a user's own lie there."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)


class MechanismError(ValueError):
    """A mechanism that cannot be had: no such class, or parameters it refuses."""


def _print_conformance(report: "ConformanceReport") -> None:
    """Print every check as a row of a table, and the verdict."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    styles = {"passed": "green", "failed": "bold red", "skipped": "dim"}
    table = Table("check", "", "what was found", title=Text(report.mechanism), title_justify="left")
    for result in report.results:
        # What samples prove of reports stands beside what is claimed; of the many small crowds it would fill a page.
        shown = result.figures.items() if result.name == "claims_hold" else ()
        found = result.detail or "\n".join(f"{name} {value}" for name, value in shown if "proved" in name)
        table.add_row(result.name, Text(result.status, styles[result.status]), Text(found))
    console = Console()
    console.print(table)
    failed = len(report.failures)
    verdict = "keeps every promise" if report.passed else f"fails {failed} of {len(report.results)} checks"
    sizes = " and ".join(map(str, report.cells)) or "no"
    typer.echo(
        f"{verdict} with {sizes} cells; {report.comparisons:,} comparisons, "
        f"false alarms below {report.level:g}, seed {report.seed}"
    )


app.command()(plan)


@scenarios_app.command("list")
def list_scenarios() -> None:
    """List the shipped scenarios."""
    import scenarios  # noqa: PLC0415

    shipped = scenarios.shipped()
    width = max(len(item.name) for item in shipped)
    for item in shipped:
        typer.echo(f"{item.name:<{width}}  {item.description}")


@scenarios_app.command("show")
def show_scenario(
    scenario: Reference,
    *,
    set_: Overrides = None,
    seed: Seed = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="As the simulator reads it, defaults filled in.")
    ] = False,
) -> None:
    """Print a scenario: the file with its comments, or as resolved."""
    import scenarios  # noqa: PLC0415

    if resolved or set_ or seed is not None:
        checked = scenarios.load(scenario, overrides=tuple(set_ or ()), seed=seed)
        typer.echo(scenarios.dump(checked), nl=False)
    else:
        typer.echo(scenarios.source_text(scenario), nl=False)


@scenarios_app.command("check")
def check_scenario(
    scenario: Reference,
    *,
    set_: Overrides = None,
    seed: Seed = None,
    allow_plugins: AllowPlugins = False,
    untrusted: Untrusted = False,
    yes: Yes = False,
) -> None:
    """Check a scenario, its data and its city without running it; say all that is wrong."""
    from scenarios.permissions import PLUGIN_REFUSAL  # noqa: PLC0415
    from simulator.experiment.build import check_demand  # noqa: PLC0415
    from simulator.experiment.components import RunComponents  # noqa: PLC0415
    from simulator.experiment.provenance import without_paths  # noqa: PLC0415
    from simulator.files.memory import permitting  # noqa: PLC0415
    from simulator.streams import Streams  # noqa: PLC0415

    given = _load(scenario, set_, seed, allow_plugins=allow_plugins, untrusted=untrusted)
    checked, left_out = given.without_unpermitted()
    for name in left_out:
        what = f"mechanisms.{name} was not checked, nor was what depends on it"
        typer.echo(f"note: {what}: {PLUGIN_REFUSAL}", err=True)
    streams = Streams(checked.seed)
    with permitting(yes):
        parts = RunComponents.build(checked, streams=streams)
        city = parts.city
        planned = check_demand(checked, city, streams=streams)
    notes = [*city.notes, *parts.refinements.notes, *parts.notes]
    notes += [note for release in parts.releases.values() for note in release.notes]
    notes += planned.notes if planned else ()
    # Doubts are among the notes too; each sentence is printed once, and names files as a run's report does.
    said = without_paths({"notes": [*parts.warnings(checked), *notes]}, checked)["notes"]
    for note in dict.fromkeys(said):
        typer.echo(f"note: {note}", err=True)
    announced = len(planned.trips) if planned else getattr(checked.traffic, "vehicles", None)
    vehicles = f"engine {checked.traffic.engine}" if announced is None else f"{announced:,} vehicles"
    typer.echo(
        f"{checked.name}: {city.roads if city.has_roads else 'no roads'}, {city.cells.count:,} cells, {vehicles}, "
        f"{len(checked.campaigns)} campaign(s), mechanisms {', '.join(parts.mechanisms) or 'none'}"
    )


@scenarios_app.command("new")
def new_scenario(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Written; there must be no such file yet.")],
) -> None:
    """Write a commented scenario of your own to start from."""
    import scenarios  # noqa: PLC0415

    scenarios.write_template(file)
    name = shlex.quote(str(file))
    typer.echo(f"{file} is written: crowdveil scenarios check {name} checks it, crowdveil run {name} runs it")


@scenarios_app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of scenario files."""
    import json  # noqa: PLC0415

    import scenarios  # noqa: PLC0415

    typer.echo(json.dumps(scenarios.schema(), indent=2, ensure_ascii=False))


def main() -> None:
    """Run the command line; a user's mistake ends in one message and exit code 2, Ctrl-C in 130."""
    with one_line_exit():
        try:
            app()
        except ValueError as error:
            if not isinstance(error, _user_errors()):
                raise
            sys.stderr.write(f"crowdveil: {error}\n")
            sys.exit(2)
        except MemoryError as error:  # what an estimate let pass, or the user with --yes
            sys.stderr.write(f"crowdveil: memory does not suffice: {error}\n".replace(": \n", "\n"))
            sys.exit(2)


def _user_errors() -> tuple[type[ValueError], ...]:
    """Return the errors that are a user's to mend; asked for only once something went wrong."""
    from mechanisms.parameter import ParameterError  # noqa: PLC0415
    from simulator.experiment.run_directory import DirectoryError  # noqa: PLC0415
    from simulator.files.errors import InputError  # noqa: PLC0415
    from simulator.reporting import UnfinishedRunError  # noqa: PLC0415
    from simulator.reproduction.errors import ReproductionError  # noqa: PLC0415

    return (
        ScenarioError,
        InputError,
        DirectoryError,
        MechanismError,
        UnfinishedRunError,
        ParameterError,
        ReproductionError,
    )


if __name__ == "__main__":
    main()

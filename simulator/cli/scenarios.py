"""`crowdveil scenarios`: list, show, check and write scenario files, and print their schema."""

import shlex
from pathlib import Path

import typer

import scenarios
from scenarios.references import PLUGIN_REFUSAL
from simulator.cli.commands import Group
from simulator.cli.common import load_scenario, print_json, print_notes, print_rows
from simulator.cli.options import AllowPlugins, Json, Overrides, Reference, Seed, Untrusted, Yes, command

app = typer.Typer(cls=Group, help="Scenario files: list, show, new, check, schema.", add_completion=False)


@app.command("list")
def list_scenarios(*, as_json: Json = False) -> None:
    """List the shipped scenarios."""
    shipped = scenarios.shipped()
    if as_json:
        print_json([{"name": file.name, "description": file.description, "file": str(file.path)} for file in shipped])
    else:
        print_rows((file.name, file.description) for file in shipped)


@app.command("show")
@command
def show_scenario(scenario: Reference, *, set_: Overrides = None, seed: Seed = None, resolved: bool = False) -> None:
    """Print a scenario: the file with its comments, or as resolved.

    Parameters
    ----------
    resolved
        As the simulator reads it, defaults filled in.
    """
    if resolved or set_ or seed is not None:
        checked = scenarios.load(scenario, overrides=tuple(set_ or ()), seed=seed)
        typer.echo(scenarios.dump(checked), nl=False)
    else:
        typer.echo(scenarios.source_text(scenario), nl=False)


@app.command("check")
def check_scenario(
    scenario: Reference,
    *,
    set_: Overrides = None,
    seed: Seed = None,
    allow_plugins: AllowPlugins = False,
    untrusted: Untrusted = False,
    yes: Yes = False,
) -> None:
    """Check a scenario, its data and its city without running it; report every fault."""
    from simulator.experiment.assembly.demand import check_demand  # noqa: PLC0415 - slow, and needed by this command alone
    from simulator.experiment.assembly.own_kinds import faults_of_own_kinds  # noqa: PLC0415 - slow, as the next
    from simulator.experiment.components import RunComponents  # noqa: PLC0415 - slow, and needed by this command alone
    from simulator.files.messages import counted, notes_of, texts_of  # noqa: PLC0415 - needed by this command alone
    from simulator.files.resources import permitting  # noqa: PLC0415 - slow, and needed by this command alone
    from simulator.results.provenance import without_paths  # noqa: PLC0415 - slow, and needed by this command alone
    from simulator.streams import Streams  # noqa: PLC0415 - slow, and needed by this command alone

    given = load_scenario(scenario, set_, seed=seed, allow_plugins=allow_plugins, untrusted=untrusted)
    checked, left_out = given.without_unpermitted()
    unchecked = "was not checked, nor was anything that depends on it"
    print_notes(f"mechanisms.{name} {unchecked}: {PLUGIN_REFUSAL}" for name in left_out)
    streams = Streams(checked.seed)
    with permitting(yes), faults_of_own_kinds(checked):
        parts = RunComponents.build(checked)
        city = parts.city
        planned = check_demand(checked, city, streams=streams)
    notes = [*parts.warnings(), *city.notes, *parts.notes]
    notes += [note for campaign in parts.campaigns for note in campaign.notes]
    notes += notes_of("demand", planned.notes if planned else ())
    # Warnings are among the notes too; each is printed once, and names files as a run's report does.
    texts = texts_of(dict.fromkeys(notes))
    print_notes(without_paths({"notes": texts}, checked)["notes"])
    announced = planned.trips.vehicles if planned else getattr(checked.traffic, "vehicles", None)
    vehicles = f"engine {checked.traffic.engine}" if announced is None else f"{announced:,} vehicles"
    cells = " and ".join(f"{one.count:,} cells" for one in city.partitions.values())
    placed = "" if parts.detectors is None else f", {counted(len(parts.detectors), 'detector')} on links"
    if parts.measured is not None:
        places = counted(parts.measured["name"].nunique(), "place")
        placed += f", {counted(len(parts.measured), 'measured value')} at {places} on links to compare with"
    typer.echo(
        f"{checked.name}: {city.roads if city.has_roads else 'no roads'}, {cells}, {vehicles}, "
        f"{len(checked.campaigns)} campaign(s), mechanisms {', '.join(parts.mechanisms) or 'none'}{placed}"
    )


@app.command("new")
@command
def new_scenario(file: Path) -> None:
    """Write a commented scenario of your own to start from.

    Parameters
    ----------
    file : FILE.toml
        Written; there must be no such file yet.
    """
    scenarios.write_template(file)
    name = shlex.quote(str(file))
    typer.echo(f"{file} is written: crowdveil scenarios check {name} checks it, crowdveil run {name} runs it")


@app.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of scenario files."""
    print_json(scenarios.schema())

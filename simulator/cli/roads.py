"""`crowdveil roads`: shows a scenario's roads, or writes them to a GeoPackage."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from simulator.cli.commands import Group
from simulator.cli.common import load_scenario, print_notes, print_rows
from simulator.cli.options import AllowPlugins, Overrides, Overwrite, Reference, command

if TYPE_CHECKING:
    from scenarios import Scenario
    from simulator.files.messages import Note
    from simulator.roads import RoadNetwork

app = typer.Typer(cls=Group, help="Roads of a scenario: show, export.", add_completion=False)


@app.command("show")
def show_roads(scenario: Reference, *, set_: Overrides = None, allow_plugins: AllowPlugins = False) -> None:
    """Print how large a scenario's roads are, and what was filled in or dropped in reading them, with warnings."""
    checked = load_scenario(scenario, set_, allow_plugins=allow_plugins)
    roads, notes = _build(checked)
    zones = {data["zone"] for data in roads.nodes.values() if "zone" in data}
    west, south, east, north = roads.bounds
    (lon_from, lat_from), (lon_to, lat_to) = roads.to_wgs84([(west, south), (east, north)]).tolist()
    rows = [
        ("roads", checked.roads.source),
        ("nodes", f"{len(roads.node_names):,}"),
        ("links", f"{len(roads.links):,}"),
        ("length", f"{roads.total_length_m / 1000:,.1f} km, each direction counted"),
        ("crs", _named(roads)),
        ("extent", f"{lon_from:.5f}, {lat_from:.5f} to {lon_to:.5f}, {lat_to:.5f} (longitude, latitude)"),
    ]
    if zones:
        rows.append(("zones", f"{len(zones):,}"))
    if closed := int((~roads.through).sum()):
        rows.append(("closed", f"{closed:,} nodes that no route passes through"))
    if len(roads.movements):
        rows.append(("movements", f"{len(roads.movements):,}"))
    if len(roads.signals):
        rows.append(("signals", f"{roads.signals['signal'].nunique():,}"))
    print_rows(rows)
    for note in notes:
        typer.echo(f"note: {note}")


@app.command("export")
@command
def export_roads(
    scenario: Reference,
    path: Path,
    *,
    set_: Overrides = None,
    overwrite: Overwrite = False,
    allow_plugins: AllowPlugins = False,
) -> None:
    """Write a scenario's roads to a GeoPackage, which reads back as the same network.

    Parameters
    ----------
    path : PATH
        The file; its name ends in .gpkg.
    """
    from simulator.formats.geo.geopackage import write_geopackage  # noqa: PLC0415 - slow to import

    roads, notes = _build(load_scenario(scenario, set_, allow_plugins=allow_plugins))
    print_notes(notes)
    write_geopackage(roads, path, overwrite=overwrite)
    typer.echo(f"{path}: {len(roads.node_names):,} nodes and {len(roads.links):,} links written")


def _build(scenario: "Scenario") -> "tuple[RoadNetwork, list[Note]]":
    """Make or read the roads.

    Raises
    ------
    ScenarioError
        If there are none, or the files hold no usable network.
    """
    from scenarios import Fault, ScenarioError  # noqa: PLC0415 - imported only when needed
    from simulator.experiment.assembly.roads import build_roads  # noqa: PLC0415 - imported only when needed

    roads, notes = build_roads(scenario)
    if roads is None:
        raise ScenarioError(scenario.name, [Fault("roads.source", "must be a source of roads", "none")])
    return roads, notes


def _named(roads: "RoadNetwork") -> str:
    authority = roads.crs.to_authority()
    return roads.crs.name if authority is None else f"{':'.join(authority)} ({roads.crs.name})"

"""`crowdveil defences`: how many drivers each attack finds under each defence, from one run."""

import typer

from simulator.cli.common import load_scenario, print_json, print_notes
from simulator.cli.options import AllowPlugins, Json, Overrides, Reference, Seed, Untrusted, command
from simulator.files.errors import InputError
from simulator.results.formatting import number, of_hundred, whole


@command
def defences(
    scenario: Reference = "lying-server",
    *,
    set_: Overrides = None,
    seed: Seed = None,
    json: Json = False,
    allow_plugins: AllowPlugins = False,
    untrusted: Untrusted = False,
) -> None:
    """Print attacks × defences: of 100 drivers, how many each attack finds in each campaign of a scenario."""
    checked = load_scenario(scenario, set_, seed=seed, allow_plugins=allow_plugins, untrusted=untrusted)
    from simulator.experiment.run import run_scenario  # noqa: PLC0415 - imported only when needed

    run = run_scenario(checked, motion=False)
    rows, several = run.findings, run.findings["coalition"].nunique() > 1
    print_notes(run.record.warnings)
    if rows.empty:
        raise InputError([f"attacks: must have results to print; scenario {checked.name} has none"])
    if json:
        print_json(rows.astype(object).where(rows.notna(), None).to_dict("records"), allow_nan=False)
        return
    number_of = rows["value"].map(whole).where(rows["value"] % 1 == 0, rows["value"].map(number))
    found = rows["success"].map(lambda share: of_hundred(share).removeprefix("about "), na_action="ignore")
    rows["found"] = found.where(rows["success"].notna(), number_of)
    # A number of fakes or queries is part of an attack's words; what fakes cost follows their number.
    many = (number_of + " " + rows["metric"]).where(rows["metric"].isin(["fakes", "queries"]))
    many = many.groupby([rows[key] for key in ("campaign", "mechanism", "name", "coalition")]).ffill().fillna("")
    metrics = rows["metric"].str.replace("^(fakes?|queries)", "", regex=True).str.replace("_", " ").str.strip()
    words = zip(rows["name"], rows["coalition"] * several, many, metrics, strict=True)
    rows["attack"], rows["prior"] = [", ".join(filter(None, of)) for of in words], (100 * rows["prior"]).map(whole)
    for mechanism, own in rows.groupby("mechanism", sort=False):
        grid = own.pivot_table("found", ["attack", "prior"], "campaign", "first", sort=False, fill_value="–")
        typer.echo(f"{mechanism}: of 100 drivers, found\n{grid.reset_index().to_string(index=False)}\n")

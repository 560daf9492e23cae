"""`crowdveil advise`: which design fits a city, a budget and its parties, how wrong it is, and who learns what."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from mechanisms.planning import Advised, CityQuestion
from mechanisms.planning import advise as find_advice
from simulator.cli.common import load_scenario, print_json
from simulator.cli.options import Json, Overwrite, command, options_of, scenario_names
from simulator.cli.plan import found_in_cache, with_parameters
from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.files.extras import own_version
from simulator.pages.document import written
from simulator.results.formatting import percent, whole, wide_console

if TYPE_CHECKING:
    from scenarios import Scenario

OPTIONS = [each.replace(default=None) for each in options_of(CityQuestion) if each.name != "occupancy"]
RECEIVES = {
    "server": ("one trusted server", "every zone"),
    "noise": ("{} operators who hold shares and add noise", "shares, which alone tell nothing, sums and its own noise"),
    "shares": ("{} operators who hold shares", "shares, which alone tell nothing, and sums"),
    "shuffler": ("a shuffler before a server", "all answers, but not who sent them"),
    "rounds": ("two servers, of a round each", "the answers of one round"),
    "nobody": ("one server", "all answers"),
}
"""To whom answers go, and what one party receives, by trust."""
OCCUPIED = {"mean": "a mean cell", "small": "a small cell", "night": "a cell at night"}


@partial(command, after=OPTIONS)
def advise(
    scenario: Annotated[str | None, typer.Argument(autocompletion=scenario_names)] = None,
    *,
    occupancy: Annotated[float | None, typer.Option(min=0.0)] = None,
    profile: Path | None = None,
    trust: Literal["server", "noise", "shares", "shuffler", "rounds", "nobody"] | None = None,
    write: Path | None = None,
    page: Path | None = None,
    overwrite: Overwrite = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Find the best design for a city under each trust: its error in three zones, and what each party learns.

    Parameters
    ----------
    scenario : SCENARIO
        A shipped name or a file, for what no option gives: people, zones, answers, parties, participation and loss.
    occupancy : VEHICLES
        Vehicles in a mean zone; people/zones by default.
    profile : FILE
        Table with the columns hour, zone and people, as CSV or Parquet: zones, and vehicles in the three of them.
    trust : server|noise|shares|shuffler|rounds|nobody
        Only this trust.
    write : FILE.toml
        Write the scenario that simulates the design of the first sentence, and the table of its vehicles beside it.
    page : FILE.html|FILE.md|FILE.json
        Write the privacy statement of that design.
    """
    for name, file, endings in (("write", write, (".toml",)), ("page", page, (".html", ".md", ".json"))):
        if file is not None and file.suffix not in endings:  # refused before the search, which takes seconds
            raise InputError([f"--{name} must end in {' or '.join(endings)}; got {file}"])
    given = ({} if scenario is None else city_of(load_scenario(scenario))) | (
        {} if profile is None else _of_profile(profile)
    )
    if occupancy is not None:
        given["occupancy"] = (occupancy, occupancy / 10.0, occupancy / 20.0)
    given |= {name: value for name, value in options.items() if value is not None}
    if missing := [f"--{name}" for name in ("people", "zones") if name not in given]:
        raise InputError([f"advise needs {' and '.join(missing)}, a scenario or a profile"])
    question = CityQuestion(**given)
    if options["trip_min"] is not None and question.per != "trip":
        raise InputError([f"--trip-min needs --per trip; got --per {question.per}"])
    rows = found_in_cache(["advise", question, trust], partial(find_advice, question, [trust] if trust else ()))
    chosen = best_of(rows)
    least = min((row for row in rows if row.holds and row.plan), key=_mean, default=None)
    said = written("advice.txt.j2", q=question, chosen=chosen, least=least, profile=profile)
    sentences = [" ".join(paragraph.split()) for paragraph in said.split("---")]
    if json:
        exposed = {"expected_exposed": question.expected_exposed, "answers_in_period": question.queries}
        advised = {"advised": None if chosen is None else rows.index(chosen)}
        unit = {"unit": f"all answers of one vehicle in a {question.per}"}
        found = {"sentences": sentences, **unit, **exposed, **advised, "question": asdict(question)}
        print_json({**found, "rows": [row.to_dict() for row in rows]}, allow_nan=False)
    else:
        _print(question, rows, sentences)
    if write is not None:
        write_scenario(write, question, chosen, overwrite=overwrite)
    if page is not None:
        write_statement_of(question, chosen, page, overwrite=overwrite)


def best_of(rows: Sequence[Advised]) -> Advised | None:
    """Return the design of least error in a mean zone, whatever others do, in a trust that holds.

    Where none of them is of use, the best one with the fewest parties more; None if there is none.
    """
    planned = [row for row in rows if row.plan and row.crowd is None and row.parties]
    useful = [row for row in planned if row.cells["mean"]["better_than_zero"]]
    return min([row for row in useful if row.holds] or useful, key=lambda row: (row.parties, _mean(row)), default=None)


def _mean(row: Advised) -> float:
    return row.cells["mean"]["error"]


def _print(question: CityQuestion, rows: Sequence[Advised], sentences: Sequence[str]) -> None:
    """Print the sentences, then one table of all trusts."""
    console = wide_console()
    for text in sentences:
        console.print(Text(text, "bold" if text is sentences[0] else ""))
    heads = ("error, vehicles (% of zone)", "guesses right of 100; ε")
    table = Table(Column("trusted, and the design", no_wrap=True, overflow="fold"), *heads, show_lines=True)
    for row in rows:
        made = "" if row.plan is None else with_parameters(row.plan)
        texts = written("advice_row.txt.j2", q=question, row=row, made=made).split("---")
        table.add_row(*(text.strip() for text in texts))
    console.print(table)


def write_statement_of(question: CityQuestion, chosen: Advised | None, page: Path, *, overwrite: bool) -> None:
    """Write the privacy statement of the design that is advised.

    Raises
    ------
    InputError
        If there is none.
    """
    from simulator.pages.statement import Recipient, Statement, write_statement  # noqa: PLC0415 - slow, for pages only

    if chosen is None or chosen.plan is None:
        raise InputError(["page: not written: no design is better than an estimate of 0"])
    deployment, alone = RECEIVES[chosen.trust]
    receives = {0: "what is published", 1: alone}
    recipients = []
    for one in sorted(chosen.learns, key=lambda one: one.members):
        linkable = "over all queries" if one.claim.family == "linked_reports" else "no"
        trusted, seen = one.everything and one.members == 1, receives.get(one.members, "all that these parties receive")
        asked = question.epsilon if question.delta else None
        who = one.party.capitalize()
        recipients.append(Recipient(who, seen, one.claim, one.members, linkable, trusted, asked=asked))
    arriving = f"at least {whole(chosen.least_answers)} answers to a query arrive"
    taking_part = f"{percent(question.participation)} of the vehicles take part"
    taking_part += f", and {percent(question.loss)} of the messages are lost" if question.loss else ""
    more = f"It needs {chosen.parties} independent operators: with {question.parties} no design is of use."
    statement = Statement(
        title=f"counts of {whole(question.people)} vehicles in {whole(question.zones)} zones",
        made_from=f"a plan by crowdveil {own_version()}",
        unit=f"one {question.per}",
        contributions=question.queries,
        people=max(1, round(question.people * question.participation)),
        cells=question.zones,
        model={"server": "central", "noise": "distributed", "shares": "distributed"}.get(chosen.trust, "local"),
        implementation=chosen.plan.title,
        deployment=deployment.format(chosen.parties),
        errors=[(OCCUPIED[cell], it["count"], it["error"], it["count"]) for cell, it in chosen.cells.items()],
        recipients=recipients,
        assumptions=[(taking_part, "estimates are biased"), (arriving, "ε and δ are greater")],
        risks=() if chosen.holds else (more,),
    )
    write_statement(statement, page, overwrite=overwrite)
    typer.echo(f"{page} is written", err=True)


def city_of(scenario: "Scenario") -> dict[str, Any]:
    """Return what a scenario says of a question: its vehicles, cells, queries a day, servers and channel."""
    from simulator.experiment.components import RunComponents  # noqa: PLC0415 - slow, and only with a scenario

    city, campaign, population = RunComponents.build(scenario).city, scenario.campaigns[0], scenario.population
    recorded = city.ground.recorded
    vehicles = recorded.tracks.vehicles if recorded else getattr(scenario.traffic, "vehicles", 0)
    given = {"people": vehicles + population.outside, "zones": city.divided(campaign.cells).cells.count}
    given["answers_per_day"] = max(1, round(86_400.0 / (campaign.every_s or 86_400.0)))
    given |= {"parties": getattr(campaign.aggregation or scenario.aggregation, "servers", None) or 2}
    return given | {"participation": population.participation, "loss": scenario.channel.losses[-1]}


def _of_profile(file: Path) -> dict[str, Any]:
    """Return zones, people and the three occupancies of a table by hour and zone."""
    import pandas as pd  # noqa: PLC0415 - slow, and only with a profile

    from simulator.files.tables import Table as Rows  # noqa: PLC0415 - the same

    table = Rows.from_file(file, columns=("hour", "zone", "people"), text=("zone",))
    hours, people = table.checked_numbers("hour", at_least=0, at_most=24), table.checked_numbers("people", at_least=0)
    table.check()
    long = pd.DataFrame({"hour": hours, "zone": table.identifiers("zone"), "people": people})
    by_hour = long.pivot_table("people", "hour", "zone", aggfunc="sum", fill_value=0.0)
    totals, of_zones = by_hour.sum(axis=1), by_hour.mean()
    counts = (float(of_zones.mean()), float(of_zones.quantile(0.1)), float(totals.min() / len(of_zones)))
    return {"people": max(1, math.ceil(totals.max())), "zones": len(of_zones), "occupancy": counts}


def write_scenario(file: Path, question: CityQuestion, chosen: Advised | None, *, overwrite: bool) -> None:
    """Write the scenario that simulates a design, and the table of its vehicles beside it.

    Raises
    ------
    InputError
        If there is no design, a run cannot have it, or a file is there already.
    """
    if chosen is None or chosen.plan is None:
        raise InputError([f"{file}: not written: no design is better than an estimate of 0"])
    if chosen.trust == "rounds" or question.people < question.zones:
        why = "differences that two servers suppress" if chosen.trust == "rounds" else "fewer vehicles than zones"
        raise InputError([f"{file}: not written: a run cannot have {why}"])
    table = file.with_name(f"{file.stem}-vehicles.csv")
    if not overwrite and (file.exists() or table.exists()):
        raise InputError([f"{file} and {table} must not be there without --overwrite"])
    listed = [f"zone-{zone},{chosen.run['count']}" for zone in range(1, question.zones + 1)]
    text = written("advised.toml.j2", q=question, row=chosen, name=file.stem, table=table.name)
    for path, lines in ((table, ["zone,vehicles", *listed]), (file, [text])):
        content = "\n".join([*lines, ""]).encode()
        export_file(path, lambda staged, content=content: staged.write_bytes(content), overwrite=overwrite)  # type: ignore[misc]
    typer.echo(f"{file} and {table} are written: crowdveil run {shlex.quote(str(file))} runs it", err=True)

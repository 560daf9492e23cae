"""`crowdveil advise`: which design fits a city, a budget and its parties, how wrong it is, and who learns what."""

import math
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from mechanisms.parameter import ParameterError
from mechanisms.planning import Advised, Learned, Question
from mechanisms.planning import advise as find_advice
from mechanisms.planning.advice import CELLS, MOST_ASKED, TRUSTS
from mechanisms.privacy.view import Adjacency
from simulator.cli.common import load_scenario, print_json
from simulator.cli.options import Json, Overwrite, command, scenario_names
from simulator.cli.plan import found_in_cache, with_parameters
from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.inspection.suggested_scenario import toml_of
from simulator.results.formatting import claimed, number, percent, related, whole, wide_console

LABELS = {"mean": "mean zone", "small": "small zone", "night": "zone at night"}
CHANGES = {
    "move": "where a vehicle was in all of its answers",
    "enter_leave": "whether a vehicle was in one zone or outside",
}
DEPLOYED = {"shuffler": "shuffled", "rounds": "per_round", "shares": "secret_shared"}
NO_BETTER = "no better than 0"


@command
def advise(
    scenario: Annotated[str | None, typer.Argument(autocompletion=scenario_names)] = None,
    *,
    people: int | None = None,
    zones: int | None = None,
    answers: int | None = None,
    epsilon: float = 1.0,
    per: Literal["day", "week", "trip"] = "day",
    trip_min: float = 30.0,
    delta: float | None = None,
    parties: int | None = None,
    colluding: int = 1,
    participation: float | None = None,
    loss: float | None = None,
    occupancy: float | None = None,
    profile: Path | None = None,
    adjacency: Adjacency = "move",
    trust: list[str] | None = None,
    write: Path | None = None,
    page: Path | None = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Find the best design for a city under each trust: its error in three zones, and what each party learns.

    Parameters
    ----------
    scenario : SCENARIO
        A shipped name or a file, for what no option gives: people, zones, answers, parties, participation, loss.
    people : VEHICLES
        Vehicles of the city; with a profile by default the greatest number in an hour.
    zones : ZONES
        Zones in which vehicles are counted.
    answers : A_DAY
        Answers of a vehicle in a day; 24 if not given.
    epsilon : ε
        Budget of a vehicle in a period.
    per : day|week|trip
        The period.
    trip_min : MINUTES
        Length of a trip.
    delta : δ
        By default the power of ten at or below a tenth of 1/people.
    parties : OPERATORS
        Independent operators; 2 if not given.
    colluding : OPERATORS
        How many of them may pool what they receive; 0 if they are trusted.
    participation : SHARE
        Share of the vehicles that take part.
    loss : SHARE
        Share of the answers that are lost.
    occupancy : VEHICLES
        Vehicles in a mean zone; people/zones if not given.
    profile : FILE
        Table with the columns hour, zone and people, as CSV or Parquet.
    adjacency : move|enter_leave
        The change of a vehicle to hide: where it was, or whether it was in one zone or outside.
    trust : NAME
        Only this trust: server, noise, shares, shuffler, rounds or nobody; may be repeated.
    write : FILE.toml
        Write the scenario that simulates the design of the first sentence, and the table of its vehicles beside it.
    page : FILE.html|FILE.md|FILE.json
        Write the privacy statement of that design.
    """
    for name in set(trust or ()) - {each.key for each in TRUSTS}:
        raise ParameterError("trust", f"must be one of {', '.join(each.key for each in TRUSTS)}", name)
    given = {} if scenario is None else _of_scenario(scenario)
    given |= {} if profile is None else _of_profile(profile)
    if occupancy is not None:
        given["occupancy"] = (occupancy, occupancy / 10.0, occupancy / 20.0)
    options = {"people": people, "zones": zones, "answers": answers, "parties": parties, "loss": loss}
    options |= {"delta": delta, "participation": participation}
    given |= {name: value for name, value in options.items() if value is not None}
    if missing := [f"--{name}" for name in ("people", "zones") if name not in given]:
        raise InputError([f"advise needs {' and '.join(missing)}, or a scenario, or --profile"])
    kept = {"epsilon": epsilon, "period": per, "trip_min": trip_min, "colluding": colluding, "adjacency": adjacency}
    question = Question(**given, **kept)
    rows = found_in_cache(["advise", question, trust], partial(find_advice, question, trust or ()))
    chosen = best_of(rows)
    sentences = [headline(question, rows), *assumptions(question, rows, profile)]
    if json:
        print_json(_as_json(question, rows, chosen, sentences), allow_nan=False)
    else:
        _print(question, rows, sentences)
    if write is not None:
        write_scenario(write, question, chosen, overwrite=overwrite)


def best_of(rows: Sequence[Advised]) -> Advised | None:
    """Return the design that is advised: of least error in a mean zone, in a trust that holds, whatever others do.

    Where none of these is of use, the best with more parties; None if there is none either.
    """
    useful = [row for row in rows if row.useful and row.crowd is None]
    holding = [row for row in useful if row.holds] or [row for row in useful if row.parties]
    return min(holding, key=lambda row: (row.parties or 0, row.errors["mean"]), default=None)


def headline(question: Question, rows: Sequence[Advised]) -> str:
    """Return the answer in one or two sentences."""
    chosen, least = best_of(rows), min((row for row in rows if row.holds and row.plan), key=_mean, default=None)
    first = "Advised"
    if chosen is None or not chosen.holds:
        who = f"With {question.colluding} of {question.parties} operators who may collude, "
        errs = f": the best errs by {_error(least, 'mean', question)}" if least else ""
        first = f"{who if question.colluding else ''}no design is better than an estimate of 0{errs}."
        if chosen is None:
            return first
        first += f" With {chosen.parties} independent operators"
    of_use = [LABELS[cell] for cell, better in chosen.better_than_zero.items() if not better]
    useless = f" It is {NO_BETTER} in a {' and a '.join(of_use)}." if of_use else ""
    design = f"{chosen.plan.title} ({chosen.name[0].lower()}{chosen.name[1:]})" if chosen.plan else ""
    errs = f"Its counts err by {_error(chosen, 'mean', question)}."
    return (
        f"{first}: {design}. {errs} Each vehicle spends ε = {claimed(question.epsilon)} {_period(question)}.{useless}"
    )


def _mean(row: Advised) -> float:
    return row.errors["mean"]


def _period(question: Question) -> str:
    trip = f"a trip of {number(question.trip_min)} minutes"
    return trip if question.period == "trip" else f"a {question.period}"


def _error(row: Advised, cell: str, question: Question) -> str:
    count = dict(zip(CELLS, question.counts, strict=False))[cell]
    text = f"{number(row.errors[cell])} vehicles in a zone of {whole(count)} ({percent(row.percents[cell] / 100.0)})"
    return text if row.better_than_zero[cell] else f"{text}, {NO_BETTER}"


def assumptions(question: Question, rows: Sequence[Advised], profile: Path | None) -> list[str]:
    """Return what the figures rely on, in sentences."""
    delta = question.delta or 0.0
    mean, small, night, _ = question.counts
    zones = f"mean zone {whole(mean)} vehicles, small zone {whole(small)}, zone at night {whole(night)}"
    source = "assumed: a tenth and a twentieth of the mean"
    if profile is not None:
        source = f"from {profile}: the zone at the tenth percentile, and a mean zone in the emptiest hour"
    taking = "Every vehicle takes part and every answer arrives."
    if question.received() < 1.0:
        least = min((row.least_answers for row in rows if row.plan), default=0)
        taking = (
            f"{percent(question.participation)} of the vehicles take part, and {percent(question.loss)} of the messages "
            f"are lost. Claims hold if at least {whole(least)} answers to a query arrive, of which fewer is improbable."
        )
        if question.loss:
            taking += " Mechanisms of two rounds are left out: they need the answers of both."
    answers = "its one answer" if question.queries == 1 else f"all of its {whole(question.queries)} answers together"
    budget = f"{related('ε', '=', question.epsilon)}, {related('δ', '=', delta)}"
    exposed = f"δ × people = {number(delta * question.people)} vehicles expected to be exposed"
    return [
        f"Hidden: {CHANGES[question.adjacency]}. The budget of {_period(question)} covers {answers}: {budget}. {exposed}.",
        f"Zones: {zones} ({source}).",
        f"{taking} Operators: {question.parties}; up to {question.colluding} may pool what they receive.",
    ]


def _print(question: Question, rows: Sequence[Advised], sentences: Sequence[str]) -> None:
    """Print the sentences, then one table of all trusts."""
    console = wide_console()
    for text in sentences:
        console.print(Text(text, "bold" if text is sentences[0] else ""))
    table = Table("design", "error, vehicles (% of zone)", "right of 100 guesses; ε", show_lines=True)
    for row in rows:
        errors = [f"{cell}: {number(row.errors[cell])} ({percent(row.percents[cell] / 100)})" for cell in row.errors]
        marked = [
            text if better else f"{text}, {NO_BETTER}"
            for text, better in zip(errors, row.better_than_zero.values(), strict=True)
        ]
        table.add_row(_design(question, row), "\n".join(marked), "\n".join(map(_learned, row.learns)))
    console.print(table)
    console.print(
        "Guesses: which of two possible histories of a vehicle is the true one; 50 of 100 are right without any data. "
        "An indented row holds only in a certain crowd.",
        highlight=False,
    )


def _design(question: Question, row: Advised) -> Text:
    """Return a trust, whether it holds, and the design with its parameters."""
    text = Text(row.name, "bold")
    if row.crowd is not None:
        text = Text(f"  if {whole(row.crowd)} vehicles are certain in every zone:")
    elif not row.holds:
        impossible = f"\n{question.colluding} who collude: not possible"
        more = f"; with {row.parties} independent operators:"
        needed = "\nonly if it is trusted:" if row.trust == "server" else impossible + (more if row.parties else "")
        text.append(needed, "")
    made = "nothing meets the budget" if row.plan is None else with_parameters(row.plan)
    return text.append("" if row.plan is None and not row.parties else f"\n{made}", "not bold")


def _learned(learned: Learned) -> str:
    """Return what a party learns, in a few words."""
    if learned.everything:
        return f"{learned.party}: everything"
    success = number(100.0 * learned.success, up=True)
    bound = related("ε", "=", learned.epsilon) if math.isfinite(learned.epsilon) else "no ε"
    return f"{learned.party}: {'' if learned.exact else '≤ '}{success}; {bound}"


def _as_json(
    question: Question, rows: Sequence[Advised], chosen: Advised | None, sentences: Sequence[str]
) -> dict[str, Any]:
    """Return everything, in plain keys."""
    cells = dict(zip(CELLS, question.counts, strict=False))
    return {
        "sentences": list(sentences),
        "unit": f"all answers of one vehicle in {_period(question)}",
        "period": question.period,
        "answers": question.queries,
        "hidden": CHANGES[question.adjacency],
        "epsilon": question.epsilon,
        "delta": question.delta,
        "expected_exposed": (question.delta or 0.0) * question.people,
        "people": question.people,
        "zones": question.zones,
        "zone_counts": cells,
        "parties": question.parties,
        "colluding": question.colluding,
        "participation": question.participation,
        "loss": question.loss,
        "advised": None if chosen is None else rows.index(chosen),
        "rows": [row.to_dict() for row in rows],
    }


def _of_scenario(reference: str) -> dict[str, Any]:
    """Return what a scenario says of a question: its vehicles, cells, queries a day, servers and channel."""
    from simulator.experiment.components import RunComponents  # noqa: PLC0415 - slow, and only with a scenario

    scenario = load_scenario(reference)
    city, campaign = RunComponents.build(scenario).city, scenario.campaigns[0]
    recorded = city.ground.recorded
    vehicles = recorded.tracks.vehicles if recorded else getattr(scenario.traffic, "vehicles", 0)
    servers = getattr(campaign.aggregation or scenario.aggregation, "servers", None)
    every_s = campaign.every_s or 86_400.0
    return {
        "people": vehicles + scenario.population.outside,
        "zones": city.divided(campaign.cells).cells.count,
        "answers": max(1, min(86_400, round(86_400 / every_s))),
        "participation": scenario.population.participation,
        "loss": scenario.channel.losses[-1],
        **({} if servers is None else {"parties": max(2, servers)}),
    }


def _of_profile(file: Path) -> dict[str, Any]:
    """Return zones, people and the three occupancies of a table by hour and zone."""
    from simulator.files.tables import Table as Rows  # noqa: PLC0415 - pandas, and only with a profile

    table = Rows.from_file(file, columns=("hour", "zone", "people"), text=("zone",))
    columns = {"hour": table.checked_numbers("hour", at_least=0, at_most=24), "zone": table.identifiers("zone")}
    columns["people"] = table.checked_numbers("people", at_least=0)
    table.check()
    by_hour = pd.DataFrame(columns).pivot_table("people", "hour", "zone", aggfunc="sum", fill_value=0.0)
    totals, of_zones = by_hour.sum(axis=1), by_hour.mean()
    mean, night = float(of_zones.mean()), float(totals.min() / len(of_zones))
    small = float(of_zones.quantile(0.1))
    return {"people": max(1, round(totals.max())), "zones": len(of_zones), "occupancy": (mean, small, night)}


def write_scenario(file: Path, question: Question, chosen: Advised | None, *, overwrite: bool) -> None:
    """Write the scenario that simulates a design, and the table of its vehicles beside it.

    Raises
    ------
    InputError
        If there is no design, a run cannot have it, or a file is there already.
    """
    if chosen is None or chosen.plan is None:
        raise InputError([f"{file}: not written: no design is better than an estimate of 0"])
    if chosen.trust == "rounds" or question.people < question.zones:
        why = "suppressed differences of two servers" if chosen.trust == "rounds" else "fewer vehicles than zones"
        raise InputError([f"{file}: not written: {why} are not simulated"])
    if file.suffix != ".toml":
        raise InputError([f"{file}: the name of the file must end in .toml"])
    table = file.with_name(f"{file.stem}-vehicles.csv")
    count = int(chosen.run["count"])
    rows = "".join(f"zone-{zone},{count}\n" for zone in range(1, question.zones + 1))
    made = toml_of(_simulating(question, chosen, file.stem, table.name), {}, _expected(question, chosen))
    if not overwrite and file.exists():  # before the table is written
        raise InputError([f"{file}: there is a file already; overwrite it (--overwrite), or name another"])
    for path, text in ((table, f"zone,vehicles\n{rows}"), (file, made)):
        export_file(path, partial(Path.write_text, data=text, encoding="utf-8"), overwrite=overwrite)
    typer.echo(f"{file} and {table} are written: crowdveil run {shlex.quote(str(file))} runs it", err=True)


def _expected(question: Question, chosen: Advised) -> str:
    """Return what a run of the scenario must show."""
    run = chosen.run
    scaled = (
        f" scaled down from {whole(question.counts[0])}, the others outside:"
        if run["count"] < question.counts[0]
        else ""
    )
    played = f" A guess of whether a vehicle is in its zone is right with probability {run['success']:.4f} at most."
    return (
        f"Written by crowdveil advise. Each zone holds {whole(run['count'])} vehicles;{scaled} the error does not "
        f"depend on where the others are.\n# Expected root mean square error: {run['error']:.5g}, in 95 of 100 runs "
        f"within {run['low']:.5g} … {run['high']:.5g}.{played if _attacked(question, chosen) else ''}"
    )


def _attacked(question: Question, chosen: Advised) -> bool:
    """Return whether the attack "known others" measures what is stated: of sums of bits that were all received."""
    kinds = ("randomized_response", "sue", "oue", "the") if chosen.trust == "shares" else ("no_privacy",)
    made = chosen.plan
    return made is not None and made.kind in kinds and made.release is None and question.loss == 0.0


def _simulating(question: Question, chosen: Advised, name: str, table: str) -> dict[str, Any]:
    """Return the scenario of a design: every zone holds as many vehicles as a run can have, all others are outside."""
    made: Any = chosen.plan
    inside = int(chosen.run["count"]) * question.zones
    outside = round((question.people - inside) * question.participation)
    queries = min(question.queries, MOST_ASKED)
    shared = {"servers": chosen.parties} if chosen.trust == "shares" else {}
    deployed = made.aggregation or {"kind": DEPLOYED.get(chosen.trust, "trusted"), **shared}
    campaign = {"name": "counts", "start_s": 60, "queries": queries, "every_s": 120, "round_gap_s": 30}
    tables: dict[str, Any] = {
        "scenario": {"name": name, "description": f"{made.title}: {chosen.name}.", "duration_s": 120 * queries + 60},
        "roads": {"source": "none"},
        "cells": {"kind": "locations"},
        "traffic": {"engine": "static", "owners": table, "columns": {"place": "zone", "count": "vehicles"}},
        "population": {"outside": outside, "participation": question.participation},
        "channel": {"loss": question.loss},
        "claims": {"queries": [question.queries], "epsilons": [question.epsilon]},
        "aggregation": deployed,
        "campaigns": [campaign if made.budget is None else {**campaign, "budget": made.budget}],
        "mechanisms": [{"name": made.name, "kind": made.kind, **made.parameters}],
    }
    if made.release is not None:
        tables["release"] = {**made.release, "mechanisms": [made.name]}
    if _attacked(question, chosen):
        members = [f"server:{number}" for number in range(1, question.colluding + 1)] if chosen.trust == "noise" else []
        tables["attacks"] = [
            {"name": "others-known", "kind": "known_others", "coalition": members, "mechanisms": [made.name]}
        ]
    return tables

"""`crowdveil plan`: its options and its output."""

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich.table import Column, Table
from rich.text import Text

from mechanisms.planning import RELEASED, Advised, CityQuestion, Learned, LeastNumber, Plan, Planning, Target
from mechanisms.privacy.claim import Claim, ListedDelta
from simulator.cli.common import meter, print_json, print_notes
from simulator.cli.options import command, family_names, target_options
from simulator.pages.document import written
from simulator.results.formatting import claimed, listed, number, related, whole, wide_console

_KEPT = (Planning, Plan, Claim, ListedDelta, Target, LeastNumber, Advised, Learned, CityQuestion)
"""The classes that a kept plan is made of."""
WIDEST = 34
"""Columns of a parameter in a table, so that the table fits into 80."""


@partial(command, before=target_options())
def plan(
    *,
    mechanism: Annotated[list[str] | None, typer.Option(autocompletion=family_names)] = None,
    trusts: Annotated[bool, typer.Option("--trusts", hidden=True, help="See advise.")] = False,
    find: Literal["batch", "crowd", "honest"] | None = None,
    json: bool = False,
    **given: Any,
) -> None:
    """Find each mechanism's parameters that meet a privacy or an error target, or state why none do.

    Parameters
    ----------
    mechanism : NAME
        Only these mechanisms, also classes of your own as package.module:Class; all if not given.
    find
        With --epsilon and --error: the least batch, crowd in the cell or number of honest servers for both.
    json
        Print the plans as JSON.
    """
    from mechanisms import planning  # noqa: PLC0415 - `--help` needs no mechanism
    from mechanisms.parameter import ParameterError  # noqa: PLC0415 - the same

    if trusts:
        raise ParameterError("trusts", "is the command crowdveil advise now", trusts)
    allowed = given["error"] if find else None
    if find and (given["epsilon"] is None or allowed is None):
        raise ParameterError("find", "needs both --epsilon and --error", find)
    target, named = planning.Target(**given | ({"error": None} if find else {})), mechanism or []
    own = {name: _imported(name) for name in named if ":" in name}
    search: Callable[..., Any]
    show: Callable[..., None]
    if find and allowed is not None:
        search = partial(planning.find_least, target, error=allowed, number=find, mechanisms=named)
        show = partial(print_least, target, find, allowed)
    else:
        search = partial(planning.plan, target, [name for name in named if name not in own], own=own)
        show = print_planning
    found = found_in_cache(None if own else [target, find, allowed, named], search)
    if json:
        print_json([each.to_dict() for each in found] if isinstance(found, list) else found.to_dict(), allow_nan=False)
    else:
        show(found)


def _imported(reference: str) -> Any:
    """Import a class of the user's."""
    from simulator.cli.check import import_own  # noqa: PLC0415 - it imports scenarios, which no other plan needs

    return import_own(reference)


def found_in_cache(content: object, search: Callable[..., Any]) -> Any:
    """Return what a search finds, with its progress on the terminal, or take it from the cache of this user.

    Parameters
    ----------
    content
        What the result depends on; None if it is not kept, as for a user's own classes.
    search
        Searches, given a function `progress` that is called with shares of the work.
    """
    from simulator.experiment import build_cache  # noqa: PLC0415 - `--help` needs no cache

    classes = {each.__name__: each for each in _KEPT}

    def searched() -> Any:
        with meter("planning", 1.0) as progress:
            return search(progress=progress)

    fault = build_cache.folder_fault(build_cache.default_folder())
    print_notes([fault] if fault else [])
    with build_cache.using_cache():
        return searched() if content is None else build_cache.cached("plan", content, searched, classes)


def print_planning(planning: Planning) -> None:
    """Print the plans of one target on standard output, the best first."""
    console, target, best = wide_console(), planning.target, planning.least
    others = [plan for plan in planning.plans if plan.meets and plan is not best]
    told: dict[str, Any] = {"made": "", "left_open": [], "equals": []}
    if best is not None:
        equals = [plan.name for plan in others if _as_good(plan, best, target)]
        told = {"made": with_parameters(best), "left_open": _left_open(best, target), "equals": equals}
    verdict, *about = written("plan.txt.j2", planning=planning, **told).split("\n---\n")
    console.print(Text(verdict, "bold"))
    if best is not None and best.scenario is not None:
        console.print(Text(f"\n{best.scenario}"), soft_wrap=True)
    for text in about:
        console.print(Text(" ".join(text.split())))
    key = (lambda plan: plan.std_error) if target.error is None else (lambda plan: plan.epsilon)
    meeting = sorted((plan for plan in planning.plans if plan.meets), key=key)
    if meeting:
        console.print(_table(target, meeting))
        console.print(_claims_table(meeting))
    for plan in planning.plans:
        if plan.reason is not None:
            mark = "[yellow]note[/]" if plan.meets else "[red]none[/]"
            console.print(mark, Text(f"{plan.name}: {plan.reason}"), highlight=False)
        if plan.cut_short is not None:
            console.print("[yellow]note[/]", Text(f"{plan.name}: {plan.cut_short}"), highlight=False)


def print_least(target: Target, find: str, error: float, numbers: Sequence[LeastNumber]) -> None:
    """Print the least batch or crowd with which each mechanism meets the target and the error."""
    console = wide_console()
    ranked = sorted(numbers, key=lambda result: math.inf if result.least is None else result.least)
    least = ranked[0].least if ranked else None
    headline = "No mechanism meets both."
    if least is not None:
        best = listed([result.mechanism for result in ranked if result.least == least])
        headline = f"Least {find}: {whole(least)} ({best})."
    console.print(Text(headline, "bold"))
    asked = " ".join(written("target.txt.j2", target=target).split())
    console.print(Text(f"{asked} And an error of {number(error)} vehicles."))
    table = Table("mechanism")
    table.add_column(f"least {find}", justify="right")
    table.add_column("error there, vehicles", justify="right")
    most = {"batch": target.population, "crowd": target.expected, "honest": target.servers}[find]
    for result in ranked:
        shown = f"none up to {whole(most)}" if result.least is None else whole(result.least)
        error_there = number(result.std_error) if math.isfinite(result.std_error) else "no plan"
        table.add_row(result.mechanism, shown, error_there)
    console.print(table)


def _left_open(best: Plan, target: Target) -> list[str]:
    """Return words for what the target does not cover, with the claims about it; none if it covers everything."""
    claims = _claims(best.claims)
    seen = [claims[view] for view in best.covers if view.startswith("report_")]
    left_open = []
    if "linked_reports" not in best.covers and claims["linked_reports"] not in seen[:1]:
        left_open.append(f"whoever has all of a device's reports, linked: {claims['linked_reports']}")
    if not target.published and target.view not in {"linked_reports", *RELEASED} and len(best.covers) > 1:
        published = next(view for view in ("released_differences", "released_counts") if view in claims)
        left_open.append(f"readers of what is published: {claims[published]}")
    return left_open


def _as_good(plan: Plan, best: Plan, target: Target) -> bool:
    """Return whether a plan is as good as the best one, within a relative difference of 0.001."""
    if target.error is not None:
        return plan.epsilon == best.epsilon or plan.epsilon <= best.epsilon * 1.001
    return plan.std_error <= best.std_error * 1.001


def _table(target: Target, meeting: Sequence[Plan]) -> Table:
    """Return the table of the plans that meet the target."""
    table = Table(Column("mechanism", no_wrap=True, overflow="fold"), show_lines=True)
    table.add_column("error,\nvehicles", justify="right")
    table.add_column(f"in {whole(target.simulated)}\nsimulated\ncells", justify="right")
    table.add_column("holds for")
    for plan in meeting:
        low, high = plan.error_interval
        table.add_row(_mechanism(plan), number(plan.std_error), f"{number(low)} … {number(high)}", _crowd(plan))
    return table


def _claims_table(meeting: Sequence[Plan]) -> Table:
    """Return the table of what each of the plans claims about each view."""
    table = Table(Column("view of each mechanism", no_wrap=True, overflow="fold"), "claim")
    for plan in meeting:
        table.add_section()
        table.add_row(Text(plan.name, "bold"))
        for view, claim in _claims(plan.claims).items():
            table.add_row(f"  {view}", claim)
    return table


def _mechanism(plan: Plan) -> Text:
    """Return a mechanism's name and, on lines of their own, its title, its parameters and its release's parameters."""
    lines = [f"  {name} = {_value(value)}" for name, value in plan.settings.items()]
    wrapped = [textwrap.fill(line, WIDEST, subsequent_indent="    ", break_long_words=False) for line in lines]
    far = [] if plan.unlike_name is None else textwrap.wrap(f"({plan.unlike_name})", WIDEST, initial_indent="  ")
    title = textwrap.wrap(plan.title, WIDEST, initial_indent="  ", subsequent_indent="  ")
    return Text("\n".join([plan.name, *title, *far, *wrapped]))


def with_parameters(plan: Plan) -> str:
    """Return the name of a mechanism with its parameters and its release's parameters in parentheses."""
    far = "" if plan.unlike_name is None else f", {plan.unlike_name}"
    return f"{plan.name} ({', '.join(f'{name} = {_value(value)}' for name, value in plan.settings.items())}{far})"


def _crowd(plan: Plan) -> str:
    """Return the others for which the claim about the target's view holds."""
    return "any others" if plan.crowd is None else f"≥ {whole(plan.crowd)} in the cell"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "[" + ", ".join(_value(part) for part in value) + "]" if isinstance(value, list) else str(value)


def _claims(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the words for each view: ε at δ = 0, and δ at the target's ε where that δ is above 0."""
    lines: dict[str, str] = {}
    for claim in claims:
        without = "ε infinite" if claim.kind == "infinite" else "ε unknown"
        lines[claim.view] = f"ε = {claimed(claim.epsilon)}" if claim.has_finite_epsilon else without
        for epsilon, delta in claim.points:
            if claim.delta_kind == "unknown":
                lines[claim.view] += ", δ unknown"
            elif delta > 0.0:
                lines[claim.view] += f", {related('δ', '=', delta)} at {related('ε', '=', epsilon)}"
    return lines

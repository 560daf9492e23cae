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
from simulator.results.formatting import claimed, counted, listed, number, related, whole, wide_console

exact = "{:.12g}".format
"""The shortest form of a number."""
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
    console = wide_console()
    console.print(Text(verdict(planning), "bold"))
    if planning.least is not None and planning.least.scenario is not None:
        console.print(Text(f"\n{planning.least.scenario}"), soft_wrap=True)
    console.print(describe_target(planning.target), highlight=False)
    if planning.least is not None:
        console.print(describe_error(planning.target, planning.least), highlight=False)
    key = (lambda plan: plan.std_error) if planning.target.error is None else (lambda plan: plan.epsilon)
    meeting = sorted((plan for plan in planning.plans if plan.meets), key=key)
    if meeting:
        console.print(_table(planning.target, meeting))
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
    console.print(describe_target(target), f"And an error of {number(error)} vehicles.", highlight=False)
    table = Table("mechanism")
    table.add_column(f"least {find}", justify="right")
    table.add_column("error there, vehicles", justify="right")
    most = {"batch": target.population, "crowd": target.expected, "honest": target.servers}[find]
    for result in ranked:
        shown = f"none up to {whole(most)}" if result.least is None else whole(result.least)
        error_there = number(result.std_error) if math.isfinite(result.std_error) else "no plan"
        table.add_row(result.mechanism, shown, error_there)
    console.print(table)


def describe_target(target: Target) -> str:
    """Return one sentence that describes the target."""
    seen = target.view
    where = (
        f"{counted(target.cells, 'cell')}, {counted(target.population, 'device')} asked, "
        f"{whole(target.expected)} expected in a cell"
    )
    over = "" if target.queries == 1 else f" over {counted(target.queries, 'query').replace('querys', 'queries')}"
    if target.epsilon is None:
        goal = f"an error of {number(target.error)} vehicles or less; {seen}{over} compared at "
        return f"{where}. Target: {goal}δ = {exact(target.delta)}."
    crowd = ""
    if target.covers_publication:
        crowd = f", at least {whole(target.crowd)} in the cell" if target.crowd else ""
        crowd += "" if target.k is None else f", differences below {target.k} suppressed"
    batch = "" if target.batch is None else f", at least {whole(target.batch)} counted"
    if target.honest == 0:
        seen += " (all operators collude, and together hold every report)"
    elif target.covers_publication and target.view not in RELEASED:
        seen += " and what is published, each by itself,"
    goal = f"ε = {exact(target.epsilon)}, δ = {exact(target.delta)}"
    return f"{where}. Target: {seen}{over} with {goal} for {CHANGES[target.adjacency]}{crowd}{batch}."


def describe_error(target: Target, best: Plan) -> str:
    """Return one sentence about the counts for which errors are stated."""
    inside, outside = target.expected, target.population - target.expected
    return (
        f"Errors are for a cell of exactly {whole(inside)}, with {whole(outside)} outside it; with all "
        f"{whole(target.population)} in it and nobody outside, {best.name} errs by {number(best.full_error)}."
    )


CHANGES = {
    "move": "a device that moves between two cells or outside",
    "enter_leave": "a device that enters or leaves one cell",
}


def verdict(planning: Planning) -> str:
    """Return a sentence that names the best mechanism for the target, or states that none meets it.

    A sentence before it states that an estimate of 0 has no more error, where that is so.
    """
    best, target = planning.least, planning.target
    if best is None:
        return "No mechanism meets this target."
    linked = _left_open(best, target)
    equals = [plan.name for plan in planning.plans if plan.meets and plan is not best and _as_good(plan, best, target)]
    others = f"; no worse: {listed(equals)}" if equals else ""
    first = "Best" if best.better_than_zero else f"{USELESS}\nLeast of them"
    if target.error is not None:
        least = related("ε", "=", best.epsilon) if math.isfinite(best.epsilon) else "no finite ε"
        loss = f"the least privacy loss in {target.view}: {least} at δ = {exact(target.delta)}"
        return f"{first}: {with_parameters(best)}, with {loss}{_reliance(planning)}{linked}{others}."
    text = f"{first}: {with_parameters(best)}, with an error of {number(best.std_error)} vehicles in a cell of "
    return f"{text}{whole(target.expected)}{_reliance(planning)}{linked}{others}."


USELESS = "No planned mechanism errs less than an estimate of 0 everywhere."


def _left_open(best: Plan, target: Target) -> str:
    """Return the words for what the target does not cover, with the claims about it; empty if it covers everything."""
    claims = _claims(best.claims)
    seen = [claims[view] for view in best.covers if view.startswith("report_")]
    left_open = []
    if "linked_reports" not in best.covers and claims["linked_reports"] not in seen[:1]:
        left_open.append(f"whoever has all of a device's reports, linked: {claims['linked_reports']}")
    if not target.published and target.view not in {"linked_reports", *RELEASED} and len(best.covers) > 1:
        published = next(view for view in ("released_differences", "released_counts") if view in claims)
        left_open.append(f"readers of what is published: {claims[published]}")
    return f"; left open: {'; '.join(left_open)}" if left_open else ""


def _reliance(planning: Planning) -> str:
    """Return the words for the crowd that the best plan relies on, and the best plan that relies on none."""
    best, alone = planning.least, planning.least_without_crowd
    if best is None or best is alone:
        return ""
    text = f", if at least {whole(best.crowd or 1)} devices are certain to be in the cell"
    if alone is None:
        return f"{text}; no other mechanism meets the target without"
    return f"{text}; without: {alone.name}, error {number(alone.std_error)}"


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

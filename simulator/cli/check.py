"""`crowdveil check`: check that a user's own class satisfies the contract of its role."""

import importlib
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechanisms.declared import MECHANISMS
from scenarios.errors import suggestion
from scenarios.overrides import apply_overrides
from simulator.cli.common import find_own_modules, print_json, wrapped
from simulator.cli.options import Role, command, mechanism_class_names
from simulator.files.errors import UserError

if TYPE_CHECKING:
    from simulator.kits.findings import ConformanceReport

CONTRACTS: Mapping[Role, str] = {
    "mechanism": "simulator.kits.mechanism:MechanismContract",
    "aggregator": "simulator.kits.aggregator:AggregatorContract",
    "attack": "simulator.kits.attack:AttackContract",
}
"""The contract of each role, as ``module:class``."""
CELLS = 3
SHOWN = ("proved", "right")
"""Ends of the names of figures that are printed."""


class OwnKindError(UserError):
    """A class that cannot be checked: it does not exist, is of no role, or does not accept the parameters."""


@command
def check(
    kind: Annotated[str, typer.Argument(autocompletion=mechanism_class_names)],
    *,
    set_: list[str] | None = None,
    role: Role | None = None,
    cells: Annotated[int | None, typer.Option(min=1, max=16)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    quick: bool = False,
    thorough: bool = False,
    json: bool = False,
) -> None:
    """Check a class of your own against the contract of its role; exit code 1 if it fails.

    Parameters
    ----------
    kind : PACKAGE.MODULE:CLASS
        Any class; for one of mechanisms.local its name suffices.
    set_ : KEY=VALUE
        A parameter: sampling=0.3
    role
        Its role. Default: by the methods of the class.
    cells
        Of mechanisms: cells of the instance that is checked, by default 3; another has 10, or 3 if these are more.
    seed
        Seed of all random draws.
    quick
        Of mechanisms: fewer devices, one query, one number of cells.
    thorough
        Of mechanisms: 50 times the devices, large crowds: finds smaller faults, in minutes.
    json
        Print the report as JSON.
    """
    if quick and thorough:
        raise typer.BadParameter("--quick and --thorough cannot be given together")
    subject, parameters = import_own(kind), _parameters(set_ or [])
    role = role or _role_of(kind, subject)
    for_mechanisms = {"--cells": cells, "--quick": quick, "--thorough": thorough}
    if role != "mechanism" and (given := [option for option, value in for_mechanisms.items() if value]):
        raise typer.BadParameter(f"{', '.join(given)} can be given for mechanisms only, and {kind} is of role {role}")
    module, _, name = CONTRACTS[role].partition(":")
    make, settings = _maker(kind, subject, parameters), {"seed": seed}
    if role == "mechanism":
        settings |= {"cells": cells or CELLS, "quick": quick, "thorough": thorough}
        make(cells=settings["cells"])
    report = getattr(importlib.import_module(module), name).of(make, **settings).report()
    if json:
        values = report.to_dict().items()
        print_json({role if key == "mechanism" else key: value for key, value in values})
    else:
        _print_conformance(report)
    raise typer.Exit(0 if report.passed else 1)


def import_own(reference: str) -> Any:
    """Import what is checked.

    Raises
    ------
    OwnKindError
        If it cannot be imported, or cannot be called.
    """
    module, colon, name = reference.partition(":")
    if not colon:
        module, name = "mechanisms.local", reference
    find_own_modules()
    classes = {} if colon else {declared.kind: declared.class_name for declared in MECHANISMS}
    names = list(classes)
    try:
        imported = importlib.import_module(module)
        names += dir(imported)
        subject = getattr(imported, name)
    except Exception as error:  # a user's module may raise anything while it is imported
        fault = f"{reference} cannot be imported ({type(error).__name__}: {error})"
        raise OwnKindError(f"{fault}{suggestion(name, names, instead=classes)}") from error
    if not callable(subject):
        raise OwnKindError(f"{reference} must be a class, and is of type {type(subject).__name__}")
    return subject


def _parameters(settings: list[str]) -> dict[str, Any]:
    """Return the parameters set; raise `OwnKindError` for those that cannot be read."""
    parameters: dict[str, Any] = {}
    if faults := apply_overrides(parameters, settings):
        raise OwnKindError("; ".join(str(fault) for fault in faults))
    return parameters


def _role_of(reference: str, subject: Any) -> Role:
    """Return the one role whose methods a class has.

    Raises
    ------
    OwnKindError
        If there is none, or there are several.
    """
    from scenarios.kinds import WORDS  # noqa: PLC0415 - imported only when needed
    from simulator.experiment.assembly.own_kinds import METHODS, missing_methods  # noqa: PLC0415 - as above

    by_word = {WORDS.get(role, role): role for role in METHODS}
    needed = {word: METHODS[role] for word, role in by_word.items()}
    roles = [role for role in CONTRACTS if not missing_methods(by_word[role], subject)]
    if len(roles) == 1:
        return roles[0]
    if roles:
        raise OwnKindError(f"{reference} has the methods of several roles, {' and '.join(roles)}: choose with --role")
    lists = "\n".join(f"  {role}: {', '.join(needed[role])}" for role in CONTRACTS)
    raise OwnKindError(f"{reference} has the methods of no role, which are\n{lists}\nor name its role with --role")


def _maker(reference: str, subject: Any, parameters: dict[str, Any]) -> Callable[..., Any]:
    """Return what makes an instance with the parameters; it raises `OwnKindError` if they are refused."""
    accepted = signature(subject).parameters
    if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in accepted.values()):
        for name in parameters.keys() - accepted.keys():
            hint = suggestion(name, accepted) or f"; it has {', '.join(accepted) or 'none'}"
            raise OwnKindError(f"{reference} refuses its parameters: there is no {name}{hint}")

    @wraps(subject, updated=())
    def make(*given: Any, **named: Any) -> Any:
        try:
            return subject(*given, **{**named, **parameters})
        except (TypeError, ValueError) as error:
            raise OwnKindError(f"{reference} refuses its parameters: {error}") from error

    return make


def _print_conformance(report: "ConformanceReport") -> None:
    """Print every check as a row of a table, and the verdict."""
    from rich.console import Console  # noqa: PLC0415 - imported only when needed
    from rich.table import Table  # noqa: PLC0415 - imported only when needed
    from rich.text import Text  # noqa: PLC0415 - imported only when needed

    styles = {"passed": "green", "failed": "bold red", "skipped": "dim"}
    table = Table("check", "", "what was found", title=Text(report.mechanism), title_justify="left")
    for result in report.results:
        # Lower bounds proved by samples are shown for claims of reports only; bounds of small crowds would fill a page.
        shown = result.figures.items() if result.name in {"claims_hold", "success"} else ()
        text = result.detail or "\n".join(f"{name} {value}" for name, value in shown if name.endswith(SHOWN))
        table.add_row(result.name, Text(result.status, styles[result.status]), Text(text))
    console = Console()
    console.print(table)
    sizes = " and ".join(map(str, report.cells)) or "no"
    compared = f"{report.comparisons:,} comparisons, " if report.comparisons else ""
    alarms = f"{compared}false alarms below {report.level:g}, seed {report.seed}"
    typer.echo(wrapped(f"{report.verdict} with {sizes} cells; {alarms}"))
    if report.limits:
        typer.echo(wrapped(report.limits))

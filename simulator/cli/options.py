"""Options: made from docstrings and declarations, names that the shell completes, and what several commands share."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer

from simulator.cli.common import find_own_modules

Role = Literal["mechanism", "aggregator", "attack"]
"""The roles of classes of a user's own."""
Command = TypeVar("Command", bound=Callable[..., None])
Texts = Mapping[str, tuple[str | None, str]]
"""The symbol of the value of each parameter, None if it is made from the type, and what the parameter is."""

_ENTRY = re.compile(r"^(\w+)(?: : (.+))?\n((?: +.+\n?)+)", re.MULTILINE)


def command(function: Command, *, before: Sequence[Parameter] = (), after: Sequence[Parameter] = ()) -> Command:
    """Give a command the arguments and options of its signature and docstring; its help is the text above them.

    Parameters
    ----------
    function
        Its positional parameters are arguments, its keyword-only ones options. The section Parameters of its docstring
        has the text of each, and after a colon the symbol of its value. Annotations with `typer.Option` and
        `typer.Argument` add bounds, names that the shell completes, or another flag than the name.
    before, after
        Further options, which the command receives as keywords.
    """
    kinds = get_type_hints(function, include_extras=True)
    function.__doc__, texts = _parsed(function)
    declared = [each for each in signature(function).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    options = [*before, *(_described(each, kinds[each.name], texts) for each in declared), *after]
    function.__signature__ = Signature(options)  # type: ignore[attr-defined]  # as inspect reads it
    function.__annotations__ |= {option.name: option.annotation for option in options}
    return function


def options_of(declaration: type, given: Mapping[str, Any] = MappingProxyType({})) -> list[Parameter]:
    """Return the fields of a named tuple or dataclass as options, with the texts of its docstring and options given."""
    kinds, (_, texts) = get_type_hints(declaration, include_extras=True), _parsed(declaration)
    kinds |= {name: Annotated[kinds[name], option] for name, option in given.items()}
    declared = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature(declaration).parameters.values()]
    return [_described(each, kinds[each.name], texts) for each in declared]


def target_options(*names: str) -> list[Parameter]:
    """Return the fields of `mechanisms.planning.Target` of these names as options; all if no name is given."""
    from mechanisms.planning import Target  # noqa: PLC0415 - imported only when needed

    given = {"view": typer.Option(autocompletion=view_names), "published": typer.Option("--published/--unpublished")}
    return [option for option in options_of(Target, given) if not names or option.name in names]


def _parsed(documented: object) -> tuple[str, Texts]:
    """Return the docstring above its section Parameters, and what the section has."""
    text, _, section = inspect.cleandoc(documented.__doc__ or "").partition("\nParameters\n----------\n")
    entries = _ENTRY.findall(section)
    return text.strip(), {name: (symbol or None, " ".join(words.split())) for name, symbol, words in entries}


def _described(parameter: Parameter, kind: Any, texts: Texts) -> Parameter:
    """Return a parameter as typer reads it; one without a text is declared with its annotation."""
    if parameter.name not in texts:
        return parameter.replace(annotation=kind)
    info: Any = None
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    if parameter.kind is Parameter.KEYWORD_ONLY:
        info = info or typer.Option()
        if info.default is ...:  # else it has a flag; without one typer gives a bool two
            info.default = f"--{parameter.name.rstrip('_').replace('_', '-')}"
    info = info or typer.Argument()
    info.metavar, info.help = texts[parameter.name]
    return parameter.replace(annotation=Annotated[kind, info])


def scenario_names() -> Sequence[str]:
    """Return the names of the shipped scenarios."""
    import scenarios  # noqa: PLC0415 - imported only when needed

    return [item.name for item in scenarios.shipped()]


def mechanism_class_names() -> Sequence[str]:
    """Return the names of the classes of mechanisms."""
    from mechanisms.declared import MECHANISMS  # noqa: PLC0415 - imported only when needed

    return [declared.class_name for declared in MECHANISMS]


def view_names() -> Sequence[str]:
    """Return the names of the views to plan for."""
    from mechanisms.planning.target import VIEWS  # noqa: PLC0415 - imported only when needed

    return list(VIEWS)


def family_names() -> Sequence[str]:
    """Return the names of the families of mechanisms that a plan compares."""
    from mechanisms.planning import families  # noqa: PLC0415 - imported only when needed

    return list(families.family_names())


def data_set_names() -> Sequence[str]:
    """Return the names of the data sets' folders."""
    from simulator.datasets.manifest import read_manifest  # noqa: PLC0415 - imported only when needed

    return [data_set.folder for data_set in read_manifest()]


def entry_names() -> Sequence[str]:
    """Return the names of the reproduced tables and figures."""
    from simulator.papers.published_results import ENTRIES  # noqa: PLC0415 - imported only when needed

    return [*(entry.name for entry in ENTRIES), "all"]


Reference = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A shipped name or a file.", autocompletion=scenario_names)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="A.B=V", help="Change a value, list items by name or index: mechanisms.sampling.sampling=0.3"
    ),
]
FinishedRun = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a finished run.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files of the same names.")]
Yes = Annotated[bool, typer.Option("--yes", help="Continue even if memory may not suffice.")]
Seed = Annotated[int | None, typer.Option(help="Seed that replaces the scenario's.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")]
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


class StudyOptions(NamedTuple):
    """What `sweep` and `evaluate` have in common: seed and permissions, and where and how long the points run.

    Parameters
    ----------
    scheduler : processes|dask://HOST:PORT
        Where the runs are computed.
    workers
        Processes; if not given, as many as cores and memory allow.
    timeout : SECONDS
        Longest time of a point, after which it counts as failed.
    """

    seed: Seed = None
    scheduler: str = "processes"
    workers: int | None = None
    timeout: float | None = None
    quiet: Quiet = False
    allow_plugins: AllowPlugins = False
    untrusted: Untrusted = False
    yes: Yes = False

    def loading(self) -> dict[str, Any]:
        """Return how scenarios are loaded, as `scenarios.load` takes it; a user's own modules can then be imported."""
        if self.allow_plugins:
            find_own_modules()
        return {"seed": self.seed, "allow_plugins": self.allow_plugins, "untrusted": self.untrusted}

    def running(self) -> dict[str, Any]:
        """Return how points are run, as `Sweep` and `Evaluation` take it."""
        from simulator.studies.workers import running  # noqa: PLC0415 - imported only when needed

        return running(self.scheduler, self.workers, assume_yes=self.yes, timeout_s=self.timeout)


class StatementOptions(NamedTuple):
    """What a privacy statement says and no run or plan knows; blank on the page if not given.

    Parameters
    ----------
    purpose : TEXT
        For what the data are collected.
    legal_basis : TEXT
        On what legal basis.
    retention : TEXT
        When which party deletes what it holds.
    review_date : TEXT
        When the statement is reviewed.
    """

    purpose: str = ""
    legal_basis: str = ""
    retention: str = ""
    review_date: str = ""

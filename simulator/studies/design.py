"""Design of a study: which values of a scenario are varied, and how often each setting is repeated."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import tomli_w
from pydantic import Field, ValidationError

import scenarios
from scenarios import Fault, Overrides, Scenario, ScenarioError
from scenarios.errors import RuleViolation, item_names, write_path
from scenarios.overrides import EVERY, parse_toml, toml_value
from scenarios.section import Section, ValidFields
from simulator.experiment.run import setting_sha256
from simulator.files.errors import InputError
from simulator.results.formatting import listed
from simulator.studies.point import Point

LABELS = ("key", "point", "setting", "replicate", "seed")
"""Columns that identify a point, in every table of a study, before the columns of the factors."""


class Setting(NamedTuple):
    """One combination of values.

    Attributes
    ----------
    values
        The value of each factor.
    scenario
        The scenario with these values.
    """

    values: dict[str, Any]
    scenario: Scenario


@dataclass(frozen=True, eq=False)
class Design:
    """The settings of a study and their repetitions.

    Replicate r of every setting has the seed of its scenario plus r − 1. So all settings are compared on the same
    traffic, as far as the varied values leave it alone, and each mechanism tosses the same coins; and any point can be
    repeated with ``crowdveil run --seed``.

    Attributes
    ----------
    name
        Name of the study.
    settings
        The settings, in order; at least one.
    replicates
        Number of runs of each setting, with different seeds.
    notes
        Which items of lists a key path for every item leaves as they are.
    """

    name: str
    settings: Sequence[Setting]
    replicates: int = 1
    notes: tuple[str, ...] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        """The names of what is varied: key paths of the scenario."""
        return tuple(self.settings[0].values)

    def points(self) -> list[Point]:
        """Return every run of the study: all settings with the first seed, then all with the next.

        In this order, points that share their traffic follow each other.

        Raises
        ------
        InputError
            If two points are the same run.
        """
        hashes = [setting_sha256(setting.scenario) for setting in self.settings]
        points: dict[str, Point] = {}
        for replicate, (number, setting) in itertools.product(
            range(1, self.replicates + 1), enumerate(self.settings, start=1)
        ):
            place = {"number": len(points) + 1, "setting": number, "replicate": replicate}
            point = Point.of(setting.scenario, hashes[number - 1], **place)
            if (same := points.get(point.key)) is not None:
                which = (f"setting {twin.setting}, replicate {twin.replicate}" for twin in (same, point))
                raise InputError([f"vary (--vary): two runs are the same: {', and '.join(which)}"])
            points[point.key] = point
        return list(points.values())

    def table(self, points: Iterable[Point]) -> pd.DataFrame:
        """Return one row per point: `LABELS`, and a column for each factor, of the type of its values.

        Numbers are int64, or float64 where any is no whole number; a list or table is its TOML text.
        """
        points = list(points)
        labels = [(point.key, point.number, point.setting, point.replicate, point.seed) for point in points]
        table = pd.DataFrame(labels, columns=LABELS).astype({**dict.fromkeys(LABELS, "int64"), "key": "str"})
        for name in self.factors:
            table[name] = typed_column([self.settings[point.setting - 1].values[name] for point in points])
        return table

    @classmethod
    def of_values(
        cls,
        scenario: Scenario | str | Path,
        settings: Iterable[Mapping[str, Any]],
        *,
        replicates: int = 1,
        overrides: Overrides = (),
        **options: Any,
    ) -> "Design":
        """Return the design of given settings, each a value for every key path; other parameters as in `design_of`.

        Raises
        ------
        ScenarioError
            If the scenario has a fault with any of the settings.
        InputError
            If the number of replicates is not positive, or the settings do not name the same keys.
        """
        if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 1:
            raise InputError([f"replicates (--replicates): must be a whole number, at least 1; got {replicates!r}"])
        base = scenarios.load(scenario, overrides=overrides, **options)
        every = [dict(values) for values in settings]
        unlike = [values for values in every if values.keys() != every[0].keys()]
        if unlike:
            rule = "every setting must name the same keys"
            raise InputError([f"{rule}: {', '.join(every[0])}; got {', '.join(unlike[0])}"])
        made = [Setting(values, base.with_(values)) for values in every]
        return cls(base.name, made, replicates, tuple(_unset(base.tables(), every[0])))


def _unset(tables: Mapping[str, Any], paths: Iterable[str]) -> Iterator[str]:
    """Yield a note for each key path of every item of a list: the items that do not state the key."""
    for path in paths:
        section, _, key = path.partition(f".{EVERY}.")
        items = tables.get(section) if key else ()
        lacking = [item for item in items or () if key.partition(".")[0] not in item]
        if lacking:
            names = listed([str(name) for name in item_names(lacking, section)])
            yield f"{path} changes nothing in {names}, which state no {key}"


def typed_column(values: Sequence[Any]) -> pd.Series:
    """Return a factor's values as a column of their own type: Booleans, numbers, or text."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {bool}:
        return pd.Series(values, dtype="float64" if float in kinds else "bool" if kinds == {bool} else "int64")
    return pd.Series([value if isinstance(value, str) else _toml(value) for value in values], dtype="str")


def parse_vary(options: Iterable[str]) -> dict[str, list[Any]]:
    """Return the values of options ``a.b=v1,v2``, which are written as items of a TOML list, or as plain text.

    Raises
    ------
    InputError
        If an option has another form, or names a key that was named before.
    """
    vary: dict[str, list[Any]] = {}
    for option in options:
        key, equals, text = option.partition("=")
        key = key.strip()
        if not (key and equals and text.strip()):
            raise InputError([f"--vary: must have the form key.path=value,value,…; got {option!r}"])
        if key in vary:
            raise InputError([f"--vary: {key} is named twice; list all its values in one option"])
        # A comma inside brackets or quotes belongs to a value, so the whole is read as one list.
        values = toml_value(f"[{text}]")
        vary[key] = values if isinstance(values, list) else [toml_value(item.strip()) for item in text.split(",")]
    return vary


def is_design(reference: str | Path) -> bool:
    """Return whether a reference is the file of a design: TOML with a text as `scenario`, where others have a table."""
    path = Path(reference)
    if path.suffix != ".toml" or not path.is_file():
        return False
    try:
        return isinstance(parse_toml(path.read_text(encoding="utf-8-sig")).get("scenario"), str)
    except (OSError, ValueError):
        return False


def design_of(
    scenario: Scenario | str | Path, vary: Mapping[str, Sequence[Any]], *, replicates: int | None = None, **options: Any
) -> Design:
    """Return the design in a file, or else the design of every combination of values.

    Parameters
    ----------
    scenario
        The file of a design; the name of a shipped scenario, a file of one, or a scenario already read.
    vary
        For each key path of the scenario, as in `scenarios.load`, the values it takes.
    replicates
        Runs of each setting, with different seeds; by default as many as the file states, or 1.
    **options
        Seed, overrides and permissions, as in `scenarios.load`.

    Raises
    ------
    ScenarioError
        If the file has a fault, or the scenario has one with any of the values.
    InputError
        If a key has no values, or values are given for the file of a design, which has its own.
    """
    if isinstance(scenario, Scenario) or not is_design(scenario):
        replicates = 1 if replicates is None else replicates
        return Design.of_values(scenario, _combined(vary), replicates=replicates, **options)
    if vary:
        raise InputError(["vary (--vary): the file of a design names what is varied itself"])
    return read_design(Path(scenario), replicates=replicates, **options)


def read_design(path: Path, *, replicates: int | None = None, **options: Any) -> Design:
    """Read a design from a TOML file.

    Parameters
    ----------
    path
        The file; a scenario that it names by a path is relative to its folder.
    replicates
        Used instead of the file's number.
    **options
        Overrides, seed and permissions, as in `scenarios.load`.

    Raises
    ------
    ScenarioError
        If the file has a fault, or its scenario has one with any of the settings.
    """
    try:
        raw = parse_toml(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ScenarioError(str(path), [Fault("", f"the file cannot be read: {error}")]) from error
    for name in ("grid", "set"):
        raw |= {name: dict(_flat(raw[name]))} if isinstance(raw.get(name), dict) else {}
    if isinstance(raw.get("list"), list):
        raw["list"] = [dict(_flat(item)) if isinstance(item, dict) else item for item in raw["list"]]
    cube = raw.get("latin_hypercube")
    if isinstance(cube, dict) and isinstance(cube.get("ranges"), dict):
        cube["ranges"] = dict(_flat(cube["ranges"], leaves=("from", "to")))
    try:
        design = _DesignFile.model_validate(raw)
    except ValidationError as error:
        faults = [Fault(write_path(e["loc"], raw), e["ctx"]["rule"], e["input"]) for e in error.errors()]
        raise ScenarioError(str(path), faults) from error
    reference = str(path.parent / design.scenario) if design.scenario.endswith(".toml") else design.scenario
    permissions = {name: options[name] for name in ("allow_plugins", "untrusted") if name in options}
    base = scenarios.load(reference, overrides=design.set, seed=design.seed, **permissions)
    replicates = design.replicates if replicates is None else replicates
    return Design.of_values(base, design.settings(), replicates=replicates, **options)


class _Range(Section):
    from_: Annotated[float, Field(alias="from", strict=False)]
    to: Annotated[float, Field(strict=False)]
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield the rules that the ends break."""
        if known.has("from_", "to") and not known["from_"] < known["to"]:
            yield RuleViolation(("to",), f"must be above from, {known['from_']:g}", known["to"])
        if known.has("from_", "scale") and known["scale"] == "log" and known["from_"] <= 0:
            yield RuleViolation(("from",), 'must be above 0 with scale = "log"', known["from_"])

    def at(self, shares: np.ndarray) -> list[Any]:
        """Return the values at shares of the range, from 0 to below 1."""
        ends = np.array([self.from_, self.to], dtype=np.float64)
        if self.whole:  # each whole number, the ends included, has an equal part of the range on its scale
            ends += (-0.5, 0.5) if self.scale == "linear" else (0.0, 0.0)
        low, high = np.log(ends) if self.scale == "log" else ends
        values = low + (high - low) * shares
        values = np.exp(values) if self.scale == "log" else values
        return [int(value) for value in np.rint(values)] if self.whole else [float(value) for value in values]


class _LatinHypercube(Section):
    settings: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0)] = 1
    ranges: Annotated[dict[str, _Range], Field(min_length=1)]

    def values(self) -> list[dict[str, Any]]:
        """Return the settings: each range is cut into as many equal parts as there are settings, one value in each."""
        from scipy.stats import qmc  # noqa: PLC0415 - it takes half a second to import

        sampler = qmc.LatinHypercube(len(self.ranges), rng=np.random.default_rng(self.seed))
        shares = sampler.random(self.settings)
        columns = [range_.at(shares[:, i]) for i, range_ in enumerate(self.ranges.values())]
        return [dict(zip(self.ranges, row, strict=True)) for row in zip(*columns, strict=True)]


class _DesignFile(Section):
    scenario: str
    replicates: Annotated[int, Field(ge=1)] = 1
    seed: Annotated[int, Field(ge=0)] | None = None
    set: Annotated[dict[str, Any], Field(default_factory=dict)]
    grid: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(default_factory=dict)]
    list: Annotated[tuple[dict[str, Any], ...], Field(strict=False)] = ()
    latin_hypercube: _LatinHypercube | None = None

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield the rules that the parts break together."""
        cube = known.get("latin_hypercube")
        named = [*(known.get("grid") or {}), *(cube.ranges if isinstance(cube, _LatinHypercube) else ())]
        listed: tuple[dict[str, Any], ...] = known.get("list") or ()
        for name in [*named, *(listed[0] if listed else ())]:
            if (named + list(listed[0] if listed else ())).count(name) > 1:
                yield RuleViolation((), f"{name} must be varied by one of grid, list and latin_hypercube only")
        for index, item in enumerate(listed):
            if item.keys() != listed[0].keys():
                yield RuleViolation(("list", index), f"must name the same keys as the first: {', '.join(listed[0])}")

    def settings(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of the grid, the list and the Latin hypercube."""
        cube = [{}] if self.latin_hypercube is None else self.latin_hypercube.values()
        for parts in itertools.product(self.list or [{}], cube, _combined(self.grid)):
            yield {key: value for part in parts for key, value in part.items()}


def _combined(vary: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of values, the last key varying fastest.

    Raises
    ------
    InputError
        If a key has no values.
    """
    for key, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Iterable) or not len(values):
            raise InputError([f"vary: {key} must have a list of at least one value, got {values!r}"])
    columns = [value.tolist() if hasattr(value, "tolist") else list(value) for value in vary.values()]
    return (dict(zip(vary, row, strict=True)) for row in itertools.product(*columns))


def _flat(table: Mapping[str, Any], *, leaves: Sequence[str] = (), path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the key paths and values of nested tables: TOML reads ``a.b = 1`` as such. `leaves` are keys of a value."""
    for key, value in table.items():
        if isinstance(value, dict) and value and not any(leaf in value for leaf in leaves):
            yield from _flat(value, leaves=leaves, path=f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _toml(value: Any) -> str:
    return tomli_w.dumps({"value": value}).partition("=")[2].strip()

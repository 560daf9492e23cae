"""`Scenario`: the checked content of a scenario file, and all faults of one that is refused."""

import ast
import inspect
import itertools
import sys
import textwrap
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError

from scenarios.attacks import Attack
from scenarios.behaviours import Behaviour
from scenarios.between_sections import BETWEEN_SECTIONS, LISTS
from scenarios.campaigns import CampaignSection, LedgerSection
from scenarios.cells import Cells, Levels
from scenarios.channel import Aggregation, ChannelSection, Servers
from scenarios.detectors import CountsSection, DetectorSection
from scenarios.errors import Fault, RuleViolation, ScenarioError, write_path
from scenarios.field_types import number
from scenarios.general import Claims, Fcd, Heading, Population, ReportSection, Sensing
from scenarios.kinds import is_built_in, is_capable, is_given
from scenarios.mechanisms import Mechanism, has_silent_blank
from scenarios.overrides import TOO_DEEP, Overrides, apply_overrides, nests_too_deeply, plain
from scenarios.recorded_traffic import Traffic
from scenarios.references import WITH_FILES, Permissions, files_of, is_outside
from scenarios.release import NoRelease, Refinement, Release, ReleaseRules, released_by
from scenarios.roads import Roads
from scenarios.rules import described_rules
from scenarios.run_clock import RunClock, clock_of
from scenarios.section import NamedByKind, Section, known_of


class Scenario(Section):
    """The complete description of one run.

    `scenarios.load` makes one from a file; ``Scenario(scenario={…}, roads={…}, …)`` makes one from a dict, or a
    section, for each table of the file. Both report every fault, in the same words. Files are named relative to the
    scenario's folder, or to the working directory if there is none. Scenarios are frozen, and compare equal if they
    have the same values.

    Raises
    ------
    ScenarioError
        If the scenario has a fault; the error carries every fault found.
    """

    scenario: Heading
    """Name, seed and duration."""
    roads: Roads
    """The road network."""
    cells: Cells
    """The division of the city into cells: `[cells]`, or several as `[[cells]]`."""
    traffic: Traffic
    """The vehicles and the engine that moves them."""
    population: Population = Population()
    """The devices that take part."""
    behaviours: Annotated[tuple[Behaviour, ...], Field(strict=False)] = ()
    """Devices that do not follow the protocol, and what they do."""
    sensing: Sensing = Sensing()
    """How the answers to a query are simulated."""
    campaigns: Annotated[tuple[CampaignSection, ...], Field(strict=False, min_length=1)]
    """The campaigns: when vehicles are asked."""
    ledger: Annotated[tuple[LedgerSection, ...], Field(strict=False)] = ()
    """Budgets of each person over several campaigns. Default: none."""
    mechanisms: Annotated[tuple[Mechanism, ...], Field(strict=False, min_length=1)]
    """The mechanisms on the devices; all answer the same queries about the same traffic."""
    channel: ChannelSection = ChannelSection()
    """The transmission of reports: latency, loss and outages."""
    aggregation: Servers = Aggregation()
    """The servers that add up the reports."""
    release: Release = NoRelease()
    """Processing of counts or speeds before publication; a campaign may have a release of its own."""
    refinements: Annotated[tuple[Refinement, ...], Field(strict=False)] = ()
    """Post-processing of the estimates, in separate result rows."""
    claims: Claims = Claims()
    """Parameters of the claims table."""
    attacks: Annotated[tuple[Attack, ...], Field(strict=False)] = ()
    """Attacks by coalitions; none changes an estimate."""
    fcd: Fcd | None = None
    """Export of all vehicles' positions for other tools. Default: no export."""
    detectors: Annotated[tuple[DetectorSection, ...], Field(strict=False)] = ()
    """Places at which passing vehicles are counted."""
    counts: CountsSection | None = None
    """Measured counts and speeds, with which the run's are compared. Default: none."""
    report: ReportSection = ReportSection()
    """Links by interval, trips, and single vehicles in the run directory and its report."""

    _given: dict[str, Any] | None = PrivateAttr(default=None)
    _folder: Path = PrivateAttr(default_factory=Path)
    _permissions: Permissions = PrivateAttr(default_factory=Permissions)

    def __init__(self, /, **sections: Any) -> None:
        checked = type(self).model_validate(sections)
        self.__setstate__(checked.__getstate__())

    # pydantic then validates without calling `__init__`, which calls pydantic.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, *, context: Any | None = None, **options: Any) -> "Scenario":
        """Check the tables of a scenario, as `tomllib.loads` returns them, by the same rules as `scenarios.load`.

        Parameters
        ----------
        obj
            A mapping of sections; a `Scenario` is returned as it is.
        context
            May hold ``folder``, to which file references are relative; else they are relative to the working directory.
        **options
            Options of pydantic's `model_validate`.

        Raises
        ------
        ScenarioError
            If the scenario has a fault; the error carries every fault found.
        """
        if isinstance(obj, Scenario):
            return obj
        tables = plain(obj)
        if not isinstance(tables, dict):
            raise ScenarioError("given as tables", [Fault("", "must be a mapping of sections", tables)])
        checked = cls.check(tables, Path((context or {}).get("folder", "")), **options)
        if isinstance(checked, Scenario):
            return checked
        raise ScenarioError("given as tables", checked)

    @classmethod
    def check(
        cls,
        raw: dict[str, Any],
        folder: Path,
        *,
        permissions: Permissions | None = None,
        files_exist: bool = True,
        **options: Any,
    ) -> "Scenario | list[Fault]":
        """Check a parsed file.

        Parameters
        ----------
        raw
            The file as parsed.
        folder
            Folder to which file references are relative.
        permissions
            Permissions of the scenario; if None, the permissions of the environment variables.
        files_exist
            Whether a file that the scenario names must exist.
        **options
            Options of pydantic's `model_validate`.

        Returns
        -------
        Scenario or list of Fault
            The scenario if it has no fault; else all faults, in the order of the sections.
        """
        if nests_too_deeply(raw):
            return [Fault("", TOO_DEEP)]
        permissions = permissions or Permissions.of("given as tables")
        context = {
            "folder": folder,
            "given": raw,
            "explained": set(),
            "permissions": permissions,
            "files_exist": files_exist,
            "clock": clock_of(raw),
        }
        try:
            return super().model_validate(raw, context=context, **options)
        except ValidationError as error:
            faults = [_located(fault["loc"], fault["ctx"]["rule"], fault["input"], raw) for fault in error.errors()]
        sections = list(cls.model_fields)
        faults.sort(key=lambda fault: _order(fault.at, sections))
        return [Fault(write_path(fault.at, raw), fault.rule, fault.value) for fault in faults]

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Begin a recording, a file of trips or a profile at the time that the run starts."""
        traffic, clock = given.get("traffic"), clock_of(given)
        if not isinstance(traffic, dict) or clock.start is None:
            return given
        engine, columns = traffic.get("engine"), traffic.get("columns") or ()
        if clock.dated and (engine == "trace" or (engine == "static" and "time" in columns)):
            return {**given, "traffic": {"start": clock.text(0.0), **traffic}}
        if traffic.get("demand") == "trips" or traffic.get("departures") == "profile":
            return {**given, "traffic": {"begin_s": f"{clock.start:%H:%M:%S}", **traffic}}
        return given

    @property
    def partitions(self) -> list[tuple[str, Levels]]:
        """The key path and the section of each partition of the city; campaigns ask about the first by default."""
        if isinstance(self.cells, Levels):
            return [("cells", self.cells)]
        return [(f"cells.{section.partition}", section) for section in self.cells]

    @property
    def clock(self) -> RunClock:
        """The clock of the run, as far as the scenario states it."""
        return RunClock.starting(self.scenario.start, self.scenario.time_zone)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Scenario":
        """Return a copy of the scenario with some sections replaced, and without the description of the old ones.

        Raises
        ------
        TypeError
            If `update` has a key that is not a section, such as ``seed``; use `scenarios.load(scenario, seed=…)` for
            that.
        """
        unknown = [*(update or {}).keys() - type(self).model_fields.keys()]
        if unknown:
            rule = f"model_copy: update must hold sections ({', '.join(type(self).model_fields)}), got {unknown[0]!r}"
            raise TypeError(f"{rule}; for a seed or single values use scenarios.load(scenario, seed=…, overrides=…)")
        if update and "scenario" not in update:
            update = {**update, "scenario": self.scenario.model_copy(update={"description": ""})}
        return super().model_copy(update=update, deep=deep)

    def model_post_init(self, context: Any, /) -> None:
        """Keep the tables the scenario was made of: omitted keys may depend on keys that are overridden later."""
        self._given = (context or {}).get("given")
        self._folder = Path((context or {}).get("folder", "")).absolute()
        self._permissions = (context or {}).get("permissions", Permissions())

    def __eq__(self, other: object) -> bool:
        """Compare values; the source they were read from does not matter."""
        return isinstance(other, Scenario) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.name, self.seed))

    @property
    def folder(self) -> Path:
        """The folder to which file references are relative."""
        return self._folder

    @property
    def permissions(self) -> Permissions:
        """The permissions of the scenario."""
        return self._permissions

    @property
    def shows_vehicles(self) -> bool:
        """Whether the run directory and its report may hold single vehicles: simulated ones, or if it is requested.

        Recorded vehicles may be traces of real people.
        """
        return self.report.vehicles or not is_capable("engine", self.traffic.engine, "recorded")

    @property
    def logs_links(self) -> bool:
        """Whether something needs the times at which every vehicle entered and left each link."""
        return bool(self.report.link_interval_s or self.detectors or self.counts)

    def files_outside(self) -> list[Path]:
        """Return the files it names that are outside its folder and ``CROWDVEIL_DATA``, with links resolved."""
        files = (path for name in WITH_FILES for _, path in files_of(getattr(self, name)))
        return list(dict.fromkeys(path.resolve() for path in files if is_outside(path, self.folder)))

    def own_kinds(self) -> Iterator[tuple[str, str, str]]:
        """Yield the key path, the role and the name of each kind that is a user's own."""
        return (place for place in self.kinds() if not is_built_in(place[1], place[2]))

    def kinds(self) -> list[tuple[str, str, str]]:
        """Return the key path, the role and the name of each kind that may be a user's own or need a package."""
        places = [("roads.source", "roads", self.roads.source)]
        places += [(f"{at}.kind", "cells", section.kind) for at, section in self.partitions]
        places.append(("traffic.engine", "engine", self.traffic.engine))
        servers = (("", self.aggregation), *((f"campaigns.{one.name}.", one.aggregation) for one in self.campaigns))
        places += [(f"{at}aggregation.kind", "deployment", section.kind) for at, section in servers if section]
        places += [(f"mechanisms.{item.name}.kind", "mechanism", item.kind) for item in self.mechanisms]
        places += [(f"attacks.{item.name}.kind", "attack", item.kind) for item in self.attacks]
        places += [(f"behaviours.{item.name}.kind", "behaviour", item.kind) for item in self.behaviours]
        return places

    def permits(self, kind: str) -> bool:
        """Return whether a user's own kind may be imported: by the permissions, or as it was given in Python."""
        return self.permissions.allow_plugins or is_given(kind)

    def without_unpermitted(self) -> tuple["Scenario", list[str]]:
        """Return the scenario without the plug-ins that may not be imported, and without everything that needs them.

        Returns
        -------
        scenario
            The part that can be checked without them; it may have no mechanism.
        left_out
            Names of the mechanisms left out.
        """
        refused = {at for at, _, kind in self.own_kinds() if not self.permits(kind)}
        kept = tuple(item for item in self.mechanisms if f"mechanisms.{item.name}.kind" not in refused)
        names = {item.name for item in kept}
        if len(kept) == len(self.mechanisms):
            return self, []
        refinements = [
            item.model_copy(update={"mechanisms": item.mechanisms and tuple(m for m in item.mechanisms if m in names)})
            for item in self.refinements
        ]
        update = {
            "mechanisms": kept,
            "refinements": tuple(item for item in refinements if item.mechanisms != ()),
            # The parties depend on the number of rounds of every mechanism.
            "attacks": tuple(item for item in self.attacks if item.mechanisms and names.issuperset(item.mechanisms)),
            "channel": self.channel.model_copy(update={"outages": ()}),
        }
        return self.model_copy(update=update), [item.name for item in self.mechanisms if item.name not in names]

    def tables(self) -> dict[str, Any]:
        """Return the tables from which the scenario was made, to be changed and checked again.

        If the scenario was not made from tables, or is a changed copy, every default is filled in.
        """
        if self._given is not None and self.check(plain(self._given), self._folder) == self:
            return dict(plain(self._given))
        return dict(plain(self))

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.scenario.seed

    def with_(self, overrides: Overrides = (), *, seed: int | None = None) -> "Scenario":
        """Return the scenario with some values replaced, checked as a whole.

        Parameters
        ----------
        overrides
            Texts ``a.b=v``, or a mapping ``{"a.b": v}``, as in `scenarios.load`; the value may be a whole section.
        seed
            Seed in place of the scenario's own.

        Raises
        ------
        ScenarioError
            If the changed scenario has a fault; the error carries every fault found.
        TypeError
            If `overrides` is of another type.
        """
        return self.from_tables(
            self.tables(), self.folder, overrides, source=self.name, seed=seed, permissions=self.permissions
        )

    @classmethod
    def from_tables(
        cls,
        raw: dict[str, Any],
        folder: Path,
        overrides: Overrides,
        *,
        source: str,
        seed: int | None,
        permissions: Permissions,
        files_exist: bool = True,
    ) -> "Scenario":
        """Apply overrides and a seed to a parsed file, then check it; `source` names it in messages.

        The description speaks of the values in the file, so it is dropped if an override changes any of them.

        Raises
        ------
        ScenarioError
            If the scenario has a fault; the error carries every fault found.
        """
        written = deepcopy(raw)
        faults, heading, before = apply_overrides(raw, overrides), raw.get("scenario"), written.get("scenario")
        if isinstance(heading, dict) and isinstance(before, dict):
            own = {key: heading[key] for key in ("name", "seed", "description") if key in heading}
            changed = raw != {**written, "scenario": {**before, **own}}
            if changed and heading.get("description") == before.get("description"):
                heading.pop("description", None)
        if seed is not None and isinstance(raw.setdefault("scenario", {}), dict):
            raw["scenario"]["seed"] = plain(seed)
        outcome = cls.check(raw, folder, permissions=permissions, files_exist=files_exist)
        if isinstance(outcome, Scenario) and not faults:
            return outcome
        raise ScenarioError(source, [*faults, *(outcome if isinstance(outcome, list) else [])])

    def released(self) -> list[ReleaseRules]:
        """Return every campaign's release, its own or the default one, in the order of the campaigns."""
        valid = known_of(self)
        each = [released_by(valid, index) for index in range(len(self.campaigns))]
        return [released for released in each if released is not None]

    def warnings(self) -> list[str]:
        """Return a sentence for each setting that is allowed but probably not intended."""
        warnings = [
            f"mechanisms.{mechanism.name}.{text}"
            for mechanism in self.mechanisms
            if mechanism.kind == "sampling_privacy"
            for text in _warnings_of(mechanism)
        ]
        return [*warnings, *self.release_warnings()]

    def release_warnings(self) -> list[str]:
        """Return the known weaknesses of releases that may be chosen nevertheless."""
        recoded = [released.campaign["name"] for released in self.released() if released.kind == "recode"]
        if not recoded:
            return []
        why = "its clusters follow the devices and show where the outermost are (LQS 3.1)"
        return [f"release: recode, in campaigns {', '.join(recoded)}, is documented as vulnerable: {why}"]

    rules = BETWEEN_SECTIONS


def _located(at: tuple[str | int, ...], rule: str, value: Any, raw: Any) -> RuleViolation:
    """Return a fault at its place in the file, where a plain value may stand for a table, with the value written there.

    The rule may have received that value as a number of another type.
    """
    here = raw
    if at in {(name,) for name in LISTS} and at[0] in raw and not (isinstance(value, list) and value):
        rule += f", of tables written [[{at[0]}]]"
    for depth, step in enumerate(at):
        inside = here if isinstance(here, dict) else dict(enumerate(here)) if isinstance(here, list) else None
        if inside is None:
            return RuleViolation(at[:depth], rule, value)
        if step not in inside:
            return RuleViolation(at, rule, value)
        here = inside[step]
    return RuleViolation(at, rule, here if here == value else value)


def _order(at: tuple[str | int, ...], sections: list[str]) -> tuple[int, int]:
    section = sections.index(str(at[0])) if at and at[0] in sections else len(sections)
    return section, at[1] if len(at) > 1 and isinstance(at[1], int) else -1


def _warnings_of(sampling_privacy: NamedByKind) -> list[str]:
    warnings, sampling = [], sampling_privacy.parameters["sampling"]
    if sampling >= 0.5:
        warnings.append(f"sampling is {number(sampling)}: the papers require less than one half (SP 3.1)")
    if has_silent_blank(sampling_privacy):
        warnings.append("blank_zero is 0: an output of 0 in round one then reveals that a device is sampled")
    return warnings


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file.

    Returns
    -------
    dict
        JSON Schema, draft 2020-12. Each section lists its rules between keys in ``allOf``, in words and, except for
        those that compare numbers, as conditions. `load` checks them, and others: sums, rounds that overlap.
    """
    tables = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    models = {model.__name__: model for model in _all_sections(Section)}
    for name, described in {**tables["$defs"], Scenario.__name__: tables}.items():
        if rules := described_rules(models[name]):
            described["allOf"] = rules
        texts = _field_docstrings(models[name])
        for key, field in models[name].model_fields.items():
            if key in texts:
                described["properties"][field.alias or key]["description"] = texts[key]
    return tables


def _all_sections(model: type[Section]) -> Iterator[type[Section]]:
    for inner in model.__subclasses__():
        yield inner
        yield from _all_sections(inner)


def _field_docstrings(model: type[Section]) -> dict[str, str]:
    """Return the docstrings below the fields of a model and of the models that it extends."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is not Section and issubclass(base, Section) and not _is_declared(base):
            statements = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            for field, text in itertools.pairwise(node for outer in statements for node in ast.iter_child_nodes(outer)):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    texts[ast.unparse(field.target)] = inspect.cleandoc(ast.literal_eval(text.value))
    return texts


def _is_declared(model: type[Section]) -> bool:
    """Return whether a model is made from a declaration, with descriptions of its fields, and stands in no source."""
    return model.__name__ not in vars(sys.modules[model.__module__])

"""Evaluation: mechanisms over data sets, each set by the planner for one target of privacy or error."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import scenarios
from mechanisms.declared import Declared
from mechanisms.planning import Plan, plan
from mechanisms.planning.families import family_names
from scenarios import Fault, Scenario, ScenarioError, kinds
from scenarios.errors import suggestion
from scenarios.overrides import parse_toml
from simulator.experiment.components import check_extras
from simulator.experiment.run import setting_sha256
from simulator.files.errors import InputError
from simulator.results.claims import claims_in
from simulator.results.tables import is_partial, of_all_vehicles
from simulator.studies.design import Design, Setting
from simulator.studies.report import write_evaluation
from simulator.studies.store import StudyDirectory
from simulator.studies.sweep import Sweep
from simulator.studies.tables import (
    Goal,
    Size,
    decile_table,
    error_differences,
    interval,
    leak_of,
    leaks_by_view,
    sentences,
)

DATA = (
    "gowalla-nyc",
    "bay-area-pems",
    "cabs-san-francisco",
    "beijing-taxis",
    "bologna-sumo",
    "sioux-falls",
    "anaheim",
    "manhattan",
)
"""The scenarios that are evaluated unless others are named: recorded movement, SUMO's, and simulated movement."""
MECHANISMS = (
    "sampling_privacy",
    "randomized_response",
    "k_randomized_response",
    "sue",
    "oue",
    "olh",
    "subset_selection",
    "hadamard_response",
)
"""The mechanisms that are evaluated unless others are named."""
_BASELINE = "no_privacy"
_PROBE, _RUNS = "probe", "runs"
"""Folders of an evaluation: runs of each data set without privacy, to know its size; and all others."""
_DELETED = ("mechanisms", "attacks", "refinements", "release", "aggregation", "fcd", "claims", "detectors", "counts")


@dataclass(eq=False)
class Evaluation:
    """Mechanisms over data sets: iterate over `stages` and do each stage's work, then `tables` has the result.

    Attributes
    ----------
    goal
        The target.
    data
        Names of shipped scenarios, or files: their roads, traffic, cells, population and channel, and the times of
        their first campaign that counts vehicles.
    mechanisms
        Names of the planner's families, and users' classes ``package.module:Class`` that declare a parameter with a
        dial (`mechanisms.declared`), which are set for the goal; files with ``[[mechanisms]]`` and other classes, which
        are taken as they are.
    directory
        Where results are kept.
    replicates
        Runs of each data set.
    options
        Permissions, as in `scenarios.load`, and `seed`.
    running
        `start`, `assume_yes` and `timeout_s`, as in `Sweep`.
    missing
        Why a data set could not be used, by name.
    plans
        The planner's answer for each data set and mechanism.
    """

    goal: Goal
    data: Sequence[str]
    mechanisms: Sequence[str]
    directory: Path
    replicates: int
    options: Mapping[str, Any] = field(default_factory=dict)
    running: Mapping[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict, init=False)
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._families = [name for name in self.mechanisms if name in family_names()]
        self._fixed = [section for name in self.mechanisms if name not in family_names() for section in _sections(name)]
        # A target that no mechanism could have is refused before anything is simulated.
        self.goal.target(Size(2, 2, 1, 1))

    def stages(self) -> Iterator[Sweep]:
        """Yield the work to be done, in this order: runs of each data set without privacy, then all others.

        Raises
        ------
        InputError
            If no data set can be used.
        ScenarioError
            If a class among the mechanisms may not be imported, or cannot be.
        """
        bases: dict[str, dict[str, Any]] = {}
        loaded: dict[str, Scenario] = {}
        for name in self.data:
            try:
                loaded[name] = scenarios.load(name, **self.options)
                if not self.running.get("remote"):
                    check_extras(loaded[name])
                bases[name] = base_tables(loaded[name])
            except ScenarioError as error:
                self.missing[name] = _first_fault(error)
        if not bases:
            raise InputError([f"{name}: {why}" for name, why in self.missing.items()])

        def setting(name: str, group: str, tables: Mapping[str, Any]) -> Setting:
            from_ = loaded[name]
            (campaign,) = bases[name]["campaigns"]
            campaigns = [{**campaign, **tables.get("campaigns", {})}]
            given = {**bases[name], **tables, "campaigns": campaigns}
            made = Scenario.from_tables(given, from_.folder, (), source=name, seed=None, permissions=from_.permissions)
            return Setting({"data": name, "group": group}, made)

        self._check_own(setting, bases)
        own = self._planned_classes()
        probes = [setting(name, "probe", {"mechanisms": [{"kind": _BASELINE}]}) for name in bases]
        probe_design = Design("data sets without privacy", probes, self.replicates)
        probe = Sweep(probe_design, StudyDirectory(self.directory / _PROBE), keep="probe", **self.running)
        yield probe
        sizes = self._sizes(probe)
        settings = []
        for name, size in sizes.items():
            target = self.goal.target(size)
            made = plan(target, self._families, own=own, claims=False).plans if self._families or own else ()
            self.plans |= {(name, planned.name): planned for planned in made}
            for group, tables in _groups([planned for planned in made if planned.meets], self._fixed, self.goal):
                try:
                    settings.append(setting(name, group, tables))
                except ScenarioError as error:
                    self.missing[name] = _first_fault(error)
        if not settings:
            raise InputError(self._reasons())
        design = Design("evaluation", settings, self.replicates)
        yield Sweep(design, StudyDirectory(self.directory / _RUNS), keep="evaluation", **self.running)

    def _check_own(self, setting: Callable[[str, str, dict[str, Any]], Setting], names: Iterable[str]) -> None:
        """Check that the users' mechanisms may be imported and can be, before anything is computed."""
        for name in names if self._fixed else ():
            try:
                made = setting(name, "fixed", {"mechanisms": self._fixed})
            except ScenarioError:  # stated with the data set later
                continue
            setting_sha256(made.scenario)  # refuses a class that may not be imported or lacks methods
            return

    def _planned_classes(self) -> dict[str, Any]:
        """Return the users' classes that can be planned, by kind; planned settings replace their own."""
        named = [section for section in self._fixed if section["kind"] in self.mechanisms]
        own = {section["kind"]: kinds.load("mechanism", section["kind"]) for section in named}
        planned = {kind: class_ for kind, class_ in own.items() if getattr(class_, "declared", Declared()).dial}
        self._fixed = [section for section in self._fixed if section["kind"] not in planned]
        return planned

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the finished evaluation.

        Returns
        -------
        dict of DataFrame
            ``evaluation``: a row per data set and mechanism, see `_row`; ``deciles``: its relative error by decile of
            occupancy; ``leaks``: what each view reveals; ``differences``: errors relative to the other mechanisms'.
        """
        study = StudyDirectory(self.directory / _RUNS)
        scores, claims, rounds, deciles = (study.read_table(name) for name in ("scores", "claims", "rounds", "deciles"))
        scores = of_all_vehicles(scores) if is_partial(scores) else scores
        failures = study.read_table("failures")
        rows: list[dict[str, Any]] = []
        planned = [name for _, name in self.plans]
        names = [*dict.fromkeys([*self._families, *planned, *(section["name"] for section in self._fixed)])]
        for data in self.data:
            for name in names:
                chosen = [_of(table, data, name) for table in (scores, claims, rounds, deciles)]
                made = self.plans.get((data, name))
                fixed = next((section for section in self._fixed if section["name"] == name), {})
                parameters, crowd = (fixed, None) if made is None else (made.settings, made.crowd)
                row = {"data": data, "mechanism": name, "parameters": _text(parameters), "crowd": crowd}
                why = self.missing.get(data) or (made.reason if made is not None and not made.meets else None)
                if not len(chosen[0]) and why is None and len(failures):
                    why = next(iter(failures.loc[failures["data"] == data, "error"]), None)
                rows.append({**row, **self._row(*chosen, crowd=crowd), "reason": why})
        return {
            "evaluation": pd.DataFrame(rows).astype({"crowd": "Int64"}),
            "deciles": decile_table(deciles),
            "leaks": leaks_by_view(claims, self.goal, {place: made.crowd for place, made in self.plans.items()}),
            "differences": error_differences(scores),
        }

    def write(self) -> dict[str, pd.DataFrame]:
        """Write the tables and the report into the directory, and return the tables."""
        study, tables = StudyDirectory(self.directory), self.tables()
        for name, table in tables.items():
            study.write_table(name, table)
        write_evaluation(self.directory, tables, goal=self.goal.words(), sentences=sentences(tables, self.goal.view))
        return tables

    def _sizes(self, probe: Sweep) -> dict[str, Size]:
        """Return the size of each data set, from its run without privacy, and note those that failed."""
        for failure in probe.failures:
            self.missing[probe.design.settings[failure.point.setting - 1].values["data"]] = failure.error
        rounds, deciles = (probe.directory.read_table(name) for name in ("rounds", "asked_deciles"))
        sizes = {}
        for name, group in rounds.groupby("data", sort=False):
            of_cells = deciles[deciles["data"] == name]
            cells = int(of_cells.groupby("key")["cells"].sum().iloc[0])
            counted = group["counted"][group["counted"] > 0]
            if not len(counted):
                self.missing[str(name)] = "no device was counted at any query of its first campaign"
                continue
            mean = float(np.average(of_cells["occupancy"], weights=of_cells["cells"]))
            asked = round(float(counted.median()))
            sizes[str(name)] = Size(cells, asked, min(asked, int(counted.min())), min(asked, max(1, round(mean))))
        return sizes

    def _reasons(self) -> list[str]:
        none = [f"{data}, {name}: {made.reason}" for (data, name), made in self.plans.items() if not made.meets]
        return [*(f"{name}: {why}" for name, why in self.missing.items()), *none] or ["mechanisms: none was named"]

    def _row(
        self,
        scores: pd.DataFrame,
        claims: pd.DataFrame,
        rounds: pd.DataFrame,
        deciles: pd.DataFrame,
        *,
        crowd: int | None,
    ) -> dict[str, Any]:
        """Return the columns of one data set and mechanism.

        `rmse` in vehicles, of all of them if fewer take part, with `lower` and `upper`, the 95 % interval of its mean
        over the runs (null for one run);
        `relative_rmse`, in mean occupancies; `zero_rmse`, the error of estimating 0 everywhere, and
        `beats_zero`, whether `rmse` is less; `hot_cells_recall`; `coverage`; `epsilon` of the goal's view at δ = 0 and
        `delta` at the goal's ε, the largest of all runs, with `crowd` devices certain to be in the cell, null for any;
        `meets`, whether these are within the goal; `queries` of the campaign, and `campaign_epsilon` and
        `campaign_delta`, the same for a device that stays through all of them; `participation`;
        `bytes_up`, of a device in a query; `runs`.
        """
        if not len(scores):
            return {"runs": 0}
        low, mean, high = interval(scores["rmse"].to_numpy())
        occupancy = float(np.average(deciles["occupancy"], weights=deciles["cells"]))
        zero = math.sqrt(np.average(deciles["rms_occupancy"] ** 2, weights=deciles["cells"]))
        claimed = claims_in(claims)
        leak = leak_of(claimed, self.goal, crowd)
        queries = int(rounds.groupby("key")["query"].nunique().max())
        campaign_leak = leak_of(claimed, replace(self.goal, queries=queries), crowd)
        sent = rounds.groupby(["key", "query"])[["bytes_up", "asked"]].agg({"bytes_up": "sum", "asked": "max"})
        return {
            "rmse": mean,
            "lower": low,
            "upper": high,
            "relative_rmse": mean / occupancy if occupancy else math.nan,
            "zero_rmse": zero,
            "beats_zero": mean < zero * (1 - 1e-9),
            "hot_cells_recall": float(scores["hot_cells_recall"].mean()),
            "coverage": float(scores["coverage"].mean()),
            "epsilon": leak[0],
            "delta": leak[1],
            "meets": self._within(*leak, mean),
            "participation": float(scores["participation"].mean()),
            "queries": queries,
            "campaign_epsilon": campaign_leak[0],
            "campaign_delta": campaign_leak[1],
            "bytes_up": float(sent["bytes_up"].sum() / max(1, sent["asked"].sum())),
            "runs": len(scores),
        }

    def _within(self, epsilon: float, delta: float, rmse: float) -> bool:
        if self.goal.error is not None or self.goal.epsilon is None:
            return bool(rmse <= (self.goal.error or 0.0) * (1.0 + 1e-9))
        return bool(epsilon <= self.goal.epsilon * (1 + 1e-9) or delta <= self.goal.delta * (1 + 1e-9))


def base_tables(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario's tables with its first campaign that counts vehicles, without mechanisms and what uses them.

    Raises
    ------
    ScenarioError
        If it has no such campaign.
    """
    tables = scenario.tables()
    counting = [index for index, campaign in enumerate(scenario.campaigns) if campaign.statistic == "count"]
    if not counting:
        raise ScenarioError(scenario.name, [Fault("campaigns", 'none has statistic = "count"')])
    campaign = dict(tables["campaigns"][counting[0]])
    for name in ("release", "aggregation", "budget"):
        campaign.pop(name, None)
    kept = {name: value for name, value in tables.items() if name not in (*_DELETED, "ledger")}
    traffic = {key: value for key, value in kept["traffic"].items() if key != "beside"}
    heading = {**kept["scenario"], "seed": scenario.seed}
    return {**kept, "scenario": heading, "traffic": traffic, "campaigns": [campaign]}


def _groups(plans: Sequence[Plan], fixed: Sequence[dict[str, Any]], goal: Goal) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mechanisms that can share a run, and the sections of the scenario that they need."""
    crowds = sorted({planned.crowd for planned in plans if planned.crowd})
    claims: dict[str, Any] = {"epsilons": [goal.epsilon or 1.0], "queries": sorted({1, goal.queries})}
    claims |= {"crowds": crowds or [1]}
    shuffled = {"aggregation": {"kind": "shuffled"}} if goal.view.startswith("shuffled") else {}
    together = [each for each in plans if each.release is None and each.aggregation is None and each.budget is None]
    sections = [section for planned in together for section in planned.sections["mechanisms"]]
    sections += [dict(section) for section in fixed]
    if sections:
        yield "reports", {"mechanisms": sections, "claims": claims, **shuffled}
    for planned in plans:
        if planned not in together:
            yield planned.name, {"claims": claims, **shuffled, **planned.sections}


def _sections(name: str) -> list[dict[str, Any]]:
    """Return the sections of the mechanisms in a file, or of a user's class.

    Raises
    ------
    InputError
        If the name is neither of these nor a family's.
    """
    if name.endswith(".toml"):
        try:
            read = parse_toml(Path(name).read_text(encoding="utf-8-sig")).get("mechanisms")
        except (OSError, ValueError) as error:
            raise InputError([f"mechanisms (--mechanisms): {name} cannot be read: {error}"]) from error
        if not isinstance(read, list) or not all(isinstance(section, dict) and "kind" in section for section in read):
            raise InputError([f"mechanisms (--mechanisms): {name} must have [[mechanisms]], each with a kind"])
        return [{"name": str(section["kind"]).rpartition(":")[2], **section} for section in read]
    if ":" in name:
        return [{"name": name.rpartition(":")[2], "kind": name}]
    rule = f"must be {', '.join(family_names())}, a file or package.module:Class{suggestion(name, family_names())}"
    raise InputError([f"mechanisms (--mechanisms): {rule}; got {name!r}"])


def _first_fault(error: ScenarioError) -> str:
    """Return the first fault, which for missing data says how to get them, and how many there are more."""
    more = len(error.faults) - 1
    return f"{error.faults[0]}" + (f" (and {more} more faults)" if more else "")


def _of(table: pd.DataFrame, data: str, mechanism: str) -> pd.DataFrame:
    if "mechanism" not in table.columns:
        return table.iloc[:0]
    return table[(table["data"] == data) & (table["mechanism"] == mechanism)]


def _text(parameters: Mapping[str, Any]) -> str:
    shown = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in parameters.items()}
    return ", ".join(f"{key} = {value}" for key, value in shown.items() if key not in {"name", "kind"})

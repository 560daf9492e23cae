"""The result of a run: its tables, its record and its scenario, in memory or from its directory."""

import hashlib
import os
import re
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

import scenarios
from mechanisms.privacy.claim import Claim
from scenarios import Scenario
from scenarios.references import DATA_PREFIX, data_set
from simulator.files.extras import import_extra
from simulator.files.resources import Stopwatch, peak_memory_nbytes
from simulator.results.claims import LINKED, claims_in, worth_reading
from simulator.results.costs import costs_of
from simulator.results.names import COUNT, Statistic, statistic_of
from simulator.results.run_record import RunRecord, Settings
from simulator.results.schema import TABLES
from simulator.results.store import (
    COMPLETE,
    SCENARIO,
    StoredTables,
    fill_directory,
    read_record,
    read_scenario,
    read_settings,
    write_record,
)
from simulator.results.tables import count_fit, error_intervals, findings, is_partial, mean_asked, of_all_vehicles

if TYPE_CHECKING:
    import geopandas as gpd

ACCESSORS: dict[str, Callable[["RunResult"], Any]] = {}
"""What makes an attribute of a run that other packages add, by the attribute's name; `simulator.api` fills it."""
OPENSTREETMAP = "© OpenStreetMap contributors, ODbL 1.0"


class RunResult:
    """The result of a run: its tables as data frames, and its record.

    Of a run that was loaded, a table is read from its file when it is first needed.

    Attributes
    ----------
    record
        Content of `run.json`, except what is known only after the tables are written.
    directory
        Where it was loaded from; None for a run in memory.
    stopwatch
        Wall time by phase; None for a run that was loaded, whose record has it.
    fcd
        Floating-car data, if the scenario requests it; not loaded from a directory.
    cells
        `cell` (1…V), `name`, `geometry` in WGS84.
    estimates, rounds, servers, scores, claims, attacks
        The tables of the run directory.
    roads
        The links with their `geometry` in WGS84; None for a scenario without roads.
    surroundings
        Water, places and streets in WGS84; None where the source of the roads has none.
    links, trips
        Links by interval, and trips; None if they are not requested.
    detectors, counts
        Vehicles at detectors, and measured counts beside the run's counts; None if the scenario has none.
    entries, places
        Where single vehicles were; None where it is not kept.
    ledger
        What each query spends of the budgets of ledgers; None without a ledger.
    guesses
        What coalitions guessed about single vehicles; None if no attack guesses cells, or vehicles may not be shown.
    plot, summary
        Plots on matplotlib axes, such as ``plot.map()``, and the summary that `crowdveil run` prints (`ACCESSORS`).
    """

    cells: "gpd.GeoDataFrame"
    estimates: pd.DataFrame
    rounds: pd.DataFrame
    servers: pd.DataFrame
    scores: pd.DataFrame
    claims: pd.DataFrame
    attacks: pd.DataFrame
    roads: "gpd.GeoDataFrame | None"
    surroundings: "gpd.GeoDataFrame | None"
    links: pd.DataFrame | None
    trips: pd.DataFrame | None
    detectors: pd.DataFrame | None
    counts: pd.DataFrame | None
    entries: pd.DataFrame | None
    places: pd.DataFrame | None
    guesses: pd.DataFrame | None
    ledger: pd.DataFrame | None

    def __init__(
        self,
        record: RunRecord,
        tables: MutableMapping[str, Any],
        *,
        scenario: Scenario | None = None,
        directory: Path | None = None,
        stopwatch: Stopwatch | None = None,
        fcd: Any = None,
        asked: Self | None = None,
    ) -> None:
        self.record, self.directory, self.stopwatch, self.fcd = record, directory, stopwatch, fcd
        self._tables, self._scenario, self._asked = tables, scenario, asked

    def __getattr__(self, name: str) -> Any:
        """Return a table, or what another package adds to a run."""
        if name in ACCESSORS:
            return self.__dict__.setdefault(name, ACCESSORS[name](self))
        if name not in TABLES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return self._tables[name]

    def __dir__(self) -> list[str]:
        """Return the names of all attributes, for tab completion."""
        return [*super().__dir__(), *TABLES, *ACCESSORS]

    def __repr__(self) -> str:
        """Return the scenario, the seed, and the numbers of queries, cells and mechanisms."""
        record = self.record
        return (
            f"<{type(self).__name__}: {record.scenario}, seed {record.seed}, {record.queries} queries, "
            f"{record.city.cells} cells, {len(record.mechanisms)} mechanisms>"
        )

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Read a run from its directory.

        The data files that its scenario names need not exist any more.

        Parameters
        ----------
        directory
            A directory that `save` wrote, or `crowdveil run`.

        Raises
        ------
        UnfinishedRunError
            If the directory holds no finished run, a table is missing, or a later version wrote it. A table that was
            changed raises it when it is first needed.
        """
        folder = Path(directory)
        record = read_record(folder / COMPLETE)
        return cls(record, StoredTables(folder, record), directory=folder)

    @property
    def saved_in(self) -> Path:
        """The directory of a run that has one; any other raises a ValueError."""
        if self.directory is None:
            raise ValueError("this run is in memory only: save it first")
        return self.directory

    def with_tables(self, *, record: RunRecord | None = None, **tables: pd.DataFrame | None) -> Self:
        """Return the run with other tables in place of the tables of these names, or with another record."""
        return self._with(record=record or self.record, tables=ChainMap(tables, self._tables))

    def _with(self, **changed: Any) -> Self:
        parts = {name: getattr(self, name) for name in ("record", "directory", "stopwatch", "fcd")}
        parts |= {"tables": self._tables, "scenario": self._scenario, "asked": self._asked}
        return type(self)(**(parts | changed))

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario with all values resolved."""
        return read_scenario(self.saved_in) if self._scenario is None else self._scenario

    @cached_property
    def scenario_toml(self) -> str:
        """The resolved scenario; absolute paths of files are reduced to the file name."""
        text = (self.saved_in / SCENARIO).read_text(encoding="utf-8") if self.settings else ""
        return re.sub(r'"/[^"\n]*/', '"…/', text)

    @cached_property
    def settings(self) -> Settings:
        """What pages need of the scenario."""
        if self.directory is None:
            return Settings.model_validate(self.scenario.model_dump(by_alias=True, exclude_none=True))
        return read_settings(self.directory)

    @property
    def attributions(self) -> list[str]:
        """The credits to put under a figure or into a file made from the run.

        They are the credits of the known data sets, and OpenStreetMap's for any file of it. Credits of a user's own
        files are not known.
        """
        read = [reference for reference in self.record.data if reference.startswith(DATA_PREFIX)]
        folders = [reference.removeprefix(DATA_PREFIX).partition("/")[0] for reference in read]
        known = [data_set(folder) for folder in dict.fromkeys(folders)]
        credits_ = [one.attribution for one in known if one is not None]
        if self.scenario.roads.source == "osm" and not any(OPENSTREETMAP in text for text in credits_):
            credits_.append(OPENSTREETMAP)
        return credits_

    @property
    def facts(self) -> dict[str, Any]:
        """The record as it is written to `run.json`: dicts, lists, strings, numbers and None."""
        return self.record.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def cells_of(self, campaign: str) -> "gpd.GeoDataFrame":
        """Return the cells of the partition that a campaign asks about."""
        asked = self.estimates.loc[self.estimates["campaign"] == campaign, "cell"]
        partition = self.cells["partition"]
        of_campaign = partition[self.cells["cell"].isin(asked.iloc[:1])].iloc[:1]
        return self.cells[partition == of_campaign.iloc[0]] if len(of_campaign) else self.cells

    def to_geodataframe(self) -> "gpd.GeoDataFrame":
        """Return the estimates with the names and shapes of their cells.

        Returns
        -------
        geopandas.GeoDataFrame
            The rows and columns of `estimates`, and `name` and `geometry`, in WGS84.
        """
        import geopandas as gpd  # noqa: PLC0415 - slow to import

        joined = self.estimates.merge(self.cells, on="cell", validate="many_to_one")
        return gpd.GeoDataFrame(joined, geometry="geometry", crs=self.cells.crs)

    def to_xarray(self) -> Any:
        """Return the estimates as an `xarray.Dataset`.

        Returns
        -------
        xarray.Dataset
            The numbers of `estimates`, with the dimensions `campaign`, `mechanism`, `query` and `cell`, and their units
            in `attrs`. A value is NaN where `estimates` has no row: of a campaign with fewer queries, or of the cells
            of another partition. `time_s` and `time` are coordinates of a query, `name` and `partition` of a cell, and
            `statistic` of a campaign.

        Raises
        ------
        InputError
            If xarray is not installed; the message names the extra ``xarray``.
        """
        import_extra("xarray", needed="RunResult.to_xarray needs xarray", extra="xarray")
        asked, times = ["campaign", "mechanism", "query"], ["time_s", "time"]
        rows = self.estimates.astype({"campaign": str, "mechanism": str})
        at = rows.drop_duplicates(asked).set_index(asked).reindex(columns=times).to_xarray()
        made = rows.drop(columns=times, errors="ignore").set_index([*asked, "cell"]).to_xarray().assign_coords(at)
        made = made.sel({name: rows[name].unique() for name in asked[:2]})  # in the run's order; pandas sorts names
        of_cells = self.cells.set_index("cell").loc[made["cell"].to_numpy(), ["name", "partition"]].astype(str)
        made = made.assign_coords({name: ("cell", [*values]) for name, values in of_cells.items()})
        statistics = [self.statistics[name] for name in made["campaign"].to_numpy()]
        made = made.assign_coords(statistic=("campaign", [statistic.name for statistic in statistics]))
        units = " or ".join(dict.fromkeys(statistic.unit for statistic in statistics))
        for column in TABLES["estimates"].columns:
            if column.unit and column.name in made.variables:
                unit = units if column.unit == "statistic" else column.unit
                made[column.name].attrs["units"] = self.record.owners.replace_in(unit)
        return made.assign_attrs(scenario=self.record.scenario, seed=self.record.seed)

    # Saving

    def save(
        self,
        directory: str | Path,
        *,
        overwrite: bool = False,
        numbered: bool = False,
        render: Callable[[Self], object] | None = None,
    ) -> Path:
        """Write the run directory, completely or not at all.

        Parameters
        ----------
        directory
            Path of the run directory.
        overwrite
            Replace an earlier run in this directory.
        numbered
            If the path is taken, use the first of `directory-2`, `directory-3`, … that is free.
        render
            Function that writes the report; called with the run in its directory once that is complete, so that a
            fault of the report loses nothing.

        Returns
        -------
        Path
            The directory.

        Raises
        ------
        DirectoryError
            If the path is taken and may not be replaced; the run is then kept under the next free number, which the
            message names.
        """
        saved = fill_directory(Path(directory), self._write, overwrite=overwrite, numbered=numbered)
        if render is not None:
            self.add_report(saved, render)
        return saved

    def add_report(self, directory: Path, render: Callable[[Self], object]) -> Self:
        """Write the report with `render` into the directory where the run was saved, and its time into `run.json`.

        Returns
        -------
        RunResult
            The run as it is in the directory.
        """
        with (self.stopwatch or Stopwatch()).phase("report"):
            render(self._with(record=read_record(directory / COMPLETE), directory=directory, stopwatch=None))
        return self._with(record=self._write_record(directory), directory=directory, stopwatch=None)

    def _write(self, directory: Path) -> None:
        with (self.stopwatch or Stopwatch()).phase("write"):
            (directory / SCENARIO).write_text(scenarios.dump(self.scenario, folder=directory), encoding="utf-8")
            for name in TABLES:
                table: pd.DataFrame | None = getattr(self, name)
                if table is not None:
                    table.to_parquet(directory / f"{name}.parquet", index=False)
            section = self.scenario.fcd
            if self.fcd is not None and section is not None:
                self.fcd.write(directory, formats=section.formats)
        self._write_record(directory)

    def _write_record(self, directory: Path) -> RunRecord:
        sha256 = hashlib.sha256((directory / SCENARIO).read_bytes()).hexdigest()
        record = self.timed_record.model_copy(update={"scenario_sha256": sha256})
        write_record(record, directory)
        return record

    @property
    def timed_record(self) -> RunRecord:
        """The record with the time and memory that the run has taken until now."""
        if self.stopwatch is None:
            return self.record
        memory = {**self.record.memory_bytes, "peak": peak_memory_nbytes()}
        return self.record.model_copy(update={"wall_s": self.stopwatch.wall_s(), "memory_bytes": memory})

    # Devices asked, and all vehicles

    @property
    def partial(self) -> bool:
        """Whether fewer than all vehicles take part, or are assumed to."""
        return is_partial(self.scores)

    @cached_property
    def count_fit(self) -> pd.DataFrame | None:
        """How counts and speeds agree with those measured (`simulator.results.tables.count_fit`); None without any."""
        return None if self.counts is None else count_fit(self.counts)

    @property
    def asked(self) -> Self:
        """The run with the figures of the devices asked, as its files have them."""
        return self if self._asked is None else self._asked

    @cached_property
    def leading(self) -> Self:
        """The run with figures of all vehicles in place of figures of the devices asked, if not all take part."""
        if self._asked is not None or not self.partial:
            return self
        scaled: dict[str, Any] = {"estimates": of_all_vehicles(self.estimates), "scores": of_all_vehicles(self.scores)}
        return self._with(tables=ChainMap(scaled, self._tables), asked=self)

    # What its tables say

    @cached_property
    def statistics(self) -> dict[str, Statistic]:
        """The statistic that each campaign estimates, by campaign; counts where none is stated."""
        pairs = zip(self.scores["campaign"], self.scores["statistic"], strict=True)
        return {str(campaign): statistic_of(str(name)) for campaign, name in pairs}

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The scores, each with the `label` of what was published, its `unit`, and the ends of its `error_intervals`.

        Vehicles are called as the scenario calls its owners.
        """
        scores = self.scores.astype({"campaign": str, "mechanism": str})
        pairs = list(zip(scores["campaign"], scores["mechanism"], strict=True))
        scores["label"] = [self.record.published_label(*pair) for pair in pairs]
        scores["unit"] = [self.record.owners.unit(self.statistics[campaign].unit) for campaign, _ in pairs]
        ends = error_intervals(self.estimates).astype({"campaign": str, "mechanism": str})
        return scores.merge(ends, on=["campaign", "mechanism"], how="left")

    @cached_property
    def findings(self) -> pd.DataFrame:
        """The findings of attacks in the order of the campaigns; findings of all campaigns together are last."""
        order = {campaign: place for place, campaign in enumerate(self.record.deployments_by_campaign)}
        return findings(self.attacks).sort_values(
            "campaign", key=lambda names: names.map(order).fillna(len(order)), kind="stable"
        )

    @property
    def errors_by_unit(self) -> dict[str, pd.DataFrame]:
        """The errors by their unit, vehicles first."""
        units = sorted(self.errors["unit"].unique(), key=lambda unit: unit != self.record.owners.unit(COUNT.unit))
        return {unit: self.errors[self.errors["unit"] == unit] for unit in units}

    @cached_property
    def privacy(self) -> list[Claim]:
        """What is claimed of each mechanism in each view of one campaign."""
        return [claim for claim in self._all_claims if claim.campaigns is None]

    @cached_property
    def whole_run(self) -> dict[str, list[Claim]]:
        """By mechanism, what is claimed of all campaigns together; empty for a run of one campaign."""
        whole = [claim for claim in self._all_claims if claim.campaigns is not None]
        names = dict.fromkeys(claim.mechanism for claim in whole)
        return {name: [claim for claim in whole if claim.mechanism == name] for name in names}

    @cached_property
    def _all_claims(self) -> list[Claim]:
        return claims_in(self.claims, {mechanism.name: mechanism.rounds for mechanism in self.record.mechanisms})

    @cached_property
    def claims_by_mechanism(self) -> dict[str, list[Claim]]:
        """By mechanism, its claims that are worth reading, each with whether any party of the run has the view."""
        claims: dict[str, list[Claim]] = {}
        for claim in worth_reading(self.privacy):
            views = self.record.views_seen(claim.mechanism)
            seen = views is None or claim.view in views or not claim.of_reports
            claims.setdefault(claim.mechanism, []).append(replace(claim, seen=seen))
        return claims

    @cached_property
    def budgeted(self) -> set[str]:
        """Names of the campaigns with a budget, to which the theory of a mechanism with its whole ε does not apply."""
        return {claim.campaign for claim in self.privacy if claim.view == LINKED and claim.campaign is not None}

    @cached_property
    def costs(self) -> pd.DataFrame:
        """What a query costs a device, and the time until its estimate, as `costs_of` returns it."""
        return costs_of(self.rounds)

    @cached_property
    def mean_asked(self) -> dict[tuple[str, str], float]:
        """Mean number of devices asked per query, by campaign and mechanism."""
        return mean_asked(self.rounds)


def opened(run: RunResult | str | os.PathLike[str]) -> RunResult:
    """Return a run, read from its directory if that is given."""
    return run if isinstance(run, RunResult) else RunResult.load(run)

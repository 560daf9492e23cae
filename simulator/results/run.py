"""Reader of a finished run, from its directory alone, and the words for its data owners, mechanisms and campaigns."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scenarios.kinds import title as title_of
from simulator.experiment.scaling import is_partial, of_all_vehicles
from simulator.experiment.tables import with_times
from simulator.results.record import MechanismRecord, ReleaseRecord, RunRecord
from simulator.results.store import COMPLETE, ROADS, SURROUNDINGS, read_record, read_table
from simulator.roads.projection import LOCAL


class OwnerNames(NamedTuple):
    """
    The nouns for one data owner and for several.

    Parameters
    ----------
    one, many
        For example "vehicle" and "vehicles".
    """

    one: str = "vehicle"
    many: str = "vehicles"

    @property
    def with_article(self) -> str:
        """The singular noun with its article: "a vehicle" or "an owner"."""
        return f"{'an' if self.one[:1].lower() in set('aeiou') else 'a'} {self.one}"

    @property
    def person(self) -> str:
        """The noun for the person whose privacy is at stake: a driver for vehicles, else the data owner."""
        return "a driver" if self == OwnerNames() else self.with_article

    def unit(self, unit: str) -> str:
        """Return the unit of an error with these nouns in place of "vehicles"; units of speed are unchanged."""
        return self.many if unit == OwnerNames().many else unit

    def replace_in(self, words: str) -> str:
        """Return a text with "vehicles" replaced by the plural noun."""
        return words.replace(OwnerNames().many, self.many)


NO_PRIVACY = "no_privacy"

_RELEASED_BY = r"Released by (?P<release>.+?), campaigns? (?P<campaign>[^:]+): "
"""How the basis of a claim about a release begins, which in earlier runs alone names the release and its campaigns."""
UNMATCHED = "Rounds counted different devices"
"""Prefix of the basis of a claim where the noise of the rounds did not cancel."""


@dataclass(frozen=True)
class Statistic:
    """
    What a campaign estimates in each cell, in words.

    Parameters
    ----------
    name
        Its name in `scores.parquet`.
    unit
        Unit of the errors.
    of_truth
        What the true value of a cell is.
    """

    name: str
    unit: str
    of_truth: str


COUNT = Statistic("count", "vehicles", "vehicles asked that are in the cell")
ALL_VEHICLES = "all vehicles in the cell, asked or not"
_SPEEDS = {
    "mean_speed": Statistic("mean_speed", "m/s", "mean speed of the vehicles asked that are in the cell"),
    "median_speed": Statistic("median_speed", "m/s", "median speed of the vehicles asked that are in the cell"),
}


def statistic_of(name: str) -> Statistic:
    """Return the statistic of a name in `scores.parquet`; counts for any name but those of speeds."""
    return _SPEEDS.get(name, COUNT)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame by column, with None for each missing value."""
    rows = frame.to_dict("records")
    return [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]


class FinishedRun:
    """
    A finished run, in memory or in a run directory, each file of which is read when it is first needed.

    Parameters
    ----------
    directory
        A directory with `run.json` in it.
    record, tables
        The content of `run.json`, and the cells and tables by name, if they are not read from the directory.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no readable `run.json`, or one of a later format.
    """

    def __init__(
        self, directory: Path, *, record: RunRecord | None = None, tables: Mapping[str, pd.DataFrame] | None = None
    ) -> None:
        self.directory = directory
        self.record = read_record(directory / COMPLETE) if record is None else record
        self._given = dict(tables or {})
        vars(self).update({name: table for name, table in self._given.items() if name not in ("estimates", "scores")})
        self.owners = OwnerNames(*self.record.called)
        self.mechanisms = {mechanism.name: mechanism for mechanism in self.record.mechanisms}
        self.refined = {refinement.name: refinement for refinement in self.record.refinements}
        self.deployments = {deployment.campaign: deployment for deployment in self.record.deployments}
        self._releases = {release.campaign: release for release in self.record.releases}

    def __repr__(self) -> str:
        """Return the scenario, the seed and the number of mechanisms."""
        return f"FinishedRun({self.record.scenario!r}, seed={self.record.seed}, mechanisms={list(self.mechanisms)})"

    @property
    def private(self) -> dict[str, MechanismRecord]:
        """The mechanisms other than no privacy, by name."""
        return {name: mechanism for name, mechanism in self.mechanisms.items() if mechanism.kind != NO_PRIVACY}

    @property
    def first_private(self) -> str | None:
        """The mechanism of most interest: the first other than no privacy; None if there is none."""
        return next(iter(self.private), None)

    def rounds_of(self, mechanism: str) -> int:
        """Return the number of answers a mechanism takes per query; 2 if the run has no such mechanism."""
        return self.mechanisms[mechanism].rounds if mechanism in self.mechanisms else 2

    def views_seen(self, mechanism: str, campaign: str | None = None) -> dict[str, int] | None:
        """
        Return the views that coalitions have of a mechanism's reports, by what the deployments store.

        Parameters
        ----------
        mechanism
            Its name.
        campaign
            The campaign in which servers alone collude; by default all campaigns and parties.

        Returns
        -------
        views
            By name of the view, the least number of parties that have it; None where the run recorded no deployment.
        """
        views: dict[str, int] = {}
        recorded = [one for one in self.deployments.values() if campaign in {None, one.campaign}]
        found = [
            seen for one in recorded for own in one.mechanisms if own.mechanism == mechanism for seen in own.learns
        ]
        for seen in found:
            servers = all(party.startswith("server:") for party in seen.coalition)
            if seen.view is not None and (servers or campaign is None):
                views[seen.view] = min(len(seen.coalition), views.get(seen.view, len(seen.coalition)))
        if self.rounds_of(mechanism) == 1 and "linked_reports" in views:
            views["report_round_1"] = views["linked_reports"]  # whoever knows the device has its only report
        return views if found else None

    def _table(self, name: str) -> pd.DataFrame:
        found: pd.DataFrame = (
            self._given[name] if name in self._given else read_table(self.directory, name, self.record)
        )
        return found

    def _kept(self, name: str) -> pd.DataFrame | None:
        return self._table(name) if (self.directory / f"{name}.parquet").is_file() else None

    def label(self, mechanism: str) -> str:
        """
        Return a mechanism's name for display.

        Parameters
        ----------
        mechanism
            Its name in the scenario.

        Returns
        -------
        label
            Its title, with its name where several mechanisms share the title; its name where there is no title; for a
            refined estimate also the refinement's name, and that it is biased.
        """
        if mechanism in self.refined:
            refined = self.refined[mechanism]
            return f"{self.label(refined.mechanism)}, {refined.refinement}{' (biased)' if refined.biased else ''}"
        kind = self.mechanisms[mechanism].kind if mechanism in self.mechanisms else ""
        title = title_of("mechanism", kind, mechanism)
        alone = title == mechanism or sum(other.kind == kind for other in self.record.mechanisms) == 1
        return title if alone else f"{title} “{mechanism}”"

    def release_of(self, campaign: str, mechanism: str) -> ReleaseRecord | None:
        """Return the release through which a mechanism's estimates were published; None if they are its own."""
        release = self._releases.get(campaign)
        if release is None or mechanism not in release.mechanisms or release.release["kind"] == "none":
            return None
        return release

    def published_label(self, campaign: str, mechanism: str) -> str:
        """
        Return a label for a published estimate: the mechanism's label and, if there is one, the release.

        Parameters
        ----------
        campaign, mechanism
            Their names.

        Returns
        -------
        label
            For example ``Exact reports, Laplace noise (epsilon = 1)``.
        """
        release = self.release_of(campaign, mechanism)
        label = self.label(mechanism)
        if release is None:
            return label
        parameters = release.words.partition(" (")[2].replace("epsilon", "ε").replace("delta", "δ")
        kind = str(release.release["kind"])
        return f"{label}, {title_of('release', kind, kind)}" + (f" ({parameters}" if parameters else "")

    @property
    def release_notes(self) -> list[str]:
        """What no release covers, and why; one sentence each."""
        return [note for release in self.record.releases for note in release.notes]

    @property
    def on_earth(self) -> bool:
        """Whether its cells lie somewhere on Earth; places that the data only name are squares in a row about 0, 0."""
        city = self.record.city
        return bool(city.links) or f"{LOCAL} 0, 0" not in (city.crs or "")

    @property
    def has_districts(self) -> bool:
        """Whether its cells are zones of a file, with names of their own."""
        return bool(tomllib.loads(self.scenario_toml).get("cells", {}).get("kind") == "zones")

    @cached_property
    def statistics(self) -> dict[str, Statistic]:
        """The statistic that each campaign estimates, by campaign; counts where none is stated."""
        pairs = zip(self.scores["campaign"], self.scores["statistic"], strict=True)
        return {str(campaign): statistic_of(str(name)) for campaign, name in pairs}

    @property
    def scores_by_unit(self) -> dict[str, pd.DataFrame]:
        """The scores by the unit of their errors, vehicles first, which are called as the scenario calls its owners."""
        units = self.scores["campaign"].map(lambda campaign: self.statistics[str(campaign)].unit)
        every = sorted(units.unique(), key=lambda unit: unit != COUNT.unit)
        return {self.owners.unit(str(unit)): self.scores[units == unit] for unit in every}

    @cached_property
    def partial(self) -> bool:
        """Whether fewer than all vehicles take part, or are assumed to."""
        return is_partial(self.asked_scores)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """One row per campaign, query, mechanism and cell; of all vehicles if fewer than all take part."""
        return of_all_vehicles(self.asked_estimates) if self.partial else self.asked_estimates

    @cached_property
    def asked_estimates(self) -> pd.DataFrame:
        """The estimates of the devices asked, as `estimates.parquet` has them; older rows have no `time`."""
        estimates = self._table("estimates")
        return estimates if "time" in estimates else with_times(estimates, self.record.clock)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per campaign, query, mechanism and round."""
        return self._table("rounds")

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per campaign and mechanism; of all vehicles if fewer than all take part."""
        return of_all_vehicles(self.asked_scores) if self.partial else self.asked_scores

    @cached_property
    def asked_scores(self) -> pd.DataFrame:
        """The scores of the devices asked."""
        return self._table("scores")

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per mechanism, view and ε; in format 1 the rows do not state their adjacency, nor a campaign.

        Those of published values then hide at least a device that enters or leaves a cell. Rows of earlier runs name a
        release and its campaigns in the basis only.
        """
        claims = self._table("claims")
        if "campaign" not in claims:
            claims = claims.assign(campaign=None)
        if "release" not in claims:
            named = claims["basis"].fillna("").str.extract(_RELEASED_BY)
            campaigns = named["campaign"].str.split(", ").where(named["release"].notna(), claims["campaign"])
            claims = claims.assign(release=named["release"], campaign=campaigns).explode("campaign", ignore_index=True)
        if "adjacency" in claims:
            return claims
        released = claims["view"].str.startswith("released")
        return claims.assign(adjacency=np.where(released, "enter_leave", "move"))

    @cached_property
    def budgeted(self) -> set[str]:
        """Names of the campaigns with a budget, to which the theory of a mechanism with its whole ε does not apply."""
        return set(self.claims.loc[self.claims["view"] == "linked_reports", "campaign"].dropna())

    def queries_of(self, campaign: str) -> int:
        """Return the number of queries of a campaign, at least 1."""
        return max(1, sum(query.campaign == campaign for query in self.record.traffic_at_queries))

    @cached_property
    def attacks(self) -> pd.DataFrame:
        """One row per finding; empty where the run has no attacks."""
        found = self._kept("attacks")
        return pd.DataFrame() if found is None else found

    @cached_property
    def guesses(self) -> pd.DataFrame | None:
        """What coalitions guessed about single vehicles; None where no attack guesses cells, or none may be shown."""
        return self._kept("guesses")

    @cached_property
    def cells(self) -> Any:
        """The partition as a GeoDataFrame in WGS84, ordered by cell."""
        import geopandas as gpd  # noqa: PLC0415  slow to import

        cells = read_table(self.directory, "cells", self.record, gpd.read_parquet)
        if cells.crs is not None and not cells.crs.is_geographic:
            cells = cells.to_crs(4326)
        return cells.sort_values("cell").reset_index(drop=True)

    @cached_property
    def roads(self) -> pd.DataFrame | None:
        """The links, with `geometry` as WKB in WGS84; None where the run kept no roads."""
        return self._kept(Path(ROADS).stem)  # geopandas takes ten times as long

    @cached_property
    def surroundings(self) -> pd.DataFrame | None:
        """Water, places and streets, with `geometry` as WKB in WGS84; None where the run kept none."""
        return self._kept(Path(SURROUNDINGS).stem)

    @cached_property
    def entries(self) -> pd.DataFrame | None:
        """The departures, link entries and arrivals of single vehicles; None where the run keeps none."""
        return self._kept("entries")

    @cached_property
    def places(self) -> pd.DataFrame | None:
        """The places of single vehicles at regular moments; None where the run keeps none."""
        return self._kept("places")

    @cached_property
    def scenario_toml(self) -> str:
        """The resolved scenario; absolute paths of files are reduced to the file name."""
        path = self.directory / "scenario.toml"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return re.sub(r'"/[^"\n]*/', '"…/', text)

    @cached_property
    def mean_asked(self) -> dict[tuple[str, str], float]:
        """Mean number of devices asked per query, by campaign and mechanism."""
        keys = ["campaign", "mechanism"]
        asked = self.rounds[self.rounds["asked"] > 0]  # of a budget, some questions are not asked
        by_query = asked.groupby([*keys, "query"], sort=False, observed=True)["asked"].max().reset_index()
        means = by_query.groupby(keys, sort=False, observed=True)["asked"].mean().reset_index()
        names = zip(means["campaign"].astype(str), means["mechanism"].astype(str), strict=True)
        return dict(zip(names, means["asked"].astype(float), strict=True))

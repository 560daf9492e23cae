"""Reader of a finished run, from its directory alone, and the nouns for its data owners."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scenarios.kinds import title as title_of
from simulator.experiment.run_directory import RUN_FORMAT


class Called(NamedTuple):
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
    def who_pays(self) -> str:
        """The noun for the person whose privacy is at stake: a driver for vehicles, else the data owner."""
        return "a driver" if self == Called() else self.with_article

    def unit(self, unit: str) -> str:
        """Return the unit of an error with these nouns in place of "vehicles"; units of speed are unchanged."""
        return self.many if unit == Called().many else unit

    def of(self, words: str) -> str:
        """Return a text with "vehicles" replaced by the plural noun."""
        return words.replace(Called().many, self.many)


def called(run: Mapping[str, Any]) -> Called:
    """
    Read the nouns for data owners from `run.json`.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    words
        "vehicle" and "vehicles" where `run.json` states none, as in runs of earlier versions.
    """
    words = run.get("called")
    return Called(*map(str, words)) if words else Called()


ATTACK_COLUMNS = ("name", "attack", "coalition", "mechanism", "prior", "success", "gain")


class UnfinishedRunError(ValueError):
    """The directory holds no finished run that can be read; the message states why."""


@dataclass(frozen=True)
class MechanismFacts:
    """
    What a run recorded about one of its mechanisms.

    Parameters
    ----------
    name
        Its name in the scenario.
    kind
        Its kind, a short name or ``package.module:Class``.
    label
        Its name for display.
    rounds
        Number of answers it takes per query.
    record
        Its complete record in `run.json`.
    """

    name: str
    kind: str
    label: str
    rounds: int
    record: Mapping[str, Any]


def mechanism_facts(run: Mapping[str, Any]) -> dict[str, MechanismFacts]:
    """
    Gather the facts about each mechanism from `run.json`.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    facts
        By mechanism name, in the scenario's order.
    """
    records = list(run.get("mechanisms", []))
    kinds = [str(record.get("kind", record["name"])) for record in records]
    facts = {}
    for record, kind in zip(records, kinds, strict=True):
        name = str(record["name"])
        title = title_of("mechanism", kind, name)
        label = title if kinds.count(kind) == 1 or title == name else f"{title} “{name}”"
        facts[name] = MechanismFacts(name, kind, label, int(record.get("rounds") or 1), record)
    return facts


def refined_labels(run: Mapping[str, Any], facts: Mapping[str, MechanismFacts]) -> dict[str, str]:
    """
    Return a label for every refined estimate.

    Parameters
    ----------
    run
        The content of `run.json`.
    facts
        Its mechanisms.

    Returns
    -------
    labels
        By its name in the tables: the mechanism's label, the refinement's name, and that it is biased.
    """
    labels = {}
    for record in run.get("refinements") or []:
        mechanism = str(record["mechanism"])
        of = facts[mechanism].label if mechanism in facts else mechanism
        biased = " (biased)" if record.get("biased") else ""
        labels[str(record["name"])] = f"{of}, {record['refinement']}{biased}"
    return labels


def _read_facts(path: Path) -> dict[str, Any]:
    """Read `run.json` in the current format or an earlier one."""
    if not path.is_file():
        raise UnfinishedRunError(f"{path.parent}: no finished run here: run.json is not in it")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnfinishedRunError(f"{path}: not JSON: {error}") from error
    if not isinstance(facts, dict):
        raise UnfinishedRunError(f"{path}: must be a JSON object")
    number = facts.get("format", 1)
    if number not in range(1, RUN_FORMAT + 1):
        rule = f"must be a whole number from 1 to {RUN_FORMAT}, the formats that this version of crowdveil reads"
        raise UnfinishedRunError(
            f"{path}: format: {rule}; got {number!r}, written by version {facts.get('version', 'unknown')}"
        )
    return facts


class FinishedRun:
    """
    The files of one run directory; each file is read when it is first needed.

    Parameters
    ----------
    directory
        A directory with `run.json` in it.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no readable `run.json`, or one of a later format.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run = _read_facts(directory / "run.json")
        self.called = called(self.run)
        self.facts = mechanism_facts(self.run)
        self.refined = refined_labels(self.run, self.facts)

    def __repr__(self) -> str:
        """Return the scenario, the seed and the number of mechanisms."""
        return f"FinishedRun({self.run.get('scenario')!r}, seed={self.run.get('seed')}, mechanisms={list(self.facts)})"

    def _table(self, name: str) -> pd.DataFrame:
        path = self.directory / f"{name}.parquet"
        if not path.is_file():
            raise UnfinishedRunError(f"{self.directory}: {name}.parquet is not in it")
        return pd.read_parquet(path)

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
            Its title, or its name in the scenario where the run recorded no title.
        """
        facts = self.facts.get(mechanism)
        return facts.label if facts else self.refined.get(mechanism, mechanism)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """One row per campaign, query, mechanism and cell."""
        return self._table("estimates")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per campaign, query, mechanism and round."""
        return self._table("rounds")

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per campaign and mechanism; in format 1 the rows may not state that they are of counts."""
        scores = self._table("scores")
        return scores if "statistic" in scores else scores.assign(statistic="count")

    @cached_property
    def claims(self) -> pd.DataFrame:
        """One row per mechanism, view and ε."""
        return self._table("claims")

    @cached_property
    def attacks(self) -> pd.DataFrame:
        """One row per finding; empty where the run has no attacks."""
        if not (self.directory / "attacks.parquet").is_file():
            return pd.DataFrame(columns=list(ATTACK_COLUMNS))
        return self._table("attacks")

    @cached_property
    def cells(self) -> Any:
        """The partition as a GeoDataFrame in WGS84, ordered by cell."""
        import geopandas as gpd  # noqa: PLC0415  slow to import

        path = self.directory / "cells.parquet"
        if not path.is_file():
            raise UnfinishedRunError(f"{self.directory}: cells.parquet is not in it")
        cells = gpd.read_parquet(path)
        if cells.crs is not None and not cells.crs.is_geographic:
            cells = cells.to_crs(4326)
        return cells.sort_values("cell").reset_index(drop=True)

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
        by_query = self.rounds.groupby([*keys, "query"], sort=False, observed=True)["asked"].max().reset_index()
        means = by_query.groupby(keys, sort=False, observed=True)["asked"].mean().reset_index()
        names = zip(means["campaign"].astype(str), means["mechanism"].astype(str), strict=True)
        return dict(zip(names, means["asked"].astype(float), strict=True))

"""Comparison of measured counts and speeds with those of a run, and with those estimated from reports."""

from typing import Any

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray
from simulator.cells import Partition, RoadSegments
from simulator.experiment.study_area import City
from simulator.files.messages import Note
from simulator.results.schema import TABLES
from simulator.results.tables import SIMULATED, geh
from simulator.traffic.detectors import passages
from simulator.traffic.link_intervals import Traversals


def compare_counts(
    measured: pd.DataFrame, driven: Traversals, city: City, estimates: pd.DataFrame, scenario: Any, *, end_s: float
) -> tuple[pd.DataFrame, list[Note]]:
    """Compare measured values with what the run counted there, and with what mechanisms estimated.

    Parameters
    ----------
    measured
        `name`, `link`, `fraction`, `from_s`, `to_s`, `count` and `speed_mps` of each measured value.
    driven, end_s
        As for `passages`.
    city, scenario
        Of the run.
    estimates
        The table `estimates` of the run.

    Returns
    -------
    tuple
        The table `counts` of a run (docs/columns.md), and notes on estimates that cannot be compared.
    """
    names = {"name": "place", "count": "measured_count", "speed_mps": "measured_speed_mps"}
    rows, length_m = measured.rename(columns=names), city.roads.links.length_m
    simulated = rows.join(passages(driven, length_m, rows, end_s=end_s)).assign(source=SIMULATED, campaign="")
    partition = next((name for name, cells in city.partitions.items() if isinstance(cells, RoadSegments)), None)
    cells, before = city.divided(partition).cells, 0 if partition is None else city.cells_before[partition]
    estimates = estimates.assign(cell=estimates["cell"] - before)
    estimates = estimates[estimates["cell"].between(1, cells.count)]
    statistic = estimates["campaign"].map({campaign.name: campaign.statistic for campaign in scenario.campaigns})
    counts, speeds = estimates[statistic == "count"], estimates[statistic == "mean_speed"]
    estimated, notes = _estimated(rows, length_m, cells, counts, speeds)
    table = pd.concat([simulated, estimated], ignore_index=True)
    table["count"] *= scenario.counts.scale
    hours = (table["to_s"] - table["from_s"]) / 3600.0
    table["geh"] = geh(table["count"] / hours, table["measured_count"] / hours)
    table["position_m"] = table["fraction"] * length_m[table["link"]]
    return table[[column.name for column in TABLES["counts"].columns]], notes


def _estimated(
    rows: pd.DataFrame, length_m: FloatArray, cells: Partition, counts: pd.DataFrame, speeds: pd.DataFrame
) -> tuple[pd.DataFrame, list[Note]]:
    """Return counts and speeds by flow = density · speed, each averaged over the queries of an interval."""
    if not isinstance(cells, RoadSegments) or counts.empty or speeds.empty:
        needs = 'cells.kind = "roads", a campaign of counts and one of mean_speed: a flow is density times speed'
        return rows[:0], [
            Note("not_compared", f"counts: to compare estimates too, the run needs {needs}", where="counts")
        ]
    number = np.bincount(cells.cell_of_links, minlength=2)
    number[0] = 0
    cell = cells.cell_of_links[rows["link"]]
    asked = rows.assign(row=rows.index, cell=cell)[["row", "cell", "from_s", "to_s"]][number[cell] == 1]

    def means(table: pd.DataFrame, value: str, *keys: str) -> pd.DataFrame:
        at = asked.merge(table, on="cell")
        at = at[(at["time_s"] >= at["from_s"]) & (at["time_s"] < at["to_s"])]
        averaged: pd.DataFrame = at.groupby(["row", *keys], sort=False, observed=True)[value].mean().reset_index()
        return averaged

    both = means(counts, "scaled_estimate", "campaign", "mechanism").merge(
        means(speeds, "estimate", "campaign"), on="row", suffixes=("", "_of_speeds")
    )
    estimated = rows.loc[both["row"]].reset_index(drop=True)
    seconds, length = estimated["to_s"] - estimated["from_s"], length_m[estimated["link"]]
    estimated["count"] = both["scaled_estimate"] / length * both["estimate"] * seconds
    estimated["speed_mps"] = both["estimate"]
    estimated["source"] = both["mechanism"].astype("str")
    estimated["campaign"] = both["campaign"].astype("str") + ", " + both["campaign_of_speeds"].astype("str")
    lacking = len(rows) - both["row"].nunique()
    text = f"counts: {lacking:,} of {len(rows):,} measured values have no estimate beside them: no speed was published"
    notes = [Note("not_compared", f"{text} for their link, or both directions are one cell", where="counts")]
    return estimated, notes if lacking else []

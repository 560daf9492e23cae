"""Tables of a run as frames: figures of all vehicles, moments as text, and what pages and plots select."""

from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from scenarios.kinds import names_of
from scenarios.run_clock import RunClock
from simulator.results.mean_intervals import t_quantile
from simulator.results.schema import TABLES

RECEIVED = names_of("attack", "guess")
"""Attacks on what the members of a coalition received, by which coalitions of different sizes are compared."""
SCALED = ("estimate", "std_error", "lower", "upper")
"""Columns of `estimates.parquet` that have a scaled one beside them."""
SCALED_SCORES = ("mae", "rmse", "bias", "max_error", "coverage", "theory_rmse")
"""Columns of `scores.parquet` that have a scaled one beside them."""


def is_partial(scores: pd.DataFrame) -> bool:
    """Return whether fewer than all vehicles take part, or are assumed to, in a run with these `scores`.

    Scores of earlier versions do not state it: they are for the devices asked.
    """
    stated = [name for name in ("participation", "assumed_participation") if name in scores]
    return bool((scores[stated] != 1.0).any(axis=None))


def of_all_vehicles(table: pd.DataFrame) -> pd.DataFrame:
    """Return `estimates` or `scores` with figures of all vehicles in place of figures of the devices asked.

    Rows without them, the rows of speeds, stay as they are: who takes part does not change a mean speed on average.
    """
    if "scaled_rmse" in table:
        counts, pairs = table["scaled_rmse"].notna(), {name: f"scaled_{name}" for name in SCALED_SCORES}
    else:
        counts = table["scaled_estimate"].notna()
        pairs = {"truth": "vehicles", **{name: f"scaled_{name}" for name in SCALED}}
    return table.assign(**{name: table[scaled].where(counts, table[name]) for name, scaled in pairs.items()})


def with_times(table: pd.DataFrame, clock: RunClock) -> pd.DataFrame:
    """Return a table with the column `time` beside `time_s`, as text (`RunClock.text`)."""
    # A clock without a start writes whole seconds: 1,800 texts for the 247,000 moments of `manhattan`'s entries.
    shown = table["time_s"] if clock.start else table["time_s"].round()
    of_rows, moments = pd.factorize(shown.to_numpy(), use_na_sentinel=False)
    texts = pd.Series([clock.text(moment) for moment in moments.tolist()], dtype="str").array
    timed, place = table.copy(deep=False), [*table].index("time_s") + 1
    timed.insert(place, "time", pd.Series(texts.take(of_rows), index=table.index))
    return timed


def mean_asked(rounds: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the mean number of devices asked per query, by campaign and mechanism."""
    keys = ["campaign", "mechanism"]
    asked = rounds[rounds["asked"] > 0]  # of a budget, some questions are not asked
    by_query = asked.groupby([*keys, "query"], sort=False, observed=True)["asked"].max().reset_index()
    means = by_query.groupby(keys, sort=False, observed=True)["asked"].mean().reset_index()
    names = zip(means["campaign"].astype(str), means["mechanism"].astype(str), strict=True)
    return dict(zip(names, means["asked"].astype(float), strict=True))


def findings(attacks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `attacks.parquet` with texts that are empty if null, and float64 that is NaN if null."""
    columns = TABLES["attacks"].columns
    texts = [column.name for column in columns if not column.is_number]
    numbers = [column.name for column in columns if column.is_number]
    frame = attacks.reset_index(drop=True)
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), "")
    frame[numbers] = frame[numbers].apply(pd.to_numeric, errors="coerce").astype("float64")
    return frame


def error_intervals(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the 95 % interval of each root mean square error, `low` and `high`, by `campaign` and `mechanism`.

    They are the roots of the ends of a t-interval of the queries' mean square errors, which assumes that errors of
    different queries are independent; NaN for a single query.
    """
    squares = (estimates["estimate"] - estimates["truth"]).pow(2)
    keys = [estimates[name] for name in ("campaign", "mechanism", "query")]
    of_queries = squares.groupby(keys, sort=False, observed=True).mean().dropna()
    groups = of_queries.groupby(level=["campaign", "mechanism"], sort=False, observed=True)
    mean, count = groups.mean(), groups.size()
    half = t_quantile(count) * groups.std(ddof=1) / np.sqrt(count)
    ends = {"low": np.sqrt((mean - half).clip(lower=0.0)), "high": np.sqrt(mean + half)}
    return pd.DataFrame(ends).reset_index()


def guesses(attacks: pd.DataFrame, mechanisms: Iterable[str]) -> pd.DataFrame:
    """Return the findings about `mechanisms` of coalitions that guessed cells from what they received.

    `better` is whether a gain is significant among all of them.
    """
    rows = findings(attacks)
    rows = rows[rows["attack"].isin(RECEIVED) & (rows["metric"] == "") & rows["mechanism"].isin([*mechanisms])]
    rows = rows.dropna(subset=["success", "gain", "gain_low"])
    # Each interval is of 95 %; with many coalitions some would exclude 0 by chance.
    wider = NormalDist().inv_cdf(1.0 - 0.025 / max(1, len(rows))) / NormalDist().inv_cdf(0.975)
    return rows.assign(better=rows["gain"] > wider * (rows["gain"] - rows["gain_low"]))


def relative_errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the error of each decile of cells by occupancy.

    Parameters
    ----------
    estimates
        Estimates of a run, of campaigns that count vehicles.

    Returns
    -------
    pandas.DataFrame
        One row per campaign, mechanism and decile: `decile`, 1 for the emptiest tenth of the cells by their mean truth
        over the queries, fewer than ten where there are fewer cells; `cells`, their number; `occupancy`, their mean
        truth, and `rms_occupancy`, its root mean square over cells and queries; `rmse`, in vehicles; `relative_error`,
        `rmse` / `occupancy`, null for empty cells.
    """
    tables = [pd.DataFrame()]
    for place, group in estimates.groupby(["campaign", "mechanism"], sort=False, observed=True):
        truth = group.groupby("cell")["truth"].mean()
        rank = truth.rank(method="first").astype(int) - 1
        decile = rank * min(10, len(truth)) // len(truth) + 1
        squares = pd.DataFrame({"error": group["estimate"] - group["truth"], "truth": group["truth"]}).pow(2)
        means = squares.groupby(group["cell"].map(decile)).mean()
        made = truth.groupby(decile).agg(cells="size", occupancy="mean").rename_axis("decile").reset_index()
        made["rms_occupancy"] = np.sqrt(means["truth"].to_numpy())
        made["rmse"] = np.sqrt(means["error"].to_numpy())
        made["relative_error"] = made["rmse"] / made["occupancy"].where(made["occupancy"] != 0)
        campaign, mechanism = map(str, place)
        made.insert(0, "campaign", campaign)
        made.insert(1, "mechanism", mechanism)
        tables.append(made)
    return pd.concat(tables, ignore_index=True)


def records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a frame by column, with None for each missing value."""
    rows = frame.to_dict("records")
    return [{name: None if pd.isna(value) else value for name, value in row.items()} for row in rows]


def stays_on_links(entries: pd.DataFrame) -> pd.DataFrame:
    """Return the entries into links of the table `entries`, with `leave_s`, NaN for a vehicle that is still there."""
    rows = entries[entries["event"] != "departure"]
    follows = rows["vehicle"].eq(rows["vehicle"].shift(-1))
    return rows.assign(leave_s=rows["time_s"].shift(-1).where(follows))[rows["event"] == "entry"]


SIMULATED = "simulated"
"""Source of the counts of the run itself, in the table `counts`."""


def geh(flow_vph: "pd.Series[float]", measured_vph: "pd.Series[float]") -> "pd.Series[float]":
    """Return GEH, √(2 (m − c)² / (m + c)) of hourly flows; 0 where both are 0. Negative flows count as zero."""
    flow_vph = flow_vph.clip(lower=0.0)
    total = flow_vph + measured_vph
    return (2.0 * (flow_vph - measured_vph) ** 2 / total.where(total != 0.0, 1.0)) ** 0.5


def count_fit(counts: pd.DataFrame) -> pd.DataFrame:
    """Return how the counts and speeds of each source agree with those measured and, of estimates, those simulated.

    Parameters
    ----------
    counts
        The table `counts` of a run.

    Returns
    -------
    DataFrame
        `source`, `campaign` and `against`, ``measured`` or ``simulated``; of hourly flows their number `flows`, the
        share `geh_below_5`, `flow_rmse` and `flow_bias`, vehicles/h, `flow_rmse_percent` of the mean, and
        `flow_correlation` (Pearson's); of speeds likewise `speeds`, `speed_rmse` and `speed_bias`, m/s,
        `speed_rmse_percent` and `speed_correlation`. NaN where not defined.
    """
    keys, rows = ["place", "link", "from_s", "to_s"], []
    true = counts[counts["source"] == SIMULATED].set_index(keys)
    for (source, campaign), part in counts.groupby(["source", "campaign"], sort=False, observed=True):
        others = {"measured": part[["measured_count", "measured_speed_mps"]]}
        if source != SIMULATED:
            others[SIMULATED] = true.loc[pd.MultiIndex.from_frame(part[keys]), ["count", "speed_mps"]]
        hours = (part["to_s"] - part["from_s"]).to_numpy() / 3600.0
        for against, other in others.items():
            flows = _pairs(part["count"] / hours, other.iloc[:, 0].to_numpy() / hours)
            speeds = _pairs(part["speed_mps"], other.iloc[:, 1].to_numpy())
            row = {"source": source, "campaign": campaign, "against": against}
            row["geh_below_5"] = (geh(flows["ours"], flows["other"]) < 5.0).mean()
            rows.append(row | _agreement(flows, "flow") | _agreement(speeds, "speed"))
    return pd.DataFrame(rows)


def _pairs(ours: "pd.Series[float]", other: Any) -> pd.DataFrame:
    return pd.DataFrame({"ours": ours, "other": other}).dropna()


def _agreement(pairs: pd.DataFrame, what: str) -> dict[str, float]:
    error = pairs["ours"] - pairs["other"]
    rmse, varied = float(np.sqrt((error**2).mean())), len(pairs) > 1 and bool((pairs.std() > 0.0).all())
    return {
        f"{what}s": len(pairs),
        f"{what}_rmse": rmse,
        f"{what}_rmse_percent": 100.0 * rmse / pairs["other"].mean() if pairs["other"].any() else np.nan,
        f"{what}_bias": error.mean(),
        f"{what}_correlation": pairs["ours"].corr(pairs["other"]) if varied else np.nan,
    }

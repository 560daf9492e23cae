"""Statistics of a finished study: means over replicates with intervals, paired differences, and leaks by view."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import NamedTuple

import numpy as np
import pandas as pd

import scenarios
from mechanisms.privacy.claim import Claim
from scenarios.overrides import EVERY
from simulator.results.claims import claims_in
from simulator.results.formatting import claimed, parameter, real
from simulator.results.mean_intervals import error_interval, share_interval, t_quantile
from simulator.results.names import mechanism_label
from simulator.results.tables import is_partial, of_all_vehicles
from simulator.studies.store import SCENARIO, Study


class ScoreColumn(NamedTuple):
    """A score of `scores.parquet`: its column, its title, its unit and its format in a report.

    ``statistic`` means the unit of the campaign's statistic; empty for none.
    """

    column: str
    title: str
    unit: str
    format: str = "number"


SHOWN = tomllib.loads(resources.files("simulator.studies").joinpath("tables.toml").read_text(encoding="utf-8"))
"""Captions of tables, titles and formats of their columns, and units of scores, on pages."""
SCORES = tuple(
    ScoreColumn(name, SHOWN["titles"][name], unit, SHOWN["formats"].get(name, "number"))
    for name, unit in SHOWN["scores"].items()
)
SHARES = {name for name, format_name in SHOWN["formats"].items() if format_name == "percent"}
"""Columns whose values are between 0 and 1."""
ERRORS = {"rmse", "mae", "rmse_over_mean"}
"""Columns whose values are not negative, and may be larger than 1."""
THEORY = "theory_rmse"
"""Column with the mechanism's own standard error."""
TOGETHER = " / "
"""Between key paths, titles and values of factors that move together."""
HALF, LOW, HIGH = "_half", "_low", "_high"
"""Suffixes of the columns with the larger distance from a mean to an end of its interval, and with the two ends."""

PLACE = ("campaign", "mechanism")
FINDING = ("campaign", "mechanism", "name", "coalition", "metric")


def joined(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of all runs with `replicate` and the factors; values that are no numbers become text."""
    design = study.points[["key", "replicate", *study.factors]].copy()
    for name in study.factors:
        if not is_numeric(design[name]):
            design[name] = design[name].map(str).astype("str")
    kept = [name for name in table if name == "key" or name not in {"point", "setting", "seed", *design}]
    return design.merge(table[kept], on="key") if "key" in table else design.iloc[:0]


def along_axes(study: Study) -> Study:
    """Return a study whose factors that move together are one factor.

    Values that are always equal are the values of ``mechanisms.*.epsilon``, if the paths differ in the name of an item.
    Others are joined to one text, ``0.1 / 50``. Numbers drawn at random, neither rising nor falling together, stay
    apart, as do factors of which every combination was run.
    """
    points, groups = study.points.copy(), list[list[str]]()
    for name in study.factors:
        group = next((group for group in groups if _move_together(points[[*group, name]])), None)
        groups.append([name]) if group is None else group.append(name)
    axes = []
    for group in groups:
        first, *others = (points[name] for name in group)
        equal = all(first.tolist() == other.tolist() for other in others)
        ends = {(path.partition(".")[0], path.rpartition(".")[2]) for path in group}
        axes.append(f".{EVERY}.".join(*ends) if equal and others and len(ends) == 1 else TOGETHER.join(group))
        texts = points[group].map(value_text).agg(TOGETHER.join, axis=1) if len(points) else first
        points[axes[-1]] = first if equal else texts
    return replace(study, factors=tuple(axes), points=points)


def _move_together(values: pd.DataFrame) -> bool:
    """Return whether columns take no more combinations of values than the column that varies most, in one order."""
    several, pairs = values.nunique(), values.drop_duplicates().sort_values(values.columns[0])
    ordered = [pairs[name] for name in values if is_numeric(values[name])]
    one_way = all(each.is_monotonic_increasing or each.is_monotonic_decreasing for each in ordered)
    return bool(several.min() > 1 and len(pairs) == several.max() and one_way)


def value_text(value: object) -> str:
    """Return a value of a factor as text: numbers as parameters are written."""
    known = real(value)
    return str(value) if known is None or isinstance(value, bool | np.bool_) else parameter(known)


def is_numeric(values: pd.Series) -> bool:
    """Return whether a factor's values are numbers, and not truth values."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def means(table: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the means over replicates with 95 % intervals.

    Intervals of `ERRORS` are made by `error_interval`, and intervals of `SHARES` by `share_interval`: no end is below
    0. All others are t-intervals.

    Parameters
    ----------
    table
        One row per replicate and group.
    keys
        Columns that name a group; nulls are a value.
    columns
        Columns with numbers; nulls are left out.

    Returns
    -------
    pandas.DataFrame
        One row per group: its keys; each column's mean, and under its name with `HALF` half the width of the interval,
        or the larger distance of its ends from the mean, NaN for fewer than two values, or `FEWEST_SHARES`; of errors
        and shares the ends with `LOW` and `HIGH`; `n`, the largest number of values of a column.
    """
    groups = table.groupby(list(keys), sort=False, dropna=False, observed=True)
    grouped = groups[list(columns)]
    mean, spread, count = grouped.mean(), grouped.std(ddof=1), grouped.count()
    half: pd.DataFrame = spread * t_quantile(count.to_numpy()) / np.sqrt(np.maximum(count.to_numpy(), 1))
    made = pd.DataFrame(index=mean.index)
    for name in columns:
        made[name], made[f"{name}{HALF}"] = mean[name], half[name]
        if name in ERRORS:
            lower, upper = error_interval(mean[name], spread[name], count[name])
        elif name in SHARES:
            lower, upper = np.array([share_interval(own.dropna().to_numpy(np.float64)) for _, own in groups[name]]).T
        else:
            continue
        made[f"{name}{LOW}"], made[f"{name}{HIGH}"] = lower, upper
        made[f"{name}{HALF}"] = np.maximum(mean[name] - lower, upper - mean[name])
    return made.assign(n=count.max(axis=1)).reset_index()


def leading_scores(study: Study) -> pd.DataFrame:
    """Return the scores of all runs as of `joined`; of all vehicles if fewer than all take part in any of the runs."""
    scores = joined(study, study.scores)
    return of_all_vehicles(scores) if is_partial(scores) else scores


def settings_table(study: Study) -> pd.DataFrame:
    """Return the means of all scores: one row per setting, campaign and mechanism, with `statistic`."""
    scores = leading_scores(study)
    columns = [name for name in (*(score.column for score in SCORES), THEORY) if name in scores]
    if not len(scores):
        return pd.DataFrame(columns=[*study.factors, *PLACE, "statistic", "n"])
    made = means(scores, [*study.factors, *PLACE, "statistic"], columns)
    return made.drop(columns=f"{THEORY}{HALF}", errors="ignore")


def attacks_table(study: Study) -> pd.DataFrame:
    """Return the mean success of attacks, and of guesses without them (`prior`).

    One row per setting, campaign, mechanism, attack, coalition and metric.
    """
    attacks = joined(study, study.attacks)
    if "success" not in attacks or not attacks["success"].notna().any():
        return pd.DataFrame(columns=[*study.factors, *FINDING, "success", "prior", "n"])
    return means(attacks[attacks["success"].notna()], [*study.factors, *FINDING], ["success", "prior"])


def differences_table(study: Study) -> pd.DataFrame:
    """Return the differences of RMSE from the study's first setting, paired by replicate.

    Replicates of one number have the same seed, so that what settings have in common does not widen the interval.

    Returns
    -------
    pandas.DataFrame
        One row per other setting, campaign and mechanism: `difference`, `difference_half` and `n` as in `means`.
    """
    scores = leading_scores(study)
    keys = [*study.factors, *PLACE]
    if not len(scores) or not study.factors:
        return pd.DataFrame(columns=[*keys, "difference", f"difference{HALF}", "n"])
    factors = list(study.factors)
    is_first = (scores[factors] == scores[factors].iloc[0]).all(axis=1)
    first = scores.loc[is_first, ["replicate", *PLACE, "rmse"]]
    paired = scores[~is_first].merge(first, on=["replicate", *PLACE], suffixes=("", "_first"))
    return means(paired.assign(difference=paired["rmse"] - paired["rmse_first"]), keys, ["difference"])


def leaks_table(study: Study) -> pd.DataFrame:
    """Return what each view leaks: one row per setting, campaign, mechanism and view.

    Of each view the claims for the fewest queries are taken, for devices that move where there are such claims, and of
    all replicates and crowds the largest ε and δ.

    Returns
    -------
    pandas.DataFrame
        `campaign` (null for all campaigns without a budget), `mechanism`, `view`, `colluding`, `servers`; `queries`,
        which the view sees together; `epsilon` at `at_delta`, which is 0; `delta` at the ε in `at_epsilon`, 1 or else
        the smallest ε listed. NaN where a claim is unknown.
    """
    claims = joined(study, study.claims)
    if "campaigns" in claims:  # earlier versions make no claims about all campaigns together
        claims = claims[claims["campaigns"].isna()]
    keys = [*study.factors, *PLACE, "view", "colluding", "servers"]
    columns = [*keys, "queries", "epsilon", "at_delta", "delta", "at_epsilon"]
    if not len(claims):
        return pd.DataFrame(columns=columns)
    rows = []
    for _, group in claims.groupby("view", sort=False):
        of_view = group[group["queries"] == group["queries"].min()]
        moves = of_view["adjacency"] == "move"
        of_view = of_view[moves] if moves.any() else of_view
        grouped = of_view.groupby(keys, sort=False, dropna=False, observed=True)
        made = {key: claims_in(rows_of) for key, rows_of in grouped}
        every = [claim for of_key in made.values() for claim in of_key]
        listed = Counter(epsilon for claim in every for epsilon in {claim.epsilon, *dict(claim.points)})
        runs = of_view["key"].nunique()
        shared = [epsilon for epsilon, number in listed.items() if number >= runs and 0.0 < epsilon < np.inf]
        at_epsilon = 1.0 if 1.0 in shared else min(shared, default=np.nan)  # not one mechanism's own ε
        for key, of_key in made.items():
            weakest = Claim.weakest(of_key)
            known = weakest.kind != "unknown"
            epsilon = weakest.epsilon if known else np.nan
            delta = weakest.delta(at_epsilon) if known and shared else np.nan
            rows.append([*key, of_view["queries"].iloc[0], epsilon, 0.0, delta, at_epsilon])
    return pd.DataFrame(rows, columns=columns)


def leaks_of(leaks: pd.DataFrame, campaign: str) -> pd.DataFrame:
    """Return the rows of `leaks_table` that are for a campaign: its own, or else the rows of all campaigns."""
    named = leaks["campaign"].astype("object")
    return leaks[named == campaign] if (named == campaign).any() else leaks[named.isna()]


def stated_leaks(rows: pd.DataFrame, leaks: pd.DataFrame | None, factors: Sequence[str]) -> pd.DataFrame:
    """Return what is claimed of each row's mechanism in its setting: a row of `leaks_table`, and it in words, `words`.

    It is the claim for linked reports, or where there is none, for the view that leaks most; of what is unknown ε is
    null, and the words are empty.

    Parameters
    ----------
    rows
        Rows of `settings_table` of one campaign; a refined estimate has the privacy of its mechanism.
    leaks
        `leaks_table`; None if the study has no claims.
    """
    if leaks is None or not len(rows):
        return pd.DataFrame({"epsilon": np.nan, "words": ""}, index=rows.index)
    keys, mine = [*factors, "mechanism"], leaks_of(leaks, str(rows["campaign"].iloc[0]))
    ranked = mine.assign(further=mine["view"] != "linked_reports", unknown=mine["epsilon"].notna())
    ranked = ranked.sort_values(
        ["further", "unknown", "epsilon", "delta"], ascending=[True, True, False, False], kind="stable"
    ).drop_duplicates(keys)
    named = rows[list(factors)].assign(mechanism=rows["mechanism"].astype(str).str.partition("+")[0])
    found = named.merge(ranked.assign(words=ranked.apply(_privacy_words, axis=1)), on=keys, how="left")
    return found.fillna({"words": ""}).set_index(rows.index)


def _privacy_words(leak: pd.Series) -> str:
    if np.isnan(leak["epsilon"]):
        return ""
    finite = np.isfinite(leak["epsilon"])
    text = f"ε = {claimed(leak['epsilon'])}" if finite else "no finite ε"
    if not finite and np.isfinite(leak["delta"]):
        text += f" (δ = {claimed(leak['delta'])} at ε = {claimed(leak['at_epsilon'])})"
    seen = str(leak["view"]).replace("_", " ")
    together = "one query" if leak["queries"] == 1 else f"{leak['queries']:.0f} queries"
    return f"{text} for {seen} of {together}"


def tables_of(study: Study) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name; those without rows are left out."""
    study = along_axes(study)
    tables = {
        "settings": settings_table(study),
        "differences": differences_table(study),
        "leaks": leaks_table(study),
        "attacks": attacks_table(study),
        "failures": study.failures,
    }
    return {name: table for name, table in tables.items() if len(table)}


def with_titles(study: Study, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables of a study with titles of mechanisms for names, if its scenario is kept and no kind was varied."""
    file, kinds = study.path / SCENARIO, dict[str, str]()
    if file.is_file() and not any(name.endswith(".kind") for name in study.factors):
        kinds = {each.name: each.kind for each in scenarios.load(file, files_exist=False).mechanisms}
    labels = {name: mechanism_label(name, kinds) for name in dict.fromkeys(study.scores.get("mechanism", ()))}
    return {name: table.replace({"mechanism": labels}) for name, table in tables.items()}

"""Charts of studies: scores over what was varied, maps over two factors, errors against leaks, attacks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from simulator.charts import Axis, Chart, Series
from simulator.charts.page import Drawn, Page
from simulator.charts.spec import Mark, names_axis
from simulator.charts.styles import PLAIN, styles_of
from simulator.results.formatting import claimed, parameter, real
from simulator.results.names import statistic_of
from simulator.studies.summary import HALF, SCORES, Score, front, is_numeric, leaks_of

MOST_PANELS = 12
"""Largest number of small multiples of one score; of more combinations as many are drawn, evenly spread."""
_LOG_SPAN = 100.0
"""Ratio of the largest and the smallest value of a factor, or of a leak, from which on an axis is logarithmic."""
_LOG_ERRORS = 20.0
"""The same for errors."""
_AIR = 1.25
"""Ratio of the ends of a logarithmic axis to the values beside them."""


def value_text(value: object) -> str:
    """Return a value of a factor as text: numbers as parameters are written."""
    known = real(value)
    return str(value) if known is None or isinstance(value, bool | np.bool_) else parameter(known)


def ordered_values(values: pd.Series) -> list[Any]:
    """Return the distinct values: numbers in ascending order, others in that of the design."""
    found = values.dropna().unique().tolist()
    return sorted(found) if is_numeric(values) else list(dict.fromkeys(map(str, found)))


def setting_words(row: pd.Series, factors: Sequence[str], titles: Mapping[str, str]) -> str:
    """Return the values of the factors of a row in words; empty where nothing was varied."""
    return ", ".join(f"{titles[name]} = {value_text(row[name])}" for name in factors)


def _panels(own: pd.DataFrame, factors: Sequence[str], titles: Mapping[str, str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each combination of factors, with its values in words; all rows without factors."""
    if not factors:
        yield "", own
        return
    groups = list(own.groupby(list(factors), sort=True, dropna=False, observed=True))
    chosen = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), MOST_PANELS)).round().astype(int))
    for index in chosen:
        yield setting_words(groups[index][1].iloc[0], factors, titles), groups[index][1]


def score_charts(
    page: Page, own: pd.DataFrame, factors: Sequence[str], titles: Mapping[str, str]
) -> list[tuple[str, list[Drawn]]]:
    """Draw each score against each factor, one panel per combination of the other factors."""
    unit = statistic_of(str(own["statistic"].iloc[0])).unit
    drawn = []
    for score in SCORES:
        if score.column not in own or not own[score.column].notna().any():
            continue
        made = _curves(
            page, own, score._replace(unit=unit if score.unit is None else score.unit), "mechanism", factors, titles
        )
        if made:
            drawn.append((score.title, made))
    return drawn


def _curves(
    page: Page, own: pd.DataFrame, score: Score, line: str, factors: Sequence[str], titles: Mapping[str, str]
) -> list[Drawn]:
    """Draw a column against each factor that varies, a line per value of the column `line`."""
    styles = styles_of(map(str, own[line]))
    drawn = []
    for factor in factors:
        if own[factor].nunique() < 2:
            continue
        x_axis, place = _factor_axis(own[factor], titles[factor])
        others = [name for name in factors if name != factor and own[name].nunique() > 1]
        mean, half = own[score.column].dropna(), own[f"{score.column}{HALF}"].fillna(0.0)
        words = f"{score.title}, {score.unit}" if score.unit else score.title
        y_axis = _value_axis(words, mean, half[mean.index], share=score.format == "percent")
        # Settings drawn at random have no two in common but for one factor: points without lines, in one panel.
        crossed = not others or own.groupby(others, dropna=False, observed=True)[factor].nunique().max() > 1
        mark: Mark = "linked" if crossed else "points"
        for label, rows in _panels(own, others, titles) if crossed else [("all settings", own)]:
            series = []
            for name, style in styles.items():
                mine = rows[rows[line].astype(str) == name]
                mine = mine.assign(place=[place(value) for value in mine[factor]]).sort_values("place", kind="stable")
                value, reach = (mine[column].to_numpy(dtype=float) for column in (score.column, score.column + HALF))
                if len(mine):
                    x, ends = mine["place"].to_numpy(), (value - reach, value + reach)
                    series.append(Series(name, x, value, mark, style, *ends))
            caption = f"{score.title} against {titles[factor]}{f': {label}' if label else ''}"
            about = f"{caption}; mean over replicates with 95 % intervals."
            chart = Chart(series, x_axis, y_axis, caption, about, height=340 + 20 * (len(series) // 3))
            drawn.append(page.add("curve", chart))
    return drawn


def _factor_axis(values: pd.Series, title: str) -> tuple[Axis, Any]:
    """Return the axis of a factor, and the function that places a value on it.

    Numbers that span more than two decades have a logarithmic axis, or where it cannot show them, equal distances, as
    values that are no numbers have.
    """
    ordered = ordered_values(values)
    wide = is_numeric(values) and max(map(abs, ordered)) >= _LOG_SPAN * min(abs(one) for one in ordered if one)
    if is_numeric(values) and (not wide or ordered[0] > 0):
        return Axis(title, log=wide), float
    return names_axis(title, [value_text(value) for value in ordered]), (
        lambda value: ordered.index(value if is_numeric(values) else str(value))
    )


def _value_axis(title: str, mean: pd.Series, half: pd.Series | float = 0.0, *, share: bool = False) -> Axis:
    """Return the axis of a score, the same in all panels; logarithmic for errors of different orders of magnitude."""
    low, high = mean - half, mean + half
    positive = mean[mean > 0]
    if not share and mean.min() >= 0 and len(positive) and positive.max() > _LOG_ERRORS * positive.min():
        # An interval that reaches 0 is cut off: it would hide the means.
        bottom = max(float(low[low > 0].min()), float(positive.min()) / 4.0)
        return Axis(title, log=True, ends=(bottom / _AIR, float(high.max()) * _AIR))
    bottom, top = float(min(0.0, low.min()) if low.min() < 0.6 * high.max() else low.min()), float(high.max())
    margin = 0.06 * ((top - bottom) or abs(top) or 1.0)
    return Axis(title, share=share, ends=(bottom - margin, top + margin))


def heat_maps(page: Page, own: pd.DataFrame, factors: Sequence[str], titles: Mapping[str, str]) -> list[Drawn]:
    """Draw RMSE over the first two numeric factors, one map per mechanism and combination of the other factors."""
    numeric = [name for name in factors if is_numeric(own[name]) and own[name].nunique() > 1]
    if len(numeric) < 2:
        return []
    across, up = numeric[:2]
    others = [name for name in factors if name not in {across, up} and own[name].nunique() > 1]
    unit = statistic_of(str(own["statistic"].iloc[0])).unit
    drawn = []
    for mechanism, mine in own.groupby("mechanism", sort=False):
        if not mine["rmse"].max() > 0:
            continue
        for label, rows in _panels(mine, others, titles):
            grid = (
                rows.pivot_table(index=up, columns=across, values="rmse", observed=True).sort_index().sort_index(axis=1)
            )
            if grid.size > 2 * grid.notna().to_numpy().sum():
                continue  # settings drawn at random
            up_place, across_place = np.nonzero(grid.notna().to_numpy())
            values = grid.to_numpy()[up_place, across_place]
            x, y = (
                names_axis(titles[name], [value_text(value) for value in shown])
                for name, shown in ((across, grid.columns), (up, grid.index))
            )
            caption = f"RMSE of {mechanism}{f': {label}' if label else ''}"
            cells = Series(f"RMSE, {unit}", across_place, up_place, "cells", values=values)
            drawn.append(page.add("heat", Chart([cells], x, y, caption, f"{caption}, as in the table of settings.")))
    return drawn


def fronts(
    page: Page, own: pd.DataFrame, leaks: pd.DataFrame | None, factors: Sequence[str], titles: Mapping[str, str]
) -> list[Drawn]:
    """Draw the error against what each view leaks: ε, and δ at a fixed ε where no finite ε holds for some settings."""
    if leaks is None:
        return []
    mine = leaks_of(leaks, str(own["campaign"].iloc[0]))
    both = (
        own[own["rmse"].notna()]
        .drop(columns="campaign")
        .merge(mine.drop(columns="campaign"), on=[*factors, "mechanism"])
    )
    unit, names = statistic_of(str(own["statistic"].iloc[0])).unit, list(dict.fromkeys(map(str, own["mechanism"])))
    drawn = []
    for (view, colluding, servers), rows in both.groupby(["view", "colluding", "servers"], sort=False, dropna=False):
        words = f"{view}".replace("_", " ")
        words += f", {colluding} of {servers} servers" if rows["colluding"].notna().all() else ""
        at_delta, at_epsilon = (claimed(float(rows[name].iloc[0])) for name in ("at_delta", "at_epsilon"))
        for column, title in (("epsilon", f"ε at δ = {at_delta}"), ("delta", f"δ at ε = {at_epsilon}")):
            known = rows[rows[column].notna()]
            # δ is of interest only where some settings have no finite ε.
            if known[column].nunique() < 2 or (column == "delta" and np.isfinite(rows["epsilon"]).all()):
                continue
            series, x = _front(known, column, title, names, factors, titles)
            caption = f"{words}: error against {title}"
            about = f"{caption}; filled points are beaten by no other in both."
            y = _value_axis(f"RMSE, {unit}", known["rmse"])
            drawn.append(page.add("front", Chart(series, x, y, caption, about, height=360)))
    return drawn


def _front(
    rows: pd.DataFrame,
    column: str,
    title: str,
    names: Sequence[str],
    factors: Sequence[str],
    titles: Mapping[str, str],
) -> tuple[list[Series], Axis]:
    """Return the points of each mechanism, hollow where another point beats them, with the line through the others."""
    rows = rows.assign(best=front(rows[column].tolist(), rows["rmse"].tolist())).reset_index(drop=True)
    leak, error = rows[column].to_numpy(dtype=float), rows["rmse"].to_numpy(dtype=float)
    finite = leak[np.isfinite(leak)]
    logarithmic = len(finite) > 0 and finite.min() > 0 and finite.max() >= _LOG_SPAN * finite.min()
    edge = (float(finite.max()) * (3.0 if logarithmic else 1.15) if len(finite) else 1.0) or 1.0
    at = np.where(np.isfinite(leak), leak, edge)
    series = []
    steps = [index for index in np.lexsort((error, at)) if rows["best"][index]]
    if len(steps) > 1:
        corners = [(at[steps[0]], error[steps[0]])]
        for one, other in pairwise(steps):
            corners += [(at[other], error[one]), (at[other], error[other])]
        dotted = PLAIN._replace(dash="dot")
        x, y = np.transpose(corners)
        series.append(Series("front", x, y, style=dotted, thin=True, legend=""))
    for name, style in styles_of(names).items():
        mine = rows["mechanism"].astype(str) == name
        # The legend shows a filled symbol, where a mechanism has any.
        for beaten, own in ((True, mine & ~rows["best"]), (False, mine & rows["best"])):
            settings = [setting_words(row, factors, titles) for _, row in rows[own].iterrows()]
            look = style._replace(hollow=beaten)
            if own.any():
                series.append(Series(name, at[own], error[own], "points", look, texts=settings))
    ticks = None
    if not np.isfinite(leak).all():
        most = float(finite.max(initial=0.0))
        powers = 10.0 ** np.arange(math.floor(math.log10(finite.min())), math.log10(most)) if logarithmic else ()
        finite_ticks = [*powers] if logarithmic else sorted({0.0, most / 2.0, most})
        ticks = {tick: parameter(tick) for tick in finite_ticks} | {edge: "∞"}
    ends = None if logarithmic or ticks is None else (-0.06 * edge, 1.06 * edge)
    return series, Axis(title, log=logarithmic, ticks=ticks, ends=ends)


def attack_charts(
    page: Page, attacks: pd.DataFrame | None, factors: Sequence[str], titles: Mapping[str, str]
) -> list[tuple[str, list[Drawn]]]:
    """Draw the success of each attack against each factor, a line per mechanism and coalition."""
    drawn = []
    score = Score("success", "Success", "share of targets", "percent")
    groups = () if attacks is None else attacks.groupby(["name", "campaign", "metric"], sort=False, dropna=False)
    for (name, campaign, metric), rows in groups:
        several = rows["coalition"].nunique() > 1
        line = rows["mechanism"] + (", " + rows["coalition"] if several else "")
        charts = _curves(page, rows.assign(line=line), score, "line", factors, titles)
        if charts:
            drawn.append((f"{name}, campaign {campaign}" + (f", {metric}" if isinstance(metric, str) else ""), charts))
    return drawn

"""Figures of studies: scores over what was varied, maps over two factors, errors against leaks, attacks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import escape

from simulator.reporting.figures import Drawn, Figure, Page, Style, axis, curve, log_axis, markers, plot, styles_of
from simulator.results.formatting import claimed, number, parameter, real
from simulator.results.names import statistic_of
from simulator.studies.summary import HALF, SCORES, Score, front, is_numeric, leaks_of
from simulator.studies.tables import interval_text

MOST_PANELS = 12
"""Largest number of small multiples of one figure; of more combinations as many are drawn, evenly spread."""
_LOG_SPAN = 100.0
"""Ratio of the largest and the smallest value of a factor, or of a leak, from which on an axis is logarithmic."""
_LOG_ERRORS = 20.0
"""The same for errors."""


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


def score_figures(
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
    names = list(dict.fromkeys(map(str, own[line])))
    styles = styles_of(names)
    figures = []
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
        for label, rows in _panels(own, others, titles) if crossed else [("all settings", own)]:
            traces = []
            for name in names:
                mine = rows[rows[line].astype(str) == name]
                mine = mine.assign(place=[place(value) for value in mine[factor]]).sort_values("place", kind="stable")
                if len(mine):
                    trace = _line(mine, score, name, styles[name], factor)
                    traces.append(trace if crossed else {**trace, "mode": "markers"})
            caption = f"{score.title} against {titles[factor]}{f': {label}' if label else ''}"
            figure = plot(traces, x_axis, y_axis, height=340 + 20 * (len(traces) // 3), legend=True)
            figures.append(page.add("curve", figure, caption, f"{caption}; mean over replicates with 95 % intervals."))
    return figures


def _line(mine: pd.DataFrame, score: Score, name: str, style: Style, factor: str) -> Figure:
    label = str(escape(name))
    half = mine[f"{score.column}{HALF}"]
    shown = [interval_text(*pair, score.format) for pair in zip(mine[score.column], half, strict=True)]
    trace = curve(mine["place"], mine[score.column], label, "%{text}", style.colour, dash=style.dash, extra=label)
    trace |= {"mode": "lines+markers", "marker": {"color": style.colour, "symbol": style.symbol, "size": 8}}
    trace["text"] = [f"{escape(value_text(value))}: {words}" for value, words in zip(mine[factor], shown, strict=True)]
    if half.notna().any():
        trace["error_y"] = {"type": "data", "array": half.fillna(0.0).tolist(), "thickness": 1.2, "width": 4}
    return trace


def _factor_axis(values: pd.Series, title: str) -> tuple[Figure, Any]:
    """Return the axis of a factor, and the function that places a value on it.

    Numbers that span more than two decades have a logarithmic axis, or where it cannot show them, equal distances, as
    values that are no numbers have.
    """
    ordered = ordered_values(values)
    wide = is_numeric(values) and max(map(abs, ordered)) >= _LOG_SPAN * min(abs(one) for one in ordered if one)
    if is_numeric(values) and not wide:
        return axis(str(escape(title))), float
    if is_numeric(values) and ordered[0] > 0:
        return _decades(str(escape(title)), ordered[0], ordered[-1]), float
    ticks: dict[str, Any] = {"tickvals": list(range(len(ordered)))}
    ticks["ticktext"] = [str(escape(value_text(value))) for value in ordered]
    return axis(str(escape(title)), range=[-0.4, len(ordered) - 0.6], **ticks), (
        lambda value: ordered.index(value if is_numeric(values) else str(value))
    )


def _decades(title: str, low: float, high: float, **options: object) -> Figure:
    """Return a logarithmic axis with at most some six ticks."""
    steps = max(1, math.ceil(math.log10(high / low) / 6))
    return {**log_axis(title, exponentformat="power", automargin=True, **options), "dtick": steps, "tickformat": ""}


def _value_axis(title: str, mean: pd.Series, half: pd.Series | float = 0.0, *, share: bool = False) -> Figure:
    """Return the axis of a score, the same in all panels; logarithmic for errors of different orders of magnitude."""
    low, high = mean - half, mean + half
    positive = mean[mean > 0]
    if not share and mean.min() >= 0 and len(positive) and positive.max() > _LOG_ERRORS * positive.min():
        # An interval that reaches 0 is cut off: it would hide the means.
        bottom = max(float(low[low > 0].min()), float(positive.min()) / 4.0)
        ends = [math.log10(bottom) - 0.1, math.log10(float(high.max())) + 0.1]
        return _decades(title, bottom, float(high.max()), range=ends)
    bottom, top = float(min(0.0, low.min()) if low.min() < 0.6 * high.max() else low.min()), float(high.max())
    margin = 0.06 * ((top - bottom) or abs(top) or 1.0)
    return axis(title, range=[bottom - margin, top + margin], automargin=True)


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
            texts = [
                [number(real(value)) if real(value) is not None else "" for value in row] for row in grid.to_numpy()
            ]
            words = f"{escape(titles[across])} %{{x}}, {escape(titles[up])} %{{y}}"
            trace: Figure = {
                "type": "heatmap",
                "x": [value_text(value) for value in grid.columns],
                "y": [value_text(value) for value in grid.index],
                "z": [[real(value) for value in row] for row in grid.to_numpy()],
                "text": texts,
                "texttemplate": "%{text}",
                "colorscale": [[0, "#f5f7f9"], [1, "#0b5c8a"]],
                "colorbar": {"title": {"text": unit}, "thickness": 12},
                "hovertemplate": f"{words}: %{{text}}<extra></extra>",
            }
            x, y = (axis(str(escape(titles[name])), type="category") for name in (across, up))
            y["automargin"] = True
            caption = f"RMSE of {mechanism}{f': {label}' if label else ''}"
            drawn.append(
                page.add("heat", plot([trace], x, y, right=4), caption, f"{caption}, as in the table of settings.")
            )
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
            figure = _front(known, column, title, names, f"RMSE, {unit}", factors, titles)
            caption = f"{words}: error against {title}"
            drawn.append(
                page.add("front", figure, caption, f"{caption}; filled points are beaten by no other in both.")
            )
    return drawn


def _front(
    rows: pd.DataFrame,
    column: str,
    title: str,
    names: Sequence[str],
    error_title: str,
    factors: Sequence[str],
    titles: Mapping[str, str],
) -> Figure:
    chosen = front(rows[column].tolist(), rows["rmse"].tolist())
    # The legend shows a mechanism's first symbol: a filled one, where it has any.
    rows = rows.assign(best=chosen).sort_values("best", ascending=False, kind="stable").reset_index(drop=True)
    leak, best = rows[column].to_numpy(dtype=float), rows["best"].to_numpy()
    finite = leak[np.isfinite(leak)]
    logarithmic = len(finite) > 0 and finite.min() > 0 and finite.max() >= _LOG_SPAN * finite.min()
    edge = (float(finite.max()) * (3.0 if logarithmic else 1.15) if len(finite) else 1.0) or 1.0
    at = np.where(np.isfinite(leak), leak, edge)
    traces = []
    order = np.lexsort((rows["rmse"], at))
    steps = [index for index in order if best[index]]
    if len(steps) > 1:
        corners = [(at[steps[0]], rows["rmse"].iloc[steps[0]])]
        for one, other in pairwise(steps):
            corners += [(at[other], rows["rmse"].iloc[one]), (at[other], rows["rmse"].iloc[other])]
        x, y = zip(*corners, strict=True)
        traces.append({**curve(x, y, "front", None, width=1, dash="dot"), "showlegend": False})
    for name, style in styles_of(names).items():
        mine = (rows["mechanism"].astype(str) == name).to_numpy()
        line = {"color": style.colour, "width": 1.5}
        symbols = [style.symbol if one else f"{style.symbol}-open" for one in best[mine]]
        trace = markers(
            at[mine], rows["rmse"][mine], str(escape(name)), "%{text}", style.colour, size=10, symbol=symbols, line=line
        )
        trace["text"] = [
            f"{escape(name)}<br>{escape(setting_words(row, factors, titles))}<br>{title[0]} = {claimed(row[column])}"
            f", RMSE {interval_text(row['rmse'], row[f'rmse{HALF}'])}"
            for _, row in rows[mine].iterrows()
        ]
        traces.append(trace)
    x_axis = _decades(title, float(finite.min()), edge) if logarithmic else axis(title)
    if not np.isfinite(leak).all():
        most = float(finite.max(initial=0.0))
        powers = 10.0 ** np.arange(math.floor(math.log10(finite.min())), math.log10(most)) if logarithmic else ()
        ticks = [*powers] if logarithmic else sorted({0.0, most / 2.0, most})
        x_axis |= {"tickvals": [*ticks, edge], "ticktext": [*map(parameter, ticks), "∞"]}
        x_axis |= {} if logarithmic else {"range": [-0.06 * edge, 1.06 * edge]}
    return plot(traces, x_axis, _value_axis(error_title, rows["rmse"]), height=360, legend=True)


def attack_figures(
    page: Page, attacks: pd.DataFrame | None, factors: Sequence[str], titles: Mapping[str, str]
) -> list[tuple[str, list[Drawn]]]:
    """Draw the success of each attack against each factor, a line per mechanism and coalition."""
    drawn = []
    score = Score("success", "Success", "share of targets", "percent")
    groups = () if attacks is None else attacks.groupby(["name", "campaign", "metric"], sort=False, dropna=False)
    for (name, campaign, metric), rows in groups:
        several = rows["coalition"].nunique() > 1
        line = rows["mechanism"] + (", " + rows["coalition"] if several else "")
        figures = _curves(page, rows.assign(line=line), score, "line", factors, titles)
        if figures:
            drawn.append((f"{name}, campaign {campaign}" + (f", {metric}" if isinstance(metric, str) else ""), figures))
    return drawn

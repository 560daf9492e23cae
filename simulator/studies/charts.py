"""Charts of studies: scores over what was varied, errors against leaks, attacks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.spec import Mark, names_axis, open_axis, with_shared_ends
from simulator.pages.charts.styles import PLAIN, styles_of
from simulator.pages.document import PageGroup
from simulator.results.formatting import claimed
from simulator.results.names import statistic_of
from simulator.studies.summary import HALF, HIGH, LOW, SCORES, THEORY, ScoreColumn, is_numeric, leaks_of, value_text

MOST_PANELS = 12
"""Largest number of small multiples of one score; of more combinations as many are drawn, evenly spread."""
_LOG_SPAN = 20.0
"""Ratio of the largest and the smallest value of a factor from which on an axis is logarithmic."""
_LOG_ERRORS = 20.0
"""The same for errors."""


def ordered_values(values: pd.Series) -> list[Any]:
    """Return the distinct values: numbers in ascending order, others in the order of the design."""
    found = values.dropna().unique().tolist()
    return sorted(found) if is_numeric(values) else list(dict.fromkeys(map(str, found)))


def setting_words(row: pd.Series, titles: Mapping[str, str]) -> str:
    """Return the values of some factors, given with their titles, of a row in words; empty where nothing was varied."""
    return ", ".join(f"{title} = {value_text(row[name])}" for name, title in titles.items())


def acting(rows: pd.DataFrame, titles: Mapping[str, str], columns: Sequence[str] = ("rmse",)) -> dict[str, str]:
    """Return the factors on which some columns of a mechanism depend, or may depend, with their titles."""
    found = {}
    for name, title in titles.items():
        others = [other for other in titles if other != name and rows[other].nunique() > 1]
        groups = [group for _, group in rows.groupby(others, dropna=False, observed=True)] if others else [rows]
        crossed = [group for group in groups if group[name].nunique() > 1]
        differ = any(group[column].nunique() > 1 for group in crossed for column in columns)
        if rows[name].nunique() > 1 and (differ or not crossed):
            found[name] = title
    return found


def _panels(own: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each combination of some factors, with its values in words; all rows without factors."""
    if not titles:
        yield "", own
        return
    groups = list(own.groupby(list(titles), sort=True, dropna=False, observed=True))
    chosen = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), MOST_PANELS)).round().astype(int))
    for index in chosen:
        yield setting_words(groups[index][1].iloc[0], titles), groups[index][1]


def score_charts(own: pd.DataFrame, titles: Mapping[str, str], heading: str = "") -> list[PageGroup]:
    """Draw each score against each factor, one panel per combination of the other factors; all but the first folded."""
    unit = statistic_of(str(own["statistic"].iloc[0])).unit
    drawn: list[PageGroup] = []
    for score in SCORES:
        if score.column not in own or not own[score.column].notna().any():
            continue
        stated = score._replace(unit=unit if score.unit == "statistic" else score.unit)
        if charts := _curves(own, stated, "mechanism", titles):
            drawn.append(PageGroup(score.title if drawn else heading, charts, folded=bool(drawn)))
    return drawn


def _curves(own: pd.DataFrame, score: ScoreColumn, line: str, titles: Mapping[str, str]) -> list[Chart]:
    """Draw a column against each factor that varies, a line per value of the column `line`."""
    styles = styles_of(map(str, own[line]))
    mean, reach = own[score.column], own[f"{score.column}{HALF}"]
    low, high = own.get(f"{score.column}{LOW}", mean - reach), own.get(f"{score.column}{HIGH}", mean + reach)
    own = own.assign(mean=mean, low=low, high=high)
    share = score.format == "percent"
    words = f"{score.title}, {score.unit}" if score.unit else score.title
    y = Axis(words, log=not share and _is_wide(mean), share=share)
    charts = []
    varied = {name: title for name, title in titles.items() if own[name].nunique() > 1}
    for factor, title in varied.items():
        x, places = _factor_axis(own[factor], title)
        placed = own.assign(place=places).sort_values("place", kind="stable")
        others = {name: varied[name] for name in varied if name != factor}
        # Settings drawn at random have no two in common but for one factor: points without lines, in one panel.
        crossed = not others or own.groupby(list(others), dropna=False, observed=True)[factor].nunique().max() > 1
        mark: Mark = "linked" if crossed else "points"
        for label, rows in _panels(placed, others) if crossed else [("all settings", placed)]:
            series, theory = list[Series](), list[Series]()
            for name, mine in rows.groupby(line, sort=False, observed=True):
                place, look = mine["place"], styles[str(name)]
                if y.log and not mine["mean"].max() > 0:
                    continue  # a logarithmic axis has no place for it
                if score.column == "rmse" and mark == "linked" and THEORY in mine and mine[THEORY].max() > 0:
                    of_line, look = f"{name}, theory", look._replace(dash="solid")
                    dashed = look._replace(dash="dash")
                    theory.append(Series(of_line, place, mine[THEORY], "line", dashed, thin=True, legend="theory"))
                series.append(Series(str(name), place, mine["mean"], mark, look, mine["low"], mine["high"]))
            caption = f"{score.title} against {title}{f': {label}' if label else ''}"
            about = f"{caption}; mean over replicates with 95 % intervals."
            charts.append(Chart(theory + series, x, y, caption, about, height=340 + 20 * (len(series) // 3)))
    return with_shared_ends(charts)


def _is_wide(errors: pd.Series) -> bool:
    """Whether errors are of different orders of magnitude, which a logarithmic axis shows."""
    positive = errors[errors > 0]
    return bool(errors.min() >= 0 and positive.max() > _LOG_ERRORS * positive.min())


def _factor_axis(values: pd.Series, title: str) -> tuple[Axis, pd.Series]:
    """Return the axis of a factor, and the place of each value on it.

    Numbers of which one is 20 times another have a logarithmic axis, or where it cannot show them, equal distances, as
    values that are no numbers have.
    """
    ordered = ordered_values(values)
    wide = is_numeric(values) and max(map(abs, ordered)) >= _LOG_SPAN * min(abs(one) for one in ordered if one)
    if is_numeric(values) and (not wide or ordered[0] > 0):
        return Axis(title, log=wide), values.astype(float)
    return _evenly(values, title)


def _evenly(values: pd.Series, title: str) -> tuple[Axis, pd.Series]:
    """Return an axis on which distinct values have equal distances, and the place of each value on it."""
    ordered = ordered_values(values)
    places = (values if is_numeric(values) else values.map(str)).map(ordered.index)
    return names_axis(title, [value_text(value) for value in ordered]), places


def error_against_leak(own: pd.DataFrame, leaks: pd.DataFrame | None, titles: Mapping[str, str]) -> list[Chart]:
    """Draw the error against what each view leaks: ε, and δ at a fixed ε where no finite ε holds for some settings."""
    if leaks is None:
        return []
    mine = leaks_of(leaks, str(own["campaign"].iloc[0]))
    known = own[own["rmse"].notna()].drop(columns="campaign")
    both = known.merge(mine.drop(columns="campaign"), on=[*titles, "mechanism"])
    unit, names = statistic_of(str(own["statistic"].iloc[0])).unit, list(dict.fromkeys(map(str, own["mechanism"])))
    drawn: dict[tuple[Any, ...], tuple[list[str], pd.DataFrame]] = {}  # views that leak the same share a chart
    for (view, colluding, servers), rows in both.groupby(["view", "colluding", "servers"], sort=False, dropna=False):
        words = f"{view}".replace("_", " ")
        words += f", {colluding} of {servers} servers" if rows["colluding"].notna().all() else ""
        at_delta, at_epsilon = (claimed(float(rows[name].iloc[0])) for name in ("at_delta", "at_epsilon"))
        for column, title in (("epsilon", f"ε at δ = {at_delta}"), ("delta", f"δ at ε = {at_epsilon}")):
            known = rows[rows[column].notna()]
            # δ is of interest only where some settings have no finite ε.
            if known[column].nunique() < 2 or (column == "delta" and np.isfinite(rows["epsilon"]).all()):
                continue
            key = (column, title, *known["mechanism"], *known[column])
            drawn.setdefault(key, ([], known))[0].append(words)
    charts = []
    for (column, leaked, *_), (views, rows) in drawn.items():
        y = Axis(f"RMSE, {unit}", log=_is_wide(rows["rmse"]))
        shown = rows[rows["rmse"] > 0] if y.log else rows  # a logarithmic axis has no place for 0
        series, x = _front(shown, str(column), str(leaked), names, titles)
        caption = f"{'; '.join(views)}: error against {leaked}"
        about = f"{caption}; filled points are beaten by no other in both."
        charts.append(Chart(series, x, y, caption, about, height=360))
    return charts


def _front(
    rows: pd.DataFrame, column: str, title: str, names: Sequence[str], titles: Mapping[str, str]
) -> tuple[list[Series], Axis]:
    """Return the points of each mechanism, hollow where another point beats them, with the line through the others."""
    x, places = open_axis(title, rows[column].tolist())
    best = front(rows[column].tolist(), rows["rmse"].tolist())
    rows = rows.assign(place=places, best=best).sort_values(["place", "rmse"], kind="stable")
    unbeaten = rows[rows["best"]]
    corners = np.repeat(unbeaten["place"], 2)[1:], np.repeat(unbeaten["rmse"], 2)[:-1]
    series = [Series("front", *corners, "line", PLAIN._replace(dash="dot"), thin=True, legend="")]
    for name, style in styles_of(names).items():
        # The legend shows a filled symbol, where a mechanism has any.
        for beaten in (True, False):
            own = rows[(rows["mechanism"].astype(str) == name) & (rows["best"] != beaten)]
            settings = [setting_words(row, titles) for _, row in own.iterrows()]
            look = style._replace(hollow=beaten)
            series += [Series(name, own["place"], own["rmse"], "points", look, texts=settings)] if len(own) else []
    return series, x


def attack_charts(attacks: pd.DataFrame | None, titles: Mapping[str, str]) -> list[PageGroup]:
    """Draw the success of each attack against each factor, a line per mechanism and coalition."""
    drawn: list[PageGroup] = []
    score = ScoreColumn("success", "Success", "share of targets", "percent")
    groups = () if attacks is None else attacks.groupby(["name", "campaign", "metric"], sort=False, dropna=False)
    for (name, campaign, metric), rows in groups:
        several = rows["coalition"].nunique() > 1
        line = rows["mechanism"] + (", " + rows["coalition"] if several else "")
        title = f"{name}, campaign {campaign}" + (f", {metric}" if isinstance(metric, str) else "")
        if charts := _curves(rows.assign(line=line), score, "line", titles):
            drawn.append(PageGroup(title, charts, folded=bool(drawn)))
    return drawn


def front(leak: Sequence[float], error: Sequence[float]) -> list[bool]:
    """Return which points no other point beats: none has less of one and at most as much of the other."""
    return [
        not any(
            (x <= leak[i] and y < error[i]) or (x < leak[i] and y <= error[i]) for x, y in zip(leak, error, strict=True)
        )
        for i in range(len(leak))
    ]


def by_campaign(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, pd.DataFrame]]:
    """Return the settings of each campaign, with a heading where there are several."""
    if "settings" not in tables:
        return []
    each = list(tables["settings"].groupby("campaign", sort=False, observed=True))
    return [(f"Campaign {name}" if len(each) > 1 else "", own.reset_index(drop=True)) for name, own in each]


def chart_groups(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> dict[str, list[PageGroup]]:
    """Return the charts of each section of the page; all but the first of a section are folded."""
    curves, fronts = list[PageGroup](), list[PageGroup]()
    for heading, own in by_campaign(tables):
        curves += score_charts(own, titles, heading)
        if charts := error_against_leak(own, tables.get("leaks"), titles):
            fronts.append(PageGroup(heading, charts, folded=bool(fronts)))
    attacks = attack_charts(tables.get("attacks"), titles)
    return {"curves": curves, "fronts": fronts, "attacks": attacks}

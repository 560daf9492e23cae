"""Reports of a study and of an evaluation: one HTML page that opens offline, and its tables as CSV and LaTeX."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.styles import styles_of
from simulator.pages.document import Document, PageGroup, render, write_document
from simulator.results.formatting import number, sentence_case, whole
from simulator.results.names import statistic_of
from simulator.results.tables import is_partial
from simulator.studies.charts import (
    MOST_PANELS,
    attack_charts,
    error_against_leak,
    heat_maps,
    ordered_values,
    score_charts,
    setting_words,
    value_text,
)
from simulator.studies.store import Study
from simulator.studies.summary import (
    SHOWN,
    attacks_table,
    differences_table,
    leaks_table,
    settings_table,
    stated_privacy,
)
from simulator.studies.tables import TABLES, best_of, interval_text, sections_of, view_table, write_tables

FILE_NAME = "report.html"
_MOST_NAMED = 6
"""Mechanisms whose errors the finding states; the table of settings has all."""
OF_MEANS = "Points are means over replicates, bars their 95 % intervals."


def write_report(study: Study, directory: str | Path) -> Path:
    """Write the page, and its tables as CSV and LaTeX into the folder `tables` beside it.

    Parameters
    ----------
    study
        The study, finished or not.
    directory
        Where they are written.

    Returns
    -------
    path
        The page.
    """
    tables = tables_of(study)
    write_tables(Path(directory) / TABLES, tables)
    return write_document(build_report(study, tables), Path(directory) / FILE_NAME)


def tables_of(study: Study) -> dict[str, pd.DataFrame]:
    """Return the tables of the report by name; those without rows are left out."""
    tables = {
        "settings": settings_table(study),
        "differences": differences_table(study),
        "leaks": leaks_table(study),
        "attacks": attacks_table(study),
        "failures": study.failures,
    }
    return {name: table for name, table in tables.items() if len(table)}


def build_report(study: Study, tables: Mapping[str, pd.DataFrame]) -> str:
    """Build the page.

    Parameters
    ----------
    study
        The study, finished or not.
    tables
        As of `tables_of`.

    Returns
    -------
    html
        One page with its style, scripts and data inside, which loads nothing.
    """
    titles = factor_titles(study.factors)
    settings, leaks = tables.get("settings", pd.DataFrame()), tables.get("leaks")
    names = list(dict.fromkeys(map(str, settings["campaign"]))) if len(settings) else []
    campaigns = {name: settings[settings["campaign"] == name].reset_index(drop=True) for name in names}
    several = len(campaigns) > 1
    heading = {name: f"Campaign {name}" if several else "" for name in names}
    curves, heats, fronts = list[PageGroup](), list[PageGroup](), list[PageGroup]()
    for name, own in campaigns.items():
        scores = score_charts(own, titles)
        curves += [group if place else group._replace(title=heading[name]) for place, group in enumerate(scores)]
        if charts := heat_maps(own, titles):
            heats.append(PageGroup(heading[name], charts))
        if charts := error_against_leak(own, leaks, titles):
            fronts.append(PageGroup(heading[name], charts, folded=bool(fronts)))
    replicates = study.points["replicate"].nunique() if len(study.points) else 0
    points = OF_MEANS if replicates > 1 else "Points are single runs."
    groups = {
        "curves": curves,
        "heats": heats,
        "fronts": fronts,
        "attacks": attack_charts(tables.get("attacks"), titles),
        "tables": _views(tables, titles),
    }
    failed = len(study.failures)
    values: dict[str, object] = {
        "varied": [(path, title, _values_of(study, path)) for path, title in titles.items()],
        "settings": len(study.points[list(titles)].drop_duplicates()) if titles else min(1, len(study.points)),
        "replicates": replicates,
        "partial": is_partial(study.scores),
        "finished": len(study.points),
        "failed": failed,
        "not_run": max(0, study.missing - failed),
        "warned": _warned(study),
        "findings": [(heading[name], _finding(own, leaks, titles)) for name, own in campaigns.items()],
    }
    return render(
        Document(
            title=f"{study.name} · crowdveil study",
            kicker="report of a study",
            heading=study.name,
            header="study_header",
            sections=sections_of("study", groups, points=points, most=MOST_PANELS),
            made_of="from the study’s own files",
            values=values,
        )
    )


def factor_titles(factors: Sequence[str]) -> dict[str, str]:
    """Return a short title for each key path: its last part, or as many as distinguish it from the others."""
    titles = {}
    for path in factors:
        parts = path.split(".")
        for length in range(1, len(parts) + 1):
            title = ".".join(parts[-length:])
            if sum(f".{other}".endswith(f".{title}") for other in factors) == 1:
                break
        titles[path] = title
    return titles


def _values_of(study: Study, path: str) -> str:
    values = pd.concat([table[path] for table in (study.points, study.failures) if path in table])
    ordered = ordered_values(values)
    if len(ordered) <= MOST_PANELS:
        return ", ".join(map(value_text, ordered))
    return f"{value_text(ordered[0])} … {value_text(ordered[-1])}, {whole(len(ordered))} values"


def _warned(study: Study) -> list[tuple[str, int]]:
    """Return each warning with the number of points in which it occurred, the most frequent first."""
    if not len(study.warnings):
        return []
    counts = study.warnings.groupby("warning", sort=False)["key"].nunique().sort_values(ascending=False, kind="stable")
    return [(str(warning), int(count)) for warning, count in counts.items()]


def _finding(own: pd.DataFrame, leaks: pd.DataFrame | None, titles: Mapping[str, str]) -> str:
    """Return the errors of a campaign's private estimates in words, each with the privacy that is claimed for it.

    Mechanisms are compared where the same privacy is claimed of them. Of each the smallest and the largest error are
    stated, with the values that its error or its privacy depends on.
    """
    erring = own[own.groupby("mechanism")["rmse"].transform("max") > 0]
    if not len(erring):
        return "no estimate has an error."
    unit = statistic_of(str(own["statistic"].iloc[0])).unit
    erring = erring.assign(privacy=stated_privacy(erring, leaks, list(titles))).sort_values("rmse", kind="stable")
    of = {str(name): rows for name, rows in erring.groupby("mechanism", sort=False, observed=True)}
    acting = {name: _acting(rows, titles) for name, rows in of.items()}

    def stated(row: pd.Series, *, first: bool, privacy: bool = True) -> str:
        words = interval_text(row, "rmse") + (f" {unit} (RMSE)" if first else "")
        where = setting_words(row, acting[str(row["mechanism"])])
        words += f", at {where}" if where else ""
        return words + (f", with {row['privacy']}" if privacy and row["privacy"] else "")

    sentences = []
    groups = [rows.drop_duplicates("mechanism") for words, rows in erring.groupby("privacy", sort=False) if words]
    same = next((rows for rows in groups if len(rows) > 1), None)
    if same is not None:
        best, *others = (row for _, row in same.iterrows())
        less = ", ".join(
            f"{row['mechanism']} has {stated(row, first=False, privacy=False)}" for row in others[:_MOST_NAMED]
        )
        sentences.append(
            f"with {best['privacy']}, {best['mechanism']} has the smallest error, "
            f"{stated(best, first=True, privacy=False)}; {less}"
        )
    for name, rows in list(of.items())[:_MOST_NAMED]:
        least, largest = rows.iloc[0], rows.iloc[-1]
        verb = "has the smallest error, " if len(of) == 1 else "errs by "
        words = f"{name} {verb}{stated(least, first=True)}"
        if largest["rmse"] > least["rmse"]:
            words += f"; its largest is {stated(largest, first=False)}"
        sentences.append(words)
    return f"{'. '.join(sentences)}."


def _acting(rows: pd.DataFrame, titles: Mapping[str, str]) -> dict[str, str]:
    """Return the factors on which a mechanism's error or privacy depends, or may depend, with their titles."""
    acting = {}
    for name, title in titles.items():
        others = [other for other in titles if other != name and rows[other].nunique() > 1]
        groups = [group for _, group in rows.groupby(others, dropna=False, observed=True)] if others else [rows]
        crossed = [group for group in groups if group[name].nunique() > 1]
        differ = any(group["rmse"].nunique() > 1 or group["privacy"].nunique() > 1 for group in crossed)
        if rows[name].nunique() > 1 and (differ or not crossed):
            acting[name] = title
    return acting


def _views(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> list[PageGroup]:
    """Return the tables as they are shown, all but the first folded."""
    formats, captions = dict.fromkeys(titles, "parameter"), SHOWN["captions"]
    groups: list[PageGroup] = []
    for name, table in tables.items():
        shown = table.drop(columns=["key", "setting"], errors="ignore")
        view = view_table(name, captions[name], shown, formats=formats, titles=titles)
        groups.append(PageGroup(sentence_case(name) if groups else "", table=view, folded=bool(groups)))
    return groups


def write_evaluation(
    directory: Path, tables: Mapping[str, pd.DataFrame], *, goal: str, sentences: Sequence[str]
) -> Path:
    """Write the page of an evaluation, and its tables into the folder `tables` beside it.

    Parameters
    ----------
    directory
        Where they are written.
    tables
        As `Evaluation.tables` returns them.
    goal
        The target, in words.
    sentences
        Who wins where.

    Returns
    -------
    path
        The page.
    """
    write_tables(directory / TABLES, tables)
    write_document(markdown(tables), directory / TABLES / "errors.md")
    captions, titles = SHOWN["captions_of_evaluations"], {"rmse": "RMSE, vehicles"}
    shown = {name: table for name, table in tables.items() if len(table)}
    views = {name: view_table(name, captions[name], table, titles=titles) for name, table in shown.items()}
    charts = _decile_charts(tables["deciles"])
    groups = {
        "table": [PageGroup(table=views.pop("evaluation"))] if "evaluation" in views else [],
        "deciles": [PageGroup(charts=charts)] if charts else [],
        "tables": [PageGroup(view.caption, table=view, folded=True) for view in views.values()],
    }
    document = Document(
        title="Evaluation · crowdveil",
        kicker="report of an evaluation",
        heading="Evaluation",
        header="evaluation_header",
        sections=sections_of("evaluation", groups),
        made_of="from the runs of the evaluation",
        values={"goal": goal, "sentences": sentences},
    )
    return write_document(render(document), directory / FILE_NAME)


def markdown(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the errors as a table in Markdown: a row per data set, a column per mechanism.

    A cell has the mean RMSE in vehicles and the ends of its 95 % interval. The least of a row that meets the
    target is bold, with all that do and are not distinguishable from it; an error that misses the target is in
    brackets. A star marks a claim that relies on devices certain to be in the cell, a dagger an error that is not less
    than the error of estimating 0 everywhere.
    """
    table, differences = tables["evaluation"], tables["differences"]
    names = list(dict.fromkeys(table["mechanism"]))
    lines = [f"| data set | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for data, rows in table[table["runs"] > 0].groupby("data", sort=False):
        best = best_of(rows, differences[differences["data"] == data])
        cells = {row["mechanism"]: _cell(row, bold=row["mechanism"] in best) for _, row in rows.iterrows()}
        lines.append(f"| {data} | {' | '.join(cells.get(name, '–') for name in names)} |")
    return "\n".join(lines) + "\n"


def _cell(row: pd.Series, *, bold: bool) -> str:
    ends = "" if pd.isna(row["lower"]) else f" [{number(row['lower'])}, {number(row['upper'])}]"
    text = f"{number(row['rmse'])}{ends}"
    marks = ("" if pd.isna(row["crowd"]) else r" \*") + ("" if row["beats_zero"] else " †")
    return (f"**{text}**" if bold else text if row["meets"] else f"({text})") + marks


def _decile_charts(deciles: pd.DataFrame) -> list[Chart]:
    """Draw each data set's relative error by decile, a line per mechanism; deciles without vehicles are left out."""
    styles = styles_of(deciles["mechanism"])
    ticks = {decile: str(decile) for decile in range(1, 11)}
    x = Axis("decile of the cells by occupancy", ends=(0.5, 10.5), ticks=ticks)
    y = Axis("RMSE / occupancy", log=True)
    drawn = []
    for data, rows in deciles[deciles["relative_error"] > 0].groupby("data", sort=False):
        series = [
            Series(str(name), mine["decile"], mine["relative_error"], "linked", styles[str(name)])
            for name, mine in rows.groupby("mechanism", sort=False)
        ]
        words = f"{data}: error relative to the occupancy"
        about = f"{words}, by decile of the cells; means over the runs."
        drawn.append(Chart(series, x, y, words, about, height=360 + 20 * (len(series) // 3)))
    return drawn

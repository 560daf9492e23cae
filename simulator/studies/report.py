"""Reports of a study and of an evaluation: one HTML page that opens offline, and its tables as CSV and LaTeX."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from simulator.files.atomic_write import plain_name
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.styles import styles_of
from simulator.pages.document import PageGroup, write_document
from simulator.pages.plots.files import plot, write_plots
from simulator.results.formatting import number, sentence_case, whole
from simulator.results.names import statistic_of
from simulator.results.tables import is_partial
from simulator.studies.charts import MOST_PANELS, acting, by_campaign, chart_groups, ordered_values, setting_words
from simulator.studies.store import Study
from simulator.studies.summary import SHOWN, TOGETHER, along_axes, stated_leaks, tables_of, value_text, with_titles
from simulator.studies.tables import TABLES, best_of, error_latex, interval_text, rendered, view_table, write_tables

FILE_NAME = "report.html"
_MOST_NAMED = 6
"""Mechanisms whose errors the finding states; the table of settings has all."""
FIGURES = {"curves": "error", "fronts": "error-leak", "attacks": "attack"}
"""Name of the figures of each section of the page."""
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
    titles, titled = factor_titles(along_axes(study).factors), with_titles(study, tables)
    for heading, own in by_campaign(titled):
        file = Path(directory) / TABLES / f"{plain_name(heading.replace('Campaign ', 'errors-') or 'errors')}.tex"
        if own["rmse"].max() > 0:
            write_document(error_latex(own, titled.get("leaks"), titles), file)
    return write_document(build_report(study, tables), Path(directory) / FILE_NAME)


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
    study = along_axes(study)
    titles, leaks = factor_titles(study.factors), tables.get("leaks")
    replicates = study.points["replicate"].nunique() if len(study.points) else 0
    points = OF_MEANS if replicates > 1 else "Points are single runs."
    groups = {**chart_groups(tables, titles), "tables": _views(tables, titles)}
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
        "findings": [(heading, _finding(own, leaks, titles)) for heading, own in by_campaign(tables)],
    }
    return rendered("study", study.name, groups, values, points=points, most=MOST_PANELS)


def write_study_figures(
    study: Study, folder: Path, *, width_in: float, formats: Sequence[str], overwrite: bool, every: bool = False
) -> tuple[list[str], list[str]]:
    """Write the charts of a study's page as figures, all files or none; parameters and results as of `write_figures`.

    Mechanisms have their titles. `every` adds the charts that the page folds away.
    """
    drawn, titles = dict[str, Chart](), factor_titles(along_axes(study).factors)
    for section, groups in chart_groups(with_titles(study, tables_of(study)), titles).items():
        charts = [chart for group in groups if every or not group.folded for chart in group.charts]
        name = FIGURES[section]
        drawn |= {name if len(charts) == 1 else f"{name}-{i}": chart for i, chart in enumerate(charts, 1)}
    plots = {name: partial(plot, chart) for name, chart in drawn.items()}
    return write_plots(plots, folder, width_in, formats, overwrite=overwrite)


def factor_titles(factors: Sequence[str]) -> dict[str, str]:
    """Return a short title for each key path: its last part, or as many as distinguish it from the others."""
    titles = {}
    paths = [path for factor in factors for path in factor.split(TOGETHER)]
    for path in paths:
        parts = path.split(".")
        for length in range(1, len(parts) + 1):
            title = ".".join(parts[-length:])
            if sum(f".{other}".endswith(f".{title}") for other in paths) == 1:
                break
        titles[path] = {"epsilon": "ε", "delta": "δ"}.get(title, title)
    return {factor: TOGETHER.join(titles[path] for path in factor.split(TOGETHER)) for factor in factors}


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
    erring = erring.assign(privacy=stated_leaks(erring, leaks, list(titles))["words"])
    erring = erring.sort_values("rmse", kind="stable")
    of = {str(name): rows for name, rows in erring.groupby("mechanism", sort=False, observed=True)}
    acts = {name: acting(rows, titles, ("rmse", "privacy")) for name, rows in of.items()}

    def stated(row: pd.Series, *, first: bool, among: pd.DataFrame | None = None) -> str:
        words = interval_text(row, "rmse") + (f" {unit} (RMSE)" if first else "")
        named = acts[str(row["mechanism"])]
        if among is not None:  # rows of the same privacy, which the sentence begins with
            named = {name: title for name, title in named.items() if title != "ε" or among[name].nunique() > 1}
        where = setting_words(row, named)
        words += f", at {where}" if where else ""
        return words + (f", with {row['privacy']}" if among is None and row["privacy"] else "")

    sentences, compared = list[str](), Counter[str]()
    groups = [rows for words, rows in erring.groupby("privacy", sort=False) if words]
    groups = [rows for rows in groups if rows["mechanism"].nunique() > 1][:_MOST_NAMED]
    for place, rows in enumerate(groups):
        best, *others = (row for _, row in rows.drop_duplicates("mechanism").iterrows())
        compared.update(map(str, rows["mechanism"].unique()))
        less = [f"{row['mechanism']} has {stated(row, first=False, among=rows)}" for row in others[:_MOST_NAMED]]
        privacy, _, view = str(best["privacy"]).partition(" for ")
        again = place > 0 and view == str(groups[0]["privacy"].iloc[0]).partition(" for ")[2]
        sentences.append(
            f"With {privacy if again else best['privacy']}, {best['mechanism']} has the smallest error, "
            f"{stated(best, first=not again, among=rows)}; {', '.join(less)}"
        )
    for name, rows in [each for each in of.items() if compared[each[0]] < 2][:_MOST_NAMED]:
        least, largest = rows.iloc[0], rows.iloc[-1]
        verb = "has the smallest error, " if len(of) == 1 else "errs by "
        words = f"{name} {verb}{stated(least, first=True)}"
        if largest["rmse"] > least["rmse"]:
            words += f"; its largest is {stated(largest, first=False)}"
        sentences.append(words)
    return f"{'. '.join(sentences)}."


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
    values = {"described": goal, "question": "Who wins where", "sentences": sentences}
    html = rendered("evaluation", "Evaluation", groups, values)
    return write_document(html, directory / FILE_NAME)


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

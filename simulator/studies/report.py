"""Report of a study: one HTML page that opens offline, and its tables as CSV and LaTeX."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from simulator.experiment.scaling import is_partial
from simulator.reporting.figures import Page
from simulator.reporting.formatting import whole
from simulator.reporting.report import environment, render_page, write_document
from simulator.reporting.run_reader import statistic_of
from simulator.studies.figures import (
    MOST_PANELS,
    attack_figures,
    fronts,
    heat_maps,
    ordered_values,
    score_figures,
    setting_words,
    value_text,
)
from simulator.studies.study import Study
from simulator.studies.summary import (
    HALF,
    SCORES,
    attacks_table,
    differences_table,
    leaks_table,
    settings_table,
)
from simulator.studies.tables import TABLES, TableView, interval_text, view_table, write_tables

FILE_NAME = "report.html"


def build_report(study: Study) -> str:
    """Build the page.

    Parameters
    ----------
    study
        The study, finished or not.

    Returns
    -------
    html
        One page with its style, scripts and data inside, which loads nothing.
    """
    return _build(study, tables_of(study))


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
    return write_document(_build(study, tables), Path(directory) / FILE_NAME)


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


def _build(study: Study, tables: Mapping[str, pd.DataFrame]) -> str:
    page = Page()
    settings = tables.get("settings", pd.DataFrame())
    titles = factor_titles(study.factors)
    campaigns = []
    for name in dict.fromkeys(map(str, settings["campaign"])) if len(settings) else ():
        own = settings[settings["campaign"] == name].reset_index(drop=True)
        campaigns.append(
            {
                "name": name,
                "finding": _finding(own, study.factors, titles),
                "scores": score_figures(page, own, study.factors, titles),
                "heats": heat_maps(page, own, study.factors, titles),
                "fronts": fronts(page, own, tables.get("leaks"), study.factors, titles),
            }
        )
    failed = len(study.failures)
    replicates = study.points["replicate"].nunique() if len(study.points) else 0
    values: dict[str, object] = {
        "study": study,
        "varied": [(path, titles[path], _values_of(study, path)) for path in study.factors],
        "settings": len(study.points[list(study.factors)].drop_duplicates())
        if study.factors
        else min(1, len(study.points)),
        "replicates": replicates,
        "partial": is_partial(study.scores),
        "finished": len(study.points),
        "failed": failed,
        "not_run": max(0, study.missing - failed),
        "warned": _warned(study),
        "campaigns": campaigns,
        "attacks": attack_figures(page, tables.get("attacks"), study.factors, titles),
        "tables": _views(tables, titles),
        "most_panels": MOST_PANELS,
    }
    template = environment().get_template("study.html.j2")
    return render_page(template, f"{study.name} · crowdveil study", page.data, values)


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


def _finding(own: pd.DataFrame, factors: Sequence[str], titles: Mapping[str, str]) -> str:
    """Return a sentence on the smallest error of a campaign's private estimates, and its range over the settings."""
    erring = own[own.groupby("mechanism")["rmse"].transform("max") > 0]
    if not len(erring):
        return "no estimate has an error."
    unit = statistic_of(str(own["statistic"].iloc[0])).unit
    best = erring.sort_values("rmse", kind="stable").iloc[0]
    rows = erring[erring["mechanism"] == best["mechanism"]]
    worst = rows.sort_values("rmse", kind="stable").iloc[-1]
    where = setting_words(best, factors, titles)
    words = (
        f"{best['mechanism']} has the smallest error, {interval_text(best['rmse'], best[f'rmse{HALF}'])} {unit} (RMSE)"
    )
    words += f", at {where}" if where else ""
    if worst["rmse"] > best["rmse"]:
        largest = interval_text(worst["rmse"], worst[f"rmse{HALF}"])
        words += f"; its largest is {largest}, at {setting_words(worst, factors, titles)}"
    others = erring[
        (erring[list(factors)] == best[list(factors)]).all(axis=1) & (erring["mechanism"] != best["mechanism"])
    ]
    if len(others):
        second = others.sort_values("rmse", kind="stable").iloc[0]
        words += (
            f". In the same setting {second['mechanism']} has {interval_text(second['rmse'], second[f'rmse{HALF}'])}"
        )
    return f"{words}."


def _views(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> dict[str, TableView]:
    """Return the tables as they are shown."""
    formats = {**{score.column: score.format for score in SCORES}, "success": "percent", "prior": "percent"}
    formats |= dict.fromkeys((*titles, "at_epsilon"), "parameter")
    formats |= dict.fromkeys(("epsilon", "delta", "at_delta"), "claimed")
    shown = {**titles, **{score.column: score.title for score in SCORES}}
    shown |= {
        "epsilon": "ε",
        "at_delta": "at δ",
        "delta": "δ",
        "at_epsilon": "at ε",
        "difference": "Difference of RMSE",
    }
    captions = {
        "settings": "Mean over n replicates ± half the width of the 95 % interval",
        "differences": "RMSE minus that of the first setting, paired by seed, ± half the width of the 95 % interval",
        "leaks": "What each view leaks: the largest of all replicates and crowds",
        "attacks": "Mean success of attacks over n replicates, and the prior's, ± half the width of the 95 % interval",
        "failures": "Points that failed",
    }
    return {
        name: view_table(
            name, captions[name], table.drop(columns=["key", "setting"], errors="ignore"), formats=formats, titles=shown
        )
        for name, table in tables.items()
    }

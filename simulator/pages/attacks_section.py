"""Report section and terminal lines: the attacks of coalitions and their success, with plots."""

from itertools import zip_longest
from typing import Any

import pandas as pd

from scenarios.kinds import names_of, title
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.spec import Mark, with_shared_ends
from simulator.pages.charts.styles import PLAIN
from simulator.pages.document import PageSection
from simulator.pages.privacy_sections import campaign_words
from simulator.pages.run_charts import style
from simulator.results.formatting import inner_case, number, percent, sentence_case
from simulator.results.run import RunResult
from simulator.results.statements import NULLS, driver_sentence, guess_words, loss_sentences, reviewer_words
from simulator.results.tables import records

KINDS = {kind: title("attack", kind) for kind in names_of("attack")}
GUESS_KINDS = (*names_of("attack", "guess"), *names_of("attack", "guess_together"))
OWN = "guesses the cell; an attack of the user's own"
ASIDE = ("known_others", "drop_out", "sampled_posterior")
"""Kinds of attacks in worlds that did not occur, and a metric that is about coins: told after all others."""
STEP = 0.07
"""Horizontal distance between the points of neighbouring mechanisms at the same number of colluders."""
MARGIN = 0.04
CHARTS = {
    "colluders": ("colluding", "parties that collude", "gain", "gain over the prior"),
    "honest": ("honest", "honest servers", "gain", "gain over the prior"),
    "queries": ("value", "queries", "success", "cell guessed right"),
    "vehicles": ("colluding", "corrupted vehicles", "value", "vehicles too many"),
}
"""By name of a chart: the column across and its title, the column up and its title."""


def attack_lines(run: RunResult) -> list[str]:
    """
    Summarize the attacks of a run in few lines for a terminal.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    lines
        For each kind of attack and what it guesses the sentence about the best coalition; then the greatest values of
        what else was measured.
    """
    lines = [driver_sentence(row, run.record.owners, where_of(run, row)) for row in told(run, "attack", "words")]
    measured = run.findings[run.findings["success"].isna()].dropna(subset="value")
    for (kind, metric), rows in measured.groupby(["attack", "metric"], sort=False):
        most = rows.sort_values("value", ascending=False, kind="stable").iloc[0]
        source = ", ".join(filter(None, most[["coalition", "campaign", "mechanism"]]))
        name = f"{kind}, {metric}".replace("_", " ")
        lines.append(f"{name}: at most {number(most['value'])} {most['unit']} ({source})")
    return lines


def told(run: RunResult, *alike: str) -> list[dict[Any, Any]]:
    """
    Choose the findings about guesses that are told in sentences: of the first mechanism other than no privacy.

    Parameters
    ----------
    run
        The finished run.
    *alike
        Columns of `attacks.parquet`, or ``words``, of what is guessed. Of the findings that have the same values in
        them the one with the greatest gain is told.

    Returns
    -------
    findings
        Rows of `attacks.parquet`, the one with the greatest gain first; those of `ASIDE` are last.
    """
    rows = run.findings.dropna(subset=["success", "prior"])
    rows = rows[rows["mechanism"] == (run.record.first_private or rows["mechanism"].min())]
    rows = rows[~rows["metric"].str.startswith(tuple(NULLS))]
    rows["words"] = [guess_words(*pair) for pair in zip(rows["attack"], rows["metric"], strict=True)]
    order = rows["success"] - rows["prior"] - (rows["attack"].isin(ASIDE) | rows["metric"].isin(ASIDE))
    return records(rows.loc[order.sort_values(ascending=False, kind="stable").index].drop_duplicates([*alike]))


def where_of(run: RunResult, row: dict[Any, Any]) -> str:
    """Return the campaign of a finding in words, if the attacks of the run are on several."""
    return f"campaign {row['campaign']}" if run.findings["campaign"].nunique() > 1 else ""


def attacks_section(run: RunResult) -> PageSection | None:
    """
    Show the guesses of coalitions and their gain over the prior.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where the run has no attacks.
    """
    if run.attacks.empty:
        return None
    rows = run.findings
    own = sorted(set(rows["attack"]) - set(KINDS))
    priors = {attack["name"]: attack.get("prior") for attack in run.settings.attacks}
    guesses = rows["attack"].isin([*GUESS_KINDS, *own]) & (rows["metric"] == "")
    values = {
        "kinds": [(name, words) for name, words in KINDS.items() if name in set(rows["attack"])]
        + [(name, OWN) for name in own],
        "told": _told(run),
        "priors": [(name, title("prior", prior["kind"])) for name, prior in priors.items() if isinstance(prior, dict)],
        "gains": _gains(run, rows[guesses].dropna(subset=["gain", "colluding", "prior"])),
        "longitudinal": _longitudinal(run, rows[rows["attack"] == "longitudinal"]),
        "poisoning": _poisoning(run, rows[rows["attack"] == "poisoning"].dropna(subset="value")),
        "losses": _losses(run, rows[rows["metric"].isin(["loss_current_place", "loss_route"])]),
        "several": rows["campaign"].nunique() > 1,
        "rows": records(rows),
    }
    return PageSection("attacks", "Attacks", template="attacks", values=values)


def _told(run: RunResult) -> list[tuple[str, str]]:
    """Return for each coalition, campaign and guess a sentence for a driver, and numbers for a reviewer."""
    keys = ["name", "coalition", "campaign", "mechanism"]
    alike = {key: records(rows) for key, rows in run.findings.groupby(keys, sort=False)}
    return [
        (
            driver_sentence(row, run.record.owners, where_of(run, row)),
            reviewer_words(row, alike[tuple(row[key] for key in keys)]),
        )
        for row in told(run, "coalition", "campaign", "words")
    ]


def _legend(run: RunResult, rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return the sign, the colour and the label of each mechanism."""
    looks = {name: style(run, name) for name in rows["mechanism"].unique()}
    return [(look.sign, look.colour, run.record.label(name)) for name, look in looks.items()]


def _gains(run: RunResult, rows: pd.DataFrame) -> dict[str, object] | None:
    """Show gains against the number of colluders, one panel per campaign."""
    if rows.empty:
        return None
    prior = sorted(set(rows["prior"].map(percent)))
    campaigns = rows.groupby("campaign", sort=False)
    charts = [attack_chart(run, "colluders", own, campaign_words(run, str(campaign))) for campaign, own in campaigns]
    honest = rows.assign(honest=rows["servers"] - rows["coalition"].str.count("server:"))
    if honest["honest"].nunique() > 1:
        charts.append(attack_chart(run, "honest", honest, "All campaigns, by the servers that do not collude"))
    gained = [_points_gained(own) for _, own in campaigns]
    panels = list(zip_longest(with_shared_ends(charts), gained))
    between = prior[0] if len(prior) == 1 else f"between {prior[0]} and {prior[-1]}"
    return {"prior": between, "legend": _legend(run, rows), "panels": panels}


def _points_gained(rows: pd.DataFrame) -> list[tuple[str, list[float]]]:
    """Return each coalition with its significant gains, whose 95 % intervals lie above 0, in percentage points."""
    points = (100 * rows["gain"])[rows["gain_low"] > 0.0]
    coalitions = sorted(rows["coalition"].unique(), key=lambda name: (name.count(","), name))
    return [(name, points[rows["coalition"] == name].tolist()) for name in coalitions]


def _longitudinal(run: RunResult, rows: pd.DataFrame) -> dict[str, object] | None:
    """Show success against the number of queries, one panel per coalition and campaign."""
    shown = rows[rows["campaign"] != ""].dropna(subset=["success", "value"])
    drawn: list[Chart] = []
    for (campaign, name), own in shown.groupby(["campaign", "name"], sort=False):
        caption = f"{campaign_words(run, str(campaign))}; {name} ({own['coalition'].iloc[0]})"
        drawn.append(attack_chart(run, "queries", own, caption))
    return {"rows": records(shown), "legend": _legend(run, shown), "charts": drawn} if drawn else None


def _losses(run: RunResult, rows: pd.DataFrame) -> list[str]:
    """State for each campaign and mechanism what the current place loses, and what the route loses."""
    lines = []
    for (campaign, mechanism), own in rows.groupby(["campaign", "mechanism"], sort=False):
        about = f"{inner_case(run.record.label(str(mechanism)))} in campaign {campaign}"
        lines += loss_sentences(about, int(own["trials"].max()), [*own.groupby("metric")["value"].max()])
    return lines


def _poisoning(run: RunResult, rows: pd.DataFrame) -> dict[str, object] | None:
    """Show the inflation of estimates by corrupted vehicles, one panel per campaign."""
    if rows.empty:
        return None
    charts: list[Chart] = []
    if rows["colluding"].nunique() > 1:
        for campaign, own in rows.groupby("campaign", sort=False):
            charts.append(attack_chart(run, "vehicles", own, campaign_words(run, str(campaign))))
    drawn = [chart for chart in with_shared_ends(charts) if chart.series]
    table = rows.pivot_table(
        index=["campaign", "mechanism", "name", "colluding"], columns="metric", values=["value", "theory"], sort=False
    )
    columns = [(column, metric) for metric in ("inflation", "crafted_inflation") for column in ("value", "theory")]
    body = list(zip(table.index, table.reindex(columns=columns).to_numpy().tolist(), strict=True))
    return {"table": body, "legend": _legend(run, rows), "charts": drawn}


def attack_chart(run: RunResult, form: str, rows: pd.DataFrame, title: str) -> Chart:
    """
    Draw what attacks found against the size of a coalition or the number of queries.

    Parameters
    ----------
    run
        The finished run.
    form
        A key of `CHARTS`.
    rows
        Rows of `attacks.parquet` that have its columns; with ``honest``, the number of servers that do not collude.
    title
        The chart's caption.

    Returns
    -------
    chart
        Points with 95 % intervals, and theory: a line through several values, a dash for one. Of success the prior is
        dotted. Inflation is on logarithmic axes, with hollow symbols for crafted vectors, and values of 0 left out.
    """
    column, across, up, upward = CHARTS[form]
    rows, gain = rows.assign(x=rows[column]).sort_values("x", kind="stable"), up == "gain"
    numbers = sorted(rows["x"].astype(int).unique().tolist())
    if gain:
        place = rows["mechanism"].factorize()[0]
        apart = rows["x"] + (place - place.max() / 2) * STEP
        rows = rows.assign(x=apart, theory=rows["theory"] - rows["prior"])
        numbers = [*range(numbers[0], numbers[-1] + 1)]
    series = _curves(run, rows if gain else rows[rows[up] > 0.0], up, line="name" if gain else "mechanism")
    if up == "success":
        dotted = PLAIN._replace(dash="dot")
        series.append(Series("baseline guess", rows["x"], rows["prior"], style=dotted, thin=True))
    ends = (numbers[0] - 0.5, numbers[-1] + 0.5) if gain else None
    x = Axis(across, log=not gain, ends=ends, ticks={number: f"{number:,}" for number in numbers}, names=gain)
    whole = (-MARGIN, 1 + MARGIN) if up == "success" else None
    y = Axis(upward, share=up != "value", log=up == "value", ends=whole)
    about = f"{title}. {sentence_case(upward)} against {across}; the table has the numbers."
    return Chart(series, x, y, title, about, legend=False)


def _curves(run: RunResult, rows: pd.DataFrame, up: str, *, line: str = "mechanism") -> list[Series]:
    """
    Draw each mechanism's theory, a line for each value of the column `line`, and its measured points.

    Theory is a line through several values, a dash for a single value, and not drawn where unknown. Points have the
    95 % interval of their gain. Crafted reports have thin lines and hollow points.
    """
    series: list[Series] = []
    for (mechanism, metric), own in rows.groupby(["mechanism", "metric"], sort=False):
        look, label = style(run, str(mechanism)), run.record.label(str(mechanism))
        crafted = metric == "crafted_inflation"
        known = own.dropna(subset="theory")
        for _, of_line in known.groupby(line, sort=False):
            mark: Mark = "line" if len(of_line) > 1 else "dashes"
            series.append(Series(f"{label}, theory", of_line["x"], of_line["theory"], mark, look, thin=crafted))
        sources = [f"{name} ({coalition})" for name, coalition in zip(own["name"], own["coalition"], strict=True)]
        low, high = (own[up] + own[end] - own["gain"] for end in ("gain_low", "gain_high"))
        look = look._replace(hollow=crafted)
        series.append(Series(label, own["x"], own[up], "points", look, low, high, sources))
    return series

"""Report section and terminal lines: the attacks of coalitions and their success, with plots."""

from typing import Any

import pandas as pd

from scenarios.kinds import names_of, title
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.spec import Mark, with_shared_ends
from simulator.pages.charts.styles import PLAIN
from simulator.pages.document import PageSection
from simulator.pages.privacy_sections import campaign_words
from simulator.pages.run_charts import style
from simulator.results.formatting import number, percent
from simulator.results.run import RunResult
from simulator.results.statements import driver_sentence, guess_words, reviewer_words
from simulator.results.tables import records

KINDS = {kind: title("attack", kind) for kind in names_of("attack")}
GUESS_KINDS = names_of("attack", "guess")
OWN = "guesses the cell; an attack of the user's own"
ASIDE = ("known_others", "drop_out", "sampled_posterior")
"""Kinds of attacks in worlds that did not occur, and a metric that is about coins: told after all others."""
STEP = 0.07
"""Horizontal distance between the points of neighbouring mechanisms at the same number of colluders."""
MARGIN = 0.04


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
    guesses = rows["attack"].isin([*GUESS_KINDS, *own]) & (rows["metric"] == "")
    values = {
        "kinds": [(name, words) for name, words in KINDS.items() if name in set(rows["attack"])]
        + [(name, OWN) for name in own],
        "told": _told(run),
        "gains": _gains(run, rows[guesses].dropna(subset=["gain", "colluding", "prior"])),
        "longitudinal": _longitudinal(run, rows[rows["attack"] == "longitudinal"]),
        "poisoning": _poisoning(run, rows[rows["attack"] == "poisoning"].dropna(subset="value")),
        "several": rows["campaign"].nunique() > 1,
        "rows": records(rows),
    }
    return PageSection("attacks", "Attacks", template="attacks", values=values)


def _told(run: RunResult) -> list[tuple[str, str]]:
    """Return for each coalition, campaign and guess a sentence for a driver, and numbers for a reviewer."""
    keys = ["name", "coalition", "campaign", "mechanism"]
    measured = run.findings[run.findings["success"].isna()].dropna(subset="value").groupby(keys).groups
    return [
        (
            driver_sentence(row, run.record.owners, where_of(run, row)),
            reviewer_words(row, records(run.findings.loc[measured.get(tuple(row[key] for key in keys), [])])),
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
    charts = [gain_by_colluders(run, own, campaign_words(run, str(campaign))) for campaign, own in campaigns]
    drawn = with_shared_ends(charts)
    panels = [(chart, _points_gained(own)) for chart, (_, own) in zip(drawn, campaigns, strict=True)]
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
        drawn.append(success_by_queries(run, own, caption))
    return {"rows": records(shown), "legend": _legend(run, shown), "charts": drawn} if drawn else None


def _poisoning(run: RunResult, rows: pd.DataFrame) -> dict[str, object] | None:
    """Show the inflation of estimates by corrupted vehicles, one panel per campaign."""
    if rows.empty:
        return None
    charts: list[Chart] = []
    if rows["colluding"].nunique() > 1:
        for campaign, own in rows.groupby("campaign", sort=False):
            charts.append(inflation_by_vehicles(run, own, campaign_words(run, str(campaign))))
    drawn = [chart for chart in with_shared_ends(charts) if chart.series]
    table = rows.pivot_table(
        index=["campaign", "mechanism", "name", "colluding"], columns="metric", values=["value", "theory"], sort=False
    )
    columns = [(column, metric) for metric in ("inflation", "crafted_inflation") for column in ("value", "theory")]
    body = list(zip(table.index, table.reindex(columns=columns).to_numpy().tolist(), strict=True))
    return {"table": body, "legend": _legend(run, rows), "charts": drawn}


def gain_by_colluders(run: RunResult, rows: pd.DataFrame, title: str) -> Chart:
    """
    Draw the gains of one campaign's coalitions against their number of parties.

    Parameters
    ----------
    run
        The finished run.
    rows
        Rows of `attacks.parquet` that have a gain.
    title
        The chart's caption.

    Returns
    -------
    chart
        Points with 95 % intervals, and theory: a line where a coalition has several sizes, a dash elsewhere.
    """
    place = rows["mechanism"].factorize()[0]
    parties = rows["colluding"] + (place - place.max() / 2) * STEP
    series = _curves(run, rows.assign(x=parties, theory=rows["theory"] - rows["prior"]), "gain", line="name")
    most = int(rows["colluding"].max())
    ticks = {parties: str(parties) for parties in range(1, most + 1)}
    x = Axis("parties that collude", ends=(0.5, most + 0.5), ticks=ticks, names=True)
    y = Axis("gain over the prior", share=True)
    return Chart(series, x, y, title, f"{title}. Gain over the prior against the number of colluders.", legend=False)


def success_by_queries(run: RunResult, rows: pd.DataFrame, title: str) -> Chart:
    """
    Draw the success rate of one coalition's guesses against the number of queries they use.

    Parameters
    ----------
    run
        The finished run.
    rows
        Longitudinal rows of `attacks.parquet`, whose `value` is the number of queries.
    title
        The chart's caption.

    Returns
    -------
    chart
        Points with 95 % intervals, theory as lines, and the prior.
    """
    rows = rows.sort_values("value", kind="stable")
    series = _curves(run, rows.assign(x=rows["value"]), "success")
    priors = dict(zip(rows["value"], rows["prior"], strict=True))
    dotted = PLAIN._replace(dash="dot")
    series.append(Series("baseline guess", list(priors), list(priors.values()), style=dotted, thin=True))
    x = Axis("queries", log=True, ticks={queries: f"{queries:.0f}" for queries in priors})
    y = Axis("cell guessed right", share=True, ends=(-MARGIN, 1 + MARGIN))
    about = f"{title}. Share of cells guessed right against the number of queries; the table has the numbers."
    return Chart(series, x, y, title, about, legend=False)


def inflation_by_vehicles(run: RunResult, rows: pd.DataFrame, title: str) -> Chart:
    """
    Draw the inflation of an estimate against the number of corrupted vehicles, in one campaign.

    Parameters
    ----------
    run
        The finished run.
    rows
        Poisoning rows of `attacks.parquet`.
    title
        The chart's caption.

    Returns
    -------
    chart
        On logarithmic axes: full symbols for well-formed reports, hollow ones for crafted vectors, theory as lines.
        Values of 0 are left out.
    """
    positive = rows[rows["value"] > 0.0].sort_values("colluding", kind="stable")
    series = _curves(run, positive.assign(x=positive["colluding"]), "value")
    vehicles = sorted(rows["colluding"].astype(int).unique().tolist())
    x = Axis("corrupted vehicles", log=True, ticks={count: f"{count:,}" for count in vehicles})
    y = Axis("vehicles too many", log=True)
    about = f"{title}. Inflation against corrupted vehicles; the table has the numbers."
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
        known = own.sort_values("colluding", kind="stable").dropna(subset="theory")
        for _, of_line in known.groupby(line, sort=False):
            mark: Mark = "line" if len(of_line) > 1 else "dashes"
            series.append(Series(f"{label}, theory", of_line["x"], of_line["theory"], mark, look, thin=crafted))
        sources = [f"{name} ({coalition})" for name, coalition in zip(own["name"], own["coalition"], strict=True)]
        low, high = (own[up] + own[end] - own["gain"] for end in ("gain_low", "gain_high"))
        look = look._replace(hollow=crafted)
        series.append(Series(label, own["x"], own[up], "points", look, low, high, sources))
    return series

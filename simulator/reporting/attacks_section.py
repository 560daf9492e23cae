"""Report section and terminal lines: the attacks of coalitions and their success, with plots."""

import math

import numpy as np
import pandas as pd
from markupsafe import escape

from scenarios.kinds import names_of
from simulator.reporting import figures
from simulator.reporting.deployments_section import campaign_words
from simulator.reporting.figures import Drawn, Figure, Page
from simulator.results.formatting import number, percent
from simulator.results.run import RunResult
from simulator.results.tables import findings, records

KINDS = {
    "round_one": "guesses the cell from round one alone, and separately which devices were sampled",
    "round_two": "guesses the cell from round two alone",
    "link_rounds": "guesses the cell from all reports of a query that the coalition can read and link",
    "shares": "adds the shares that the coalition holds, and guesses the cell from the sum",
    "known_others": "from published differences, with all other devices known, guesses whether the vehicle is in the "
    "cell, at even odds",
    "longitudinal": "guesses the cell of a vehicle that stays, from several queries",
    "poisoning": "corrupted vehicles send reports that raise the estimate of a cell",
    "drop_out": "guesses the cell from what is published after devices were prevented from answering",
}
GUESS_KINDS = names_of("attack", "guess")
OWN = "guesses the cell; an attack of the user's own"
STEP = 0.07
"""Horizontal distance between the points of neighbouring mechanisms at the same number of colluders."""
MARGIN = 0.04
AIR = 0.15
"""Margin above and below the points of a logarithmic axis, as a power of ten, so that no point is cut off."""


def findings_in_order(run: RunResult) -> pd.DataFrame:
    """Return `findings` in the order of the campaigns; those of all campaigns together last."""
    order = {campaign: place for place, campaign in enumerate(run.deployments)}
    return findings(run.attacks).sort_values(
        "campaign", key=lambda names: names.map(order).fillna(len(order)), kind="stable"
    )


def attack_lines(attacks: pd.DataFrame) -> list[str]:
    """
    Summarize each kind of attack in one or two lines for a terminal.

    Parameters
    ----------
    attacks
        The frame of `attacks.parquet`.

    Returns
    -------
    lines
        In the order of the kinds.
    """
    frame = findings(attacks)
    lines = []
    for kind in [*KINDS, *sorted(set(frame["attack"]) - set(KINDS))]:
        own = frame[frame["attack"] == kind]
        # The number of queries is not a quantity that is measured or guessed.
        for metric, measured in own.groupby(own["metric"].replace("queries", ""), sort=False):
            words = (kind.replace("_", " ") if kind in KINDS else kind, str(metric).replace("_", " "))
            name = ", ".join(word for word in words if word)
            summary = _rates(measured.dropna(subset="success")) or _largest(measured.dropna(subset="value"))
            lines += [f"{name}: {summary}"] if summary else []
    return lines


def _rates(rates: pd.DataFrame) -> str:
    better = rates[rates["gain_low"] > 0.0]
    idle = len(rates) - len(better)
    words = [f"{idle} of {len(rates)} had no significant gain"] if idle else []
    if len(better):
        best = better.sort_values("gain", ascending=False, kind="stable").iloc[0]
        rate, prior = percent(best["success"]), percent(best["prior"])
        words.append(f"the best: {rate} right, {prior} by the baseline guess ({_source(best)})")
    return "; ".join(words)


def _largest(values: pd.DataFrame) -> str:
    if values.empty:
        return ""
    most = values.sort_values("value", ascending=False, kind="stable").iloc[0]
    return f"at most {number(most['value'])} {most['unit']} ({_source(most)})"


def _source(row: "pd.Series[str]") -> str:
    return ", ".join(filter(None, row[["coalition", "campaign", "mechanism"]]))


def attacks_section(run: RunResult, page: Page) -> dict[str, object] | None:
    """
    Show the guesses of coalitions and their gain over the prior.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figures are added to it.

    Returns
    -------
    values
        Values for the section's template; None where the run has no attacks.
    """
    if run.attacks.empty:
        return None
    rows = findings_in_order(run)
    own = sorted(set(rows["attack"]) - set(KINDS))
    guesses = rows["attack"].isin([*GUESS_KINDS, *own]) & (rows["metric"] == "")
    return {
        "kinds": [(name, words) for name, words in KINDS.items() if name in set(rows["attack"])]
        + [(name, OWN) for name in own],
        "gains": _gains(run, rows[guesses].dropna(subset=["gain", "colluding", "prior"]), page),
        "longitudinal": _longitudinal(run, rows[rows["attack"] == "longitudinal"], page),
        "poisoning": _poisoning(run, rows[rows["attack"] == "poisoning"].dropna(subset="value"), page),
        "several": rows["campaign"].nunique() > 1,
        "rows": records(rows),
    }


def _legend(run: RunResult, rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return the sign, the colour and the label of each mechanism."""
    styles = {name: figures.style(run, name) for name in rows["mechanism"].unique()}
    return [(style.sign, style.colour, run.label(name)) for name, style in styles.items()]


def _gains(run: RunResult, rows: pd.DataFrame, page: Page) -> dict[str, object] | None:
    """Show gains against the number of colluders, one panel per campaign."""
    if rows.empty:
        return None
    prior = sorted(set(rows["prior"].map(percent)))
    low = float(np.nanmin([0.0, *rows["gain_low"], *rows["gain"]]))
    high = float(np.nanmax([0.0, *rows["gain_high"], *rows["gain"], *rows["theory"]]))
    panels: list[tuple[str, list[tuple[str, list[float]]]]] = []
    for campaign, own in rows.groupby("campaign", sort=False):
        page.figures[f"attack-gain-{len(panels)}"] = gain_by_colluders(run, own, (low - MARGIN, high + MARGIN))
        panels.append((campaign_words(run, str(campaign)), _points_gained(own)))
    between = prior[0] if len(prior) == 1 else f"between {prior[0]} and {prior[-1]}"
    return {"prior": between, "legend": _legend(run, rows), "panels": panels}


def _points_gained(rows: pd.DataFrame) -> list[tuple[str, list[float]]]:
    """Return each coalition with its significant gains, whose 95 % intervals lie above 0, in percentage points."""
    points = (100 * rows["gain"])[rows["gain_low"] > 0.0]
    coalitions = sorted(rows["coalition"].unique(), key=lambda name: (name.count(","), name))
    return [(name, points[rows["coalition"] == name].tolist()) for name in coalitions]


def _longitudinal(run: RunResult, rows: pd.DataFrame, page: Page) -> dict[str, object] | None:
    """Show success against the number of queries, one panel per coalition and campaign."""
    shown = rows[rows["campaign"] != ""].dropna(subset=["success", "value"])
    drawn: list[Drawn] = []
    for (campaign, name), own in shown.groupby(["campaign", "name"], sort=False):
        caption = f"{campaign_words(run, str(campaign))}; {name} ({own['coalition'].iloc[0]})"
        described = f"{caption}. Share of cells guessed right against the number of queries; the table has the numbers."
        drawn.append(page.add("attack-queries", success_by_queries(run, own), caption, described))
    return {"rows": records(shown), "legend": _legend(run, shown), "figures": drawn} if drawn else None


def _poisoning(run: RunResult, rows: pd.DataFrame, page: Page) -> dict[str, object] | None:
    """Show the inflation of estimates by corrupted vehicles, one panel per campaign."""
    if rows.empty:
        return None
    drawn: list[Drawn] = []
    values = rows[["value", "theory"]].to_numpy()
    values = values[values > 0]
    if rows["colluding"].nunique() > 1 and len(values):
        ends = (math.floor(math.log10(values.min()) - AIR), math.ceil(math.log10(values.max()) + AIR))
        for campaign, own in rows.groupby("campaign", sort=False):
            figure = inflation_by_vehicles(run, own, ends)
            if figure is not None:
                caption = campaign_words(run, str(campaign))
                described = f"{caption}. Inflation against corrupted vehicles; the table has the numbers."
                drawn.append(page.add("attack-poisoned", figure, caption, described))
    table = rows.pivot_table(
        index=["campaign", "mechanism", "name", "colluding"], columns="metric", values=["value", "theory"], sort=False
    )
    columns = [(column, metric) for metric in ("inflation", "crafted_inflation") for column in ("value", "theory")]
    body = list(zip(table.index, table.reindex(columns=columns).to_numpy().tolist(), strict=True))
    return {"table": body, "legend": _legend(run, rows), "figures": drawn}


def gain_by_colluders(run: RunResult, rows: pd.DataFrame, ends: tuple[float, float]) -> Figure:
    """
    Draw the gains of one campaign's coalitions against their number of parties.

    Parameters
    ----------
    run
        The finished run.
    rows
        Rows of `attacks.parquet` that have a gain.
    ends
        Ends of the vertical axis.

    Returns
    -------
    figure
        Points with 95 % intervals, and theory: a line where a coalition has several sizes, a dash elsewhere.
    """
    several = rows["mechanism"].nunique()
    traces: list[Figure] = []
    for index, (mechanism, own) in enumerate(rows.groupby("mechanism", sort=False)):
        parties = own["colluding"] + (index - (several - 1) / 2) * STEP
        for _, coalition in own.sort_values("colluding", kind="stable").groupby("name", sort=False):
            theory = coalition["theory"] - coalition["prior"]
            traces += _theory_trace(run, str(mechanism), parties[coalition.index], theory)
        traces.append(_points(run, str(mechanism), own, parties, "gain"))
    most = int(rows["colluding"].max())
    x = figures.axis("parties that collude", tickvals=list(range(1, most + 1)), range=[0.5, most + 0.5])
    y = figures.axis("gain over the prior", tickformat=".0%", range=list(ends), zeroline=True)
    return figures.plot(traces, x, y)


def success_by_queries(run: RunResult, rows: pd.DataFrame) -> Figure:
    """
    Draw the success rate of one coalition's guesses against the number of queries they use.

    Parameters
    ----------
    run
        The finished run.
    rows
        Longitudinal rows of `attacks.parquet`, whose `value` is the number of queries.

    Returns
    -------
    figure
        Points with 95 % intervals, theory as lines, and the prior.
    """
    rows = rows.sort_values("value", kind="stable")
    traces: list[Figure] = []
    for mechanism in rows["mechanism"].unique():
        own = rows[rows["mechanism"] == mechanism]
        traces += _theory_trace(run, mechanism, own["value"], own["theory"])
        traces.append(_points(run, mechanism, own, own["value"], "success"))
    priors = dict(zip(rows["value"], rows["prior"], strict=True))
    hover = "baseline guess %{y:.1%}"
    traces.append(figures.curve(priors, priors.values(), "baseline guess", hover, width=1.5, dash="dot"))
    ticks = [f"{at:.0f}" for at in priors]
    x = figures.log_axis("queries", tickvals=list(priors), ticktext=ticks)
    y = figures.axis("cell guessed right", tickformat=".0%", range=[-MARGIN, 1 + MARGIN])
    return figures.plot(traces, x, y)


def inflation_by_vehicles(run: RunResult, rows: pd.DataFrame, ends: tuple[float, float]) -> Figure | None:
    """
    Draw the inflation of an estimate against the number of corrupted vehicles, in one campaign.

    Parameters
    ----------
    run
        The finished run.
    rows
        Poisoning rows of `attacks.parquet`.
    ends
        Ends of the vertical axis, as powers of ten.

    Returns
    -------
    figure
        On logarithmic axes: full symbols for well-formed reports, open ones for crafted vectors, theory as lines;
        None where no value is above 0.
    """
    traces: list[Figure] = []
    positive = rows[rows["value"] > 0.0].sort_values("colluding", kind="stable")
    for mechanism in rows["mechanism"].unique():
        for metric in ("inflation", "crafted_inflation"):
            own = positive[(positive["mechanism"] == mechanism) & (positive["metric"] == metric)]
            if own.empty:
                continue
            crafted = metric == "crafted_inflation"
            traces += _theory_trace(run, mechanism, own["colluding"], own["theory"], thin=crafted)
            points = _points(run, mechanism, own, own["colluding"], "value")
            points["hovertemplate"] = "%{text}: %{y:,.1f} vehicles<extra></extra>"
            if crafted:
                points["marker"]["symbol"] += "-open"
                points["marker"] |= {"size": 13, "line": {"width": 1.5}}
            traces.append(points)
    if not traces:
        return None
    vehicles = sorted(rows["colluding"].astype(int).unique().tolist())
    x = figures.log_axis("corrupted vehicles", tickvals=vehicles, ticktext=[f"{count:,}" for count in vehicles])
    return figures.plot(traces, x, figures.log_axis("vehicles too many", range=list(ends)), left=84)


def _points(run: RunResult, mechanism: str, rows: pd.DataFrame, x: "pd.Series[float]", up: str) -> Figure:
    """Draw measured points; gains with their 95 % interval."""
    label, style = run.label(mechanism), figures.style(run, mechanism)
    drawn = figures.markers(x, rows[up], label, "%{text}: %{y:.1%}", style.colour, size=9, symbol=style.symbol)
    sources = zip(rows["name"], rows["coalition"], strict=True)
    drawn["text"] = [str(escape(f"{label}, {name} ({coalition})")) for name, coalition in sources]
    above, below = rows["gain_high"] - rows["gain"], rows["gain"] - rows["gain_low"]
    if np.isfinite(above + below).all():
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": above.clip(lower=0.0).tolist(),
            "arrayminus": below.clip(lower=0.0).tolist(),
            "thickness": 1.5,
            "width": 4,
        }
    return drawn


def _theory_trace(
    run: RunResult, mechanism: str, x: "pd.Series[float]", y: "pd.Series[float]", *, thin: bool = False
) -> list[Figure]:
    """Draw theory as a line through several values, as a dash for a single value, and not at all where unknown."""
    y = y.dropna()
    x = x[y.index]
    style = figures.style(run, mechanism)
    if len(y) > 1:
        return [figures.curve(x, y, "theory", None, style.colour, width=1 if thin else 2, dash=style.dash)]
    marker = {"symbol": "line-ew", "size": 16, "line": {"color": style.colour, "width": 2}}
    return [{"x": x.tolist(), "y": y.tolist(), "mode": "markers", "marker": marker, "hoverinfo": "skip"} for _ in y]

"""Report section: the attacks of coalitions and their success, with plots."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.reporting import figures
from simulator.reporting.attack_text import KINDS, coalition_sentences, guessed, poisoning_rows, query_rows
from simulator.reporting.deployments_section import campaign_words, deployment_records
from simulator.reporting.formatting import counted, number, percent, real, whole
from simulator.reporting.markup import Safe, data, definitions, details, element, figure, table, text
from simulator.reporting.run_reader import FinishedRun

Row = Mapping[str, Any]
Rows = Sequence[Row]
Figure = dict[str, Any]

STEP = 0.07
"""Horizontal distance between the points of neighbouring mechanisms at the same number of colluders."""
MARGIN = 0.04


def gain_by_colluders(run: FinishedRun, rows: Rows, ends: tuple[float, float]) -> Figure:
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
    mechanisms = list(dict.fromkeys(str(row["mechanism"]) for row in rows))
    traces: list[Figure] = []
    for index, mechanism in enumerate(mechanisms):
        own = [row for row in rows if row["mechanism"] == mechanism]
        aside = (index - (len(mechanisms) - 1) / 2) * STEP
        names = list(dict.fromkeys(str(row["name"]) for row in own))
        for name in names:
            of_name = sorted((row for row in own if row["name"] == name), key=lambda row: row["colluding"])
            traces += _theory_trace(run, mechanism, of_name, "colluding", aside, less="prior")
        traces.append(_points(run, mechanism, own, "colluding", "gain", aside))
    most = max(int(row["colluding"]) for row in rows)
    layout = {
        "xaxis": {
            "title": {"text": "parties that collude"},
            "tickvals": list(range(1, most + 1)),
            "range": [0.5, most + 0.5],
        },
        "yaxis": {"title": {"text": "gain over the prior"}, "tickformat": ".0%", "range": list(ends), "zeroline": True},
        "height": 330,
    }
    return {"data": traces, "layout": layout}


def success_by_queries(run: FinishedRun, rows: Rows) -> Figure:
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
    traces: list[Figure] = []
    for mechanism in dict.fromkeys(str(row["mechanism"]) for row in rows):
        own = sorted((row for row in rows if row["mechanism"] == mechanism), key=lambda row: row["value"])
        traces += _theory_trace(run, mechanism, own, "value", 0.0)
        traces.append(_points(run, mechanism, own, "value", "success", 0.0))
    priors = sorted({float(row["value"]): float(row["prior"]) for row in rows}.items())
    traces.append(
        {
            "x": [at for at, _ in priors],
            "y": [prior for _, prior in priors],
            "mode": "lines",
            "line": {"color": figures.INK, "width": 1.5, "dash": "dot"},
            "hovertemplate": "without looking %{y:.1%}<extra></extra>",
        }
    )
    asked = [at for at, _ in priors]
    layout = {
        "xaxis": {
            "title": {"text": "queries"},
            "type": "log",
            "tickvals": asked,
            "ticktext": [f"{at:.0f}" for at in asked],
        },
        "yaxis": {"title": {"text": "cell guessed right"}, "tickformat": ".0%", "range": [-MARGIN, 1 + MARGIN]},
        "height": 330,
    }
    return {"data": traces, "layout": layout}


def inflation_by_vehicles(run: FinishedRun, rows: Rows, ends: tuple[float, float]) -> Figure | None:
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
    for mechanism in dict.fromkeys(str(row["mechanism"]) for row in rows):
        for metric, open_symbol in (("inflation", ""), ("crafted_inflation", "-open")):
            own = sorted(
                (
                    row
                    for row in rows
                    if row["mechanism"] == mechanism and row["metric"] == metric and (real(row["value"]) or 0.0) > 0.0
                ),
                key=lambda row: row["colluding"],
            )
            if not own:
                continue
            traces += _theory_trace(run, mechanism, own, "colluding", 0.0, thin=bool(open_symbol))
            points = _points(run, mechanism, own, "colluding", "value", 0.0)
            points["marker"]["symbol"] += open_symbol
            points["hovertemplate"] = "%{text}: %{y:,.1f} vehicles<extra></extra>"
            if open_symbol:
                points["marker"] |= {"size": 13, "line": {"width": 1.5}}
            traces.append(points)
    if not traces:
        return None
    log: Figure = {"type": "log", "dtick": 1, "tickformat": ","}
    vehicles = sorted({int(row["colluding"]) for row in rows})
    layout = {
        "xaxis": {
            "type": "log",
            "tickvals": vehicles,
            "ticktext": [f"{count:,}" for count in vehicles],
            "title": {"text": "corrupted vehicles"},
        },
        "yaxis": {**log, "title": {"text": "vehicles too many"}, "range": list(ends)},
        "height": 330,
        "margin": {"l": 84, "r": 14, "t": 12, "b": 48},
    }
    return {"data": traces, "layout": layout}


def _points(run: FinishedRun, mechanism: str, rows: Rows, across: str, up: str, aside: float) -> Figure:
    """Draw measured points; gains with their 95 % interval."""
    drawn: Figure = {
        "x": [float(row[across]) + aside for row in rows],
        "y": [real(row[up]) for row in rows],
        "text": [_hover(run, mechanism, row) for row in rows],
        "mode": "markers",
        "marker": {
            "color": figures.colour(run, mechanism),
            "size": 9,
            "symbol": figures.SYMBOLS[figures.place(run, mechanism) % len(figures.SYMBOLS)],
        },
        "hovertemplate": "%{text}: %{y:.1%}<extra></extra>",
    }
    lows, highs, gains = ([real(row.get(name)) for row in rows] for name in ("gain_low", "gain_high", "gain"))
    known = [(low, high, gain) for low, high, gain in zip(lows, highs, gains, strict=True)]
    if all(None not in each for each in known):
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, (high or 0.0) - (gain or 0.0)) for _, high, gain in known],
            "arrayminus": [max(0.0, (gain or 0.0) - (low or 0.0)) for low, _, gain in known],
            "thickness": 1.5,
            "width": 4,
        }
    return drawn


def _hover(run: FinishedRun, mechanism: str, row: Row) -> str:
    return str(text(f"{run.label(mechanism)}, {row['name']} ({row['coalition']})"))


def _theory_trace(
    run: FinishedRun,
    mechanism: str,
    rows: Rows,
    across: str,
    aside: float,
    *,
    less: str | None = None,
    thin: bool = False,
) -> list[Figure]:
    """Draw theory as a line through several values, as a dash for a single value, and not at all where unknown."""
    known = [
        (float(row[across]) + aside, theory - (real(row[less]) or 0.0 if less else 0.0))
        for row in rows
        if (theory := real(row["theory"])) is not None
    ]
    if not known:
        return []
    paint = figures.colour(run, mechanism)
    drawn: Figure = {"x": [x for x, _ in known], "y": [y for _, y in known], "hoverinfo": "skip"}
    if len(known) == 1:
        drawn |= {"mode": "markers", "marker": {"symbol": "line-ew", "size": 16, "line": {"color": paint, "width": 2}}}
    else:
        dash = figures.DASHES[figures.place(run, mechanism) % len(figures.DASHES)]
        drawn |= {"mode": "lines", "line": {"color": paint, "width": 1 if thin else 2, "dash": dash}}
    return [drawn]


Figures = dict[str, Any]

MOST_ROWS = 30
"""A table of findings with more rows than this is collapsed at first."""
AIR = 0.15
"""Margin above and below the points of a logarithmic axis, as a power of ten, so that no point is cut off."""
SIGNS = ("●", "◆", "■", "▲", "✕", "✚", "★")


def attacks_section(run: FinishedRun, page: Figures) -> Safe:
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
    html
        The section; empty where the run has no attacks.
    """
    if run.attacks.empty:
        return Safe("")
    rows = [{str(key): value for key, value in row.items()} for row in run.attacks.to_dict("records")]
    order = list(deployment_records(run.run))
    rows.sort(key=lambda row: order.index(row["campaign"]) if row.get("campaign") in order else len(order))
    kinds = [(element("code", name), words) for name, words in KINDS.items() if any(r["attack"] == name for r in rows)]
    findings = _findings(run, rows)
    return element(
        "section",
        element("h2", "Attacks that were tried"),
        element(
            "p",
            "A coalition has what its members received, late reports too, what its corrupted vehicles know, and what "
            "is published, and nothing else. The baseline guess uses cell occupancy only; the gain is the increase in "
            "success rate over it.",
        ),
        definitions(kinds, class_="terms"),
        _gains(run, rows, page),
        _longitudinal(run, rows, page),
        _poisoning(run, rows, page),
        element("h3", "All findings"),
        details(counted(len(rows), "finding"), findings) if len(rows) > MOST_ROWS else findings,
        id="attacks",
    )


def _gains(run: FinishedRun, rows: Sequence[Row], page: Figures) -> Safe:
    """Show gains against the number of colluders, one panel per campaign."""
    shown = [row for row in rows if guessed(row)]
    if not shown:
        return Safe("")
    sentences = coalition_sentences(run, shown)
    prior = sorted({percent(real(row["prior"])) for row in shown})
    between = prior[0] if len(prior) == 1 else f"between {prior[0]} and {prior[-1]}"
    lows, highs = _known(shown, "gain_low", "gain"), _known(shown, "gain_high", "gain", "theory")
    ends = (min(0.0, *lows) - MARGIN, max(0.0, *highs) + MARGIN)
    drawn: list[Safe] = []
    for campaign in dict.fromkeys(str(row["campaign"]) for row in shown):
        own = [row for row in shown if row["campaign"] == campaign]
        caption = campaign_words(run, campaign)
        described = f"{caption}. Gain over the prior against the number of colluders. {sentences[campaign]}"
        drawn.append(_add(page, "gain", len(drawn), gain_by_colluders(run, own, ends), caption, described))
    return Safe(
        element("h3", "Gain against the number of colluders")
        + element("p", f"Without looking {between} of the guesses are right: the prior, and 0 on the vertical axis.")
        + element("ul", *(element("li", sentence) for sentence in sentences.values()))
        + _key(run, shown, "Points: this run, with 95 % intervals. Lines and dashes: theory.")
        + element("div", *drawn, class_="grid")
    )


def _known(rows: Sequence[Row], *columns: str) -> list[float]:
    return [0.0, *(value for row in rows for name in columns if (value := real(row.get(name))) is not None)]


def _longitudinal(run: FinishedRun, rows: Sequence[Row], page: Figures) -> Safe:
    """Show success against the number of queries, one panel per coalition and campaign."""
    measured = [row for row in rows if row["attack"] == "longitudinal" and _told(row, "campaign")]
    shown = [row for row in measured if real(row.get("success")) is not None and real(row.get("value")) is not None]
    if not shown:
        return Safe("")
    drawn: list[Safe] = []
    for campaign, name in dict.fromkeys((str(row["campaign"]), str(row["name"])) for row in shown):
        own = [row for row in shown if row["campaign"] == campaign and row["name"] == name]
        caption = f"{campaign_words(run, campaign)}; {name} ({own[0]['coalition']})"
        described = f"{caption}. Share of cells guessed right against the number of queries; the table has the numbers."
        drawn.append(_add(page, "queries", len(drawn), success_by_queries(run, own), caption, described))
    heads = [
        "Coalition, campaign and mechanism",
        "Queries",
        "Vehicles guessed",
        "Without looking",
        "Right",
        "In theory",
    ]
    return Safe(
        element("h3", "Asked again and again")
        + element(
            "p",
            "Vehicles that stay in one cell, guessed from all their reports of so many queries, as far as the reports "
            "can be told to be theirs. With more queries fewer vehicles have stayed.",
        )
        + _key(run, shown, "Points: this run, with 95 % intervals. Lines: theory. Dotted: the guess without looking.")
        + element("div", *drawn, class_="grid")
        + details("The same as a table", table("Success by queries", heads, query_rows(run, shown)))
    )


def _poisoning(run: FinishedRun, rows: Sequence[Row], page: Figures) -> Safe:
    """Show the inflation of estimates by corrupted vehicles, one panel per campaign."""
    shown = [row for row in rows if row["attack"] == "poisoning" and real(row.get("value")) is not None]
    if not shown:
        return Safe("")
    drawn: list[Safe] = []
    values = [value for value in _known(shown, "value", "theory") if value > 0]
    if len({row["colluding"] for row in shown}) > 1 and values:
        ends = (math.floor(math.log10(min(values)) - AIR), math.ceil(math.log10(max(values)) + AIR))
        for campaign in dict.fromkeys(str(row["campaign"]) for row in shown):
            spec = inflation_by_vehicles(run, [row for row in shown if row["campaign"] == campaign], ends)
            if spec is not None:
                caption = campaign_words(run, campaign)
                described = f"{caption}. Inflation against corrupted vehicles; the table has the numbers."
                drawn.append(_add(page, "poisoned", len(drawn), spec, caption, described))
    heads = [
        "Campaign and mechanism",
        "Corrupted vehicles",
        "Of those asked",
        "In the right form",
        "In theory",
        "Crafted",
        "In theory",
    ]
    body = table("By how many vehicles the estimate rose", heads, poisoning_rows(run, shown))
    return Safe(
        element("h3", "Poisoned estimates")
        + element(
            "p",
            "Corrupted vehicles send what makes a cell look fuller. In the right form, a report is one that an honest "
            "device might have sent; crafted, it is any number, where no server can read it. Range proofs stop the "
            "second and not the first.",
        )
        + (
            _key(
                run, shown, "Full: reports in the right form. Open: crafted. Lines: theory. Both axes are logarithmic."
            )
            + element("div", *drawn, class_="grid")
            if drawn
            else ""
        )
        + (details("The same as a table", body) if drawn else body)
    )


def _add(page: Figures, group: str, index: int, spec: Figures, caption: str, described: str) -> Safe:
    key = f"attack-{group}-{index}"
    page["figures"][key] = spec
    return figure(key, caption, described=described)


def _key(run: FinishedRun, rows: Sequence[Row], words: str) -> Safe:
    """Return the legend: colour and symbol of each mechanism."""
    names = dict.fromkeys(str(row["mechanism"]) for row in rows)
    signs = []
    for name in names:
        sign = SIGNS[figures.place(run, name) % len(SIGNS)]
        mark = element("span", sign, style=f"color:{figures.colour(run, name)}", aria_hidden="true")
        signs.append(element("span", mark, f" {run.label(name)} ", class_="sign"))
    return element("p", *signs, words, class_="note")


def _findings(run: FinishedRun, rows: Sequence[Row]) -> Safe:
    several = len({row.get("campaign") for row in rows}) > 1
    body = []
    for row in rows:
        other = real(row.get("value"))
        words = [_told(row, "metric").replace("_", " "), "" if other is None else number(other), _told(row, "unit")]
        ends = [real(row.get(name)) for name in ("gain_low", "gain_high")]
        interval = "–" if None in ends else " to ".join(number(100 * end) for end in ends if end is not None)
        body.append(
            [
                row["name"],
                row["attack"],
                _told(row, "coalition") or "–",
                *([row.get("campaign")] if several else []),
                run.label(str(row["mechanism"])),
                data(real(row.get("trials")), whole(real(row.get("trials")))),
                *(data(real(row.get(name)), percent(real(row.get(name)))) for name in ("prior", "success")),
                interval,
                _theory(row),
                data(real(row.get("epsilon_lower")), number(real(row.get("epsilon_lower")))),
                " ".join(word for word in words if word) or "–",
            ]
        )
    heads = ["Name", "Attack", "Coalition", *(["Campaign"] if several else []), "Mechanism", "Guesses"]
    heads += ["Without looking", "Right", "Gain, points", "In theory", "ε at least", "Other measure"]
    return table("What the attacks found", heads, body, class_="findings")


def _told(row: Row, column: str) -> str:
    """Return the text in a column of a row; the empty string where it is null."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def _theory(row: Row) -> Safe:
    """Format theory in the unit of the finding: a rate for guesses, the value for other measures."""
    theory = real(row.get("theory"))
    return data(theory, percent(theory) if real(row.get("success")) is not None else number(theory))

"""Report section and terminal lines: the attacks of coalitions and their success, with plots."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import escape

from scenarios.kinds import names_of
from simulator.reporting import figures
from simulator.reporting.deployments_section import campaign_words
from simulator.reporting.figures import Drawn, Figure, Page
from simulator.reporting.formatting import number, percent, real
from simulator.reporting.run_reader import FinishedRun

Row = Mapping[str, Any]
Rows = Sequence[Row]

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
STEP = 0.07
"""Horizontal distance between the points of neighbouring mechanisms at the same number of colluders."""
MARGIN = 0.04
AIR = 0.15
"""Margin above and below the points of a logarithmic axis, as a power of ten, so that no point is cut off."""
SIGNS = ("●", "◆", "■", "▲", "✕", "✚", "★")


def guessed(row: Row) -> bool:
    """Return whether a finding is a coalition's guess of a cell from what it received in one query."""
    known = all(real(row.get(name)) is not None for name in ("gain", "colluding", "prior"))
    return known and row["attack"] in GUESS_KINDS and not text_of(row, "metric")


def significant(row: Row) -> bool:
    """Return whether a gain is significant: its 95 % interval lies above 0."""
    return (real(row.get("gain_low")) or 0.0) > 0.0


def text_of(row: Row, column: str) -> str:
    """Return the text in a column of a row; the empty string where it is null."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def records(attacks: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of `attacks.parquet` by column."""
    return [{str(key): value for key, value in row.items()} for row in attacks.to_dict("records")]


def _grouped(rows: Rows, column: str) -> Iterator[tuple[str, list[Row]]]:
    """Yield each text in a column and its rows, in the order of their first appearance."""
    for name in dict.fromkeys(str(row[column]) for row in rows):
        yield name, [row for row in rows if str(row[column]) == name]


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
    rows = records(attacks)
    kinds = [*KINDS, *sorted({str(row["attack"]) for row in rows} - set(KINDS))]
    lines = []
    for kind in kinds:
        own = [row for row in rows if row["attack"] == kind]
        for metric in dict.fromkeys(_metric(row) for row in own):
            measured = [row for row in own if _metric(row) == metric]
            name = ", ".join(word.replace("_", " ") for word in (kind, metric) if word)
            summary = _rates(measured) or _largest(measured)
            lines += [f"{name}: {summary}"] if summary else []
    return lines


def _metric(row: Row) -> str:
    """Return the quantity measured or guessed other than the cell; the number of queries is not such a quantity."""
    metric = text_of(row, "metric")
    return metric if metric != "queries" else ""


def _rates(rows: Rows) -> str:
    rates = [row for row in rows if real(row.get("success")) is not None]
    better = [row for row in rates if significant(row)]
    idle = len(rates) - len(better)
    words = [f"{idle} of {len(rates)} had no significant gain"] if idle else []
    if better:
        best = max(better, key=lambda row: real(row["gain"]) or 0.0)
        rate, prior = percent(real(best["success"])), percent(real(best["prior"]))
        words.append(f"the best: {rate} right, {prior} by the baseline guess ({_source(best)})")
    return "; ".join(words)


def _largest(rows: Rows) -> str:
    values = [row for row in rows if real(row.get("value")) is not None]
    if not values:
        return ""
    most = max(values, key=lambda row: row["value"])
    return f"at most {number(real(most['value']))} {most.get('unit') or ''} ({_source(most)})"


def _source(row: Row) -> str:
    return ", ".join(filter(None, (text_of(row, name) for name in ("coalition", "campaign", "mechanism"))))


def attacks_section(run: FinishedRun, page: Page) -> dict[str, object] | None:
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
    rows = records(run.attacks)
    if not rows:
        return None
    order = list(run.deployments)
    rows.sort(key=lambda row: order.index(row["campaign"]) if row.get("campaign") in order else len(order))
    found = {row["attack"] for row in rows}
    return {
        "kinds": [(name, words) for name, words in KINDS.items() if name in found],
        "gains": _gains(run, [row for row in rows if guessed(row)], page),
        "longitudinal": _longitudinal(run, rows, page),
        "poisoning": _poisoning(run, rows, page),
        "several": len({row.get("campaign") for row in rows}) > 1,
        "rows": [row | _words(row) for row in rows],
    }


def _words(row: Row) -> dict[str, object]:
    """Return a finding's coalition, the interval of its gain and its other measure, in words, and its theory's unit."""
    low, high = (real(row.get(name)) for name in ("gain_low", "gain_high"))
    value = real(row.get("value"))
    words = [text_of(row, "metric").replace("_", " "), "" if value is None else number(value), text_of(row, "unit")]
    return {
        "coalition": text_of(row, "coalition") or "–",
        "interval": "–" if low is None or high is None else f"{number(100 * low)} to {number(100 * high)}",
        "measure": " ".join(filter(None, words)) or "–",
        "theory_format": "number" if real(row.get("success")) is None else "percent",
    }


def _legend(run: FinishedRun, rows: Rows) -> list[tuple[str, str, str]]:
    """Return the sign, the colour and the label of each mechanism."""
    names = dict.fromkeys(str(row["mechanism"]) for row in rows)
    return [(SIGNS[figures.place(run, n) % len(SIGNS)], figures.colour(run, n), run.label(n)) for n in names]


def _gains(run: FinishedRun, rows: Rows, page: Page) -> dict[str, object] | None:
    """Show gains against the number of colluders, one panel per campaign."""
    if not rows:
        return None
    drawn: list[Drawn] = []
    sentences = []
    prior = sorted({percent(real(row["prior"])) for row in rows})
    lows, highs = _known(rows, "gain_low", "gain"), _known(rows, "gain_high", "gain", "theory")
    ends = (min(lows) - MARGIN, max(highs) + MARGIN)
    for campaign, own in _grouped(rows, "campaign"):
        caption, sentence = campaign_words(run, campaign), coalition_sentence(run, campaign, own)
        sentences.append(sentence)
        described = f"{caption}. Gain over the prior against the number of colluders. {sentence}"
        drawn.append(page.add(f"attack-gain-{len(drawn)}", gain_by_colluders(run, own, ends), caption, described))
    between = prior[0] if len(prior) == 1 else f"between {prior[0]} and {prior[-1]}"
    return {"prior": between, "sentences": sentences, "legend": _legend(run, rows), "figures": drawn}


def coalition_sentence(run: FinishedRun, campaign: str, rows: Rows) -> str:
    """
    Return a sentence that states which coalitions had a significant gain and which had none.

    Parameters
    ----------
    run
        The finished run.
    campaign
        Its campaign.
    rows
        Findings in this campaign that are guesses of a cell.

    Returns
    -------
    sentence
        With the gains in points, by mechanism.
    """
    parts = []
    for coalition, found in sorted(_grouped(rows, "coalition"), key=lambda pair: (pair[0].count(","), pair[0])):
        better = sorted(gain for row in found if significant(row) and (gain := real(row["gain"])) is not None)
        if better:
            low, high = number(100 * better[0]), number(100 * better[-1])
            points = f"{low} points" if low == high else f"{low} to {high} points, by mechanism"
            parts.append(f"{coalition} gained {points}")
        else:
            parts.append(f"{coalition} had no significant gain")
    return f"{campaign_words(run, campaign)}. {'; '.join(parts)}."


def _known(rows: Rows, *columns: str) -> list[float]:
    return [0.0, *(value for row in rows for name in columns if (value := real(row.get(name))) is not None)]


def _longitudinal(run: FinishedRun, rows: Rows, page: Page) -> dict[str, object] | None:
    """Show success against the number of queries, one panel per coalition and campaign."""
    measured = [row for row in rows if row["attack"] == "longitudinal" and text_of(row, "campaign")]
    shown = [row for row in measured if real(row.get("success")) is not None and real(row.get("value")) is not None]
    if not shown:
        return None
    drawn: list[Drawn] = []
    for campaign, name in dict.fromkeys((str(row["campaign"]), str(row["name"])) for row in shown):
        own = [row for row in shown if row["campaign"] == campaign and row["name"] == name]
        caption = f"{campaign_words(run, campaign)}; {name} ({own[0]['coalition']})"
        described = f"{caption}. Share of cells guessed right against the number of queries; the table has the numbers."
        drawn.append(page.add(f"attack-queries-{len(drawn)}", success_by_queries(run, own), caption, described))
    return {"rows": shown, "legend": _legend(run, shown), "figures": drawn}


def _poisoning(run: FinishedRun, rows: Rows, page: Page) -> dict[str, object] | None:
    """Show the inflation of estimates by corrupted vehicles, one panel per campaign."""
    shown = [row for row in rows if row["attack"] == "poisoning" and real(row.get("value")) is not None]
    if not shown:
        return None
    drawn: list[Drawn] = []
    values = [value for value in _known(shown, "value", "theory") if value > 0]
    if len({row["colluding"] for row in shown}) > 1 and values:
        ends = (math.floor(math.log10(min(values)) - AIR), math.ceil(math.log10(max(values)) + AIR))
        for campaign, own in _grouped(shown, "campaign"):
            figure = inflation_by_vehicles(run, own, ends)
            if figure is not None:
                caption = campaign_words(run, campaign)
                described = f"{caption}. Inflation against corrupted vehicles; the table has the numbers."
                drawn.append(page.add(f"attack-poisoned-{len(drawn)}", figure, caption, described))
    return {"rows": _poisoning_rows(run, shown), "legend": _legend(run, shown), "figures": drawn}


def _poisoning_rows(run: FinishedRun, rows: Rows) -> list[dict[str, object]]:
    """Return the rows of a table of poisoning findings, with well-formed and crafted reports side by side."""
    found: dict[tuple[str, str, str, int], dict[str, Row]] = {}
    for row in rows:
        key = (str(row["campaign"]), str(row["mechanism"]), str(row["name"]), int(row["colluding"]))
        found.setdefault(key, {})[str(row["metric"])] = row
    body: list[dict[str, object]] = []
    for (campaign, mechanism, _, vehicles), by_metric in found.items():
        asked = run.mean_asked.get((campaign, mechanism))
        pairs = [by_metric.get(metric, {}) for metric in ("inflation", "crafted_inflation")]
        body.append(
            {
                "label": f"{campaign}, {run.label(mechanism)}",
                "vehicles": vehicles,
                "share": vehicles / asked if asked else None,
                "values": [row.get(name) for row in pairs for name in ("value", "theory")],
            }
        )
    return body


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
    mechanisms = dict(_grouped(rows, "mechanism"))
    traces: list[Figure] = []
    for index, (mechanism, own) in enumerate(mechanisms.items()):
        aside = (index - (len(mechanisms) - 1) / 2) * STEP
        for _, of_name in _grouped(own, "name"):
            ordered = sorted(of_name, key=lambda row: row["colluding"])
            traces += _theory_trace(run, mechanism, ordered, "colluding", aside, less="prior")
        traces.append(_points(run, mechanism, own, "colluding", "gain", aside))
    most = max(int(row["colluding"]) for row in rows)
    x = figures.axis("parties that collude", tickvals=list(range(1, most + 1)), range=[0.5, most + 0.5])
    y = figures.axis("gain over the prior", tickformat=".0%", range=list(ends), zeroline=True)
    return figures.plot(traces, x, y)


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
    for mechanism, of_mechanism in _grouped(rows, "mechanism"):
        own = sorted(of_mechanism, key=lambda row: row["value"])
        traces += _theory_trace(run, mechanism, own, "value", 0.0)
        traces.append(_points(run, mechanism, own, "value", "success", 0.0))
    priors = dict(sorted((float(row["value"]), float(row["prior"])) for row in rows))
    hover = "baseline guess %{y:.1%}"
    traces.append(figures.curve(priors, priors.values(), "baseline guess", hover, width=1.5, dash="dot"))
    ticks = [f"{at:.0f}" for at in priors]
    x = figures.log_axis("queries", tickvals=list(priors), ticktext=ticks)
    y = figures.axis("cell guessed right", tickformat=".0%", range=[-MARGIN, 1 + MARGIN])
    return figures.plot(traces, x, y)


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
    positive = [row for row in rows if (real(row["value"]) or 0.0) > 0.0]
    for mechanism, of_mechanism in _grouped(positive, "mechanism"):
        for metric in ("inflation", "crafted_inflation"):
            own = sorted((r for r in of_mechanism if r["metric"] == metric), key=lambda row: row["colluding"])
            if not own:
                continue
            crafted = metric == "crafted_inflation"
            traces += _theory_trace(run, mechanism, own, "colluding", 0.0, thin=crafted)
            points = _points(run, mechanism, own, "colluding", "value", 0.0)
            points["hovertemplate"] = "%{text}: %{y:,.1f} vehicles<extra></extra>"
            if crafted:
                points["marker"]["symbol"] += "-open"
                points["marker"] |= {"size": 13, "line": {"width": 1.5}}
            traces.append(points)
    if not traces:
        return None
    vehicles = sorted({int(row["colluding"]) for row in rows})
    ticks = [f"{count:,}" for count in vehicles]
    x = figures.log_axis("corrupted vehicles", tickvals=vehicles, ticktext=ticks)
    return figures.plot(traces, x, figures.log_axis("vehicles too many", range=list(ends)), left=84)


def _points(run: FinishedRun, mechanism: str, rows: Rows, across: str, up: str, aside: float) -> Figure:
    """Draw measured points; gains with their 95 % interval."""
    at, heights = [float(row[across]) + aside for row in rows], [real(row[up]) for row in rows]
    symbol = figures.SYMBOLS[figures.place(run, mechanism) % len(figures.SYMBOLS)]
    label, paint = run.label(mechanism), figures.colour(run, mechanism)
    drawn = figures.markers(at, heights, label, "%{text}: %{y:.1%}", paint, size=9, symbol=symbol)
    drawn["text"] = [str(escape(f"{label}, {row['name']} ({row['coalition']})")) for row in rows]
    lows, highs, gains = ([real(row.get(name)) for row in rows] for name in ("gain_low", "gain_high", "gain"))
    if None not in (*lows, *highs, *gains):
        drawn["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, (high or 0.0) - (gain or 0.0)) for high, gain in zip(highs, gains, strict=True)],
            "arrayminus": [max(0.0, (gain or 0.0) - (low or 0.0)) for low, gain in zip(lows, gains, strict=True)],
            "thickness": 1.5,
            "width": 4,
        }
    return drawn


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
    x, y = [x for x, _ in known], [y for _, y in known]
    paint, dash = figures.colour(run, mechanism), figures.DASHES[figures.place(run, mechanism) % len(figures.DASHES)]
    if len(known) > 1:
        return [figures.curve(x, y, "theory", None, paint, width=1 if thin else 2, dash=dash)]
    marker = {"symbol": "line-ew", "size": 16, "line": {"color": paint, "width": 2}}
    return [{"x": x, "y": y, "mode": "markers", "marker": marker, "hoverinfo": "skip"}] if known else []

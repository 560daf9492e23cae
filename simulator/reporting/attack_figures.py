"""What attacks found, as plots: gain by colluders, success by queries, inflation by corrupted vehicles."""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.reporting import figures
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import text
from simulator.reporting.numerals import real

Row = Mapping[str, Any]
Rows = Sequence[Row]
Figure = dict[str, Any]

STEP = 0.07
"""Mechanisms stand beside one another at the same number of colluders, so far apart."""
MARGIN = 0.04


def gain_by_colluders(run: FinishedRun, rows: Rows, ends: tuple[float, float]) -> Figure:
    """
    Draw the gains of one campaign's coalitions against how many parties they have.

    Parameters
    ----------
    run
        The finished run.
    rows
        Of `attacks.parquet`, with a gain.
    ends
        The vertical range.

    Returns
    -------
    figure
        Points with 95 % intervals, and theory: lines where a coalition grew, dashes elsewhere.
    """
    mechanisms = list(dict.fromkeys(str(row["mechanism"]) for row in rows))
    traces: list[Figure] = []
    for index, mechanism in enumerate(mechanisms):
        own = [row for row in rows if row["mechanism"] == mechanism]
        aside = (index - (len(mechanisms) - 1) / 2) * STEP
        names = list(dict.fromkeys(str(row["name"]) for row in own))
        for name in names:
            of_name = sorted((row for row in own if row["name"] == name), key=lambda row: row["colluding"])
            traces += _theory(run, mechanism, of_name, "colluding", aside, less="prior")
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
    Draw how often one coalition's guesses were right against how many queries they were made from.

    Parameters
    ----------
    run
        The finished run.
    rows
        Of `attacks.parquet`: longitudinal ones, whose `value` is the number of queries.

    Returns
    -------
    figure
        Points with 95 % intervals, theory as lines, and the prior.
    """
    traces: list[Figure] = []
    for mechanism in dict.fromkeys(str(row["mechanism"]) for row in rows):
        own = sorted((row for row in rows if row["mechanism"] == mechanism), key=lambda row: row["value"])
        traces += _theory(run, mechanism, own, "value", 0.0)
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
    Draw how far corrupted vehicles moved an estimate against how many they were, in one campaign.

    Parameters
    ----------
    run
        The finished run.
    rows
        Of `attacks.parquet`: poisoning ones.
    ends
        The vertical range, as powers of ten.

    Returns
    -------
    figure
        On logarithmic axes: full symbols for well-formed reports, open ones for crafted vectors, theory as lines;
        None where there is nothing above 0.
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
            traces += _theory(run, mechanism, own, "colluding", 0.0, thin=bool(open_symbol))
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
    """Draw measured points; rates with their 95 % interval."""
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


def _theory(
    run: FinishedRun,
    mechanism: str,
    rows: Rows,
    across: str,
    aside: float,
    *,
    less: str | None = None,
    thin: bool = False,
) -> list[Figure]:
    """Draw theory as a line through several numbers, as a dash where there is one; nothing where it is not known."""
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

"""Drawings as plotly.js reads them, what a paper published drawn apart from what was computed."""

import math
from collections.abc import Iterable
from typing import Any

from simulator.reporting.figures import COLOURS, DASHES, SYMBOLS
from simulator.reporting.markup import finite, text
from simulator.reproduction.entry import Curve, Drawing, Value
from simulator.reproduction.shown import shown

PUBLISHED = "#3d4852"
SIMULATED = ", simulated"
"""How the name of a curve ends that shows by simulation what another shows by theory."""
MANY = 6
"""Beyond so many curves with a simulated one beside them the legend names theory's alone."""


def plot(drawing: Drawing) -> dict[str, Any]:
    """Draw a panel.

    Parameters
    ----------
    drawing
        Its curves and axes.

    Returns
    -------
    figure
        Traces and layout. Published curves are dark, hollow and dashed; computed ones filled and coloured.
    """
    ours = [curve for curve in drawing.curves if not curve.published]
    theirs = [curve for curve in drawing.curves if curve.published]
    named = any(isinstance(x, str) for curve in drawing.curves for x in curve.x)
    # Side by side over each name: published points then stand on the bars they belong to, in the same order.
    apart = named and all(curve.kind != "line" for curve in drawing.curves)
    traces: list[dict[str, Any]] = []
    for curve in drawing.curves:
        group = theirs if curve.published else ours
        names = list(dict.fromkeys(_family(other) for other in group))
        made = _traces(curve, names.index(_family(curve)))
        if apart:
            place = [other for other in drawing.curves if other.kind == curve.kind].index(curve)
            made = [{**trace, "offsetgroup": str(place), "alignmentgroup": "names"} for trace in made]
        if curve.name.endswith(SIMULATED) and len(names) > MANY and _family(curve) in {c.name for c in group}:
            made = [{**trace, "showlegend": False} for trace in made]
        traces += made
    heights = [y for curve in drawing.curves for y in (*curve.y, *(curve.low or ()), *(curve.high or ()))]
    layout: dict[str, Any] = {
        "xaxis": _axis(drawing.x_title, [x for curve in drawing.curves for x in curve.x], log=drawing.log_x),
        "yaxis": _axis(drawing.y_title, heights, log=drawing.log_y),
        "height": 400 + 22 * max(0, sum(trace.get("showlegend", True) for trace in traces) - 4),
        "showlegend": True,
        "barmode": "group",
        "bargap": 0.25,
        "margin": {"l": 70, "r": 24, "t": 12, "b": 52},
    }
    if named:
        layout["xaxis"]["type"] = "category"
    if apart:
        bars = any(curve.kind == "bars" for curve in drawing.curves)
        layout |= {"scattermode": "group", "scattergap": layout["bargap"] if bars else 0.7}
    return {"data": traces, "layout": layout}


def _family(curve: Curve) -> str:
    """Return the name under which theory and simulation of one thing are drawn alike."""
    return curve.name.removesuffix(SIMULATED)


def _axis(title: str, values: Iterable[Value], *, log: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": str(text(title)), "standoff": 10}, "automargin": True}
    if not log:
        return axis
    axis |= {"type": "log", "exponentformat": "power"}
    decades = [math.log10(value) for value in values if isinstance(value, int | float) and 0 < value < math.inf]
    if not decades:
        return axis
    low, high = min(decades), max(decades)
    if (wide := high - low) >= 2.5:
        axis["dtick"] = math.ceil(wide / 8)
        return axis
    # Plotly writes the ticks between decades as lone digits: over few decades they are written out instead.
    steps = (1, 1.5, 2, 3, 4, 5, 7) if wide < 1 else (1, 2, 5)
    powers = range(math.floor(low) - 1, math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return axis | {"tickvals": ticks, "ticktext": [shown(tick) for tick in ticks]}


def _traces(curve: Curve, place: int) -> list[dict[str, Any]]:
    paint = PUBLISHED if curve.published else COLOURS[place % len(COLOURS)]
    name = str(text(f"{curve.name} (published)" if curve.published else curve.name))
    x = list(curve.x)
    common = {"x": x, "y": finite(curve.y), "name": name, "hovertemplate": "%{x}: %{y:.4g}<extra>" + name + "</extra>"}
    symbol = SYMBOLS[place % len(SYMBOLS)]
    if curve.kind == "bars":
        fill = "rgba(0,0,0,0)" if curve.published else paint
        marker: dict[str, Any] = {"color": fill, "line": {"color": paint, "width": 1.8}}
        return [{**common, "type": "bar", "marker": marker, **_error_bars(curve)}]
    if curve.kind == "points":
        marker = {"color": paint, "size": 10, "symbol": f"{symbol}-open" if curve.published else symbol}
        marker["line"] = {"width": 2 if curve.published else 0, "color": paint}
        return [{**common, "type": "scatter", "mode": "markers", "marker": marker, **_error_bars(curve)}]
    line = {"color": paint, "width": 2.2, "dash": "dash" if curve.published else DASHES[place % len(DASHES)]}
    trace: dict[str, Any] = {**common, "type": "scatter", "mode": "lines", "line": line}
    if curve.published:
        trace |= {"mode": "lines+markers", "marker": {"symbol": f"{symbol}-open", "size": 8, "color": paint}}
    if curve.low is None or curve.high is None:
        return [trace]
    band = {
        "x": [*x, *x[::-1]],
        "y": finite([*curve.high, *list(curve.low)[::-1]]),
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": _faint(paint),
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [band, trace]


def _error_bars(curve: Curve) -> dict[str, Any]:
    if curve.low is None or curve.high is None:
        return {}
    known = [y if y is not None else 0.0 for y in curve.y]
    return {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": finite([high - y for high, y in zip(curve.high, known, strict=True)]),
            "arrayminus": finite([y - low for low, y in zip(curve.low, known, strict=True)]),
            "color": "#1f2933",
            "thickness": 1.3,
            "width": 4,
        }
    }


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"

"""Page of reproductions: published values beside computed ones, with plots, in one HTML file that opens offline."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from simulator.reporting.figures import Style, faint, styles_of
from simulator.reporting.report import environment, render_page, write_document
from simulator.reproduction.data import without_folder
from simulator.reproduction.published_results import CITATIONS, OWN, Curve, Drawing, Entry, Reproduction, Value
from simulator.results.formatting import MISSING, finite, number, scientific, whole


def shown(value: Value) -> str:
    """Return a value as text: four significant digits of a float, every digit of an integer.

    Parameters
    ----------
    value
        A value of a row; None is written as a dash.

    Returns
    -------
    text
        For example ``1,234``, ``24.39``, ``6.83 × 10⁻¹⁰``, ``∞``, ``yes``.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if value is None or value == 0 or math.isinf(value):
        return MISSING if value is None else number(value)
    if isinstance(value, int):
        return whole(value)
    if not 1e-3 <= abs(value) < 1e7:
        return scientific(value, decimals=2)
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


PUBLISHED = "#3d4852"
SIMULATED = ", simulated"
"""Suffix in the name of a curve that shows by simulation what another curve shows by theory."""
MANY = 6
"""With more curves than this, the legend omits a simulated curve that accompanies a theoretical one."""


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
    # Bars and points are placed side by side over each name, so that published points lie on the bars they belong to.
    apart = named and all(curve.kind != "line" for curve in drawing.curves)
    traces: list[dict[str, Any]] = []
    for curve in drawing.curves:
        group = theirs if curve.published else ours
        names = list(dict.fromkeys(_family(other) for other in group))
        made = _traces(curve, styles_of(names)[_family(curve)])
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
    """Return the common name of a theoretical curve and its simulation, which are drawn in the same style."""
    return curve.name.removesuffix(SIMULATED)


def _axis(title: str, values: Iterable[Value], *, log: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": escape(title), "standoff": 10}, "automargin": True}
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
    # Over few decades, values between the powers of ten have ticks too.
    steps = (1, 1.5, 2, 3, 4, 5, 7) if wide < 1 else (1, 2, 5)
    powers = range(math.floor(low) - 1, math.ceil(high) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return axis | {"tickvals": ticks, "ticktext": [shown(tick) for tick in ticks]}


def _traces(curve: Curve, style: Style) -> list[dict[str, Any]]:
    paint = PUBLISHED if curve.published else style.colour
    name = escape(f"{curve.name} (published)" if curve.published else curve.name)
    x = list(curve.x)
    common = {"x": x, "y": finite(curve.y), "name": name, "hovertemplate": "%{x}: %{y:.4g}<extra>" + name + "</extra>"}
    if curve.kind == "bars":
        fill = "rgba(0,0,0,0)" if curve.published else paint
        marker: dict[str, Any] = {"color": fill, "line": {"color": paint, "width": 1.8}}
        return [{**common, "type": "bar", "marker": marker, **_error_bars(curve)}]
    if curve.kind == "points":
        marker = {"color": paint, "size": 10, "symbol": f"{style.symbol}-open" if curve.published else style.symbol}
        marker["line"] = {"width": 2 if curve.published else 0, "color": paint}
        return [{**common, "type": "scatter", "mode": "markers", "marker": marker, **_error_bars(curve)}]
    line = {"color": paint, "width": 2.2, "dash": "dash" if curve.published else style.dash}
    trace: dict[str, Any] = {**common, "type": "scatter", "mode": "lines", "line": line}
    if curve.published:
        trace |= {"mode": "lines+markers", "marker": {"symbol": f"{style.symbol}-open", "size": 8, "color": paint}}
    if curve.low is None or curve.high is None:
        return [trace]
    band = {
        "x": [*x, *x[::-1]],
        "y": finite([*curve.high, *list(curve.low)[::-1]]),
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": faint(paint),
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


Done: TypeAlias = Sequence[tuple[Entry, Reproduction]]


def build_page(done: Done, *, seed: int) -> str:
    """Build the page of one or several entries.

    Parameters
    ----------
    done
        Entries with their results, in the order shown.
    seed
        Seed of everything that was drawn.

    Returns
    -------
    html
        One page with its style, scripts and data inside; it loads nothing.
    """
    here = resources.files("simulator.reproduction")
    title = done[0][0].title if len(done) == 1 else "The founding papers’ tables and figures, computed anew"
    figures = {
        f"{entry.name}-{place}": plot(drawing)
        for entry, reproduction in done
        for place, drawing in enumerate(reproduction.drawings, start=1)
    }
    # This project's own tables compare theory with simulation and have no published values.
    of_papers = [reproduction.counts for entry, reproduction in done if entry.paper != OWN]
    values = {
        "heading": title,
        "seed": seed,
        "done": done,
        "counts": [sum(numbers) for numbers in zip((0, 0, 0), *of_papers, strict=True)],
        "citations": CITATIONS,
        "shown": shown,
        "without_folder": without_folder,
    }
    template = environment().from_string(here.joinpath("page.html.j2").read_text(encoding="utf-8"))
    style = here.joinpath("page.css").read_text(encoding="utf-8")
    return render_page(template, f"{title} · crowdveil", {"figures": figures}, values, style=style)


def write_page(done: Done, path: Path, *, seed: int) -> Path:
    """Build the page and write it atomically; its folder is created if it does not exist.

    Raises
    ------
    OSError
        If the page cannot be written to `path`.
    """
    return write_document(build_page(done, seed=seed), path)

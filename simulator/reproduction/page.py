"""Page of reproductions: published values beside computed ones, with plots, in one HTML file that opens offline."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from simulator.reporting.figures import COLOURS, DASHES, SYMBOLS
from simulator.reporting.markup import Safe, element, figure, finite, table, text
from simulator.reporting.report import build_document, write_document
from simulator.reproduction.data import without_folder
from simulator.reproduction.entry import CITATIONS, Curve, Drawing, Entry, Reproduction, Row, Value
from simulator.reproduction.formatting import counts, shown, tally, verdict

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
    """Return the common name of a theoretical curve and its simulation, which are drawn in the same style."""
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
    # Plotly labels the ticks between decades with single digits; over few decades the full values are shown instead.
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


Done: TypeAlias = Sequence[tuple[Entry, Reproduction]]

STYLE = """
.rows tbody th { min-width: 210px; font-weight: 500; }
.rows td, .rows th { text-align: left; }
.rows :is(td, th):nth-child(2), .rows :is(td, th):nth-child(3) { text-align: right; min-width: 92px; }
.rows td:nth-child(4) { white-space: nowrap; }
.rows td:last-child { min-width: 300px; color: var(--soft); }
.index td, .index th { text-align: left; }
.index td:nth-child(n+4), .index th:nth-child(n+4) { text-align: right; }
.index a { color: var(--accent); }
.badge.agrees { color: #0b5c45; background: #e6f4ef; }
.badge.differs { color: #8a2b06; background: #fdeee6; border-width: 2px; }
.badge.new { color: #4a4a4a; background: #eeeeee; border-style: dashed; }
.cited { color: var(--soft); margin-bottom: .4rem; }
.tally { font-weight: 600; }
.findings { border-left: 3px solid #e0a96d; padding-left: 16px; margin: 1rem 0 1.4rem; }
.findings h3 { margin-top: 0; }
.panel h3 { margin: 1.4rem 0 .2rem; }
section.entry { border-top: 1px solid var(--line); margin-top: 44px; padding-top: 30px; }
nav .name { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: .8rem; }
"""


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
    page: dict[str, Any] = {"figures": {}}
    sections = [_section(entry, reproduction, page, alone=len(done) == 1) for entry, reproduction in done]
    names = (element("a", entry.name, href=f"#{entry.name}", class_="name") for entry, _ in done)
    title = done[0][0].title if len(done) == 1 else "The founding papers’ tables and figures, computed anew"
    body = (
        _header(title, done, seed)
        + (element("nav", *names, aria_label="Entries") if len(done) > 1 else "")
        + '<noscript><p class="note">The plots need JavaScript; the tables do not.</p></noscript>'
        + element("main", _index(done) if len(done) > 1 else "", *sections)
        + element("footer", element("p", f"Made by crowdveil, seed {seed}; it loads nothing from any network."))
    )
    return build_document(f"{title} · crowdveil", body, page, style=STYLE)


def write_page(done: Done, path: Path, *, seed: int) -> Path:
    """Build the page and write it atomically; its folder is created if it does not exist.

    Raises
    ------
    OSError
        If the page cannot be written to `path`.
    """
    return write_document(build_page(done, seed=seed), path)


def _header(title: str, done: Done, seed: int) -> Safe:
    # crowdveil's own tables compare theory with simulation and have no published values.
    papers = [counts(reproduction) for entry, reproduction in done if entry.paper != "crowdveil"]
    sums = [sum(numbers) for numbers in zip((0, 0, 0), *papers, strict=True)]
    skipped = [entry.name for entry, reproduction in done if reproduction.skipped is not None]
    said = ""
    if sums[0] + sums[1]:
        said = f"Of {sums[0] + sums[1]} published values and conclusions {sums[0]} agree with what is computed here"
        differ = f" and {sums[1]} {'does' if sums[1] == 1 else 'do'} not; the notes say what was found instead"
        said += f"{differ if sums[1] else ''}. "
    if sums[2]:
        value = "value is" if sums[2] == 1 else "values are"
        said += f"{sums[2]} {'further ' if said else ''}{value} computed where the papers print none."
    left = f"Skipped for want of their data: {', '.join(skipped)}." if skipped else ""
    return element(
        "header",
        element("p", f"crowdveil · reproduction, seed {seed}", class_="kicker"),
        element("h1", title),
        element("p", said, class_="described") if said else "",
        element("p", left, class_="note") if left else "",
        element(
            "p",
            "In the drawings, what a paper published is dark and hollow; what is computed here is filled and coloured.",
            class_="note",
        ),
    )


def _index(done: Done) -> Safe:
    rows = []
    for entry, reproduction in done:
        link = element("a", entry.name, href=f"#{entry.name}")
        agree, differ, new = counts(reproduction)
        numbers = ("skipped", "", "") if reproduction.skipped is not None else (agree, differ, new)
        rows.append((link, entry.paper, entry.title, *numbers))
    heads = ("entry", "paper", "what it shows", "agree", "differ", "not published")
    return element(
        "section", element("h2", "Index"), table("Rows of each entry", heads, rows, class_="index"), id="index"
    )


def _section(entry: Entry, done: Reproduction, page: dict[str, Any], *, alone: bool) -> Safe:
    head = (
        element("h2", "Published beside computed" if alone else entry.title),
        element("p", f"{entry.name} · {CITATIONS[entry.paper]}", class_="cited"),
    )
    if done.skipped is not None:
        reason = element("p", element("strong", "Skipped. "), without_folder(done.skipped))
        return element("section", *head, element("div", reason, class_="warnings"), id=entry.name, class_="entry")
    findings: object = ""
    if done.findings:
        items = element("ul", *(element("li", _tied(sentence)) for sentence in done.findings))
        findings = element("div", element("h3", "What was found"), items, class_="findings")
    panels = []
    for number, drawing in enumerate(done.drawings, start=1):
        key = f"{entry.name}-{number}"
        page["figures"][key] = plot(drawing)
        described = f"{drawing.title}. {drawing.y_title} against {drawing.x_title}; the table below holds the numbers."
        panel = figure(key, "", described=described)
        panels.append(element("div", element("h3", drawing.title), panel, class_="panel"))
    return element(
        "section",
        *head,
        element("p", f"{tally(done, entry.paper)}.".capitalize(), class_="tally"),
        findings,
        *panels,
        _table(done.rows),
        id=entry.name,
        class_="entry",
    )


def _table(rows: Sequence[Row]) -> Safe:
    styles = {True: "badge agrees", False: "badge differs", None: "badge new"}
    body = [
        (
            row.key,
            shown(row.published),
            shown(row.computed),
            element("span", verdict(row), class_=styles[row.agrees]),
            _tied(row.note),
        )
        for row in rows
    ]
    return table("Every value", ("what", "published", "computed", "", "note"), body, class_="rows")


def _tied(words: str) -> str:
    """Join a number and its % sign so that no line break falls between them."""
    return words.replace(" %", "\u00a0%")

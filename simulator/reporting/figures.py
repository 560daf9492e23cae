"""Plots of the report, in the format of plotly.js, which `page/charts.js` draws."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from simulator.results.formatting import finite
from simulator.results.names import COUNT
from simulator.results.record import OccupancyTheory
from simulator.results.run import RunResult


class Style(NamedTuple):
    """A colour, a plotted symbol, the same symbol as a character, and a dash, that belong together."""

    colour: str
    symbol: str
    sign: str
    dash: str


STYLES = (
    Style("#0072B2", "circle", "●", "solid"),
    Style("#D55E00", "diamond", "◆", "dash"),
    Style("#009E73", "square", "■", "dot"),
    Style("#CC79A7", "triangle-up", "▲", "dashdot"),
    Style("#6E5A00", "x", "✕", "longdash"),
    Style("#56B4E9", "cross", "✚", "longdashdot"),
    Style("#000000", "star", "★", "solid"),
)
"""Each colour is distinct from its neighbours' for every kind of colour vision."""
BASELINE = "#7b8794"
INK = "#3d4852"
POINT_LIMIT = 3000

Figure = dict[str, Any]


class Drawn(NamedTuple):
    """A figure on the page: its key in the embedded data, its caption, and its text alternative."""

    key: str
    caption: str
    described: str


class Page:
    """
    Data embedded in the page for its script.

    Attributes
    ----------
    data
        `figures` by key, and whatever else the script reads.
    """

    def __init__(self, **data: object) -> None:
        self.figures: dict[str, Figure] = {}
        self.data: dict[str, object] = {"figures": self.figures, **data}

    def add(self, prefix: str, figure: Figure, caption: str, described: str) -> Drawn:
        """Add a figure under the next number of a prefix, and return what the template needs to place it."""
        key = f"{prefix}-{sum(name.startswith(f'{prefix}-') for name in self.figures)}"
        self.figures[key] = figure
        return Drawn(key, caption, described)


def numbered_style(place: int) -> Style:
    """Return the style of the curve at a place, from 0; after the last style they repeat, with open symbols."""
    style = STYLES[place % len(STYLES)]
    return style if place < len(STYLES) else style._replace(symbol=f"{style.symbol}-open", dash="dot")


_USUAL = (
    ("sampling",),
    ("randomized", "response"),
    ("k-ary", "k_randomized"),
    ("optimised unary", "oue"),
    ("symmetric unary", "sue"),
    ("optimised local", "olh"),
    ("subset",),
)
"""How the labels of mechanisms begin that have the style of this place on every page that shows them."""


def styles_of(labels: Iterable[str]) -> dict[str, Style]:
    """
    Choose a style for each mechanism on a page.

    Parameters
    ----------
    labels
        Their names or titles.

    Returns
    -------
    styles
        By label. A well-known mechanism has the same style on every page; another, or a second one of the same name,
        has the first style that is left.
    """
    places: dict[str, int] = {}
    labels = list(dict.fromkeys(labels))
    for label in labels:
        usual = next((place for place, begins in enumerate(_USUAL) if label.lower().startswith(begins)), None)
        if usual is not None and usual not in places.values():
            places[label] = usual
    free = iter(place for place in range(len(labels) + len(STYLES)) if place not in places.values())
    return {label: numbered_style(places[label] if label in places else next(free)) for label in labels}


def style(run: RunResult, mechanism: str) -> Style:
    """
    Choose a mechanism's style, the same in every figure.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        Its name; a refined estimate has the style of its mechanism.

    Returns
    -------
    style
        By `styles_of` the mechanisms other than no privacy; grey for the baseline.
    """
    if mechanism in run.refined:
        mechanism = mechanism.partition("+")[0]
    if mechanism in run.mechanisms and mechanism not in run.private:
        return STYLES[0]._replace(colour=BASELINE)
    return styles_of([*map(run.label, run.private), run.label(mechanism)])[run.label(mechanism)]


def axis(title: str, **options: object) -> Figure:
    """Return a plot's axis with its title."""
    return {"title": {"text": title}, **options}


def log_axis(title: str, **options: object) -> Figure:
    """Return a logarithmic axis, with a tick at each power of ten unless `options` has others."""
    ticks = {} if "tickvals" in options else {"dtick": 1, "tickformat": ","}
    return axis(title, type="log", **ticks, **options)


def plot(
    traces: Sequence[Figure],
    x: Figure,
    y: Figure,
    *,
    height: int = 330,
    left: int = 62,
    right: int = 14,
    legend: bool = False,
) -> Figure:
    """
    Assemble a plot.

    Parameters
    ----------
    traces
        What is drawn.
    x, y
        The axes.
    height, left, right
        Height and margins, pixels.
    legend
        Whether the names of the traces are shown.

    Returns
    -------
    figure
        Traces and layout.
    """
    margin = {"l": left, "r": right, "t": 12, "b": 48}
    layout = {"xaxis": x, "yaxis": y, "height": height, "margin": margin, "showlegend": legend}
    return {"data": list(traces), "layout": layout}


def curve(
    x: Iterable[Any],
    y: Iterable[Any],
    name: str,
    hover: str | None,
    paint: str = INK,
    *,
    width: float = 2.5,
    dash: str = "solid",
    extra: str = "",
) -> Figure:
    """Return a line through points; `hover` is the text shown at a point, None for no text; `extra` follows it."""
    drawn: Figure = {"x": finite(x), "y": finite(y), "mode": "lines", "name": name}
    drawn["line"] = {"color": paint, "width": width, "dash": dash}
    return drawn | ({"hoverinfo": "skip"} if hover is None else {"hovertemplate": f"{hover}<extra>{extra}</extra>"})


def markers(
    x: Iterable[Any],
    y: Iterable[Any],
    name: str,
    hover: str,
    paint: str,
    *,
    size: int,
    extra: str = "",
    **marker: object,
) -> Figure:
    """Return separate points; `hover` and `extra` are shown at a point, `marker` has more options of the symbol."""
    drawn: Figure = {"x": finite(x), "y": finite(y), "mode": "markers", "name": name}
    return drawn | {
        "marker": {"color": paint, "size": size, **marker},
        "hovertemplate": f"{hover}<extra>{extra}</extra>",
    }


def area(x: NDArray[Any], high: NDArray[Any], low: NDArray[Any], name: str, fill: str, **line: object) -> Figure:
    """Return the area between two curves."""
    drawn: Figure = {"x": finite([*x, *x[::-1]]), "y": finite([*high, *low[::-1]]), "mode": "lines", "name": name}
    return drawn | {"line": line, "fill": "toself", "fillcolor": fill, "hoverinfo": "skip"}


def occupancy(
    run: RunResult, mechanism: str, *, campaigns: Sequence[str], theory: OccupancyTheory | None
) -> tuple[Figure, int]:
    """
    Draw one mechanism's errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism's name.
    campaigns
        The campaigns to include.
    theory
        The expected error; None where a cell's error does not depend on that cell alone.

    Returns
    -------
    figure
        Traces and layout.
    drawn_every
        n, if every n-th point is drawn.
    """
    every_row = run.asked.estimates
    rows = every_row[(every_row["mechanism"] == mechanism) & every_row["campaign"].isin(campaigns)]
    truth = rows["truth"].to_numpy(dtype=float)
    error = (rows["estimate"] - rows["truth"]).to_numpy(dtype=float)
    known = np.isfinite(truth) & np.isfinite(error)
    truth, error = truth[known], error[known]
    low, high = (float(truth.min()), float(truth.max())) if len(truth) else (0.0, 1.0)
    margin = 0.04 * max(high - low, 1.0)
    ends = (max(0.0, low - margin) if low > 0 else -margin, high + margin)
    band_at, band = _band(theory, max(0.0, ends[0]), ends[1])
    every = max(1, -(-len(truth) // POINT_LIMIT))
    reach = max([1.0, *(float(value) * 1.05 for value in (band.max(initial=0), np.abs(error).max(initial=0)))])
    traces = []
    if len(band_at):
        fill = "rgba(61,72,82,0.10)"
        traces.append(area(band_at, band, -band, "where theory puts 95 %", fill, color=INK, width=1))
    traces.append(
        markers(
            truth[::every],
            np.round(error[::every], 3),
            "one cell, one query",
            f"%{{x:,}} {run.owners.many} in the cell<br>error %{{y:+.1f}}",
            style(run, mechanism).colour,
            size=5,
            opacity=0.35 if len(truth) > 300 else 0.6,
        )
    )
    x = axis(f"{run.owners.many} in the cell", range=list(ends))
    y = axis("estimate − truth", zeroline=True, range=[-reach, reach])
    return {**plot(traces, x, y), "group": "occupancy"}, every


def _band(theory: OccupancyTheory | None, low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the central 95 % of the errors, (80,) each; empty arrays where they are not known."""
    if theory is None or not theory.occupancy or None in theory.std_error:
        return np.empty(0), np.empty(0)
    at, sigma = np.array(theory.occupancy, dtype=float), np.array(theory.std_error, dtype=float)
    order = np.argsort(at)
    x = np.linspace(low, min(high, float(at.max())), 80)
    # Without suppression the variance is affine in the occupancy: interpolating it is exact, interpolating σ is not.
    return x, 1.96 * np.sqrt(np.interp(x, at[order], sigma[order] ** 2))


def growth(run: RunResult) -> Figure | None:
    """
    Draw the theoretical and the measured error against the number of devices asked.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    figure
        Traces and layout on logarithmic axes; None where no mechanism has an error above 0.
    """
    traces: list[Figure] = []
    for name, mechanism in run.mechanisms.items():
        drawn, label = style(run, name), str(escape(run.label(name)))
        scaling = mechanism.scaling
        pairs = [] if scaling is None else [(n, s) for n, s in zip(scaling.asked, scaling.std_error, strict=True) if s]
        if pairs:
            x, y = zip(*pairs, strict=True)
            hover = "%{x:,} asked: σ = %{y:,.1f}"
            traces.append(curve(x, y, f"{label}, theory", hover, drawn.colour, dash=drawn.dash, extra=label))
        points = measured(run, name)
        if points:
            symbol, line = drawn.symbol, {"color": "#fff", "width": 1.5}
            x, y = zip(*points, strict=True)
            words, hover = f"{label}, this run", "%{x:,} asked: RMSE %{y:,.1f}"
            traces.append(markers(x, y, words, hover, drawn.colour, size=11, extra=words, symbol=symbol, line=line))
    if not traces:
        return None
    up = log_axis(f"error per cell, {run.owners.many}")
    return plot(traces, log_axis("devices asked"), up, height=420, left=70, right=48, legend=True)


def measured(run: RunResult, mechanism: str) -> list[tuple[float, float]]:
    """
    Return pairs of devices asked and measured error, one per campaign.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism's name.

    Returns
    -------
    points
        Mean devices asked and RMSE, where both are above 0, the mechanism published its own counts and no budget was
        divided.
    """
    rows = run.asked.scores[run.asked.scores["mechanism"] == mechanism]
    points = [
        (run.mean_asked.get((str(campaign), mechanism), 0.0), float(rmse))
        for campaign, rmse in zip(rows["campaign"], rows["rmse"], strict=True)
        if run.statistics[str(campaign)] is COUNT
        and run.release_of(str(campaign), mechanism) is None
        and campaign not in run.budgeted
    ]
    return [(asked, rmse) for asked, rmse in points if asked > 0 and rmse > 0]


def series(run: RunResult, campaign: str, mechanism: str) -> Figure:
    """
    Draw the truth, estimate and interval of a single cell over the queries.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.

    Returns
    -------
    figure
        Traces and layout.
    """
    frame = run.estimates
    rows = frame[(frame["campaign"] == campaign) & (frame["mechanism"] == mechanism)].sort_values("query")
    columns = ("time_s", "truth", "estimate", "lower", "upper")
    time, truth, estimate, lower, upper = (rows[column].to_numpy(dtype=float) for column in columns)
    minutes, paint = np.round(time / 60, 4), style(run, mechanism).colour
    bounded = np.isfinite(lower) & np.isfinite(upper)
    size = 4 if len(rows) > 60 else 7
    traces = [
        area(time[bounded] / 60, upper[bounded], lower[bounded], "95 % interval", faint(paint), width=0),
        markers(minutes, np.round(estimate, 3), "estimate", "minute %{x:.1f}: estimate %{y:,.1f}", paint, size=size),
        curve(minutes, truth, "truth", "minute %{x:.1f}: truth %{y:,}", "#1f2933", width=2),
    ]
    every = np.concatenate([values[np.isfinite(values)] for values in (truth, estimate, lower, upper)])
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    margin = 0.05 * max(high - low, 1.0) if len(every) else 0.0
    y = axis(run.statistics[campaign].unit, range=[low - margin, high + margin])
    drawn = plot(traces, axis(run.record.clock.minutes_axis), y, height=300, legend=True)
    return {**drawn, "group": f"series {campaign}"}


def faint(hex_colour: str) -> str:
    """Return a colour given as ``#rrggbb`` with an opacity of 16 %."""
    red, green, blue = (int(hex_colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def share_scales(figures: Sequence[Figure]) -> None:
    """
    Give each figure of a group a common vertical scale in addition to its own.

    Parameters
    ----------
    figures
        Figures of one group; changed in place: `scales` gains `own` and `same`.
    """
    spans = [list(figure["layout"]["yaxis"]["range"]) for figure in figures]
    same = [min(span[0] for span in spans), max(span[1] for span in spans)] if spans else [0, 1]
    for figure, own in zip(figures, spans, strict=True):
        figure["scales"] = {"own": own, "same": same}
        figure["layout"]["yaxis"]["range"] = same

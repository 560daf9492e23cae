"""A chart on matplotlib axes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.pages.charts.spec import Axis, Chart, Series
from simulator.pages.charts.styles import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = {"circle": "o", "diamond": "D", "square": "s", "triangle": "^", "x": "X", "cross": "P", "star": "*"}
DASHES: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (8, 3))}
DASHES["longdashdot"] = (0, (8, 3, 2, 3))
_DASH = 0.5
"""Width of a dash whose width is not stated, in units of x."""


def plain(words: str) -> str:
    """Return text that matplotlib shows as it is: a dollar sign begins no formula."""
    return words.replace("$", r"\$")


def marker(style: Style) -> dict[str, Any]:
    """Return a style's marker and colour for `Axes.plot` and `Axes.errorbar`."""
    face = "white" if style.hollow else style.colour
    return {"color": style.colour, "marker": MARKERS[style.symbol], "markerfacecolor": face}


def draw(chart: Chart, ax: "Axes") -> None:
    """Draw a chart.

    Parameters
    ----------
    chart
        The chart.
    ax
        The axes; what they show stays.
    """
    for series in chart.series:
        _DRAW[series.mark](ax, series, chart)
    _set(ax, "x", chart.x)
    _set(ax, "y", chart.y)
    ax.grid(axis="x" if chart.sideways else "both", color="0.9")
    ax.set_axisbelow(True)
    if chart.legend:
        _add_legend(ax, [_label(series) for series in chart.series])


def _set(ax: "Axes", letter: str, axis: Axis) -> None:
    """Set the scale, ends, ticks and title of one axis."""
    of_letter: dict[str, Any] = {f"{letter}label": plain(axis.title)}
    if axis.log:
        of_letter[f"{letter}scale"] = "log"
    ax.set(**of_letter)
    own = ax.xaxis if letter == "x" else ax.yaxis
    if axis.ticks is not None:
        own.set_ticks(list(axis.ticks), [plain(words) for words in axis.ticks.values()])
        own.set_ticks([], minor=True)
    elif axis.share:
        own.set_major_formatter("{x:.0%}")
    if axis.names:
        own.set_tick_params(length=0)
    if axis.ends is not None:
        ax.set(**{f"{letter}lim": axis.ends})
    elif axis.from_zero:
        ax.set(**{f"{letter}lim": (0, None)})
    for at, words in (axis.headings or {}).items():
        heading: dict[str, Any] = {"va": "center", "fontweight": "bold", "fontsize": "small"}
        ax.text(0.01, at, plain(words), transform=ax.get_yaxis_transform(), **heading)


def _numbers(values: Any) -> NDArray[np.float64]:
    return np.array(values, dtype=float)


def _label(series: Series) -> str:
    return plain(series.label) or "_nolegend_"


def _interval(series: Series, at: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the distances of the ends of intervals from their points, (2, n); None if no point has one."""
    if series.low is None or series.high is None:
        return None
    # An interval may leave out the value by rounding, which `errorbar` refuses.
    distances = np.array([at - _numbers(series.low), _numbers(series.high) - at])
    return None if np.isnan(distances).all() else np.maximum(distances, 0.0)


def _draw_line(ax: "Axes", series: Series, chart: Chart) -> None:
    x, y, style = _numbers(series.x), _numbers(series.y), series.look
    look: dict[str, Any] = marker(style) | {"label": _label(series), "linestyle": DASHES[style.dash]}
    if series.thin:
        look["linewidth"] = 0.9
    if series.mark == "points":
        look["linestyle"] = "none"
    if series.mark == "line":
        look["marker"] = None
    interval = _interval(series, x if chart.sideways else y)
    if interval is None:
        ax.plot(x, y, **look)
    else:
        look["xerr" if chart.sideways else "yerr"] = interval
        ax.errorbar(x, y, elinewidth=1, capsize=1.5, **look)
    for at, is_bound in zip(zip(x, y, strict=True), series.bounds, strict=False):
        if is_bound:
            beside: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": "small"}
            ax.annotate("≤", at, (-3, 0), **beside)


def _draw_bars(ax: "Axes", series: Series, _chart: Chart) -> None:
    x, y, colour = _numbers(series.x), _numbers(series.y), series.look.colour
    width = series.width or 0.8 * float(np.diff(x).min(initial=1.0))
    look: dict[str, Any] = {"color": "none" if series.look.hollow else colour, "edgecolor": colour}
    ax.bar(x, y, width=width, yerr=_interval(series, y), label=_label(series), **look)


def _draw_band(ax: "Axes", series: Series, _chart: Chart) -> None:
    low, high = _numbers(series.low), _numbers(series.high)
    ax.fill_between(
        _numbers(series.x), low, high, color=series.look.colour, alpha=0.16, linewidth=0, label=_label(series)
    )


def _draw_dashes(ax: "Axes", series: Series, chart: Chart) -> None:
    half = (series.width or _DASH) / 2
    look = {"color": series.look.colour, "linestyle": DASHES[series.look.dash], "label": _label(series)}
    look["linewidth"] = 0.9 if series.thin else None
    for x, y in zip(_numbers(series.x), _numbers(series.y), strict=True):
        ends = ([x, x], [y - half, y + half]) if chart.sideways else ([x - half, x + half], [y, y])
        ax.plot(*ends, **look)


_DRAW: dict[str, Any] = dict.fromkeys(("line", "points", "linked"), _draw_line)
_DRAW |= {"bars": _draw_bars, "band": _draw_band, "dashes": _draw_dashes}


def _add_legend(ax: "Axes", order: list[str]) -> None:
    """Place the legend above the axes, where it hides nothing; each label occurs once, in the order of the series."""
    handles, labels = ax.get_legend_handles_labels()
    first = {label: handles[labels.index(label)] for label in dict.fromkeys([*order, *labels]) if label in labels}
    if first:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        ax.legend(list(first.values()), list(first), frameon=False, labelspacing=0.2, handlelength=2.2, **place)

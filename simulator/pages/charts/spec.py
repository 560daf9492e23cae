"""What a chart shows: series of numbers over two axes, as values that both renderers draw."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from simulator.pages.charts.styles import PLAIN, Style

Mark = Literal["line", "points", "linked", "bars", "band", "dashes"]
Numbers: TypeAlias = Iterable[Any]
"""Numbers, or arrays or columns of them; NaN and None are gaps."""

_DIGITS = 7
"""Significant digits of a number on a page."""
_AIR = 1.25
"""Ratio of the ends of a logarithmic axis to the numbers beside them."""
_SMALLEST, _LARGEST = 1e-12, 1e100
_BARS = 0.75
"""Share of the distance between two names that their bars or points fill."""


@dataclass(frozen=True)
class Axis:
    """An axis.

    Parameters
    ----------
    title
        What it measures, with its unit.
    log
        Whether it is logarithmic.
    share
        Whether its numbers are shares, shown as percentages.
    ends
        Its ends, in its own unit; by default the least and the greatest number, with a margin.
    ticks
        Its ticks: the text shown at a value; by default round numbers.
    names
        Whether its whole numbers stand for names, which are the texts of its ticks.
    from_zero
        Whether it begins at 0 if no number is negative.
    headings
        Text in bold beside the axis, at a value.
    """

    title: str
    log: bool = False
    share: bool = False
    ends: tuple[float, float] | None = None
    ticks: Mapping[float, str] | Mapping[int, str] | None = None
    names: bool = False
    from_zero: bool = False
    headings: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Series:
    """Numbers that are drawn alike.

    Parameters
    ----------
    name
        What they are, shown where a reader points at one.
    x, y
        Coordinates, equally many; NaN or None for a gap. `x` may hold names, which `over_names` places. A band has no
        `y`.
    mark
        How they are drawn: ``linked`` is a line with points, ``band`` the area between `low` and `high`, ``dashes`` a
        short line along x at each point.
    style
        Colour, symbol and dash; None until `styled` chooses one.
    low, high
        Ends of an interval around each point or bar, or of the band.
    texts
        More about each point, shown where a reader points at it.
    bounds
        Whether each number is an upper bound, which a "≤" before it states.
    width
        Of bars and dashes: their width in units of x; by default a symbol's width.
    thin
        Whether lines are thin.
    legend
        Name in the legend, "" for none; by default `name`. Series of one name in the legend share their entry.
    """

    name: str
    x: Numbers
    y: Numbers = ()
    mark: Mark = "line"
    style: Style | None = None
    low: Numbers | None = None
    high: Numbers | None = None
    texts: Sequence[str] = ()
    bounds: Sequence[bool] = ()
    width: float | None = None
    thin: bool = False
    legend: str | None = None

    def __post_init__(self) -> None:
        """Keep plain numbers and None, which equal series have alike."""
        for name in ("x", "y", "low", "high"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(_known, given)))

    @property
    def look(self) -> Style:
        """The style in which it is drawn."""
        return self.style or PLAIN

    @property
    def label(self) -> str:
        """Its name in the legend."""
        return self.name if self.legend is None else self.legend


@dataclass(frozen=True)
class Chart:
    """Series over axes; `x` is horizontal.

    Parameters
    ----------
    series
        From the lowest to the topmost.
    x, y
        The axes.
    title
        The caption.
    about
        What it shows, for a reader who cannot see it.
    height
        Height on a page, pixels.
    legend
        Whether the names of the series are shown.
    sideways
        Whether intervals and dashes lie along x and across it, instead of along y and across that.
    facet
        The group of charts beside it that a reader may give the same vertical scale.
    shared_ends
        Ends of y that the charts of the group share, if they have the same scale.
    """

    series: Sequence[Series]
    x: Axis
    y: Axis
    title: str = ""
    about: str = ""
    height: int = 330
    legend: bool = True
    sideways: bool = False
    facet: str = ""
    shared_ends: tuple[float, float] | None = None


def with_shared_ends(charts: Sequence[Chart], facet: str = "") -> list[Chart]:
    """
    Give charts the same vertical scale.

    Parameters
    ----------
    charts
        Charts whose vertical axes are alike.
    facet
        Name of the group, if a reader may give each chart its own scale instead.

    Returns
    -------
    charts
        With ends beyond all their numbers. A scale of numbers far above 0 need not begin there. Intervals that reach
        far above all values are cut off, and on a logarithmic scale intervals that nearly reach 0: they would hide the
        values.
    """
    every = [each for chart in charts for each in chart.series]
    log = any(chart.y.log for chart in charts)
    shown = [
        [y for y in values if y is not None and (y > 0 or not log)]
        for values in (
            [y for each in every for y in each.y],
            [y for each in every for y in (*(each.low or ()), *(each.high or ()))],
        )
    ]
    numbers = [y for values in shown for y in values]
    if not numbers:
        return list(charts)
    low, high = min(numbers), max(numbers)
    high = min(high, max(4.0 * max(shown[0], default=high), low)) if low >= 0.0 else high
    if log:
        ends = (max(low, min(shown[0], default=low) / 4.0) / _AIR, high * _AIR)
    else:
        low = 0.0 if 0.0 < low < 0.6 * high else low
        margin = 0.05 * ((high - low) or abs(high) or 1.0)
        ends = (low - margin, high + margin)
    return [replace(chart, facet=facet, shared_ends=ends) for chart in charts]


def open_axis(title: str, values: Sequence[float]) -> tuple[Axis, list[float]]:
    """
    Place values among which there may be 0, infinite ones and unknown ones, NaN.

    Parameters
    ----------
    title
        Title of the axis.
    values
        The values, none negative.

    Returns
    -------
    axis
        Logarithmic, with places for 0, ∞ and the unknown beside the others, and ticks where they occur. Values below
        1e-12 are shown as 0 and values above 1e100 as infinite ones are.
    places
        Of the values.
    """
    finite = [value for value in values if _SMALLEST <= value <= _LARGEST] or [1.0]
    low = math.floor(math.log10(min(finite)))
    high = max(math.ceil(math.log10(max(finite))), low + 1)
    gap = 0.15 * (high - low)
    zero, infinite, unknown = (math.pow(10.0, at) for at in (low - 1.7 * gap, high + gap, high + 2.0 * gap))

    def place(value: float) -> float:
        if math.isnan(value):
            return unknown
        return infinite if value > _LARGEST else value if value >= _SMALLEST else zero

    places = [place(value) for value in values]
    digits = (1, 2, 5) if high - low < 3 else (1,)
    scale = [*(digit * 10.0**power for power in range(low, high) for digit in digits), 10.0**high]
    ticks = {value: f"{value:g}" for value in scale[:: -(-len(scale) // 5)]}
    names = {
        zero: "<1e-12" if any(0 < value < _SMALLEST for value in values) else "0",
        infinite: ">1e100" if any(_LARGEST < value < math.inf for value in values) else "∞",
        unknown: "unknown",
    }
    ticks = dict(sorted((ticks | {at: words for at, words in names.items() if at in places}).items()))
    shown = [*ticks, *places]
    air = (max(shown) / min(shown)) ** 0.07
    return Axis(title, log=True, ticks=ticks, ends=(min(shown) / air, max(shown) * air)), places


def names_axis(title: str, names: Sequence[str]) -> Axis:
    """Return an axis with a name at each whole number from 0."""
    return Axis(title, ends=(-0.5, len(names) - 0.5), ticks=dict(enumerate(names)), names=True)


def over_names(series: Sequence[Series], title: str) -> tuple[list[Series], Axis]:
    """
    Place series whose x are names.

    Parameters
    ----------
    series
        The series.
    title
        Title of the axis.

    Returns
    -------
    placed
        The series with numbers for names. Bars stand side by side over a name. So do points, each on the bar of its
        place among their own kind, unless a line crosses the names.
    axis
        The axis of the names.
    """
    names = list(dict.fromkeys(str(name) for each in series for name in each.x))
    crossed = any(each.mark in {"line", "linked"} for each in series)
    apart = [each for each in series if each.mark == "bars" or (each.mark == "points" and not crossed)]
    of_kind = [[each for each in apart if each.mark == mark] for mark in ("bars", "points")]
    slots = max(1, *map(len, of_kind))
    placed = []
    for each in series:
        slot = next((kind.index(each) for kind in of_kind if each in kind), (slots - 1) / 2)
        shift = _BARS * ((slot + 0.5) / slots - 0.5)
        x = [names.index(str(name)) + shift for name in each.x]
        placed.append(replace(each, x=x, width=_BARS / slots if each.mark == "bars" else None))
    return placed, names_axis(title, names)


def data(chart: Chart) -> dict[str, Any]:
    """Return a chart as JSON for the page's script: what differs from the defaults, numbers of seven digits."""
    series = [_stated(each) | {"mark": each.mark, "style": each.look._asdict()} for each in chart.series]
    # The page's markup has the caption and the text alternative.
    own = _stated(replace(chart, series=(), title="", about=""))
    return own | {"series": series, "x": _stated(chart.x), "y": _stated(chart.y)}


def _stated(value: Series | Axis | Chart) -> dict[str, Any]:
    fields = {each.name: (getattr(value, each.name), each.default) for each in dataclasses.fields(value)}
    return {name: _plain(stated) for name, (stated, default) in fields.items() if stated is not default}


def _known(value: Any) -> Any:
    """Return a Python number or a name, and None for a number that is not finite."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Return a value of JSON: numbers of seven digits, and pairs for a mapping."""
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    value = _known(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.{_DIGITS}g}")
    return value

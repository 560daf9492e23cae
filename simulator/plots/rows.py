"""Plot of rows: values of several mechanisms by campaign, view or coalition, with intervals and theory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from simulator.plots.looks import add_legend, marked, plain, wrapped
from simulator.reporting.figures import INK, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = 0.6
"""Share of a row's height over which its marks are distributed."""


@dataclass(frozen=True)
class Mark:
    """A value of one mechanism.

    Attributes
    ----------
    name
        The mechanism's label in the legend; "" for none.
    style
        The mechanism's style.
    value
        NaN where it is not known.
    low, high
        Ends of its 95 % interval; NaN where there is none.
    theory
        What theory expects; NaN where that is not known.
    bound
        Whether the value is an upper bound, which a "≤" before it states.
    """

    name: str
    style: Style
    value: float
    low: float = math.nan
    high: float = math.nan
    theory: float = math.nan
    bound: bool = False


@dataclass(frozen=True)
class Row:
    """A row: its group, its label, its marks, and the success of a guess without any observation, NaN if none."""

    group: str
    label: str
    marks: list[Mark] = field(default_factory=list)
    prior: float = math.nan


def _lines(row: Row) -> float:
    """Return the height of a row, in lines of text."""
    return max(1.2, 1.0 + wrapped(row.label).count("\n"), 0.7 * len(row.marks))


def height_of(rows: Sequence[Row]) -> float:
    """Return the height of a figure for the rows, in units of its width: 0.14 inches a line in a single column."""
    groups, names = {row.group for row in rows}, {mark.name for row in rows for mark in row.marks}
    return 0.2 + 0.041 * (sum(map(_lines, rows)) + len(names) + (1.2 * len(groups) if len(groups) > 1 else 0))


def draw_rows(ax: "Axes", rows: Sequence[Row], unit: str) -> None:
    """Draw rows from top to bottom, under a heading for each group if there are several.

    Parameters
    ----------
    ax
        The axes.
    rows
        The rows, in order; those of a group are neighbours.
    unit
        Label of the horizontal axis.
    """
    several = len({row.group for row in rows}) > 1
    ticks: dict[float, str] = {}
    top = 0.0
    for group, own in groupby(rows, key=lambda row: row.group):
        if several:
            beside = ax.get_yaxis_transform()
            ax.text(0.01, top + 0.6, plain(group), transform=beside, va="center", fontweight="bold", fontsize="small")
            top += 1.2
        for row in own:
            ticks[top + 0.5 * _lines(row)] = wrapped(row.label)
            _draw(ax, row, top + 0.5 * _lines(row), _BAND * _lines(row))
            top += _lines(row)
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(top, 0.0)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.set_xlabel(plain(unit))
    add_legend(ax)


def _draw(ax: "Axes", row: Row, at: float, band: float) -> None:
    ends = (at - 0.5 * band, at + 0.5 * band)
    if math.isfinite(row.prior):
        ax.plot([row.prior] * 2, ends, color=INK, linestyle=":", label="guess without any observation")
    for number, mark in enumerate(row.marks):
        y = at + band * ((number + 0.5) / len(row.marks) - 0.5)
        if math.isfinite(mark.theory):
            half = 0.5 * band / len(row.marks)
            ax.plot([mark.theory] * 2, [y - half, y + half], color=INK, linewidth=0.9, label="theory")
        # An interval may leave out the value by rounding, which `errorbar` refuses.
        spread = [[max(mark.value - mark.low, 0.0)], [max(mark.high - mark.value, 0.0)]]
        look: dict[str, Any] = {"label": plain(mark.name)} if mark.name else {}
        if math.isfinite(spread[0][0] + spread[1][0]):
            ax.errorbar([mark.value], [y], xerr=spread, elinewidth=1, capsize=1.5, **marked(mark.style), **look)
        else:
            ax.plot([mark.value], [y], **marked(mark.style), **look)
        if mark.bound:
            ax.annotate(
                "≤", (mark.value, y), (-3, 0), textcoords="offset points", ha="right", va="center", fontsize="small"
            )

"""Files of all plots of a run, at the width of a paper's column."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.files.atomic_write import export_folder, plain_name
from simulator.files.errors import InputError
from simulator.pages.charts import Chart
from simulator.pages.charts.matplotlib import draw
from simulator.pages.plots.looks import COLUMN_IN, figure_of, new_axes, paper_style, pyplot
from simulator.pages.plots.run_plots import NothingToDrawError, RunPlots
from simulator.results.run import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""Formats, and the metadata without which a file is the same each time."""

MM = 25.4


def width_in_inches(text: str) -> float:
    """Return the width that ``single``, ``double`` or a number of millimetres states, inches.

    Raises
    ------
    InputError
        If it is neither, or not from 40 mm to 500 mm.
    """
    if text in COLUMN_IN:
        return COLUMN_IN[text]
    try:
        width_mm = float(text.removesuffix("mm"))
    except ValueError:
        width_mm = 0.0
    if not 40 <= width_mm <= 500:
        raise InputError([f"width (--width): must be single, double, or 40 to 500 millimetres; got {text!r}"])
    return width_mm / MM


def formats_of(text: str) -> list[str]:
    """Return the formats of a list with commas.

    Raises
    ------
    InputError
        If one is not known.
    """
    names = list(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in FORMATS]:
        raise InputError([f"format (--format): must be among {', '.join(FORMATS)}; got {unknown[0]!r}"])
    return names


def write_figures(
    data: RunResult, folder: Path, *, width_in: float, formats: Sequence[str], overwrite: bool, every: bool = False
) -> tuple[list[str], list[str]]:
    """Write the figures that a run has, all files or none.

    Parameters
    ----------
    data
        The run.
    folder
        The folder of the files; created if it does not exist.
    width_in
        Width of every figure, inches.
    formats
        Keys of `FORMATS`.
    overwrite
        Whether existing files of the same names are replaced.
    every
        Whether the maps of every campaign are written, not of the first only.

    Returns
    -------
    names
        Names of the figures, without the suffix.
    notes
        What a reader of the figures should know, one sentence each.

    Raises
    ------
    InputError
        If the folder holds files and `overwrite` is not set, it cannot be written, or matplotlib is not installed.
    """
    plots = RunPlots(data, shown=False)
    names, notes = write_plots(dict(_figures(plots, every=every)), folder, width_in, formats, overwrite=overwrite)
    campaigns = list(dict.fromkeys(campaign for campaign, _, _ in plots.maps))
    if len(campaigns) > 1 and not every:
        notes.append(f"maps are for campaign {campaigns[0]}; --all writes maps for all {len(campaigns)} campaigns")
    return names, notes


def plot(chart: Chart) -> "Axes":
    """Return new axes with a chart, which is higher where its legend is long."""
    ax = new_axes(height=0.62 + 0.045 * len({each.label for each in chart.series if chart.legend}), shown=False)
    draw(chart, ax)
    return ax


def write_plots(
    drawn: "Mapping[str, Callable[[], Axes]]", folder: Path, width_in: float, formats: Sequence[str], *, overwrite: bool
) -> tuple[list[str], list[str]]:
    """Write figures, given as what draws them by name; other parameters and results as in `write_figures`."""
    names, notes = list[str](), dict[str, None]()

    def fill(staging: Path) -> None:
        for name, make in drawn.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    figure = figure_of(make())
                except NothingToDrawError:
                    continue
                for suffix in formats:
                    figure.savefig(staging / f"{name}.{suffix}", metadata=FORMATS[suffix])
            names.append(name)
            if any("missing from font" in str(warning.message) for warning in caught):
                notes["no installed font has every letter of the labels, and PDF and PNG show boxes for them"] = None

    with pyplot().rc_context(paper_style(width_in)):
        export_folder(folder, fill, overwrite=overwrite)
    return names, list(notes)


def _figures(plots: RunPlots, *, every: bool) -> "Iterator[tuple[str, Callable[[], Axes]]]":
    """Yield the name of each figure that a run may have, and what draws it."""
    shown = plots.maps
    several = len({campaign for campaign, _, _ in shown}) > 1
    for campaign, mechanism, quantity in shown:
        if campaign != shown[0][0] and not every:
            continue
        parts = ["map", campaign if several else "", "" if quantity == "truth" else mechanism, quantity]
        draw = partial(plots.map, mechanism, campaign=campaign, quantity=quantity)
        yield plain_name("-".join(filter(None, parts))), draw
    for unit in plots.units:
        yield "errors" if unit == plots.units[0] else "errors-of-speed", partial(plots.errors, unit=unit)
    yield "privacy-delta", partial(plots.privacy, "delta")
    yield from {name: getattr(plots, name) for name in ("growth", "privacy", "attacks", "traffic")}.items()
    if plots.has_links:
        yield "links-volume", plots.links
        yield "links-speed", partial(plots.links, "speed")
        yield "fundamental-diagram", plots.fundamental_diagram
        yield "time-space", plots.time_space

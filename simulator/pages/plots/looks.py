"""Looks of plots: fonts and sizes for papers, and new axes."""

from typing import TYPE_CHECKING, Any, cast

from simulator.files.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_IN = {"single": 3.5, "double": 7.16}
"""Widths of one and of two columns of an IEEE journal, inches."""

MOST_SHAPES = 5_000
"""Largest number of shapes that a plot draws as vectors; more become a picture of 300 dots per inch inside it."""

_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
)
"""The font of all text, which has Latin, Greek, Cyrillic and Arabic letters, and some that have Chinese ones."""


def pyplot() -> Any:
    """Import matplotlib.pyplot.

    Raises
    ------
    InputError
        If matplotlib is not installed; the message names the extra that has it.
    """
    return import_extra("matplotlib.pyplot", needed="plots need matplotlib", extra="plot")


def paper_style(width_in: float = COLUMN_IN["single"]) -> dict[str, Any]:
    """Return settings for figures of a paper, for `matplotlib.rc_context`.

    Parameters
    ----------
    width_in
        Width of new figures, inches.

    Returns
    -------
    dict
        Fonts of 7 and 8 points, thin lines, and text kept as text: named fonts in SVG, embedded TrueType in PDF. Files
        are the same each time if they are saved without a date.
    """
    fonts = import_extra("matplotlib.font_manager", needed="plots need matplotlib", extra="plot")
    installed = set(fonts.get_font_names())
    return {
        "figure.figsize": (width_in, 0.7 * width_in),
        "figure.dpi": 100,
        "savefig.dpi": 300,
        "savefig.bbox": None,  # the page keeps its width
        "font.family": [name for name in _FONTS if name in installed],
        **dict.fromkeys(("font.size", "axes.titlesize"), 8),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
        "axes.linewidth": 0.6,
        "grid.linewidth": 0.4,
        "lines.linewidth": 1.2,
        "lines.markersize": 4.5,
        "hatch.linewidth": 0.3,
        "svg.fonttype": "none",
        "svg.hashsalt": "crowdveil",
        "pdf.fonttype": 42,
    }


def new_axes(*, height: float, shown: bool) -> "Axes":
    """Return axes of a new figure of the default width, and of a height given in units of its width.

    If it is to be shown, the figure is one of pyplot, which keeps it until it is closed.
    """
    plt = pyplot()
    width = plt.rcParams["figure.figsize"][0]
    make = (
        plt.figure if shown else import_extra("matplotlib.figure", needed="plots need matplotlib", extra="plot").Figure
    )
    axes: Axes = make(figsize=(width, height * width), layout="constrained").add_subplot()
    return axes


def figure_of(ax: "Axes") -> "Figure":
    """Return the figure of axes that `new_axes` made."""
    return cast("Figure", ax.get_figure())

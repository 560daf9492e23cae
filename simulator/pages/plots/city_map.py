"""Plot of a map: the cells of a city by truth, estimate or error at one query, with roads, colour bar and scale bar."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulator.files.errors import InputError
from simulator.pages.charts.matplotlib import plain
from simulator.pages.charts.styles import BASELINE, PLAIN
from simulator.pages.plots.looks import MOST_SHAPES, pyplot
from simulator.results.names import COUNT
from simulator.results.run import RunResult

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd
    from matplotlib.axes import Axes

QUANTITIES = ("truth", "estimate", "error")
WIDEST_ERROR = 0.98
"""Quantile of the absolute errors at which the colours of a map of errors end, as in the report."""


class Values(NamedTuple):
    """Values of the cells at one query: the cells with their column `value`, NaN where nothing was published."""

    cells: "gpd.GeoDataFrame"
    title: str
    unit: str
    low: float
    high: float


def chosen(wanted: object, known: Iterable[object], what: str) -> Any:
    """Return what is wanted, or the first known if nothing is.

    Raises
    ------
    InputError
        If it is not known; the message lists what is.
    """
    names = list(known)
    if wanted is None and names:
        return names[0]
    if wanted not in names:
        raise InputError([f"{what}: must be one of {', '.join(map(str, names)) or 'none'}; got {wanted!r}"])
    return wanted


def chosen_mechanism(run: RunResult, estimates: "pd.DataFrame", wanted: str | None) -> str:
    """Return the mechanism wanted, of those in `estimates`; by default, as in the report, the first that is private."""
    names = sorted(dict.fromkeys(estimates["mechanism"]), key=lambda name: name not in run.record.private)
    mechanism: str = chosen(wanted, names, "mechanism")
    return mechanism


def values_of(
    run: RunResult, *, mechanism: str | None, campaign: str | None, query: int | None, quantity: str
) -> Values:
    """Select the values of a map, and the ends of its colours; see `RunPlots.map` for the parameters.

    Truth and estimates of a campaign have one scale, from 0 for counts, so that their maps can be compared.
    """
    chosen(quantity, QUANTITIES, "quantity")
    frame = run.estimates.assign(error=run.estimates["estimate"] - run.estimates["truth"])
    campaign = chosen(campaign, dict.fromkeys(frame["campaign"]), "campaign")
    frame = frame[frame["campaign"] == campaign]
    mechanism = chosen_mechanism(run, frame, mechanism)
    rows = frame[frame["mechanism"] == mechanism]
    query = chosen(query, np.unique(rows["query"]).tolist(), "query")
    at = rows[rows["query"] == query].set_index("cell")
    statistic, error = run.statistics[campaign], rows["error"].abs()
    unit = run.record.owners.unit(statistic.unit)
    if quantity == "error":
        high = max(1e-9, float(np.nan_to_num(error.quantile(WIDEST_ERROR))))
        low, unit = -high, f"estimate − truth, {unit}"
    else:
        high = float(np.fmax(1.0, frame["truth"].max()))
        low = 0.0 if statistic is COUNT else float(np.fmin(high, frame["truth"].min()))
    label = "truth" if quantity == "truth" else run.record.published_label(campaign, mechanism)
    of_campaign = run.cells_of(campaign)
    cells = of_campaign.assign(value=of_campaign["cell"].map(at[quantity].astype("float64")))
    return Values(cells, f"{label}\nquery {query}, {run.record.clock.text(at['time_s'].iloc[0])}", unit, low, high)


def projected(cells: "gpd.GeoDataFrame", crs: str | None) -> "gpd.GeoDataFrame":
    """Return the cells in metres: in the city's coordinate system, else in the system of their UTM zone."""
    return cells.to_crs(crs or cells.estimate_utm_crs())


def shape_of(cells: "gpd.GeoDataFrame") -> float:
    """Return the height of the cells in units of their width, between a third and three halves."""
    west, south, east, north = cells.total_bounds
    return float(np.clip((north - south) / max(east - west, 1e-9), 1 / 3, 1.5))


def draw_map(ax: "Axes", values: Values, roads: "gpd.GeoDataFrame | None", credit: str, *, scale: bool = True) -> None:
    """Draw a map.

    Parameters
    ----------
    ax
        The axes.
    values
        Its values; the cells in metres.
    roads
        Lines in any coordinate system, drawn beneath the cells; None for none.
    credit
        The source of the data, stated under the map; "" for none.
    scale
        Whether the map has a scale bar: lengths mean something only where cells lie on Earth.
    """
    plt, cells, signed = pyplot(), values.cells, values.low < 0
    norm = plt.Normalize(values.low, values.high)
    # Colours that differ for every kind of colour vision; zero is the lightest.
    colours = plt.cm.ScalarMappable(norm, "PuOr_r" if signed else "Blues")
    lines = cells.geom_type.str.contains("Line").any()
    look = {"ax": ax, "alpha": 0.8, "linewidth": 1.5 if lines else 0.2, "markersize": 16}
    look["rasterized"] = len(cells) > MOST_SHAPES
    if roads is not None and len(roads):
        drawn = roads.geometry.to_crs(cells.crs)
        drawn.plot(ax=ax, color=BASELINE.colour, linewidth=0.35, zorder=0.5, rasterized=len(drawn) > MOST_SHAPES)
    known, unknown = cells[cells["value"].notna()], cells[cells["value"].isna()]
    if len(known):
        known.plot(column="value", cmap=colours.cmap, norm=norm, **look)
    if len(unknown):
        unknown.plot(facecolor="none", edgecolor=BASELINE.colour, **look)
    below, words = known[known["value"] < 0], values.title
    if signed and len(below) and below.geom_type.str.endswith("Polygon").all():
        below.plot(facecolor="none", edgecolor=PLAIN.colour, hatch="////", **look)  # tells the sign in grey print
        words += "; hatched: below 0"
    beyond = (known["value"] < values.low).any(), (known["value"] > values.high).any()
    extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(beyond, "neither")
    bar = ax.figure.colorbar(colours, ax=ax, extend=extend, shrink=0.8, pad=0.02, aspect=25)
    bar.set_label(plain(values.unit))
    ax.set_title(plain(words), loc="left")
    ax.set_aspect("equal")
    ax.set_axis_off()
    if scale:
        _add_scale(ax, cells.total_bounds)
    under: dict[str, Any] = {
        "xytext": (0, -2),
        "textcoords": "offset points",
        "ha": "right",
        "va": "top",
        "fontsize": "x-small",
    }
    ax.annotate(textwrap.fill(plain(credit), 44), (1, 0), xycoords="axes fraction", **under)


def _add_scale(ax: "Axes", bounds: Iterable[float]) -> None:
    """Draw a bar of 1, 2 or 5 times a power of ten metres under the cells, at most a third of their width."""
    west, south, east, north = bounds
    air = 0.02 * max(east - west, north - south, 100.0)
    most = max(east - west, 10.0 * air) / 3
    power = 10.0 ** np.floor(np.log10(most))
    length = float(max(step * power for step in (1, 2, 5) if step * power <= most))
    y = south - 2.0 * air
    ax.plot([west, west + length], [y, y], color=PLAIN.colour, linewidth=2, solid_capstyle="butt", clip_on=False)
    words = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    ax.annotate(words, (west, y), (0, -3), textcoords="offset points", va="top", fontsize="small")
    ax.set_xlim(west - air, east + air)
    ax.set_ylim(y, north + air)

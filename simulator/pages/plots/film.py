"""Film of a run: its map with the vehicles, the values of the cells at each query, and what a coalition guessed."""

from functools import partial
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely  # type: ignore[import-untyped,unused-ignore]

from simulator.arrays import FloatArray, IntArray
from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.pages.charts.matplotlib import plain
from simulator.pages.charts.styles import PLAIN, STYLES
from simulator.pages.plots.city_map import chosen, chosen_mechanism, draw_map, projected, shape_of, values_of
from simulator.pages.plots.looks import figure_of, new_axes, paper_style, pyplot
from simulator.results.run import RunResult
from simulator.results.tables import stays_on_links
from simulator.roads.projection import WGS84

FILMS = {".gif": "pillow", ".mp4": "ffmpeg"}
"""Suffixes of films, and matplotlib's writer of each."""
FRAMES = 120
"""Frames of a film if no interval between them is given."""
FRAMES_PER_S = 12
_DOTS_PER_INCH = 120
WIDTH_IN = 1280 / _DOTS_PER_INCH
"""Width of a film if none is given, inches."""
_DOT = 4.0


def write_film(
    run: RunResult,
    file: Path,
    *,
    mechanism: str | None = None,
    campaign: str | None = None,
    quantity: str = "estimate",
    coalition: str | None = None,
    from_s: float = 0.0,
    to_s: float | None = None,
    every_s: float | None = None,
    width_in: float = WIDTH_IN,
    overwrite: bool = False,
) -> list[str]:
    """Write a film of a run: vehicles in motion over the cells, which have their values at the last query.

    Parameters
    ----------
    run
        The run; its vehicles are shown if it kept where they were.
    file
        The film, whose name ends in ``.gif`` or ``.mp4``.
    mechanism, campaign, quantity
        What the cells show, as in `RunPlots.map`.
    coalition
        A coalition of `guesses.parquet`, as ``server:1, server:2``: the film shows the true place of the vehicle that
        it guesses, and the cell that it takes for the vehicle's own. By default none.
    from_s, to_s
        The part of the run, seconds; by default all of it.
    every_s
        Time of the run between two frames, seconds; by default the part is divided into `FRAMES` frames.
    width_in
        Width, inches, of 120 dots each; by default 1,280 dots in all.
    overwrite
        Whether an existing file is replaced.

    Returns
    -------
    list of str
        Notes: what the film does not show.

    Raises
    ------
    InputError
        If the run has no such mechanism, campaign, quantity or coalition; the part holds no frame; the file has another
        suffix, exists and may not be replaced; or what writes it is not installed.
    """
    if file.suffix not in FILMS:
        raise InputError([f"film: its name must end in {' or '.join(FILMS)}; got {file.name!r}"])
    animation = import_extra("matplotlib.animation", needed="films need matplotlib", extra="plot")
    if not animation.writers.is_available(FILMS[file.suffix]):
        raise InputError([f"{file}: MP4 needs the program ffmpeg on the search path; a GIF needs none"])
    end_s = run.scenario.scenario.duration_s if to_s is None else to_s
    if not end_s > from_s or (every_s is not None and not every_s > 0.0):
        raise InputError([f"film: to_s must be above from_s, every_s above 0; got {from_s:g}, {end_s:g}, {every_s}"])
    moments = np.linspace(from_s, end_s, FRAMES) if every_s is None else np.arange(from_s, end_s, every_s)
    plt = pyplot()
    with plt.rc_context(paper_style(width_in) | {"savefig.dpi": _DOTS_PER_INCH}):
        stage = _Stage(run, mechanism=mechanism, campaign=campaign, quantity=quantity, coalition=coalition)
        film = animation.FuncAnimation(stage.figure, stage.show, frames=moments, init_func=lambda: None)
        writer = animation.writers[FILMS[file.suffix]](fps=FRAMES_PER_S)
        export_file(file, partial(film.save, writer=writer), overwrite=overwrite)
    return stage.notes


class _Stage:
    """The axes of a film, and what changes on them from frame to frame."""

    def __init__(
        self, run: RunResult, *, mechanism: str | None, campaign: str | None, quantity: str, coalition: str | None
    ) -> None:
        lead = run.leading
        if lead.estimates.empty:
            raise InputError(["film: no estimate of any cell was published in this run"])
        campaign = chosen(campaign, dict.fromkeys(lead.estimates["campaign"]), "campaign")
        own = lead.estimates[lead.estimates["campaign"] == campaign]
        mechanism = chosen_mechanism(lead, own, mechanism)
        values = partial(values_of, lead, mechanism=mechanism, campaign=campaign, quantity=quantity)
        queries = own.loc[own["mechanism"] == mechanism, ["query", "time_s"]].drop_duplicates("query")
        self._times, numbers = queries["time_s"].to_numpy(), queries["query"].tolist()
        first = values(query=numbers[0])
        # One part a shape, so that the drawing has as many shapes as it is given values.
        self._shapes = projected(first.cells, lead.record.city.crs).explode()
        self._values = [self._shapes["cell"].map(values(query=one).cells.set_index("cell")["value"]) for one in numbers]
        self._words, self._clock = first.title.split("\n")[0], lead.record.clock
        ax = new_axes(shown=False, height=0.7 * shape_of(self._shapes) + 0.16)
        self.figure = figure_of(ax)
        every_cell = first._replace(cells=self._shapes.assign(value=first.low if first.low >= 0 else 0.0))
        draw_map(ax, every_cell, lead.roads, "; ".join(lead.attributions), scale=lead.record.city.on_earth)
        self._ax, self._cells = ax, ax.collections[-1]
        self._dots = ax.scatter([], [], s=_DOT, color=PLAIN.colour, linewidths=0, zorder=3)
        self._vehicles = _vehicles_of(run, self._shapes.crs)
        self.notes = [] if self._vehicles else ["film: no vehicles are in it, since the run kept none"]
        self._guesses = _guesses_of(run, campaign, mechanism, coalition)
        self._target = ax.scatter(
            [], [], s=60, facecolors="none", edgecolors=STYLES[1].colour, linewidths=1.5, zorder=4
        )
        self._outline: Any = None
        if coalition is not None:
            self._words += f"; ring: a vehicle's place,\nsquare: the cell that {coalition} guesses"

    def show(self, time_s: float) -> None:
        """Draw the moment `time_s`."""
        asked = int(np.searchsorted(self._times, time_s, side="right")) - 1
        values = self._values[asked].to_numpy() if asked >= 0 else np.full(len(self._shapes), np.nan)
        self._cells.set_array(np.ma.masked_invalid(values))
        words = "no query yet" if asked < 0 else f"last query {time_s - self._times[asked]:.0f} s ago"
        self._ax.set_title(plain(f"{self._words}\n{self._clock.text(round(time_s))}, {words}"), loc="left")
        if self._vehicles is None:
            return
        vehicle, places = self._vehicles.at(time_s)
        self._dots.set_offsets(places)
        if self._guesses is not None:
            self._target.set_offsets(places[vehicle == self._guesses["vehicle"].iloc[0]])
            self._outline_guess(self._guesses[self._guesses["time_s"] <= time_s])

    def _outline_guess(self, known: pd.DataFrame) -> None:
        """Outline the cell of the last of the guesses that are `known`."""
        if self._outline is not None:
            self._outline.remove()
            self._outline = None
        guessed = self._shapes[self._shapes["cell"] == (known["guess"].iloc[-1] if len(known) else 0)]
        if len(guessed):
            guessed.boundary.plot(ax=self._ax, color=STYLES[1].colour, linewidth=1.5, zorder=4)
            self._outline = self._ax.collections[-1]


class _OnLinks:
    """Vehicles by their entries into links, placed as `entries.parquet` is described (docs/reference/columns.md)."""

    def __init__(self, entries: pd.DataFrame, roads: gpd.GeoDataFrame, *, every: int) -> None:
        rows = stays_on_links(entries).sort_values(["link", "lane", "time_s"], kind="stable")
        self._vehicle, self._link = rows["vehicle"].to_numpy(), rows["link"].to_numpy()
        self._enters_s, self._leaves_s = rows["time_s"].to_numpy(), rows["leave_s"].fillna(np.inf).to_numpy()
        self._queue = rows.groupby(["link", "lane"], sort=False).ngroup().to_numpy()
        self._lines = roads.geometry.to_numpy()
        self._free_s = (roads["length_m"] / roads["speed_mps"]).to_numpy()
        self._gap = every * (roads["spacing_m"] / roads["length_m"]).to_numpy()
        self._wave_s = every * roads["wave_s"].to_numpy()

    def at(self, time_s: float) -> tuple[IntArray, FloatArray]:
        """Return the vehicles on the roads, and their places, (vehicles, 2) metres."""
        row = np.flatnonzero((self._enters_s <= time_s) & (time_s < self._leaves_s))
        link, ahead = self._link[row], np.zeros(len(row))
        waits, before = np.arange(len(row)), 0
        while len(waits):  # those for which each of the first `before` vehicles ahead still counts
            before += 1
            waits = waits[row[waits] >= before]
            behind, front = row[waits], row[waits] - before
            counts = (self._queue[front] == self._queue[behind]) & (
                self._leaves_s[front] > time_s - before * self._wave_s[link[waits]]
            )
            waits = waits[counts]
            ahead[waits] = before
        free = (time_s - self._enters_s[row]) / self._free_s[link]
        share = np.clip(np.minimum(free, 1.0 - ahead * self._gap[link]), 0.0, 1.0)
        points = shapely.line_interpolate_point(self._lines[link], share, normalized=True)
        return self._vehicle[row], shapely.get_coordinates(points)


class _AtMoments:
    """Vehicles by their places at regular moments: each is where it was at the last one."""

    def __init__(self, places: pd.DataFrame, xy: FloatArray) -> None:
        self._rows = dict(places.groupby("time_s").indices)
        self._moments, self._vehicle, self._xy = np.array([*self._rows]), places["vehicle"].to_numpy(), xy

    def at(self, time_s: float) -> tuple[IntArray, FloatArray]:
        """Return the vehicles that are seen, and their places, (vehicles, 2) metres."""
        last = max(0, int(np.searchsorted(self._moments, time_s, side="right")) - 1)
        rows = self._rows[self._moments[last]]
        return self._vehicle[rows], self._xy[rows]


def _vehicles_of(run: RunResult, crs: Any) -> _OnLinks | _AtMoments | None:
    """Return the vehicles of a run, in the coordinate system of the map; None if it kept none."""
    if run.entries is not None and run.roads is not None:
        return _OnLinks(run.entries, run.roads.to_crs(crs), every=run.record.motion_every)
    if run.places is None or run.places.empty:
        return None
    lon_lat = gpd.points_from_xy(run.places["lon"], run.places["lat"], crs=WGS84).to_crs(crs)
    return _AtMoments(run.places, shapely.get_coordinates(lon_lat))


def _guesses_of(run: RunResult, campaign: str, mechanism: str, coalition: str | None) -> pd.DataFrame | None:
    """Return what a coalition guessed, by time; of several attacks of it, the first one's.

    Raises
    ------
    InputError
        If it guessed nothing in this campaign about this mechanism.
    """
    if coalition is None:
        return None
    own = pd.DataFrame(columns=["campaign", "mechanism", "coalition"]) if run.guesses is None else run.guesses
    own = own[(own["campaign"] == campaign) & (own["mechanism"] == mechanism)]
    chosen(coalition, own["coalition"].unique(), "coalition")
    own = own[own["coalition"] == coalition]
    first: pd.DataFrame = own[own["name"] == own["name"].iloc[0]].sort_values("time_s")
    return first

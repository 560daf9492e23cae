"""Report section: the vehicles in motion, as compressed arrays that the page's script turns into places."""

import base64
import gzip
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import shapely  # type: ignore[import-untyped,unused-ignore]
from numpy.typing import ArrayLike

from simulator.pages.traffic_section import RECORDINGS
from simulator.results.formatting import size
from simulator.results.run import RunResult

_FINE = 64
"""Parts of a unit of the drawing in which places are stored."""
_FINEST = 0.2
"""Distance in the drawing below which bends of a link are left out."""
_MOST_VALUES = 2_000_000
"""Most values of links in intervals that a page holds."""
_PARTS = 8
"""Parts of a tick in which times are stored, rounded up, so that at a whole tick each vehicle is where it is."""


@dataclass
class _Columns:
    """Arrays of whole numbers from 0, each as its lowest bytes, then its next bytes, …, which compresses well."""

    names: list[tuple[str, int, int]] = field(default_factory=list)
    bytes: list[bytes] = field(default_factory=list)

    def add(self, name: str, values: ArrayLike) -> None:
        array = np.asarray(values, dtype=np.int64)
        planes = max(1, (int(array.max(initial=0)).bit_length() + 7) // 8)
        self.names.append((name, len(array), planes))
        self.bytes += [(array >> 8 * plane & 255).astype(np.uint8).tobytes() for plane in range(planes)]

    def add_signed(self, name: str, values: ArrayLike) -> None:
        """Add numbers of either sign: 0, −1, 1, −2, 2 … as 0, 1, 2, 3, 4 and so on."""
        array = np.asarray(values, dtype=np.int64)
        self.add(name, np.where(array < 0, -2 * array - 1, 2 * array))

    def packed(self) -> dict[str, object]:
        content = gzip.compress(b"".join(self.bytes), compresslevel=6, mtime=0)
        return {"columns": self.names, "bytes": base64.b64encode(content).decode("ascii")}


def motion_section(run: RunResult, city: dict[str, Any]) -> dict[str, Any] | None:
    """
    Pack the movements of a run's vehicles for its page.

    Parameters
    ----------
    run
        The finished run.
    city
        The outlines of the map, of `city_outlines`.

    Returns
    -------
    values
        `page`, for the page's script, and values for the section's template; None where the run keeps no movements, or
        has no map.
    """
    motion = run.places if run.entries is None else run.entries
    if motion is None or motion.empty or not city["paths"]:
        return None
    traffic = run.settings.traffic
    columns, links, every = _Columns(), run.entries is not None, run.record.motion_every
    if run.roads is not None:
        _add_links(columns, run.roads, city, traffic.step_s)
    if links and run.roads is not None:
        _add_entries(columns, motion, run.roads, traffic.step_s)
    else:
        _add_places(columns, motion, city)
    interval_s = _add_intervals(columns, run)
    packed = columns.packed()
    page = {
        **packed,
        "kind": "links" if links else "places",
        "step_s": traffic.step_s / _PARTS if links else float(np.diff(np.unique(motion["time_s"])).min(initial=1e9)),
        "end_s": float(motion["time_s"].max()),
        "every": every,
        "interval_s": interval_s,
        "parked": traffic.parked == "answer",
        "waiting": traffic.waiting == "answer",
        "guesses": _guesses(run),
    }
    return {
        "page": page,
        "links": links,
        "every": every,
        "vehicles": motion["vehicle"].nunique(),
        "rows": int((motion["event"] == "entry").sum()) if links else len(motion),
        "size": size(float(len(str(packed["bytes"])))),
        "step_s": traffic.step_s if links else page["step_s"],
        "recorded": run.record.traffic.engine in RECORDINGS,
    }


def _units(city: dict[str, Any], lon_lat: Any) -> Any:
    """Return places, (n, 2) degrees, in fractions of the drawing's units."""
    west, north, across, down = city["frame"]
    return np.rint((lon_lat - [west, north]) * [across * _FINE, -down * _FINE])


def _add_links(columns: _Columns, roads: pd.DataFrame, city: dict[str, Any], step_s: float) -> None:
    """Add the shapes of the links, and what a place on them and the traffic on them follow from."""
    lines = roads["geometry"].to_numpy()
    drawn = shapely.simplify(shapely.transform(lines, lambda points: _units(city, points)), _FINEST * _FINE)
    places = shapely.get_coordinates(drawn)
    columns.add("points", shapely.get_num_points(drawn))
    columns.add("x", np.maximum(0, places[:, 0]))
    columns.add("y", np.maximum(0, places[:, 1]))
    columns.add("free", np.rint(100.0 * roads["length_m"] / roads["speed_mps"]))
    columns.add("length", np.rint(10.0 * roads["length_m"]))
    columns.add("lanes", roads["lanes"])
    columns.add("spacing", np.rint(1e6 * _of_queues(roads, "spacing_m") / roads["length_m"]))
    columns.add("wave", np.rint(1e3 * _of_queues(roads, "wave_s")))
    columns.add("soonest", _soonest(roads, step_s))
    columns.add("onward", _onward(roads))


def _add_intervals(columns: _Columns, run: RunResult) -> float | None:
    """Add volume and speed lost of each link in each interval; return the duration of one, None if there are none."""
    if run.links is None or run.links.empty or run.roads is None:
        return None
    table = run.links
    every_s = float((table["to_s"] - table["from_s"]).max())
    at = np.rint(table["from_s"] / every_s).astype(np.int64), table["link"].to_numpy()
    size = int(at[0].max()) + 1, len(run.roads)
    if size[0] * size[1] > _MOST_VALUES:
        return None
    free_mps = run.roads["speed_mps"].to_numpy()[at[1]]
    lost = 100.0 * (1.0 - table["mean_speed_mps"] / free_mps).clip(lower=0.0).fillna(0.0)
    for name, values in (("volume", 3600.0 * table["left"] / (table["to_s"] - table["from_s"])), ("lost", lost)):
        grid = np.zeros(size)
        grid[at] = values
        columns.add(name, np.rint(grid).ravel())
    return every_s


def _soonest(roads: pd.DataFrame, step_s: float) -> Any:
    """Return the least time on each link, in parts of a tick; times are stored relative to it."""
    ticks = np.floor((roads["length_m"] / roads["speed_mps"]).to_numpy() / step_s * _PARTS)
    return np.maximum(0, ticks - 1).astype(np.int64)


def _of_queues(roads: pd.DataFrame, column: str) -> Any:
    """Return a property of the links' queues; 0, with which all stand at the link's end, for runs without it."""
    return roads[column].fillna(0.0).to_numpy() if column in roads else np.zeros(len(roads))


def _onward(roads: pd.DataFrame) -> Any:
    """Return the first link that leaves each link's end; links are sorted by the node they leave."""
    return np.searchsorted(roads["from_node"].to_numpy(), roads["to_node"].to_numpy())


def _add_entries(columns: _Columns, motion: pd.DataFrame, roads: pd.DataFrame, step_s: float) -> None:
    """Add departures, link entries and arrivals: turns instead of links, delays instead of times."""
    departed = (motion["event"] == "departure").to_numpy()
    begins, time_s = np.flatnonzero(departed), motion["time_s"].to_numpy()
    again = np.flatnonzero(np.diff(motion["vehicle"].to_numpy()[begins]) == 0)  # of tours: trips, in their order
    if len(again):
        until_s = np.zeros(len(begins))
        until_s[again] = time_s[begins[again + 1]]
        trip = np.cumsum(departed) - 1
        motion = motion.assign(until_s=until_s[trip]).iloc[np.argsort(time_s[begins][trip], kind="stable")]
    tick = np.ceil(motion["time_s"].to_numpy() / step_s * _PARTS - 1e-6).astype(np.int64)
    link = motion["link"].to_numpy()
    event = motion["event"].map({"departure": 0, "entry": 1, "arrival": 2}).to_numpy(dtype=np.int8)
    begins, entered = np.flatnonzero(event == 0), event == 1
    if len(again):
        columns.add("vehicle", motion["vehicle"].to_numpy()[begins])
        columns.add("until", motion["until_s"].to_numpy()[begins] / step_s * _PARTS)
    ends = np.append(begins[1:], len(event))
    columns.add("departs", np.diff(tick[begins], prepend=0))
    columns.add("first", link[begins])
    columns.add("entries", np.add.reduceat(entered, begins))
    columns.add("arrived", event[ends - 1] == 2)
    columns.add("willing", motion["takes_part"].to_numpy()[begins])
    columns.add("lane", motion["lane"].to_numpy()[entered] if "lane" in motion else np.zeros(entered.sum()))
    onto = np.flatnonzero(entered[1:] & entered[:-1]) + 1
    columns.add("turns", link[onto] - _onward(roads)[link[onto - 1]])
    soonest = np.where(entered[:-1], _soonest(roads, step_s)[link[:-1]], 0)
    columns.add("delays", (np.diff(tick) - soonest)[event[1:] > 0])


def _add_places(columns: _Columns, motion: pd.DataFrame, city: dict[str, Any]) -> None:
    """Add places at regular moments, by vehicle; a vehicle that is away for a time has several tracks."""
    places = _units(city, motion[["lon", "lat"]].to_numpy()).astype(np.int64)
    moments, moment = np.unique(motion["time_s"].to_numpy(), return_inverse=True)
    vehicle = motion["vehicle"].to_numpy()
    begins = np.flatnonzero((np.diff(vehicle, prepend=-1) != 0) | (np.diff(moment, prepend=-1) != 1))
    columns.add("moments", np.rint(1000.0 * moments))
    columns.add("vehicle", vehicle[begins])
    columns.add("start", moment[begins])
    columns.add("count", np.diff(np.append(begins, len(vehicle))))
    columns.add("willing", motion["takes_part"].to_numpy()[begins])
    moves = np.diff(places, axis=0, prepend=0)
    columns.add_signed("x0", places[begins, 0])
    columns.add_signed("y0", places[begins, 1])
    moves[begins] = 0
    columns.add_signed("dx", moves[:, 0])
    columns.add_signed("dy", moves[:, 1])


def _guesses(run: RunResult) -> list[dict[str, Any]]:
    """Return what each coalition guessed about the vehicle chosen, by attack, campaign and mechanism."""
    if run.guesses is None:
        return []
    keys = ["name", "coalition", "campaign", "mechanism"]
    return [
        {
            **dict(zip(keys, map(str, key), strict=True)),
            "vehicle": int(rows["vehicle"].iloc[0]),
            "queries": rows["query"].tolist(),
            "cells": rows["guess"].tolist(),
            "truths": rows["truth"].tolist(),
            "sure": [
                round(float(share), 3) if np.isfinite(share) else None for share in rows["probability"].astype(float)
            ],
        }
        for key, rows in run.guesses.groupby(keys, sort=False, observed=True)
    ]

"""Report section: vehicles over time, by engine, or the coverage of a recording."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simulator.reporting import figures
from simulator.reporting.formatting import MISSING, number, percent, whole
from simulator.reporting.markup import Safe, data, element, figure, finite, table
from simulator.reporting.run_reader import FinishedRun

RECORDINGS = ("trace", "static")
"""Engines that simulate no traffic: they replay recorded locations of data owners."""
_MINUTE_S = 60.0


def recording_section(run: FinishedRun, page: dict[str, Any], record: Mapping[str, Any]) -> Safe:
    """
    Show the number of data owners present over time, with a plot if the number changes.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figure, if there is one, is added to it.
    record
        The traffic record in `run.json` of an engine in `RECORDINGS`.

    Returns
    -------
    html
        The section.
    """
    there, many = record["on_road"], run.called.many
    changes = min(there) < max(there)
    caption = f"{many[:1].upper()}{many[1:]} there, over the run"
    described = _described(record, many)
    notes = [str(note) for note in record.get("notes") or []]
    if changes:
        page["figures"]["traffic"] = _draw_recording(record["times_s"], there, many)
    return element(
        "section",
        element("h2", "Who is there"),
        element("p", described),
        figure("traffic", caption, described=f"{caption}. {described}") if changes else "",
        element("ul", *(element("li", note) for note in notes), class_="note") if notes else "",
        id="traffic",
    )


def _described(record: Mapping[str, Any], many: str) -> str:
    """State in one or two sentences how many data owners were present at the end, had left or were absent."""
    departed, there, gone, absent = (record[name][-1] for name in ("departed", "on_road", "arrived", "absent"))
    if set(record["on_road"]) == {departed}:
        return f"All {whole(departed)} {many} were there throughout." if departed else f"No {many} were there."
    said = f"Of {whole(departed)} {many} that were there at any time, {whole(there)} still were at the end"
    if gone:
        said += f"; {whole(gone)} had gone for good"
    if absent:
        said += f"; where {whole(absent)} were is not known"
    least, most = min(record["on_road"]), max(record["on_road"])
    return f"{said}. At the moments drawn there were {whole(least)} to {whole(most)}."


def _draw_recording(times_s: Sequence[float], there: Sequence[int], many: str) -> dict[str, Any]:
    line = {
        "x": finite([time_s / _MINUTE_S for time_s in times_s]),
        "y": finite(there),
        "mode": "lines",
        "name": "there",
        "line": {"color": figures.COLOURS[0], "width": 2.5},
        "hovertemplate": "minute %{x:.1f}: %{y:,} there<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "minutes from the start"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": many}, "rangemode": "tozero", "tickformat": ","},
        "height": 360,
        "margin": {"l": 70, "r": 30, "t": 12, "b": 48},
        "showlegend": False,
    }
    return {"data": [line], "layout": layout}


ALIKE = 1.1
"""Times spent in traffic that differ by less than this factor are reported as equal."""
UNLIKE = 0.01
"""Difference between shares of arrivals above which mean trip times are hard to compare."""
_ENGINES = {
    "fleet": "fleet engine",
    "agents": "agents engine",
    "sumo": "SUMO",
}


class _Driven(NamedTuple):
    """One engine's traffic: its record in `run.json`, and values derived from it."""

    label: str
    record: Mapping[str, Any]

    @property
    def called(self) -> str:
        """The engine's name within a sentence."""
        return f"the {self.label}" if self.label.endswith("engine") else self.label

    @property
    def begins(self) -> str:
        """The engine's name at the beginning of a sentence."""
        return self.called[:1].upper() + self.called[1:]

    def last(self, name: str) -> int:
        values = self.record.get(name) or [0]
        return int(values[-1])

    @property
    def mean_trip_s(self) -> float | None:
        values = self.record.get("mean_trip_s") or [None]
        return None if values[-1] is None else float(values[-1])

    @property
    def under_way(self) -> int:
        return self.last("on_road") + self.last("waiting")

    @property
    def spent_s(self) -> float:
        """Seconds on the road or waiting per departed vehicle, arrived or not: the area under both curves."""
        times = [0.0, *map(float, self.record["times_s"])]
        there = [0, *(a + b for a, b in zip(self.record["on_road"], self.record["waiting"], strict=True))]
        area = sum((times[i + 1] - times[i]) * (there[i + 1] + there[i]) / 2 for i in range(len(times) - 1))
        return area / self.last("departed") if self.last("departed") else math.nan

    @property
    def arrived_share(self) -> float:
        return self.last("arrived") / self.last("departed") if self.last("departed") else math.nan


def traffic_section(run: FinishedRun, page: dict[str, Any]) -> Safe:
    """
    Show vehicles on the road and waiting over time, and the state at the end, with engines side by side.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figure is added to it.

    Returns
    -------
    html
        The section; empty where the run kept no log of its traffic.
    """
    record = run.run.get("traffic") or {}
    if not record.get("times_s"):
        return Safe("")
    if record.get("engine") in RECORDINGS:
        return recording_section(run, page, record)
    driven = [_Driven(_label(one), one) for one in (record, *(record.get("beside") or []))]
    page["figures"]["traffic"] = _draw(driven)
    first, others = driven[0], driven[1:]
    several = f", {first.called} and {' and '.join(one.called for one in others)}" if others else ""
    caption = f"Vehicles on the road and waiting to enter it, over the run{several}"
    described = " ".join(_ending(one) for one in driven)
    notes = [_note(one, str(note), several=bool(others)) for one in driven for note in one.record.get("notes") or []]
    return element(
        "section",
        element("h2", "Traffic"),
        element("p", described),
        figure("traffic", caption, described=f"{caption}. {described}"),
        _table(driven),
        *(_compared(first, other) for other in others),
        element("ul", *(element("li", note) for note in notes), class_="note") if notes else "",
        id="traffic",
    )


def _label(record: Mapping[str, Any]) -> str:
    name = str(record.get("engine", "engine"))
    return _ENGINES.get(name, name)


def _note(one: _Driven, note: str, *, several: bool) -> str:
    return f"{one.begins}: {note}" if several and not note.startswith(one.label) else note


def _ending(one: _Driven) -> str:
    """State in one sentence how the run ended."""
    departed, on_road, waiting, arrived = (
        whole(one.last(name)) for name in ("departed", "on_road", "waiting", "arrived")
    )
    said = (
        f"{one.begins}: of {departed} vehicles, at the end {on_road} were on the road, {waiting} were waiting to enter "
        f"and {arrived} had arrived"
    )
    if one.last("absent"):
        said += f"; where {whole(one.last('absent'))} were is not known"
    if one.mean_trip_s is not None:
        said += f", {number(one.mean_trip_s)} s after their departure on average"
    return said + "."


def _table(driven: Sequence[_Driven]) -> Safe:
    rows = [
        [
            one.label,
            *(data(float(one.last(name)), whole(one.last(name))) for name in ("departed", "on_road", "waiting")),
            data(float(one.last("arrived")), f"{whole(one.last('arrived'))} ({percent(round(one.arrived_share, 3))})"),
            data(one.mean_trip_s, MISSING if one.mean_trip_s is None else f"{number(one.mean_trip_s)} s"),
            data(one.spent_s, f"{number(one.spent_s)} s"),
            data(float(one.record.get("stuck_released") or 0), whole(one.record.get("stuck_released") or 0)),
        ]
        for one in driven
    ]
    heads = [
        "Engine",
        "Departed",
        "On the road at the end",
        "Waiting at the end",
        "Arrived",
        "Mean trip of those arrived",
        "On the road or waiting, per vehicle departed",
        "Let through or teleported when stuck",
    ]
    caption = "Traffic over the whole run; a trip is from scheduled departure, waiting to enter included, to arrival"
    return table(caption, heads, rows)


def _compared(first: _Driven, other: _Driven) -> Safe:
    """State how much the results of two engines differ, and explain the differences of their models."""
    said = []
    ratio = first.spent_s / other.spent_s if other.spent_s else math.nan
    if math.isfinite(ratio):
        apart = max(ratio, 1 / ratio) if ratio > 0 else math.inf
        longer, shorter = (first, other) if ratio > 1 else (other, first)
        if apart < ALIKE:
            said.append(f"The two agree within {percent(round(apart - 1, 3))} on the time a vehicle spends in traffic.")
        else:
            said.append(
                f"A vehicle spends {number(apart)} times as long in the traffic of {longer.called} as in that of "
                f"{shorter.called}: {number(longer.spent_s)} s against {number(shorter.spent_s)} s within the run."
            )
    shares = (first.arrived_share, other.arrived_share)
    if all(map(math.isfinite, shares)) and abs(shares[0] - shares[1]) > UNLIKE:
        fewer, more = (first, other) if shares[0] < shares[1] else (other, first)
        words = (
            f"Mean trips are of those that arrived: {percent(round(fewer.arrived_share, 3))} with {fewer.called}, "
            f"{percent(round(more.arrived_share, 3))} with {more.called}."
        )
        if (fewer.mean_trip_s or 0.0) > (more.mean_trip_s or 0.0):
            words += f" The longest trips of {fewer.called} are not over and not in its mean: it is further behind."
        said.append(words)
    missing = first.last("departed") - other.last("departed")
    if missing > 0:
        said.append(
            f"{other.begins} left out {whole(missing)} of the vehicles "
            f"({percent(round(missing / first.last('departed'), 4))}): the notes below say which, and why."
        )
    elif missing < 0:
        said.append(
            f"{other.begins} drove {whole(-missing)} more vehicles than {first.called}: flows by chance are drawn anew "
            f"for it, and vehicles that {first.called} passed over are in its files all the same."
        )
    reasons = _reasons(first, other)
    return element(
        "div",
        element("h3", f"{first.begins} beside {other.called}"),
        element("ul", *(element("li", sentence) for sentence in said)),
        element("p", reasons) if reasons else "",
    )


def _reasons(first: _Driven, other: _Driven) -> str:
    """Explain the differences of the models, where they are SUMO and the spatial queue."""
    if {first.record.get("engine"), other.record.get("engine")} not in ({"sumo", "fleet"}, {"sumo", "agents"}):
        return ""
    return (
        "Both drove the vehicles of SUMO’s files, from the same times, by the same routes. In SUMO they stop at "
        "signals, give way at junctions, keep to the turns and lanes that are open to them, speed up and brake, halt "
        "at stops, and need room on a lane to enter. In the spatial queue of the other engine a vehicle crosses a link "
        "at free-flow speed and leaves it when the link’s capacity and the room on the next one allow: it knows "
        "neither signals nor right of way, and its junctions take no time. Where signals hold vehicles up it is the "
        "quicker of the two, and where they queue, it queues fewer."
    )


def _draw(driven: Sequence[_Driven]) -> dict[str, Any]:
    traces: list[dict[str, Any]] = []
    for place, one in enumerate(driven):
        minutes = [time_s / _MINUTE_S for time_s in one.record["times_s"]]
        paint = figures.COLOURS[place % len(figures.COLOURS)]
        for name, words, dash in (("on_road", "on the road", "solid"), ("waiting", "waiting to enter", "dot")):
            values = one.record[name]
            if name == "waiting" and not any(values):
                continue
            label = f"{one.label}, {words}" if len(driven) > 1 else words
            traces.append(
                {
                    "x": finite(minutes),
                    "y": finite(values),
                    "mode": "lines",
                    "name": label,
                    "line": {"color": paint, "width": 2.5, "dash": dash},
                    "hovertemplate": f"minute %{{x:.1f}}: %{{y:,}} {words}<extra></extra>",
                }
            )
    layout = {
        "xaxis": {"title": {"text": "minutes from the start"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "vehicles"}, "rangemode": "tozero", "tickformat": ","},
        "height": 360,
        "margin": {"l": 70, "r": 30, "t": 12, "b": 48},
        "showlegend": True,
    }
    return {"data": traces, "layout": layout}

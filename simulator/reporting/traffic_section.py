"""Report sections: vehicles over time by engine, the coverage of a recording, and link volumes beside published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.kinds import names_of, title
from simulator.reporting import figures
from simulator.reporting.figures import Figure, Page
from simulator.results.formatting import sentence_case
from simulator.results.record import LinkVolumes, TrafficRecord
from simulator.results.run import RunResult

RECORDINGS = names_of("engine", "recorded")
"""Engines that simulate no traffic: they replay recorded locations of data owners."""


@dataclass(frozen=True)
class EngineTraffic:
    """
    One engine's traffic: its record, and values derived from it.

    Parameters
    ----------
    record
        Its record in `run.json`.
    """

    record: TrafficRecord

    @property
    def label(self) -> str:
        """The engine's name in tables and plots."""
        return title("engine", self.record.engine, self.record.engine)

    @property
    def name(self) -> str:
        """The engine's name within a sentence."""
        return f"the {self.label}" if self.label.endswith("engine") else self.label

    @property
    def begins(self) -> str:
        """The engine's name at the beginning of a sentence."""
        return sentence_case(self.name)

    @property
    def departed(self) -> int:
        """Vehicles that departed during the run."""
        return self.record.departed[-1]

    @property
    def mean_trip_s(self) -> float | None:
        """Mean trip of the vehicles that arrived, seconds; None where not known."""
        return self.record.mean_trip_s[-1] if self.record.mean_trip_s else None

    @property
    def spent_s(self) -> float:
        """Seconds on the road or waiting per departed vehicle, arrived or not: the area under both curves."""
        times = [0.0, *self.record.times_s]
        in_traffic = [0, *(a + b for a, b in zip(self.record.on_road, self.record.waiting, strict=True))]
        area = sum((times[i + 1] - times[i]) * (in_traffic[i + 1] + in_traffic[i]) / 2 for i in range(len(times) - 1))
        return area / self.departed if self.departed else math.nan

    @property
    def arrived_share(self) -> float:
        """Share of the departed vehicles that arrived."""
        return self.record.arrived[-1] / self.departed if self.departed else math.nan


def traffic_section(run: RunResult, page: Page) -> dict[str, object] | None:
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
    values
        Values for the section's template; None where the run kept no log of its traffic.
    """
    record = run.record.traffic
    if not record.times_s:
        return None
    if record.engine in RECORDINGS:
        return _recording(run, page, record)
    engines = [EngineTraffic(one) for one in (record, *record.beside)]
    page.figures["traffic"] = _draw(run, engines)
    notes = [(one, note) for one in engines for note in one.record.notes]
    beside = len(engines) > 1
    named = [f"{one.begins}: {note}" if beside and not note.startswith(one.label) else str(note) for one, note in notes]
    return {"recording": None, "engines": engines, "notes": named}


def _recording(run: RunResult, page: Page, record: TrafficRecord) -> dict[str, object]:
    """Show the number of data owners present over time, with a plot if the number changes."""
    changes = min(record.on_road) < max(record.on_road)
    if changes:
        minutes = [time_s / 60 for time_s in record.times_s]
        hover = "minute %{x:.1f}: %{y:,} present"
        line = figures.curve(minutes, record.on_road, "present", hover, figures.STYLES[0].colour)
        page.figures["traffic"] = _over_time([line], run, run.owners.many, legend=False)
    return {"recording": record, "drawn": changes, "notes": record.notes}


def _over_time(traces: Sequence[Figure], run: RunResult, unit: str, *, legend: bool) -> Figure:
    x = figures.axis(run.record.clock.minutes_axis, rangemode="tozero")
    y = figures.axis(unit, rangemode="tozero", tickformat=",")
    return figures.plot(traces, x, y, height=360, left=70, right=30, legend=legend)


def _draw(run: RunResult, engines: Sequence[EngineTraffic]) -> Figure:
    traces: list[Figure] = []
    for place, one in enumerate(engines):
        minutes = [time_s / 60 for time_s in one.record.times_s]
        paint = figures.numbered_style(place).colour
        waiting = [(one.record.waiting, "waiting to enter", "dot")] if any(one.record.waiting) else []
        for values, words, dash in ((one.record.on_road, "on the road", "solid"), *waiting):
            label = f"{one.label}, {words}" if len(engines) > 1 else words
            hover = f"minute %{{x:.1f}}: %{{y:,}} {words}"
            traces.append(figures.curve(minutes, values, label, hover, paint, dash=dash))
    return _over_time(traces, run, "vehicles", legend=True)


FURTHEST = 20
"""Number of links, those whose volumes differ most, that are listed individually."""


def flow_check_section(run: RunResult, page: Page) -> dict[str, object] | None:
    """
    Compare the run's link volumes with published ones, and explain the differences.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figure is added to it.

    Returns
    -------
    values
        Values for the section's template; None where the scenario names no published flows.
    """
    check = run.record.flow_check
    if check is None:
        return None
    volumes = check.volumes
    page.figures["flows"] = _scatter(volumes)
    links = sorted(range(check.links), key=lambda link: -abs(volumes.run[link] - volumes.published[link]))[:FURTHEST]
    return {"check": check, "links": links}


def _scatter(volumes: LinkVolumes) -> Figure:
    names = [f"{start} → {end}" for start, end in zip(volumes.from_, volumes.to, strict=True)]
    reach = 1.04 * max(1.0, *volumes.published, *volumes.assignment, *volumes.run)
    traces = [figures.curve([0, reach], [0, reach], "as published", None, width=1, dash="dot")]
    for column, words, paint, symbol, size in (
        (volumes.assignment, "Static, computed here", figures.STYLES[5].colour, "circle-open", 9),
        (volumes.run, "This run", figures.STYLES[1].colour, "circle", 6),
    ):
        hover = "link %{text}<br>published %{x:,.0f}<br>%{y:,.0f}"
        points = figures.markers(volumes.published, column, words, hover, paint, size=size, symbol=symbol)
        traces.append({**points, "text": names})
    x = figures.axis("published volume, vehicles", range=[0, reach])
    y = figures.axis("volume, vehicles", range=[0, reach])
    return figures.plot(traces, x, y, height=460, left=80, right=30, legend=True)

"""Report sections: vehicles over time by engine, the coverage of a recording, and link volumes beside published."""

import math
from typing import Any

from scenarios.kinds import names_of, title
from simulator.charts import Axis, Chart, Series
from simulator.charts.styles import PLAIN, STYLES, numbered_style
from simulator.reporting.document import PageSection
from simulator.results.formatting import sentence_case
from simulator.results.record import BESIDE, LinkVolumes, TrafficRecord
from simulator.results.run import RunResult
from simulator.results.statements import say

NAMES_ENGINE = {"sumo_drove", "sumo_counted", "sumo_warned"}
"""Codes of notes that begin with the name of their engine."""
RECORDINGS = names_of("engine", "recorded")
"""Engines that simulate no traffic: they replay recorded locations of data owners."""


def engine_label(engine: str) -> str:
    """Return an engine's name in tables and plots."""
    return title("engine", engine, engine)


def _ending(record: TrafficRecord) -> dict[str, Any]:
    """
    Return how an engine's traffic ended, for the section's template.

    Parameters
    ----------
    record
        The engine's record in `run.json`.

    Returns
    -------
    values
        `record`; `label`, the engine's name in tables; `name` and `begins`, its name within a sentence and at the
        beginning of one; `departed`, vehicles that departed during the run; `arrived_share`, the share of them that
        arrived; `mean_trip_s`, mean trip of those that arrived, seconds, None where not known; `spent_s`, seconds on
        the road or waiting per departed vehicle, arrived or not: the area under both curves.
    """
    label, departed = engine_label(record.engine), record.departed[-1]
    name = f"the {label}" if label.endswith("engine") else label
    times = [0.0, *record.times_s]
    in_traffic = [0, *(a + b for a, b in zip(record.on_road, record.waiting, strict=True))]
    area = sum((times[i + 1] - times[i]) * (in_traffic[i + 1] + in_traffic[i]) / 2 for i in range(len(times) - 1))
    return {
        "record": record,
        "label": label,
        "name": name,
        "begins": sentence_case(name),
        "departed": departed,
        "arrived_share": record.arrived[-1] / departed if departed else math.nan,
        "mean_trip_s": record.mean_trip_s[-1] if record.mean_trip_s else None,
        "spent_s": area / departed if departed else math.nan,
    }


def traffic_section(run: RunResult) -> PageSection | None:
    """
    Show vehicles on the road and waiting over time, and the state at the end, with engines side by side.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where the run kept no log of its traffic.
    """
    record = run.record.traffic
    if not record.times_s:
        return None
    if record.engine in RECORDINGS:
        changes = min(record.on_road) < max(record.on_road)
        drawn = over_time(run) if changes else None
        return _traffic({"recording": record, "drawn": drawn, "notes": record.notes})
    unit = "trips" if record.departed[-1] > run.record.vehicles else "vehicles"  # trips, where vehicles make several
    engines = [{**_ending(one), "unit": unit} for one in (record, *record.beside)]
    notes = [
        say(note) if len(engines) == 1 or note.code in NAMES_ENGINE else f"{one['begins']}: {say(note)}"
        for one, where in zip(engines, ("traffic", BESIDE), strict=False)
        for note in run.record.noticed
        if note.where == where
    ]
    return _traffic({"recording": None, "engines": engines, "drawn": over_time(run), "notes": notes})


def _traffic(values: dict[str, object]) -> PageSection:
    return PageSection("traffic", "Traffic", template="traffic", values=values)


def over_time(run: RunResult, *, arrived: bool = False) -> Chart:
    """
    Draw the vehicles on the road and waiting to enter it over the minutes of the run; each engine has one colour.

    Parameters
    ----------
    run
        A finished run that kept a log of its traffic.
    arrived
        Whether the vehicles that have arrived are drawn too, and those waiting even where none wait.

    Returns
    -------
    chart
        Of a recording: the data owners present.
    """
    series: list[Series] = []
    first = run.record.traffic
    for place, engine in enumerate((first, *first.beside)):
        minutes, look = [time_s / 60 for time_s in engine.times_s], numbered_style(place)
        states = [("on the road", "solid", engine.on_road)]
        states += [("waiting to enter", "dot", engine.waiting)] if arrived or any(engine.waiting) else []
        states += [("arrived", "dash", engine.arrived)] if arrived else []
        if engine.engine in RECORDINGS:
            states = [("present", "solid", engine.on_road)]
        for words, dash, counts in states:
            label = f"{engine_label(engine.engine)}, {words}" if first.beside else words
            series.append(Series(label, minutes, counts, style=look._replace(dash=dash)))
    x = Axis(run.record.clock.minutes_axis, from_zero=True)
    y = Axis(run.owners.many, from_zero=True)
    return Chart(series, x, y, height=360, legend=len(series) > 1)


FURTHEST = 20
"""Number of links, those whose volumes differ most, that are listed individually."""


def flow_check_section(run: RunResult) -> PageSection | None:
    """
    Compare the run's link volumes with published ones, and explain the differences.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where the scenario names no published flows.
    """
    check = run.record.flow_check
    if check is None:
        return None
    volumes = check.volumes
    links = sorted(range(check.links), key=lambda link: -abs(volumes.run[link] - volumes.published[link]))[:FURTHEST]
    values = {"check": check, "links": links, "drawn": _scatter(volumes)}
    return PageSection("flows", "Published flows", template="flows", values=values)


def _scatter(volumes: LinkVolumes) -> Chart:
    names = [f"link {start} → {end}" for start, end in zip(volumes.from_, volumes.to, strict=True)]
    reach = 1.04 * max(1.0, *volumes.published, *volumes.assignment, *volumes.run)
    static, driven = STYLES[5]._replace(symbol="circle", hollow=True), STYLES[1]._replace(symbol="circle")
    series = [
        Series("as published", [0, reach], [0, reach], style=PLAIN._replace(dash="dot"), thin=True),
        Series("Static, computed here", volumes.published, volumes.assignment, "points", static, texts=names),
        Series("This run", volumes.published, volumes.run, "points", driven, texts=names),
    ]
    x, y = (Axis(f"{words}, vehicles", ends=(0, reach)) for words in ("published volume", "volume"))
    title = "One point a link. On the diagonal a volume is as published."
    return Chart(series, x, y, title, about="Volume of each link against the published one.", height=460)

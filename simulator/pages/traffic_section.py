"""Report sections: vehicles over time, flow against density, a recording's coverage, link volumes beside published."""

import math
from collections import Counter
from typing import Any

import numpy as np

from scenarios.kinds import names_of, title
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.styles import BASELINE, numbered_style
from simulator.pages.document import PageSection
from simulator.results.formatting import sentence_case
from simulator.results.record import TrafficRecord
from simulator.results.run import RunResult
from simulator.results.run_record import BESIDE
from simulator.results.statements import say
from simulator.results.tables import stays_on_links

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
    diagram = fundamental_diagram(run)
    if record.engine in RECORDINGS:
        changes = min(record.on_road) < max(record.on_road)
        drawn = over_time(run) if changes else None
        return _traffic({"recording": record, "drawn": drawn, "diagram": diagram, "notes": record.notes})
    unit = "trips" if record.departed[-1] > run.record.vehicles else "vehicles"  # trips, where vehicles make several
    engines = [{**_ending(one), "unit": unit} for one in (record, *record.beside)]
    notes = [
        say(note) if len(engines) == 1 or note.code in NAMES_ENGINE else f"{one['begins']}: {say(note)}"
        for one, where in zip(engines, ("traffic", BESIDE), strict=False)
        for note in run.record.noticed
        if note.where == where
    ]
    return _traffic(
        {"recording": None, "engines": engines, "drawn": over_time(run), "diagram": diagram, "notes": notes}
    )


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
    y = Axis(run.record.owners.many, from_zero=True)
    return Chart(series, x, y, height=360, legend=len(series) > 1)


def fundamental_diagram(run: RunResult) -> Chart | None:
    """
    Draw the network's fundamental diagram: the mean flow of all links against their mean density, by interval.

    Both follow Edie's definitions over all links: distance covered, and time spent, over the length of the network
    times the duration.

    Parameters
    ----------
    run
        A finished run.

    Returns
    -------
    chart
        None of a run without links by interval.
    """
    if run.links is None or run.links.empty or run.roads is None:
        return None
    driven_km = run.links["mean_speed_mps"] * run.links["occupied_s"] / 1000.0
    sums = run.links.assign(driven_km=driven_km).groupby(["from_s", "to_s"])[["driven_km", "occupied_s"]].sum()
    from_s, to_s = (sums.index.get_level_values(end) for end in ("from_s", "to_s"))
    km_hours = run.roads["length_m"].sum() / 1000.0 * (to_s - from_s) / 3600.0
    density, flow = sums["occupied_s"] / 3600.0 / km_hours, sums["driven_km"] / km_hours
    texts = [f"until {run.record.clock.text(moment)}" for moment in to_s]
    x, y = (Axis(f"mean {words}", from_zero=True) for words in ("density, vehicles/km", "flow, vehicles/h"))
    title = (
        "The network’s fundamental diagram: flow against density of all links, one point an interval, in their order"
    )
    series = [Series("intervals", density, flow, "linked", numbered_style(0), texts=texts)]
    return Chart(series, x, y, title, about=f"{title}.", height=360, legend=False)


def time_space(run: RunResult, vehicle: int | None = None) -> Chart | None:
    """
    Draw the vehicles on the links of one route: distance along the route against time.

    A line leads from where and when a vehicle entered a link to where and when it left it; of a vehicle that waited it
    shows the mean speed on the link.

    Parameters
    ----------
    run
        A finished run.
    vehicle
        The vehicle whose route it is; by default one on the route that most vehicles drove from end to end, or of
        several such routes the one with the most entries into its links.

    Returns
    -------
    chart
        None if the run kept no link entries, or none of this vehicle.
    """
    if run.entries is None or run.roads is None:
        return None
    entered = stays_on_links(run.entries)
    routes: dict[Any, tuple[int, ...]] = entered.groupby("vehicle")["link"].agg(tuple).to_dict()
    if vehicle is None and routes:
        alike, busy = Counter(routes.values()), Counter(entered["link"].tolist())
        vehicle = max(routes, key=lambda one: (alike[routes[one]], sum(busy[link] for link in routes[one])))
    if vehicle is None or vehicle not in routes:
        return None
    length_m, ends, along_m = run.roads["length_m"].to_numpy(), dict[int, tuple[float, float]](), 0.0
    for link in routes[vehicle]:
        ends.setdefault(link, (along_m, along_m + length_m[link]))
        along_m += length_m[link]
    shown = entered[entered["link"].isin(ends) & entered["leave_s"].notna()]
    series = []
    own = shown["vehicle"] == vehicle
    for name, lines, look in (
        ("other vehicles", shown[~own], BASELINE),
        (f"vehicle {vehicle}", shown[own], numbered_style(0)),
    ):
        gap = [math.nan] * len(lines)
        minutes = np.column_stack([lines["time_s"] / 60.0, lines["leave_s"] / 60.0, gap]).ravel()
        metres = np.column_stack([np.array([ends[link] for link in lines["link"]]).reshape(-1, 2), gap]).ravel()
        series.append(Series(name, minutes, metres, style=look, thin=look is BASELINE))
    title = f"Vehicles on the links of the route of vehicle {vehicle}"
    x = Axis(run.record.clock.minutes_axis)
    return Chart(series, x, Axis("distance along the route, m", from_zero=True), title, about=f"{title}.")

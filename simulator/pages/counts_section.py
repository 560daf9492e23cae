"""Report section: measured counts and speeds beside the run's, and beside estimates from reports."""

import numpy as np
import pandas as pd
import shapely

from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.styles import PLAIN, STYLES, numbered_style
from simulator.pages.document import PageGroup, PageSection, ShownTable, marked
from simulator.results.formatting import counted, number, percent, signed
from simulator.results.run import RunResult
from simulator.results.tables import SIMULATED, records

WORST = 20
MOST_LINKS = 5_000
"""Maximum number of links on the map: the fastest."""
_ASPECT = 0.8
"""Width over height of a map, of three charts side by side."""
_GEH = (
    ("GEH below 5", 0.0, 5.0, STYLES[2]),
    ("GEH 5 to 10", 5.0, 10.0, STYLES[4]),
    ("GEH 10 or more", 10.0, np.inf, STYLES[1]),
)
_ABOUT_GEH = (
    "GEH is √(2 (m − c)² / (m + c)) of two hourly flows; models of traffic are commonly required to have a GEH below 5 "
    "in 85 % of comparisons."
)
_HEADS = [("Place", False), ("Link", True), ("Interval", False), ("Measured", True), ("Simulated", True), ("GEH", True)]
_KM_A_DEGREE = 111.195


def count_lines(run: RunResult) -> list[str]:
    """Return a sentence for each source on how its counts and speeds agree with the measured or simulated ones."""
    lines = []
    for row in records(run.count_fit) if run.count_fit is not None else ():
        line = f"Counts, {_named(run, row['source'], row['campaign'])} against {row['against']}:"
        if row["flows"]:
            line += f" GEH below 5 for {percent(row['geh_below_5'])} of {counted(row['flows'], 'flow')}, RMSE "
            line += f"{number(row['flow_rmse'])} vehicles/h ({number(row['flow_rmse_percent'])} % of the mean), "
            line += f"correlation {number(row['flow_correlation'])}."
        if row["speeds"]:
            line += f" RMSE of {counted(row['speeds'], 'speed')} {number(row['speed_rmse'])} m/s, bias "
            line += f"{signed(row['speed_bias'])} m/s, correlation {number(row['speed_correlation'])}."
        lines.append(line)
    return lines


def _named(run: RunResult, source: str, campaign: str) -> str:
    return source if source == SIMULATED else f"{run.record.label(source)} ({campaign})"


def counts_section(run: RunResult) -> PageSection | None:
    """
    Compare the run's counts and speeds with measured ones: a scatter plot, a map and the places that differ most.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where the scenario names no measured counts.
    """
    if run.counts is None:
        return None
    hours = (run.counts["to_s"] - run.counts["from_s"]) / 3600.0
    flows = run.counts.assign(measured=run.counts["measured_count"] / hours, flow=run.counts["count"] / hours)
    flows = flows.dropna(subset="geh")
    simulated = flows[flows["source"] == SIMULATED]
    charts = [_scatter(run, flows, "measured", "flow", "flow, vehicles/h"), _map(run, simulated)] if len(flows) else []
    speeds = run.counts.dropna(subset=["measured_speed_mps", "speed_mps"])
    charts += [_scatter(run, speeds, "measured_speed_mps", "speed_mps", "speed, m/s")] if len(speeds) else []
    worst = simulated.sort_values("geh", ascending=False, kind="stable")[:WORST]
    clock = run.record.clock
    rows = [
        [row["place"], str(row["link"]), " to ".join(clock.text(row[end]) for end in ("from_s", "to_s"))]
        + [marked(row[name]) for name in ("measured", "flow", "geh")]
        for row in records(worst)
    ]
    groups = [PageGroup(charts=charts)]
    if len(worst):
        left_out = f"{len(simulated) - WORST:,} others are in counts.parquet" if len(simulated) > WORST else ""
        table = ShownTable("Flows that differ most by GEH, vehicles/h", _HEADS, rows, left_out=left_out)
        groups.append(PageGroup(table=table))
    about = [*count_lines(run), _ABOUT_GEH]
    if (run.counts["source"] != SIMULATED).any():
        about.append(
            "A flow estimated from reports is the mean number of vehicles over the link's length, times their speed."
        )
    return PageSection("counts", "Measured counts", about=about, groups=groups)


def _scatter(run: RunResult, rows: pd.DataFrame, x: str, y: str, words: str) -> Chart:
    """Draw the values of each source over the measured ones."""
    reach = 1.04 * max(1e-9, rows[x].max(), rows[y].max())
    low = min(0.0, 1.04 * rows[y].min())
    series = [Series("as measured", [0, reach], [0, reach], style=PLAIN._replace(dash="dot"), thin=True)]
    for place, ((source, campaign), part) in enumerate(rows.groupby(["source", "campaign"], sort=False, observed=True)):
        name, texts = _named(run, str(source), str(campaign)), part["place"].tolist()
        series.append(Series(name, part[x], part[y], "points", numbered_style(place), texts=texts))
    axes = Axis(f"measured {words}", ends=(0, reach)), Axis(words, ends=(low, reach))
    return Chart(series, *axes, "One point a place and interval. On the diagonal a value is as measured.", height=460)


def _map(run: RunResult, rows: pd.DataFrame) -> Chart:
    """Draw the places by the mean GEH of their intervals, on the roads."""
    roads = run.roads
    lines = roads.geometry.to_numpy()  # type: ignore[union-attr]  # counts are on links
    bounds = shapely.total_bounds(lines)
    scale = np.array([np.cos(np.radians(bounds[1::2].mean())), 1.0]) * _KM_A_DEGREE
    places = rows.groupby(["place", "link", "position_m"], as_index=False)["geh"].mean()
    share = places["position_m"] / roads["length_m"].to_numpy()[places["link"]]  # type: ignore[index]
    points = shapely.line_interpolate_point(lines[places["link"]], share, normalized=True)
    places[["x", "y"]] = (shapely.get_coordinates(points) - bounds[:2]) * scale
    places["text"] = places["place"] + ", GEH " + places["geh"].map(number)
    fastest = roads["speed_mps"].nlargest(MOST_LINKS).index  # type: ignore[index]
    pairs = [[line.coords[0], line.coords[-1], (np.nan, np.nan)] for line in lines[fastest]]
    x, y = ((np.reshape(pairs, (-1, 2)) - bounds[:2]) * scale).T
    series = [Series("roads", x, y, style=PLAIN._replace(colour="#b8c2cc"), thin=True, legend="")]
    for name, low, high, style in _GEH:
        part = places[(places["geh"] >= low) & (places["geh"] < high)]
        series.append(Series(name, part["x"], part["y"], "points", style, texts=part["text"].tolist()))
    size = (bounds[2:] - bounds[:2]) * scale
    half = max(size[1], size[0] / _ASPECT) / 2.0 * np.array([_ASPECT, 1.0])
    (west, south), (east, north) = size / 2.0 - half, size / 2.0 + half
    axes = Axis("km east", ends=(west, east)), Axis("km north", ends=(south, north))
    return Chart(series, *axes, "Places by the mean GEH of their intervals, simulated.", height=460)

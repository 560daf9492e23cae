"""Charts of a run that its report and its plots show: errors by occupancy, growth of the error, a cell over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.pages.charts import Axis, Chart, Series, Style
from simulator.pages.charts.styles import BASELINE, styles_of
from simulator.results.names import COUNT
from simulator.results.record import OccupancyTheory
from simulator.results.run import RunResult

POINT_LIMIT = 3000


def style(run: RunResult, mechanism: str) -> Style:
    """
    Choose a mechanism's style, the same in every chart.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        Its name; a refined estimate has the style of its mechanism.

    Returns
    -------
    style
        By `styles_of` the mechanisms other than no privacy; grey for the baseline.
    """
    if mechanism in run.record.refined:
        mechanism = mechanism.partition("+")[0]
    if mechanism in run.record.mechanisms_by_name and mechanism not in run.record.private:
        return BASELINE
    label = run.record.label(mechanism)
    return styles_of([*map(run.record.label, run.record.private), label])[label]


def occupancy(
    run: RunResult, mechanism: str, label: str, *, campaigns: Sequence[str], theory: OccupancyTheory | None
) -> Chart:
    """
    Draw one mechanism's errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism's name.
    label
        What is drawn, in words.
    campaigns
        The campaigns to include.
    theory
        The expected error; None where a cell's error does not depend on that cell alone.

    Returns
    -------
    chart
        Of more than `POINT_LIMIT` points every n-th, which its title says.
    """
    every_row = run.asked.estimates
    rows = every_row[(every_row["mechanism"] == mechanism) & every_row["campaign"].isin(campaigns)]
    truth = rows["truth"].to_numpy(dtype=float)
    error = (rows["estimate"] - rows["truth"]).to_numpy(dtype=float)
    known = np.isfinite(truth) & np.isfinite(error)
    truth, error = truth[known], error[known]
    every = max(1, -(-len(truth) // POINT_LIMIT))
    points = Series("one cell, one query", truth[::every], error[::every], "points", style(run, mechanism))
    band_at, band = _band(theory, truth)
    series = [Series("where theory puts 95 %", band_at, mark="band", low=-band, high=band)] if len(band_at) else []
    many = run.record.owners.many
    return Chart(
        [*series, points],
        Axis(f"{many} in the cell"),
        Axis("estimate − truth"),
        title=label + (f" (one point in {every} drawn)" if every > 1 else ""),
        about=f"{label}: error of each estimate against the {many} in the cell, with the band of theory.",
        legend=False,
    )


def _band(
    theory: OccupancyTheory | None, truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the central 95 % of the errors, (80,) each; empty arrays where they are not known."""
    if theory is None or not theory.occupancy or None in theory.std_error or not len(truth):
        return np.empty(0), np.empty(0)
    at, sigma = np.array(theory.occupancy, dtype=float), np.array(theory.std_error, dtype=float)
    order = np.argsort(at)
    x = np.linspace(truth.min(), min(truth.max(), at.max()), 80)
    # Without suppression the variance is affine in the occupancy: interpolating it is exact, interpolating σ is not.
    return x, 1.96 * np.sqrt(np.interp(x, at[order], sigma[order] ** 2))


def growth(run: RunResult) -> Chart | None:
    """
    Draw the theoretical and the measured error against the number of devices asked.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    chart
        On logarithmic axes, a line and points a mechanism; None where no mechanism has an error above 0.
    """
    series: list[Series] = []
    for name, mechanism in run.record.mechanisms_by_name.items():
        look, label, scaling = style(run, name), run.record.label(name), mechanism.scaling
        theory = [] if scaling is None else [(n, s) for n, s in zip(scaling.asked, scaling.std_error, strict=True) if s]
        if theory:
            asked, error = zip(*theory, strict=True)
            series.append(Series(f"{label}, theory", asked, error, "line", look, legend=label))
        if points := measured(run, name):
            asked, error = zip(*points, strict=True)
            series.append(Series(f"{label}, this run", asked, error, "points", look, legend=label))
    x, y = Axis("devices asked", log=True), Axis(f"error per cell, {run.record.owners.many}", log=True)
    about = "Error per cell against the number of devices asked."
    return Chart(series, x, y, about=about, height=420) if series else None


def measured(run: RunResult, mechanism: str) -> list[tuple[float, float]]:
    """
    Return pairs of devices asked and measured error, one per campaign.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism's name.

    Returns
    -------
    points
        Mean devices asked and RMSE, where both are above 0, the mechanism published its own counts and no budget was
        divided.
    """
    rows = run.asked.scores[run.asked.scores["mechanism"] == mechanism]
    points = [
        (run.mean_asked.get((str(campaign), mechanism), 0.0), float(rmse))
        for campaign, rmse in zip(rows["campaign"], rows["rmse"], strict=True)
        if run.statistics[str(campaign)] is COUNT
        and run.record.release_of(str(campaign), mechanism) is None
        and campaign not in run.budgeted
    ]
    return [(asked, rmse) for asked, rmse in points if asked > 0 and rmse > 0]


def over_queries(run: RunResult, campaign: str, mechanism: str, label: str) -> Chart:
    """
    Draw the truth, estimate and interval of a single cell over the queries.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.
    label
        What is drawn, in words.

    Returns
    -------
    chart
        Over the minutes of the run.
    """
    frame = run.estimates
    rows = frame[(frame["campaign"] == campaign) & (frame["mechanism"] == mechanism)].sort_values("query")
    columns = ("time_s", "truth", "estimate", "lower", "upper")
    time, truth, estimate, lower, upper = (rows[column].to_numpy(dtype=float) for column in columns)
    minutes, look = time / 60, style(run, mechanism)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    series = [
        Series("95 % interval", minutes[bounded], mark="band", style=look, low=lower[bounded], high=upper[bounded]),
        Series("estimate", minutes, estimate, "points", look),
        Series("truth", minutes, truth),
    ]
    return Chart(
        series,
        Axis(run.record.clock.minutes_axis),
        Axis(run.statistics[campaign].unit),
        title=label,
        about=f"{label}: truth, estimate and 95 % interval by query.",
        height=300,
    )

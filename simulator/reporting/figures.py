"""Plots of the report in the format of plotly.js."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.reporting.campaign_text import COUNT, release_of, statistics
from simulator.reporting.markup import finite, text
from simulator.reporting.run_reader import FinishedRun

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6E5A00", "#56B4E9", "#000000")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
INK = "#3d4852"
POINT_LIMIT = 3000


def colour(run: FinishedRun, mechanism: str) -> str:
    """
    Choose a mechanism's colour, the same in every figure.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        Its name.

    Returns
    -------
    colour
        Distinct from its neighbours' for every kind of colour vision; grey for the baseline.
    """
    if mechanism in run.refined:
        mechanism = mechanism.partition("+")[0]
    if mechanism in run.facts and run.facts[mechanism].kind == "no_privacy":
        return "#7b8794"
    return COLOURS[place(run, mechanism) % len(COLOURS)]


def place(run: FinishedRun, mechanism: str) -> int:
    """Return a mechanism's index among those other than no privacy; it selects colour, symbol and dash."""
    private = [name for name, facts in run.facts.items() if facts.kind != "no_privacy"]
    return private.index(mechanism) if mechanism in private else len(private)


def occupancy(
    run: FinishedRun, mechanism: str, *, campaigns: Sequence[str], theory: Mapping[str, Any] | None
) -> dict[str, Any]:
    """
    Draw one mechanism's errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism's name.
    campaigns
        The campaigns to include.
    theory
        Lists `occupancy` and `std_error`; None where a cell's error does not depend on that cell alone.

    Returns
    -------
    figure
        Traces and layout; with `drawn_every` = n, every n-th point is drawn.
    """
    rows = run.estimates[(run.estimates["mechanism"] == mechanism) & run.estimates["campaign"].isin(campaigns)]
    truth, error = (
        rows["truth"].to_numpy(dtype=float),
        (rows["estimate"] - rows["truth"]).to_numpy(dtype=float),
    )
    known = np.isfinite(truth) & np.isfinite(error)
    truth, error = truth[known], error[known]
    low, high = (float(truth.min()), float(truth.max())) if len(truth) else (0.0, 1.0)
    margin = 0.04 * max(high - low, 1.0)
    ends = (max(0.0, low - margin) if low > 0 else -margin, high + margin)
    band_at, band = _band(theory or {}, max(0.0, ends[0]), ends[1])
    every = max(1, -(-len(truth) // POINT_LIMIT))
    reach = max([1.0, *(float(value) * 1.05 for value in (band.max(initial=0), np.abs(error).max(initial=0)))])
    dots = {
        "x": finite(truth[::every]),
        "y": finite(np.round(error[::every], 3)),
        "mode": "markers",
        "name": "one cell, one query",
        "marker": {"color": colour(run, mechanism), "size": 5, "opacity": 0.35 if len(truth) > 300 else 0.6},
        "hovertemplate": "%{x:,} " + run.called.many + " there<br>estimate off by %{y:+.1f}<extra></extra>",
    }
    traces = [dots]
    if len(band_at):
        outline = {
            "x": finite([*band_at, *band_at[::-1]]),
            "y": finite([*band, *-band[::-1]]),
            "mode": "lines",
            "line": {"color": INK, "width": 1},
            "fill": "toself",
            "fillcolor": "rgba(61,72,82,0.10)",
            "name": "where theory puts 95 %",
            "hoverinfo": "skip",
        }
        traces = [outline, dots]
    layout = {
        "xaxis": {"title": {"text": f"{run.called.many} in the cell"}, "range": list(ends)},
        "yaxis": {"title": {"text": "estimate − truth"}, "zeroline": True, "range": [-reach, reach]},
        "height": 330,
    }
    return {"data": traces, "layout": layout, "group": "occupancy", "drawn_every": every}


def _band(theory: Mapping[str, Any], low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at = np.array([np.nan if value is None else value for value in theory.get("occupancy") or []], dtype=float)
    sigma = np.array([np.nan if value is None else value for value in theory.get("std_error") or []], dtype=float)
    if not len(at) or len(at) != len(sigma) or not np.isfinite(sigma).all():
        return np.empty(0), np.empty(0)
    order = np.argsort(at)
    x = np.linspace(low, min(high, float(at.max())), 80)
    # Without suppression the variance is affine in the occupancy: interpolating it is exact, interpolating σ is not.
    return x, 1.96 * np.sqrt(np.interp(x, at[order], sigma[order] ** 2))


def growth(run: FinishedRun) -> dict[str, Any] | None:
    """
    Draw the theoretical and the measured error against the number of devices asked.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    figure
        Traces and layout on logarithmic axes; None where no mechanism has an error above 0.
    """
    traces: list[dict[str, Any]] = []
    for name, facts in run.facts.items():
        index = place(run, name)
        paint, label = colour(run, name), str(text(facts.label))
        scaling = facts.record.get("scaling") or {}
        asked, sigma = list(scaling.get("asked") or []), list(scaling.get("std_error") or [])
        pairs = [(n, s) for n, s in zip(asked, sigma, strict=False) if n and s and np.isfinite(s)]
        if pairs:
            traces.append(
                {
                    "x": [n for n, _ in pairs],
                    "y": [s for _, s in pairs],
                    "mode": "lines",
                    "name": f"{label}, theory",
                    "line": {"color": paint, "width": 2.5, "dash": DASHES[index % len(DASHES)]},
                    "hovertemplate": "%{x:,} asked: σ = %{y:,.1f}<extra>" + label + "</extra>",
                }
            )
        points = measured(run, name)
        if points:
            traces.append(
                {
                    "x": [n for n, _ in points],
                    "y": [rmse for _, rmse in points],
                    "mode": "markers",
                    "name": f"{label}, this run",
                    "marker": {
                        "color": paint,
                        "size": 11,
                        "symbol": SYMBOLS[index % len(SYMBOLS)],
                        "line": {"color": "#fff", "width": 1.5},
                    },
                    "hovertemplate": "%{x:,} asked: RMSE %{y:,.1f}<extra>" + label + ", this run</extra>",
                }
            )
    if not traces:
        return None
    log: dict[str, Any] = {"type": "log", "dtick": 1, "tickformat": ","}
    layout = {
        "xaxis": {**log, "title": {"text": "devices asked"}},
        "yaxis": {**log, "title": {"text": f"error per cell, {run.called.many}"}},
        "height": 420,
        "margin": {"l": 70, "r": 48, "t": 12, "b": 48},
        "showlegend": True,
    }
    return {"data": traces, "layout": layout}


def measured(run: FinishedRun, mechanism: str) -> list[tuple[float, float]]:
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
        Mean devices asked and RMSE, where both are above 0 and the mechanism published its own counts.
    """
    rows = run.scores[run.scores["mechanism"] == mechanism]
    kinds = statistics(run.scores)
    points = [
        (run.mean_asked.get((str(campaign), mechanism), 0.0), float(rmse))
        for campaign, rmse in zip(rows["campaign"], rows["rmse"], strict=True)
        if kinds[str(campaign)] is COUNT and release_of(run, str(campaign), mechanism) is None
    ]
    return [(asked, rmse) for asked, rmse in points if asked > 0 and rmse > 0]


def series(run: FinishedRun, campaign: str, mechanism: str) -> dict[str, Any]:
    """
    Draw the truth, estimate and interval of a single cell over the queries.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.

    Returns
    -------
    figure
        Traces and layout.
    """
    frame, statistic = run.estimates, statistics(run.scores)[campaign]
    rows = frame[(frame["campaign"] == campaign) & (frame["mechanism"] == mechanism)].sort_values("query")
    columns = ("time_s", "truth", "estimate", "lower", "upper")
    time, truth, estimate, lower, upper = (rows[column].to_numpy(dtype=float) for column in columns)
    minutes = finite(np.round(time / 60, 4))
    paint = colour(run, mechanism)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    at = time[bounded] / 60
    band = {
        "x": finite([*at, *at[::-1]]),
        "y": finite([*upper[bounded], *lower[bounded][::-1]]),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": _faint(paint),
        "name": "95 % interval",
        "hoverinfo": "skip",
    }
    dots = {
        "x": minutes,
        "y": finite(np.round(estimate, 3)),
        "mode": "markers",
        "name": "estimate",
        "marker": {"color": paint, "size": 4 if len(rows) > 60 else 7},
        "hovertemplate": "minute %{x:.1f}: estimate %{y:,.1f}<extra></extra>",
    }
    line = {
        "x": minutes,
        "y": finite(truth),
        "mode": "lines",
        "name": "truth",
        "line": {"color": "#1f2933", "width": 2},
        "hovertemplate": "minute %{x:.1f}: truth %{y:,}<extra></extra>",
    }
    every = np.concatenate([values[np.isfinite(values)] for values in (truth, estimate, lower, upper)])
    span = _span(every)
    layout = {
        "xaxis": {"title": {"text": "minute of the run"}},
        "yaxis": {"title": {"text": statistic.unit}, "range": span},
        "height": 300,
        "showlegend": True,
    }
    return {"data": [band, dots, line], "layout": layout, "group": f"series {campaign}"}


def _span(values: NDArray[np.float64]) -> list[float]:
    if not len(values):
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * max(high - low, 1.0)
    return [low - margin, high + margin]


def _faint(hex_colour: str) -> str:
    red, green, blue = (int(hex_colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def share_scales(figures: Sequence[dict[str, Any]]) -> None:
    """
    Give each figure of a group a common vertical scale in addition to its own.

    Parameters
    ----------
    figures
        Figures of one group; changed in place: `scales` gains `own` and `same`.
    """
    spans = [list(figure["layout"]["yaxis"]["range"]) for figure in figures]
    same = [min(span[0] for span in spans), max(span[1] for span in spans)] if spans else [0, 1]
    for figure, own in zip(figures, spans, strict=True):
        figure["scales"] = {"own": own, "same": same}
        figure["layout"]["yaxis"]["range"] = same

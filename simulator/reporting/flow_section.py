"""Report section: link volumes compared with a published equilibrium."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.reporting import figures
from simulator.reporting.formatting import number, percent, whole
from simulator.reporting.markup import Safe, data, details, element, figure, finite, table
from simulator.reporting.run_reader import FinishedRun

FURTHEST = 20
"""Number of links, those whose volumes differ most, that are listed individually."""

_COLUMNS = (("published", "Published"), ("assignment", "Static, computed here"), ("run", "This run"))


def flow_check_section(run: FinishedRun, page: dict[str, Any]) -> Safe:
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
    html
        The section; empty where the scenario names no published flows.
    """
    check = run.run.get("flow_check")
    if not check:
        return Safe("")
    volumes = check["volumes"]
    page["figures"]["flows"] = _scatter(volumes)
    said = _verdict(check)
    return element(
        "section",
        element("h2", "Against published flows"),
        element("p", said),
        figure(
            "flows",
            "One point a link. On the diagonal a volume is as published.",
            described=f"Volume of each link against the published one. {said}",
        ),
        _comparison(check),
        element("p", element("strong", "What these are. "), _what(check)),
        element("ul", *(element("li", sentence) for sentence in _drivers(check))),
        _furthest(volumes),
        id="flows",
    )


def _verdict(check: Mapping[str, Any]) -> str:
    run, static = check["run"], check["assignment"]
    said = f"Over {whole(check['links'])} links, the volumes of this run "
    if run["correlation"] is None:
        said += "cannot be compared with the published ones: nothing was driven, or all volumes are alike. "
    else:
        said += (
            f"correlate with the published ones at {run['correlation']:.3f}, and differ from them by "
            f"{number(run['rmse_percent'])} % of their mean (root mean square). "
        )
    if static["correlation"] is not None:
        said += (
            f"The static equilibrium computed here from the same files correlates at {static['correlation']:.5f}, so "
            "network, trips and closed zones are read as their authors meant them (units are not shown by this: in "
            "equilibrium volumes are the same in any); what the run differs by, it differs by as a model."
            if static["correlation"] > _SAME
            else f"But the static equilibrium computed here from the same files correlates at only "
            f"{static['correlation']:.3f}: the published flows are not the equilibrium of these files as they were "
            "read. Check network, trips and costs (tolls and distances are not in ours) before reading on."
        )
    return said


_SAME = 0.999
"""Correlation from which two assignments of the same problem are taken to agree."""


def _comparison(check: Mapping[str, Any]) -> Safe:
    rows = (
        ("Correlation (Pearson)", "correlation", lambda value: f"{value:.5f}"),
        ("Slope over published", "slope", lambda value: f"{value:.3f}"),
        ("Sum over published", "ratio", lambda value: f"{value:.3f}"),
        ("RMSE, vehicles", "rmse", number),
        ("RMSE, % of mean published", "rmse_percent", number),
        ("Relative gap", "gap", _gap),
        ("Mean trip, minutes", "mean_trip_s", lambda value: f"{value / 60:.1f}"),
    )
    return table(
        "Link volumes against the published ones",
        ("", *(words for _, words in _COLUMNS)),
        [(words, *(_cell(check[column], key, shown) for column, _ in _COLUMNS)) for words, key, shown in rows],
    )


def _cell(column: Mapping[str, Any], key: str, shown: Any) -> Safe:
    value = column.get(key)
    return data(value, "–" if value is None else shown(value))


def _gap(value: float) -> str:
    """Format a relative gap; a small one as a power of ten, because only its order of magnitude matters."""
    if abs(value) < 1e-12:
        return "0, within rounding"
    return number(value) if abs(value) < 1e-3 else percent(value)


def _what(check: Mapping[str, Any]) -> str:
    hours = check["hours"]
    span = "an hour" if hours == 1 else f"{number(hours)} hours"
    return (
        f"The published flows are a static user equilibrium: all {whole(check['trips'])} trips of {span} are on every "
        "link of their path at once, the time of a link rises with its volume by a formula (BPR), and nobody has a "
        "quicker way. The relative gap says how far volumes are from that: how much longer all trips take together "
        "than they would on the quickest ways at the same times. Tolls and distances are not in our costs. This run "
        "is another model, a queue at each link with vehicles that move through time. How far the two agree hangs on "
        "how many of the trips are driven in how much time, and is no measure of the truth of either."
    )


def _drivers(check: Mapping[str, Any]) -> list[str]:
    published, vehicles = check["published"], check["vehicles"]
    said = []
    if published["over_capacity"]:
        said.append(
            f"A queue lets no more through than its capacity, the formula does: {whole(published['over_capacity'])} "
            f"of the published volumes are above capacity, the highest {published['highest_load']:.2f} times it. "
            "Where that is so, vehicles wait or drive around."
        )
    stands_for = check["stands_for"]
    if not math.isclose(stands_for, 1.0, rel_tol=0.01):
        said.append(
            f"The run drove {whole(vehicles)} vehicles for {whole(check['trips'])} trips, so its volumes are "
            f"multiplied by {stands_for:.3g}; with fewer vehicles on the road its queues are shorter."
        )
    said.append(
        "In equilibrium all trips know the times that they themselves will cause. Here drivers go by times measured "
        "a little earlier, and most keep to what they chose: some of the ways they take are not the quickest."
        if check["routing"] == "reactive"
        else "Here routing is free-flow: everybody takes the way that is quickest on empty roads, so the volumes know "
        "nothing of congestion."
    )
    said.append(
        "The roads of the run are empty at first and again at its end; the static flows are of one endless moment."
    )
    if check["unfinished"]:
        said.append(
            f"{whole(check['unfinished'])} of {whole(check['departed'])} vehicles were still under way at the end; the "
            "ways they meant to go on count in its volumes."
        )
    if check["departed"] < vehicles:
        said.append(f"{whole(vehicles - check['departed'])} vehicles had not departed by the end, and are not in them.")
    difference = published["cost_difference"]
    if difference is not None:
        said.append(
            "Our travel times at the published volumes are the published ones, within rounding."
            if difference < _ROUNDING
            else f"Our travel times at the published volumes differ from the published ones by up to "
            f"{percent(difference)}."
        )
    return [*said, *check["notes"]]


_ROUNDING = 1e-6


def _scatter(volumes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    names = [f"{start} → {end}" for start, end in zip(volumes["from"], volumes["to"], strict=True)]
    reach = 1.04 * max([1.0, *(value for column, _ in _COLUMNS for value in volumes[column])])
    traces: list[dict[str, Any]] = [
        {
            "x": [0, reach],
            "y": [0, reach],
            "mode": "lines",
            "name": "as published",
            "line": {"color": figures.INK, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }
    ]
    marks = {"assignment": (figures.COLOURS[5], "circle-open", 9), "run": (figures.COLOURS[1], "circle", 6)}
    for column, words in _COLUMNS[1:]:
        paint, symbol, size = marks[column]
        traces.append(
            {
                "x": finite(volumes["published"]),
                "y": finite(volumes[column]),
                "text": names,
                "mode": "markers",
                "name": words,
                "marker": {"color": paint, "size": size, "symbol": symbol},
                "hovertemplate": "link %{text}<br>published %{x:,.0f}<br>%{y:,.0f}<extra></extra>",
            }
        )
    layout = {
        "xaxis": {"title": {"text": "published volume, vehicles"}, "range": [0, reach]},
        "yaxis": {"title": {"text": "volume, vehicles"}, "range": [0, reach]},
        "height": 460,
        "margin": {"l": 80, "r": 30, "t": 12, "b": 48},
        "showlegend": True,
    }
    return {"data": traces, "layout": layout}


def _furthest(volumes: Mapping[str, Sequence[Any]]) -> Safe:
    links = range(len(volumes["published"]))
    order = sorted(links, key=lambda link: -abs(volumes["run"][link] - volumes["published"][link]))[:FURTHEST]
    return details(
        f"The {len(order)} links whose volumes differ most",
        table(
            "Volumes of links, vehicles",
            ("link", "capacity", *(words for _, words in _COLUMNS), "run − published"),
            [
                (
                    f"{volumes['from'][link]} → {volumes['to'][link]}",
                    *(data(volumes[key][link], whole(volumes[key][link])) for key in ("capacity", *dict(_COLUMNS))),
                    data(
                        volumes["run"][link] - volumes["published"][link],
                        f"{volumes['run'][link] - volumes['published'][link]:+,.0f}".replace("-", "−"),
                    ),
                )
                for link in order
            ],
        ),
    )

"""The part of the report that shows a recording over time: who was seen, and who was there."""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.reporting import figures
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, element, figure, finite
from simulator.reporting.numerals import whole

RECORDINGS = ("trace", "static")
"""Engines that drive nobody: they replay where data owners were."""
_MINUTE_S = 60.0


def recording_section(run: FinishedRun, page: dict[str, Any], record: Mapping[str, Any]) -> Safe:
    """
    Show how many data owners are there over time, in a plot where that changes.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; gains the figure, if there is one.
    record
        The traffic of `run.json`, of an engine of `RECORDINGS`.

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
        page["figures"]["traffic"] = _draw(record["times_s"], there, many)
    return element(
        "section",
        element("h2", "Who is there"),
        element("p", described),
        figure("traffic", caption, described=f"{caption}. {described}") if changes else "",
        element("ul", *(element("li", note) for note in notes), class_="note") if notes else "",
        id="traffic",
    )


def _described(record: Mapping[str, Any], many: str) -> str:
    """Say in a sentence or two who was there at the end, and what became of the others."""
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


def _draw(times_s: Sequence[float], there: Sequence[int], many: str) -> dict[str, Any]:
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

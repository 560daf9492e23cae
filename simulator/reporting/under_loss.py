"""The part of the report that shows what lost reports do to the error, paired and not."""

import math
from collections.abc import Mapping
from typing import Any

from simulator.reporting import figures
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, element, figure, finite, text
from simulator.reporting.numerals import SUPERSCRIPTS, listed, number, percent, whole

GROWS = 1.2
_LINES = (
    ("unpaired", "each round as heard", "solid"),
    ("paired", "only devices heard in every round", "dash"),
    ("ideal", "nothing lost", "dot"),
)


def loss_section(run: FinishedRun, page: dict[str, Any]) -> Safe:
    """
    Show theory's error under this run's losses against the devices asked, and what the run measured.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; gains the figures.

    Returns
    -------
    html
        The section; empty where nothing was lost.
    """
    records = [
        record
        for record in run.run.get("loss") or []
        if (facts := run.facts.get(str(record["mechanism"]))) is not None and facts.kind != "no_privacy"
    ]
    if not records:
        return Safe("")
    several = len({record["campaign"] for record in records}) > 1
    sentences: list[str] = []
    drawn: list[Safe] = []
    for record in records:
        label = run.label(str(record["mechanism"])) + (f", campaign {record['campaign']}" if several else "")
        sentences.append(_sentence(record, label))
        key = f"loss-{len(drawn)}"
        page["figures"][key] = _draw(run, record)
        drawn.append(figure(key, label, described=f"Error against devices asked. {sentences[-1]}"))
    dependent = any(not record["independent"] for record in records)
    return element(
        "section",
        element("h2", "Error when reports are lost"),
        element(
            "p",
            "Two rounds carry the same noise, which cancels in their difference. A report that is lost in one round "
            "leaves its noise in the other. Counting only devices heard in every round repairs that, if servers can "
            "tell who those are. Lines are theory at this run’s losses, the point is what this run measured; both axes "
            "are logarithmic."
            + (" Theory takes the losses of a device’s rounds to be independent; here they are not." * dependent),
        ),
        element("ul", *(element("li", sentence) for sentence in sentences)),
        element("div", *drawn, class_="grid"),
        id="loss",
    )


def _sentence(record: Mapping[str, Any], label: str) -> str:
    heard = listed([percent(share) for share in record["heard"]])
    rounds = "" if record["rounds"] == 1 else " in its rounds"
    said = f"{label}: {heard} of the devices asked were heard{rounds}. "
    ends = {name: _ends(record, name) for name in ("unpaired", "paired")}
    (first, last) = record["asked"][0], record["asked"][-1]
    across = f"from {whole(first)} to {whole(last)} devices asked"
    if ends["unpaired"] is None:
        return said + "Its error is not known."
    low, high = ends["unpaired"]
    if record["rounds"] == 1:
        return said + f"One round has nothing to pair: its error goes from {number(low)} to {number(high)} {across}."
    grows = "grows" if high > GROWS * low else "goes"
    said += f"Unpaired, its error {grows} from {number(low)} to {number(high)} vehicles {across}"
    if ends["paired"] is None:
        return said + "."
    low, high = ends["paired"]
    if high > GROWS * low:
        return said + f"; paired, from {number(low)} to {number(high)}."
    return said + f"; paired it stays at {number(high)}."


def _ends(record: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    known = [value for value in record[name] or [] if value is not None and math.isfinite(value)]
    return (known[0], known[-1]) if known else None


def _draw(run: FinishedRun, record: Mapping[str, Any]) -> dict[str, Any]:
    mechanism, campaign = str(record["mechanism"]), str(record["campaign"])
    paint = figures.colour(run, mechanism)
    traces: list[dict[str, Any]] = []
    for name, words, dash in _LINES:
        values = record[name]
        # On a logarithmic axis there is no place for an error of 0.
        if values is None or not any(values):
            continue
        traces.append(
            {
                "x": list(record["asked"]),
                "y": finite(value or math.nan for value in values),
                "mode": "lines",
                "name": words,
                "line": {"color": figures.INK if name == "ideal" else paint, "width": 2.5, "dash": dash},
                "hovertemplate": f"{words}: %{{x:,}} asked, σ = %{{y:,.1f}}<extra></extra>",
            }
        )
    rows = run.scores[(run.scores["mechanism"] == mechanism) & (run.scores["campaign"] == campaign)]
    rmse, asked = rows["rmse"].max(), run.mean_asked.get((campaign, mechanism))
    if asked and rmse > 0:
        words = "this run, paired" if record["pairs"] and record["rounds"] > 1 else "this run"
        traces.append(
            {
                "x": [asked],
                "y": [float(rmse)],
                "mode": "markers",
                "name": words,
                "marker": {"color": paint, "size": 12, "symbol": "circle", "line": {"color": "#fff", "width": 1.5}},
                "hovertemplate": f"{text(words)}: %{{x:,}} asked, RMSE %{{y:,.1f}}<extra></extra>",
            }
        )
    first, last = (round(math.log10(record["asked"][place])) for place in (0, -1))
    powers = range(first, last + 1)
    layout = {
        "xaxis": {
            "type": "log",
            "tickvals": [10**power for power in powers],
            "ticktext": [f"10{str(power).translate(SUPERSCRIPTS)}" for power in powers],
            "title": {"text": "devices asked"},
        },
        "yaxis": {"type": "log", "dtick": 1, "tickformat": ",", "title": {"text": "error per cell, vehicles"}},
        "height": 400,
        "margin": {"l": 70, "r": 30, "t": 12, "b": 48},
        "showlegend": True,
    }
    return {"data": traces, "layout": layout}

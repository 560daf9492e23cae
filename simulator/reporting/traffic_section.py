"""Report sections: vehicles over time by engine, the coverage of a recording, and link volumes beside published."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scenarios.kinds import names_of, title
from simulator.experiment.run_record import FlowCheckRecord, LinkVolumes, TrafficRecord
from simulator.reporting import figures
from simulator.reporting.figures import Figure, Page
from simulator.reporting.formatting import number, percent, sentence_case, whole
from simulator.reporting.run_reader import FinishedRun

RECORDINGS = names_of("engine", "recorded")
"""Engines that simulate no traffic: they replay recorded locations of data owners."""
ALIKE = 1.1
"""Times spent in traffic that differ by less than this factor are reported as equal."""
UNLIKE = 0.01
"""Difference between shares of arrivals above which mean trip times are hard to compare."""


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
    def absent(self) -> int:
        """Vehicles whose location is unknown at the end."""
        return self.record.absent[-1] if self.record.absent else 0

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

    @property
    def ending(self) -> str:
        """One sentence that states how the run ended."""
        record = self.record
        text = (
            f"{self.begins}: of {whole(self.departed)} vehicles, at the end {whole(record.on_road[-1])} were on the "
            f"road, {whole(record.waiting[-1])} were waiting to enter and {whole(record.arrived[-1])} had arrived"
        )
        if self.absent:
            text += f"; the location of {whole(self.absent)} is unknown"
        if self.mean_trip_s is not None:
            text += f", {number(self.mean_trip_s)} s after their departure on average"
        return f"{text}."


def traffic_section(run: FinishedRun, page: Page) -> dict[str, object] | None:
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
    first, *others = engines = [EngineTraffic(one) for one in (record, *record.beside)]
    several = f", {first.name} and {' and '.join(one.name for one in others)}" if others else ""
    caption = f"Vehicles on the road and waiting to enter it, over the run{several}"
    described = " ".join(one.ending for one in engines)
    notes = [(one, note) for one in engines for note in one.record.notes]
    named = [f"{one.begins}: {note}" if others and not note.startswith(one.label) else str(note) for one, note in notes]
    return {
        "recording": False,
        "described": described,
        "figure": page.add("traffic", _draw(engines), caption, f"{caption}. {described}"),
        "engines": engines,
        "comparisons": [
            (f"{first.begins} beside {other.name}", _compared(first, other), _has_reasons(first, other))
            for other in others
        ],
        "notes": named,
    }


def _recording(run: FinishedRun, page: Page, record: TrafficRecord) -> dict[str, object]:
    """Show the number of data owners present over time, with a plot if the number changes."""
    present, many = record.on_road, run.owners.many
    caption, described = f"{sentence_case(many)} present over the run", _presence(record, many)
    drawn = None
    if min(present) < max(present):
        minutes = [time_s / 60 for time_s in record.times_s]
        hover = "minute %{x:.1f}: %{y:,} present"
        line = figures.curve(minutes, present, "present", hover, figures.COLOURS[0])
        drawn = page.add("traffic", _over_time([line], many, legend=False), caption, f"{caption}. {described}")
    return {"recording": True, "described": described, "figure": drawn, "notes": record.notes}


def _presence(record: TrafficRecord, many: str) -> str:
    """State in one or two sentences how many data owners were present at the end, had left or were absent."""
    departed, present, left, absent = (
        counts[-1] for counts in (record.departed, record.on_road, record.arrived, record.absent)
    )
    if set(record.on_road) == {departed}:
        return f"All {whole(departed)} {many} were present throughout." if departed else f"No {many} were present."
    text = f"Of {whole(departed)} {many} that were present at any time, {whole(present)} still were at the end"
    if left:
        text += f"; {whole(left)} had left for good"
    if absent:
        text += f"; the location of {whole(absent)} is unknown"
    return f"{text}. At the moments drawn {whole(min(record.on_road))} to {whole(max(record.on_road))} were present."


def _over_time(traces: Sequence[Figure], unit: str, *, legend: bool) -> Figure:
    x = figures.axis("minutes from the start", rangemode="tozero")
    y = figures.axis(unit, rangemode="tozero", tickformat=",")
    return figures.plot(traces, x, y, height=360, left=70, right=30, legend=legend)


def _draw(engines: Sequence[EngineTraffic]) -> Figure:
    traces: list[Figure] = []
    for place, one in enumerate(engines):
        minutes = [time_s / 60 for time_s in one.record.times_s]
        paint = figures.COLOURS[place % len(figures.COLOURS)]
        waiting = [(one.record.waiting, "waiting to enter", "dot")] if any(one.record.waiting) else []
        for values, words, dash in ((one.record.on_road, "on the road", "solid"), *waiting):
            label = f"{one.label}, {words}" if len(engines) > 1 else words
            hover = f"minute %{{x:.1f}}: %{{y:,}} {words}"
            traces.append(figures.curve(minutes, values, label, hover, paint, dash=dash))
    return _over_time(traces, "vehicles", legend=True)


def _compared(first: EngineTraffic, other: EngineTraffic) -> list[str]:
    """State how much the results of two engines differ."""
    sentences = []
    ratio = first.spent_s / other.spent_s if other.spent_s else math.nan
    if math.isfinite(ratio):
        apart = max(ratio, 1 / ratio) if ratio > 0 else math.inf
        longer, shorter = (first, other) if ratio > 1 else (other, first)
        sentences.append(
            f"The two agree within {percent(round(apart - 1, 3))} on the time a vehicle spends in traffic."
            if apart < ALIKE
            else f"A vehicle spends {number(apart)} times as long in the traffic of {longer.name} as in that of "
            f"{shorter.name}: {number(longer.spent_s)} s against {number(shorter.spent_s)} s within the run."
        )
    shares = (first.arrived_share, other.arrived_share)
    if all(map(math.isfinite, shares)) and abs(shares[0] - shares[1]) > UNLIKE:
        fewer, more = (first, other) if shares[0] < shares[1] else (other, first)
        words = (
            f"Mean trips are of the vehicles that arrived: {percent(round(fewer.arrived_share, 3))} with {fewer.name}, "
            f"{percent(round(more.arrived_share, 3))} with {more.name}."
        )
        if (fewer.mean_trip_s or 0.0) > (more.mean_trip_s or 0.0):
            words += (
                f" The longest trips of {fewer.name} have not ended and are not in its mean: the true difference is "
                "larger."
            )
        sentences.append(words)
    missing = first.departed - other.departed
    if missing > 0:
        share = percent(round(missing / first.departed, 4))
        sentences.append(
            f"{other.begins} left out {whole(missing)} of the vehicles ({share}): the notes below state which, and why."
        )
    elif missing < 0:
        sentences.append(
            f"{other.begins} drove {whole(-missing)} more vehicles than {first.name}: flows with random departures are "
            f"drawn again for it, and the files include vehicles that {first.name} did not drive."
        )
    return sentences


def _has_reasons(first: EngineTraffic, other: EngineTraffic) -> bool:
    """Return whether the engines are SUMO and the spatial queue, the differences of whose models are explained."""
    return {first.record.engine, other.record.engine} in ({"sumo", "fleet"}, {"sumo", "agents"})


FURTHEST = 20
"""Number of links, those whose volumes differ most, that are listed individually."""
_SAME = 0.999
"""Correlation from which two assignments of the same problem are taken to agree."""


def _gap(value: float) -> str:
    """Format a relative gap; a small one as a power of ten, because only its order of magnitude matters."""
    if abs(value) < 1e-12:
        return "0, within rounding"
    return number(value) if abs(value) < 1e-3 else percent(value)


_MEASURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("Correlation (Pearson)", "correlation", "{:.5f}".format),
    ("Slope over published", "slope", "{:.3f}".format),
    ("Sum over published", "ratio", "{:.3f}".format),
    ("RMSE, vehicles", "rmse", number),
    ("RMSE, % of mean published", "rmse_percent", number),
    ("Relative gap", "gap", _gap),
    ("Mean trip, minutes", "mean_trip_s", lambda value: f"{value / 60:.1f}"),
)


def flow_check_section(run: FinishedRun, page: Page) -> dict[str, object] | None:
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
    volumes, verdict = check.volumes, _verdict(check)
    caption = "One point a link. On the diagonal a volume is as published."
    described = f"Volume of each link against the published one. {verdict}"
    links = sorted(range(check.links), key=lambda link: -abs(volumes.run[link] - volumes.published[link]))[:FURTHEST]
    measures = []
    for words, key, shown in _MEASURES:
        values = [getattr(column, key, None) for column in (check.published, check.assignment, check.run)]
        measures.append((words, [(value, "–" if value is None else shown(value)) for value in values]))
    return {
        "check": check,
        "verdict": verdict,
        "figure": page.add("flows", _scatter(volumes), caption, described),
        "measures": measures,
        "links": links,
    }


def _verdict(check: FlowCheckRecord) -> str:
    run, static = check.run, check.assignment
    text = f"Over {whole(check.links)} links, the volumes of this run "
    if run.correlation is None:
        text += "cannot be compared with the published ones: nothing was driven, or all volumes are alike. "
    else:
        text += (
            f"correlate with the published ones at {run.correlation:.3f}, and differ from them by "
            f"{number(run.rmse_percent)} % of their mean (root mean square). "
        )
    if static.correlation is None:
        return text
    if static.correlation > _SAME:
        return text + (
            f"The static equilibrium computed here from the same files correlates at {static.correlation:.5f}, so "
            "network, trips and closed zones are read as their authors meant them (units are not shown by this: "
            "equilibrium volumes are the same in any unit). The run differs because its model differs."
        )
    return text + (
        f"But the static equilibrium computed here from the same files correlates at only {static.correlation:.3f}: "
        "the published flows are not the equilibrium of these files as they were read. Check network, trips and costs "
        "(our costs leave out tolls and distances) first."
    )


def _scatter(volumes: LinkVolumes) -> Figure:
    names = [f"{start} → {end}" for start, end in zip(volumes.from_, volumes.to, strict=True)]
    reach = 1.04 * max(1.0, *volumes.published, *volumes.assignment, *volumes.run)
    traces = [figures.curve([0, reach], [0, reach], "as published", None, width=1, dash="dot")]
    for column, words, paint, symbol, size in (
        (volumes.assignment, "Static, computed here", figures.COLOURS[5], "circle-open", 9),
        (volumes.run, "This run", figures.COLOURS[1], "circle", 6),
    ):
        hover = "link %{text}<br>published %{x:,.0f}<br>%{y:,.0f}"
        points = figures.markers(volumes.published, column, words, hover, paint, size=size, symbol=symbol)
        traces.append({**points, "text": names})
    x = figures.axis("published volume, vehicles", range=[0, reach])
    y = figures.axis("volume, vehicles", range=[0, reach])
    return figures.plot(traces, x, y, height=460, left=80, right=30, legend=True)

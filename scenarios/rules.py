"""Rules between sections, over whatever fields of them are valid."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scenarios.campaigns import last_round_s
from scenarios.faults import Breach
from scenarios.section import Known, exceeds, number

MOST_TICKS = 2_000_000


@dataclass(frozen=True)
class Outline:
    """The valid fields of the sections that rules look across."""

    heading: Known
    traffic: Known
    campaigns: Sequence[Known]
    mechanisms: Sequence[Known]


def broken_between_sections(outline: Outline) -> Iterator[Breach]:
    """Yield each broken rule between sections; paths start at the root."""
    yield from _traffic(outline.heading, outline.traffic)
    for index, campaign in enumerate(outline.campaigns):
        for breach in _campaign(outline.heading, campaign):
            yield breach._replace(at=("campaigns", index, *breach.at))
    yield from _unique("campaigns", outline.campaigns)
    yield from _unique("mechanisms", outline.mechanisms)


def _traffic(heading: Known, traffic: Known) -> Iterator[Breach]:
    if not heading.has("duration_s"):
        return
    duration = heading["duration_s"]
    if traffic.has("step_s") and duration / traffic["step_s"] > MOST_TICKS:
        words = (
            f"the run must take at most {MOST_TICKS:,} steps, and duration_s / step_s is "
            f"{duration / traffic['step_s']:,.0f}"
        )
        yield Breach(("traffic", "step_s"), words, traffic["step_s"])
    windows = traffic.get("departures")
    for index, window in enumerate(windows if isinstance(windows, tuple) else ()):
        if window.to_s > duration:
            words = f"must be at most scenario.duration_s = {number(duration)}"
            yield Breach(("traffic", "departures", index, "to_s"), words, window.to_s)


def _campaign(heading: Known, campaign: Known) -> Iterator[Breach]:
    if heading.has("warmup_s") and campaign.has("start_s") and campaign["start_s"] < heading["warmup_s"]:
        words = f"must be at least scenario.warmup_s = {number(heading['warmup_s'])}: warm-up is without queries"
        yield Breach(("start_s",), words, campaign["start_s"])
    if not (heading.has("duration_s") and campaign.has("start_s", "queries", "round_gap_s")):
        return
    if campaign["queries"] > 1 and not campaign.has("every_s"):
        return
    last = last_round_s(campaign)
    if exceeds(last, heading["duration_s"]):
        words = (
            f"the last round must be asked within the run: it would be at {number(last)} s, "
            f"after scenario.duration_s = {number(heading['duration_s'])} s"
        )
        key = "queries" if campaign["queries"] > 1 else "start_s"
        yield Breach((key,), words, campaign[key])


def _unique(section: str, items: Sequence[Known]) -> Iterator[Breach]:
    for (earlier, first), (later, second) in itertools.combinations(enumerate(items), 2):
        if first.has("name") and first["name"] == second.get("name"):
            words = f"names must differ, and {section}[{earlier}] has this one too"
            yield Breach((section, later, "name"), words, second["name"])

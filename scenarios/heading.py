"""``[scenario]``: name, seed and length of the run."""

from collections.abc import Iterator

from scenarios.faults import Breach
from scenarios.section import Known, Name, NotNegative, Positive, Section, Whole, number


class Heading(Section):
    """What the scenario is called, and how long it runs. Times are seconds from the start of the run."""

    name: Name
    """Its name in listings and results."""
    description: str = ""
    """What it shows, in a sentence or two."""
    seed: Whole = 1
    """Seed of every random choice: the same scenario and seed give the same numbers."""
    duration_s: Positive
    """Length of the run, warm-up included, seconds."""
    warmup_s: NotNegative = 0.0
    """First part of the run, in which vehicles drive and nobody is asked, seconds."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a warm-up as long as the run."""
        if known.has("duration_s", "warmup_s") and known["warmup_s"] >= known["duration_s"]:
            words = f"must be below duration_s = {number(known['duration_s'])}"
            yield Breach(("warmup_s",), words, known["warmup_s"])

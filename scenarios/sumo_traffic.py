"""``[traffic]`` of engine ``sumo``: SUMO drives, and its vehicles are asked while it runs."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from scenarios.faults import Breach
from scenarios.permissions import trusted_only
from scenarios.references import FileReference
from scenarios.section import Known, NotNegative, Positive, Section

MOST_SEED = 2**31 - 1
_MILLISECONDS = 1000.0
_NEARLY_WHOLE = 1e-6


class SumoTraffic(Section):
    """Vehicles that SUMO drives, in a process of its own."""

    engine: Annotated[Literal["sumo"], trusted_only("SUMO reads whatever files its own files name")]
    config: FileReference | None = None
    """A ``.sumocfg``, which names network, routes and options; or give ``routes``. Outputs it names are not kept."""
    net: FileReference | None = None
    """Network, ``net.xml`` or ``net.xml.gz``; left out, that of ``[roads] source = "sumo"``."""
    routes: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Route files: vehicles, trips and flows, as SUMO reads them."""
    additional: Annotated[tuple[FileReference, ...], Field(strict=False)] = ()
    """Additional files, read before the routes: vehicle types, stops, signals."""
    begin_s: NotNegative | None = None
    """SUMO's time when the run begins, seconds; left out, the config's, or 0."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] | None = None
    """SUMO's seed; left out, drawn from the run's."""
    step_s: Positive = 1.0
    """SUMO's step, whole milliseconds in seconds."""
    mesoscopic: bool = False
    """Whether SUMO runs its mesoscopic model: queues, as ours, instead of vehicles that follow one another."""
    teleport_s: NotNegative | None = None
    """SUMO takes a vehicle that has stood for so long out and puts it in further on, seconds; 0 for never."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""
    beside: Literal["fleet"] | None = None
    """An engine that drives the same vehicles over the same roads afterwards, to hold its traffic against SUMO's."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between the files, and times that SUMO cannot count."""
        if "config" in known and "routes" in known:
            files = [name for name in ("net", "routes", "additional") if known.get(name)]
            if known["config"] is not None and files:
                yield Breach(("config",), f"names its own files: leave out {' and '.join(files)}", known["config"])
            if known["config"] is None and not known["routes"]:
                yield Breach(("routes",), "is required: the vehicles SUMO drives; or give a config")
        for name in ("step_s", "begin_s"):
            if known.has(name) and not _whole_milliseconds(known[name]):
                yield Breach((name,), "must be whole milliseconds: SUMO counts in them", known[name])


def _whole_milliseconds(seconds: float) -> bool:
    milliseconds = seconds * _MILLISECONDS
    return milliseconds == 0 or (round(milliseconds) >= 1 and abs(milliseconds - round(milliseconds)) <= _NEARLY_WHOLE)

"""What was recorded, by the engine that replays it."""

from collections.abc import Callable, Mapping
from typing import Any

from simulator.experiment.build.static import read_static
from simulator.experiment.build.trace import read_recording
from simulator.roads import RoadNetwork
from simulator.traffic.recorded import Recorded


def read_recorded(section: Any, roads: RoadNetwork | None) -> Recorded | None:  # a union told apart by its engine
    """Read the recording that a scenario's traffic replays; None where its engine drives.

    Raises
    ------
    TrafficError
        If the file cannot be read as it should be.
    """
    read = _RECORDED.get(section.engine)
    return None if read is None else read(section, roads)


_RECORDED: Mapping[str, Callable[[Any, RoadNetwork | None], Recorded]] = {
    "static": read_static,
    "trace": read_recording,
}

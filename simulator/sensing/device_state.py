"""Device state: what every device keeps between queries, by mechanism."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism, NoMemory
from simulator.streams import Streams


class Memories:
    """Enrols each device of the run once a mechanism, when it is first asked for.

    Most mechanisms keep nothing; a memoised one keeps the bits that protect a device over many queries, and
    would protect nobody if it drew them anew in each.

    Parameters
    ----------
    mechanisms
        By name. Memory that is not `NoMemory` must take an array of indices, `memory[indices]`.
    devices
        Vehicles of the run, and then the devices outside that answer one by one.
    streams
        The run's generators.
    """

    def __init__(self, mechanisms: Mapping[str, LocalMechanism], *, devices: int, streams: Streams) -> None:
        self._mechanisms, self._devices, self._streams = mechanisms, devices, streams
        self._kept: dict[str, Any] = {}

    def of(self, name: str, devices: npt.NDArray[np.int64]) -> Any:  # a mechanism's memory is its own
        """Return what these devices keep for mechanism `name`.

        Parameters
        ----------
        name
            A mechanism of the run.
        devices
            (n,) int64 numbers: a vehicle's own, or the number of vehicles and an outside device's own.
        """
        if name not in self._kept:
            rng = self._streams.of("memory", name)
            self._kept[name] = self._mechanisms[name].enrol(self._devices, rng=rng)
        kept = self._kept[name]
        return NoMemory(len(devices)) if isinstance(kept, NoMemory) else kept[devices]

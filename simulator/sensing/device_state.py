"""Device state: the memory that every device keeps between queries, by mechanism."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism, NoMemory
from simulator.streams import Streams


class Memories:
    """Enrols all devices of the run once for each mechanism, when its memory is first requested.

    Most mechanisms keep nothing. A memoised mechanism keeps the bits that protect a device over many queries; it would
    not protect any device if it drew new bits in each query.

    Parameters
    ----------
    mechanisms
        By name. Memory that is not `NoMemory` must take an array of indices, `memory[indices]`.
    devices
        The number of devices: vehicles of the run, followed by the devices outside that answer one by one.
    streams
        The random generators of the run.
    """

    def __init__(self, mechanisms: Mapping[str, LocalMechanism], *, devices: int, streams: Streams) -> None:
        self._mechanisms, self._devices, self._streams = mechanisms, devices, streams
        self._kept: dict[str, Any] = {}

    def of(self, name: str, devices: npt.NDArray[np.int64]) -> Any:  # a mechanism's memory is its own
        """Return the memory of these devices for mechanism `name`.

        Parameters
        ----------
        name
            A mechanism of the run.
        devices
            (n,) int64 device numbers: the vehicle's own number, or, for an outside device, its own number plus the
            number of vehicles.
        """
        if name not in self._kept:
            rng = self._streams.of("memory", name)
            self._kept[name] = self._mechanisms[name].enrol(self._devices, rng=rng)
        kept = self._kept[name]
        return NoMemory(len(devices)) if isinstance(kept, NoMemory) else kept[devices]

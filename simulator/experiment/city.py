"""City: roads and cells together, and which cell a vehicle is in."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.cells import Partition
from simulator.roads import RoadNetwork
from simulator.traffic.places import Places


@dataclass(frozen=True, eq=False)
class City:
    """Where everything happens.

    Attributes
    ----------
    roads
        The network vehicles drive on.
    cells
        The partition they are counted in.
    notes
        What was left out or filled in on the way here, in plain words.
    """

    roads: RoadNetwork
    cells: Partition
    notes: tuple[str, ...] = ()

    def cells_of(self, places: Places) -> npt.NDArray[np.int32]:
        """Return each vehicle's cell, (departed,) int32; 0 is outside every cell."""
        return self.cells.cell_of(self.roads.locate(places.link, places.fraction))

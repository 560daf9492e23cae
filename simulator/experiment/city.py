"""City: ground and cells together, and which cell a vehicle is in."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.cells import Partition
from simulator.experiment.ground import Ground
from simulator.roads import RoadNetwork
from simulator.traffic.places import Places


@dataclass(frozen=True, eq=False)
class City:
    """Where everything happens.

    Attributes
    ----------
    ground
        Roads, what was recorded, and the coordinate system of both.
    cells
        The partition vehicles are counted in.
    notes
        What was left out or filled in on the way here, in plain words.
    """

    ground: Ground
    cells: Partition
    notes: tuple[str, ...] = ()

    @property
    def has_roads(self) -> bool:
        """Whether there are roads to drive on."""
        return self.ground.roads is not None

    @property
    def roads(self) -> RoadNetwork:
        """The network vehicles drive on.

        Raises
        ------
        ValueError
            If there is none: ask `has_roads` first.
        """
        if self.ground.roads is None:
            raise ValueError("this city has no roads")
        return self.ground.roads

    def cells_of(self, places: Places) -> npt.NDArray[np.int32]:
        """Return each vehicle's cell, (departed,) int32; 0 is outside every cell."""
        return self.cells.cell_of(self.roads.locate(places.link, places.fraction) if places.xy is None else places.xy)

    def __repr__(self) -> str:
        return f"<City: {self.ground.roads if self.has_roads else 'no roads'}, {self.cells!r}>"

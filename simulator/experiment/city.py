"""City: ground and cells together, and which cell a vehicle is in."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simulator.cells import LinkCells, NameCells, Partition
from simulator.experiment.ground import Ground
from simulator.roads import RoadNetwork
from simulator.traffic.places import Places
from simulator.traffic.static import Owners


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
        """Return each vehicle's cell, (departed,) int32; 0 is outside every cell.

        Where it is said best: the site it is at, the link it is on where cells are links, its coordinates.
        """
        if places.site is not None and isinstance(self.ground.recorded, Owners):
            return self._cell_of_site[places.site]
        if isinstance(self.cells, LinkCells) and self.cells.knows_links:
            on_link = places.link >= 0
            if on_link.all():
                return self.cells.cell_of_link(places.link)
            cells = np.zeros(len(places), dtype=np.int32)
            cells[on_link] = self.cells.cell_of_link(places.link[on_link])
            if places.xy is not None:
                cells[~on_link] = self.cells.cell_of(places.xy[~on_link])
            return cells
        return self.cells.cell_of(self.roads.locate(places.link, places.fraction) if places.xy is None else places.xy)

    @cached_property
    def _cell_of_site(self) -> npt.NDArray[np.int32]:
        """The cell of each site of a table of owners: by its name where cells are named places, else by where it is."""
        owners = self.ground.recorded
        if not isinstance(owners, Owners):
            raise ValueError("only a table of data owners has sites")  # noqa: TRY004 - a city without, no wrong type
        if owners.sites.names is not None and isinstance(self.cells, NameCells) and self.cells.knows_names:
            return self.cells.cell_named(owners.sites.names)
        return self.cells.cell_of(owners.sites.xy)

    def __repr__(self) -> str:
        return f"<City: {self.ground.roads if self.has_roads else 'no roads'}, {self.cells!r}>"

"""Road-side units: a server for each district, to which the devices of the district report."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field

import numpy as np

from mechanisms.local import Estimate
from simulator.aggregation.combining import ServerTally, add_estimates
from simulator.aggregation.deployment import Handles
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.cells import Partition


@dataclass(frozen=True, eq=False)
class RoadsideUnits:
    """Aggregator with a road-side unit for each district; the last server is for devices outside every cell.

    A district is a block of cells (`Partition.coarsened`). A device registers with the unit of the district in which it
    is asked first, and sends all reports of the query there. The unit receives messages by radio, so it knows the
    district at that moment, whatever the reports are. The published estimate is the sum of all units' estimates.

    Parameters
    ----------
    cells
        The cells of the city.
    level
        How many times the side of a cell is doubled to obtain a district, 0 or more.
    handles, paired
        As in `Trusted`.
    """

    cells: InitVar[Partition]
    level: int = 1
    handles: Handles = "device"
    paired: bool = False
    unit_of_cell: IntArray = field(init=False, repr=False)
    """(cells + 1,) int64: the number of the server of each cell, from 1; [0] is the last server."""

    def __post_init__(self, cells: Partition) -> None:
        """Give each district a unit."""
        blocks = np.asarray(cells.coarsened(self.level))
        object.__setattr__(self, "unit_of_cell", np.concatenate([[blocks.max() + 2], blocks + 1]))

    @property
    def servers(self) -> int:
        """Number of units, and one more server for devices outside every cell."""
        return int(self.unit_of_cell[0])

    def assign_by_cell(self, cells: Cells, *, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - the place determines the unit
        """Return the unit of each device, (n,) int64 from 1, from its cell, (n,) int32."""
        return self.unit_of_cell[cells]

    def combine(self, tallies: Sequence[ServerTally]) -> Estimate:
        """Return the sum of the units' estimates of their own devices."""
        return add_estimates(tallies)

    def std_error(self, own: FloatArray) -> FloatArray:
        """Return the standard error of a sum of independent estimates, (cells,), from (servers, cells)."""
        total: FloatArray = np.sqrt((own**2).sum(axis=0))
        return total

"""Setting: a city and a view in which all mechanisms are held to one (ε, δ)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.planning import Target

EPSILON, DELTA = 1.0, 1e-6
OCCUPANCY = 100
POPULATIONS = (10**4, 10**5, 10**6, 10**7)
CELLS = (10, 100, 1000, 10_000)
POPULATION_OF_CELLS, CELLS_OF_POPULATION = 10**6, 100
VIEWS = {
    "report": "one report, whichever round's",
    "linked_reports": "all of a device's reports",
    "released": "what is published",
}


@dataclass(frozen=True)
class Setting:
    """So many cells of 100 vehicles each; everybody else asked is outside.

    Parameters
    ----------
    view
        In whose eyes (ε, δ) must hold.
    population
        N, devices asked.
    cells
        V.
    """

    view: str
    population: int
    cells: int

    @property
    def key(self) -> str:
        """How rows name it."""
        return f"{self.view}, N={self.population:,}, V={self.cells:,}"

    @property
    def target(self) -> Target:
        """What plans must meet."""
        return Target(
            cells=self.cells,
            population=self.population,
            occupancy=OCCUPANCY,
            view=self.view,
            epsilon=EPSILON,
            delta=DELTA,
        )

    @cached_property
    def truth(self) -> NDArray[np.int64]:
        """Devices outside and in each cell, (V + 1,)."""
        counts = np.full(self.cells + 1, OCCUPANCY, dtype=np.int64)
        counts[0] = self.population - OCCUPANCY * self.cells
        return counts


def settings(view: str) -> list[Setting]:
    """Return every population with 100 cells, and every number of cells with a million devices."""
    over_population = [Setting(view, population, CELLS_OF_POPULATION) for population in POPULATIONS]
    over_cells = [Setting(view, POPULATION_OF_CELLS, cells) for cells in CELLS]
    return [*over_population, *(setting for setting in over_cells if setting not in over_population)]

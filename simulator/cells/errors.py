"""Error of a partition, with all faults."""

from simulator.files.errors import FaultsError


class CellsError(FaultsError):
    """A partition that cannot be built."""

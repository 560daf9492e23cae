"""Error of a partition, with all faults at once."""

from simulator.files.errors import FaultsError


class CellsError(FaultsError):
    """A partition that cannot be made."""

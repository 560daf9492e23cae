"""What is wrong with a partition, all of it at once."""

from simulator.files.errors import FaultsError


class CellsError(FaultsError):
    """A partition that cannot be made."""

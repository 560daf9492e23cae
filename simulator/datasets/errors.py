"""Error of data sets, with all faults at once."""

from simulator.files.errors import FaultsError


class DatasetError(FaultsError):
    """A data set that is unknown, absent, not what the manifest says, or cannot be read."""

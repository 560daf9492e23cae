"""What is wrong with data sets, all of it at once."""

from simulator.files.errors import FaultsError


class DatasetError(FaultsError):
    """A data set that is unknown, absent, not what the manifest says, or cannot be read."""

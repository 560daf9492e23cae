"""Error of data sets, with all faults."""

from simulator.files.errors import FaultsError


class DatasetError(FaultsError):
    """A data set that is unknown, absent, different from the manifest, or cannot be read."""

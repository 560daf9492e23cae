"""Error of a road network, with all faults at once."""

from simulator.files.errors import FaultsError


class RoadsError(FaultsError):
    """A road network, or a file that should hold one, that cannot be used."""

"""The error raised for a road network, which lists all faults at once."""

from simulator.files.errors import FaultsError


class RoadsError(FaultsError):
    """A road network, or a file that should hold one, that cannot be used."""

"""What is wrong with a road network, all of it at once."""

from simulator.files.errors import FaultsError


class RoadsError(FaultsError):
    """A road network, or a file that should hold one, that cannot be used."""

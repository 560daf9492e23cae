"""Traffic error that lists all faults at once."""

from simulator.files.errors import FaultsError


class TrafficError(FaultsError):
    """Error raised when demand, a recording or an engine cannot be used."""

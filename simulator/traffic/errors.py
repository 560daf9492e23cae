"""Error of traffic, with all faults at once."""

from simulator.files.errors import FaultsError


class TrafficError(FaultsError):
    """Demand, a recording or an engine that cannot be used."""

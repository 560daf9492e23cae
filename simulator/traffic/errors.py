"""Former name of the error of traffic."""

from simulator.files.errors import InputError

TrafficError = InputError
"""Error raised when demand, a recording or an engine cannot be used."""

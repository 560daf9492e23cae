"""Networks in the format of the Transportation Networks test problems (TNTP)."""

from simulator.roads.tntp.flows import read_flows
from simulator.roads.tntp.metadata import Line, Metadata, lines_of, read_metadata
from simulator.roads.tntp.network import read_tntp

__all__ = ["Line", "Metadata", "lines_of", "read_flows", "read_metadata", "read_tntp"]

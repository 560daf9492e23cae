"""Traces: recorded positions in common file formats, and their conversion to recordings."""

from simulator.formats.recorded.map_matching import Matching
from simulator.formats.recorded.reading import FORMATS, read_trace
from simulator.formats.recorded.recordings import recording_of
from simulator.formats.recorded.trace import Trace

__all__ = ["FORMATS", "Matching", "Trace", "read_trace", "recording_of"]

"""Traces: recorded positions in common file formats, and their conversion to recordings."""

from simulator.formats.recordings.map_matching import Matching
from simulator.formats.recordings.reading import FORMATS, read_trace
from simulator.formats.recordings.recordings import recording_of
from simulator.formats.recordings.trace import Trace

__all__ = ["FORMATS", "Matching", "Trace", "read_trace", "recording_of"]

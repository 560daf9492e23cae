"""Traces: recorded positions in common file formats, and the engine that replays them."""

from simulator.formats.recorded.map_matching import Matching
from simulator.formats.recorded.replay import Recording, Replay
from simulator.formats.recorded.trace import FORMATS, Trace, read_trace

__all__ = ["FORMATS", "Matching", "Recording", "Replay", "Trace", "read_trace"]

"""Traces: recorded positions in common file formats, and the engine that replays them."""

from simulator.traffic.trace.map_matching import Matching
from simulator.traffic.trace.replay import Recording, Replay
from simulator.traffic.trace.trace import FORMATS, Trace, read_trace

__all__ = ["FORMATS", "Matching", "Recording", "Replay", "Trace", "read_trace"]

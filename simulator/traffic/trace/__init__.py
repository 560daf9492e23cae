"""Traces: recorded positions in common file formats, and the engine that replays them."""

from simulator.traffic.trace.matching import Matching
from simulator.traffic.trace.read_trace import FORMATS, read_trace
from simulator.traffic.trace.recording import Recording
from simulator.traffic.trace.replay import Replay
from simulator.traffic.trace.trace import Trace

__all__ = ["FORMATS", "Matching", "Recording", "Replay", "Trace", "read_trace"]

"""SUMO as an engine: it runs in a separate process, and its vehicles are queried while it runs."""

from simulator.traffic.sumo.engine import Sumo
from simulator.traffic.sumo.inputs import Insertions, SumoInputs

__all__ = ["Insertions", "Sumo", "SumoInputs"]

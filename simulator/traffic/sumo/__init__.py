"""SUMO as an engine: it drives in a process of its own, and its vehicles are asked while it runs."""

from simulator.traffic.sumo.engine import Sumo
from simulator.traffic.sumo.inputs import SumoInputs
from simulator.traffic.sumo.insertions import Insertions

__all__ = ["Insertions", "Sumo", "SumoInputs"]

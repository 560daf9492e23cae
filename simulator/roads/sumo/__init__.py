"""SUMO's networks, read by sumolib."""

from simulator.roads.sumo.frame import NetFrame
from simulator.roads.sumo.net import SumoNetReport, links_by_sumo_edge, read_sumo_net

__all__ = ["NetFrame", "SumoNetReport", "links_by_sumo_edge", "read_sumo_net"]

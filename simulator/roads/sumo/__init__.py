"""SUMO networks, read with sumolib."""

from simulator.roads.sumo.net import SumoNetReport, links_by_sumo_edge, read_sumo_net
from simulator.roads.sumo.net_coordinates import NetFrame

__all__ = ["NetFrame", "SumoNetReport", "links_by_sumo_edge", "read_sumo_net"]

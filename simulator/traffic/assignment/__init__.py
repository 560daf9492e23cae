"""Static assignment: user equilibrium under volume-delay functions, and how far volumes are from it."""

from simulator.traffic.assignment.bpr import Bpr
from simulator.traffic.assignment.equilibrium import Equilibrium, find_equilibrium
from simulator.traffic.assignment.loading import Loading, relative_gap
from simulator.traffic.assignment.od_pairs import OdPairs
from simulator.traffic.assignment.published import PublishedFlows

__all__ = ["Bpr", "Equilibrium", "Loading", "OdPairs", "PublishedFlows", "find_equilibrium", "relative_gap"]

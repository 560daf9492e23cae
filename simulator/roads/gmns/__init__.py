"""Networks in the General Modeling Network Specification (GMNS)."""

from simulator.roads.gmns.network import read_gmns

__all__ = ["read_gmns"]

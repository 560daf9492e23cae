"""Stationary data owners: vehicles counted at detectors, people who checked in at places."""

from simulator.traffic.static.owners import OwnerOptions, Owners, Static
from simulator.traffic.static.rows import FileFormat
from simulator.traffic.static.sites import Sites, read_places

__all__ = ["FileFormat", "OwnerOptions", "Owners", "Sites", "Static", "read_places"]

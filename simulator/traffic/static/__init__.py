"""Data owners that are somewhere and do not move: vehicles counted at detectors, people who checked in at places."""

from simulator.traffic.static.owners import Owners, Reading
from simulator.traffic.static.place_list import PlaceList
from simulator.traffic.static.rows import FileFormat, Rows
from simulator.traffic.static.sites import Sites
from simulator.traffic.static.static import Static

__all__ = ["FileFormat", "Owners", "PlaceList", "Reading", "Rows", "Sites", "Static"]

"""Demand: between which nodes vehicles travel, and when they leave; drawn, or from files."""

from simulator.traffic.demand.departures import Departures, Interval, draw_departures
from simulator.traffic.demand.drawn import draw_trips
from simulator.traffic.demand.gravity import draw_gravity
from simulator.traffic.demand.od_table import read_od_table
from simulator.traffic.demand.planned import Planned
from simulator.traffic.demand.profile import read_profile, within_run
from simulator.traffic.demand.sumo_routes import SumoRoutes, read_sumo_routes
from simulator.traffic.demand.table_trips import Taking, draw_table_trips
from simulator.traffic.demand.tntp_trips import read_tntp_trips
from simulator.traffic.demand.trip_files import is_sumo_routes, read_trip_table
from simulator.traffic.demand.trip_table import TripTable
from simulator.traffic.demand.uniform import draw_uniform
from simulator.traffic.demand.whole_vehicles import whole_vehicles
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table
from simulator.traffic.demand.zones import Zones

__all__ = [
    "Departures",
    "Interval",
    "Planned",
    "SumoRoutes",
    "Taking",
    "TripTable",
    "ZoneMasses",
    "Zones",
    "draw_departures",
    "draw_gravity",
    "draw_table_trips",
    "draw_trips",
    "draw_uniform",
    "gravity_table",
    "is_sumo_routes",
    "read_od_table",
    "read_profile",
    "read_sumo_routes",
    "read_tntp_trips",
    "read_trip_table",
    "whole_vehicles",
    "within_run",
]

"""Demand: origins, destinations and departure times of vehicles, randomly drawn or read from files."""

from simulator.traffic.demand.sumo_routes import read_sumo_routes
from simulator.traffic.demand.synthetic import (
    Demand,
    Departures,
    Interval,
    draw_departures,
    draw_gravity,
    draw_trips,
    draw_uniform,
    read_profile,
    within_run,
)
from simulator.traffic.demand.trip_files import is_sumo_routes, read_od_table, read_tntp_trips, read_trip_table
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips, whole_vehicles
from simulator.traffic.demand.trip_table import Zones
from simulator.traffic.demand.zone_gravity import ZoneMasses, gravity_table

__all__ = [
    "Demand",
    "Departures",
    "Interval",
    "SamplingOptions",
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

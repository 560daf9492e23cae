"""Builds the lanes, movements and signals on which the engines of this simulator drive vehicles."""

from dataclasses import replace
from typing import Any

from scenarios import Scenario
from scenarios.roads import SumoRoads
from scenarios.simulated_traffic import DrivenTraffic
from simulator.files.messages import Note
from simulator.roads import RoadNetwork
from simulator.roads.junctions import complete_junctions
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import SUMO_DRIVING, Driving


def build_physics(scenario: Scenario, roads: RoadNetwork, clock: Clock, *, stuck_s: float | None = None) -> LinkPhysics:
    """Build the lanes, movements and signals of a network for the engines that drive vehicles.

    Vehicles drive as SUMO's on its networks. On others the capacity of each link is that of its file, and without any
    movements or signals nothing but links ahead that are full holds them.
    """
    notes: list[Note] = []
    movements = signals = None
    if len(roads.movements):
        movements, signals, notes = complete_junctions(roads)
    section: Any = scenario.traffic
    driving = SUMO_DRIVING if isinstance(scenario.roads, SumoRoads) else Driving()
    return LinkPhysics.build(
        roads.links,
        clock,
        stuck_s=stuck_s,
        movements=movements,
        signals=signals,
        driving=replace(driving, spacing_m=section.spacing_m) if isinstance(section, DrivenTraffic) else driving,
        start_s=section.begin_s if isinstance(section, DrivenTraffic) and section.trip_files else 0.0,
        notes=notes,
    )

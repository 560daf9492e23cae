"""Builds the lanes, movements and signals on which the engines of this simulator drive vehicles."""

from dataclasses import replace
from typing import Any

from scenarios import Scenario
from scenarios.roads import OsmRoads, SumoRoads
from scenarios.simulated_traffic import DrivenTraffic
from simulator.files.messages import Note
from simulator.roads import RoadNetwork
from simulator.roads.junctions import complete_junctions
from simulator.traffic.clock import Clock
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import SUMO_DRIVING, Driving
from simulator.traffic.trips import VehicleClasses


def build_physics(
    scenario: Scenario,
    roads: RoadNetwork,
    clock: Clock,
    *,
    stuck_s: float | None = None,
    spacing_m: float | None = None,
    classes: VehicleClasses | None = None,
) -> LinkPhysics:
    """Build the lanes, movements and signals of a network for the engines that drive vehicles.

    Junctions are completed by default where the source states movements, and on OpenStreetMap's roads. There the
    capacities by class of road, which are below saturation flow because of junctions, are not used: junctions hold
    vehicles themselves, and so they do on SUMO's networks, which state no capacities. On other networks the capacity
    of a link is that of its file. On networks of links alone only full links hold vehicles. A vehicle with the gap
    before it takes `spacing_m`, by default the mean of `classes`, or else that of a car.
    """
    notes: list[Note] = []
    spacing_m = spacing_m or (classes.spacing_m if classes else None)
    movements = signals = None
    if len(roads.movements) or isinstance(scenario.roads, OsmRoads):
        movements, signals, notes = complete_junctions(roads)
    section: Any = scenario.traffic
    driving = Driving()
    if isinstance(scenario.roads, SumoRoads):
        driving = SUMO_DRIVING
    elif isinstance(scenario.roads, OsmRoads):
        driving = Driving(reaction_s=SUMO_DRIVING.reaction_s)
    driving = replace(driving, across="right" if roads.side.left else "left")
    return LinkPhysics.build(
        roads.links,
        clock,
        stuck_s=stuck_s,
        movements=movements,
        signals=signals,
        driving=replace(driving, spacing_m=spacing_m) if spacing_m else driving,
        classes=classes,
        start_s=section.begin_s if isinstance(section, DrivenTraffic) and section.trip_files else 0.0,
        notes=notes,
    )

"""Builds who takes part and whose reports arrive by class, place and time, and fixes with errors."""

import math

import numpy as np

from scenarios import Fault, Scenario, ScenarioError
from scenarios.errors import suggestion
from scenarios.local import Local
from simulator.arrays import FloatArray, Mask
from simulator.experiment.assembly.cells import of_classes
from simulator.experiment.assembly.own_kinds import faults_of_files
from simulator.experiment.study_area import City
from simulator.files.errors import InputError
from simulator.sensing.selection import LocalShare
from simulator.traffic.engine import Engine, VehicleStates
from simulator.traffic.trips import VehicleClasses


def build_shares(scenario: Scenario, city: City) -> tuple[tuple[LocalShare, ...], tuple[LocalShare, ...]]:
    """Build the rates of participation by place and time, and the probabilities that reports leave zones of loss.

    Raises
    ------
    ScenarioError
        If a place does not exist.
    """
    with faults_of_files(scenario, "population.rates"):
        by_place = (rate for rate in scenario.population.rates if rate.vehicle_class is None)
        rates = tuple(_local_share(city, rate, rate.rate) for rate in by_place)
    with faults_of_files(scenario, "channel.zones"):
        return rates, tuple(_local_share(city, zone, 1.0 - zone.loss) for zone in scenario.channel.zones)


def _local_share(city: City, section: Local, share: float) -> LocalShare:
    to_s, place = math.inf if section.to_s is None else section.to_s, None
    name, cells, recorded = section.partition or next(iter(city.partitions)), None, city.ground.recorded
    if section.cells is not None:
        if name not in city.partitions:
            raise InputError([f"there is no partition {name!r}; there are {', '.join(city.partitions)}"])
        divided, names = city.divided(name), city.partitions[name].names
        if absent := [wanted for wanted in section.cells if wanted not in names]:
            raise InputError(f"there is no cell {wanted!r} in {name}{suggestion(wanted, names)}" for wanted in absent)
        cells = np.flatnonzero(np.isin(names, section.cells)) + 1

        def place(at: VehicleStates) -> Mask:
            return np.isin(divided.cells_of(at), cells)

    elif section.road_class is not None:
        if not city.has_roads or (recorded is not None and recorded.tracks.link is None):
            raise InputError(["road_class needs vehicles that are on links of roads"])
        on = of_classes(city.roads.classes, (section.road_class,))

        def place(at: VehicleStates) -> Mask:
            return (at.link >= 0) & on[at.link]

    return LocalShare(share, place, section.from_s or 0.0, to_s, cells, name)


def rates_of_classes(scenario: Scenario, engine: Engine) -> float | FloatArray:
    """Return the probability that a vehicle takes part before rates by place and time: for all, or (vehicles,) float64.

    Raises
    ------
    ScenarioError
        If the traffic has no vehicles of a class.
    """
    chance: float | FloatArray = scenario.population.participation
    classes: VehicleClasses | None = getattr(engine, "classes", None)
    for rate in (rate for rate in scenario.population.rates if rate.vehicle_class):
        if classes is None or rate.vehicle_class not in classes.names:
            known = ", ".join(classes.names) if classes else "none"
            rule = f"there are no vehicles of class {rate.vehicle_class!r}; classes: {known}"
            raise ScenarioError(scenario.name, [Fault("population.rates", rule)])
        chance = chance * np.where(classes.of == classes.names.index(rate.vehicle_class), rate.rate, 1.0)
    return chance

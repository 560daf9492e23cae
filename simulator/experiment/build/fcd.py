"""What looks where vehicles are, of ``[fcd]``."""

from scenarios import Scenario
from simulator.experiment.city import City
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Engine
from simulator.traffic.fcd import Sampler


def build_sampler(scenario: Scenario, city: City, engine: Engine) -> Sampler | None:
    """Make the sampler; None where the scenario wants no floating-car data."""
    section = scenario.fcd
    if section is None:
        return None
    return Sampler(
        engine,
        clock=Clock(scenario.traffic.step_s),
        every_s=section.every_s,
        from_s=section.from_s,
        to_s=scenario.scenario.duration_s if section.to_s is None else section.to_s,
        crs=city.ground.crs,
        roads=city.ground.roads,
        parked=scenario.traffic.parked == "answer",
    )

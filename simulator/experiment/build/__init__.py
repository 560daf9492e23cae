"""Composition root: the only package that names the concrete parts of a run."""

from simulator.experiment.build.city import build_city
from simulator.experiment.build.demand import build_flow_check, check_corrupted, check_demand
from simulator.experiment.build.engine import build_engine, build_sampler, traffic_faults
from simulator.experiment.build.mechanisms import build_mechanisms, import_plug_ins
from simulator.experiment.build.servers import build_population, build_schedules, check_schedules
from simulator.experiment.build.sumo_traffic import build_beside

__all__ = [
    "build_beside",
    "build_city",
    "build_engine",
    "build_flow_check",
    "build_mechanisms",
    "build_population",
    "build_sampler",
    "build_schedules",
    "check_corrupted",
    "check_demand",
    "check_schedules",
    "import_plug_ins",
    "traffic_faults",
]

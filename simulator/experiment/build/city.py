"""Builds the study area of a scenario: roads, recordings and cells."""

from collections.abc import Sequence

from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.build.cells import build_cells
from simulator.experiment.build.recordings import read_recorded
from simulator.experiment.build.roads import build_roads
from simulator.experiment.memory import check_memory
from simulator.experiment.study_area import City, Ground
from simulator.files.errors import InputError
from simulator.files.messages import doubts_of

WIDEST_CITY_KM = 200.0
"""Extent greater than that of any metropolitan area; wider roads were more likely read in a wrong coordinate system."""


def build_city(scenario: Scenario) -> City:
    """Build or read the roads and divide them into cells.

    Raises
    ------
    ScenarioError
        If the files hold no usable network, or the cells cannot be laid over it.
    """
    try:
        roads, notes = build_roads(scenario.roads)
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault("roads", fault) for fault in error.faults]) from error
    try:
        recorded = read_recorded(scenario.traffic, roads)
    except InputError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    if recorded is not None:
        notes += recorded.notes()
    if roads is None and recorded is None:
        rule = f'engine "{scenario.traffic.engine}" needs roads: "none" goes with engines trace and static'
        raise ScenarioError(scenario.name, [Fault("roads.source", rule, scenario.roads.source)])
    ground = Ground(roads, recorded)
    try:
        cells, told = build_cells(scenario.cells, ground)
    except InputError as error:
        faults = [Fault("cells", fault) for fault in error.faults]
        raise ScenarioError(scenario.name, [*_misplaced(scenario, ground, notes), *faults]) from error
    city = City(ground, cells, (*notes, *told))
    try:
        check_memory(scenario, city)
    except ScenarioError as error:
        raise ScenarioError(scenario.name, [*_misplaced(scenario, ground, notes), *error.faults]) from None
    return city


def _misplaced(scenario: Scenario, ground: Ground, notes: Sequence[str]) -> list[Fault]:
    """Return faults that name coordinates as the likely cause of too many cells.

    There are none unless the coordinates are doubtful or span more than a city.
    """
    x_min, y_min, x_max, y_max = ground.bounds
    width_km, height_km = (x_max - x_min) / 1000.0, (y_max - y_min) / 1000.0
    doubts = [doubt for doubt in doubts_of(notes) if "coordinate" in doubt]
    section, name = (scenario.traffic, "traffic") if ground.roads is None else (scenario.roads, "roads")
    if "crs" not in type(section).model_fields or not (doubts or max(width_km, height_km) > WIDEST_CITY_KM):
        return []
    given = " (not given: the default)" if "crs" not in section.model_fields_set else ""
    rule = (
        f"must be the system of the file's coordinates{given}; they span {width_km:,.4g} km by {height_km:,.4g} km, "
        "so that cells are too many"
    )
    crs = getattr(section, "crs", None)
    return [Fault(f"{name}.crs", rule, crs), *(Fault(name, doubt) for doubt in doubts)]

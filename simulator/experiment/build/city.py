"""The city of a scenario: roads, what was recorded there, and cells over both."""

from scenarios import Fault, Scenario, ScenarioError
from simulator.cells import CellsError
from simulator.experiment.build.cells import build_cells
from simulator.experiment.build.recorded import read_recorded
from simulator.experiment.build.roads import build_roads
from simulator.experiment.city import City
from simulator.experiment.ground import Ground
from simulator.roads import RoadsError
from simulator.traffic.errors import TrafficError

MOST_CELLS = 1_000_000
MOST_ROWS = 20_000_000
"""Rows of `estimates.parquet` beyond which a scenario is surely not meant: some 2 GB in memory."""


def build_city(scenario: Scenario) -> City:
    """Make or read the roads and divide them into cells.

    Raises
    ------
    ScenarioError
        If the files hold no usable network, or the cells cannot be laid over it.
    """
    try:
        roads, notes = build_roads(scenario.roads)
    except RoadsError as error:
        raise ScenarioError(scenario.name, [Fault("roads", fault) for fault in error.faults]) from error
    try:
        recorded = read_recorded(scenario.traffic, roads)
    except TrafficError as error:
        raise ScenarioError(scenario.name, [Fault("traffic", fault) for fault in error.faults]) from error
    if recorded is not None:
        notes += recorded.notes()
    if roads is None and recorded is None:
        rule = f'engine "{scenario.traffic.engine}" needs roads: "none" goes with engines trace and static'
        raise ScenarioError(scenario.name, [Fault("roads.source", rule, scenario.roads.source)])
    ground = Ground(roads, recorded)
    try:
        cells, told = build_cells(scenario.cells, ground)
    except CellsError as error:
        raise ScenarioError(scenario.name, [Fault("cells", fault) for fault in error.faults]) from error
    queries = sum(campaign.queries for campaign in scenario.campaigns)
    if cells.count > MOST_CELLS:
        rule = f"must be at most {MOST_CELLS:,} cells: take larger cells"
        raise ScenarioError(scenario.name, [Fault("cells", rule, cells.count)])
    refined = sum(len(refinement.mechanisms or scenario.mechanisms) for refinement in scenario.refinements)
    tables = len(scenario.mechanisms) + refined
    rows = cells.count * queries * tables
    if rows > MOST_ROWS:
        rule = (
            f"cells × queries × mechanisms must be at most {MOST_ROWS:,}; here {cells.count:,} × {queries:,} × "
            f"{tables:,}, refined ones counted too: take larger cells"
        )
        raise ScenarioError(scenario.name, [Fault("cells", rule, rows)])
    return City(ground, cells, (*notes, *told))

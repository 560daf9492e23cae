"""Scenarios with users' own cells, engines and demand run, and wrong ones end with a message."""

# ruff: noqa: ARG002, ARG005 - interfaces have parameters that simple examples do not use

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from own_parts import Drones, Rings, ToTheMiddle

import scenarios
from crowdveil import load, run
from scenarios import ScenarioError
from simulator.cells import Partition, UserPartition
from simulator.files.errors import InputError
from simulator.traffic.engine import State, VehicleStates

TINY = scenarios.load("tiny")
CRS = "EPSG:32632"


def run_with(changes, **given):
    return run(TINY.with_(changes), **given)


def faults_of(changes):
    with pytest.raises(ScenarioError) as raised:
        run_with(changes)
    return str(raised.value)


def test_cells_run_and_are_reported(tmp_path):
    result = run_with({"cells": {"kind": Rings, "width_m": 150.0}}, out=tmp_path / "run")
    assert result.cells["name"].tolist() == [f"ring {ring}" for ring in range(1, len(result.cells) + 1)]
    # The exact baseline knows the true count of each ring.
    exact = result.estimates.query("mechanism == 'baseline'")
    assert np.array_equal(exact["estimate"], exact["truth"])
    assert exact["truth"].sum() > 0
    assert load(tmp_path / "run").cells.geometry.is_valid.all()
    assert "ring 2" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_cells_merge_and_serve_releases():
    fine = run_with({"cells": {"kind": Rings, "width_m": 40.0}})
    coarse = run_with({"cells": {"kind": Rings, "width_m": 40.0, "level": 1}})
    assert 1 <= len(coarse.cells) <= len(fine.cells)
    release = {"kind": "generalise", "k": 2, "epsilon": 1.0, "levels": 2, "mechanisms": ["baseline"], "sampling": 0.5}
    assert len(run_with({"cells": {"kind": Rings}, "release": release}).estimates) > 0


def test_an_object_serves_as_cells():
    rings = Rings(200.0, bounds=(0.0, 0.0, 600.0, 600.0))
    assert len(run_with({"cells": {"kind": rings}}).cells) == rings.count


def test_kinds_of_an_installed_package_run_with_permission(tmp_path, monkeypatch):
    info = tmp_path / "rings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rings\nVersion: 1.0\n", encoding="utf-8")
    points = {"cells": "rings = own_parts:Rings", "engine": "drones = own_parts:Drones"}
    points["demand"] = "middle = own_parts:ToTheMiddle"
    text = "".join(f"[crowdveil.{role}]\n{point}\n" for role, point in points.items())
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    flying = {"cells": {"kind": "rings"}, "traffic": {"engine": "drones", "flights": 50}}
    assert "only with permission" in faults_of(flying)
    assert run_with(flying, allow_plugins=True).facts["vehicles"] == 50
    driving = {"traffic.demand": "middle"}
    assert "only with permission" in faults_of(driving)
    assert run_with(driving, allow_plugins=True).facts["vehicles"] == 60


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda xy: np.full(len(xy), 99), "cell_of must return 0 to 3, as there are 3 polygons, got 99"),
        (lambda xy: np.ones(len(xy)), "whole numbers of an integer type, got float64"),
        (lambda xy: np.ones((len(xy), 2), dtype=int), "one number for each point"),
    ],
)
def test_wrong_cells_are_refused(answer, message):
    class Wrong(Rings):
        def cell_of(self, xy):
            return answer(xy)

    text = faults_of({"cells": {"kind": Wrong}})
    assert message in text
    assert "  cells: " in text


SQUARE = shapely.box(0, 0, 600, 600)


@pytest.mark.parametrize(
    ("shapes", "names", "message"),
    [
        ([], None, "at least one polygon"),
        ([shapely.Point(0, 0)], None, "polygon 1 must be a polygon"),
        ([SQUARE, None], None, "polygon 2 must be a polygon or multipolygon that is valid, finite and not empty"),
        ([shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])], None, "Self-intersection"),
        ([SQUARE], ["a", "b"], "names must be as many as the polygons, 1, got 2"),
    ],
)
def test_wrong_polygons_are_refused(shapes, names, message):
    class Wrong:
        def __init__(self):
            self.names = names

        def cell_of(self, xy):
            return np.zeros(len(xy), dtype=int)

        def polygons(self):
            return shapes

    assert message in faults_of({"cells": {"kind": Wrong}})


def test_a_frame_is_transformed_to_the_city():
    class Frame:
        def cell_of(self, xy):
            return np.full(len(xy), 1, dtype=np.int8)

        def polygons(self):
            return gpd.GeoSeries([shapely.box(9.0, 45.0, 9.01, 45.01)], crs="EPSG:4326").to_frame("geometry")

    cells = UserPartition(Frame(), kind="frame", crs=gpd.GeoSeries(crs=CRS).crs)
    assert isinstance(cells, Partition)
    assert cells.names == ["1"]
    assert cells.polygons().geometry.area[0] == pytest.approx(876_000, rel=0.01)
    assert cells.cell_of([[0.0, 0.0]]).dtype == np.int32
    with pytest.raises(InputError, match="0 for NaN"):
        cells.cell_of([[np.nan, 0.0]])


def test_an_engine_runs_with_scores_attacks_and_positions(tmp_path):
    changes = {
        "traffic": {"engine": Drones, "flights": 80},
        "fcd": {"every_s": 30, "formats": ["parquet"]},
        "attacks": [{"kind": "round_one", "coalition": ["server:1"]}],
    }
    result = run_with(changes, out=tmp_path / "run")
    assert result.facts["traffic"]["departed"][-1] == 80
    assert len(result.scores) == len(TINY.mechanisms)
    assert len(result.attacks) > 0
    speeds = pd.read_parquet(tmp_path / "run" / "fcd.parquet")["speed_mps"]
    assert set(speeds) == {5.0}
    assert "Drones" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    again = run_with(changes)
    pd.testing.assert_frame_equal(result.estimates, again.estimates)
    assert not result.estimates.equals(run_with(changes, seed=2).estimates)


def test_a_campaign_asks_an_engine_for_speeds():
    campaign = {"name": "speeds", "statistic": "mean_speed", "start_s": 120, "min_vehicles": 1, "every_s": 60}
    result = run_with({"traffic": {"engine": Drones}, "campaigns": [campaign]})
    assert len(result.estimates) > 0
    assert np.allclose(result.estimates["truth"], 5.0)


class OnLinks:
    """Vehicles that stand on the links of the roads, without coordinates."""

    # ruff: noqa: ARG002, ARG005 - interfaces have parameters that simple examples do not use

    def __init__(self, *, roads, step_s):
        self.links = np.arange(len(roads.links), dtype=np.int32)
        self.vehicles, self.step_s, self.log = len(self.links), step_s, []

    def start(self, env):
        def tick():
            while True:
                self.log.append(env.now)
                yield env.timeout(1)

        env.process(tick())

    def at(self, time_s):
        assert len(self.log) > time_s / self.step_s
        return VehicleStates(np.full(len(self.links), State.ON_ROAD), self.links, np.full(len(self.links), 0.5))

    def notes(self):
        return ["nobody moves"]

    def close(self):
        OnLinks.closed = True


def test_an_engine_may_have_processes_notes_and_links_alone():
    result = run_with({"traffic": {"engine": OnLinks}, "cells": {"kind": "roads"}})
    exact = result.estimates.query("mechanism == 'baseline'")
    assert (exact["truth"] == 1).all()
    assert "nobody moves" in result.facts["traffic"]["notes"]
    assert OnLinks.closed


class Changed:
    """Three vehicles that wait at one point; from second 100 on `late` applies."""

    vehicles = 3

    def at(self, time_s):
        state, xy = np.full(3, State.ARRIVED), np.full((3, 2), 100.0)
        return VehicleStates.from_coordinates(state, xy) if time_s < 100 else self.late(state, xy)

    def late(self, state, xy):
        return VehicleStates.from_coordinates(state, xy)


@pytest.mark.parametrize(
    ("late", "message"),
    [
        (lambda state, xy: VehicleStates.from_coordinates(state[:2], xy[:2]), "fewer than the 3 at an earlier time"),
        (
            lambda state, xy: VehicleStates.from_coordinates(np.tile(state, 2), np.tile(xy, (2, 1))),
            "has 6 departed vehicles, more than vehicles = 3",
        ),
        (lambda state, xy: VehicleStates.from_coordinates(state * 0 + 2, xy), "vehicle 0 under way again"),
        (lambda state, xy: VehicleStates.from_coordinates(state, xy * np.inf), "no finite coordinates of vehicle 0"),
        (lambda state, xy: VehicleStates.from_coordinates(state + 9, xy), "which is no State"),
        (lambda state, xy: VehicleStates.from_coordinates(state, xy[:, :1]), "shape (3, 2) as xy"),
        (lambda state, xy: VehicleStates.from_coordinates(state * 1.0, xy), "whole numbers of shape (3,) as state"),
        (lambda state, xy: VehicleStates(state, state * 0 + 999, state * 0.0, xy), "has link 999 of vehicle 0"),
        (lambda state, xy: VehicleStates(state, state * 0 - 1, state * 0.0), "as there are no coordinates"),
        (lambda state, xy: VehicleStates(state, state * 0, state * 5.0, xy), "has fraction 15.0 of vehicle 0"),
        (lambda state, xy: VehicleStates(state, state, state * 0.0, xy, state), "must leave out site"),
        (lambda state, xy: xy, "must return VehicleStates, got ndarray"),
    ],
)
def test_wrong_states_are_refused(late, message):
    class Wrong(Changed):
        def late(self, state, xy):
            return late(state, xy)

    text = faults_of({"traffic": {"engine": Wrong}})
    assert message in text
    assert ": at(1" in text


@pytest.mark.parametrize("number", [0, 2.5, True])
def test_a_wrong_number_of_vehicles_is_refused(number):
    class Wrong(Changed):
        vehicles = number

    assert "vehicles" in faults_of({"traffic": {"engine": Wrong}})


def test_speeds_are_required_and_checked_where_they_are_used():
    assert "has no method speeds" in faults_of({"traffic": {"engine": Changed}, "fcd": {"every_s": 10}})

    class Wrong(Changed):
        def speeds(self, time_s):
            return self.answer

    for answer, message in ((np.full(3, -1.0), "finite speeds, at least 0"), ([1.0], "one speed for each")):
        Wrong.answer = answer
        assert message in faults_of({"traffic": {"engine": Wrong}, "fcd": {"every_s": 10}})


def test_an_engine_needs_roads():
    assert "needs roads" in faults_of({"roads": {"source": "none"}, "traffic": {"engine": Drones}})


@pytest.mark.parametrize("engine", ["fleet", "agents"])
def test_demand_runs(tmp_path, engine):
    changes = {"traffic": {"engine": engine, "demand": ToTheMiddle, "vehicles": 30}}
    result = run_with(changes, out=tmp_path / "run")
    assert result.facts["vehicles"] == 30
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize(
    ("trips", "message"),
    [
        (lambda node: pd.DataFrame({"origin": ["x"], "destination": [node]}), "'x' is no node of the roads"),
        (lambda node: pd.DataFrame({"origin": [node]}), "columns missing: destination; it has origin"),
        (lambda node: pd.DataFrame({"origin": [], "destination": []}), "it holds no rows"),
        (lambda node: [node], "must be a pandas data frame, got list"),
        (lambda node: pd.DataFrame({"origin": [node], "destination": ["x"], "departure_s": [-1.0]}), "departure_s"),
    ],
)
def test_wrong_trips_are_refused(trips, message):
    class Wrong:
        def trips(self, roads, *, vehicles, duration_s, rng):
            return trips(roads.node_names[0])

    text = faults_of({"traffic.demand": Wrong})
    assert message in text
    assert "trips of " in text

"""The checks of users' cells pass correct ones, and each finds its fault."""

# ruff: noqa: ARG002 - interfaces have parameters that simple examples do not use

import numpy as np
import pytest
import shapely
from own_parts import Rings

from simulator.cells import SquareGrid
from simulator.kits.cells import CHECKS, check_cells


class Floats(Rings):
    def cell_of(self, xy):
        return super().cell_of(xy).astype(float)


class FromZero(Rings):
    def cell_of(self, xy):
        return np.maximum(super().cell_of(xy) - 1, 0)


class Overlapping(Rings):
    def polygons(self):
        return [shapely.Point(self.middle).buffer(n * self.width_m) for n in range(1, self.count + 1)]


class Unbounded(Rings):
    def cell_of(self, xy):
        return np.where(np.isnan(xy).any(axis=1), 0, np.maximum(super().cell_of(xy), 1))


class NaNInside(Rings):
    def cell_of(self, xy):
        return np.where(np.isnan(xy).any(axis=1), 1, super().cell_of(xy))


class AboutTheirMiddle(Rings):
    def cell_of(self, xy):
        return super().cell_of(xy - xy[:1] + self.middle) if len(xy) < 100 else super().cell_of(xy)


class SameNames(Rings):
    def __init__(self, *, bounds):
        super().__init__(bounds=bounds)
        self.names = ["ring"] * self.count


class NoPolygons:
    def cell_of(self, xy):
        return np.zeros(len(xy), dtype=int)


class Raises(Rings):
    def cell_of(self, xy):
        raise RuntimeError("no cell today")


BROKEN = {
    Floats: "numbers",
    FromZero: "inside",
    Overlapping: "overlap",
    Unbounded: "outside",
    NaNInside: "unknown",
    AboutTheirMiddle: "same_answer",
    SameNames: "interface",
    NoPolygons: "interface",
    Raises: "numbers",
}


def test_correct_cells_pass():
    report = check_cells(Rings, seed=1)
    assert report.passed, str(report)
    assert [result.status for result in report.results] == ["passed"] * (1 + len(CHECKS))
    assert report["inside"].figures["points"] > 500
    assert report["outside"].figures["points"] > 500


def test_cells_of_this_project_pass():
    report = check_cells(lambda bounds, crs: SquareGrid.build_over(bounds, size_m=150.0, crs=crs))
    assert report.passed, str(report)


@pytest.mark.parametrize("broken", BROKEN)
def test_each_fault_is_found_by_its_check(broken):
    report = check_cells(broken)
    assert report[BROKEN[broken]].status == "failed", str(report)
    if broken is SameNames:
        assert {result.status for result in report.results[1:]} == {"skipped"}

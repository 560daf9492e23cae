"""Checks of a user's own cells: `check_cells`.

The table lists, in order, the fault that each check finds:

============= ========================================================================================================
interface     a method missing; polygons that are none, or invalid; names that repeat, or are not V
overlap       two polygons that overlap by more than 1 % of the smaller one
numbers       an answer that is not of an integer type, has another shape, or is not 0 to V; also for one and no point
inside        a point within polygon v that is not in cell v; so that each number 1 to V occurs
outside       a point outside every polygon that is in a cell
unknown       a point with a NaN coordinate that is in a cell
same_answer   cells that depend on the other points, on their order or on earlier calls; points that are written on
============= ========================================================================================================

Points nearer to the boundary of a polygon than a hundredth of the square root of its area are not checked, so polygons
may be approximations of curved cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from simulator.arrays import FloatArray
from simulator.cells.own_cells import UserPartition, answer_fault, names_of
from simulator.cells.zones import overlapping
from simulator.experiment.assembly.constructors import accepted
from simulator.kits.kit import report_of, require_methods, small_city
from simulator.kits.mechanisms.findings import ConformanceReport, Findings, checks_of

POINTS = 2_000
_MARGIN = 0.01
_ALONE = 50


@dataclass(frozen=True, eq=False)
class CellsTrial:
    """Cells, their polygons, and points (n, 2) in metres over the extent of the city and of the cells."""

    cells: Any
    shapes: npt.NDArray[np.object_]
    points: FloatArray

    @property
    def margins(self) -> FloatArray:
        """Width of the strip about each boundary that is not checked, metres, (V,)."""
        return np.asarray(_MARGIN * np.sqrt(shapely.area(self.shapes)))

    def answer(self, points: FloatArray) -> npt.NDArray[Any]:
        """Return the cells of points, from a copy of them."""
        return np.asarray(self.cells.cell_of(points.copy()))


def _prepare(make: Callable[..., Any], seed: int, findings: Findings) -> CellsTrial:
    """Make the cells; points are one within each polygon, then some over city and polygons and a fifth around them."""
    roads, cells, rng = small_city(), make, np.random.default_rng(seed)
    if isinstance(make, type) or not hasattr(make, "cell_of"):
        cells = make(**accepted(make, {"bounds": roads.bounds, "crs": roads.crs, "roads": roads}))
    require_methods("cells", cells)
    polygons = UserPartition(cells, kind="cells", crs=roads.crs).polygons()  # type: ignore[arg-type]  # as checked
    shapes = np.asarray(polygons.geometry.array, dtype=object)
    names = names_of(cells, len(shapes))
    again = sorted({name for name in names if names.count(name) > 1})
    findings.expect(not again, f"names must be unique, {', '.join(again)} occur several times")
    corners = np.concatenate((np.reshape(roads.bounds, (2, 2)), shapely.bounds(shapes).reshape(-1, 2)))
    low, high = corners.min(axis=0), corners.max(axis=0)
    spread = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, size=(POINTS, 2))
    inside = shapely.get_coordinates(shapely.point_on_surface(shapes))
    return CellsTrial(cells, shapes, np.concatenate((inside, spread)))


def check_overlap(trial: CellsTrial, findings: Findings) -> None:
    """Check that no two polygons overlap."""
    for first, second, share in overlapping(trial.shapes):
        findings.fault(f"polygons {first + 1} and {second + 1} overlap, by {share:.0%} of the smaller one")


def check_numbers(trial: CellsTrial, findings: Findings) -> None:
    """Check type, shape and range of answers, also for one point and for none."""
    for points in (trial.points, trial.points[:1], trial.points[:0]):
        if fault := answer_fault(trial.answer(points), points, len(trial.shapes)):
            findings.fault(f"cell_of of {len(points):,} points must return {fault}")


def check_inside(trial: CellsTrial, findings: Findings) -> None:
    """Check that points within a polygon are in its cell."""
    inner = shapely.buffer(trial.shapes, -trial.margins)
    point, cell = shapely.STRtree(inner).query(shapely.points(trial.points), predicate="within")
    _expect_cells(trial, findings, trial.points[point], cell + 1, "inside")


def check_outside(trial: CellsTrial, findings: Findings) -> None:
    """Check that points outside every polygon are in no cell."""
    outer = shapely.STRtree(shapely.buffer(trial.shapes, trial.margins))
    within, _ = outer.query(shapely.points(trial.points), predicate="within")
    points = np.delete(trial.points, within, axis=0)
    _expect_cells(trial, findings, points, np.zeros(len(points), dtype=np.int64), "outside")


def check_unknown(trial: CellsTrial, findings: Findings) -> None:
    """Check that points with NaN are in no cell."""
    unknown = np.array([[True, True], [True, False], [False, True]])
    answer = trial.answer(np.where(unknown, np.nan, trial.points[:3]))
    findings.expect(not answer.any(), f"points with NaN must be in cell 0, got {answer.tolist()}")


def check_same_answer(trial: CellsTrial, findings: Findings) -> None:
    """Check that a point's cell depends on the point alone, and that points are not written on."""
    points = trial.points.copy()
    together = np.asarray(trial.cells.cell_of(points))
    findings.expect_equal(points, trial.points, "cell_of writes on the points that it is given")
    again = trial.answer(trial.points[::-1])[::-1]
    findings.expect_equal(again, together, "cell_of returns other cells for the same points in another order")
    alone = np.concatenate([trial.answer(point[None]) for point in trial.points[:_ALONE]])
    findings.expect_equal(alone, together[:_ALONE], "cell_of returns another cell for a point alone than among others")


def _expect_cells(
    trial: CellsTrial, findings: Findings, points: FloatArray, cells: npt.NDArray[np.int64], where: str
) -> None:
    findings.figures["points"] = len(points)
    answer = trial.answer(points) if len(points) else cells
    for i in np.flatnonzero(answer != cells).tolist():
        polygon, point = f"polygon {cells[i]}" if cells[i] else "every polygon", "({:.1f}, {:.1f})".format(*points[i])
        findings.fault(f"the point {point} is {where} of {polygon} and in cell {answer[i]}")


CHECKS = checks_of(globals())


def check_cells(make: Callable[..., Any], *, seed: int = 0) -> ConformanceReport:
    """Run all checks on cells, over a small generated city, and return every fault.

    Parameters
    ----------
    make
        A class or function that makes the cells, called with those of ``bounds``, ``crs`` and ``roads`` that it has
        parameters for; or the cells themselves.
    seed
        Seed of the points that are checked, 0 or above.

    Returns
    -------
    ConformanceReport
        The result of each check; its ``raise_for_failures`` raises an error if any failed.
    """
    return report_of(make, _prepare, CHECKS, seed)

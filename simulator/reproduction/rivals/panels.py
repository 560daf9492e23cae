"""Panels: the error of every mechanism against the devices asked, and against the cells."""

from collections.abc import Callable, Sequence

from simulator.reproduction.entry import Curve, Drawing
from simulator.reproduction.rivals.contest import Contest, Contestant
from simulator.reproduction.rivals.setting import (
    CELLS,
    CELLS_OF_POPULATION,
    POPULATION_OF_CELLS,
    POPULATIONS,
    VIEWS,
    Setting,
)

ERROR = "RMSE of a cell of 100, vehicles"


def draw(view: str, contests: Sequence[Contest]) -> tuple[Drawing, Drawing]:
    """Return two panels of a view: lines are theory, points simulation.

    Parameters
    ----------
    view
        Which.
    contests
        Of that view, in every setting.
    """
    by_setting = {contest.setting: contest for contest in contests}
    populations = [by_setting[Setting(view, n, CELLS_OF_POPULATION)] for n in POPULATIONS]
    cells = [by_setting[Setting(view, POPULATION_OF_CELLS, v)] for v in CELLS]
    return (
        _panel(
            f"{VIEWS[view]}: {CELLS_OF_POPULATION} cells",
            "devices asked",
            populations,
            lambda setting: setting.population,
        ),
        _panel(f"{VIEWS[view]}: {POPULATION_OF_CELLS:,} devices asked", "cells", cells, lambda setting: setting.cells),
    )


def _panel(title: str, x_title: str, contests: Sequence[Contest], x_of: Callable[[Setting], int]) -> Drawing:
    names = [one.plan.name for one in contests[0].contestants]
    curves = []
    for name in names:
        found = [next((one for one in contest.ranking if one.plan.name == name), None) for contest in contests]
        if any(one is not None for one in found):
            x = [x_of(contest.setting) for contest in contests]
            curves.append(Curve(name, x, [None if one is None else one.plan.std_error for one in found]))
            curves.append(_points(name, x, found))
    return Drawing(
        f"{title[0].upper()}{title[1:]}; points are simulated", x_title, ERROR, curves, log_x=True, log_y=True
    )


def _points(name: str, x: Sequence[int], found: Sequence[Contestant | None]) -> Curve:
    """Return the simulated errors; one that showed none at all has no place on a logarithmic axis."""
    y = [None if one is None or one.simulated == 0.0 else one.simulated for one in found]
    return Curve(f"{name}, simulated", x, y, kind="points")

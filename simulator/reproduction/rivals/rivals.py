"""Rivals: whether Sampling Privacy is the mechanism to use, at one (ε, δ), in whose eyes, and where."""

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.reproduction.entry import Reproduction, Row
from simulator.reproduction.rivals.contest import Contest, hold
from simulator.reproduction.rivals.panels import draw
from simulator.reproduction.rivals.setting import VIEWS, settings
from simulator.reproduction.rivals.verdicts import answer, findings

RULE = "theory in the place of published; agrees: simulation within theory's interval, family-wise 1 in 10,000"


def reproduce(*, seed: int = 1) -> Reproduction:
    """Plan every mechanism for every view and setting, simulate it, and say who errs least.

    Parameters
    ----------
    seed
        Of the simulations.
    """
    rng = np.random.default_rng(seed)
    contests = {view: [hold(setting, rng=rng) for setting in settings(view)] for view in VIEWS}
    rows = [row for held in contests.values() for contest in held for row in _rows(contest)]
    drawings = [panel for view, held in contests.items() for panel in draw(view, held)]
    return Reproduction(rows=tuple(rows), drawings=tuple(drawings), findings=tuple(_all_findings(contests)))


def _all_findings(contests: dict[str, list[Contest]]) -> Iterator[str]:
    yield answer(contests)
    for view, held in contests.items():
        yield from findings(view, held)


def _rows(contest: Contest) -> Iterator[Row]:
    """Yield a row a mechanism, those that meet the target first, and the winner's."""
    key = contest.setting.key
    ranking = contest.ranking
    if ranking:
        best = ranking[0].plan
        beaten = [one.plan.name for one in ranking[1:2]]
        note = f"RMSE {best.std_error:.4g} vehicles in a cell of 100" + (
            f"; next {beaten[0]}, {ranking[1].plan.std_error:.4g}" if beaten else ""
        )
        yield Row(f"{key}: winner", None, best.name, None, note)
    for one in ranking:
        made = one.plan
        chosen = {**made.parameters, **({} if made.release is None else made.release)}
        words = ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
        yield Row(f"{key}, {made.name}", made.std_error, one.simulated, one.agrees, f"{RULE}; at {words}")
    for one in contest.contestants:
        if not one.plan.meets:
            yield Row(f"{key}, {one.plan.name}", None, None, None, one.plan.reason or "No plan.")


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "/".join(_short(part) for part in value)
    return str(value)

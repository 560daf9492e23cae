"""Theory: what each mechanism's error should be, as curves a report can draw."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism, printed_by_paper
from scenarios import Scenario
from simulator.sensing.query import Query

OCCUPANCIES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
POPULATIONS = tuple(round(10**exponent) for exponent in np.arange(2.0, 7.01, 0.5))


def error_by_occupancy(mechanism: LocalMechanism, *, asked: int, most: int) -> dict[str, Any]:
    """Return the standard error in a cell against its occupancy, on an ideal channel.

    Parameters
    ----------
    mechanism
        Whose.
    asked
        Devices asked in all.
    most
        Highest occupancy of interest.

    Returns
    -------
    dict
        `asked`, and lists `occupancy` and `std_error`.
    """
    shown = [occupancy for occupancy in OCCUPANCIES if occupancy <= min(most * 2, asked)] or [0]
    if most <= asked and most not in shown:
        shown = sorted([*shown, most])
    return {
        "asked": asked,
        "occupancy": shown,
        "std_error": [_std_error(mechanism, occupancy, asked) for occupancy in shown],
    }


def error_by_population(mechanism: LocalMechanism, *, occupancy: int) -> dict[str, Any]:
    """Return the standard error in a cell of `occupancy` against the devices asked: SP's constant error.

    Returns
    -------
    dict
        `occupancy`, and lists `asked` and `std_error`.
    """
    asked = [population for population in POPULATIONS if population >= max(occupancy, 1)]
    return {
        "occupancy": occupancy,
        "asked": asked,
        "std_error": [_std_error(mechanism, occupancy, population) for population in asked],
    }


def _std_error(mechanism: LocalMechanism, occupancy: int, asked: int) -> float | None:
    """Return the standard error in cell 1 if it holds `occupancy` and everybody else is outside; None if unknown."""
    truth = np.zeros(mechanism.cells + 1, dtype=np.int64)
    truth[0], truth[1] = asked - occupancy, occupancy
    error = float(mechanism.std_error(truth)[0])
    return error if math.isfinite(error) else None


def describe_mechanisms(
    scenario: Scenario,
    mechanisms: Mapping[str, LocalMechanism],
    queries: Sequence[Query],
    scores: pd.DataFrame,
) -> list[dict[str, Any]]:
    """Return what `run.json` says of each mechanism: what it is, its theory, and what its paper prints."""
    counted = [query for query in queries if query.statistic == "count"]
    asked = max((account.asked for q in counted or queries for a in q.answers for account in a.rounds), default=0)
    most = max((int(query.truth[1:].max()) for query in queries), default=0)
    mean = float(np.mean([query.truth[1:].mean() for query in queries])) if queries else 0.0
    intervals = dict(scores.groupby("mechanism")["interval"].first())
    return [
        {
            "name": section.name,
            "kind": section.kind,
            "parameters": section.parameters,
            "rounds": mechanisms[section.name].rounds,
            # In a run that asks for speeds alone, the others take no part.
            "interval": str(intervals[section.name]) if section.name in intervals else None,
            "theory": error_by_occupancy(mechanisms[section.name], asked=asked, most=most),
            "scaling": error_by_population(mechanisms[section.name], occupancy=max(1, round(mean))),
            "printed": _printed(mechanisms[section.name]),
        }
        for section in scenario.mechanisms
    ]


def _printed(mechanism: LocalMechanism) -> dict[str, Any]:
    """Return what the paper prints, for JSON, which has no infinity."""
    printed = printed_by_paper(mechanism)
    if printed is None:
        return {"epsilon": None, "equation": None, "note": "no paper prints a leakage for it"}
    finite = math.isfinite(printed.epsilon)
    return {"epsilon": printed.epsilon if finite else None, "equation": printed.equation, "note": printed.note}

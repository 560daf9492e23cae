"""Scores: estimates against the truth only the simulator knows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.experiment.rows import Rows, rows_of
from simulator.sensing.query import Answer, Query

HOT_SHARE = 0.1
"""The busiest tenth of the cells, at least one, are its hot cells."""


def score_queries(queries: Sequence[Query]) -> pd.DataFrame:
    """Score every mechanism of every campaign over all its queries and cells.

    Returns
    -------
    pandas.DataFrame
        One row a campaign and mechanism: `mae`, `rmse`, `bias`, `max_error` in vehicles, or of speeds in m/s;
        `coverage`, the share of 95 % intervals that hold the truth; `hot_cells_recall`, the share of each query's
        busiest cells found among as many of the highest estimates, null for speeds; `theory_rmse`, from the exact
        error at the truth, that of the release where one stands between; `interval`, how intervals were made;
        `queries` and `cells` with a row; `statistic`, what was estimated.
    """
    groups: dict[tuple[str, str], list[tuple[Query, Answer]]] = {}
    for query in queries:
        for answer in query.answers:
            groups.setdefault((query.campaign, answer.mechanism), []).append((query, answer))
    return pd.DataFrame(
        [{**dict(zip(("campaign", "mechanism"), key, strict=True)), **_score(g)} for key, g in groups.items()]
    )


def _score(group: list[tuple[Query, Answer]]) -> dict[str, float | int | str]:
    rows = [rows_of(query, answer) for query, answer in group]
    truth, estimate, lower, upper, theory = (
        np.concatenate([getattr(row, column) for row in rows]).astype(np.float64)
        for column in ("truth", "estimate", "lower", "upper", "theory")
    )
    error = estimate - truth
    statistic = group[0][0].statistic
    return {
        "mae": _mean(np.abs(error)),
        "rmse": math.sqrt(_mean(np.square(error))),
        "bias": _mean(error),
        "max_error": float(np.abs(error).max(initial=0.0)) if len(error) else math.nan,
        "coverage": _mean((lower <= truth) & (truth <= upper)),
        "hot_cells_recall": _hot_cells_recall(rows) if statistic == "count" else math.nan,
        "theory_rmse": math.sqrt(_mean(np.square(theory))),
        "interval": " / ".join(sorted({answer.estimate.interval for _, answer in group})),
        "queries": len(group),
        "cells": len({cell for row in rows for cell in row.cell.tolist()}),
        "statistic": statistic,
    }


def _mean(values: npt.NDArray[Any]) -> float:
    """Return the mean, NaN of nothing: speeds of cells that never held enough vehicles."""
    return float(values.mean()) if len(values) else math.nan


def _hot_cells_recall(rows: Sequence[Rows]) -> float:
    """Return the share of hot cells found; ties in the truth count as found where any of them is."""
    cells = len(rows[0].cell)
    hot = max(1, round(HOT_SHARE * cells))
    found = 0
    for row in rows:
        threshold = np.partition(row.truth, cells - hot)[cells - hot]
        chosen = np.argsort(-row.estimate, kind="stable")[:hot]
        found += int(np.count_nonzero(row.truth[chosen] >= threshold))
    return float(found / (hot * len(rows)))

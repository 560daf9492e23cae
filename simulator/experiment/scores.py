"""Scores: estimates against the truth only the simulator knows."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.sensing.campaign import Answer, Query

HOT_SHARE = 0.1
"""The busiest tenth of the cells, at least one, are its hot cells."""

FloatArray = npt.NDArray[np.float64]


def score_queries(queries: Sequence[Query]) -> pd.DataFrame:
    """Score every mechanism of every campaign over all its queries and cells.

    Returns
    -------
    pandas.DataFrame
        One row a campaign and mechanism: `mae`, `rmse`, `bias`, `max_error` in vehicles; `coverage`, the share
        of 95 % intervals that hold the truth; `hot_cells_recall`, the share of each query's busiest cells found
        among as many of the highest estimates; `theory_rmse`, from the exact variance at the truth; `interval`,
        how intervals were made; `queries` and `cells`.
    """
    groups: dict[tuple[str, str], list[tuple[Query, Answer]]] = {}
    for query in queries:
        for answer in query.answers:
            groups.setdefault((query.campaign, answer.mechanism), []).append((query, answer))
    return pd.DataFrame(
        [{**dict(zip(("campaign", "mechanism"), key, strict=True)), **_score(g)} for key, g in groups.items()]
    )


def _score(group: list[tuple[Query, Answer]]) -> dict[str, float | int | str]:
    truth = np.stack([query.truth[1:] for query, _ in group]).astype(np.float64)
    estimate = np.stack([answer.estimate.count for _, answer in group])
    lower = np.stack([answer.estimate.lower for _, answer in group])
    upper = np.stack([answer.estimate.upper for _, answer in group])
    theory = np.stack([answer.std_error for _, answer in group])
    error = estimate - truth
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt(np.square(error).mean())),
        "bias": float(error.mean()),
        "max_error": float(np.abs(error).max()),
        "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
        "hot_cells_recall": _hot_cells_recall(truth, estimate),
        "theory_rmse": float(np.sqrt(np.square(theory).mean())),
        "interval": " / ".join(sorted({answer.estimate.interval for _, answer in group})),
        "queries": len(group),
        "cells": truth.shape[1],
    }


def _hot_cells_recall(truth: FloatArray, estimate: FloatArray) -> float:
    """Return the share of hot cells found; ties in the truth count as found where any of them is."""
    cells = truth.shape[1]
    hot = max(1, round(HOT_SHARE * cells))
    found = 0
    for true, guessed in zip(truth, estimate, strict=True):
        threshold = np.partition(true, cells - hot)[cells - hot]
        chosen = np.argsort(-guessed, kind="stable")[:hot]
        found += int(np.count_nonzero(true[chosen] >= threshold))
    return float(found / (hot * len(truth)))

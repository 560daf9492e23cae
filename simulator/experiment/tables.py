"""Result tables: estimates with ground truth, scores and rounds as data frames."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.aggregation.publication import CellValues
from simulator.aggregation.rounds import RoundAccount
from simulator.arrays import FloatArray
from simulator.experiment.mobility_scores import MobilityScores, mobility_scores, share_found
from simulator.experiment.scaling import Participation, Rows, scale_to_all
from simulator.results.schema import TABLES
from simulator.results.tables import SCALED
from simulator.sensing.query import Answer, Query

ROUND_KEY = ("campaign", "query", "mechanism", "round")


def rows_of(query: Query, answer: Answer) -> Rows:
    """Return the rows of an answer: for counts every cell, for speeds the cells with enough vehicles."""
    made = answer.estimate
    if isinstance(made, CellValues):
        return Rows(made.cell, made.truth, made.value, made.std_error, made.lower, made.upper, answer.std_error)
    cells = np.arange(1, len(made) + 1)
    return Rows(cells, query.truth[1:], made.count, made.std_error, made.lower, made.upper, answer.std_error)


def scaled_rows(query: Query, rows: Rows, participation: Participation) -> Rows:
    """Return the rows of an answer scaled to all vehicles; of speeds, which are not scaled, NaN beside the vehicles."""
    if query.statistic == "count":
        return scale_to_all(query.occupancy, participation, rows)
    return Rows(rows.cell, query.occupancy.vehicles[rows.cell], *(np.full(len(rows.cell), math.nan) for _ in range(5)))


def tabulate_estimates(queries: Sequence[Query], participation: Participation) -> pd.DataFrame:
    """Return one row per query, mechanism and cell: the columns of `estimates.parquet`.

    For speeds, in m/s, only the cells in which enough vehicles reported their speed have a row.
    """
    answered = [(query, answer) for query in queries for answer in query.answers]
    rows = [rows_of(query, answer) for query, answer in answered]
    scaled = [scaled_rows(query, row, participation) for (query, _), row in zip(answered, rows, strict=True)]
    cells = [len(answer.estimate) for _, answer in answered]

    def each(values: list[object], dtype: str) -> pd.Series:
        return pd.Series(values, dtype=dtype).repeat(cells).reset_index(drop=True)

    return pd.DataFrame(
        {
            "campaign": each([query.campaign for query, _ in answered], "str"),
            "query": each([query.number for query, _ in answered], "int64"),
            "time_s": each([query.time_s for query, _ in answered], "float64"),
            "mechanism": each([answer.mechanism for _, answer in answered], "str"),
            **{
                column: np.concatenate([getattr(row, column) for row in rows])
                for column in ("cell", "truth", "estimate", "std_error", "lower", "upper")
            },
            "vehicles": np.concatenate([row.truth for row in scaled]),
            **{f"scaled_{column}": np.concatenate([getattr(row, column) for row in scaled]) for column in SCALED},
        }
    )


def tabulate_servers(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row per query, mechanism, round and server: the columns of `servers.parquet`.

    sent = arrived + late + lost; `used` are the messages whose report was counted.
    """
    rows = [{**place, **vars(server)} for place, account in _rounds(queries) for server in account.servers]
    return TABLES["servers"].frame(rows)


def tabulate_rounds(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row per query, mechanism and round: the columns of `rounds.parquet`."""
    return TABLES["rounds"].frame({**place, **vars(account)} for place, account in _rounds(queries))


def _rounds(queries: Sequence[Query]) -> Iterator[tuple[dict[str, object], RoundAccount]]:
    """Yield each round's account, and the columns that identify the round."""
    for query in queries:
        for answer in query.answers:
            for round_, account in enumerate(answer.rounds, start=1):
                key = (query.campaign, query.number, answer.mechanism, round_)
                yield dict(zip(ROUND_KEY, key, strict=True)), account


HOT_SHARE = 0.1
"""Share of cells that are hot cells: the busiest tenth of the cells, at least one."""


def score_queries(queries: Sequence[Query], centroids: FloatArray, participation: Participation) -> pd.DataFrame:
    """Score every mechanism of every campaign over all its queries and cells.

    Parameters
    ----------
    queries
        The closed queries.
    centroids
        Centroids of the cells in the city's projected coordinate system, (V, 2), in metres.
    participation
        The share of the vehicles that take part, and that which the operator assumes.

    Returns
    -------
    pandas.DataFrame
        One row per campaign and mechanism: `mae`, `rmse`, `bias`, `max_error` in vehicles, or for speeds in m/s;
        `coverage`, the share of 95 % intervals that contain the truth; `hot_cells_recall`, the share of each query's
        busiest cells found among the same number of highest estimates, null for speeds; `earth_movers_m`,
        `jensen_shannon`, `kendall_tau` and `top_n_overlap`, the means of `mobility_scores` over the queries in which
        they are defined, null for speeds and where they are defined in no query; `theory_rmse`, from the exact
        error at the truth, which is that of the release if there is one; the first five and `theory_rmse` also with the
        prefix `scaled_`, of estimates scaled to all vehicles, null for speeds; `interval`, how intervals were computed;
        `queries` and `cells`, the numbers of those with a row; `statistic`, the quantity estimated;
        `participation` and `assumed_participation`.
    """
    groups: dict[tuple[str, str], list[tuple[Query, Answer]]] = {}
    for query in queries:
        for answer in query.answers:
            groups.setdefault((query.campaign, answer.mechanism), []).append((query, answer))
    return pd.DataFrame(
        [
            {**dict(zip(("campaign", "mechanism"), key, strict=True)), **_score(g, centroids, participation)}
            for key, g in groups.items()
        ]
    )


def _score(
    group: list[tuple[Query, Answer]], centroids: FloatArray, participation: Participation
) -> dict[str, float | int | str]:
    rows = [rows_of(query, answer) for query, answer in group]
    scaled = [scaled_rows(query, row, participation) for (query, _), row in zip(group, rows, strict=True)]
    own, of_all = _errors(rows), _errors(scaled)
    statistic = group[0][0].statistic
    found, mobility = math.nan, MobilityScores(*[math.nan] * len(MobilityScores._fields))
    if statistic == "count":
        hot = max(1, round(HOT_SHARE * len(rows[0].cell)))
        found = float(np.mean([share_found(row.truth, row.estimate, hot) for row in rows]))
        each = np.array([mobility_scores(row.truth, row.estimate, centroids) for row in rows])
        mobility = MobilityScores(*(_mean(column[~np.isnan(column)]) for column in each.T))
    theory = own.pop("theory_rmse")
    return {
        **own,
        "hot_cells_recall": found,
        **mobility._asdict(),
        "theory_rmse": theory,
        **{f"scaled_{score}": value if statistic == "count" else math.nan for score, value in of_all.items()},
        "interval": " / ".join(sorted({answer.estimate.interval for _, answer in group})),
        "queries": len(group),
        "cells": len({cell for row in rows for cell in row.cell.tolist()}),
        "statistic": statistic,
        **dict(zip(("participation", "assumed_participation"), participation, strict=True)),
    }


def _errors(rows: Sequence[Rows]) -> dict[str, float]:
    """Return the scores of rows against their truths."""
    truth, estimate, lower, upper, theory = (
        np.concatenate([getattr(row, column) for row in rows]).astype(np.float64)
        for column in ("truth", "estimate", "lower", "upper", "theory")
    )
    error = estimate - truth
    return {
        "mae": _mean(np.abs(error)),
        "rmse": math.sqrt(_mean(np.square(error))),
        "bias": _mean(error),
        "max_error": float(np.abs(error).max(initial=0.0)) if len(error) else math.nan,
        "coverage": _mean((lower <= truth) & (truth <= upper)),
        "theory_rmse": math.sqrt(_mean(np.square(theory))),
    }


def _mean(values: npt.NDArray[Any]) -> float:
    """Return the mean; NaN without values, as for speeds if no cell ever held enough vehicles."""
    return float(values.mean()) if len(values) else math.nan

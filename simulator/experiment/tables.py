"""Result tables: estimates with ground truth, scores and rounds as data frames."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mechanisms.compiled import ndtri
from simulator.aggregation.publication import CellValues
from simulator.aggregation.rounds import RoundAccount
from simulator.aggregation.transcript import named_by
from simulator.arrays import FloatArray, IntArray
from simulator.results.schema import TABLES
from simulator.results.tables import SCALED
from simulator.sensing.query import Occupancy, Query, QueryAnswer

_Z = float(ndtri(0.975))


class Participation(NamedTuple):
    """The share of the vehicles that take part.

    Attributes
    ----------
    actual
        The probability p with which each vehicle takes part.
    assumed
        The participation q by which the operator divides.
    """

    actual: float = 1.0
    assumed: float = 1.0


class Rows(NamedTuple):
    """Columns of an answer's table: one value for each cell that has a row, all of the same length.

    Attributes
    ----------
    cell
        int64, 1…V.
    truth
        Vehicles, int64; or m/s, float64.
    estimate, std_error, lower, upper
        float64, as estimated or published.
    theory
        float64, the theoretical standard error for the truth.
    bias
        float64, the mean error in theory, which is part of `theory`; only of counts scaled to all vehicles.
    """

    cell: IntArray
    truth: IntArray | FloatArray
    estimate: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    theory: FloatArray
    bias: FloatArray | None = None


def scale_to_all(
    occupancy: Occupancy,
    participation: Participation,
    rows: Rows,
    invert: Callable[[float], tuple[FloatArray, FloatArray]] | None = None,
    by_cell: FloatArray | None = None,
) -> Rows:
    """Estimate all vehicles in each cell from an estimate x of those asked.

    Each vehicle takes part with probability p, so that Bin(n, p) of n are asked, and x/q estimates n. The variance is
    the variance of x, which covers lost reports and devices that left, divided by q², plus n(1 − p)/p for who takes
    part. In a query of several rounds, vehicles have also departed and arrived since it began: shares c and l of all of
    them. Vehicles that departed are not asked; vehicles that arrived still answer. Their numbers in a cell vary by (c +
    l)n and differ by (c − l)n on average.

    The interval holds every n with (x/q − n)² ≤ w² + z²(kn + s²n²), where k = (1 − q)/q + c + l and s = |c − l|, and w
    is the distance of x/q from the end of the interval of x, divided by q. This is the score interval of a binomial for
    w = s = 0, and the interval of x for k = s = 0; different w on either side combine as in Zou and Donner (2008).

    Where `invert` is given and q < 1, its interval, from the distribution of x when each of n vehicles takes part with
    probability q, takes the place of (lower/q, upper/q), and k = c + l. With c = l = 0 it is the result. In sparse
    cells the score interval would cover too rarely: .78 for Sampling Privacy at q = .5 and one vehicle.

    Parameters
    ----------
    occupancy
        All vehicles, asked or not; if it has `expected`, this takes the place of p in `theory`.
    participation
        p and q.
    rows
        x of every cell with its standard error, its 95 % interval, and its root mean square error in theory, for the
        devices asked.
    invert
        `Estimate.invert_sampled` of x, if its distribution is known; none where `by_cell` is given.
    by_cell
        (cells,) float64: the participation q of each cell, in place of one for all.

    Returns
    -------
    Rows
        x/q with its standard error as the operator knows it; the truth is all vehicles in the cell at the moment of
        truth. NaN where an input is NaN. `theory` knows p, every vehicle and who came and left: a wrong q, or many that
        came and none that left, appear in it as bias.
    """
    p, assumed = participation
    q = assumed if by_cell is None else by_cell
    present, eligible = (counts[1:].astype(np.float64) for counts in (occupancy.vehicles, occupancy.eligible))
    x = rows.estimate / q
    total = max(1, int(occupancy.vehicles.sum()))
    turnover = (occupancy.came + occupancy.left) / total
    each = (1.0 - q) / q + turnover
    if invert is None or assumed == 1.0:
        lower, upper, apart = rows.lower / q, rows.upper / q, each
    else:
        lower, upper = invert(assumed)
        apart = turnover
    # With more, the interval would have no upper end; at one half it is fifty times the estimate.
    net = min(0.5, abs(occupancy.came - occupancy.left) / total)
    middle, lead = x + 0.5 * _Z**2 * apart, 1.0 - (_Z * net) ** 2

    def reach(end: FloatArray) -> FloatArray:
        return np.sqrt(np.maximum(0.0, middle**2 - lead * (x**2 - (x - end) ** 2)))

    mean, spread = eligible * p, eligible * p * (1.0 - p)
    if occupancy.expected is not None:
        mean, spread = occupancy.expected.every[1:], occupancy.expected.variance[1:]
    bias = mean / q - present
    return Rows(
        rows.cell,
        occupancy.vehicles[1:],
        x,
        np.sqrt((rows.std_error / q) ** 2 + each * np.maximum(0.0, x) + (net * x) ** 2),
        (middle - reach(lower)) / lead,
        (middle + reach(upper)) / lead,
        np.sqrt((rows.theory**2 + spread) / q**2 + bias**2),
        np.where(np.isnan(rows.theory), math.nan, bias),  # a refined estimate has another
    )


class AnswerRows(NamedTuple):
    """An answer to a query with its rows: about the devices asked, and scaled to all vehicles.

    Speeds are not scaled: their scaled rows are NaN beside the vehicles in the cell.
    """

    query: Query
    answer: QueryAnswer
    rows: Rows
    scaled: Rows


def rows_of_answers(queries: Sequence[Query], participation: Participation) -> list[AnswerRows]:
    """Return the rows of every answer: of counts for every cell, of speeds for the cells with enough vehicles."""
    answers = [(query, answer) for query in queries for answer in query.answers]
    return [_rows_of(query, answer, participation) for query, answer in answers]


def _rows_of(query: Query, answer: QueryAnswer, participation: Participation) -> AnswerRows:
    made = answer.estimate
    if isinstance(made, CellValues):
        rows = Rows(made.cell, made.truth, made.value, made.std_error, made.lower, made.upper, answer.std_error)
        unknown = np.full(len(made), math.nan)
        return AnswerRows(query, answer, rows, Rows(made.cell, query.occupancy.vehicles[made.cell], *[unknown] * 6))
    cells = np.arange(1, len(made) + 1)
    rows = Rows(cells, query.truth[1:], made.count, made.std_error, made.lower, made.upper, answer.std_error)
    invert = getattr(made, "invert_sampled", None)  # a refined estimate has none
    by_cell = getattr(made, "participation", None)
    scaled = scale_to_all(query.occupancy, participation, rows, invert, by_cell)
    if (expected := query.occupancy.expected) is not None:
        rows = rows._replace(theory=np.hypot(answer.std_error, expected.asked[1:] - query.truth[1:]))
    return AnswerRows(query, answer, rows, scaled)


def tabulate_estimates(answers: Sequence[AnswerRows], cells_before: Mapping[str, int]) -> pd.DataFrame:
    """Return one row per query, mechanism and cell: the columns of `estimates.parquet`.

    For speeds, in m/s, only the cells in which enough vehicles reported their speed have a row. `cells_before` has, by
    campaign, the number of cells of the partitions before its own, as `City.cells_before`.
    """
    rows, scaled = [answer.rows for answer in answers], [answer.scaled for answer in answers]
    cells = [len(answer.rows.cell) for answer in answers]

    def each(values: list[object], dtype: str) -> pd.Series:
        return pd.Series(values, dtype=dtype).repeat(cells).reset_index(drop=True)

    before = np.repeat([cells_before[answer.query.campaign] for answer in answers], cells)
    selects = any(answer.query.occupancy.expected is not None for answer in answers)
    bias = {"expected_bias": np.concatenate([row.bias for row in scaled])} if selects else {}
    return pd.DataFrame(
        {
            "campaign": each([answer.query.campaign for answer in answers], "str"),
            "query": each([answer.query.number for answer in answers], "int64"),
            "time_s": each([answer.query.time_s for answer in answers], "float64"),
            "mechanism": each([answer.answer.mechanism for answer in answers], "str"),
            **{
                column: np.concatenate([getattr(row, column) for row in rows]) + (before if column == "cell" else 0)
                for column in ("cell", "truth", "estimate", "std_error", "lower", "upper")
            },
            "vehicles": np.concatenate([row.truth for row in scaled]),
            **{f"scaled_{column}": np.concatenate([getattr(row, column) for row in scaled]) for column in SCALED},
            **bias,
        }
    )


def tabulate_servers(queries: Sequence[Query], operators: Mapping[str, str | None]) -> pd.DataFrame:
    """Return one row per query, mechanism, round and server: the columns of `servers.parquet`.

    sent = arrived + late + lost; `used` are the messages whose report was counted. `operators` are by campaign.
    """
    table = TABLES["servers"].frame({**place, **vars(one)} for place, of in _rounds(queries) for one in of.servers)
    pairs = zip(table["campaign"], table["server"], strict=True)
    return table.assign(server=[named_by(operators[campaign], server) for campaign, server in pairs])


def tabulate_rounds(queries: Sequence[Query]) -> pd.DataFrame:
    """Return one row per query, mechanism and round: the columns of `rounds.parquet`."""
    return TABLES["rounds"].frame({**place, **vars(account)} for place, account in _rounds(queries))


def _rounds(queries: Sequence[Query]) -> Iterator[tuple[dict[str, object], RoundAccount]]:
    """Yield each round's account, the columns that identify the round, and the time until the estimate."""
    for query in queries:
        for answer in query.answers:
            for round_, account in enumerate(answer.rounds, start=1):
                place = {"campaign": query.campaign, "query": query.number, "mechanism": answer.mechanism}
                yield {**place, "round": round_, "estimate_s": answer.took_s}, account


HOT_SHARE = 0.1
"""Share of cells that are hot cells: the busiest tenth of the cells, at least one."""


def score_answers(answers: Sequence[AnswerRows], participation: Participation) -> pd.DataFrame:
    """Score every mechanism of every campaign over all its queries and cells.

    Parameters
    ----------
    answers
        The answers to the closed queries.
    participation
        The share of the vehicles that take part, and that which the operator assumes.

    Returns
    -------
    pandas.DataFrame
        One row per campaign and mechanism: `mae`, `rmse`, `bias`, `max_error` in vehicles, or for speeds in m/s;
        `coverage`, the share of 95 % intervals that contain the truth; `hot_cells_recall`, the share of each query's
        busiest cells found among the same number of highest estimates, null for speeds; `theory_rmse`, from the exact
        error at the truth, which is the release's error if there is one; the first five and `theory_rmse` also with the
        prefix `scaled_`, of estimates scaled to all vehicles, null for speeds; `interval`, how intervals were computed;
        `queries` and `cells`, the numbers of those with a row; `statistic`, the quantity estimated; `participation` and
        `assumed_participation`.
    """
    groups: dict[tuple[str, str], list[AnswerRows]] = {}
    for answer in answers:
        groups.setdefault((answer.query.campaign, answer.answer.mechanism), []).append(answer)
    return pd.DataFrame(
        {"campaign": campaign, "mechanism": mechanism, **_score(group, participation)}
        for (campaign, mechanism), group in groups.items()
    )


def _score(group: Sequence[AnswerRows], participation: Participation) -> dict[str, float | int | str]:
    rows = [answer.rows for answer in group]
    of_asked, of_all = _errors(rows), _errors([answer.scaled for answer in group])
    statistic = group[0].query.statistic
    recall = math.nan
    if statistic == "count":
        hot = max(1, round(HOT_SHARE * len(rows[0].cell)))
        recall = float(np.mean([share_found(row.truth, row.estimate, hot) for row in rows]))
    theory = of_asked.pop("theory_rmse")
    return {
        **of_asked,
        "hot_cells_recall": recall,
        "theory_rmse": theory,
        **{f"scaled_{score}": value if statistic == "count" else math.nan for score, value in of_all.items()},
        "interval": " / ".join(sorted({answer.answer.estimate.interval for answer in group})),
        "queries": len(group),
        "cells": len({cell for row in rows for cell in row.cell.tolist()}),
        "statistic": statistic,
        **dict(zip(("participation", "assumed_participation"), participation, strict=True)),
    }


def share_found(truth: IntArray | FloatArray, estimate: FloatArray, n: int) -> float:
    """Return the share of the n busiest cells found among the n highest estimates.

    Of cells tied in the truth at the threshold, any counts as found; of cells tied in the estimate, the first are
    taken.
    """
    threshold = np.partition(truth, len(truth) - n)[len(truth) - n]
    chosen = np.argsort(-estimate, kind="stable")[:n]
    return float(np.count_nonzero(truth[chosen] >= threshold) / n)


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

"""Comparison of two runs over the same traffic: differences of scores, with intervals from paired queries."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.results.mean_intervals import share_interval, t_quantile
from simulator.results.run import RunResult
from simulator.results.tables import is_partial, of_all_vehicles

FloatArray = npt.NDArray[np.float64]

_PLACE = ["campaign", "query", "cell"]


class DifferentTruthError(ValueError):
    """Two runs whose ground truths differ; the message names the first place where they do."""


def compare(a: RunResult, b: RunResult, *, mechanisms: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Compare the scores of two runs that asked the same questions about the same traffic.

    Two runs of one scenario with one seed have the same truth as long as nothing differs that moves vehicles or selects
    the devices that are asked. If in either run fewer than all vehicles take part, the truth is all vehicles, and the
    estimates are those scaled to them.

    Each query gives one value for either run; the interval is for the mean difference of these pairs, so that the
    variation of the truth from query to query, which both runs share, does not widen it.

    Parameters
    ----------
    a, b
        The runs; differences are `b` minus `a`.
    mechanisms
        The mechanism of `b` that is compared with each mechanism of `a`, by name. By default the mechanisms of the same
        name.

    Returns
    -------
    pandas.DataFrame
        One row per campaign, pair of mechanisms and score: `campaign`, `statistic`, `mechanism_a`, `mechanism_b`,
        `score` (``mae``, ``rmse``, ``bias`` in vehicles or m/s, ``coverage``), `a`, `b`, `difference`; `lower` and
        `upper`, the ends of a 95 % interval of the difference; `queries`, the number of pairs. It is a t-interval, null
        for a single query; the interval of a root mean square is computed from its linear approximation at the two
        means. For coverage it is `share_interval`, null for few queries and where queries have unequal numbers of rows.
        Intervals assume that errors of different queries are independent, which does not hold for memoised mechanisms.

    Raises
    ------
    DifferentTruthError
        If the runs did not ask the same queries, or the truth of a cell differs.
    KeyError
        If a run has no mechanism of a name in `mechanisms`.
    ValueError
        If the runs have no mechanism in common.
    """
    tables = [one.estimates for one in (a, b)]
    if is_partial(a.scores) or is_partial(b.scores):
        tables = [of_all_vehicles(table) for table in tables]
    _check_truth(*tables)
    statistics = a.scores.groupby("campaign", sort=False, observed=True)["statistic"].first()
    rows = []
    for name_a, name_b in _pairs(a, b, mechanisms).items():
        of_a, of_b = (own[own["mechanism"] == name] for own, name in zip(tables, (name_a, name_b), strict=True))
        of_b = of_b.drop(columns=["time_s", "time"], errors="ignore")
        joined = of_a.merge(of_b, on=_PLACE, suffixes=("_a", "_b"), validate="one_to_one")
        for campaign, group in joined.groupby("campaign", sort=False, observed=True):
            common = {"campaign": campaign, "statistic": statistics[campaign]}
            common |= {"mechanism_a": name_a, "mechanism_b": name_b}
            rows += [{**common, **row} for row in _differences(group)]
    return pd.DataFrame(rows)


def _check_truth(a: pd.DataFrame, b: pd.DataFrame) -> None:
    """Raise if the two runs' truths differ at a cell that both estimated, or they asked at different times."""
    asked = [one.groupby(["campaign", "query"], observed=True)["time_s"].first() for one in (a, b)]
    if not asked[0].equals(asked[1]):
        unlike = asked[0].compare(asked[1]) if asked[0].index.equals(asked[1].index) else pd.DataFrame()
        where = f", first campaign {unlike.index[0][0]}, query {unlike.index[0][1]}" if len(unlike) else ""
        raise DifferentTruthError(f"the runs did not ask the same campaigns' queries at the same times{where}")
    truths = [one.drop_duplicates(_PLACE)[[*_PLACE, "truth"]] for one in (a, b)]
    both = truths[0].merge(truths[1], on=_PLACE, suffixes=("_a", "_b"))
    unlike = both[(both["truth_a"] != both["truth_b"]) & both[["truth_a", "truth_b"]].notna().any(axis=1)]
    if len(unlike):
        first = unlike.iloc[0]
        raise DifferentTruthError(
            f"the truth of the runs differs in {len(unlike):,} of {len(both):,} rows, first in campaign "
            f"{first['campaign']}, query {first['query']}, cell {first['cell']}: {first['truth_a']:g} and "
            f"{first['truth_b']:g}; runs are compared over the same traffic, cells and devices asked"
        )


def _pairs(a: RunResult, b: RunResult, mechanisms: Mapping[str, str] | None) -> Mapping[str, str]:
    names_a, names_b = (list(dict.fromkeys(one.scores["mechanism"])) for one in (a, b))
    if mechanisms is None:
        pairs = {name: name for name in names_a if name in names_b}
        if not pairs:
            raise ValueError(f"the runs have no mechanism in common: {', '.join(names_a)}; {', '.join(names_b)}")
        return pairs
    for wanted, names, which in ((mechanisms.keys(), names_a, "first"), (mechanisms.values(), names_b, "second")):
        for name in wanted:
            if name not in names:
                raise KeyError(f"the {which} run has no mechanism {name}; it has {', '.join(names)}")
    return mechanisms


def _differences(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the differences of all scores over the joined rows of one campaign and pair of mechanisms."""
    of_a, of_b = _scored(rows, "_a"), _scored(rows, "_b")
    query = np.unique(rows["query"], return_inverse=True)[1]
    return [
        {
            "score": score,
            **paired_difference(query, of_a[score], of_b[score], root=score == "rmse", shares=score == "coverage"),
        }
        for score in of_a
    ]


def _scored(rows: pd.DataFrame, run: str) -> dict[str, FloatArray]:
    """Return the values of each row whose mean, or its root, is a score."""
    truth, estimate = rows["truth_a"].to_numpy(np.float64), rows[f"estimate{run}"].to_numpy(np.float64)
    error = estimate - truth
    covered = (rows[f"lower{run}"] <= truth) & (truth <= rows[f"upper{run}"])
    return {"mae": np.abs(error), "rmse": np.square(error), "bias": error, "coverage": covered.to_numpy(np.float64)}


def paired_difference(
    query: npt.NDArray[np.intp], a: FloatArray, b: FloatArray, *, root: bool, shares: bool = False
) -> dict[str, float]:
    """Return the difference of two means, or of their roots, and its interval from the queries' own differences.

    A query's number of rows may vary (speeds), so a mean is a ratio of sums over queries; its deviation by query is the
    deviation of the ratio's linear approximation.

    Parameters
    ----------
    query
        (rows,): the query of each row, from 0, each number at least once.
    a, b
        (rows,): values; with `a` of zeros, the interval is for the mean of `b` alone.
    root
        Whether the roots of the means are compared.
    shares
        Whether the values are between 0 and 1.

    Returns
    -------
    dict
        `a`, `b`, `difference`, `lower`, `upper` and `queries`, as in `compare`.
    """
    weights = np.bincount(query)
    scores, deviations = [], []
    for values in (a, b):
        mean = float(values.mean())
        score = math.sqrt(mean) if root else mean
        # Without any error the mean square is zero in every query, and so is its deviation.
        slope = (0.5 / score if score else 0.0) if root else 1.0
        scores.append(score)
        deviations.append(slope * (np.bincount(query, values) - mean * weights) / weights.mean())
    difference, count = scores[1] - scores[0], len(weights)
    if shares:
        differences = np.bincount(query, b - a) / weights
        lower, upper = share_interval(differences, low=-1.0, high=1.0) if np.ptp(weights) == 0 else (math.nan, math.nan)
    else:
        spread = float(np.square(deviations[1] - deviations[0]).sum()) / (count * max(1, count - 1))
        half = float(t_quantile(count)) * math.sqrt(spread)
        lower, upper = difference - half, difference + half
    return {"a": scores[0], "b": scores[1], "difference": difference, "lower": lower, "upper": upper, "queries": count}

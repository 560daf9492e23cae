"""Mondrian: devices cut into clusters of at least k by their own values, as k-anonymity's algorithms do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_integer


@dataclass(frozen=True, eq=False)
class Cluster:
    """Devices that are published alike: so many, all within a box.

    Parameters
    ----------
    devices : int
        At least k.
    low, high : (dimensions,) float64
        Least and greatest value of any device of the cluster, by dimension. They are devices' own values: that is
        the leak (LQS sec 3.1).
    """

    devices: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def cut_clusters(points: ArrayLike, devices: ArrayLike, k: int) -> tuple[Cluster, ...]:
    """Cut devices into clusters by strict Mondrian (LeFevre, DeWitt and Ramakrishnan 2006; LQS algorithm 1).

    A cluster is cut at the median of the dimension in which it spreads widest, relative to the spread of all, into
    those up to the median and those above; if that leaves fewer than k on a side the next dimension is tried, and a
    cluster that cannot be cut is published.

    Parameters
    ----------
    points : (n, dimensions) float64
        Places, or values of the attributes.
    devices : (n,) int
        Devices at each of them, none negative.
    k : int
        At least 1.

    Returns
    -------
    tuple of Cluster
        Every device in one of them; none at all where there are fewer than k devices.

    Raises
    ------
    ParameterError
        If shapes do not fit, a point is not finite, or a number of devices is negative.
    """
    k = check_integer("k", k, at_least=1)
    places, held = np.asarray(points, dtype=np.float64), np.asarray(devices)
    if places.ndim != 2 or held.shape != places.shape[:1]:
        raise ParameterError("points", "must be (n, dimensions), with one number of devices each", places.shape)
    if not np.isfinite(places).all():
        raise ParameterError("points", "must be finite", float(places[~np.isfinite(places)][0]))
    if held.dtype.kind not in "iu" or (held.size and held.min() < 0):
        raise ParameterError(
            "devices", "must hold integers of at least 0", held.dtype if held.dtype.kind != "i" else -1
        )
    held = held.astype(np.int64)
    there = np.flatnonzero(held)
    if held.sum() < k:
        return ()
    spread = np.ptp(places[there], axis=0)
    spread[spread == 0.0] = 1.0
    done, waiting = [], [there]
    while waiting:
        members = waiting.pop()
        halves = _cut(places[members], held[members], k, spread)
        if halves is None:
            inside = places[members]
            done.append(Cluster(int(held[members].sum()), inside.min(axis=0), inside.max(axis=0)))
        else:
            waiting += [members[~halves], members[halves]]
    return tuple(done)


def _cut(
    places: NDArray[np.float64], held: NDArray[np.int64], k: int, spread: NDArray[np.float64]
) -> NDArray[np.bool_] | None:
    """Return which members go below a cut that leaves at least k on either side, or None where there is none."""
    total = int(held.sum())
    for dimension in np.argsort(-np.ptp(places, axis=0) / spread, kind="stable"):
        values = places[:, dimension]
        order = np.argsort(values, kind="stable")
        median = values[order[np.searchsorted(np.cumsum(held[order]), total / 2)]]
        below: NDArray[np.bool_] = values <= median
        if k <= int(held[below].sum()) <= total - k:
            return below
    return None

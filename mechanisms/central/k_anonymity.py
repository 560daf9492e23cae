"""Data-dependent k-anonymity: Mondrian clusters and local recoding. Implemented to show what it leaks, not for use."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.central.release import check_held
from mechanisms.compiled import Floats, Integers, Mask
from mechanisms.local.common.intervals import BinomialInversion
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.view import Adjacency


@dataclass(frozen=True, eq=False)
class Cluster:
    """Devices that are published together: their number, and a box that contains all of them.

    Parameters
    ----------
    devices : int
        At least k.
    low, high : (dimensions,) float64
        Least and greatest value of any device of the cluster, by dimension. They are values of single devices, which is
        the leak (LQS sec 3.1).
    """

    devices: int
    low: Floats
    high: Floats


def cut_clusters(points: ArrayLike, devices: ArrayLike, k: int) -> tuple[Cluster, ...]:
    """Cut devices into clusters by strict Mondrian (LeFevre, DeWitt and Ramakrishnan 2006; LQS algorithm 1).

    A cluster is cut at the median of the dimension in which it spreads widest, relative to the spread of all devices,
    into those up to the median and those above. If that leaves fewer than k on a side, the next dimension is tried. A
    cluster that cannot be cut is published.

    Parameters
    ----------
    points : (n, dimensions) float64
        Positions, or values of the attributes.
    devices : (n,) int
        Devices at each of them, none negative.
    k : int
        At least 1.

    Returns
    -------
    tuple of Cluster
        Every device is in one of them. There are no clusters where there are fewer than k devices.

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


def _cut(places: Floats, held: Integers, k: int, spread: Floats) -> Mask | None:
    """Return which members go below a cut that leaves at least k on either side, or None where there is none."""
    total = int(held.sum())
    for dimension in np.argsort(-np.ptp(places, axis=0) / spread, kind="stable"):
        values = places[:, dimension]
        order = np.argsort(values, kind="stable")
        median = values[order[np.searchsorted(np.cumsum(held[order]), total / 2)]]
        below: Mask = values <= median
        if k <= int(held[below].sum()) <= total - k:
            return below
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalRecoding:
    """The documented vulnerable case (LQS sec 3.1): Mondrian over cell centres, each cluster published as its box.

    Every published row stands for at least k devices, so the table is k-anonymous. But a box ends at its outermost
    device. So an edge reveals a device that is alone far out, and one device more or less changes cuts and totals.

    Parameters
    ----------
    k : int
        Devices in a cluster, at least 1.
    places : (cells, 2) float64
        Centre of every cell, finite, in any planar unit.

    Raises
    ------
    ParameterError
        If a parameter is out of range or has another shape.
    """

    k: int
    places: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer("k", self.k, at_least=1))
        places = np.asarray(self.places, dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != 2 or len(places) == 0:
            raise ParameterError("places", "must be (cells, 2), with at least one cell", places.shape)
        if not np.isfinite(places).all():
            raise ParameterError("places", "must be finite", float(places[~np.isfinite(places)][0]))
        object.__setattr__(self, "places", places)

    def clusters(self, counts: Integers) -> tuple[Cluster, ...]:
        """Return the table as it is published, boxes and devices, for (cells,) int64 devices held."""
        return cut_clusters(self.places, check_held(counts, cells=len(self.places)), self.k)

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:  # noqa: ARG002 - this release is deterministic
        """Publish the clusters, with the devices of a cluster spread evenly over the cells of its box.

        The standard error is the error of even spreading. Upper ends always hold: all devices of every box over the
        cell, or k − 1 where nothing is published because there are fewer than k devices.
        """
        cells = len(self.places)
        count, variance = np.zeros(cells), np.zeros(cells)
        lower, upper = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
        published = self.clusters(counts)
        for cluster in published:
            inside = ((self.places >= cluster.low) & (self.places <= cluster.high)).all(axis=1)
            share = 1.0 / inside.sum()
            count[inside] += cluster.devices * share
            variance[inside] += cluster.devices * share * (1.0 - share)
            upper[inside] += cluster.devices
            lower[inside] += cluster.devices if share == 1.0 else 0
        if not published:
            upper[:] = self.k - 1
            variance[:] = (self.k - 1) ** 2
        invert = BinomialInversion(lower, upper, 1.0)
        return Estimate(count, np.sqrt(variance), *invert(), "exact", invert)

    def std_error(self, true_counts: Integers) -> Floats:
        """Return |published − truth| of every cell, (cells,) float64; nothing is drawn, so it is not an average."""
        held = check_held(true_counts, field="true_counts", cells=len(self.places))
        published = self.publish(held, rng=np.random.default_rng(0))
        return np.abs(published.count - held)

    def claim(
        self,
        *,
        crowd: int | None,
        queries: int = 1,
        adjacency: Adjacency = "enter_leave",  # noqa: ARG002 - the claim is the same for both
    ) -> Claim:
        """Return the claim that nothing is hidden: ε is infinite and δ is 1 at every ε, for any crowd.

        With k other devices in one cell and the device alone far out, boxes that reach it are published exactly if it
        is there. After sampling with β the same event has probability β. So δ = β at every ε, and nothing better
        follows from k (LQS sec 3.1).
        """
        check_integer("queries", queries, at_least=1)
        if crowd is not None:
            check_integer("crowd", crowd, at_least=1)
        return Claim.exact(
            math.inf,
            ConstantDelta(1.0),
            "Clustering and local recoding are deterministic: exact totals and the boxes' edges reveal whether the "
            "device is there, with certainty where enough devices are held to publish at all (LQS sec 3.1).",
        )

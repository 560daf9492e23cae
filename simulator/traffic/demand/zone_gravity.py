"""Gravity demand between zones: a trip table computed from the zones' productions and attractions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from simulator.arrays import FloatArray
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.resources import shortage
from simulator.files.tables import RECOGNIZED, Table, TextFormat, column_names, find_columns
from simulator.roads.network import RoadNetwork
from simulator.traffic.demand.trip_table import TripTable, TripZones, capped
from simulator.traffic.paths import ShortestPaths

_PAIR_NBYTES = 64.0
"""Memory per pair of zones: eight numbers, including the temporary ones of the computation."""
_TOLERANCE = 1e-9
_MOST_ROUNDS = 10_000
_NAMES = {
    "zone": ("zone", "zone_id", "node", "node_id", "id"),
    "production": ("production", "productions", "origins", "produced"),
    "attraction": ("attraction", "attractions", "destinations", "attracted"),
}


@dataclass(frozen=True, eq=False)
class ZoneMasses:
    """Number of trips that begin and end in each zone.

    Attributes
    ----------
    file
        File the numbers were read from.
    names
        Distinct names of the zones.
    production, attraction
        (zones,) float64, 0 or more, each with a sum above 0.
    """

    file: str
    names: list[str]
    production: FloatArray
    attraction: FloatArray

    @classmethod
    def read(cls, file: str | Path, *, text: TextFormat = RECOGNIZED) -> "ZoneMasses":
        """Read a table (``.csv``, ``.csv.gz`` or ``.parquet``) with ``zone``, ``production`` and ``attraction``.

        Raises
        ------
        InputError
            If the file cannot be read or lacks a column, or a row has no zone, the zone of another row, or invalid
            numbers of trips.
        """
        path = Path(file)
        found = find_columns(column_names(path, format_=text), _NAMES)
        columns = {name: found.get(name, name) for name in _NAMES}
        table = Table.from_file(path, columns=columns, identifiers=("zone",), format_=text)
        names = table.unique_identifiers("zone")
        masses = {name: table.checked_numbers(name, at_least=0) for name in ("production", "attraction")}
        for name, values in masses.items():
            with np.errstate(over="ignore"):
                total = values.sum()
            if (values >= 0).all() and not 0 < total < np.inf:
                table.broken.append(
                    f"{file}: the {name}s must sum to more than 0, and to a finite number, got {total:g}"
                )
        if reason := shortage(_PAIR_NBYTES * len(table) ** 2, to=f"join each of {len(table):,} zones to each"):
            table.broken.append(f"{file}: {reason}")
        table.check()
        return cls(str(file), names, masses["production"], masses["attraction"])


def gravity_table(
    masses: ZoneMasses,
    network: RoadNetwork,
    paths: ShortestPaths,
    *,
    scale_s: float,
    constraint: Literal["doubly", "singly"],
) -> TripTable:
    """Distribute the trips of zones over pairs of different zones: T_ij = a_i P_i b_j A_j exp(−t_ij / scale_s).

    t_ij is the shortest time between the zones, averaged over their pairs of nodes that a path joins. In the singly
    constrained model, b = 1 and each a_i is chosen such that zone i sends its production P_i. In the doubly constrained
    model, each zone also receives its attraction A_j: a and b are found by iterative proportional fitting (Furness), to
    1 part in 10⁹, after attractions are scaled to the sum of productions.

    Parameters
    ----------
    masses
        Productions and attractions of the zones.
    network, paths
        Roads, and shortest paths over them.
    scale_s
        Travel time over which demand falls by a factor e, seconds, above 0.
    constraint
        "doubly" or "singly".

    Returns
    -------
    TripTable
        Trips between all pairs of zones; their sum equals the sum of the productions.

    Raises
    ------
    InputError
        If a zone does not exist in the network, if a zone that produces (or attracts) trips cannot reach (or be reached
        from) any other, or if no distribution of trips has both sums.

    References
    ----------
    A. G. Wilson, A statistical theory of spatial distribution models, Transportation Research 1 (1967) 253-269;
    K. P. Furness, Time function iteration, Traffic Engineering and Control 7 (1965) 458-460.
    """
    zones = TripZones.named_by(masses.names, network)
    number = zones.find(masses.names)
    if lost := [name for name, place in zip(masses.names, number.tolist(), strict=True) if place < 0]:
        words = f"is no {zones.kind} of the roads, which have {len(zones.names):,}, such as {zones.names[0]!r}"
        raise InputError(capped([f"{masses.file}: zone {name!r} {words}" for name in lost]))
    times = zones.mean_times(number, paths)
    np.fill_diagonal(times, np.inf)
    notes = []
    attraction = masses.attraction
    if constraint == "doubly":
        factor = masses.production.sum() / attraction.sum()
        if abs(factor - 1.0) > _TOLERANCE:
            notes.append(
                f"{Path(masses.file).name}: attractions are scaled by {factor:.6g} to the sum of the productions"
            )
        attraction = attraction * factor
        _check_elsewhere(masses, attraction)
    weights = _deterrence(times, masses, attraction, scale_s=scale_s)
    if constraint == "doubly":
        trips = _balanced(weights, masses, attraction)
    else:
        trips = weights * _ratio(masses.production, weights.sum(axis=1))[:, None]
    origin, destination = np.nonzero(trips > 0)
    return TripTable(
        masses.file,
        masses.names,
        origin.astype(np.int32),
        destination.astype(np.int32),
        trips[origin, destination],
        origin.astype(np.int64) + 1,
        notes=notes,
    )


def _check_elsewhere(masses: ZoneMasses, attraction: FloatArray) -> None:
    """Raise an error for a zone that produces and attracts more trips than other zones can receive and send."""
    total = float(masses.production.sum())
    large = np.flatnonzero(masses.production + attraction > total * (1.0 + _TOLERANCE)).tolist()
    if large:
        words = "no table of trips between different zones has both sums: too few trips begin or end in other zones"
        faults = [
            f"{masses.file}: row {row + 1}: zone {masses.names[row]} produces {masses.production[row]:,.10g} and "
            f"attracts {attraction[row]:,.10g} of {counted(total, 'trip')}, and {words}"
            for row in large
        ]
        raise InputError(capped(faults))


def _deterrence(times: FloatArray, masses: ZoneMasses, attraction: FloatArray, *, scale_s: float) -> FloatArray:
    """Return A_j exp(−t_ij / scale_s), each row up to a constant factor; (zones, zones) float64."""
    sends, receives = masses.production > 0, attraction > 0
    times = np.where(receives[None, :] & sends[:, None], times, np.inf)
    nearest, closest = times.min(axis=1), times.min(axis=0)
    faults = [
        f"{masses.file}: row {row + 1}: zone {masses.names[row]} {words}"
        for bad, words in (
            (sends & ~np.isfinite(nearest), "produces trips, and no path leads from it to a zone that attracts any"),
            (receives & ~np.isfinite(closest), "attracts trips, and no path leads to it from a zone that produces any"),
        )
        for row in np.flatnonzero(bad).tolist()
    ]
    if faults:
        raise InputError(capped(faults))
    # Times are relative to the nearest zone of each row, so that a small scale cannot underflow a whole row to 0.
    relative = times - np.where(np.isfinite(nearest), nearest, 0.0)[:, None]
    return np.exp(-relative / scale_s) * attraction


def _balanced(weights: FloatArray, masses: ZoneMasses, attraction: FloatArray) -> FloatArray:
    """Scale rows to productions and columns to attractions, iteratively."""
    trips = weights.copy()
    production = masses.production
    for _ in range(_MOST_ROUNDS):
        trips *= _ratio(production, trips.sum(axis=1))[:, None]
        trips *= _ratio(attraction, trips.sum(axis=0))
        off = np.abs(trips.sum(axis=1) - production)
        if np.all(off <= _TOLERANCE * production):
            return trips
    worst = int(np.argmax(off / np.maximum(production, np.finfo(float).tiny)))
    produced = counted(float(production[worst]), "trip")
    fault = (
        f"{masses.file}: row {worst + 1}: no table of trips between different zones was found that has both sums: zone "
        f"{masses.names[worst]} produces {produced} and comes to {trips[worst].sum():,.10g}; "
        'take a larger gravity_scale_s, or gravity_constraint = "singly"'
    )
    raise InputError([fault])


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)

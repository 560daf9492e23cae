"""Taxi trips as New York's: a row a trip, with a pick-up and a drop-off, two fixes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.tables import Reading, check, numbers_of, vehicles_of
from simulator.traffic.trace.times import Times

_ENDS = ("pickup", "dropoff")


def holds_trips(plain: set[str]) -> bool:
    """Say whether columns, in lower case letters and digits, are of pick-ups and drop-offs."""
    return {f"{end}{what}" for end in _ENDS for what in ("longitude", "latitude")} <= plain


def fixes_of_trips(frame: pd.DataFrame, reading: Reading, *, source: str, place: npt.NDArray[np.int64]) -> Fixes:
    """Take pick-ups and drop-offs; the vehicle is the medallion, else the trip's id, else the line.

    Raises
    ------
    TrafficError
        If columns or values are not what they should be.
    """
    by_plain = {"".join(ch for ch in str(name).lower() if ch.isalnum()): str(name) for name in frame.columns}

    def named(*names: str) -> str | None:
        return next((by_plain[name] for name in names if name in by_plain), None)

    moments = [named(f"{end}datetime", f"tpep{end}datetime", f"lpep{end}datetime") for end in _ENDS]
    if frame.empty or None in moments:
        why = "it holds no rows" if frame.empty else "pickup_datetime and dropoff_datetime must be columns"
        raise TrafficError([f"{source}: {why}"])
    who = named("medallion", "taxiid", "vehicleid")
    trip = who or named("id", "tripid")
    names: Sequence[str] = [f"line {line}" for line in place.tolist()]
    codes = np.arange(len(frame), dtype=np.int32)
    if trip is not None:
        codes, names = vehicles_of(frame[trip])
    stamps = [
        Times.from_column(frame[str(moment)], unit_s=reading.time_unit_s, written=reading.time_format)
        for moment in moments
    ]
    zoned = [stamp.zoned for stamp in stamps if stamp.zoned is not None]
    # Both ends of a trip one after the other, so that a taxi's clock is looked at as the file has it.
    both = np.arange(2 * len(frame)).reshape(2, -1).T.ravel()
    fixes = Fixes(
        source,
        np.tile(codes, 2)[both],
        names,
        Times(
            np.concatenate([stamp.seconds for stamp in stamps])[both],
            calendar=stamps[0].calendar,
            naive=stamps[0].naive,
            zoned=np.concatenate(zoned)[both] if len(zoned) == len(stamps) else None,
        ),
        _both(frame, by_plain, "longitude")[both],
        _both(frame, by_plain, "latitude")[both],
        np.full(len(both), np.nan),
        np.tile(place, 2)[both],
        "line",
        notes=() if who else (f"{source}: no column names the taxi, so every trip is a vehicle of its own",),
    )
    check(fixes)
    return fixes


def _both(frame: pd.DataFrame, by_plain: dict[str, str], what: str) -> npt.NDArray[np.float64]:
    return np.concatenate([numbers_of(frame[by_plain[f"{end}{what}"]]) for end in _ENDS])

"""Logs in text: tables with a header, and the headerless ones of T-Drive and cabspotting."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.files.unpacked import TABLE_TIMES, opened
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.columns import plain_names
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.pickups import fixes_of_trips, holds_trips
from simulator.traffic.trace.source import first_lines, stem
from simulator.traffic.trace.sumo_tables import fixes_of_sumo, is_sumo
from simulator.traffic.trace.tables import Reading, fixes_of
from simulator.traffic.trace.times import Times

SEPARATORS = (",", ";", "\t", "|")

T_DRIVE = ("vehicle", "time", "lon", "lat")
CABSPOTTING = ("lat", "lon", "occupied", "time")


def read_csv(file: Path, reading: Reading) -> list[Fixes]:
    """Read a table with a header, separated by comma, semicolon, tab or bar.

    SUMO's floating-car data and taxi trips (pick-up and drop-off in one row) are told by their columns.
    """
    lines = first_lines(file, 1)
    if not lines:
        raise TrafficError([f"{file}: it is empty"])
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator_of(lines[0])), [])]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise TrafficError([f"{file}: line 1: columns must differ in name, and {twice[0]!r} is there twice"])
    frame = _frame(file, separator=separator_of(lines[0]))
    # The header is the first line that is not blank; lines of a quoted field that spans several count as one.
    place = frame.index.to_numpy().astype(np.int64) + 2
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="line")]
    if holds_trips(plain_names(list(frame.columns))) and not reading.columns:
        return [fixes_of_trips(frame, reading, source=str(file), place=place)]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_tdrive(file: Path, reading: Reading) -> list[Fixes]:
    """Read T-Drive's own form: vehicle, time, longitude, latitude, separated by commas, without a header."""
    frame = _frame(file, separator=",", names=T_DRIVE)
    place = frame.index.to_numpy().astype(np.int64) + 1
    own = Reading(
        dict(zip(T_DRIVE, T_DRIVE, strict=True)), time_unit_s=reading.time_unit_s, time_format=reading.time_format
    )
    return [fixes_of(frame, own, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_cabspotting(file: Path, reading: Reading) -> list[Fixes]:
    """Read cabspotting's own form: latitude, longitude, occupied, seconds since 1970, one file a cab.

    A cab is named as its file, without ``new_`` before it.
    """
    frame = _frame(file, separator=" ", names=CABSPOTTING)
    place = frame.index.to_numpy().astype(np.int64) + 1
    columns = {"time": "time", "lon": "lon", "lat": "lat"}
    own = Reading(columns, time_unit_s=reading.time_unit_s, one_vehicle_a_file=True)
    cab = stem(file).removeprefix("new_")
    return [fixes_of(frame, own, source=str(file), vehicle=cab, place=place, place_word="line")]


def is_tdrive(line: str) -> bool:
    """Say whether a first line is T-Drive's: four fields, a time in the second, degrees in the others."""
    fields = line.split(",")
    if len(fields) != 4 or not (_is_number(fields[2]) and _is_number(fields[3])):
        return False
    return bool(np.isfinite(Times.from_column(pd.Series([fields[1]])).seconds[0]))


def is_cabspotting(line: str) -> bool:
    """Say whether a first line is cabspotting's: four numbers between blanks, the third 0 or 1."""
    fields = line.split()
    return len(fields) == 4 and all(map(_is_number, fields)) and fields[2] in {"0", "1"}


def separator_of(header: str) -> str:
    """Return what a header is separated by: that which is in it most often, comma where none is."""
    return max(SEPARATORS, key=header.count)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _frame(file: Path, *, separator: str, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Read rows; blank lines are left out, and the index still counts them."""
    text: dict[str, Any] = {"header": None, "names": list(names)} if names else {}
    try:
        with opened(file, error=TrafficError, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                stream,
                sep=separator,
                index_col=False,
                skip_blank_lines=False,
                encoding="utf-8-sig",
                dtype=_text_columns(file, separator) if names is None else {"vehicle": "str"},
                low_memory=False,
                **text,
            )
    except pd.errors.EmptyDataError:
        raise TrafficError([f"{file}: it is empty"]) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error, ValueError, OverflowError) as error:
        if isinstance(error, TrafficError):
            raise
        why = " ".join(str(error).split())
        raise TrafficError([f"{file}: cannot be read as a table separated by {separator!r}: {why}"]) from None
    rows: pd.DataFrame = frame.dropna(how="all")
    return rows


def _text_columns(file: Path, separator: str) -> dict[str, str]:
    """Read whatever may name a vehicle as text, so that 007 stays 007."""
    header = first_lines(file, 1)[0].split(separator)
    times = ("time", "date", "utc")
    plain = [name.strip().strip('"') for name in header]
    return {
        name: "str"
        for name in plain
        if not any(word in name.lower() for word in (*times, "lon", "lng", "lat", "speed", "_x", "_y"))
        and name.lower() not in {"x", "y", "t", "ts", "epoch", "velocity"}
    }

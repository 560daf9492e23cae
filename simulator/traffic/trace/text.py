"""Readers of traces in text files: tables with a header, T-Drive and cabspotting, and New York's taxi trips."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.files.compressed_io import TABLE_TIMES, opened, unpacked_name
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.columns import plain_names
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.sumo_fcd import fixes_of_sumo, is_sumo
from simulator.traffic.trace.tables import TraceOptions, check, fixes_of, numbers_of, vehicles_of
from simulator.traffic.trace.times import Times

_ENDS = ("pickup", "dropoff")


def holds_trips(plain: set[str]) -> bool:
    """Return whether column names, in lower case letters and digits, are those of pick-ups and drop-offs."""
    return {f"{end}{what}" for end in _ENDS for what in ("longitude", "latitude")} <= plain


def fixes_of_trips(frame: pd.DataFrame, reading: TraceOptions, *, source: str, place: npt.NDArray[np.int64]) -> Fixes:
    """Convert pick-ups and drop-offs to fixes; the vehicle is the medallion, else the trip's id, else the line.

    Raises
    ------
    TrafficError
        If columns or values are invalid.
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
    # Both ends of a trip are adjacent, so that the order of a taxi's times is checked as in the file.
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


def plain_name(file: Path) -> str:
    """Return a file's name in lower case, without ``.gz`` and the like."""
    return unpacked_name(file).lower()


def stem(file: Path) -> str:
    """Return a file's name without ``.gz`` and its suffix: the vehicle's name, if each file is one vehicle."""
    return Path(unpacked_name(file)).stem


def first_lines(file: Path, lines: int = 3, *, most_nbytes: int = 1 << 16) -> list[str]:
    """Read the first lines of a text file that are not blank, at most 64 KiB, to recognise its format.

    Raises
    ------
    TrafficError
        If the file cannot be read.
    """
    with opened(file) as stream:
        start = stream.read(most_nbytes)
    text = start.decode("utf-8-sig", errors="replace")
    return [line for line in text.splitlines() if line.strip()][:lines]


SEPARATORS = (",", ";", "\t", "|")

T_DRIVE = ("vehicle", "time", "lon", "lat")
CABSPOTTING = ("lat", "lon", "occupied", "time")


def read_csv(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read a table with a header, separated by comma, semicolon, tab or bar.

    SUMO's floating-car data and taxi trips (pick-up and drop-off in one row) are recognised by their columns.
    """
    lines = first_lines(file, 1)
    if not lines:
        raise TrafficError([f"{file}: it is empty"])
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=separator_of(lines[0])), [])]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise TrafficError([f"{file}: line 1: columns must differ in name, and {twice[0]!r} is there twice"])
    frame = _frame(file, separator=separator_of(lines[0]))
    # The header is the first line that is not blank; a quoted field that spans several lines counts as one line.
    place = frame.index.to_numpy().astype(np.int64) + 2
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="line")]
    if holds_trips(plain_names(list(frame.columns))) and not reading.columns:
        return [fixes_of_trips(frame, reading, source=str(file), place=place)]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_tdrive(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read the T-Drive format: vehicle, time, longitude, latitude, separated by commas, without a header."""
    frame = _frame(file, separator=",", names=T_DRIVE)
    place = frame.index.to_numpy().astype(np.int64) + 1
    own = TraceOptions(
        dict(zip(T_DRIVE, T_DRIVE, strict=True)), time_unit_s=reading.time_unit_s, time_format=reading.time_format
    )
    return [fixes_of(frame, own, source=str(file), vehicle=stem(file), place=place, place_word="line")]


def read_cabspotting(file: Path, reading: TraceOptions) -> list[Fixes]:
    """Read the cabspotting format: latitude, longitude, occupied, seconds since 1970, one file per cab.

    A cab is named after its file, without the prefix ``new_``.
    """
    frame = _frame(file, separator=" ", names=CABSPOTTING)
    place = frame.index.to_numpy().astype(np.int64) + 1
    columns = {"time": "time", "lon": "lon", "lat": "lat"}
    own = TraceOptions(columns, time_unit_s=reading.time_unit_s, one_vehicle_a_file=True)
    cab = stem(file).removeprefix("new_")
    return [fixes_of(frame, own, source=str(file), vehicle=cab, place=place, place_word="line")]


def is_tdrive(line: str) -> bool:
    """Return whether a first line has the T-Drive format: four fields, with a time in the second, then degrees."""
    fields = line.split(",")
    if len(fields) != 4 or not (_is_number(fields[2]) and _is_number(fields[3])):
        return False
    return bool(np.isfinite(Times.from_column(pd.Series([fields[1]])).seconds[0]))


def is_cabspotting(line: str) -> bool:
    """Return whether a first line has the cabspotting format: four numbers separated by blanks, the third 0 or 1."""
    fields = line.split()
    return len(fields) == 4 and all(map(_is_number, fields)) and fields[2] in {"0", "1"}


def separator_of(header: str) -> str:
    """Return the separator of a header: the one that occurs in it most often, comma if there is none."""
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
        with opened(file, lines=True, times=TABLE_TIMES) as stream, warnings.catch_warnings():
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
    """Return text as the type of all columns that may name a vehicle, so that 007 stays 007."""
    header = first_lines(file, 1)[0].split(separator)
    times = ("time", "date", "utc")
    plain = [name.strip().strip('"') for name in header]
    return {
        name: "str"
        for name in plain
        if not any(word in name.lower() for word in (*times, "lon", "lng", "lat", "speed", "_x", "_y"))
        and name.lower() not in {"x", "y", "t", "ts", "epoch", "velocity"}
    }

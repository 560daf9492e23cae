"""Recordings read from files, whose formats are recognised."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.files.compressed_io import opened, unpacked_name
from simulator.files.errors import InputError
from simulator.files.times import Times
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import root_of
from simulator.formats.recordings import trace_documents, trace_tables
from simulator.formats.recordings.fixes import Source, TraceOptions
from simulator.formats.recordings.trace import Order, Trace
from simulator.roads.projection import known_crs

_BY_NAME: Mapping[str, str] = {
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
    ".gpkg": "points",
    ".shp": "points",
    ".gpx": "gpx",
    ".plt": "geolife",
    ".json": "json",
    ".geojson": "json",
}


def format_of(file: Path) -> str:
    """Return a file's format, recognised by its name, and if that is not sufficient, by its beginning.

    Raises
    ------
    InputError
        If the format is not recognised.
    """
    name = unpacked_name(file).lower()
    by_name = next((kind for ends, kind in _BY_NAME.items() if name.endswith(ends)), None)
    if by_name is not None:
        return by_name
    first = _first_line(file)
    line = first.lstrip()
    if name.endswith(".xml") or line.startswith("<"):
        # SUMO's reader reports the fault of any other XML file.
        return "gpx" if root_of(file) == "gpx" else "sumo"
    if line.startswith(("[", "{")):
        return "json"
    words, values = line.split(), line.split(",")
    if len(words) == 4 and None not in map(finite_number, words) and words[2] in {"0", "1"}:
        return "cabspotting"
    if len(values) == 4 and None not in map(finite_number, values[2:]) and _is_time(values[1]):
        return "tdrive"
    if name.endswith((".csv", ".tsv", ".txt")):
        return "csv"
    rule = f"its format cannot be recognised by its name or by {first[:60]!r}: state it in traffic.format"
    raise InputError([f"{file}: {rule}"])


def is_matsim_events(file: Path) -> bool:
    """Return whether a file is XML with MATSim's events."""
    return file.is_file() and unpacked_name(file).lower().endswith(".xml") and root_of(file) == "events"


def _first_line(file: Path, *, most_nbytes: int = 1 << 16) -> str:
    """Return the first line of a text file that is not blank, at most 64 KiB.

    Raises
    ------
    InputError
        If the file cannot be read or has no such line.
    """
    with opened(file) as stream:
        text = stream.read(most_nbytes).decode("utf-8-sig", errors="replace")
    line = next((line for line in text.splitlines() if line.strip()), None)
    if line is None:
        raise InputError([f"{file}: it is empty"])
    return line


def _is_time(text: str) -> bool:
    return bool(np.isfinite(Times.from_column(pd.Series([text])).seconds[0]))


Reader = Callable[[Path, TraceOptions], Source]

_READERS: Mapping[str, Reader] = {
    "csv": trace_tables.read_csv,
    "tdrive": trace_tables.read_tdrive,
    "cabspotting": trace_tables.read_cabspotting,
    "geolife": trace_tables.read_geolife,
    "parquet": trace_tables.read_parquet,
    "points": trace_tables.read_points,
    "gpx": trace_documents.read_gpx,
    "sumo": trace_documents.read_sumo_fcd,
    "json": trace_documents.read_json_paths,
}

FORMATS = ("auto", *_READERS)
"""Values of `format` in `read_trace`; "sumo" is XML: SUMO's CSV and Parquet are recognised by their columns."""

_A_FILE_A_VEHICLE = frozenset(["cabspotting", "gpx"])


def read_trace(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str = "auto",  # noqa: A002 - the usual name of this argument
    order: Order = "auto",
    crs: object | None = None,
    **reading: Any,
) -> Trace:
    """Read recorded positions.

    Parameters
    ----------
    paths
        A file, a folder, or several of both. Of a folder, every file in it except those whose names begin with "." or
        "_"; if it holds no file, every ``.plt`` file in the folders within.
    format
        One of `FORMATS`; "auto" recognises each file by its name and its beginning.
    order
        Permitted order of a vehicle's times within a file: see `Trace.from_sources`.
    crs
        Coordinate system of x and y, in metres; None if places are longitudes and latitudes.
    **reading
        All other attributes of `TraceOptions`.

    Returns
    -------
    Trace
        Trace of at least one fix.

    Raises
    ------
    InputError
        For every file that cannot be read, with file, line or row, rule and value received.
    """
    if format not in FORMATS:
        raise InputError([f"format must be one of {', '.join(FORMATS)}, got {format!r}"])
    options = TraceOptions(crs=None if crs is None else known_crs(crs, "crs"), **reading)
    parts: list[Source] = []
    faults: list[str] = []
    owner: dict[str, Path] = {}
    for file in list(_files([paths] if isinstance(paths, str | Path) else paths)):
        try:
            kind = format_of(file) if format == "auto" else format
            part = _READERS[kind](file, options)
        except InputError as error:
            faults += error.faults
            continue
        parts.append(part)
        if kind in _A_FILE_A_VEHICLE or options.one_vehicle_a_file:
            faults += [
                f"{file}: its vehicle {name!r} is also in {owner[name]}: files of one vehicle must differ in name"
                for name in part.fixes["vehicle"].unique()
                if owner.setdefault(name, file) != file
            ]
    if faults:
        raise InputError(faults)
    return Trace.from_sources(parts, order=order)


def _files(paths: Sequence[str | Path]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        for found in (path.iterdir(), path.rglob("*.plt")):  # GeoLife has a folder for each user
            inside = [file for file in sorted(found) if file.is_file() and not file.name.startswith((".", "_"))]
            if inside:
                break
        else:
            raise InputError([f"{path}: the folder holds no file"])
        yield from inside

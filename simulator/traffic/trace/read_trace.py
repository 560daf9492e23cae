"""Reader of traces: recognises the format of each file and combines the files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from simulator.files.xml_elements import root_of
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.formats import read_gpx, read_json_paths, read_parquet
from simulator.traffic.trace.sumo_fcd import read_sumo_fcd
from simulator.traffic.trace.tables import TraceOptions, system_of
from simulator.traffic.trace.text import (
    first_lines,
    is_cabspotting,
    is_tdrive,
    plain_name,
    read_cabspotting,
    read_csv,
    read_tdrive,
)
from simulator.traffic.trace.trace import Order, Trace

Reader = Callable[[Path, TraceOptions], list[Fixes]]

_READERS: Mapping[str, Reader] = {
    "csv": read_csv,
    "tdrive": read_tdrive,
    "cabspotting": read_cabspotting,
    "parquet": read_parquet,
    "gpx": read_gpx,
    "sumo": read_sumo_fcd,
    "json": read_json_paths,
}

FORMATS = ("auto", *_READERS)
"""Values of `format` in `read_trace`; "sumo" is XML: SUMO's CSV and Parquet are recognised by their columns."""

_BY_NAME: Mapping[str, str] = {
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
    ".gpx": "gpx",
    ".json": "json",
    ".geojson": "json",
}

_A_FILE_A_VEHICLE = frozenset(["cabspotting", "gpx"])


def read_trace(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str = "auto",  # noqa: A002 - what everybody calls it
    columns: Mapping[str, str] | None = None,
    crs: object | None = None,
    time_unit_s: float | None = None,
    order: Order = "auto",
    one_vehicle_a_file: bool = False,
    time_format: str | None = None,
) -> Trace:
    """Read recorded positions.

    Parameters
    ----------
    paths
        A file, a folder (every file in it except those whose names begin with "." or "_"), or several of both.
    format
        One of `FORMATS`; "auto" recognises each file by its name and its beginning.
    columns
        For tables: map from our names (vehicle, time, lon, lat or x, y, speed_mps or speed_kph or speed_mph) to the
        file's. Other columns are recognised by their common names.
    crs
        Coordinate system of x and y, in metres; None if places are longitudes and latitudes.
    time_unit_s
        Seconds per unit of numeric times; None for seconds, or for dates, the unit that their size implies.
    order
        Permitted order of a vehicle's times within a file: see `Trace.from_fixes`.
    one_vehicle_a_file
        For tables: whether each is of one vehicle, named after its file.
    time_format
        For tables: format of times, as for `strptime`; None for ISO 8601, or numbers.

    Returns
    -------
    Trace
        Trace of at least one fix.

    Raises
    ------
    TrafficError
        For every file that cannot be read, with file, line or row, rule and value received.
    """
    if format not in FORMATS:
        raise TrafficError([f"format must be one of {', '.join(FORMATS)}, got {format!r}"])
    reading = TraceOptions(dict(columns or {}), system_of(crs), time_unit_s, one_vehicle_a_file, time_format)
    files = list(_files([paths] if isinstance(paths, str | Path) else paths))
    parts: list[Fixes] = []
    faults: list[str] = []
    owner: dict[str, Path] = {}
    for file in files:
        try:
            kind = format_of(file) if format == "auto" else format
            read = _READERS[kind](file, reading)
        except TrafficError as error:
            faults += error.faults
            continue
        parts += read
        if kind in _A_FILE_A_VEHICLE or one_vehicle_a_file:
            faults += [
                f"{file}: its vehicle {name!r} is also that of {owner[name]}: files of one vehicle must differ in name"
                for part in read
                for name in part.names
                if owner.setdefault(name, file) != file
            ]
    if faults:
        raise TrafficError(faults)
    return Trace.from_fixes(parts, order=order)


def format_of(file: Path) -> str:
    """Return a file's format, recognised by its name, and if that is not sufficient, by its beginning.

    Raises
    ------
    TrafficError
        If the format is not recognised.
    """
    name = plain_name(file)
    by_name = next((kind for ends, kind in _BY_NAME.items() if name.endswith(ends)), None)
    if by_name is not None:
        return by_name
    lines = first_lines(file)
    if not lines:
        raise TrafficError([f"{file}: it is empty"])
    by_start = _format_by_start(file, lines[0].lstrip())
    if by_start is not None:
        return by_start
    if name.endswith((".csv", ".tsv", ".txt")):
        return "csv"
    shown = lines[0][:60]
    raise TrafficError([f"{file}: its format cannot be told from its name or from {shown!r}: say it in traffic.format"])


def _format_by_start(file: Path, line: str) -> str | None:
    if plain_name(file).endswith(".xml") or line.startswith("<"):
        # SUMO's reader reports the fault of any other XML file.
        return "gpx" if root_of(file) == "gpx" else "sumo"
    if line.startswith(("[", "{")):
        return "json"
    if is_cabspotting(line):
        return "cabspotting"
    return "tdrive" if is_tdrive(line) else None


def _files(paths: Sequence[str | Path]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        inside = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith((".", "_"))]
        if not inside:
            raise TrafficError([f"{path}: the folder holds no file"])
        yield from inside

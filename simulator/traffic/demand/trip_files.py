"""Files of trips, told apart by name and first bytes."""

from collections.abc import Mapping
from pathlib import Path

from simulator.files.unpacked import begin_of
from simulator.traffic.demand.od_table import read_od_table
from simulator.traffic.demand.tntp_trips import read_tntp_trips
from simulator.traffic.demand.trip_table import TripTable
from simulator.traffic.errors import TrafficError

_TABLES = (".csv", ".csv.gz", ".parquet")
_ROUTES = (".xml", ".xml.gz")
_XML = (b"<?xml", b"<!--", b"<!doctype", b"<routes", b"<additional")


def is_sumo_routes(file: Path) -> bool:
    """Say whether a file is one of SUMO's: by its suffix, or else by how it begins."""
    name = file.name.lower()
    if name.endswith(_ROUTES):
        return True
    return not name.endswith(_TABLES) and _begin(file).startswith(_XML)


def read_trip_table(file: Path, *, columns: Mapping[str, str]) -> TripTable:
    """Read an origin-destination table in CSV or Parquet (GMNS's too), or a TNTP trip table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` and ``.parquet`` are tables; what else begins with ``<`` is TNTP.
    columns
        Our name of a table's column to the file's.

    Raises
    ------
    TrafficError
        If it is none of these, or cannot be used.
    """
    if file.name.lower().endswith(_TABLES):
        return read_od_table(file, columns=columns)
    if columns:
        raise TrafficError([f"{file}: trip_columns go with a table in CSV or Parquet, which this is not"])
    begin = _begin(file)
    if begin and not begin.startswith((b"<", b"~")):
        rule = "must be a table (.csv, .csv.gz, .parquet), SUMO routes (XML) or a TNTP trip table, which begins with <"
        raise TrafficError([f"{file}: {rule}; got {begin[:20].decode(errors='replace')!r}"])
    return read_tntp_trips(file)


def _begin(file: Path) -> bytes:
    """Return how a file begins, in small letters, blanks left out; nothing of one that cannot be read."""
    return begin_of(file).removeprefix(b"\xef\xbb\xbf").lstrip().lower()

"""Files of trips: which format a file has, and the tables among them."""

from collections.abc import Collection, Mapping
from pathlib import Path

from simulator.files.compressed_io import begin_of
from simulator.files.errors import InputError
from simulator.files.tables import RECOGNIZED, TextFormat
from simulator.formats.tables.trip_points import TripPlaces
from simulator.formats.tables.trips import read_od_table
from simulator.formats.tntp.trips import read_tntp_trips
from simulator.traffic.demand.trip_table import TripTable

TABLES = (".csv", ".csv.gz", ".parquet")
_ROUTES = (".xml", ".xml.gz")
_XML = (b"<?xml", b"<!--", b"<!doctype", b"<routes", b"<additional")


def is_sumo_routes(file: Path) -> bool:
    """Return whether a file is a SUMO route file: by its suffix, or else by its beginning."""
    name = file.name.lower()
    return name.endswith(_ROUTES) or (not name.endswith(TABLES) and _begin(file).startswith(_XML))


def read_trip_table(
    file: Path,
    *,
    columns: Mapping[str, str],
    ignored: Collection[str] = (),
    text: TextFormat = RECOGNIZED,
    places: TripPlaces | None = None,
) -> TripTable:
    """Read an origin-destination table in CSV or Parquet (GMNS's too), or a TNTP trip table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` and ``.parquet`` are tables; any other file that begins with ``<`` is TNTP.
    columns
        Map from our name of a table's column to the file's.
    ignored, text, places
        As for `read_od_table`.

    Raises
    ------
    InputError
        If the file has none of these formats, or cannot be used.
    """
    if file.name.lower().endswith(TABLES):
        return read_od_table(file, columns=columns, ignored=ignored, text=text, places=places)
    if columns:
        raise InputError([f"{file}: trip_columns apply only to a table in CSV or Parquet"])
    begin = _begin(file)
    if begin and not begin.startswith((b"<", b"~")):
        rule = "must be a table (.csv, .csv.gz, .parquet), SUMO routes (XML) or a TNTP trip table, which begins with <"
        raise InputError([f"{file}: {rule}; got {begin[:20].decode(errors='replace')!r}"])
    return read_tntp_trips(file)


def _begin(file: Path) -> bytes:
    """Return a file's beginning in lower case without blanks; empty if the file cannot be read."""
    return begin_of(file).removeprefix(b"\xef\xbb\xbf").lstrip().lower()

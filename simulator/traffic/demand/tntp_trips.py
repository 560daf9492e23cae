"""Reader of TNTP trip tables, and recognition of trip file formats."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from simulator.files.compressed_io import begin_of
from simulator.files.errors import InputError
from simulator.roads.readers.tntp_files import Line, finite_number, lines_of, read_metadata, shown
from simulator.traffic.demand.od_table import read_od_table
from simulator.traffic.demand.trip_table import SHOWN, TripTable
from simulator.traffic.errors import TrafficError

_ORIGIN = re.compile(r"origin\b\s*(.*)", re.IGNORECASE)
_ZONE = re.compile(r"\d{1,18}")
_ZONES, _TOTAL = "NUMBER OF ZONES", "TOTAL OD FLOW"
_SIGMAS = 6.0


def read_tntp_trips(file: str | Path) -> TripTable:
    """Read a TNTP trip table: blocks ``Origin n`` of pairs ``destination : trips;``, any number of pairs per line.

    If the metadata have ``<NUMBER OF ZONES>``, zones must be in 1 … that number. If they have ``<TOTAL OD FLOW>``,
    trips must sum to it within the error from rounding each number to its written digits.

    Parameters
    ----------
    file
        Plain text or gzipped.

    Returns
    -------
    TripTable
        Pairs without trips are left out; pairs within a zone are kept.

    Raises
    ------
    TrafficError
        If the file does not have this form, a number is invalid or negative, or the sum differs from the declared one.
    """
    try:
        return _Reading(str(file)).run()
    except InputError as error:
        raise TrafficError(error.faults) from error


class _Reading:
    def __init__(self, file: str) -> None:
        self._file = file
        self._faults: list[str] = []
        self._origin: list[int] = []
        self._destination: list[int] = []
        self._trips: list[float] = []
        self._line: list[int] = []
        # Variance of the rounding error of the sum, if each number was rounded to its last digit.
        self._variance = 0.0

    def run(self) -> TripTable:
        lines = lines_of(self._file)
        metadata = read_metadata(lines, file=self._file)
        zones = metadata.whole(_ZONES, at_least=1) if metadata.has(_ZONES) else None
        declared = metadata.number(_TOTAL) if metadata.has(_TOTAL) else None
        origin: int | None = None
        blocks = 0
        last: Line | None = None
        for line in lines:
            last = line
            opening = _ORIGIN.fullmatch(line.text)
            if opening:
                blocks += 1
                origin = self._zone(opening[1], line, zones)
            elif blocks == 0:
                self._faults.append(f"{self._at(line)}: must be the Origin of a block, got {shown(line.text)}")
            else:
                self._pairs(line, origin, zones)
            if len(self._faults) >= SHOWN:
                break
        if self._faults:
            raise TrafficError(self._faults)
        if declared is None and last is not None and ":" in last.text.rpartition(";")[2]:
            rule = "the last pair of the file must be ended by a semicolon, or it may be cut off"
            raise TrafficError([f"{self._at(last)}: {rule}; got {shown(last.text.rpartition(';')[2].strip())}"])
        if not blocks:
            raise TrafficError([f"{self._file}: it holds no trips: no line begins with Origin"])
        if declared is not None:
            self._check_total(declared)
        return self._table()

    def _at(self, line: Line) -> str:
        return f"{self._file}: line {line.number}"

    def _zone(self, text: str, line: Line, zones: int | None) -> int | None:
        text = text.strip()
        if not _ZONE.fullmatch(text):
            self._faults.append(f"{self._at(line)}: a zone must be a whole number, got {shown(text)}")
            return None
        zone = int(text)
        if zones is not None and not 1 <= zone <= zones:
            self._faults.append(f"{self._at(line)}: a zone must be from 1 to <{_ZONES}> = {zones}, got {zone}")
            return None
        return zone

    def _pairs(self, line: Line, origin: int | None, zones: int | None) -> None:
        for pair in line.text.split(";"):
            if not pair.strip():
                continue
            name, colon, amount = pair.partition(":")
            if not colon:
                rule = "must be pairs of destination : trips, each ended by a semicolon"
                self._faults.append(f"{self._at(line)}: {rule}, got {shown(pair.strip())}")
                return
            destination = self._zone(name, line, zones)
            amount = amount.strip()
            trips = finite_number(amount)
            if trips is None or trips < 0:
                rule = f"trips to zone {name.strip()} must be a finite number, 0 or more"
                self._faults.append(f"{self._at(line)}: {rule}, got {shown(amount)}")
            elif origin is not None and destination is not None:
                self._variance += 100.0 ** -_decimals(amount) / 12.0
                if trips > 0:
                    self._origin.append(origin)
                    self._destination.append(destination)
                    self._trips.append(trips)
                    self._line.append(line.number)

    def _check_total(self, declared: float) -> None:
        total = math.fsum(self._trips)
        if abs(total - declared) > _SIGMAS * math.sqrt(self._variance) + 1e-9 * max(total, declared):
            rule = f"<{_TOTAL}> must be the sum of the trips, {total:,.10g}, within rounding"
            raise TrafficError([f"{self._file}: {rule}; got {declared:,.10g}"])

    def _table(self) -> TripTable:
        ends = np.array([self._origin, self._destination], dtype=np.int64).reshape(2, -1)
        zones, codes = np.unique(ends, return_inverse=True)
        origin, destination = codes.reshape(2, -1).astype(np.int32)
        return TripTable.summed(
            self._file,
            [str(zone) for zone in zones.tolist()],
            origin,
            destination,
            np.array(self._trips, dtype=np.float64),
            np.array(self._line, dtype=np.int64),
            unit="line",
        )


def _decimals(written: str) -> int:
    """Count the decimal digits; 0 for a number with an exponent, whose rounding is taken as coarser than it is."""
    _, _, digits = written.partition(".")
    return min(len(digits), 18) if digits.isdecimal() else 0


_TABLES = (".csv", ".csv.gz", ".parquet")
_ROUTES = (".xml", ".xml.gz")
_XML = (b"<?xml", b"<!--", b"<!doctype", b"<routes", b"<additional")


def is_sumo_routes(file: Path) -> bool:
    """Return whether a file is a SUMO route file: by its suffix, or else by its beginning."""
    name = file.name.lower()
    if name.endswith(_ROUTES):
        return True
    return not name.endswith(_TABLES) and _begin(file).startswith(_XML)


def read_trip_table(file: Path, *, columns: Mapping[str, str]) -> TripTable:
    """Read an origin-destination table in CSV or Parquet (GMNS's too), or a TNTP trip table.

    Parameters
    ----------
    file
        ``.csv``, ``.csv.gz`` and ``.parquet`` are tables; any other file that begins with ``<`` is TNTP.
    columns
        Map from our name of a table's column to the file's.

    Raises
    ------
    TrafficError
        If the file has none of these formats, or cannot be used.
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
    """Return a file's beginning in lower case without blanks; empty if the file cannot be read."""
    return begin_of(file).removeprefix(b"\xef\xbb\xbf").lstrip().lower()

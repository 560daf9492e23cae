"""Reader of trip tables of the Transportation Networks test problems (TNTP)."""

import math
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.tntp_text import finite_number, lines_of, read_metadata, row_fault, shown
from simulator.traffic.demand.trip_table import SHOWN, TripTable

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
    InputError
        If the file does not have this form, a number is invalid or negative, or the sum differs from the declared one.
    """
    lines = lines_of(file)
    metadata = read_metadata(lines, file=str(file))
    zones = metadata.whole(_ZONES, at_least=1) if metadata.has(_ZONES) else None
    declared = metadata.number(_TOTAL) if metadata.has(_TOTAL) else None
    half_digit = 0.0 if declared is None else _digit(metadata.values[_TOTAL].text) / 2.0
    broken: dict[str, tuple[list[int], str]] = {}
    pairs: list[tuple[int, int, float, float, int]] = []
    blocks, origin, end = 0, 0, ""
    for line in lines:
        end = f"{file}: line {line.number}"
        if opening := _ORIGIN.fullmatch(line.text):
            blocks += 1
            origin, wrong = _zone(opening[1], zones)
        elif blocks == 0:
            wrong = [("must be the Origin of a block", shown(line.text))]
        else:
            found, wrong = _pairs(line.text, zones)
            pairs += [(origin, *pair, line.number) for pair in found]
        for rule, got in wrong:
            numbers, _ = broken.setdefault(rule, ([], got))
            numbers.extend([] if numbers[-1:] == [line.number] else [line.number])
        if len(broken) >= SHOWN:
            break
    if broken:
        raise InputError(f"{file}: {row_fault(numbers, rule)}, got {got}" for rule, (numbers, got) in broken.items())
    if not blocks:
        raise InputError([f"{file}: it holds no trips: no line begins with Origin"])
    rest = line.text.rpartition(";")[2].strip()
    if declared is None and ":" in rest:
        rule = "the last pair of the file must be ended by a semicolon, or it may be cut off"
        raise InputError([f"{end}: {rule}; got {shown(rest)}"])
    frame = pd.DataFrame(pairs, columns=["origin", "destination", "trips", "variance", "line"])
    total = math.fsum(frame["trips"])
    if declared is not None:
        error = _SIGMAS * math.sqrt(frame["variance"].sum()) + half_digit + 1e-9 * max(total, declared)
        if abs(total - declared) > error:
            rule = f"<{_TOTAL}> must be the sum of the trips, {total:,.10g}, within rounding"
            raise InputError([f"{file}: {rule}; got {declared:,.10g}"])
    frame = frame[frame["trips"] > 0]
    places, codes = np.unique(frame[["origin", "destination"]].to_numpy(dtype=np.int64).T, return_inverse=True)
    from_zone, to_zone = codes.reshape(2, -1).astype(np.int32)
    trips, rows = frame["trips"].to_numpy(dtype=np.float64), frame["line"].to_numpy(dtype=np.int64)
    return TripTable(str(file), list(map(str, places.tolist())), from_zone, to_zone, trips, rows, unit="line").summed()


_Broken = list[tuple[str, str]]
"""Rules that a line breaks, and what it has instead."""


def _zone(text: str, zones: int | None) -> tuple[int, _Broken]:
    """Read the number of a zone; return also the rules that the text breaks."""
    if not _ZONE.fullmatch(text.strip()):
        return 0, [("a zone must be a whole number", shown(text.strip()))]
    zone = int(text)
    if zones is not None and not 1 <= zone <= zones:
        rule = f"a zone must be from 1 to <{_ZONES}> = {zones} (renumber them as the network's nodes are)"
        return zone, [(rule, str(zone))]
    return zone, []


def _pairs(text: str, zones: int | None) -> tuple[list[tuple[int, float, float]], _Broken]:
    """Read a line's destinations and trips, with the variance of each number's rounding error, and the rules broken."""
    pairs: list[tuple[int, float, float]] = []
    broken: _Broken = []
    for pair in filter(str.strip, text.split(";")):
        name, colon, amount = (part.strip() for part in pair.partition(":"))
        if not colon:
            broken.append(("must be pairs of destination : trips, each ended by a semicolon", shown(name)))
            break
        destination, wrong = _zone(name, zones)
        trips = finite_number(amount)
        if trips is None or trips < 0:
            wrong.append(("trips to a zone must be a finite number, 0 or more", f"{shown(amount)} to zone {name}"))
        else:
            pairs.append((destination, trips, _digit(amount) ** 2 / 12.0))
        broken += wrong
    return pairs, broken


def _digit(written: str) -> float:
    """Return the value of 1 in the last digit of a number: 0.01 for 2.16, 100 for 2.52257e+007.

    A number with an exponent has at least six digits, as C's ``%g`` writes it, which leaves out zeros at the end.
    """
    number = Decimal(written)
    exponent = int(number.as_tuple().exponent)
    if "e" in written.lower():
        exponent = min(exponent, number.adjusted() - 5)
    return 10.0 ** min(max(exponent, -18), 150)

"""Loader of vehicles and trips from SUMO's route files."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of

_DEPARTING = ("vehicle", "trip")


def read_sumo_vehicles(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the departure time, first edge and last edge of each vehicle or trip.

    Parameters
    ----------
    file
        Route file with vehicles that contain their route, or trips between edges; plain or gzipped.

    Returns
    -------
    frame : DataFrame
        ``vehicle`` (text), ``depart_s``, ``type`` (None where not given), ``from_edge``, ``to_edge``, ``edges`` (number
        of edges of the route; NaN for a trip, whose route SUMO finds). In the order of the file.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If the file is not a route file, a departure is not a number of seconds, or a vehicle has no route; the message
        names the line.
    """
    return _frame(file), []


def _frame(file: Path) -> pd.DataFrame:
    held: list[tuple[str, float, str | None, str, str, float]] = []
    open_at: tuple[str, float, str | None, int] | None = None
    for element in elements_of(file):
        attributes = element.attributes
        if element.name in _DEPARTING and attributes is not None:
            depart = _seconds(attributes.get("depart"), file, element.line)
            vehicle, kind = attributes.get("id"), attributes.get("type")
            if vehicle is None:
                raise InputError([f"{file}: line {element.line}: a {element.name} must have an id"])
            if element.name == "trip":
                ends = attributes.get("from"), attributes.get("to")
                if ends[0] is None or ends[1] is None:
                    raise InputError([f"{file}: line {element.line}: a trip must have a from and a to"])
                held.append((vehicle, depart, kind, ends[0], ends[1], np.nan))
            else:
                open_at = vehicle, depart, kind, element.line
        elif element.name == "route" and attributes is not None and open_at is not None:
            edges = attributes.get("edges", "").split()
            if edges:
                held.append((*open_at[:3], edges[0], edges[-1], float(len(edges))))
                open_at = None
        elif element.name == "vehicle" and open_at is not None:
            raise InputError([f"{file}: line {open_at[3]}: a vehicle must carry a route with edges"])
    if not held:
        raise InputError([f"{file}: it holds no vehicle and no trip"])
    frame = pd.DataFrame(held, columns=["vehicle", "depart_s", "type", "from_edge", "to_edge", "edges"])
    again = frame["vehicle"].duplicated()
    if again.any():
        raise InputError([f"{file}: a vehicle must be there once, got {frame['vehicle'][again].iloc[0]!r} twice"])
    return frame


def _seconds(text: str | None, file: Path, line: int) -> float:
    try:
        seconds = float(text or "")
    except ValueError:
        seconds = np.nan
    if not np.isfinite(seconds):
        raise InputError([f"{file}: line {line}: depart must be a number of seconds, got {text!r}"])
    return seconds

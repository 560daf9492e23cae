"""Attributes in SUMO's files: numbers and times, and types of vehicles with their class, size and highest speed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from simulator.files.errors import InputError
from simulator.files.times import seconds
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import elements_of


def read_number(attributes: Mapping[str, str], key: str, default: float, where: str, *, whole: bool = False) -> float:
    """Read a number, 0 or more, of an element's attributes; "begin" and "end" may be clock times.

    Raises
    ------
    InputError
        If the attribute is anything else.
    """
    if key not in attributes:
        return default
    value = seconds(attributes[key]) if key in {"begin", "end"} else finite_number(attributes[key])
    if value is None or value < 0:
        raise InputError([f"{where}: {key} must be a number, 0 or more, got {attributes[key]!r}"])
    if whole and not value.is_integer():
        raise InputError([f"{where}: {key} must be whole, got {attributes[key]!r}"])
    return value


_CAR = "passenger"
_DEFAULTS = {
    "bicycle": (1.6, 0.5, 20.0),
    "moped": (2.1, 2.5, 60.0),
    "motorcycle": (2.2, 2.5, 200.0),
    "emergency": (6.5, 2.5, 200.0),
    "delivery": (6.5, 2.5, 200.0),
    "truck": (7.1, 2.5, 130.0),
    "trailer": (16.5, 2.5, 130.0),
    "bus": (12.0, 2.5, 85.0),
    "coach": (14.0, 2.5, 100.0),
    "tram": (22.0, 2.5, 80.0),
    _CAR: (5.0, 2.5, 200.0),
}
"""Length of a vehicle and the gap before it in a queue, metres, and its highest speed, km/h, by SUMO's vehicle class.

They are SUMO 1.28's values, where a type does not state them; a class that is not listed has the values of cars.
"""
_SUMOS_TYPES = {"DEFAULT_VEHTYPE": _CAR, "DEFAULT_BIKETYPE": "bicycle", "DEFAULT_TAXITYPE": "taxi"}
"""Types that SUMO defines itself, and their classes; a vehicle without a type has the first."""
_LEAST_SPACE_M = 0.5
_DRIVEN = ("vehicle", "trip", "flow")


class VehicleType(NamedTuple):
    """A type of vehicles: SUMO's vehicle class, the length and the gap before it together, and its highest speed."""

    vehicle_class: str
    space_m: float
    speed_mps: float

    @classmethod
    def read(cls, attributes: Mapping[str, str], where: str) -> "VehicleType":
        """Read the attributes of a <vType>; what it does not state is as by its class.

        Raises
        ------
        InputError
            If a number cannot be used, or a vehicle takes less than half a metre.
        """
        vehicle_class = attributes.get("vClass", _CAR)
        length_m, gap_m, speed_kmh = _DEFAULTS.get(vehicle_class, _DEFAULTS[_CAR])
        space_m = read_number(attributes, "length", length_m, where) + read_number(attributes, "minGap", gap_m, where)
        if space_m < _LEAST_SPACE_M:
            rule = f"length and minGap must be {_LEAST_SPACE_M} m or more together"
            raise InputError([f"{where}: {rule}, got {space_m:g} m"])
        stated = [key for key in ("maxSpeed", "desiredMaxSpeed") if key in attributes]
        speed_mps = min((read_number(attributes, key, 0.0, where) for key in stated), default=speed_kmh / 3.6)
        if speed_mps <= 0:
            raise InputError([f"{where}: maxSpeed must be above 0, got {speed_mps:g}"])
        return cls(vehicle_class, space_m, speed_mps)


class VehicleTypes:
    """The types and distributions of types that SUMO's files define. Undefined types count as SUMO's default car."""

    def __init__(self) -> None:
        self._types = {name: VehicleType.read({"vClass": kind}, name) for name, kind in _SUMOS_TYPES.items()}
        self._mixed: dict[str, list[tuple[str, float]]] = {}
        self._open = ""

    def add(self, name: str, attributes: Mapping[str, str], where: str) -> None:
        """Store an element of a file if it is a type or a distribution; one that follows within it is its part.

        Raises
        ------
        InputError
            If a number of a type cannot be used.
        """
        key = attributes.get("id", "")
        if name == "vTypeDistribution":
            self._open = key
            weights = [max(finite_number(text) or 0.0, 0.0) for text in attributes.get("probabilities", "").split()]
            self._mixed[key] = [
                (part, weights[place] if place < len(weights) else 1.0)
                for place, part in enumerate(attributes.get("vTypes", "").split())
            ]
        elif name == "vType":
            self._types[key] = VehicleType.read(attributes, where)
            if self._open:
                self._mixed[self._open].append((key, read_number(attributes, "probability", 1.0, where)))

    def end(self, name: str) -> None:
        """Note that an element has ended."""
        if name == "vTypeDistribution":
            self._open = ""

    def of(self, kind: str) -> tuple[tuple[VehicleType, ...], tuple[float, ...]]:
        """Return the types of a type or distribution, by its id, and their weights; "" for a vehicle without a type."""
        car = next(iter(_SUMOS_TYPES))
        parts, weights = zip(*(self._mixed.get(kind) or [(kind or car, 1.0)]), strict=True)
        return tuple(self._types.get(part, self._types[car]) for part in parts), weights


def classes_in(files: Iterable[str | Path]) -> list[str]:
    """Return SUMO's vehicle classes of the vehicles, trips and flows of its files, sorted.

    Raises
    ------
    InputError
        If a file cannot be read, or a number of a type cannot be used.
    """
    types, used = VehicleTypes(), set[str]()
    for file in files:
        for name, attributes, line in elements_of(file):
            if attributes is None:
                types.end(name)
                continue
            types.add(name, attributes, f"{file}: line {line}")
            if name in _DRIVEN:
                used.add(attributes.get("type", ""))
    return sorted({kind.vehicle_class for name in used for kind in types.of(name)[0]})

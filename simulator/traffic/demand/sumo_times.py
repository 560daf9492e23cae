"""Times as SUMO's route files write them, and the departures of a flow."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.traffic.errors import TrafficError
from simulator.traffic.trips import too_many

FloatArray = npt.NDArray[np.float64]

_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_SUMOS_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+):(\d+(?:\.\d+)?)")
"""SUMO itself takes 7:0:0, and ninety minutes."""
_POISSON = re.compile(r"exp\((.+)\)")
_RATES = ("period", "vehsPerHour", "perHour", "probability")
_HOUR_S = 3600.0


def seconds(text: str, *, as_sumo: bool = True) -> float | None:
    """Read seconds, "HH:MM:SS" or "D:HH:MM:SS"; None where it is none of them.

    Digits may be fewer and numbers larger than a clock shows, as SUMO has it, unless `as_sumo` is false.
    """
    clock = (_SUMOS_CLOCK if as_sumo else _CLOCK).fullmatch(text.strip())
    if clock:
        days, hours, minutes, rest = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + rest
    return number(text)


def number(text: str) -> float | None:
    """Read a finite number; None where it is none."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Flow:
    """Vehicles that leave one after the other on one course.

    Attributes
    ----------
    name
        Its id; its vehicles are called name.0, name.1, …
    course
        Number of the course.
    begin_s, end_s
        From when to when, `end_s` infinite where the file has none.
    count
        How many vehicles; infinite where the file has none.
    kind
        "even": `count` over the whole stretch; "period": every `rate` seconds; "poisson": `rate` a second on average,
        exponential gaps; "probability": in each second with probability `rate`.
    rate
        See `kind`.
    where
        File and line, for messages.
    """

    name: str
    course: int
    begin_s: float
    end_s: float
    count: float
    kind: str
    rate: float
    where: str

    @classmethod
    def from_attributes(cls, name: str, course: int, attributes: Mapping[str, str], *, where: str) -> "Flow":
        """Read a <flow>.

        Raises
        ------
        TrafficError
            If a time or rate is no number or out of range, there is not exactly one rate, or a flow by number alone
            has no end.
        """
        begin = _read(attributes, "begin", 0.0, where, at_least=0.0)
        end = _read(attributes, "end", math.inf, where, at_least=0.0)
        count = _read(attributes, "number", math.inf, where, at_least=0.0)
        if math.isfinite(count) and not count.is_integer():
            raise TrafficError([f"{where}: number must be whole, got {attributes['number']!r}"])
        if end < begin:
            raise TrafficError([f"{where}: end must not be before begin = {begin:g}, got {attributes['end']!r}"])
        rates = [key for key in _RATES if key in attributes]
        if len(rates) > 1:
            raise TrafficError([f"{where}: a flow must have one of {', '.join(_RATES)}, got {' and '.join(rates)}"])
        if not rates:
            if not (math.isfinite(count) and math.isfinite(end)):
                rule = f"a flow must have one of {', '.join(_RATES)}, or number and end"
                raise TrafficError([f"{where}: {rule}, got {', '.join(attributes) or 'nothing'}"])
            return cls(name, course, begin, end, count, "even", 0.0, where)
        kind, rate = _rate(rates[0], attributes[rates[0]].strip(), where)
        return cls(name, course, begin, end, count, kind, rate, where)

    def departures(self, *, end_s: float, rng: np.random.Generator) -> FloatArray:
        """Return when its vehicles leave, seconds of the file, float64, ascending.

        Parameters
        ----------
        end_s
            End of the run in the file's time: the end of a flow that has none, and nothing leaves after it.
        rng
            Decides of flows by chance.

        Raises
        ------
        TrafficError
            If neither flow nor run ends, or it has more vehicles than can be meant.
        """
        end = min(self.end_s, end_s)
        if not math.isfinite(end) and not (self.kind == "period" and math.isfinite(self.count)):
            raise TrafficError([f"{self.where}: a flow without an end needs a run that ends"])
        stretch = max(0.0, end - self.begin_s)
        expected = {
            "even": self.count,
            "period": min(
                self.count, math.ceil(stretch / self.rate) if self.rate and math.isfinite(stretch) else math.inf
            ),
            "poisson": min(self.count, stretch * self.rate),
            "probability": min(self.count, stretch),
        }[self.kind]
        if fault := too_many(expected):
            raise TrafficError([f"{self.where}: {fault}"])
        if self.kind == "even":
            whole = np.arange(int(self.count), dtype=np.float64)
            leave = self.begin_s + whole * ((self.end_s - self.begin_s) / max(self.count, 1.0))
            return leave[leave < end_s]
        if self.kind == "period":
            return self.begin_s + self.rate * np.arange(int(expected), dtype=np.float64)
        if self.kind == "poisson":
            # A Poisson number of places, evenly strewn: what exponential gaps come to.
            leave = np.sort(self.begin_s + stretch * rng.random(rng.poisson(stretch * self.rate)))
        else:
            moments = np.arange(math.ceil(stretch), dtype=np.float64)
            leave = self.begin_s + moments[rng.random(len(moments)) < self.rate]
        return leave[: int(self.count)] if math.isfinite(self.count) else leave


def _read(attributes: Mapping[str, str], key: str, default: float, where: str, *, at_least: float) -> float:
    if key not in attributes:
        return default
    value = seconds(attributes[key]) if key in {"begin", "end"} else number(attributes[key])
    if value is None or value < at_least:
        raise TrafficError([f"{where}: {key} must be a number, {at_least:g} or more, got {attributes[key]!r}"])
    return value


def _rate(key: str, text: str, where: str) -> tuple[str, float]:
    """Return the kind and rate of a flow."""
    poisson = _POISSON.fullmatch(text) if key == "period" else None
    value = number(poisson[1] if poisson else text)
    most = 1.0 if key == "probability" else math.inf
    if value is None or not 0 < value <= most:
        within = "from above 0 to 1" if key == "probability" else "above 0"
        raise TrafficError([f"{where}: {key} must be a number {within}, got {text!r}"])
    if poisson:
        return "poisson", value
    if key in {"vehsPerHour", "perHour"}:
        return "period", _HOUR_S / value
    return key, value

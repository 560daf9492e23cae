"""Units that files name, by words or by names of columns: metres, and metres per second, of each."""

from collections.abc import Mapping

from scenarios.field_types import METRES, METRES_PER_SECOND

LENGTH_UNITS = {unit: METRES[unit] for unit in ("m", "km", "ft", "mi")}
SPEED_UNITS = {unit: METRES_PER_SECOND[unit] for unit in ("kph", "mph", "mps")}
"""Metres, and metres per second, of the units that are tried where nothing states one; the most likely first."""
METRES_PER_UNIT: Mapping[str, float] = {f"length_{unit}": metres for unit, metres in LENGTH_UNITS.items()}
MPS_PER_UNIT: Mapping[str, float] = {f"speed_{unit}": SPEED_UNITS[unit] for unit in ("mps", "mph", "kph")}
"""Metres, and metres per second, of one unit of a column, by our name of the column."""
WORDS_OF_LENGTHS = METRES
WORDS_OF_SPEEDS: Mapping[str, float] = {
    word: METRES_PER_SECOND[unit]
    for unit, words in {
        "mps": ("mps", "m/s"),
        "kph": ("kph", "kmh", "kmph", "km/h", "km/hr"),
        "mph": ("mph", "mi/h", "mi/hr"),
    }.items()
    for word in words
}
"""Metres, and metres per second, of the words by which files name a unit."""

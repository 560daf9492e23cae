"""Columns of origin-destination tables: what each is called in the wild."""

from collections.abc import Mapping
from pathlib import Path

from simulator.roads.table import column_names

NAMES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        "origin", "o_zone_id", "origin_zone", "origin_id", "orig_taz", "orig_zone", "from_zone", "from_zone_id",
        "from_node", "from", "orig", "o",
    ),
    "destination": (
        "destination", "d_zone_id", "destination_zone", "destination_id", "dest_taz", "dest_zone", "to_zone",
        "to_zone_id", "to_node", "to", "dest", "d",
    ),
    "trips": ("trips", "volume", "flow", "demand", "total", "vehicles", "count"),
    "departure_s": ("departure_s", "depart_s", "departure_time", "depart_time", "departure", "depart"),
    "from_s": ("from_s", "begin_s", "start_s"),
    "to_s": ("to_s", "end_s"),
}  # fmt: skip
"""Our name of a column to the names it is known by, the likeliest first; capitals do not matter."""


def columns_of(file: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Say which column is which.

    Parameters
    ----------
    file
        A CSV file, plain or gzipped, or a Parquet file.
    given
        Our name of a column to the file's, where the user said so.

    Returns
    -------
    dict
        Our name to the file's, for the given ones and those that are known by name. Of ``from_s`` and ``to_s`` both
        or none, and none beside a ``departure_s``, unless they were given.
    """
    header = {name.strip().lower(): name for name in reversed(column_names(file))}
    found = dict(given)
    for name, known in NAMES.items():
        if name not in found:
            match = next((header[other] for other in known if other in header), None)
            if match is not None and match not in found.values():
                found[name] = match
    windows = {"from_s", "to_s"}
    if ("departure_s" in found and not windows & given.keys()) or not windows <= found.keys() | given.keys():
        for name in windows - given.keys():
            found.pop(name, None)
    if windows & given.keys() and "departure_s" not in given:
        found.pop("departure_s", None)
    for name in ("origin", "destination"):
        found.setdefault(name, name)
    return found

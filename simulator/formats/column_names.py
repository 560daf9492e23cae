"""Usual names of the columns of files, and units.

The columns describe nodes and links, trips, recorded positions, data owners at places, and measured counts.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

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

_ROADS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NODE_NAMES: Mapping[str, Sequence[str]] = _ROADS["nodes"]
LINK_NAMES: Mapping[str, Sequence[str]] = _ROADS["links"]
NAMES_WITH_UNITS: Mapping[str, Sequence[str]] = {
    name: [one for one in LINK_NAMES[name] if one not in _ROADS["no_unit"]["names"]]
    for name in (*METRES_PER_UNIT, *MPS_PER_UNIT)
}
"""Names of lengths and speeds, without those that state no unit."""
FREE_FLOW_TIMES: Sequence[str] = _ROADS["free_flow"]["time"]
"""Names of times without traffic."""
TRIP_NAMES: Mapping[str, tuple[str, ...]] = {
    "origin": (
        "origin", "o_zone_id", "origin_zone", "origin_id", "orig_taz", "orig_zone", "from_zone", "from_zone_id",
        "from_node", "from", "orig", "o", "o_zone", "o_id", "o_node", "origin_node", "orig_id", "orig_node", "from_id",
        "pulocationid",
    ),
    "destination": (
        "destination", "d_zone_id", "destination_zone", "destination_id", "dest_taz", "dest_zone", "to_zone",
        "to_zone_id", "to_node", "to", "dest", "d", "d_zone", "d_id", "d_node", "destination_node", "dest_id",
        "dest_node", "to_id", "dolocationid",
    ),
    "trips": (
        "trips", "volume", "flow", "demand", "total", "vehicles", "count", "ton", "num_trips", "total_trips",
        "n_trips", "number_of_trips", "number", "volumes", "flows", "trip_count", "vehicle_count", "veh",
    ),
    "rate_vph": (
        "rate_vph", "vph", "flow_vph", "q_vph", "demand_vph", "volume_vph", "trips_vph", "veh_h", "flow_veh_h",
        "q_veh_h", "demand_veh_h", "volume_veh_h", "veh_hr", "veh_per_hour", "vehs_per_hour", "vehicles_per_hour",
        "vehsperhour", "trips_per_hour", "flow_per_hour",
    ),
    "rate_vps": (
        "rate_vps", "q", "vps", "flow_vps", "q_vps", "demand_vps", "veh_s", "flow_veh_s", "q_veh_s", "veh_per_second",
        "vehicles_per_second",
    ),
    "departure_s": (
        "departure_s", "depart_s", "departure_time", "depart_time", "departure", "depart", "pickup_datetime",
        "tpep_pickup_datetime", "lpep_pickup_datetime", "trip_pickup_datetime", "started_at", "trip_start_timestamp",
        "departure_datetime", "pickup_time", "starttime", "timestamp",
    ),
    "from_s": ("from_s", "begin_s", "start_s", "start_t", "t_start", "start_time", "begin_time", "from_time", "begin"),
    "to_s": ("to_s", "end_s", "end_t", "t_end", "end_time", "to_time", "end"),
    "vehicle": (
        "vehicle", "vehicle_id", "person_id", "person", "veh_id", "agent_id", "agent", "traveler_id", "traveller_id",
        "driver_id", "per_id",
    ),
    "household": ("household", "household_id", "hh_id", "house_id", "hh"),
}  # fmt: skip
TRIP_ENDS = {
    "origin": ("origin", "pickup", "start", "from", "o", "orig", "source", "pickup_centroid", "start_station"),
    "destination": ("destination", "dropoff", "end", "to", "d", "dest", "target", "dropoff_centroid", "end_station"),
}
"""Words that begin or end the names of both places of a trip."""
_AXES = {"lon": ("lon", "longitude", "lng", "long"), "lat": ("lat", "latitude"), "x": ("x",), "y": ("y",)}
POINT_NAMES = {
    f"{end}_{axis}": [
        name for word in words for axis_name in names for name in (f"{word}_{axis_name}", f"{axis_name}_{word}")
    ]
    for end, words in TRIP_ENDS.items()
    for axis, names in _AXES.items()
}
"""Names of the places of trips: pickup_longitude, start_lng, from_lon and so on."""
FIX_NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "vehicle": (
        (
            "vehicle", "vehicleid", "vehid", "veh", "taxi", "taxiid", "cab", "cabid", "car", "carid", "bus", "busid",
            "medallion", "device", "deviceid", "driver", "driverid", "trajectory", "trajectoryid", "trajid",
        ),
        ("trip", "tripid", "object", "objectid", "user", "userid", "uid", "oid"),
        ("id", "name"),
    ),
    "time": (
        (
            "time", "timestamp", "datetime", "dateandtime", "gpstime", "unixtime", "unixtimestamp", "utc",
            "timesteptime", "times", "timesec", "seconds",
        ),
        ("t", "ts", "epoch", "date"),
    ),
    "lon": (("lon", "lng", "long", "longitude"), ("x", "vehiclex")),
    "lat": (("lat", "latitude"), ("y", "vehicley")),
    "x": (("x", "vehiclex", "easting"),),
    "y": (("y", "vehicley", "northing"),),
    "speed_mps": (("speedmps", "speedms", "vehiclespeed"),),
    "speed_kph": (("speedkph", "speedkmh"),),
    "speed_mph": (("speedmph",),),
}  # fmt: skip
"""Names of recorded positions, as `comparable_name` writes them: groups of equally reliable ones."""
COUNT_NAMES: Mapping[str, tuple[str, ...]] = {
    "name": (
        "detector", "detector_id", "det_id", "station", "station_id", "sensor", "sensor_id", "site", "place", "name",
        "id",
    ),
    "link": ("link", "link_id", "edge", "edge_id"),
    "position_m": ("position_m", "position", "pos"),
    "fraction": ("fraction",),
    "lon": ("lon", "lng", "long", "longitude"),
    "lat": ("lat", "latitude"),
    "x": ("x",),
    "y": ("y",),
    "heading_deg": ("heading_deg", "heading", "bearing", "direction", "dir"),
    "from_s": ("from_s", "from", "begin", "start", "time", "timestamp", "datetime", "date"),
    "to_s": ("to_s", "to", "end"),
    "hour": ("hour",),
    "count": ("count", "volume", "vehicles"),
    "flow_vph": ("flow_vph", "vph"),
    "speed_mps": ("speed_mps",),
    "speed_kph": ("speed_kph", "speed_kmh"),
    "speed_mph": ("speed_mph",),
}  # fmt: skip
"""Names of detectors and counts. A flow or a speed without its unit is none of them."""
OWNER_NAMES: Mapping[str, Sequence[str]] = {
    "owner": ("user", "user_id", "owner", "device", "person"),
    "time": ("time", "timestamp", "datetime", "date_time", "utc_time"),
    "place": ("place", "station", "venue", "venue_id", "location", "detector", "sensor", "site", "name", "id"),
    "count": ("count", "vehicles", "volume", "flow", "number", "n"),
    "lon": NODE_NAMES["lon"],
    "lat": NODE_NAMES["lat"],
}
"""Names of data owners at places."""

"""One small recording in every supported format."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EPOCH_S = 1_211_018_400.0
"""17 May 2008, 10:00:00 UTC."""

TIDY = pd.DataFrame(
    {
        "vehicle": ["a", "a", "a", "b", "b"],
        "time_s": EPOCH_S + np.array([0.0, 60.0, 120.0, 30.0, 90.0]),
        "lon": [11.30, 11.31, 11.32, 11.40, 11.41],
        "lat": [44.50, 44.51, 44.52, 44.60, 44.61],
        "speed_mps": [np.nan] * 5,
    }
)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def text(header: str | None, row: Callable[[pd.Series[object]], str], frame: pd.DataFrame = TIDY) -> str:
    lines = [row(fix) for _, fix in frame.iterrows()]
    return "\n".join([*([header] if header else []), *lines]) + "\n"


def taxi_csv() -> str:
    return text("TaxiID,TimeStamp,Longitude,Latitude", lambda f: f"{f.vehicle},{stamp(f.time_s)},{f.lon},{f.lat}")


def tdrive() -> str:
    return text(None, lambda f: f"{f.vehicle},{stamp(f.time_s)},{f.lon},{f.lat}")


def cabspotting(vehicle: str, *, newest_first: bool = False) -> str:
    frame = TIDY[TIDY["vehicle"] == vehicle]
    return text(None, lambda f: f"{f.lat} {f.lon} 0 {int(f.time_s)}", frame[::-1] if newest_first else frame)


def geolife(vehicle: str = "a") -> str:
    head = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
    days = f"{{}},{{}},0,492,{39_744.1201},{{}}\n".format
    frame = TIDY[TIDY["vehicle"] == vehicle]
    return head + "".join(days(f.lat, f.lon, stamp(f.time_s).replace(" ", ",")) for f in frame.itertuples())


def porto() -> str:
    """Trips of two taxis, out of order; their places are 15 s apart. The trip in between has no place."""
    header = '"TRIP_ID","CALL_TYPE","TAXI_ID","TIMESTAMP","MISSING_DATA","POLYLINE"\n'
    rows = (("T3", 7, 600, [[-8.61, 41.14]]), ("T2", 8, 90, []), ("T1", 7, 0, [[-8.62, 41.15], [-8.63, 41.16]]))
    return header + "".join(
        f'"{trip}","C","{taxi}","{int(EPOCH_S) + start_s}","False","{places}"\n' for trip, taxi, start_s, places in rows
    )


def gpx(vehicle: str = "a") -> str:
    frame = TIDY[TIDY["vehicle"] == vehicle]
    points = "\n".join(
        f'<trkpt lat="{f.lat}" lon="{f.lon}"><time>{stamp(f.time_s).replace(" ", "T")}Z</time></trkpt>'
        for f in frame.itertuples()
    )
    return (
        '<?xml version="1.0"?>\n<gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1">\n'
        f"<trk><name>{vehicle}</name><trkseg>\n{points}\n</trkseg></trk></gpx>\n"
    )


def sumo_xml() -> str:
    """Relative times, as in SUMO's files; the timestep at 45 s is empty."""
    steps = []
    for time_s in (0.0, 30.0, 45.0, 60.0, 90.0, 120.0):
        there = TIDY[TIDY["time_s"] == EPOCH_S + time_s]
        inside = "".join(
            f'\n        <vehicle id="{f.vehicle}" x="{f.lon}" y="{f.lat}" angle="0.00" type="car" speed="5.00" '
            'pos="0.00" lane="e_0" slope="0.00"/>'
            for f in there.itertuples()
        )
        steps.append(f'    <timestep time="{time_s:.2f}">{inside}\n    </timestep>')
    body = "\n".join(steps)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export>\n{body}\n</fcd-export>\n'


def sumo_frame() -> pd.DataFrame:
    """The same as a SUMO table: a row without a vehicle for the empty timestep."""
    rows = TIDY.sort_values("time_s")
    frame = pd.DataFrame(
        {
            "timestep_time": rows["time_s"] - EPOCH_S,
            "vehicle_id": rows["vehicle"],
            "vehicle_x": rows["lon"],
            "vehicle_y": rows["lat"],
            "vehicle_speed": 5.0,
            "vehicle_lane": "e_0",
        }
    )
    empty = pd.DataFrame({"timestep_time": [45.0]})
    return pd.concat([frame, empty]).sort_values("timestep_time").reset_index(drop=True)


def sumo_csv() -> str:
    return sumo_frame().to_csv(sep=";", index=False)


def deck_json() -> str:
    trips = [
        {"vendor": 0, "path": g[["lon", "lat"]].to_numpy().tolist(), "timestamps": (g["time_s"] - EPOCH_S).tolist()}
        for _, g in TIDY.groupby("vehicle")
    ]
    return json.dumps(trips, indent=1)


def kepler_json() -> str:
    features = [
        {
            "type": "Feature",
            "properties": {"vehicle": vehicle},
            "geometry": {
                "type": "LineString",
                "coordinates": [[f.lon, f.lat, 0, int(f.time_s)] for f in g.itertuples()],
            },
        }
        for vehicle, g in TIDY.groupby("vehicle")
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file, compressed as its name says."""
    data = content.encode() if isinstance(content, str) else content
    file = folder / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return file

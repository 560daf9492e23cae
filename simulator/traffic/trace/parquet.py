"""Logs in Parquet and GeoParquet."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files.text_table import check_parquet
from simulator.traffic.errors import TrafficError
from simulator.traffic.trace.fixes import Fixes
from simulator.traffic.trace.source import stem
from simulator.traffic.trace.sumo_tables import fixes_of_sumo, is_sumo
from simulator.traffic.trace.tables import Reading, fixes_of


def read_parquet(file: Path, reading: Reading) -> list[Fixes]:
    """Read a table, SUMO's floating-car data, or points (GeoParquet), whose longitudes and latitudes are taken.

    Raises
    ------
    TrafficError
        If the file is no Parquet, or its columns are not what they should be.
    """
    try:
        stored = pq.ParquetFile(file)
        check_parquet(stored, file, error=TrafficError)
        frame = _points(file) if b"geo" in (stored.schema_arrow.metadata or {}) else pd.read_parquet(file)
    except FileNotFoundError:
        raise TrafficError([f"{file}: no such file"]) from None
    except TrafficError:
        raise
    except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise TrafficError([f"{file}: cannot be read as Parquet: {why}"]) from None
    if frame.index.names != [None]:
        frame = frame.reset_index()
    place = np.arange(1, len(frame) + 1, dtype=np.int64)
    if is_sumo(list(frame.columns)) and not reading.columns:
        return [fixes_of_sumo(frame, reading, source=str(file), place=place, place_word="row")]
    return [fixes_of(frame, reading, source=str(file), vehicle=stem(file), place=place, place_word="row")]


def _points(file: Path) -> pd.DataFrame:
    import geopandas as gpd  # noqa: PLC0415 - heavy, and most Parquet has no geometry

    frame = gpd.read_parquet(file)
    points = frame.geometry
    if frame.crs is None or not (points.geom_type == "Point").all():
        raise ValueError("its geometry must be points in a known coordinate system")
    degrees = points.to_crs("EPSG:4326")
    plain = pd.DataFrame(frame.drop(columns=points.name))
    return plain.drop(columns=["lon", "lat"], errors="ignore").assign(
        lon=degrees.x.to_numpy(), lat=degrees.y.to_numpy()
    )

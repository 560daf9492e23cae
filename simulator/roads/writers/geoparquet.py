"""Road networks as GeoParquet: a folder with one file of nodes and one of links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from simulator.files.text_table import check_parquet
from simulator.roads.errors import RoadsError
from simulator.roads.writers.layers import LINKS, NODES, Layers, crs_of_both, network_of
from simulator.roads.writers.staging import write_folder

if TYPE_CHECKING:
    from simulator.roads.network import RoadNetwork

_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, shapely.errors.ShapelyError)


def write_geoparquet(network: RoadNetwork, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write ``nodes.parquet`` and ``links.parquet``, both or neither.

    Parameters
    ----------
    network
        Any network; see :class:`~simulator.roads.writers.layers.Layers` for the columns.
    folder
        Where the files go; made if need be.
    overwrite
        Whether files there of these names are replaced.

    Raises
    ------
    RoadsError
        If the folder holds files already, the place cannot be written to, or an attribute cannot be a column.
    """
    layers = Layers.from_network(network)

    def fill(staging: Path) -> None:
        for name, table, shapes in ((NODES, layers.nodes, layers.points), (LINKS, layers.links, layers.lines)):
            frame = gpd.GeoDataFrame(table, geometry=shapes, crs=layers.crs)
            frame.to_parquet(staging / f"{name}.parquet")

    write_folder(Path(folder), fill, overwrite=overwrite)


def read_geoparquet(folder: str | Path) -> RoadNetwork:
    """Read a road network that :func:`write_geoparquet` wrote, or one like it.

    Parameters
    ----------
    folder
        With ``nodes.parquet`` (``node``, ``x``, ``y``) and ``links.parquet`` (``from``, ``to``, the numbers of
        :mod:`simulator.roads.schema`).

    Returns
    -------
    RoadNetwork
        All of it: nothing is left out or filled in.

    Raises
    ------
    RoadsError
        If a file cannot be read, or they hold no road network; naming file, row and rule.
    """
    folder = Path(folder)
    tables: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {}
    systems = []
    for name in (NODES, LINKS):
        file = folder / f"{name}.parquet"
        if not file.is_file():
            raise RoadsError([f"{file}: no such file"])
        if file.stat().st_size == 0:
            raise RoadsError([f"{file}: it is empty"])
        try:
            tables[name], known = _read(file)
        except RoadsError:
            raise
        except _UNREADABLE as error:
            said = f"{type(error).__name__}: {error}"
            raise RoadsError([f"{file}: cannot be read as GeoParquet ({said})"]) from error
        systems.append(known)
    files = (str(folder / f"{NODES}.parquet"), str(folder / f"{LINKS}.parquet"))
    crs = crs_of_both(systems[0], systems[1], files=files)
    return network_of(tables[NODES][0], tables[LINKS][0], tables[LINKS][1], crs=crs, files=files)


def _read(file: Path) -> tuple[tuple[list[dict[str, Any]], list[Any]], object]:
    """Read rows, geometries and the coordinate system; what is not as GeoParquet has it raises one of many errors."""
    check_parquet(pq.ParquetFile(file), file, error=RoadsError)
    table = pq.read_table(file)
    told = (table.schema.metadata or {}).get(b"geo")
    if told is None:
        raise ValueError("its metadata say nothing of geometries: is it a plain Parquet file?")
    about = json.loads(told)
    column = about["primary_column"]
    kept = about["columns"][column]
    if kept["encoding"] != "WKB":
        raise ValueError(f"geometries must be in WKB, got {kept['encoding']!r}")
    rows = table.to_pylist()
    return (rows, list(shapely.from_wkb([row.pop(column) for row in rows]))), kept.get("crs")

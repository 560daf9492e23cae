"""Writers and readers of road networks as GeoPackage (one file) and GeoParquet (a folder of two files)."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio  # type: ignore[import-untyped]  # it has no types
import shapely
from pyogrio.errors import DataLayerError, DataSourceError  # type: ignore[import-untyped]  # it has no types

from simulator.files.atomic_write import export_file, export_folder
from simulator.files.errors import InputError
from simulator.files.tables import check_parquet
from simulator.roads.writers.layers import LINKS, NODES, Layers, crs_of_both, network_of

if TYPE_CHECKING:
    from simulator.roads.network import RoadNetwork

_CRS = "crowdveil_crs"
"""Metadata key for the coordinate system in PROJ's notation: a GeoPackage does not keep a custom system completely."""
_MAGIC = b"SQLite format 3\0"
_UNREADABLE = (DataSourceError, DataLayerError, OSError, RuntimeError, ValueError, shapely.errors.ShapelyError)


def write_geopackage(network: RoadNetwork, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a road network to a GeoPackage, completely or not at all.

    Parameters
    ----------
    network
        Any network; see :class:`~simulator.roads.writers.layers.Layers` for the columns.
    path
        The file; its name must end in ``.gpkg``.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file exists and may not be replaced, it cannot be written, or an attribute cannot be stored as a column.
    """
    path = Path(path)
    if path.suffix.lower() != ".gpkg":
        raise InputError([f"{path}: the name of a GeoPackage must end in .gpkg"])
    layers = Layers.from_network(network)

    def fill(file: Path) -> None:
        for name, table, shapes in ((NODES, layers.nodes, layers.points), (LINKS, layers.links, layers.lines)):
            frame = gpd.GeoDataFrame(table, geometry=shapes, crs=layers.crs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GDAL warns of systems for which the format has no number
                pyogrio.write_dataframe(
                    frame,
                    file,
                    layer=name,
                    driver="GPKG",
                    append=name == LINKS,
                    dataset_metadata={_CRS: layers.crs.to_json()} if name == NODES else None,
                )
            if (written := pyogrio.read_info(file, layer=name)["features"]) != len(table):
                raise DataLayerError(f"{written:,} of {len(table):,} {name} were written")

    try:
        export_file(path, fill, overwrite=overwrite)
    except (DataSourceError, DataLayerError) as error:
        # SQLite's message repeats the statement that failed, and ends with the reason.
        raise InputError([f"{path}: cannot be written: {str(error).rpartition('failed: ')[2]}"]) from error


def read_geopackage(path: str | Path) -> RoadNetwork:
    """Read a road network that :func:`write_geopackage` wrote, or one with the same layers.

    Parameters
    ----------
    path
        A GeoPackage with layers ``nodes`` (``node``, ``x``, ``y``) and ``links`` (``from``, ``to``, the numbers of
        :mod:`simulator.roads.schema`).

    Returns
    -------
    RoadNetwork
        The complete network: nothing is left out or filled in.

    Raises
    ------
    InputError
        If the file cannot be read, or contains no road network; it names layer, row and rule.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError([f"{path}: no such file"])
    _check_kind(path)
    tables, systems = {}, []
    crs: object = None
    for name in (NODES, LINKS):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GDAL's warnings are either irrelevant or become faults below
                info = pyogrio.read_info(path, layer=name)
                meta, table = pyogrio.read_arrow(path, layer=name)
            rows = table.to_pylist()
            geometry = meta["geometry_name"] or "wkb_geometry"
            lines = shapely.from_wkb([row.pop(geometry, None) for row in rows])
        except _UNREADABLE as error:
            raise InputError([f"{path}: layer {name}: cannot be read as GeoPackage: {error}"]) from error
        tables[name] = (rows, list(lines))
        systems.append(meta.get("crs"))
        crs = crs or (info.get("dataset_metadata") or {}).get(_CRS)
    files = (f"{path}: layer {NODES}", f"{path}: layer {LINKS}")
    both = crs_of_both(systems[0], systems[1], files=files)
    return network_of(tables[NODES][0], tables[LINKS][0], tables[LINKS][1], crs=crs or both, files=files)


def _check_kind(path: Path) -> None:
    """Raise a `InputError` with a clear message if a file is not a GeoPackage."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror}"]) from error
    if not begins:
        raise InputError([f"{path}: it is empty"])
    if begins != _MAGIC:
        raise InputError([f"{path}: is not a GeoPackage: it does not begin with the header of an SQLite database"])


_GEOPARQUET_UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    shapely.errors.ShapelyError,
)


def write_geoparquet(network: RoadNetwork, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write ``nodes.parquet`` and ``links.parquet``, both or neither.

    Parameters
    ----------
    network
        Any network; see :class:`~simulator.roads.writers.layers.Layers` for the columns.
    folder
        The target folder; created if it does not exist.
    overwrite
        Whether existing files with these names are replaced.

    Raises
    ------
    InputError
        If the folder already contains files, it cannot be written to, or an attribute cannot be stored as a column.
    """
    layers = Layers.from_network(network)

    def fill(staging: Path) -> None:
        for name, table, shapes in ((NODES, layers.nodes, layers.points), (LINKS, layers.links, layers.lines)):
            frame = gpd.GeoDataFrame(table, geometry=shapes, crs=layers.crs)
            frame.to_parquet(staging / f"{name}.parquet")

    export_folder(Path(folder), fill, overwrite=overwrite)


def read_geoparquet(folder: str | Path) -> RoadNetwork:
    """Read a road network that :func:`write_geoparquet` wrote, or one with the same files.

    Parameters
    ----------
    folder
        A folder with ``nodes.parquet`` (``node``, ``x``, ``y``) and ``links.parquet`` (``from``, ``to``, the numbers
        of :mod:`simulator.roads.schema`).

    Returns
    -------
    RoadNetwork
        The complete network: nothing is left out or filled in.

    Raises
    ------
    InputError
        If a file cannot be read, or the files contain no road network; it names file, row and rule.
    """
    folder = Path(folder)
    tables: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {}
    systems = []
    for name in (NODES, LINKS):
        file = folder / f"{name}.parquet"
        if not file.is_file():
            raise InputError([f"{file}: no such file"])
        if file.stat().st_size == 0:
            raise InputError([f"{file}: it is empty"])
        try:
            tables[name], known = _read(file)
        except InputError:
            raise
        except _GEOPARQUET_UNREADABLE as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError([f"{file}: cannot be read as GeoParquet ({reason})"]) from error
        systems.append(known)
    files = (str(folder / f"{NODES}.parquet"), str(folder / f"{LINKS}.parquet"))
    crs = crs_of_both(systems[0], systems[1], files=files)
    return network_of(tables[NODES][0], tables[LINKS][0], tables[LINKS][1], crs=crs, files=files)


def _read(file: Path) -> tuple[tuple[list[dict[str, Any]], list[Any]], object]:
    """Read rows, geometries and the coordinate system; a file that is not GeoParquet raises one of several errors."""
    check_parquet(pq.ParquetFile(file), file)
    table = pq.read_table(file)
    metadata = (table.schema.metadata or {}).get(b"geo")
    if metadata is None:
        raise ValueError("its metadata do not describe geometries: is it a plain Parquet file?")
    geo = json.loads(metadata)
    column = geo["primary_column"]
    kept = geo["columns"][column]
    if kept["encoding"] != "WKB":
        raise ValueError(f"geometries must be in WKB, got {kept['encoding']!r}")
    rows = table.to_pylist()
    return (rows, list(shapely.from_wkb([row.pop(column) for row in rows]))), kept.get("crs")

"""Writer and reader of road networks as GeoPackage: every network is read back as it was written."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyogrio  # type: ignore[import-untyped]  # it has no types
import shapely
from pyogrio.errors import DataLayerError, DataSourceError  # type: ignore[import-untyped]  # it has no types

from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.formats.geo.layers import (
    LINKS,
    MOVEMENTS,
    NODES,
    SIGNALS,
    Layer,
    junction_layers,
    junctions_of,
    layers_of,
    network_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from simulator.roads.network import RoadNetwork
    from simulator.roads.raw_network import RawNetwork

_CRS = "crowdveil_crs"
"""Metadata key for the coordinate system in PROJ's notation: a GeoPackage does not keep a custom system completely."""
_REMARKS = "crowdveil_remarks"
_WRITTEN = "OGR_CURRENT_DATE"
"""Option of GDAL: the time at which a layer was changed, as the file states it."""
_MAGIC = b"SQLite format 3\0"
_UNREADABLE = (
    DataSourceError,
    DataLayerError,
    OSError,
    RuntimeError,
    ValueError,
    UnboundLocalError,  # of pyogrio, where a coordinate system is no text
    shapely.errors.ShapelyError,
)


def write_geopackage(
    network: RoadNetwork, path: str | Path, *, remarks: Sequence[str] = (), overwrite: bool = False
) -> None:
    """Write a road network to a GeoPackage, completely or not at all.

    Parameters
    ----------
    network
        Any network; see :func:`~simulator.formats.geo.layers.layers_of` and
        :func:`~simulator.formats.geo.layers.junction_layers` for the columns.
    path
        The file; its name must end in ``.gpkg``.
    remarks
        How the network was read from its source, one sentence each; who reads the file is told them again.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file exists and may not be replaced, it cannot be written, or an attribute cannot be stored as a column.
    """
    layers = layers_of(network) | junction_layers(network)
    write_layers(
        layers, Path(path), metadata={_CRS: network.crs.to_json(), _REMARKS: "\n".join(remarks)}, overwrite=overwrite
    )


def write_layers(
    frames: Mapping[str, pd.DataFrame], path: Path, *, metadata: Mapping[str, str], overwrite: bool
) -> None:
    """Write layers to a GeoPackage, completely or not at all.

    Parameters
    ----------
    frames
        Layers by name, with or without geometries.
    path
        The file; its name must end in ``.gpkg``.
    metadata
        Metadata of the file, by key.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file has another name, exists and may not be replaced, or cannot be written.
    """
    if path.suffix.lower() != ".gpkg":
        raise InputError([f"{path}: the name of a GeoPackage must end in .gpkg"])

    def fill(file: Path) -> None:
        for number, (name, frame) in enumerate(frames.items()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GDAL warns of systems for which the format has no number
                pyogrio.write_dataframe(
                    frame,
                    file,
                    layer=name,
                    driver="GPKG",
                    append=number > 0,
                    dataset_metadata=dict(metadata) if number == 0 else None,
                )
            if (written := pyogrio.read_info(file, layer=name)["features"]) != len(frame):
                raise DataLayerError(f"{written:,} of {len(frame):,} {name} were written")

    pyogrio.set_gdal_config_options({_WRITTEN: "2000-01-01T00:00:00.000Z"})  # equal layers give equal bytes
    try:
        export_file(path, fill, overwrite=overwrite)
    except (DataSourceError, DataLayerError) as error:
        # SQLite's message repeats the statement that failed, and ends with the reason.
        raise InputError([f"{path}: cannot be written: {str(error).rpartition('failed: ')[2]}"]) from error
    finally:
        pyogrio.set_gdal_config_options({_WRITTEN: None})


def read_geopackage(path: str | Path) -> RawNetwork:
    """Read a road network that :func:`write_geopackage` wrote, or one with the same layers.

    Parameters
    ----------
    path
        A GeoPackage with layers ``nodes`` (``node``, ``x``, ``y``) and ``links`` (``from``, ``to``, the numbers of
        :mod:`simulator.roads.schema`), and ``movements`` and ``signals`` if there are any.

    Returns
    -------
    RawNetwork
        The complete network: nothing is left out or filled in.

    Raises
    ------
    InputError
        If the file cannot be read, or contains no road network; it names layer, row and rule.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError([f"{path}: no such file"])
    try:
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror}"]) from error
    if not begin:
        raise InputError([f"{path}: it is empty"])
    if begin != _MAGIC:
        raise InputError([f"{path}: is not a GeoPackage: it does not begin with the header of an SQLite database"])
    layers: dict[str, Layer] = {}
    metadata: dict[str, str] = {}
    for name in (NODES, LINKS, MOVEMENTS, SIGNALS):
        try:
            if name in (MOVEMENTS, SIGNALS) and name not in pyogrio.list_layers(path)[:, 0]:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GDAL's warnings are either irrelevant or become faults below
                info = pyogrio.read_info(path, layer=name)
                meta, table = pyogrio.read_arrow(path, layer=name)
            layers[name] = _layer(table, meta["geometry_name"] or "wkb_geometry", meta.get("crs"))
        except _UNREADABLE as error:
            raise InputError([f"{path}: layer {name}: cannot be read as GeoPackage: {error}"]) from error
        metadata = metadata or info.get("dataset_metadata") or {}
    files = (f"{path}: layer {NODES}", f"{path}: layer {LINKS}")
    raw = network_of(layers[NODES], layers[LINKS], crs=metadata.get(_CRS), files=files, name=path.name)
    rows = {name: layer.rows for name, layer in layers.items()}
    movements, signals = junctions_of(rows, raw.links, file=str(path))
    return replace(raw, movements=movements, signals=signals, remarks=metadata.get(_REMARKS, "").splitlines())


def _layer(table: pa.Table, geometry: str, crs: object) -> Layer:
    """Convert a table with geometries in well-known binary to rows."""
    rows = table.to_pylist()
    return Layer(rows, list(shapely.from_wkb([row.pop(geometry, None) for row in rows])), crs)

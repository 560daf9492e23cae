"""Writer of road networks as a GMNS folder."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyproj
import shapely

from simulator.files.atomic_write import export_folder
from simulator.files.tables import identifier_list
from simulator.formats.roads.gmns_movements import movement_tables
from simulator.formats.roads.gmns_tables import KEEP, OWN_PREFIX
from simulator.formats.roads.layers import in_json, plain
from simulator.roads.schema import node_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.roads.network import RoadNetwork

MPS_PER_KPH = 1000 / 3600
_IN_COLUMNS = frozenset({"x", "y", "length_m", "speed_mps", "lanes", "capacity_vph", "geometry", "link"})
_PLAIN = re.compile(r"[^\W_](?:[\w .:/+-]*[\w.:/+-])?")
_WHOLE = re.compile(r"-?\d+")
_TAKEN_FOR_NOTHING = frozenset({"na", "n/a", "nan", "null", "none"})


def write_gmns(network: RoadNetwork, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write ``node.csv``, ``link.csv``, ``config.csv``, and tables of movements and signals, all of them or none.

    Coordinates are in the network's system, lengths in metres, speeds in km/h, capacities per hour and lane. The
    config table states the system and the units, and :func:`~simulator.formats.roads.gmns.read_gmns` reads it. Every
    link is directed; shapes are well-known text. Values for which GMNS has no column are written as JSON in columns
    ``crowdveil_…``: other attributes, keys of parallel links, and speeds that km/h do not represent exactly.

    Parameters
    ----------
    network
        Any network. The config table requests that it is read back completely, including nodes and links that routes
        cannot reach.
    folder
        The target folder; created if it does not exist.
    overwrite
        Whether existing files with these names are replaced.

    Raises
    ------
    InputError
        If the folder already contains files, it cannot be written to, or an attribute cannot be written.
    """
    nodes, links = _nodes(network), _links(network)
    config = pd.DataFrame(
        [
            {
                "dataset_name": "crowdveil",
                "short_length": "m",
                "long_length": "m",
                "speed": "km/h",
                "crs": _crs_text(network.crs),
                "geometry_field_format": "wkt",
                KEEP: "all",
            }
        ]
    )

    tables = {"node": nodes, "link": links, "config": config}
    for name, (rows, own) in movement_tables(network, _ids(network.node_names)[0]).items():
        tables[name] = pd.concat([rows, pd.DataFrame(_own_columns(own, name))], axis=1)

    def fill(staging: Path) -> None:
        for name, table in tables.items():
            table.to_csv(staging / f"{name}.csv", index=False)

    export_folder(Path(folder), fill, overwrite=overwrite)


def _nodes(network: RoadNetwork) -> pd.DataFrame:
    data = [network.graph.nodes[name] for name in network.node_names]
    ids, own_names = _ids(network.node_names)
    columns: dict[str, Any] = {"node_id": ids, "x_coord": network.node_xy[:, 0], "y_coord": network.node_xy[:, 1]}
    zones = [plain(values.get("zone")) for values in data]
    texts = [None if zone is None else str(zone) for zone in zones]
    own = [{name: value for name, value in values.items() if name not in _IN_COLUMNS | {"zone"}} for values in data]
    if own_names:
        own = [values | {"node": name} for values, name in zip(own, network.node_names, strict=True)]
    if any(text is not None for text in texts):
        columns["zone_id"] = [text if _is_plain(text) or _WHOLE.fullmatch(text or "") else None for text in texts]
        if not _read_as_written([text for text in texts if text is not None], [z for z in zones if z is not None]):
            own = [values | {"zone": zone} for values, zone in zip(own, zones, strict=True)]
    return pd.DataFrame(columns | _own_columns(own, "node"))


def _links(network: RoadNetwork) -> pd.DataFrame:
    ids, _ = _ids(network.node_names)
    named = dict(zip(network.node_names, ids, strict=True))
    edges = sorted(network.graph.edges(keys=True, data=True), key=lambda edge: edge[3]["link"])
    classes = [data.get("class") for *_, data in edges]
    as_text = all(kind is None or _is_plain(kind) for kind in classes)
    rows, own = [], []
    for (start, end, key, data), kind in zip(edges, classes, strict=True):
        shape = data.get("geometry")
        rows.append(
            {
                "link_id": data["link"],
                "from_node_id": named[start],
                "to_node_id": named[end],
                "directed": 1,
                "geometry": None if shape is None else shapely.to_wkt(shape, rounding_precision=-1, output_dimension=2),
                "dir_flag": 0 if shape is None else 1,
                "length": float(data["length_m"]),
                "facility_type": kind if _is_plain(kind) else None,
                "capacity": float(data["capacity_vph"]),
                "free_speed": _kph(float(data["speed_mps"])),
                "lanes": int(data["lanes"]),
            }
        )
        left = {name: value for name, value in data.items() if name not in _IN_COLUMNS | {"class"}}
        exact = {} if _kph(data["speed_mps"]) * MPS_PER_KPH == data["speed_mps"] else {"speed_mps": data["speed_mps"]}
        own.append(left | {"key": key} | exact | ({} if as_text else {"class": kind}))
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(_own_columns(own, "link"))], axis=1)


def _ids(names: Sequence[object]) -> tuple[list[object], bool]:
    """Return identifiers for node names, and whether the names must be stored in addition to them."""
    plain_names = [plain(name) for name in names]
    if all(isinstance(name, int) and not isinstance(name, bool) for name in plain_names):
        return plain_names, False
    texts = [name for name in plain_names if isinstance(name, str)]
    if len(texts) == len(plain_names) and _read_as_written(texts, texts):
        return list(texts), False
    return list(range(len(plain_names))), True


def _read_as_written(texts: Sequence[str], values: Sequence[object]) -> bool:
    """Return whether identifiers are read back from a CSV file unchanged."""
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values) and not all(
        _is_plain(text) for text in texts
    ):
        return False
    read = identifier_list(texts)
    return read == list(texts) and node_keys(read) == list(values)


def _is_plain(text: object) -> bool:
    """Return whether a value is text that is read back from a CSV file as the same text."""
    return isinstance(text, str) and bool(_PLAIN.fullmatch(text)) and text.lower() not in _TAKEN_FOR_NOTHING


def _own_columns(rows: Sequence[dict[str, Any]], what: str) -> dict[str, list[str | None]]:
    """Return one column of JSON for each attribute."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [plain(row.get(name)) for row in rows]
        values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
        if any(value is not None for value in values):
            columns[f"{OWN_PREFIX}{name}"] = [in_json(value, name, what) for value in values]
    return columns


def _kph(speed_mps: float) -> float:
    """Convert a speed to the number of km/h that is read back as the same speed, if there is one."""
    kph = speed_mps / MPS_PER_KPH
    near = (kph, math.nextafter(kph, 0.0), math.nextafter(kph, math.inf))
    return min(near, key=lambda value: abs(value * MPS_PER_KPH - speed_mps))


def _crs_text(crs: pyproj.CRS) -> str:
    """Return a coordinate system as its number, if that describes it completely, else as JSON."""
    authority = crs.to_authority(min_confidence=100)
    if authority is not None and pyproj.CRS.from_authority(*authority) == crs:
        return ":".join(authority)
    return crs.to_json()

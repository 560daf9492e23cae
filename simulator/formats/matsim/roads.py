"""Reader of roads from a MATSim network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyproj

from simulator.files.errors import InputError, both
from simulator.files.messages import counted, warning
from simulator.files.tables import Table
from simulator.files.times import time_of_day
from simulator.files.xml_elements import TEXT, elements_of
from simulator.formats.planes import plane_about, remarks_on_plane
from simulator.roads.projection import known_crs
from simulator.roads.raw_network import RawNetwork, column_of
from simulator.roads.read_report import usable_rows
from simulator.roads.schema import MOST_LANES, crs_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

_CRS = "coordinateReferenceSystem"
_UTM = re.compile(r"WGS84_UTM(\d{1,2})([NS])")
_CRS_NAMES = {
    "Atlantis": "", "CH1903_LV03": "EPSG:21781", "CH1903_LV03_Plus": "EPSG:2056", "DHDN_GK4": "EPSG:31468",
    "GK4": "EPSG:31468", "DHDN_SoldnerBerlin": "EPSG:3068",
}  # fmt: skip
"""Systems that MATSim names in its own words, as PROJ knows them; names of UTM zones follow a pattern."""
_HOUR_S = 3600.0
_NUMBERS = ("length", "freespeed", "capacity", "permlanes")
_COLUMNS = {"node": ("id", "x", "y"), "link": ("id", "from", "to", "modes", *_NUMBERS)}


def read_matsim(
    path: str | Path,
    *,
    crs: object = None,
    project_to: object = None,
    modes: Sequence[str] = ("car",),
    keep: Literal["all", "strong"] = "all",
) -> RawNetwork:
    """Read a MATSim network, version 1 or 2.

    Lengths are metres and speeds metres per second. The capacity of a MATSim link is for all its lanes and for the
    ``capperiod`` of the links, and is divided by both. MATSim allows a fraction of a lane: the number of lanes is
    rounded to a whole number, 1 or more, and the capacity of the link stays as it is. Links are straight.

    The project's own XML iteration is used instead of the package matsim-tools, which builds elements of the whole
    document, expands its entities, has no limits for files that are not trusted, and prints errors.

    Parameters
    ----------
    path
        A file ``network.xml``, plain or compressed.
    crs
        The system of the coordinates, in any units; None for the system in the file's attribute
        ``coordinateReferenceSystem``. Coordinates without a system are metres of a plane, placed at longitude 0,
        latitude 0.
    project_to
        A projected system in metres. None for `crs` itself, if it is one, else the UTM zone of the network's middle.
    modes
        Links whose ``modes`` name one of these are read; a link without ``modes`` is open to cars.
    keep
        "all" for all links; "strong" for links of the largest part in which every node can be reached from every other.

    Returns
    -------
    RawNetwork
        Nodes are keyed by the ids of the file. A link has the attribute ``matsim_link``, its id.

    Raises
    ------
    InputError
        If the file is no MATSim network, an id occurs twice, a node is unknown, a number cannot be used, or no link is
        open to the modes; it names the lines.
    """
    path = Path(path)
    (nodes, links), capacity_s = _read_elements(path)
    ids, names = pd.Index(nodes.unique_identifiers("id"), dtype="object"), links.unique_identifiers("id")
    xy = np.column_stack([nodes.checked_numbers(axis) for axis in ("x", "y")])
    start, end = (ids.get_indexer(pd.Index(links.identifiers(side), dtype="object")) for side in ("from", "to"))
    for side, at in (("from", start), ("to", end)):
        links.refuse(side, at < 0, "the id of a node")
    length, speed, capacity, permlanes = (links.checked_numbers(name, at_least=0) for name in _NUMBERS)
    links.refuse("permlanes", permlanes > MOST_LANES, f"at most {MOST_LANES:,}")
    both(nodes.check, links.check)
    uses = [set((allowed or "car").replace(" ", "").split(",")) for allowed in links.texts("modes")]
    reasons = {
        f"modes names none of {', '.join(modes)}": np.array([use.isdisjoint(modes) for use in uses]),
        "it leads from a node to itself": start == end,
    }
    usable, dropped = usable_rows(reasons, file=path, what="link")
    joined, ends = np.unique(np.stack([start, end])[:, usable], return_inverse=True)
    lanes = np.maximum(np.rint(permlanes), 1.0)
    rounded = int((usable & (lanes != permlanes)).sum())
    words = f"{path.name}: permlanes of {counted(rounded, 'link')} rounded to a whole number, 1 or more"
    source = stated_crs(path) if crs is None else known_crs(crs, "crs")
    warnings = [] if source else [warning("coordinates", remarks_on_plane(path.name))]
    if source is None:
        source, project_to = plane_about(xy[joined], 1.0)
    columns = {
        "length": length,
        "speed": speed,
        "lanes": lanes,
        "capacity": capacity * _HOUR_S / capacity_s / lanes,
        "key": column_of(names),
        "matsim_link": column_of(names),
    }
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(ids), "x": xy[:, 0], "y": xy[:, 1]}).iloc[joined],
        links=pd.DataFrame(columns)[usable]
        .set_axis(links.number[usable])
        .assign(**dict(zip(("from", "to"), ends.reshape(2, -1), strict=True))),
        crs=source,
        file=path.name,
        node_table=nodes.kept(np.isin(np.arange(len(nodes)), joined)),
        project_to=source if project_to is None and not crs_faults(source) else project_to,
        unit="line",
        keep=keep,
        node_rows=len(nodes),
        link_rows=len(links),
        dropped=dropped,
        remarks=[words] if rounded else [],
        warnings=warnings,
    )


def stated_crs(file: Path) -> pyproj.CRS | None:
    """Return the coordinate system that a MATSim network states; None for none, or for "Atlantis".

    Raises
    ------
    InputError
        If PROJ does not know the system.
    """
    attribute = stated = ""
    for name, attributes, _ in elements_of(file, texts=("attribute",), ends=False, doctype=True):
        if stated or name in ("person", "node"):
            break
        if name == "attribute":
            attribute = (attributes or {}).get("name", "")
        elif name == TEXT and attribute == _CRS and attributes:
            stated = attributes["attribute"].strip()
    zone = _UTM.fullmatch(stated)
    known = f"EPSG:32{6 if zone[2] == 'N' else 7}{zone[1]:0>2}" if zone else _CRS_NAMES.get(stated, stated)
    return known_crs(known, f"{file}: {_CRS} (or state roads.crs)") if known else None


def _read_elements(path: Path) -> tuple[list[Table], float]:
    """Return the tables of nodes and links, and the seconds that their capacities refer to."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _COLUMNS}
    capacity_s = _HOUR_S
    for name, attributes, line in elements_of(path, root="network", ends=False, doctype=True):
        values = dict(attributes or {})
        if name in rows:
            rows[name].append({**values, "line": line})
        elif name == "links":
            period_s = time_of_day(values.get("capperiod", "1:00:00"))
            if not period_s or period_s < 0:
                rule = f"capperiod must be a time above 0, as 01:00:00, got {values['capperiod']!r}"
                raise InputError([f"{path}: line {line}: {rule}"])
            capacity_s = period_s
    if empty := [name for name, found in rows.items() if not found]:
        raise InputError([f"{path}: the road network is empty: it has no <{empty[0]}>"])
    tables = [
        Table.from_frame(
            pd.DataFrame(found, columns=_COLUMNS[name]),
            title=str(path),
            number=[row["line"] for row in found],
            unit="line",
        )
        for name, found in rows.items()
    ]
    return tables, capacity_s

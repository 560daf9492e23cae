"""Reader of roads from a MATSim network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from simulator.files.errors import InputError, both
from simulator.files.messages import Note, counted, warning
from simulator.files.tables import Table
from simulator.files.xml_elements import TEXT, elements_of
from simulator.formats.roads.gmns import plane_about, remarks_on_plane
from simulator.roads.projection import known_crs
from simulator.roads.raw_network import RawNetwork, column_of
from simulator.roads.read_report import usable_rows
from simulator.roads.schema import MOST_LANES, crs_faults
from simulator.traffic.demand.sumo_attributes import time_of_day

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CRS = "coordinateReferenceSystem"
_NO_CRS = ("", "atlantis")
_CRS_NAMES = {
    "CH1903_LV03": "EPSG:21781",
    "CH1903_LV03_GT": "EPSG:21781",
    "CH1903_LV03_Plus": "EPSG:2056",
    "CH1903_LV03_Plus_GT": "EPSG:2056",
    "DHDN_GK4": "EPSG:31468",
    "GK4": "EPSG:31468",
    "WGS84_SA_Albers": "ESRI:102022",
}
"""Systems that MATSim names in its own words, and PROJ does not; those of UTM zones follow a pattern."""
_UTM = re.compile(r"WGS84_UTM(\d{1,2})([NS])")
_HOUR_S = 3600.0
_NUMBERS = ("length", "freespeed", "capacity", "permlanes")
_LINK_COLUMNS = ("id", "from", "to", "modes", *_NUMBERS)


def known_to_proj(name: str) -> str | None:
    """Return a coordinate system that a MATSim file names as PROJ knows it; None for MATSim's own "Atlantis"."""
    utm = _UTM.fullmatch(name.strip())
    if utm:
        return f"EPSG:32{'6' if utm[2] == 'N' else '7'}{int(utm[1]):02d}"
    return None if name.strip().lower() in _NO_CRS else _CRS_NAMES.get(name.strip(), name.strip())


def read_matsim(
    path: str | Path,
    *,
    crs: object = None,
    project_to: object = None,
    modes: Sequence[str] = ("car",),
    keep: Literal["all", "strong"] = "all",
) -> RawNetwork:
    """Read a MATSim network, version 1 or 2.

    Lengths are metres and speeds metres per second. The capacity of a MATSim link is that of all its lanes, for the
    ``capperiod`` of the links, and is divided by both. MATSim allows a fraction of a lane: the number of lanes is
    rounded to a whole number, 1 or more, and the capacity of the link stays as it is. Links are straight.

    The project's own XML iteration is used instead of the package matsim-tools, which builds elements of the whole
    document, expands its entities, has no limits for files that are not trusted, and prints errors.

    Parameters
    ----------
    path
        A file ``network.xml``, plain or compressed.
    crs
        The system of the coordinates, in any units; None for that of the file's attribute
        ``coordinateReferenceSystem``. Coordinates without a system are metres of a plane, placed at longitude 0,
        latitude 0.
    project_to
        A projected system in metres. None for `crs` itself, if it is one, else the UTM zone of the network's middle.
    modes
        Links whose ``modes`` name one of these are read; a link without ``modes`` is open to cars.
    keep
        "all" for all links; "strong" for those of the largest part in which every node can be reached from every other.

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
    content = _Content.read(path)
    nodes, links = content.table("node", ("id", "x", "y")), content.table("link", _LINK_COLUMNS)
    ids = nodes.unique_identifiers("id")
    xy = np.column_stack([nodes.checked_numbers(axis) for axis in ("x", "y")])
    index = pd.Index(ids, dtype="object")
    start, end = (index.get_indexer(pd.Index(links.identifiers(side), dtype="object")) for side in ("from", "to"))
    for side, at in (("from", start), ("to", end)):
        links.refuse(side, at < 0, "the id of a node")
    names = links.unique_identifiers("id")
    length, speed, capacity, permlanes = (links.checked_numbers(name, at_least=0) for name in _NUMBERS)
    links.refuse("permlanes", permlanes > MOST_LANES, f"at most {MOST_LANES:,}")
    both(nodes.check, links.check)
    closed = np.array([not _is_open(allowed, modes) for allowed in links.texts("modes")], dtype=np.bool_)
    reasons = {
        f"modes names none of {', '.join(modes)}": closed,
        "it leads from a node to itself": start == end,
    }
    usable, dropped = usable_rows(reasons, file=path, what="link")
    joined, ends = np.unique(np.stack([start, end])[:, usable], return_inverse=True)
    start, end = ends.reshape(2, -1)
    lanes = np.maximum(np.rint(permlanes), 1.0)
    remarks: list[str] = []
    if broken := int((usable & (lanes != permlanes)).sum()):
        remarks.append(f"{path.name}: permlanes of {counted(broken, 'link')} rounded to a whole number, 1 or more")
    if content.restricted:
        links_with = counted(content.restricted, "link has", "links have")
        remarks.append(f"{path.name}: {links_with} disallowedNextLinks, which are not read: all turns are allowed")
    source, warnings = _system(path, content.crs, crs), list[Note]()
    if source is None:
        source, project_to = plane_about(xy[joined], 1.0)
        warnings.append(warning("coordinates", remarks_on_plane(path.name)))
    elif project_to is None and not crs_faults(source):
        project_to = source
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(ids), "x": xy[:, 0], "y": xy[:, 1]}).iloc[joined],
        links=pd.DataFrame(
            {
                "from": start,
                "to": end,
                "key": (name := column_of(names)[usable].to_numpy()),
                "length": length[usable],
                "speed": speed[usable],
                "lanes": lanes[usable],
                "capacity": (capacity * _HOUR_S / content.capacity_s / lanes)[usable],
                "matsim_link": name,
            },
            index=links.number[usable],
        ),
        crs=source,
        file=path.name,
        node_table=nodes.kept(np.isin(np.arange(len(nodes)), joined)),
        project_to=project_to,
        unit="line",
        keep=keep,
        node_rows=len(nodes),
        link_rows=len(links),
        dropped=dropped,
        remarks=remarks,
        warnings=warnings,
    )


class _Content(NamedTuple):
    """The elements of a file: attributes of nodes and links, the system and capperiod, and links with closed turns."""

    file: Path
    rows: Mapping[str, list[dict[str, Any]]]
    crs: str
    capacity_s: float
    restricted: int

    @classmethod
    def read(cls, path: Path) -> _Content:
        rows: dict[str, list[dict[str, Any]]] = {"node": [], "link": []}
        crs, capacity_s, within, restricted = "", _HOUR_S, "", 0
        for name, attributes, line in elements_of(path, root="network", texts=("attribute",), ends=False, doctype=True):
            values = dict(attributes or {})
            if name in rows:
                rows[name].append({**values, "line": line})
            elif name == "links" and "capperiod" in values:
                period_s = time_of_day(values["capperiod"])
                if not period_s or period_s < 0:
                    rule = f"capperiod must be a time above 0, as 01:00:00, got {values['capperiod']!r}"
                    raise InputError([f"{path}: line {line}: {rule}"])
                capacity_s = period_s
            elif name == "attribute":
                within = values.get("name", "")
                restricted += within == "disallowedNextLinks"
            elif name == TEXT and within == _CRS:
                crs = values["attribute"]
        return cls(path, rows, crs, capacity_s, restricted)

    def table(self, name: str, columns: Sequence[str]) -> Table:
        """Return the elements of a name as a table, whose rows are numbered by lines."""
        found = self.rows[name]
        if not found:
            raise InputError([f"{self.file}: the road network is empty: it has no <{name}>"])
        frame = pd.DataFrame(found, columns=[*columns])
        return Table.from_frame(frame, title=str(self.file), number=[row["line"] for row in found], unit="line")


def _is_open(allowed: str | None, modes: Sequence[str]) -> bool:
    return not {mode.strip() for mode in (allowed or "car").split(",")}.isdisjoint(modes)


def _system(path: Path, stated: str, crs: object) -> Any:
    """Return the coordinate system that the user or the file states, or None for a plane without a place."""
    if crs is not None:
        return known_crs(crs, "crs")
    named = known_to_proj(stated)
    try:
        return None if named is None else known_crs(named, _CRS)
    except InputError:
        rule = f"must be a system that PROJ knows, or be replaced by the key crs of the roads; got {stated!r}"
        raise InputError([f"{path}: {_CRS} {rule}"]) from None

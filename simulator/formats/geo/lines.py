"""Reader of roads drawn as lines: Shapefile, GeoJSON, GeoPackage or GeoParquet, with a column for each attribute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from simulator.cells.zones import no_degrees, read_features
from simulator.files.errors import InputError
from simulator.files.messages import counted, values_in_words
from simulator.files.tables import Table, find_columns, listed
from simulator.formats.column_names import METRES_PER_UNIT
from simulator.formats.link_columns import find_link_columns, link_values, link_warnings
from simulator.formats.osm_tags import CLASSES
from simulator.roads.projection import WGS84, transform, true_plane, utm_about
from simulator.roads.raw_network import Defaults, RawNetwork, column_of
from simulator.roads.read_report import usable_rows
from simulator.roads.schema import crs_faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import geopandas as gpd
    from numpy.typing import NDArray

ALONG = ("yes", "true", "1", "f", "ft", "forward", "along")
AGAINST = ("-1", "reverse", "t", "tf", "backward", "against")
"""Values of one-way columns of OpenStreetMap, Geofabrik, HERE and others; any other value is two-way."""
ONE_WAY = {"oneway": ("oneway", "one_way", "dir_travel", "direction", "directed")}
_DIGITS = 3
"""Decimals of a metre to which vertices agree that are the same."""
_OSM = {"residential", "footway", "cycleway"}
"""OpenStreetMap's data have at least one of these classes."""


def read_lines(
    path: str | Path,
    *,
    layer: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    crs: object = None,
    join_m: float = 1.0,
    along: Sequence[str] = ALONG,
    against: Sequence[str] = AGAINST,
    classes: Sequence[str] | None = None,
    default_speed_mps: float = 13.9,
    default_lanes: int = 1,
    capacity_vph: float = 1800.0,
) -> RawNetwork:
    """Read lines as roads, in both directions unless a column states one.

    Lines are cut at every vertex that is also one of another line, as junctions are in OpenStreetMap's data; lines that
    cross without a common vertex, as at a bridge, are not connected. Ends that are close to each other become one node.

    Parameters
    ----------
    path
        GeoJSON, GeoPackage, Shapefile (also in a zip archive) or GeoParquet.
    layer
        Layer of a GeoPackage with several.
    columns
        The project's names of columns to the file's names; columns left out are found by their usual names. Lanes of a
        two-way line count both directions; its capacity is the capacity of each direction.
    crs
        The system of the coordinates, where the file states none.
    join_m
        Greatest distance of ends that become one node, metres.
    along, against
        Values of the one-way column for lines that are driven in the order of their vertices, and in the other order.
    classes
        Classes that are kept; None for all, or, where they are OpenStreetMap's, those on which cars may drive.
    default_speed_mps, default_lanes, capacity_vph
        Defaults for lines that have no value and whose class has no default.

    Returns
    -------
    RawNetwork
        Nodes are numbered.

    Raises
    ------
    InputError
        If the file cannot be read, has no coordinate system, or no line can be used.
    """
    file = Path(path)
    features = read_features(file, layer)
    drawn = features[~(features.geometry.isna() | features.geometry.is_empty)]
    frame = _in_metres(drawn, file, crs).explode(index_parts=False)
    lines = np.asarray(shapely.force_2d(frame.geometry.to_numpy()), dtype=object)
    number = frame.index.to_numpy(dtype=np.int64) + 1
    table = Table.from_frame(frame.drop(columns=frame.geometry.name), title=str(file), number=number)
    if missing := {*columns.values()} - {*table.names}:
        raise InputError([f"{file}: no column {min(missing)!r}; its columns are {listed(table.names)}"])
    found = find_link_columns(table.names, columns)
    # Ends and lengths are taken from the lines, and a column's name often does not state the unit of its lengths.
    others = {"from", "to", *METRES_PER_UNIT} - columns.keys()
    found = {ours: name for ours, name in found.items() if ours not in others}
    table = replace(table, columns=find_columns(table.names, ONE_WAY, given=found), renamed=True)
    stated = [(text or "").lower() for text in table.texts("oneway")]
    forward, backward = (np.isin(stated, [str(value).lower() for value in values]) for values in (along, against))
    two_way = ~(forward | backward)
    links, reasons, remarks = link_values(table, lane_vph=capacity_vph, columns=columns, both_ways=two_way)
    unread = pd.Series(stated)[two_way].value_counts().drop(["", "no", "false", "0", "b", "both"], errors="ignore")
    remarks += [f"{file}: oneway taken as two-way: {values_in_words(unread.to_dict())}"] if len(unread) else []
    if classes is None and not _OSM.isdisjoint(links["class"]):
        classes = [*CLASSES]
    reasons["it is no line"] = (shapely.get_type_id(lines) != 1) | ~(shapely.length(lines) > 0)
    if classes is not None:
        reasons["its class is not one of those kept"] = ~links["class"].isin(classes).to_numpy()
    # OSMnx draws a two-way street twice, once in each direction.
    again = pd.Series(shapely.to_wkb(shapely.normalize(lines))).duplicated().to_numpy()
    reasons["it is two-way, and drawn before"] = two_way & again
    usable, dropped = usable_rows(reasons, file=str(file), what="line", number=number)
    lines[backward] = shapely.reverse(lines[backward])
    links = links.assign(two_way=two_way, length=links.get("length", shapely.length(lines)))[usable]
    pieces, of = _cut(lines[usable])
    node, xy = _joined(pieces, join_m)
    share = shapely.length(pieces) / shapely.length(lines[usable][of])
    links = links.iloc[of].assign(**{"from": node[0], "to": node[1], "shape": pieces})
    links["length"] *= share
    ways = f"{int(forward.sum()):,} one-way along, {int(backward.sum()):,} against, {int(two_way.sum()):,} two-way"
    remarks.append(
        f"{file}: {counted(len(lines), 'line')} ({ways}); cut at common vertices into {len(pieces):,} pieces"
    )
    if len(drawn) < len(features):
        remarks.append(f"{file}: {counted(len(features) - len(drawn), 'row')} without a geometry left out")
    by_class = "class" in found and "class" not in columns
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(range(len(xy))), "x": xy[:, 0], "y": xy[:, 1]}),
        links=links[node[0] != node[1]],
        crs=frame.crs,
        file=str(file),
        defaults=Defaults(default_speed_mps, default_lanes, capacity_vph, by_class=by_class),
        link_rows=len(table),
        row="line",
        dropped=dropped,
        remarks=remarks,
        warnings=link_warnings(table, links),
    )


def _in_metres(frame: gpd.GeoDataFrame, file: Path, crs: object) -> gpd.GeoDataFrame:
    """Return features in a projected system in metres."""
    if frame.crs is None and crs is None:
        rule = 'the file states no coordinate system (a Shapefile without .prj): state it, as crs = "EPSG:32618"'
        raise InputError([f"{file}: {rule}"], key="roads.crs")
    frame = frame if crs is None else frame.set_crs(crs, allow_override=True)
    if frame.empty:
        raise InputError([f"{file}: it holds no geometries"])
    if frame.crs.is_geographic and (fault := no_degrees(frame.total_bounds.tolist())):
        raise InputError([f"{file}: {fault}"], key="roads.crs")
    lonlat = transform(frame.crs, WGS84, frame.total_bounds.reshape(2, 2))
    if not np.isfinite(lonlat).all():
        raise InputError([f"{file}: its coordinates are outside the range of {frame.crs.name}"], key="roads.crs")
    if crs_faults(frame.crs):
        return frame.to_crs(utm_about(*lonlat.T, what=str(file)))
    return frame.to_crs(true_plane(frame.crs, lonlat, what=str(file))[0])


def _cut(lines: NDArray[np.object_]) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Cut lines at every vertex that another line has too; return the pieces and the line of each."""
    xy, of = shapely.get_coordinates(lines, return_index=True)
    _, vertex = np.unique(np.round(xy, _DIGITS), axis=0, return_inverse=True)
    shared = np.bincount(np.unique(np.column_stack([vertex.ravel(), of]), axis=0)[:, 0])[vertex.ravel()] > 1
    at_end = np.diff(of, prepend=-1, append=len(lines)) > 0
    cuts = np.flatnonzero(shared | at_end[:-1] | at_end[1:])
    same = of[cuts[:-1]] == of[cuts[1:]]
    first, last = cuts[:-1][same], cuts[1:][same]
    sizes = last - first + 1
    points = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return np.asarray(shapely.linestrings(xy[points], indices=np.repeat(np.arange(len(first)), sizes))), of[first]


def _joined(pieces: NDArray[np.object_], join_m: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Join ends that are close; return the nodes of each piece, shape (2, pieces), and the place of each node."""
    ends = shapely.get_coordinates(np.concatenate([shapely.get_point(pieces, at) for at in (0, -1)]))
    places, place = np.unique(np.round(ends, _DIGITS), axis=0, return_inverse=True)
    close = KDTree(places).query_pairs(join_m, output_type="ndarray").T
    graph = coo_array((np.ones(close.shape[1]), tuple(close)), shape=(len(places), len(places)))
    _, group = connected_components(graph, directed=False)
    _, first = np.unique(group, return_index=True)
    return group.astype(np.int64)[place.ravel()].reshape(2, -1), places[first]

"""Loaders that read a file as the readers of roads and traffic do."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.roads.network import RoadNetwork
from simulator.roads.readers.tntp import TntpLinks
from simulator.roads.readers.tntp_files import TntpNodes, read_flows
from simulator.traffic.demand.trip_table_readers import read_tntp_trips as read_trip_table
from simulator.traffic.trace import read_trace


def read_osm_roads(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the links of an OpenStreetMap extract; see `links_of`.

    Raises
    ------
    InputError
        If the file is not an extract, or the library that reads it is not installed.
    """
    from simulator.roads.readers.osm import read_osm  # noqa: PLC0415  optional libraries come with it

    network, report = read_osm(file)
    return links_of(network), list(report.notes())


def read_sumo_links(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the links of a SUMO network that cars may use; see `links_of`.

    Raises
    ------
    InputError
        If the file is not a network, or sumolib is not installed.
    """
    from simulator.roads.readers.sumo import read_sumo_net  # noqa: PLC0415  optional libraries come with it

    network, report = read_sumo_net(file)
    return links_of(network), list(report.notes())


def links_of(network: RoadNetwork) -> pd.DataFrame:
    """Return the links of a network as a table.

    Returns
    -------
    DataFrame
        One row per link, ordered by link id: ``from_node``, ``to_node`` (text), ``from_lon``, ``from_lat``,
        ``to_lon``, ``to_lat`` (degrees), ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane),
        ``class`` (None where not known).
    """
    links = network.links
    names = np.array([str(name) for name in network.node_names], dtype=object)
    places = network.to_wgs84(network.node_xy)
    classes = [data.get("class") for *_, data in sorted(network.graph.edges(data=True), key=lambda e: e[2]["link"])]
    return pd.DataFrame(
        {
            "from_node": names[links.from_node],
            "to_node": names[links.to_node],
            "from_lon": places[links.from_node, 0],
            "from_lat": places[links.from_node, 1],
            "to_lon": places[links.to_node, 0],
            "to_lat": places[links.to_node, 1],
            "length_m": links.length_m,
            "speed_mps": links.speed_mps,
            "lanes": links.lanes,
            "capacity_vph": links.capacity_vph,
            "class": pd.Series(classes, dtype=object),
        }
    )


def read_tntp_links(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a network file, in the units of the file.

    Returns
    -------
    frame : DataFrame
        ``from_node``, ``to_node`` (int64), ``capacity``, ``length``, ``free_flow_time``, ``b``, ``power``, ``speed``,
        ``toll``, ``link_type`` (text).
    notes : list of str
        The number of zones, and the first node that routes may pass through.

    Raises
    ------
    InputError
        If the file is not a network file; every fault is listed with its line.
    """
    links = TntpLinks.from_file(file)
    frame = pd.DataFrame(links.columns).rename(columns={"init_node": "from_node", "term_node": "to_node"})
    frame["link_type"] = links.link_type
    notes = [
        f"{links.zones:,} zones of {links.nodes:,} nodes; routes may pass through node {links.first_through} and on"
    ]
    return frame.astype({"from_node": np.int64, "to_node": np.int64}), notes


def read_tntp_nodes(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a node file, text or GeoJSON, in the units of the file.

    Returns
    -------
    frame : DataFrame
        ``node`` (int64), ``x``, ``y`` (longitude and latitude, where the file has those).
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If the file is not a node file; every fault is listed with its place.
    """
    nodes = TntpNodes.from_file(file)
    return pd.DataFrame({"node": nodes.node, "x": nodes.xy[:, 0], "y": nodes.xy[:, 1]}), []


def read_tntp_flow(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read published equilibrium flows.

    Returns
    -------
    frame : DataFrame
        ``from_node``, ``to_node`` (int64), ``volume`` (vehicles in the period that the trips refer to), ``cost`` (in
        the unit of the network's free-flow times).
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If the file is not a flow file; every fault is listed with its line.
    """
    return read_flows(file).rename(columns={"from": "from_node", "to": "to_node"}), []


def read_tntp_trips(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a trip table.

    Returns
    -------
    frame : DataFrame
        ``origin``, ``destination`` (text, as the file names its zones), ``trips``; one row per pair in the file.
    notes : list of str
        Notes of the reader.

    Raises
    ------
    InputError
        If the file is not a trip table; every fault is listed with its line.
    """
    table = read_trip_table(file)
    places = np.array(table.places, dtype=object)
    frame = pd.DataFrame(
        {"origin": places[table.origin], "destination": places[table.destination], "trips": table.trips}
    )
    return frame, list(table.notes)


_DEPARTING = ("vehicle", "trip")


def read_sumo_vehicles(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the departure time, first edge and last edge of each vehicle or trip.

    Parameters
    ----------
    file
        Route file with vehicles that contain their route, or trips between edges; plain or gzipped.

    Returns
    -------
    frame : DataFrame
        ``vehicle`` (text), ``depart_s``, ``type`` (None where not given), ``from_edge``, ``to_edge``, ``edges`` (number
        of edges of the route; NaN for a trip, whose route SUMO finds). In the order of the file.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If the file is not a route file, a departure is not a number of seconds, or a vehicle has no route; the message
        names the line.
    """
    ends: list[tuple[str, float, str | None, str, str, float]] = []
    waiting: tuple[str, float, str | None] | None = None  # a vehicle whose route has not been read yet
    begun = 0
    for element in elements_of(file):
        attributes, where = element.attributes, f"{file}: line {element.line}"
        if attributes is None:
            if element.name == "vehicle" and waiting is not None:
                raise InputError([f"{file}: line {begun}: a vehicle must have a route with edges"])
        elif element.name in _DEPARTING:
            known = _departure(attributes, element.name, where)
            if element.name == "vehicle":
                waiting, begun = known, element.line
            elif "from" in attributes and "to" in attributes:
                ends.append((*known, attributes["from"], attributes["to"], np.nan))
            else:
                raise InputError([f"{where}: a trip must have a from and a to"])
        elif element.name == "route" and waiting is not None and (edges := attributes.get("edges", "").split()):
            ends.append((*waiting, edges[0], edges[-1], float(len(edges))))
            waiting = None
    if not ends:
        raise InputError([f"{file}: it holds no vehicle and no trip"])
    frame = pd.DataFrame(ends, columns=["vehicle", "depart_s", "type", "from_edge", "to_edge", "edges"])
    again = frame["vehicle"].duplicated()
    if again.any():
        raise InputError([f"{file}: a vehicle must occur only once, got {frame['vehicle'][again].iloc[0]!r} twice"])
    return frame, []


def _departure(attributes: Mapping[str, str], kind: str, where: str) -> tuple[str, float, str | None]:
    """Read the name, departure time and type of a vehicle or trip."""
    try:
        depart_s = float(attributes.get("depart", ""))
    except ValueError:
        depart_s = np.nan
    if not np.isfinite(depart_s):
        raise InputError([f"{where}: depart must be a number of seconds, got {attributes.get('depart')!r}"])
    if "id" not in attributes:
        raise InputError([f"{where}: a {kind} must have an id"])
    return attributes["id"], depart_s, attributes.get("type")


NEW_YORK = (-74.2589, 40.4774, -73.7004, 40.9176)
"""Western, southern, eastern and northern limit of New York City, degrees."""
MARGIN_DEGREES = 0.05
"""How far outside these limits a trip may go and still count as a trip of New York City, degrees."""


def read_traces(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read recorded positions as the trace engine does.

    Parameters
    ----------
    file
        Any format of `simulator.traffic.trace.read_trace`.

    Returns
    -------
    frame : DataFrame
        ``vehicle`` (text); ``time_s`` (seconds since 1970 where the file has dates, else as recorded) and, for dates,
        ``time`` (UTC); ``lon``, ``lat``; ``speed_mps`` (NaN where not recorded). Sorted by vehicle, then time.
    notes : list of str
        What was left out, and how ambiguous data were read.

    Raises
    ------
    InputError
        If the file is not a recording.
    """
    trace = read_trace(file)
    frame = trace.frame()
    if trace.calendar:
        frame.insert(2, "time", pd.to_datetime(frame["time_s"], unit="s", utc=True))
    return frame, list(trace.left_out)


def read_timed_paths(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read taxi trips of New York City; a trip that leaves the city by more than `MARGIN_DEGREES` is left out.

    Parameters, returns and errors are those of `read_traces`.
    """
    frame, notes = read_traces(file)
    west, south, east, north = NEW_YORK
    lon, lat = frame["lon"].to_numpy(), frame["lat"].to_numpy()
    away = np.maximum.reduce([west - lon, lon - east, south - lat, lat - north]) > MARGIN_DEGREES
    gone = frame["vehicle"].isin(frame.loc[away, "vehicle"].unique())
    if gone.any():
        names = ", ".join(sorted(frame.loc[gone, "vehicle"].unique())[:20])
        notes.append(f"trips that leave New York City, left out: {names} ({int(gone.sum()):,} points)")
    return frame[~gone].reset_index(drop=True), notes

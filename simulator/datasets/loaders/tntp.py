"""Loader of links, nodes, trips and published flows of the Transportation Networks test problems."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.errors import DatasetError
from simulator.roads.errors import RoadsError
from simulator.roads.tntp.flows import read_flows
from simulator.roads.tntp.links import TntpLinks
from simulator.roads.tntp.nodes import TntpNodes
from simulator.traffic.demand.trip_files import read_tntp_trips
from simulator.traffic.errors import TrafficError


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
    DatasetError
        If the file is not a network file; every fault is listed with its line.
    """
    try:
        links = TntpLinks.from_file(file)
    except RoadsError as error:
        raise DatasetError(error.faults) from None
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
    DatasetError
        If the file is not a node file; every fault is listed with its place.
    """
    try:
        nodes = TntpNodes.from_file(file)
    except RoadsError as error:
        raise DatasetError(error.faults) from None
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
    DatasetError
        If the file is not a flow file; every fault is listed with its line.
    """
    try:
        return read_flows(file).rename(columns={"from": "from_node", "to": "to_node"}), []
    except RoadsError as error:
        raise DatasetError(error.faults) from None


def read_trip_table(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a trip table.

    Returns
    -------
    frame : DataFrame
        ``origin``, ``destination`` (text, as the file names its zones), ``trips``; one row per pair in the file.
    notes : list of str
        Notes of the reader.

    Raises
    ------
    DatasetError
        If the file is not a trip table; every fault is listed with its line.
    """
    try:
        table = read_tntp_trips(file)
    except (RoadsError, TrafficError) as error:
        raise DatasetError(error.faults) from None
    places = np.array(table.places, dtype=object)
    frame = pd.DataFrame(
        {"origin": places[table.origin], "destination": places[table.destination], "trips": table.trips}
    )
    return frame, list(table.notes)

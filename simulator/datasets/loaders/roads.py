"""Loader of road links from OpenStreetMap extracts and SUMO networks."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.roads.network import RoadNetwork


def read_osm_roads(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the links of an OpenStreetMap extract; see `links_of`.

    Raises
    ------
    InputError
        If the file is not an extract, or the library that reads it is not installed.
    """
    from simulator.roads.osm import read_osm  # noqa: PLC0415  optional libraries come with it

    try:
        network, report = read_osm(file)
    except InputError as error:
        raise InputError(error.faults) from None
    return links_of(network), list(report.notes())


def read_sumo_links(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the links of a SUMO network that cars may use; see `links_of`.

    Raises
    ------
    InputError
        If the file is not a network, or sumolib is not installed.
    """
    from simulator.roads.sumo.net import read_sumo_net  # noqa: PLC0415  optional libraries come with it

    try:
        network, report = read_sumo_net(file)
    except InputError as error:
        raise InputError(error.faults) from None
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

"""Loader of the nodes and edges of street graphs that others made from OpenStreetMap."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.rows import DatasetRows

_MPH = 1609.344 / 3600
_KPH = 1 / 3.6


def read_drive_nodes(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read nodes.

    Parameters
    ----------
    file
        CSV: ``idx,osm_idx,lat,lon``.

    Returns
    -------
    frame : DataFrame
        ``node``, ``osm_id`` (int64), ``lon``, ``lat``.
    notes : list of str
        Empty.

    Raises
    ------
    InputError
        If a field is invalid, or a node occurs twice.
    """
    rows = DatasetRows.from_file(file, needed=("idx", "osm_idx", "lat", "lon"))
    node = rows.integers("idx")
    rows.refuse("idx", pd.Series(node).duplicated().to_numpy(), "there once")
    return pd.DataFrame({"node": node, "osm_id": rows.integers("osm_idx"), **rows.places("lon", "lat")}), []


def read_drive_edges(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read edges, with speeds in their correct unit.

    The speed is ``maxspeed``, in miles per hour, if the edge has one. The file's ``speed_kph``, which repeats that
    number as km/h, is used only otherwise. The free-flow time is computed from length and speed. Capacities are
    divided by the number of lanes.

    Parameters
    ----------
    file
        CSV: ``src,dst,length,highway,maxspeed,lanes,oneway,speed_kph,capacity_vph`` and others.

    Returns
    -------
    frame : DataFrame
        ``from_node``, ``to_node`` (int64), ``length_m``, ``speed_mps``, ``free_flow_s``, ``lanes`` (int64),
        ``capacity_vph`` (per lane), ``one_way`` (bool), ``class``.
    notes : list of str
        The number of speeds from each source.

    Raises
    ------
    InputError
        If a field is invalid.
    """
    needed = ("src", "dst", "length", "highway", "maxspeed", "lanes", "oneway", "speed_kph", "capacity_vph")
    rows = DatasetRows.from_file(file, needed=needed)
    length = rows.numbers("length", at_least=0)
    posted = rows.numbers("maxspeed", at_least=0, empty=True)
    speed = np.where(np.isnan(posted), rows.numbers("speed_kph", at_least=0) * _KPH, posted * _MPH)
    rows.refuse("maxspeed", speed <= 0, "above 0, or speed_kph where there is none")
    lanes = rows.integers("lanes", at_least=1)
    rows.refuse("oneway", ~rows.frame["oneway"].isin(["True", "False"]).to_numpy(), "True or False")
    frame = pd.DataFrame(
        {
            "from_node": rows.integers("src"),
            "to_node": rows.integers("dst"),
            "length_m": length,
            "speed_mps": speed,
            "free_flow_s": length / speed,
            "lanes": lanes,
            "capacity_vph": rows.numbers("capacity_vph", at_least=0) / lanes,
            "one_way": rows.frame["oneway"].to_numpy() == "True",
            "class": rows.texts("highway"),
        }
    )
    signs = int(np.isfinite(posted).sum())
    return frame, [f"speeds of {signs:,} edges are maxspeed in mph, of {len(frame) - signs:,} the file's guess in km/h"]

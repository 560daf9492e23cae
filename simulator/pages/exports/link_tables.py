"""Files of the links by interval of a run: SUMO's edge data, and the link performance of GMNS tools.

The edge data are described by https://sumo.dlr.de/docs/Simulation/Output/Lane-_or_Edge-based_Traffic_Measures.html,
which sumolib, netedit and sumo-gui read. GMNS itself (https://github.com/zephyr-data-specs/GMNS) has no table of
results; ``link_performance.csv`` is the one that DTALite and Path4GMNS write beside its link table.
"""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from simulator.files.atomic_write import export_file
from simulator.files.errors import InputError
from simulator.results.run import RunResult

HOW_TO_KEEP = "a run has them if it states an interval: crowdveil run SCENARIO --set report.link_interval_s=300"


def named_links(data: RunResult) -> pd.DataFrame:
    """Return the links by interval with the columns of their roads and `id`.

    The id comes from the source of the roads if it names one link each, as SUMO's edges; else it is the link's number.

    Raises
    ------
    InputError
        If the run has none.
    """
    if data.links is None or data.roads is None:
        raise InputError([f"this run has no links by interval; {HOW_TO_KEEP}"])
    roads = pd.DataFrame(data.roads)
    ids = roads.get("source_id", pd.Series(dtype=str))
    named = len(ids) and ids.notna().all() and ids.is_unique
    return data.links.merge(roads.assign(id=ids if named else roads["link"]), on="link", validate="many_to_one")


def write_edge_data(data: RunResult, file: Path, *, overwrite: bool) -> None:
    """Write the links by interval as SUMO's edge data; times are seconds from the start of the run.

    Parameters
    ----------
    data
        The run.
    file
        The file to write.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the run has no links by interval; or the file exists and may not be replaced, or cannot be written.
    """
    table = named_links(data)
    lasts_s = table["to_s"] - table["from_s"]
    values = {
        "id": table["id"],
        "sampledSeconds": table["occupied_s"],
        "traveltime": table["travel_time_s"],
        "density": table["density_vpkm"],
        "laneDensity": table["density_vpkm"] / table["lanes"],
        "waitingTime": table["queue_vehicles"] * lasts_s,
        "speed": table["mean_speed_mps"],
        "speedRelative": table["mean_speed_mps"] / table["speed_mps"],
        "entered": table["entered"],
        "left": table["left"],
        "flow": table["left"] / lasts_s * 3600.0,
    }
    texts = pd.DataFrame({name: _attributes(name, column) for name, column in values.items()}).sum(axis=1)
    lines = ["<meandata>"]
    for (from_s, to_s), rows in texts.groupby([table["from_s"], table["to_s"]]):
        lines += [f'  <interval begin="{from_s:.2f}" end="{to_s:.2f}" id="crowdveil">']
        lines += [f"    <edge{text}/>" for text in rows]
        lines += ["  </interval>"]
    lines += ["</meandata>", ""]

    def fill(path: Path) -> None:
        path.write_text("\n".join(lines), encoding="utf-8")

    export_file(file, fill, overwrite=overwrite)


def _attributes(name: str, values: pd.Series) -> list[str]:
    """Return an attribute of each row; none where a value is not known."""
    if values.dtype == np.float64:
        return ["" if np.isnan(value) else f' {name}="{value:.2f}"' for value in values]
    return [f" {name}={quoteattr(str(value))}" for value in values]


def write_link_performance(data: RunResult, file: Path, *, overwrite: bool) -> None:
    """Write the links by interval as ``link_performance.csv``: minutes, km/h, vehicles/km; as `write_edge_data`."""
    table = named_links(data)
    clock = data.record.clock
    form = "%H%M" if not (table["to_s"] % 60).any() else "%H%M:%S"
    performance = pd.DataFrame(
        {
            "link_id": table["id"],
            "from_node_id": table["from_node"],
            "to_node_id": table["to_node"],
            "time_period": [
                "_".join(clock.at(second).strftime(form) for second in ends)
                for ends in zip(table["from_s"], table["to_s"], strict=True)
            ],
            "volume": table["left"],
            "travel_time": table["travel_time_s"] / 60.0,
            "speed": table["mean_speed_mps"] * 3.6,
            "queue": table["queue_vehicles"],
            "density": table["density_vpkm"],
            "geometry": [line.wkt for line in table["geometry"]],
        }
    )
    export_file(
        file,
        lambda path: performance.to_csv(path, index=False, lineterminator="\n", float_format="%.6g"),
        overwrite=overwrite,
    )

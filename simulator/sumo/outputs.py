"""SUMO's own outputs about edges and trips, from which the tables `links` and `trips` of its runs are made.

SUMO counts on edges (https://sumo.dlr.de/docs/Simulation/Output/Lane-_or_Edge-based_Traffic_Measures.html): lanes
within junctions are no edges, so time spent there is on no link. A vehicle that SUMO teleports leaves its edge.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, StateArray
from simulator.files.messages import Note, counted
from simulator.files.xml_elements import elements_of
from simulator.traffic.engine import State
from simulator.traffic.link_intervals import LINK_COLUMNS, trips_frame

TRIPS = "crowdveil-trips.xml"
TRIP_OPTIONS = {"tripinfo-output": TRIPS, "tripinfo-output.write-unfinished": "true"}
_EDGES = "crowdveil-edges.xml"
_NO_TIME_S = 1e-6
"""Durations below this are errors of rounding."""
_SUMMED = ("entered", "left", "queue_vehicles", "occupied_s")
_COLUMNS = ("link", "from_s", "to_s", *_SUMMED, "mean_speed_mps", "travel_time_s")


class EdgeOutput(NamedTuple):
    """Request for SUMO's measures on edges.

    Attributes
    ----------
    every_s
        Duration of an interval, whole steps; the last one ends with the run.
    begin_s
        SUMO's time at second 0 of the run.
    end_s
        End of the run, seconds.
    link_of
        The link of each edge of the roads.
    length_m
        (links,) float64: lengths of the links.
    """

    every_s: float
    begin_s: float
    end_s: float
    link_of: Mapping[str, int]
    length_m: FloatArray

    @property
    def _whole_s(self) -> float:
        """When the last whole interval ends; what is left of the run is a shorter one."""
        return math.floor(self.end_s / self.every_s + 1e-9) * self.every_s

    def request(self) -> str:
        """Return the content of an additional file that has SUMO write the measures."""
        parts = [(0.0, self.every_s)] if self._whole_s > 0 else []
        if self.end_s - self._whole_s > _NO_TIME_S:
            parts.append((self._whole_s, self.end_s - self._whole_s))
        lines = []
        for number, (from_s, interval_s) in enumerate(parts):
            # SUMO performs a step at the end of the run too: without an end, the last part covers its events.
            end = "" if number == len(parts) - 1 else f' end="{self.begin_s + self._whole_s:.3f}"'
            lines.append(
                f'<edgeData id="crowdveil-{number}" file="{_EDGES}" excludeEmpty="true"'
                f' begin="{self.begin_s + from_s:.3f}" period="{interval_s:.3f}"{end}/>'
            )
        return f"<additional>{''.join(lines)}</additional>"

    def read(self, folder: Path) -> tuple[pd.DataFrame, list[Note]]:
        """Read what SUMO wrote into a folder.

        Returns
        -------
        DataFrame
            The table `links` of a run (docs/reference/columns.md).
        list of Note
            How many entries into edges that are not among the roads are left out.
        """
        rows, others, from_s, to_s = [], 0, 0.0, 0.0
        for element in elements_of(folder / _EDGES, ends=False):
            edge = element.attributes or {}
            if element.name == "interval":
                from_s, to_s = float(edge["begin"]) - self.begin_s, float(edge["end"]) - self.begin_s
                to_s = to_s if from_s >= self.end_s else min(to_s, self.end_s)
            elif element.name == "edge":
                entered = int(edge["entered"]) + int(edge["departed"])
                if edge["id"] not in self.link_of:
                    others += entered
                    continue
                rows.append((self.link_of[edge["id"]], from_s, to_s, entered, *_measures(edge, to_s - from_s)))
        table = pd.DataFrame(rows, columns=[*_COLUMNS])
        # What happens at the end of the run itself counts in the last interval; no time passes in it.
        late = table["from_s"] > self.end_s - _NO_TIME_S
        last_s = self._whole_s if self.end_s - self._whole_s > _NO_TIME_S else self._whole_s - self.every_s
        table.loc[late, ["from_s", "to_s"]] = last_s, self.end_s
        table.loc[late, ["queue_vehicles", "occupied_s"]] = 0.0
        table.loc[late, ["mean_speed_mps", "travel_time_s"]] = np.nan
        how = {name: "sum" if name in _SUMMED else "first" for name in _COLUMNS[3:]}
        table = table.groupby(["link", "from_s", "to_s"], as_index=False).agg(how)
        lasts_s, length_m = table["to_s"] - table["from_s"], self.length_m[table["link"].to_numpy(dtype=np.int64)]
        table.insert(6, "density_vpkm", 1000.0 * table["occupied_s"] / lasts_s / length_m)
        left_out = counted(others, "entry", "entries")
        words = f"links by interval: {left_out} into edges that are not among the roads, left out"
        types = dict[str, type](dict.fromkeys(LINK_COLUMNS, np.float64), link=np.int32, entered=np.int64, left=np.int64)
        return table[[*LINK_COLUMNS]].astype(types), [Note("edges_not_counted", words)] if others else []


def _measures(edge: Mapping[str, str], lasts_s: float) -> tuple[float, ...]:
    """Return vehicles that left, mean queue, time spent, mean speed and travel time of an edge in an interval."""
    left, queue = int(edge["left"]) + int(edge["arrived"]), float(edge.get("waitingTime", "0")) / lasts_s
    speed_mps, travel_s = (float(edge.get(name, "nan")) for name in ("speed", "traveltime"))
    return left, queue, float(edge["sampledSeconds"]), speed_mps, travel_s if left else math.nan


def read_trips(
    file: Path, names: Sequence[str], state: StateArray, scheduled_s: FloatArray, *, begin_s: float
) -> pd.DataFrame:
    """Read SUMO's trips.

    Parameters
    ----------
    file
        SUMO's output about trips.
    names
        SUMO's id of each vehicle, in order of departure; one that occurs again is of another vehicle.
    state, scheduled_s
        (vehicles,): state at the end of the run, and scheduled departure, SUMO's time.
    begin_s
        SUMO's time at second 0 of the run.

    Returns
    -------
    DataFrame
        The table `trips` of a run (docs/reference/columns.md) without `takes_part`.
    """
    numbers = defaultdict[str, list[int]](list)
    for number in range(len(names) - 1, -1, -1):
        numbers[names[number]].append(number)
    entry_s, arrival_s, length_m, free_s = np.full((4, len(names)), np.nan)
    for element in elements_of(file, ends=False):
        trip = element.attributes or {}
        if element.name != "tripinfo" or not numbers[trip["id"]]:
            continue
        vehicle = numbers[trip["id"]].pop()
        entry_s[vehicle] = float(trip["depart"]) - begin_s
        if state[vehicle] == State.ARRIVED:
            arrival_s[vehicle] = float(trip["arrival"]) - begin_s
            length_m[vehicle] = float(trip["routeLength"])
            free_s[vehicle] = float(trip["duration"]) - float(trip["timeLoss"])
    numbered = np.arange(len(state), dtype=np.int32)
    return trips_frame(numbered, state, scheduled_s - begin_s, entry_s, arrival_s, length_m, free_s)

"""Published flows, laid on the links of a network."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from simulator.roads.errors import RoadsError
from simulator.roads.network import RoadNetwork

FloatArray = npt.NDArray[np.float64]

_SHOWN = 10


@dataclass(frozen=True, eq=False)
class PublishedFlows:
    """Volume and cost of every link, as published.

    Attributes
    ----------
    volume
        (links,) float64, vehicles in the time the trips are for.
    cost
        (links,) float64, in the file's unit of time.
    left_out
        Rows of the file on links of a part that the network was read without.
    """

    volume: FloatArray
    cost: FloatArray
    left_out: int

    @classmethod
    def matched(cls, table: pd.DataFrame, roads: RoadNetwork, *, file: str) -> "PublishedFlows":
        """Lay rows `from`, `to`, `volume`, `cost` on links; of parallel links, in the order of the file.

        Raises
        ------
        RoadsError
            If a link has no flow, or a flow no link between two nodes that are there.
        """
        index = {name: node for node, name in enumerate(roads.node_names)}
        waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
        ends = zip(roads.links.from_node.tolist(), roads.links.to_node.tolist(), strict=True)
        for link, pair in enumerate(ends):
            waiting[pair].append(link)
        volume, cost = np.full(len(roads.links), np.nan), np.full(len(roads.links), np.nan)
        faults, left_out = [], 0
        for start, end, flow, paid in table[["from", "to", "volume", "cost"]].itertuples(index=False):
            if start not in index or end not in index:
                left_out += 1
                continue
            links = waiting[index[start], index[end]]
            if not links:
                faults.append(f"a flow from node {start} to node {end}, where no further link leads")
                continue
            link = links.pop(0)
            volume[link], cost[link] = flow, paid
        for link in np.flatnonzero(np.isnan(volume)).tolist():
            start, end = (roads.node_names[at[link]] for at in (roads.links.from_node, roads.links.to_node))
            faults.append(f"no flow for the link from node {start} to node {end}")
        if faults:
            more = [f"{file}: … and {len(faults) - _SHOWN:,} more like these"] if len(faults) > _SHOWN else []
            raise RoadsError([*(f"{file}: {fault}" for fault in faults[:_SHOWN]), *more])
        return cls(volume, cost, left_out)

"""Matching: fixes put on the roads, and the ways between them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulator.files.counted import counted
from simulator.roads import RoadNetwork
from simulator.traffic.trace.nearest import match_nearest
from simulator.traffic.trace.tracks import Tracks
from simulator.traffic.trace.ways import lay_ways


@dataclass(frozen=True)
class Matching:
    """How fixes are put on the roads.

    Attributes
    ----------
    method
        "nearest": each on the link nearest to it, of links equally near on the one that runs its way. "hmm": those of
        a vehicle together, by a hidden Markov model (leuvenmapmatching).
    most_m
        A fix further from every link stays where it was recorded, on none.
    noise_m
        Of "hmm": standard deviation of recorded places.
    """

    method: Literal["nearest", "hmm"]
    most_m: float = 50.0
    noise_m: float = 10.0


def match_trace(tracks: Tracks, roads: RoadNetwork, matching: Matching) -> tuple[Tracks, list[str]]:
    """Put fixes on links, and join them by ways over the roads.

    Parameters
    ----------
    tracks
        Straight ones: every waypoint is a fix.
    roads
        In whose system they are.
    matching
        How.

    Returns
    -------
    tuple
        The tracks on the roads, and what there is to say, one sentence each.

    Raises
    ------
    TrafficError
        If the library that matches is not installed.
    """
    if matching.method == "nearest":
        link, fraction = match_nearest(tracks, roads, most_m=matching.most_m)
    else:
        from simulator.traffic.trace.hidden_markov import match_hmm  # noqa: PLC0415 - its library is an extra

        link, fraction = match_hmm(tracks, roads, most_m=matching.most_m, noise_m=matching.noise_m)
    laid, joined = lay_ways(tracks, roads, link, fraction, most_m=matching.most_m)
    lost = int(np.count_nonzero(link < 0))
    of_all = counted(len(link), "fix is", "fixes are")
    matched = (
        f"trace: {len(link) - lost:,} of {of_all} matched to roads ({matching.method}); {lost:,} with "
        f"no road within {matching.most_m:g} m left where recorded"
    )
    notes = [matched]
    if joined:
        notes.append(
            f"trace: {counted(joined, 'leg between fixes has', 'legs between fixes have')} no likely way over the "
            "roads, or an end off them: the vehicle is taken to be at the nearer of the two in time"
        )
    return laid, notes

"""Flow check: comparison of a run's link volumes with a published equilibrium and with one computed here."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scenarios.roads import TntpRoads
from scenarios.simulated_traffic import DrivenTraffic
from scenarios.units import in_seconds
from simulator.arrays import FloatArray
from simulator.files.messages import counted
from simulator.results.record import FlowCheckRecord, FlowComparison, LinkVolumes, PublishedFlowRecord
from simulator.roads import RoadNetwork
from simulator.traffic.agents import Agents
from simulator.traffic.assignment import Bpr, Equilibrium, OdPairs, PublishedFlows, find_equilibrium, relative_gap
from simulator.traffic.fleet import Fleet

GAP = 1e-5
MOST_STEPS, LEAST_STEPS = 500, 50
MOST_LOADED = 5_000_000
"""Our own assignment stops at the relative gap `GAP`, or after as many steps as load this number of pairs, which takes
a few seconds; the steps are limited by `LEAST_STEPS` and `MOST_STEPS`."""


@dataclass(frozen=True, eq=False)
class FlowCheck:
    """Published flows and trips with which a run's link volumes are compared.

    Attributes
    ----------
    section, traffic
        Sections ``[roads]``, which names the published flows, and ``[traffic]``, which names their trips.
    roads, bpr, pairs, published
        The network, its travel times by volume, all trips of the file, the published flows.
    notes
        What was left out.
    """

    section: TntpRoads
    traffic: DrivenTraffic
    roads: RoadNetwork
    bpr: Bpr
    pairs: OdPairs
    published: PublishedFlows
    notes: tuple[str, ...] = ()

    @cached_property
    def assignment(self) -> Equilibrium:
        """The user equilibrium of the file's trips, computed here from the network as it was read."""
        steps = min(MOST_STEPS, max(LEAST_STEPS, MOST_LOADED // len(self.pairs)))
        return find_equilibrium(self.bpr, self.pairs, **self._network, gap=GAP, iterations=steps)

    def record(self, engine: Fleet | Agents) -> FlowCheckRecord:
        """Compare a finished run with the published flows; return the record `flow_check` of `run.json`.

        A vehicle represents as many trips as there are in the file for each vehicle of the run. Its links are those
        it has driven and, if it is still under way, the rest of its route: so volumes include every trip that departed.
        """
        totals, published = engine.totals(), self.published.volume
        stands_for = self.pairs.total / max(len(engine.trips), 1)
        driven = engine.routes.links[: engine.routes.offsets[totals.departed]]
        volume = np.bincount(driven, minlength=len(published)).astype(np.float64) * stands_for
        departed = OdPairs.of_trips(engine.trips, departed=totals.departed, share=1.0 / stands_for)
        load = self.bpr.load(published)
        assignment = self.assignment
        assigned_s = float(assignment.volume @ self.bpr.time_s(assignment.volume)) / self.pairs.total
        links, names = self.roads.links, self.roads.node_names
        return FlowCheckRecord(
            file=str(self.section.flows),
            trips_file=self.traffic.trip_files[0],
            hours=self.section.capacity_hours,
            routing=self.traffic.routing,
            links=len(published),
            trips=self.pairs.total,
            vehicles=engine.vehicles,
            departed=totals.departed,
            unfinished=totals.departed - totals.arrived,
            stands_for=stands_for,
            published=PublishedFlowRecord(
                gap=self._gap(published, self.pairs),
                mean_trip_s=float(published @ self.bpr.time_s(published)) / self.pairs.total,
                cost_difference=self._cost_difference(),
                over_capacity=int(np.count_nonzero(load > 1.0)),
                highest_load=float(load.max()),
            ),
            assignment=FlowComparison(
                gap=assignment.gap,
                mean_trip_s=assigned_s,
                iterations=assignment.iterations,
                **compare(assignment.volume, published),
            ),
            run=FlowComparison(
                gap=self._gap(volume, departed) if len(departed) else None,
                mean_trip_s=totals.mean_trip_s if totals.arrived else None,
                **compare(volume, published),
            ),
            notes=[*self.notes, *self._not_unique(assignment.volume)],
            volumes=LinkVolumes(
                from_=[str(names[node]) for node in links.from_node.tolist()],
                to=[str(names[node]) for node in links.to_node.tolist()],
                capacity=_rounded(self.bpr.capacity),
                published=_rounded(published),
                assignment=_rounded(assignment.volume),
                run=_rounded(volume),
            ),
        )

    def _not_unique(self, assigned: FloatArray) -> list[str]:
        """Return a note on links whose cost does not rise with volume, on which an equilibrium's volume may differ."""
        constant = (self.bpr.b == 0) | (self.bpr.power == 0)
        if not constant.any():
            return []
        squared = (assigned - self.published.volume) ** 2
        links = counted(int(constant.sum()), "link costs", "links cost")
        note = (
            f"{links} the same at any volume: where routes of equal cost differ in such links only, their volumes in "
            "equilibrium are not unique, and a difference from the published ones is no error"
        )
        if not squared.any():
            return [note]
        share = float(squared[constant].sum() / squared.sum())
        return [f"{note}; {share * 100:.0f} % of the static equilibrium's squared difference is on them"]

    def _gap(self, volume: FloatArray, pairs: OdPairs) -> float:
        return relative_gap(volume, self.bpr, pairs, **self._network)

    @property
    def _network(self) -> dict[str, Any]:
        return {"links": self.roads.links, "through": self.roads.through, "banned": self.roads.banned_turns}

    def _cost_difference(self) -> float | None:
        """Return the largest relative difference between our times at the published volumes and published costs."""
        cost_s = self.published.cost * in_seconds(self.section.time_unit)
        positive = cost_s > 0
        if not positive.any():
            return None
        ours_s = self.bpr.time_s(self.published.volume)
        return float(np.max(np.abs(ours_s[positive] - cost_s[positive]) / cost_s[positive]))


def compare(volume: FloatArray, published: FloatArray) -> dict[str, float | None]:
    """Compare two volumes of every link.

    Returns
    -------
    dict
        `correlation`: Pearson's; `slope`: of the least-squares line of `volume` over `published`; `ratio` of their
        sums; `rmse`: root mean square difference, vehicles; `rmse_percent`: of the mean published volume. None if
        undefined.
    """
    spread, other = published - published.mean(), volume - volume.mean()
    together, both = float(spread @ other), float(np.sqrt((spread @ spread) * (other @ other)))
    rmse = float(np.sqrt(np.mean((volume - published) ** 2)))
    mean = float(published.mean())
    return {
        "correlation": together / both if both > 0 else None,
        "slope": together / float(spread @ spread) if spread.any() else None,
        "ratio": float(volume.sum()) / float(published.sum()) if mean > 0 else None,
        "rmse": rmse,
        "rmse_percent": 100.0 * rmse / mean if mean > 0 else None,
    }


def _rounded(volume: FloatArray) -> list[float]:
    return [round(value, 2) for value in volume.tolist()]

"""Handle of a running simulation: what the user's own SimPy processes can see and do."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import simpy

from scenarios.errors import suggestion
from simulator.experiment.components import RunComponents
from simulator.experiment.tables import rows_of_answers, tabulate_estimates
from simulator.results.tables import SCALED, with_times
from simulator.sensing.campaign import CampaignProcess, SensingContext
from simulator.sensing.query import Query
from simulator.traffic.clock import after_traffic
from simulator.traffic.engine import State, VehicleStates

_NO_CLOSURE = {
    "sumo": "SUMO moves its vehicles, and closes edges only by its own files, such as rerouters",
    "trace": "vehicles move as they were recorded",
    "entries": "vehicles move as in the run that is replayed",
    "static": "data owners do not move",
}
"""Why an engine cannot close a link, by its name in a scenario."""


class RunHandle:
    """A running simulation, as a user's process sees it.

    No method changes the coins of devices, and only `close_link` changes the movement of vehicles. So a process that
    asks nothing and closes nothing leaves every table of the run as it is.

    Parameters
    ----------
    env
        The SimPy environment of the run, which counts ticks of `traffic.step_s` seconds.
    context
        What all campaigns share.
    campaigns
        The processes of the campaigns of the scenario, by name.
    queries
        The closed queries of the run so far; more are added.
    components
        The components of the run.

    Attributes
    ----------
    end_s
        The end of the run, seconds.
    clock
        The time of day, or date and time, of each second.
    """

    def __init__(
        self,
        env: simpy.Environment,
        context: SensingContext,
        campaigns: Mapping[str, CampaignProcess],
        queries: Sequence[Query],
        components: RunComponents,
    ) -> None:
        self.env, self.end_s, self.clock = env, components.end_s, components.clock
        self._context, self._campaigns, self._queries, self._components = context, campaigns, queries, components
        self._city = components.city
        self._asked: Counter[str] = Counter()

    @property
    def time_s(self) -> float:
        """The current time, seconds."""
        return self._context.clock.seconds(self.env.now)

    def until(self, time_s: float) -> simpy.Event:
        """Return an event at a time, after all vehicles have moved; a process yields it to wait.

        Raises
        ------
        ValueError
            If the time is past.
        """
        if time_s < self.time_s:
            raise ValueError(f"time_s must be at least {self.time_s:g}, the current time, got {time_s:g}")
        return after_traffic(self.env, self._context.clock.ticks(time_s))

    def wait(self, seconds: float) -> simpy.Event:
        """Return an event after this number of seconds; see `until`."""
        return self.until(self.time_s + seconds)

    def vehicles(self) -> pd.DataFrame:
        """Return where the vehicles that have departed are now.

        Returns
        -------
        pandas.DataFrame
            `vehicle`, its number from 0; `state`: ``waiting``, ``on_road``, ``arrived`` or ``absent``; `cell`, its cell
            in the first partition, 0 outside all cells.
        """
        self._context.engine.advance()
        places = self._context.engine.places()
        states = np.array([state.name.lower() for state in sorted(State)])[places.state.astype(np.int64) - 1]
        return pd.DataFrame({"vehicle": np.arange(len(places)), "state": states, "cell": self._city.cells_of(places)})

    def links(self) -> pd.DataFrame:
        """Return the links of the roads.

        Returns
        -------
        pandas.DataFrame
            `link`, its number from 0; `from_node` and `to_node`, the names of its nodes; `length_m`, metres; `cell`,
            the cell of its middle in the first partition, 0 outside all cells.

        Raises
        ------
        ValueError
            If the scenario has no roads.
        """
        if not self._city.has_roads:
            raise ValueError("the scenario has no roads, so it has no links")
        links, names = self._city.roads.links, self._city.roads.node_names
        number = np.arange(len(links), dtype=np.int32)
        on_road = np.full(len(links), State.ON_ROAD, dtype=np.uint8)
        middle = np.full(len(links), 0.5)
        return pd.DataFrame(
            {
                "link": number,
                "from_node": [names[node] for node in links.from_node],
                "to_node": [names[node] for node in links.to_node],
                "length_m": links.length_m,
                "cell": self._city.cells_of(VehicleStates(on_road, number, middle)),
            }
        )

    def close_link(self, link: int, from_s: float, to_s: float) -> None:
        """Close a link for a time: no vehicle enters it, from another link or from its origin.

        Vehicles on the link drive on and leave it. Vehicles whose next link is closed wait before it, and are not
        forced on after `stuck_s`, whose time begins anew when the link is open again. With ``traffic.routing =
        "reactive"`` all vehicles with a closed link ahead take a route around it at the next time of re-routing; those
        that have no other path stay. Closures of one link may overlap: it is closed while any of them lasts.

        Parameters
        ----------
        link
            Number of the link, from 0, as in `links`.
        from_s, to_s
            Seconds: the link is closed in every tick at or after `from_s` and before `to_s`. The vehicles of the
            current tick have moved, so a closure from `time_s` on begins with the next tick.

        Raises
        ------
        KeyError
            If there is no such link.
        ValueError
            If `from_s` is past, `to_s` is not a finite time after it, no tick is left between them, or the traffic
            engine cannot close links.
        """
        close = getattr(self._context.engine, "close_link", None)
        if close is None:
            engine = self._components.scenario.traffic.engine
            raise ValueError(f"traffic engine {engine} cannot close links: {_NO_CLOSURE[engine]}")
        close(link, from_s, to_s)

    def published(self) -> pd.DataFrame:
        """Return the estimates of all queries closed so far.

        Returns
        -------
        pandas.DataFrame
            The columns of `estimates.parquet` without `truth` and `vehicles`, which no party of a deployment knows.
        """
        columns = ["campaign", "query", "time_s", "mechanism", "cell", *SCALED, *(f"scaled_{name}" for name in SCALED)]
        if not self._queries:
            return with_times(pd.DataFrame(columns=columns), self.clock)
        answers = rows_of_answers(self._queries, self._components.participation)
        return with_times(tabulate_estimates(answers, self._components.cells_before)[columns], self.clock)

    def ask(self, campaign: str) -> simpy.Process:
        """Ask a campaign's query once more, now; its number follows the numbers of the schedule.

        Returns
        -------
        simpy.Process
            It ends when the query is closed; a process may yield it to wait. Its value is the number of the query.

        Raises
        ------
        KeyError
            If there is no such campaign.
        ValueError
            If the query could not be closed before the end of the run, or there is a ledger: it has scheduled queries.
        """
        if campaign not in self._campaigns:
            hint = suggestion(campaign, self._campaigns)
            raise KeyError(f"there is no campaign {campaign!r}{hint}; there are {', '.join(self._campaigns)}")
        if self._components.ledger:
            raise ValueError(f"a query of campaign {campaign} cannot be added: the ledger has only scheduled queries")
        process = self._campaigns[campaign]
        asked = process.campaign
        closed_s = self.time_s + asked.schedule.lasts_s(len(asked.moments))
        published_s = closed_s + asked.deployment.delay_s
        if published_s > self.end_s:
            closes = "is published" if asked.deployment.delay_s else "closes"
            raise ValueError(
                f"a query of campaign {campaign} asked at {self.time_s:g} s{self.clock.aside(self.time_s)} {closes} at "
                f"{published_s:g} s, after the end of the run at {self.end_s:g} s{self.clock.aside(self.end_s)}"
            )
        self._asked[campaign] += 1
        number = asked.schedule.queries + self._asked[campaign]

        def query(start_s: float) -> Generator[simpy.Event, None, int]:
            yield from process.ask(self.env, number, start_s)
            return number

        return self.env.process(query(self.time_s))


UserProcess: TypeAlias = Callable[[RunHandle], Generator[simpy.Event, Any, Any]]
"""A function that returns a SimPy process, such as ``def watch(run): yield run.until(600); …``."""

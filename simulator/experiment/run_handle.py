"""Handle of a running simulation: what the user's own SimPy processes can see and do."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import simpy

from simulator.experiment.tables import tabulate_estimates
from simulator.sensing.campaign import Campaign, SensingContext, moments_of
from simulator.sensing.query import Query
from simulator.traffic.clock import after_traffic
from simulator.traffic.engine import State


class RunHandle:
    """A running simulation, as a user's process sees it.

    Its methods change neither the coins of devices nor the movement of vehicles, so a process that asks nothing leaves
    every table of the run as it is.

    Parameters
    ----------
    env
        The SimPy environment of the run, which counts ticks of `traffic.step_s` seconds.
    context
        What all campaigns share.
    campaigns
        The campaigns of the scenario, by name.
    queries
        The closed queries of the run so far; more are added.
    end_s
        The end of the run, seconds.
    """

    def __init__(
        self,
        env: simpy.Environment,
        context: SensingContext,
        campaigns: Mapping[str, Campaign],
        queries: Sequence[Query],
        *,
        end_s: float,
    ) -> None:
        self.env, self.end_s = env, end_s
        self._context, self._campaigns, self._queries = context, campaigns, queries
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
            `vehicle`, its number from 0; `state`: ``waiting``, ``on_road``, ``arrived`` or ``absent``; `cell`, 0
            outside all cells.
        """
        self._context.engine.advance()
        places = self._context.engine.places()
        states = np.array([state.name.lower() for state in sorted(State)])[places.state.astype(np.int64) - 1]
        cells = self._context.cells_of(places)
        return pd.DataFrame({"vehicle": np.arange(len(places)), "state": states, "cell": cells})

    def published(self) -> pd.DataFrame:
        """Return the estimates of all queries closed so far.

        Returns
        -------
        pandas.DataFrame
            The columns of `estimates.parquet` without `truth`, which no party of a deployment knows.
        """
        columns = ["campaign", "query", "time_s", "mechanism", "cell", "estimate", "std_error", "lower", "upper"]
        return tabulate_estimates(self._queries)[columns] if self._queries else pd.DataFrame(columns=columns)

    def ask(self, campaign: str) -> simpy.Process:
        """Ask a campaign's query once more, now; its number follows those of the schedule.

        Returns
        -------
        simpy.Process
            It ends when the query is closed; a process may yield it to wait. Its value is the number of the query.

        Raises
        ------
        KeyError
            If there is no such campaign.
        ValueError
            If the query could not be closed before the end of the run.
        """
        if campaign not in self._campaigns:
            raise KeyError(f"there is no campaign {campaign!r}; there are {', '.join(self._campaigns)}")
        asked = self._campaigns[campaign]
        closed_s = self.time_s + asked.schedule.lasts_s(len(moments_of(asked.mechanisms.values())))
        if closed_s > self.end_s:
            raise ValueError(
                f"a query of campaign {campaign} asked at {self.time_s:g} s closes at {closed_s:g} s, after the end of "
                f"the run at {self.end_s:g} s"
            )
        self._asked[campaign] += 1
        number = asked.schedule.queries + self._asked[campaign]

        def query(start_s: float) -> Generator[simpy.Event, None, int]:
            yield from asked.ask(self.env, number, start_s)
            return number

        return self.env.process(query(self.time_s))


UserProcess: TypeAlias = Callable[[RunHandle], Generator[simpy.Event, Any, Any]]
"""A function that returns a SimPy process, such as ``def watch(run): yield run.until(600); …``."""

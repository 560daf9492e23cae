"""Campaigns that are asked on roads and trips made by hand."""

import sys
from pathlib import Path

import numpy as np
import simpy

from simulator.files.resources import Stopwatch
from simulator.sensing.campaign import CampaignProcess, SensingContext
from simulator.sensing.channel import Channel
from simulator.sensing.query import Memories, QueriedPopulation
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State

sys.path.insert(0, str(Path(__file__).parents[1] / "traffic"))
from roads_by_hand import drive


def ask_on(engine_type, roads, trips, campaigns, *, until, takes_part=None, outside=0, also=(), churn=0.0, seed=1):
    """Closed queries of campaigns; `also` are states in which vehicles answer, besides those on the road."""
    built = drive(engine_type, roads, trips, until=0)
    # A new environment: `drive` above only built the engine.
    engine = engine_type(roads.links, built._physics, built.trips, built.routes, clock=Clock(1.0))
    env = simpy.Environment()
    engine.start(env)
    closed = []
    context = SensingContext(
        engine=engine,
        clock=Clock(1.0),
        population=QueriedPopulation(
            np.ones(len(trips), dtype=bool) if takes_part is None else np.array(takes_part),
            outside=outside,
            answering=(State.ON_ROAD, *also),
        ),
        channel=Channel(churn=churn),
        memories=Memories(devices=len(trips) + outside, streams=Streams(seed)),
        streams=Streams(seed),
        stopwatch=Stopwatch(),
        closed=closed.append,
    )
    for campaign in campaigns:
        env.process(CampaignProcess(campaign, context).run(env))
    env.run(until=until)
    return closed

"""Expected errors of each mechanism, with and without lost reports, as curves for the run's report."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mechanisms.local import Counts, LocalMechanism, printed_by_paper
from scenarios import Scenario
from scenarios.channel import ChannelSection
from simulator.aggregation.rounds import RoundAccount, paired_std_error
from simulator.arrays import FloatArray
from simulator.results.record import LossRecord, MechanismRecord, OccupancyTheory, PopulationTheory, PublishedLeakage
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, answers_of_devices

OCCUPANCIES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
POPULATIONS = tuple(round(10**exponent) for exponent in np.arange(2.0, 7.01, 0.5))


def error_by_occupancy(mechanism: LocalMechanism, *, asked: int, most: int) -> OccupancyTheory:
    """Return the standard error in a cell as a function of its occupancy, on an ideal channel.

    Parameters
    ----------
    mechanism
        The mechanism.
    asked
        Number of devices asked in all.
    most
        Highest occupancy of interest.

    Returns
    -------
    OccupancyTheory
        The curve.
    """
    shown = [occupancy for occupancy in OCCUPANCIES if occupancy <= min(most * 2, asked)] or [0]
    if most <= asked and most not in shown:
        shown = sorted([*shown, most])
    errors = [_first(mechanism.std_error(_truth(mechanism, occupancy, asked))) for occupancy in shown]
    return OccupancyTheory(asked=asked, occupancy=shown, std_error=errors)


def error_by_population(mechanism: LocalMechanism, *, occupancy: int) -> PopulationTheory:
    """Return the standard error in a cell of `occupancy` as a function of the devices asked: SP's constant error."""
    asked = [population for population in POPULATIONS if population >= max(occupancy, 1)]
    errors = [_first(mechanism.std_error(_truth(mechanism, occupancy, population))) for population in asked]
    return PopulationTheory(occupancy=occupancy, asked=asked, std_error=errors)


def _truth(mechanism: LocalMechanism, occupancy: int, asked: int) -> Counts:
    """Return the truth with `occupancy` devices in cell 1 and all others outside, (cells + 1,) int64."""
    truth = np.zeros(mechanism.cells + 1, dtype=np.int64)
    truth[0], truth[1] = asked - occupancy, occupancy
    return truth


def _first(errors: FloatArray) -> float | None:
    """Return the error in cell 1; None if it is unknown."""
    error = float(errors[0])
    return error if math.isfinite(error) else None


def describe_mechanisms(
    scenario: Scenario, mechanisms: Mapping[str, LocalMechanism], queries: Sequence[Query], scores: pd.DataFrame
) -> list[MechanismRecord]:
    """Return the record of each mechanism in `run.json`: its parameters, its theory, and its paper's leakage."""
    counted = [query for query in queries if query.statistic == "count"]
    asked = max((account.asked for q in counted or queries for a in q.answers for account in a.rounds), default=0)
    most = max((int(query.truth[1:].max()) for query in queries), default=0)
    mean = float(np.mean([query.truth[1:].mean() for query in queries])) if queries else 0.0
    intervals = dict(scores.groupby("mechanism")["interval"].first())
    return [
        MechanismRecord(
            name=section.name,
            kind=section.kind,
            parameters=section.parameters,
            rounds=mechanisms[section.name].rounds,
            # In a run that asks only for speeds, the other mechanisms answer no query.
            interval=str(intervals[section.name]) if section.name in intervals else None,
            theory=error_by_occupancy(mechanisms[section.name], asked=asked, most=most),
            scaling=error_by_population(mechanisms[section.name], occupancy=max(1, round(mean))),
            printed=_printed(mechanisms[section.name]),
        )
        for section in scenario.mechanisms
    ]


def _printed(mechanism: LocalMechanism) -> PublishedLeakage:
    """Return the leakage stated in the paper; an infinite ε is None, since JSON has no infinity."""
    printed = printed_by_paper(mechanism)
    if printed is None:
        return PublishedLeakage(epsilon=None, equation=None, note="no paper states an ε for it")
    epsilon = printed.epsilon if math.isfinite(printed.epsilon) else None
    return PublishedLeakage(epsilon=epsilon, equation=printed.equation, note=printed.note)


LOSS_POPULATIONS = tuple(round(10**exponent) for exponent in np.arange(4.0, 8.01, 0.5))


def describe_loss(channel: ChannelSection, campaigns: Sequence[Campaign], queries: Sequence[Query]) -> list[LossRecord]:
    """Return the theoretical error under this run's losses, by number of devices, for each campaign and mechanism.

    The cell considered holds as many vehicles as a cell of the campaign did on average; all other devices are outside.
    Rounds lose reports independently of one another, at the rates of this run. In fact a device's
    losses are not independent if they come in bursts; or if devices leave and the mechanism asks twice after the
    query's first moment, as a device that leaves misses every later round.

    Parameters
    ----------
    channel
        Section ``[channel]`` of the scenario.
    campaigns
        The campaigns of the run. Those whose budget asks only some devices at a query are left out: devices that are
        not asked are no loss.
    queries
        Closed queries.

    Returns
    -------
    list of LossRecord
        For campaigns that count and lost some reports but not all.
    """
    described = []
    named = {campaign.name: campaign for campaign in campaigns if not campaign.schedules}
    asked = [query for query in queries if query.campaign in named]
    for (campaign, name), answered in answers_of_devices(asked).items():
        mechanism, answers = named[campaign].mechanisms[name], [answer for _, answer in answered]
        received = [_share([answer.rounds[row] for answer in answers]) for row in range(mechanism.rounds)]
        if not 0.0 < min(received) < 1.0:
            continue
        occupancy = max(1, round(float(np.mean([query.truth[1:].mean() for query, _ in answered]))))
        populations = [devices for devices in LOSS_POPULATIONS if devices >= occupancy]
        truths = [_truth(mechanism, occupancy, devices) for devices in populations]
        both = math.prod(received)
        paired = [paired_std_error(mechanism, truth, paired=max(1, round(both * truth.sum()))) for truth in truths]
        # A device that leaves misses two rounds if two are asked after the moment that fixes the devices of a query.
        leaves = channel.churn > 0.0 and mechanism.rounds > min(mechanism.truth_round, 2)
        described.append(
            LossRecord(
                campaign=campaign,
                mechanism=name,
                rounds=mechanism.rounds,
                pairs=any(answer.paired for answer in answers),
                can_pair=named[campaign].deployment.can_pair,
                independent=channel.burst_s == 0.0 and not leaves,
                heard=received,
                occupancy=occupancy,
                asked=populations,
                ideal=[_first(mechanism.std_error(truth)) for truth in truths],
                unpaired=[_first(_unpaired(mechanism, truth, received)) for truth in truths],
                paired=[_first(errors) for errors in paired] if mechanism.rounds > 1 else None,
            )
        )
    return described


def _share(accounts: Sequence[RoundAccount]) -> float:
    """Return the share of the devices asked that were received in a round, whether or not they were counted."""
    asked = sum(account.asked for account in accounts)
    received = sum(account.counted + account.unpaired for account in accounts)
    return received / asked if asked else 0.0


def _unpaired(mechanism: LocalMechanism, truth: Counts, received: Sequence[float]) -> FloatArray:
    asked = int(truth.sum())
    counted = [max(1, round(share * asked)) for share in received]
    return mechanism.std_error(truth, asked=[asked] * mechanism.rounds, counted=counted)

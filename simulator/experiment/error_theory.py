"""Expected errors of each mechanism, with and without lost reports, as curves for the run's report."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism, printed_by_paper
from scenarios import Scenario
from simulator.aggregation.pairing import paired_std_error
from simulator.aggregation.round_statistics import RoundAccount
from simulator.experiment.run_record import (
    LossRecord,
    MechanismRecord,
    OccupancyTheory,
    PopulationTheory,
    PublishedLeakage,
)
from simulator.sensing.query import Query

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
    errors = [_std_error(mechanism, occupancy, asked) for occupancy in shown]
    return OccupancyTheory(asked=asked, occupancy=shown, std_error=errors)


def error_by_population(mechanism: LocalMechanism, *, occupancy: int) -> PopulationTheory:
    """Return the standard error in a cell of `occupancy` as a function of the devices asked: SP's constant error."""
    asked = [population for population in POPULATIONS if population >= max(occupancy, 1)]
    errors = [_std_error(mechanism, occupancy, population) for population in asked]
    return PopulationTheory(occupancy=occupancy, asked=asked, std_error=errors)


def _std_error(mechanism: LocalMechanism, occupancy: int, asked: int) -> float | None:
    """Return the standard error in cell 1 of `occupancy` if all other devices are outside; None if unknown."""
    truth = np.zeros(mechanism.cells + 1, dtype=np.int64)
    truth[0], truth[1] = asked - occupancy, occupancy
    error = float(mechanism.std_error(truth)[0])
    return error if math.isfinite(error) else None


def describe_mechanisms(
    scenario: Scenario,
    mechanisms: Mapping[str, LocalMechanism],
    queries: Sequence[Query],
    scores: pd.DataFrame,
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
    finite = math.isfinite(printed.epsilon)
    epsilon = printed.epsilon if finite else None
    return PublishedLeakage(epsilon=epsilon, equation=printed.equation, note=printed.note)


LOSS_POPULATIONS = tuple(round(10**exponent) for exponent in np.arange(4.0, 8.01, 0.5))

Mechanisms = Mapping[str, LocalMechanism]


def describe_loss(
    mechanisms: Mechanisms, queries: Sequence[Query], *, independent: bool = True, churn: bool = False
) -> list[LossRecord]:
    """Return the theoretical error under this run's losses, by number of devices, for each campaign and mechanism.

    The cell considered holds as many vehicles as a cell of the campaign did on average; all other devices are outside.
    Rounds lose reports independently of one another, at the rates of this run (papers.md, item 6).

    Parameters
    ----------
    mechanisms
        By name.
    queries
        Closed queries.
    independent
        Whether a device's losses in two rounds really are independent; repeated in the result.
    churn
        Whether devices leave. A device that leaves misses every later round, so the losses of mechanisms that ask twice
        after the query's first moment are not independent.

    Returns
    -------
    list of LossRecord
        For campaigns that count and lost some reports but not all.
    """
    described = []
    for (campaign, name), found in _gathered(queries).items():
        mechanism = mechanisms[name]
        received = [_share(found, round_) for round_ in range(mechanism.rounds)]
        if not 0.0 < min(received) <= 1.0 or min(received) == 1.0:
            continue
        occupancy = max(1, round(float(np.mean([query.truth[1:].mean() for query, _ in found]))))
        truths = [_truth(mechanism.cells, occupancy, asked) for asked in LOSS_POPULATIONS]
        both = math.prod(received)
        several = mechanism.rounds > 1
        described.append(
            LossRecord(
                campaign=campaign,
                mechanism=name,
                rounds=mechanism.rounds,
                pairs=any(answer.paired for query, _ in found for answer in query.answers if answer.mechanism == name),
                independent=independent and not (churn and _asked_again(mechanism)),
                heard=received,
                occupancy=occupancy,
                asked=list(LOSS_POPULATIONS),
                ideal=[_first(mechanism.std_error(truth)) for truth in truths],
                unpaired=[_first(_unpaired(mechanism, truth, received)) for truth in truths],
                paired=[
                    _first(paired_std_error(mechanism, truth, paired=max(1, round(both * truth.sum()))))
                    for truth in truths
                ]
                if several
                else None,
            )
        )
    return described


def _asked_again(mechanism: LocalMechanism) -> bool:
    """Return whether two rounds or more are asked after the moment that fixes the devices a query asks."""
    return mechanism.rounds > min(mechanism.truth_round, 2)


def _gathered(queries: Sequence[Query]) -> dict[tuple[str, str], list[tuple[Query, list[RoundAccount]]]]:
    found: dict[tuple[str, str], list[tuple[Query, list[RoundAccount]]]] = {}
    for query in queries:
        if query.statistic == "count":
            for answer in query.answers:
                if answer.rounds:  # refined answers have none: no device was asked for them
                    found.setdefault((query.campaign, answer.mechanism), []).append((query, answer.rounds))
    return found


def _share(found: Sequence[tuple[Query, list[RoundAccount]]], round_: int) -> float:
    """Return the share of the devices asked that were received in a round, whether or not they were counted."""
    accounts = [rounds[round_] for _, rounds in found]
    asked = sum(account.asked for account in accounts)
    received = sum(account.counted + account.unpaired for account in accounts)
    return received / asked if asked else 0.0


def _truth(cells: int, occupancy: int, asked: int) -> Any:
    truth = np.zeros(cells + 1, dtype=np.int64)
    truth[0], truth[1] = max(asked - occupancy, 0), occupancy
    return truth


def _unpaired(mechanism: LocalMechanism, truth: Any, received: Sequence[float]) -> Any:
    asked = int(truth.sum())
    counted = [max(1, round(share * asked)) for share in received]
    return mechanism.std_error(truth, asked=[asked] * mechanism.rounds, counted=counted)


def _first(errors: Any) -> float | None:
    error = float(errors[0])
    return error if math.isfinite(error) else None

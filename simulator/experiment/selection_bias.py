"""Bias from who takes part, whose reports arrive and wrong fixes, and what an operator knows of it, to correct it."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from scenarios import Fault, Scenario, ScenarioError
from simulator.aggregation.combining import Combining
from simulator.arrays import FloatArray
from simulator.files.messages import Note, warning
from simulator.sensing.campaign import TRUTH_MOMENT, Campaign
from simulator.sensing.channel import Channel, Transmission
from simulator.sensing.query import Query, QueryAnswer
from simulator.sensing.selection import LocalShare, share_of_cells


def bias_warnings(scenario: Scenario, estimates: pd.DataFrame, queries: Sequence[Query]) -> Iterator[Note]:
    """Yield a warning for each campaign whose estimates are biased, with the bias and the share of wrong positions."""
    if "expected_bias" not in estimates:
        return
    for campaign, bias in estimates.dropna(subset="expected_bias").groupby("campaign", sort=False)["expected_bias"]:
        text = (
            f"campaigns.{campaign}: rates, zones of loss or wrong positions give estimates of all vehicles a bias that "
            f"no interval covers: {math.sqrt((bias**2).mean()):.3g} vehicles a cell (root mean square), between "
            f"{bias.min():+.3g} and {bias.max():+.3g}; it is expected_bias in estimates.parquet"
        )
        if scenario.population.position_error_m:
            own = [query for query in queries if query.campaign == campaign]
            misplaced = sum(query.occupancy.expected.misplaced for query in own if query.occupancy.expected)
            share = misplaced / max(1, sum(int(query.truth.sum()) for query in own))
            text += f". {100.0 * share:.3g} % of the devices asked reported another cell than theirs"
        yield warning("selection_bias", text, f"campaigns.{campaign}")


def check_known(
    scenario: Scenario, campaigns: Sequence[Campaign], zones: Sequence[LocalShare], rates: Sequence[LocalShare]
) -> None:
    """Check that probabilities by which a refinement divides are above 0 and known by cell.

    Raises
    ------
    ScenarioError
        If not.
    """
    weighted = [one.name for one in scenario.refinements if one.kind == "inverse_probability"]
    shares, by_class = (*rates, *zones), any(rate.vehicle_class for rate in scenario.population.rates)
    for campaign in campaigns if weighted else ():
        servers, partition = campaign.deployment, campaign.partition
        alike = not (zones and (servers.paired or servers.needed or isinstance(servers, Combining)))
        known = (one.place is None or (one.cells is not None and one.partition == partition) for one in shares)
        if by_class or not (alike and all(known) and all(one.share for one in shares)):
            rule = (
                f"needs rates above 0 and losses below 1, everywhere or by cells of partition {partition}; with zones "
                "of loss, servers that count each report for itself"
            )
            raise ScenarioError(scenario.name, [Fault(f"refinements.{weighted[0]}.kind", rule)])


def inverse_weights(
    channel: Channel, rates: Sequence[LocalShare], assumed: float, campaign: Campaign, query: Query, answer: QueryAnswer
) -> dict[str, FloatArray]:
    """Return the parameters of `inverse_probability` for an answer, from what an operator knows.

    Parameters
    ----------
    channel
        Whose losses are known.
    rates, assumed
        The known rates of participation, and the participation where no rate applies.
    campaign, query, answer
        The campaign, its query, and the answer of one of its mechanisms.
    """
    mechanism = campaign.mechanisms[answer.mechanism]
    cells, round_ = mechanism.cells, mechanism.truth_round
    weights = {"participation": assumed * share_of_cells(rates, cells, query.asked_s)}
    account = answer.rounds[round_ - 1]
    if channel.zones and account.counted:
        route = campaign.deployment.route(round_)
        sent = Transmission(TRUTH_MOMENT, query.time_s, campaign.schedule.deadline_s, route)
        arrive = math.prod(channel.probabilities(sent, number).in_time for number in range(len(route)))
        arrive *= (1.0 - channel.churn) ** (TRUTH_MOMENT - campaign.moments.start)
        # The mechanism has divided by the share of all devices that were counted.
        share = account.counted / account.asked
        weights["scale"] = share / (arrive * share_of_cells(channel.zones, cells, query.time_s))
    return weights

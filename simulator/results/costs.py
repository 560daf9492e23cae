"""What queries cost a device: messages and bytes both ways, energy of its radio, and the time until the estimate."""

from collections.abc import Sequence

import pandas as pd

WAKE_J = 12.6
"""Energy of an LTE modem that wakes up to send a message: 0.26 s of promotion at 1.21 W and 11.6 s of tail at 1.06 W
(Huang et al., "A close examination of performance and power characteristics of 4G LTE networks", MobiSys 2012)."""
UP_J, DOWN_J = 3.5e-6, 0.42e-6
"""Energy of each byte sent, 438 mW per Mbit/s, and of each byte received, 52 mW per Mbit/s (the same)."""
ENERGY = (
    f"Energy is for an LTE modem: {WAKE_J:g} J each time that it wakes up for a round, {UP_J * 1e6:g} µJ for each byte "
    f"sent and {DOWN_J * 1e6:g} µJ for each byte received (Huang et al., MobiSys 2012). A device whose modem is "
    "connected anyway spends only the energy of the bytes."
)
_SUMMED = ("answered", "messages_up", "messages_down", "bytes_up", "bytes_down")


def costs_of(rounds: pd.DataFrame, query: Sequence[str] = ("query",)) -> pd.DataFrame:
    """Return what a query costs a device that is asked, on average, by campaign and mechanism.

    Parameters
    ----------
    rounds
        The columns of `rounds.parquet`; those that an earlier version did not write may be null.
    query
        Columns that together number the query.

    Returns
    -------
    DataFrame
        One row per `campaign` and `mechanism`, with `rounds`; of a device asked, in a query: `messages_up`,
        `messages_down`, `bytes_up`, `bytes_down`, `joules`, where its modem wakes up in each round in which it answers,
        and `connected_joules`, where it is connected anyway. Rounds less than 12 s apart share a tail, so that they
        take less. `estimate_median_s` and `estimate_95_s`: seconds from the first question of a query until its
        estimate was published, of half and of 95 % of the queries at most.
    """
    place = ["campaign", "mechanism"]
    each = rounds.assign(messages_down=rounds["asked"]).groupby([*place, *query], sort=False, observed=True)
    queries = each[[*_SUMMED]].sum(min_count=1).join(each.agg({"round": "max", "asked": "max", "estimate_s": "max"}))
    of_mechanism = queries.groupby(place, sort=False, observed=True)
    asked = of_mechanism["asked"].sum().clip(lower=1)
    costs = of_mechanism[[*_SUMMED]].sum(min_count=1).astype("float64").div(asked, axis=0)
    costs["connected_joules"] = UP_J * costs["bytes_up"] + DOWN_J * costs["bytes_down"]
    costs["joules"] = WAKE_J * costs.pop("answered") + costs["connected_joules"]
    costs["estimate_median_s"] = of_mechanism["estimate_s"].quantile(0.5, interpolation="lower")
    costs["estimate_95_s"] = of_mechanism["estimate_s"].quantile(0.95, interpolation="higher")
    costs.insert(0, "rounds", of_mechanism["round"].max())
    return costs.reset_index()

"""Speed survey: devices send cell and speed to a trusted server, which publishes a statistic per cell."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mechanisms.central import ValueEstimate, ValueRelease
from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.local import invert_binomial
from mechanisms.local.common.intervals import LEVEL
from simulator.aggregation.publication import CellValues
from simulator.aggregation.round_statistics import RoundAccount, ServerAccounts
from simulator.sensing.channel import Channel, DeliveryStatus, Transmission

SpeedStatistic = Literal["mean_speed", "median_speed"]
FloatArray = npt.NDArray[np.float64]

SPEED_NBYTES = 4
"""Bytes of a speed, which is sent beside the cell: a float32."""
UNHEARD, MISSED = 0.005, 0.025
"""Of the 5 % with which an interval may miss a mean: for there being more vehicles unheard than allowed for, and for
those moving it further than allowed for; the release has the rest."""


@dataclass(frozen=True)
class SpeedQuestion:
    """What a campaign of speeds asks, and how the answers are published.

    Attributes
    ----------
    statistic
        Of the speeds in a cell.
    release
        What the server publishes.
    min_vehicles
        A cell in which fewer vehicles were heard has no row. How many there are is no secret of a release of values,
        whose neighbours differ in a value: that a row is there tells it.
    mechanism
        The baseline without privacy whose devices tell their speed, by name.
    interval
        How the release makes its intervals, in a few words.
    lower_mps, upper_mps
        What speeds are taken to lie between.
    """

    statistic: SpeedStatistic
    release: ValueRelease
    min_vehicles: int
    mechanism: str
    interval: str
    lower_mps: float
    upper_mps: float


def survey_speeds(
    question: SpeedQuestion,
    *,
    cells: npt.NDArray[np.int32],
    speeds: FloatArray,
    outside: int,
    bytes_up: int,
    channel: Channel,
    sending: Transmission,
    noise: np.random.Generator,
    draws: np.random.Generator,
) -> tuple[CellValues, FloatArray, RoundAccount]:
    """Ask every device for its cell and its speed once, and publish.

    Parameters
    ----------
    question
        What is asked.
    cells
        (vehicles,) int32: where the vehicles asked are, 0 outside every cell.
    speeds
        (vehicles,) float64, m/s.
    outside
        Devices asked besides that are in no cell, and whose speed is nobody's.
    bytes_up
        What one device sends.
    channel, sending
        What becomes of the reports.
    noise, draws
        For the channel, and for the release: its sample and its noise.

    Returns
    -------
    tuple
        The published rows; theory's root mean square error of each, (rows,) float64: the release's at the values
        heard, and what unheard vehicles of the cell, a random few, add; and what became of the reports.
    """
    devices = len(cells) + outside
    deliveries, servers = channel.deliver(devices, sending, rng=noise), ServerAccounts(sending.route)
    servers.add_reports(devices, deliveries.arrived_s, deliveries.in_time)
    fate = deliveries.fate
    counted, late, lost = (
        int(np.count_nonzero(fate == kind))
        for kind in (DeliveryStatus.COUNTED, DeliveryStatus.LATE, DeliveryStatus.LOST)
    )
    copies = channel.copies(counted, rng=noise)
    sent = (devices + copies) * bytes_up
    account = RoundAccount(
        devices,
        devices,
        counted,
        late=late,
        lost=lost,
        duplicates=copies,
        bytes_up=sent,
        servers=servers.close(counted),
    )
    values, theory = _publish(question, cells, speeds, fate[: len(cells)] == DeliveryStatus.COUNTED, draws=draws)
    return values, theory, account


def _publish(
    question: SpeedQuestion,
    cells: npt.NDArray[np.int32],
    speeds: FloatArray,
    heard: npt.NDArray[np.bool_],
    *,
    draws: np.random.Generator,
) -> tuple[CellValues, FloatArray]:
    """Publish cell by cell, in ascending order."""
    order = np.argsort(cells, kind="stable")
    rate = float(heard.mean()) if len(heard) else 1.0
    found, starts, devices = np.unique(cells[order], return_index=True, return_counts=True)
    rows = []
    for cell, start, stop in zip(found.tolist(), starts, starts + devices, strict=True):
        places = order[start:stop]
        asked, told = speeds[places], speeds[places[heard[places]]]
        if cell == 0 or len(told) < question.min_vehicles:
            continue
        truth = question.release.truth(asked)
        level = LEVEL if rate >= 1.0 or question.statistic == "median_speed" else LEVEL + UNHEARD + MISSED
        published = question.release.publish(told, rng=draws, level=level)
        lower, upper = _widened(question, published, len(told), rate)
        missed = _missed(question.statistic, asked, len(told), truth)
        theory = math.sqrt(question.release.std_error(told) ** 2 + missed)
        rows.append((cell, truth, published.value, published.std_error, lower, upper, theory))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 7).T
    values = CellValues(
        cell=table[0].astype(np.int64),
        truth=table[1],
        value=table[2],
        std_error=table[3],
        lower=table[4],
        upper=table[5],
        interval=question.interval if rate >= 1.0 else f"{question.interval}, widened for the unheard",
    )
    return values, table[6]


def _widened(question: SpeedQuestion, published: ValueEstimate, heard: int, rate: float) -> tuple[float, float]:
    """Return the interval's ends, moved out for vehicles of the cell that were not heard.

    From what is public alone, so that it tells no more than the release: the share of all vehicles heard, how many
    of the cell were, and the bounds. That gives the most vehicles there may be in the cell, but with probability
    UNHEARD, of which those heard are a random few: they miss the mean by no more than Serfling's inequality allows, but
    with probability MISSED. A median may be anywhere.
    """
    if rate >= 1.0:
        return published.lower, published.upper
    if question.statistic == "median_speed":
        return min(question.lower_mps, published.lower), max(question.upper_mps, published.upper)
    _, most = invert_binomial(heard, rate, 1.0 - 2.0 * UNHEARD)
    devices = max(heard + 1, int(most))
    sample = SimpleRandomSample(devices, heard / devices)
    reach = sample.mean_reach(question.upper_mps - question.lower_mps, alpha=MISSED)
    lower, upper = published.lower - reach, published.upper + reach
    return max(min(question.lower_mps, published.lower), lower), min(max(question.upper_mps, published.upper), upper)


def _missed(statistic: SpeedStatistic, asked: FloatArray, heard: int, truth: float) -> float:
    """Return the mean square by which the statistic of `heard` of those asked misses that of all."""
    if heard == len(asked):
        return 0.0
    sample = SimpleRandomSample(len(asked), heard / len(asked))
    return sample.mean_variance(asked) if statistic == "mean_speed" else sample.median_error(asked, truth)

"""Speed survey: devices send cell and speed to a trusted server, which publishes a statistic per cell."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mechanisms.central import ValueEstimate, ValueRelease
from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.local import invert_binomial
from mechanisms.local.common.intervals import LEVEL
from simulator.aggregation.publication import CellValues
from simulator.aggregation.rounds import RoundAccount, ServerAccounts
from simulator.arrays import Cells, FloatArray, Mask
from simulator.sensing.channel import Channel, DeliveryStatus, Transmission

SpeedStatistic = Literal["mean_speed", "median_speed"]

SPEED_NBYTES = 4
"""Bytes of a speed, which is sent in addition to the cell: a float32."""
UNRECEIVED, MISSED = 0.005, 0.025
"""Parts of the 5 % probability with which an interval may miss a mean. UNRECEIVED: that more vehicles were not received
than the interval allows for. MISSED: that those vehicles shift the mean further than it allows for. The release has the
rest."""


@dataclass(frozen=True)
class SpeedQuestion:
    """The question of a campaign that asks for speeds, and how the answers are published.

    Attributes
    ----------
    statistic
        The statistic of the speeds in a cell.
    release
        The release that the server publishes.
    min_vehicles
        A cell from which fewer vehicles were received has no row. A release of values does not protect the number of
        vehicles, since its neighbouring inputs differ in one value: the presence of a row reveals that the minimum
        was reached.
    mechanism
        The baseline without privacy whose devices report their speed, by name.
    interval
        How the release computes its intervals, in a few words.
    lower_mps, upper_mps
        The bounds within which speeds are assumed to lie, m/s.
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
    cells: Cells,
    speeds: FloatArray,
    outside: int,
    bytes_up: int,
    bytes_down: int,
    channel: Channel,
    transmission: Transmission,
    noise: np.random.Generator,
    draws: np.random.Generator,
) -> tuple[CellValues, FloatArray, RoundAccount]:
    """Ask every device for its cell and its speed once, and publish the statistic of each cell.

    Parameters
    ----------
    question
        The statistic that is asked for, and its release.
    cells
        (vehicles,) int32: the cells of the vehicles asked, 0 outside every cell.
    speeds
        (vehicles,) float64, m/s.
    outside
        The number of further devices asked that are in no cell; their speed enters no statistic.
    bytes_up, bytes_down
        Bytes that one device sends and receives.
    channel, transmission
        The channel, and the sending of the reports.
    noise, draws
        Generators for the channel, and for the sample and the noise of the release.

    Returns
    -------
    tuple
        The published rows; the theoretical root mean square error of each, (rows,) float64: the release's error at the
        values received, combined with the error due to the vehicles of the cell that were not received, a random
        subset; and the account of the round's reports.
    """
    devices = len(cells) + outside
    heard, servers = channel.hears(devices, rng=noise), ServerAccounts(transmission.route)
    deliveries, answered = channel.deliver(devices, transmission, rng=noise).of(heard), int(np.count_nonzero(heard))
    servers.add_reports(answered, deliveries.arrived_s, deliveries.in_time)
    counted, late, lost = np.bincount(deliveries.status[heard], minlength=len(DeliveryStatus)).tolist()
    copies = channel.copies(counted, rng=noise)
    messages = {"duplicates": copies, "messages_up": answered, "bytes_up": (answered + copies) * bytes_up}
    fates = {"counted": counted, "late": late, "lost": lost, "unheard": devices - answered}
    down = devices * bytes_down
    account = RoundAccount(devices, answered, **fates, **messages, bytes_down=down, servers=servers.close(counted))
    received = (heard & (deliveries.status == DeliveryStatus.COUNTED))[: len(cells)]
    values, theory = _publish(question, cells, speeds, received, draws=draws)
    return values, theory, account


def _publish(
    question: SpeedQuestion, cells: Cells, speeds: FloatArray, received: Mask, *, draws: np.random.Generator
) -> tuple[CellValues, FloatArray]:
    """Publish the statistic of each cell, in ascending order of cells."""
    order = np.argsort(cells, kind="stable")
    rate = float(received.mean()) if len(received) else 1.0
    occupied, starts, devices = np.unique(cells[order], return_index=True, return_counts=True)
    rows = []
    for cell, start, stop in zip(occupied.tolist(), starts, starts + devices, strict=True):
        places = order[start:stop]
        asked, reported = speeds[places], speeds[places[received[places]]]
        if cell == 0 or len(reported) < question.min_vehicles:
            continue
        truth = question.release.truth(asked)
        level = LEVEL if rate >= 1.0 or question.statistic == "median_speed" else LEVEL + UNRECEIVED + MISSED
        published = question.release.publish(reported, rng=draws, level=level)
        lower, upper = _widened(question, published, len(reported), rate)
        missed = _missed(question.statistic, asked, len(reported), truth)
        theory = math.sqrt(question.release.std_error(reported) ** 2 + missed)
        rows.append((cell, truth, published.value, published.std_error, lower, upper, theory))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 7).T
    interval = question.interval if rate >= 1.0 else f"{question.interval}, widened for lost reports"
    cell = table[0].astype(np.int64)
    return CellValues(cell, table[1], table[2], table[3], table[4], table[5], interval), table[6]


def _widened(question: SpeedQuestion, published: ValueEstimate, received: int, rate: float) -> tuple[float, float]:
    """Return the ends of the interval, widened for vehicles of the cell whose reports were not received.

    Only public values are used, so that the interval reveals no more than the release: the share of all vehicles
    received, the number received from the cell, and the bounds. They give an upper bound on the number of vehicles in
    the cell, which is exceeded with probability UNRECEIVED. The vehicles received are a random sample of those: its
    mean deviates by no more than Serfling's inequality allows, except with probability MISSED. A median may lie
    anywhere within the bounds.
    """
    if rate >= 1.0:
        return published.lower, published.upper
    if question.statistic == "median_speed":
        return min(question.lower_mps, published.lower), max(question.upper_mps, published.upper)
    _, most = invert_binomial(received, rate, 1.0 - 2.0 * UNRECEIVED)
    devices = max(received + 1, int(most))
    sample = SimpleRandomSample(devices, received / devices)
    reach = sample.mean_reach(question.upper_mps - question.lower_mps, alpha=MISSED)
    lower, upper = published.lower - reach, published.upper + reach
    return max(min(question.lower_mps, published.lower), lower), min(max(question.upper_mps, published.upper), upper)


def _missed(statistic: SpeedStatistic, asked: FloatArray, received: int, truth: float) -> float:
    """Return the mean squared difference between the statistics of `received` random vehicles and of all asked."""
    if received == len(asked):
        return 0.0
    sample = SimpleRandomSample(len(asked), received / len(asked))
    return sample.mean_variance(asked) if statistic == "mean_speed" else sample.median_error(asked, truth)

"""Query: one closed query, its ground truth and each mechanism's estimate."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mechanisms.local import Estimate
from mechanisms.refinement import RefinedEstimate
from simulator.aggregation.publication import CellValues
from simulator.aggregation.round_statistics import RoundAccount
from simulator.sensing.report_recorder import RecordedReports
from simulator.traffic.engine import Totals


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of one mechanism to one query."""

    mechanism: str
    estimate: Estimate | RefinedEstimate | CellValues
    std_error: npt.NDArray[np.float64]
    """(cells,) float64, or one per published row of speeds: the theoretical standard error, from the truth and the
    reports that the channel delivered."""
    rounds: list[RoundAccount]
    published: bool = False
    """Whether the estimate is a release made from the server's counts, not the mechanism's own estimate."""
    paired: bool = False
    """Whether only devices whose reports were received in every round were counted."""


@dataclass(frozen=True, eq=False)
class Query:
    """One closed query: the ground truth, known only to the simulator, and every mechanism's answer.

    Attributes
    ----------
    number
        From 1.
    asked_s, time_s
        The moment of round one, and the moment of truth, seconds.
    truth
        (cells + 1,) int64: the devices asked, by cell at the moment of truth, whether they answered or not; [0] counts
        those outside every cell.
    totals
        Totals of the fleet, such as vehicles by state, at the moment of round one.
    statistic
        What is estimated: "count", or "mean_speed" or "median_speed" in m/s, whose answers contain their own truth.
    recorded
        The recorded reports of some devices, by mechanism; for transcripts.
    """

    campaign: str
    number: int
    asked_s: float
    time_s: float
    truth: npt.NDArray[np.int64]
    totals: Totals
    answers: list[Answer]
    statistic: str = "count"
    recorded: Mapping[str, RecordedReports] = field(default_factory=dict)

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
from simulator.traffic.vehicle_states import Totals


@dataclass(frozen=True, eq=False)
class Answer:
    """What one mechanism made of one query."""

    mechanism: str
    estimate: Estimate | RefinedEstimate | CellValues
    std_error: npt.NDArray[np.float64]
    """(cells,) float64, or of speeds one a row: theory's, from the truth and what the channel did."""
    rounds: list[RoundAccount]
    published: bool = False
    """Whether a release stands between what the server counted and the estimate."""
    paired: bool = False
    """Whether only devices heard in every round were counted."""


@dataclass(frozen=True, eq=False)
class Query:
    """One closed query: the truth only the simulator knows, and every mechanism's answer.

    Attributes
    ----------
    number
        From 1.
    asked_s, time_s
        Round one's moment, and the moment of truth.
    truth
        (cells + 1,) int64: asked devices by cell at that moment, [0] outside every cell, answered or not.
    totals
        What the fleet was doing at round one's moment.
    statistic
        What is estimated: "count", or "mean_speed" or "median_speed", in m/s, whose answers bring their own truth.
    recorded
        What is kept of some devices, by mechanism; for transcripts.
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

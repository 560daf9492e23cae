"""Growth: standard errors and simulated ones as No-holders are added."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.reproduction.entry import Curve, Row
from simulator.reproduction.simulated import Z, rmse_interval, simulate_errors
from simulator.streams import Streams

if TYPE_CHECKING:
    from mechanisms.local import LocalMechanism

NO_HOLDERS = [10**power for power in range(3, 8)]
YES_HOLDERS, REPEATS = 100, 500


@dataclass(frozen=True)
class Growth:
    """One mechanism's errors for 100 Yes-holders among ever more No-holders.

    Parameters
    ----------
    name : str
    theory : tuple of float
        Standard errors at `NO_HOLDERS`, exact.
    rmse, low, high : tuple of float
        Simulated, with the interval.
    bias : float
        The largest mean error in standard errors of a mean.
    """

    name: str
    theory: tuple[float, ...]
    rmse: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bias: float

    @property
    def power(self) -> float:
        """The power of NO by which the error grows over the last decade."""
        return math.log10(self.theory[-1] / self.theory[-2])

    def at(self, no_holders: int) -> float:
        """Return the exact standard error."""
        return self.theory[NO_HOLDERS.index(no_holders)]

    def curves(self) -> list[Curve]:
        """Return theory as a line and simulation as points with their intervals."""
        return [
            Curve(f"{self.name}, theory", NO_HOLDERS, self.theory),
            Curve(f"{self.name}, simulated", NO_HOLDERS, self.rmse, "points", low=self.low, high=self.high),
        ]

    def simulated_rows(self) -> list[Row]:
        """Return theory beside simulation at every number of No-holders, and how far off the mean is."""
        rows = []
        for place, count in enumerate(NO_HOLDERS):
            holds = "holds" if self.low[place] <= self.theory[place] <= self.high[place] else "misses"
            note = (
                f"theory σ = {self.theory[place]:,.2f}; {REPEATS:,} queries, interval {self.low[place]:,.2f} to "
                f"{self.high[place]:,.2f}: {holds} it"
            )
            rows.append(Row(f"{self.name}: RMSE simulated, NO = {count:,}", None, self.rmse[place], None, note))
        return rows

    def unbiased_row(self) -> Row:
        """Return whether the estimates' mean is the truth."""
        note = (
            f"largest distance of a mean of {REPEATS:,} estimates from {YES_HOLDERS}, in its standard errors; at most "
            f"{Z:g}"
        )
        return Row(f"{self.name}: estimates are unbiased", "unbiased", self.bias, self.bias <= Z, note)


def grow(name: str, mechanism: "LocalMechanism", *, seed: int) -> Growth:
    """Compute and simulate a mechanism of one cell."""
    theory, found, bias = [], [], 0.0
    for count in NO_HOLDERS:
        truth = np.array([count, YES_HOLDERS], dtype=np.int64)
        theory.append(float(mechanism.std_error(truth)[0]))
        drawn = simulate_errors(mechanism, truth, repeats=REPEATS, rng=Streams(seed).of("alp-growth", name, count))[
            :, 0
        ]
        found.append(rmse_interval(drawn))
        bias = max(bias, abs(float(drawn.mean())) * math.sqrt(REPEATS) / float(drawn.std(ddof=1)))
    rmse, low, high = zip(*found, strict=True)
    return Growth(name, tuple(theory), rmse, low, high, bias)

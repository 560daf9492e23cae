"""Devices asked and reports counted in each round, and checks of the arguments that a mechanism takes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mechanisms.compiled import Floats, Mask, Values
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_per_round


@dataclass(frozen=True, slots=True)
class ResponseCounts:
    """Devices asked and reports counted, by round.

    The devices whose cells are estimated are those asked in the truth round: N = asked[truth_round − 1].
    The reports received in a round are assumed to be a simple random sample of these, and the devices asked in the
    smaller round a simple random sample of the devices asked in the larger round (missing at random). Loss that affects
    one cell more than another is not modelled here.

    Parameters
    ----------
    asked, counted : tuple of int
        One number per round; no round counts more devices than it asked.
    truth_round : int
        The round, counted from 1, at which the truth is fixed.
    """

    asked: tuple[int, ...]
    counted: tuple[int, ...]
    truth_round: int

    @classmethod
    def from_rounds(
        cls, counted: Iterable[int], asked: Iterable[int], *, rounds: int, truth_round: int
    ) -> "ResponseCounts":
        """Check the numbers given by the caller and store them."""
        asked, counted = check_per_round("asked", asked, rounds), check_per_round("counted", counted, rounds)
        if any(c > a for a, c in zip(asked, counted, strict=True)):
            raise ParameterError("counted", f"must not exceed asked {list(asked)}", list(counted))
        return cls(asked, counted, truth_round)

    @classmethod
    def from_truth(
        cls, devices: int, counted: Iterable[int] | None, asked: Iterable[int] | None, *, rounds: int, truth_round: int
    ) -> "ResponseCounts":
        """Assume an ideal channel where an argument is None, and check that `asked` fits the truth."""
        asked = (devices,) * rounds if asked is None else tuple(asked)
        received = cls.from_rounds(asked if counted is None else counted, asked, rounds=rounds, truth_round=truth_round)
        if received.devices != devices:
            raise ParameterError(
                "asked", f"must be the sum of true_counts, {devices}, in round {truth_round}", received.devices
            )
        return received

    @property
    def devices(self) -> int:
        """N, the number of devices whose cells are estimated."""
        return self.asked[self.truth_round - 1]

    @property
    def ideal(self) -> bool:
        """Whether every round asked the same devices and counted them all."""
        return all(n == self.devices for n in (*self.asked, *self.counted))

    @property
    def silent(self) -> bool:
        """Whether there are devices but none was counted in some round, so that nothing can be estimated."""
        return self.devices > 0 and 0 in self.counted


def estimate_nothing(received: ResponseCounts, cells: int) -> Estimate:
    """Return the estimate without information: 0, infinite standard error (0 if no device), interval of all counts."""
    zero = np.zeros(cells)
    error = np.full(cells, np.inf if received.devices else 0.0)
    return Estimate(zero, error, zero, np.full(cells, float(received.devices)), "score")


def estimate_between(
    count: Floats, variance: QuadraticVariance, ends: tuple[Floats, Floats], received: ResponseCounts
) -> Estimate:
    """Return the estimate of an unbiased count, its theoretical standard error at the clipped count, and an interval.

    If the clipped count is outside the interval, the interval is extended to include it.
    """
    centre = np.clip(count, 0.0, received.devices)
    lower, upper = np.minimum(ends[0], centre), np.maximum(ends[1], centre)
    return Estimate(count, variance.std_error(centre), lower, upper, "score")


OUTSIDE = 0


def check_round(round_: int, rounds: int) -> int:
    """Return the round, counted from 1, after checking that the mechanism has it."""
    if round_ not in range(1, rounds + 1):
        raise ParameterError("round", f"must be in 1..{rounds}", round_)
    return round_


def check_truth(truth: Values, *, devices: int, cells: int) -> Values:
    """Return the cell of every device, (n,) int32 in 0…V, after checking shape, dtype and range."""
    if not isinstance(truth, np.ndarray) or truth.dtype != np.int32:
        raise ParameterError("truth", "must be an int32 array", getattr(truth, "dtype", type(truth).__name__))
    if truth.shape != (devices,):
        raise ParameterError("truth", f"must have one cell per device, shape {(devices,)}", truth.shape)
    if devices and truth.view(np.uint32).max() > cells:  # one pass: a negative number is a large one without its sign
        least, greatest = int(truth.min()), int(truth.max())
        rule = f"must be a cell in 1..{cells}, or 0 outside every cell"
        raise ParameterError("truth", rule, least if least < OUTSIDE else greatest)
    return truth


def check_values(reports: Values, *, outputs: int) -> Values:
    """Return one output per device, (n,) int32 in 0…outputs − 1, after checking shape, dtype and range.

    Reports to be added up may come from other code. An output out of range must not reach a compiled kernel, where it
    would be written outside the tally.
    """
    if not isinstance(reports, np.ndarray) or reports.dtype != np.int32 or reports.ndim != 1:
        raise ParameterError(
            "reports", "must be an (n,) int32 array", getattr(reports, "dtype", type(reports).__name__)
        )
    if reports.size and reports.view(np.uint32).max() >= outputs:
        least, greatest = int(reports.min()), int(reports.max())
        raise ParameterError("reports", f"must be outputs in 0..{outputs - 1}", least if least < 0 else greatest)
    return reports


def check_where(where: Mask | None, *, devices: int) -> Mask:
    """Return the mask of the devices to count; an empty mask means all devices."""
    if where is None:
        return np.empty(0, dtype=np.bool_)
    if not isinstance(where, np.ndarray) or where.dtype != np.bool_ or where.shape != (devices,):
        raise ParameterError("where", f"must be a boolean array of shape {(devices,)}", getattr(where, "shape", where))
    return where

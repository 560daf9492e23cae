"""How many devices were asked in each round, and how many of their answers were counted."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.variance import QuadraticVariance
from mechanisms.parameter import ParameterError, check_per_round


@dataclass(frozen=True, slots=True)
class Heard:
    """Devices asked and reports counted, by round.

    The devices whose cells are estimated are those asked in the truth round: N = asked[truth_round − 1].
    Which of them a round hears is taken for a simple random sample, and the devices asked in the smaller
    round for one of the larger round's (missing at random): loss that hits one cell more than another is not
    seen here.

    Parameters
    ----------
    asked, counted : tuple of int
        One number a round; no round counts more than it asked.
    truth_round : int
        The round, from 1, at which the truth is fixed.
    """

    asked: tuple[int, ...]
    counted: tuple[int, ...]
    truth_round: int

    @classmethod
    def from_rounds(cls, counted: Iterable[int], asked: Iterable[int], *, rounds: int, truth_round: int) -> "Heard":
        """Check and hold what a caller was told."""
        asked, counted = check_per_round("asked", asked, rounds), check_per_round("counted", counted, rounds)
        if any(c > a for a, c in zip(asked, counted, strict=True)):
            raise ParameterError("counted", f"must not exceed asked {list(asked)}", list(counted))
        return cls(asked, counted, truth_round)

    @classmethod
    def from_truth(
        cls,
        devices: int,
        counted: Iterable[int] | None,
        asked: Iterable[int] | None,
        *,
        rounds: int,
        truth_round: int,
    ) -> "Heard":
        """Fill in an ideal channel where nothing else was said, and check that `asked` fits the truth."""
        asked = (devices,) * rounds if asked is None else tuple(asked)
        heard = cls.from_rounds(asked if counted is None else counted, asked, rounds=rounds, truth_round=truth_round)
        if heard.devices != devices:
            raise ParameterError(
                "asked", f"must be the sum of true_counts, {devices}, in round {truth_round}", heard.devices
            )
        return heard

    @property
    def devices(self) -> int:
        """N, the devices whose cells are estimated."""
        return self.asked[self.truth_round - 1]

    @property
    def ideal(self) -> bool:
        """Whether every round asked the same devices and counted them all."""
        return all(n == self.devices for n in (*self.asked, *self.counted))

    @property
    def silent(self) -> bool:
        """Whether there are devices, and a round in which none was counted: then nothing can be estimated."""
        return self.devices > 0 and 0 in self.counted


def estimate_nothing(heard: Heard, cells: int) -> Estimate:
    """Return the estimate that knows nothing: 0, an infinite standard error (0 of no device), every count possible."""
    zero = np.zeros(cells)
    error = np.full(cells, np.inf if heard.devices else 0.0)
    return Estimate(zero, error, zero, np.full(cells, float(heard.devices)), "score")


def estimate_between(
    count: NDArray[np.float64],
    variance: QuadraticVariance,
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    heard: Heard,
) -> Estimate:
    """Return an unbiased count with theory's standard error at the clipped count, and an interval.

    The ends are moved out to the clipped count where it is beyond them.
    """
    centre = np.clip(count, 0.0, heard.devices)
    lower, upper = np.minimum(ends[0], centre), np.maximum(ends[1], centre)
    return Estimate(count, variance.std_error(centre), lower, upper, "score")

"""Publication: the release between a trusted server's counts and the public, and published statistics per cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechanisms.central import CountRelease, Generalised, LaplaceCounts, SampleThenSuppress
from mechanisms.local import Counts, Estimate
from mechanisms.local.common.response_counts import ResponseCounts, estimate_nothing
from simulator.arrays import FloatArray, IntArray

ReleaseOfSample: TypeAlias = SampleThenSuppress | LaplaceCounts | Generalised


@dataclass(frozen=True, eq=False)
class SampledCounts:
    """A release of the counts of sampled devices; perhaps not all were received.

    The release treats the sampling and the missing reports as one sampling.

    Attributes
    ----------
    sampling
        Probability that a device is sampled.
    release_at
        Function from the fraction of sampled devices that were received to the release for it: its `sampling` is the
        product of the two, and its `publish_sampled` publishes the (cells,) counts of devices sampled and received.
    """

    sampling: float
    release_at: Callable[[float], ReleaseOfSample]


@dataclass(frozen=True, eq=False)
class Publication:
    """Publication of a query's counts through a release, in place of the mechanism's own estimate.

    Counts come from a mechanism whose devices report their cell. If only n of N devices were received, each is modelled
    as received independently with probability n/N, after its sampling: the release then equals the release of one
    sampling with the product of both probabilities, unbiased for the devices asked. (Given n, those received are a
    simple random sample, whose variance is a little less.) N and n are public.

    Differences come from Sampling Privacy's two rounds. If all reports are received, D_v = C_v,2 − C_v,1 is Bin(Y_v,
    π_s), whatever the blanks were (SP eqs 14-16). So the steps that LQS takes after its sampling are taken here after
    the devices' own sampling.

    Attributes
    ----------
    release
        The release of the counts of all devices asked, or of all that sample themselves.
    sampled
        The same release in two steps, for differences and for counts with missing reports; None for a release that
        cannot be divided.
    differences
        Whether differences are published.
    """

    release: CountRelease
    sampled: SampledCounts | None = None
    differences: bool = False

    def publish(
        self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int], rng: np.random.Generator
    ) -> Estimate:
        """Return the published estimate.

        Parameters
        ----------
        counts
            (1, cells + 1) int64, the server's counts; for differences (2, cells + 1), or (2, cells, 2) of No and Yes.
        counted, asked
            Reports counted and devices asked, by round.
        rng
            Generator of the release's sampling and noise.
        """
        received = self._received(counted, asked)
        if self.differences:
            differences = counts[1] - counts[0]
            of_cells = differences[1:] if differences.ndim == 1 else differences[:, 1]
            return self._divided.release_at(1.0).publish_sampled(of_cells, rng=rng)
        held = counts[0, 1:]
        if received.silent:
            return estimate_nothing(received, len(held))
        if received.ideal:
            return self.release.publish(held, rng=rng)
        sampled = rng.binomial(held, self._divided.sampling)
        return self._thinned(received).publish_sampled(sampled, rng=rng)

    def std_error(self, true_counts: IntArray, *, asked: Sequence[int], counted: Sequence[int]) -> FloatArray:
        """Return the theoretical root mean square error, (cells,), bias included, for the (cells + 1,) truth."""
        received = self._received(counted, asked)
        if received.silent:
            return np.full(len(true_counts) - 1, np.inf)
        release = self.release if received.ideal else self._thinned(received)
        return release.std_error(true_counts[1:])

    def _received(self, counted: Sequence[int], asked: Sequence[int]) -> ResponseCounts:
        rounds = 2 if self.differences else 1
        received = ResponseCounts.from_rounds(counted, asked, rounds=rounds, truth_round=rounds)
        if self.differences and not received.ideal:
            raise ValueError("differences are the sampled devices' counts only where every report is received")
        return received

    @property
    def _divided(self) -> SampledCounts:
        if self.sampled is None:
            raise ValueError(f"{self.release!r} publishes only what was received in full")
        return self.sampled

    def _thinned(self, received: ResponseCounts) -> ReleaseOfSample:
        return self._divided.release_at(received.counted[0] / received.devices)


@dataclass(frozen=True, eq=False)
class CellValues:
    """A statistic of the devices of each cell that has a row; cells with too few devices have no row.

    Attributes
    ----------
    cell
        (rows,) int64, ascending, 1…V.
    truth
        (rows,) float64: the statistic over all devices asked that are in the cell, received or not.
    value, std_error, lower, upper
        (rows,) float64: as published.
    interval
        How the interval was computed, in a few words.
    """

    cell: IntArray
    truth: FloatArray
    value: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    interval: str

    def __len__(self) -> int:
        return len(self.cell)

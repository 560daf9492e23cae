"""Publication: the release between a trusted server's counts and the public, and published statistics per cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from mechanisms.central import CountRelease, Generalised, LaplaceCounts, SampleThenSuppress
from mechanisms.central.generalisation import GeneralisedSample
from mechanisms.local import Counts, Estimate
from mechanisms.local.common.response_counts import ResponseCounts, estimate_nothing
from simulator.arrays import FloatArray, IntArray

ReleaseOfSample: TypeAlias = SampleThenSuppress | LaplaceCounts | Generalised | GeneralisedSample


class Publication(Protocol):
    """Publication of a query's counts, in place of the mechanism's own estimate."""

    @property
    def release(self) -> CountRelease:
        """The release of the counts of all devices asked, or of all that sample themselves."""

    def publish(
        self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int], rng: np.random.Generator
    ) -> Estimate:
        """Return the published estimate.

        Parameters
        ----------
        counts
            (rounds, *tally_shape) int64, the server's counts.
        counted, asked
            Reports counted and devices asked, by round.
        rng
            Generator of the release's sampling and noise.
        """

    def std_error(self, true_counts: IntArray, *, asked: Sequence[int], counted: Sequence[int]) -> FloatArray:
        """Return the theoretical root mean square error, (cells,), bias included, for the (cells + 1,) truth."""


@dataclass(frozen=True, eq=False)
class SampledCounts:
    """A release of the counts of sampled devices, of which perhaps not all were received.

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
class PublishedCounts:
    """A release of exact counts, for a mechanism whose devices report their cell.

    If only n of N devices were received, each is modelled as received independently with probability n/N, after its
    sampling: the release is then that of one sampling with the product of both probabilities, unbiased for the devices
    asked. (Given n, those received are a simple random sample, whose variance is a little less.) N and n are public.

    Attributes
    ----------
    release
        The release of the counts of all devices.
    sampled
        The same release in two steps, for counts with missing reports; None for a release that cannot be divided.
    """

    release: CountRelease
    sampled: SampledCounts | None = None

    def publish(
        self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int], rng: np.random.Generator
    ) -> Estimate:
        """Return the published estimate for (1, cells + 1) counts."""
        received = ResponseCounts.from_rounds(counted, asked, rounds=1, truth_round=1)
        held = counts[0, 1:]
        if received.silent:
            return estimate_nothing(received, len(held))
        if received.ideal:
            return self.release.publish(held, rng=rng)
        sampled, release = self._thinned(received)
        return release.publish_sampled(rng.binomial(held, sampled.sampling), rng=rng)

    def std_error(self, true_counts: IntArray, *, asked: Sequence[int], counted: Sequence[int]) -> FloatArray:
        """Return the theoretical root mean square error, (cells,)."""
        received = ResponseCounts.from_rounds(counted, asked, rounds=1, truth_round=1)
        if received.silent:
            return np.full(len(true_counts) - 1, np.inf)
        if received.ideal:
            return self.release.std_error(true_counts[1:])
        _, release = self._thinned(received)
        return release.std_error(true_counts[1:])

    def _thinned(self, received: ResponseCounts) -> tuple[SampledCounts, ReleaseOfSample]:
        if self.sampled is None:
            raise ValueError(f"{self.release!r} publishes only what was received in full")
        return self.sampled, self.sampled.release_at(received.counted[0] / received.devices)


@dataclass(frozen=True, eq=False)
class PublishedDifferences:
    """A release of Sampling Privacy's differences, which are the sampled devices' counts if all reports are received.

    D_v = C_v,2 − C_v,1 is Bin(Y_v, π_s), whatever the blanks were (SP eqs 14-16). So the steps that LQS takes after
    its sampling are taken here after the devices' own sampling.

    Attributes
    ----------
    sampled
        The release, with the devices' sampling.
    """

    sampled: SampledCounts

    @property
    def release(self) -> CountRelease:
        """The release where every report is received."""
        return self.sampled.release_at(1.0)

    def publish(
        self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int], rng: np.random.Generator
    ) -> Estimate:
        """Return the published estimate for (2, cells + 1) counts, or (2, cells, 2) counts of No and Yes."""
        received = ResponseCounts.from_rounds(counted, asked, rounds=2, truth_round=2)
        if not received.ideal:
            raise ValueError("differences are the sampled devices' counts only where every report is received")
        differences = counts[1] - counts[0]
        of_cells = differences[1:] if differences.ndim == 1 else differences[:, 1]
        return self.sampled.release_at(1.0).publish_sampled(of_cells, rng=rng)

    def std_error(self, true_counts: IntArray, *, asked: Sequence[int], counted: Sequence[int]) -> FloatArray:
        """Return the theoretical root mean square error, (cells,)."""
        if list(asked) != list(counted):
            raise ValueError("differences are the sampled devices' counts only where every report is received")
        return self.release.std_error(true_counts[1:])


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

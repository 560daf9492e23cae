"""The kit of aggregators: sound ones pass, and each broken one fails the check that is meant for its fault."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.aggregation.combining import add_estimates, normal_estimate
from simulator.aggregation.secret_sharing import AdditiveSharing, ThresholdSharing
from simulator.kits.aggregator import AggregatorContract, check_aggregator
from simulator.kits.findings import Findings
from simulator.kits.shares import check_too_few_shares


class AddUp:
    servers = 3

    def combine(self, tallies):
        return add_estimates(tallies)


class Median(AddUp):
    def combine(self, tallies):
        scaled = [tally.scaled for tally in tallies]
        count, error = (np.median([getattr(one, name) for one in scaled], axis=0) for name in ("count", "std_error"))
        return normal_estimate(count, error, asked=tallies[0].asked_in_all)


class Forgets(AddUp):
    """Leaves out the third server."""

    def combine(self, tallies):
        return add_estimates(tallies[:2])


class Overwrites(AddUp):
    """Adds the sums of all servers to those of the first one."""

    def combine(self, tallies):
        for other in tallies[1:]:
            tallies[0].counts[...] += other.counts
        return add_estimates(tallies)


class Wavers(AddUp):
    """Draws noise that no seed determines."""

    def combine(self, tallies):
        estimate = add_estimates(tallies)
        noise = np.random.default_rng().normal(size=len(estimate))
        return normal_estimate(estimate.count + noise, estimate.std_error + 1.0, asked=tallies[0].asked_in_all)


class Global(AddUp):
    def assign(self, n, *, rng):  # noqa: ARG002 - the fault
        return np.random.randint(1, 4, n)  # noqa: NPY002 - the fault


class Missing(AddUp):
    """Assigns some devices to a server 0, which does not exist."""

    def assign(self, n, *, rng):
        return rng.integers(0, 4, n)


class Boasts(AddUp):
    """States intervals without any width."""

    def combine(self, tallies):
        estimate = add_estimates(tallies)
        return normal_estimate(estimate.count, np.zeros(len(estimate)), asked=tallies[0].asked_in_all)


class StatesHalf(AddUp):
    """States half the error, and intervals that are correct."""

    def combine(self, tallies):
        estimate = add_estimates(tallies)
        return replace(estimate, std_error=0.5 * estimate.std_error)


class TheoryDouble(AddUp):
    def std_error(self, own):
        return 2.0 * np.sqrt((np.asarray(own) ** 2).sum(axis=0))


class Drops(AddUp):
    """States that no report is valid."""

    def accepts(self, reports, mechanism):
        return np.zeros(len(reports) + 1, dtype=bool)[: len(mechanism.encode(reports)) - 1]


class Plain:
    """Shares that are the vector itself and zeros."""

    servers = needed = 3

    def split(self, vectors, *, rng):  # noqa: ARG002 - the fault
        shares = np.zeros((3, *vectors.shape), dtype=np.uint64)
        shares[0] = vectors.astype(np.int64).view(np.uint64)
        return shares

    def sum(self, shares):
        return shares.sum(axis=1, dtype=np.uint64)

    def join(self, shares, servers):  # noqa: ARG002 - all are added up
        return shares.sum(axis=0, dtype=np.uint64).view(np.int64)


class Lossy(AdditiveSharing):
    """Additive shares whose sums leave out the last server."""

    def __init__(self):
        super().__init__(3)

    def join(self, shares, servers):
        return super().join(shares[:-1], servers[:-1])


class ThirdReads(AdditiveSharing):
    """The third server receives the plain report, and the first the rest."""

    def __init__(self):
        super().__init__(3)

    def split(self, vectors, *, rng):
        pads = rng.integers(0, 2**64, size=(2, *vectors.shape), dtype=np.uint64)
        return np.stack([pads[0], -pads[0], vectors.astype(np.int64).view(np.uint64)])


class Padded(AdditiveSharing):
    """Two shares: a pad, of which `draw` makes the words, and the vector less the pad."""

    def __init__(self):
        super().__init__(2)

    def split(self, vectors, *, rng):
        pads = np.broadcast_to(self.draw(vectors.shape, rng), vectors.shape)
        return np.stack([pads, vectors.astype(np.int64).view(np.uint64) - pads])


class OnePadForAllCells(Padded):
    def draw(self, shape, rng):
        return rng.integers(0, 2**64, size=(shape[0], *(1,) * (len(shape) - 1)), dtype=np.uint64)


class FixedPad(Padded):
    def draw(self, shape, rng):  # noqa: ARG002 - the fault
        return np.uint64(0x9E3779B97F4A7C15)


class OnePadForAllDevices(Padded):
    def draw(self, shape, rng):
        return rng.integers(0, 2**64, size=(1, *shape[1:]), dtype=np.uint64)


class SamePadsInEveryQuery(Padded):
    def draw(self, shape, rng):  # noqa: ARG002 - the fault
        return np.random.default_rng(5).integers(0, 2**64, size=shape, dtype=np.uint64)


class NarrowPad(Padded):
    def draw(self, shape, rng):
        return rng.integers(0, 2**20, size=shape, dtype=np.uint64)


class PadsThatAreEven(Padded):
    def draw(self, shape, rng):
        return 2 * rng.integers(0, 2**63, size=shape, dtype=np.uint64)


class PadsRepeatAfter64(Padded):
    def draw(self, shape, rng):
        return np.resize(rng.integers(0, 2**64, size=(64, *shape[1:]), dtype=np.uint64), shape)


class OneDeviceIn500(Padded):
    def draw(self, shape, rng):
        pads = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
        pads[rng.random(shape[0]) < 0.002] = 0
        return pads


class TwoSuffice(ThresholdSharing):
    """Shamir's sharing with a polynomial of too low a degree: two shares suffice, and three are said to."""

    def __init__(self):
        super().__init__(4, 3)

    def evaluate(self, vectors, coefficients):
        coefficients[1:] = 0
        return super().evaluate(vectors, coefficients)


SMALL_WORDS = 251


class SmallOnePad(Padded):
    """One pad for all cells, modulo a number so small that words repeat by chance."""

    def split(self, vectors, *, rng):
        pads = np.broadcast_to(rng.integers(0, SMALL_WORDS, size=(len(vectors), 1), dtype=np.uint64), vectors.shape)
        return np.stack([pads, (np.mod(vectors, SMALL_WORDS).astype(np.uint64) + SMALL_WORDS - pads) % SMALL_WORDS])

    def join(self, shares, servers):  # noqa: ARG002 - all are added up
        total = (shares.sum(axis=0, dtype=np.uint64) % SMALL_WORDS).astype(np.int64)
        return np.where(total > SMALL_WORDS // 2, total - SMALL_WORDS, total)


LEAKS = [
    *(ThirdReads, OnePadForAllCells, FixedPad, OnePadForAllDevices, SamePadsInEveryQuery, NarrowPad, PadsThatAreEven),
    *(PadsRepeatAfter64, OneDeviceIn500, TwoSuffice, SmallOnePad),
]


@pytest.mark.parametrize("leak", LEAKS)
def test_shares_that_reveal_reports_are_found_with_every_seed(leak):
    for seed in range(3):
        findings = Findings()
        check_too_few_shares(leak(), findings, rng=np.random.default_rng(seed), level=1e-6)
        assert findings.faults, f"seed {seed}"


@pytest.mark.parametrize(
    "sharing",
    [
        AdditiveSharing(2),
        AdditiveSharing(2, 251),
        pytest.param(ThresholdSharing(4, 3), marks=pytest.mark.slow),
        pytest.param(ThresholdSharing(4, 2, 251), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_sound_shares_raise_no_alarm(sharing):
    for seed in range(2):
        findings = Findings()
        check_too_few_shares(sharing, findings, rng=np.random.default_rng(seed), level=1e-6)
        assert not findings.faults
        assert "Not seen" in findings.notes[-1]


def two_of_three():
    return ThresholdSharing(3, 2)


def additive():
    return AdditiveSharing(3)


@pytest.mark.parametrize("sound", [AddUp, Median, two_of_three, additive])
def test_sound_aggregators_pass(sound):
    # Most of the time is spent on stated errors.
    report = check_aggregator(sound, seed=2, noisy=400 if sound is AddUp else 40)
    assert report.passed, str(report)
    assert [result.name for result in report.results] == list(AggregatorContract.checks())


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Forgets, "unbiased"),
        (Overwrites, "own_storage"),
        (Wavers, "repeatable"),
        (Global, "global_random"),
        (Missing, "runs"),
        (Boasts, "intervals"),
        (StatesHalf, "errors"),
        (TheoryDouble, "errors"),
        (Drops, "runs"),
        (Plain, "own_storage"),
        (Lossy, "unbiased"),
    ],
)
def test_broken_aggregators_fail(broken, check):
    report = check_aggregator(broken, seed=1, noisy=400 if check in ("errors", "intervals") else 2)
    for name in (check, "errors") if check == "intervals" else (check,):
        assert not report[name].passed, str(report)

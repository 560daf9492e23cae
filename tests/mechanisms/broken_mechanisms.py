"""Mechanisms with one fault each, and the check that must find it."""

import dataclasses
import math

import numpy as np

from mechanisms import privacy
from mechanisms.local import (
    Estimate,
    KRandomizedResponse,
    LocalHashing,
    LongitudinalUnary,
    NoPrivacy,
    OptimisedUnary,
    RandomizedResponse,
    SamplingPrivacy,
)
from mechanisms.local.local_hashing import HashedReports
from mechanisms.local.sampling_privacy import Dice

REPORTS = privacy.Report | privacy.LinkedReports


def changed(estimate, **changes):
    return dataclasses.replace(estimate, **changes)


def halved(claim):
    """Return a claim of half the ε, with δ as if it were so."""
    if claim.kind == "unknown":
        return claim
    return privacy.Claim.bound(claim.epsilon / 2, lambda epsilon: claim.delta(2 * epsilon), "wishful")


class Biased(SamplingPrivacy):
    """Divides by a sampling probability an eighth too large."""

    def estimate(self, counts, *, counted, asked):
        estimate = super().estimate(counts, counted=counted, asked=asked)
        return changed(estimate, count=estimate.count / 1.125)


class WrongStandardError(SamplingPrivacy):
    def std_error(self, true_counts, **totals):
        return 0.9 * super().std_error(true_counts, **totals)


class RedrawsAfterTruth(SamplingPrivacy):
    def toss(self, memory, *, rng):
        self._rng = rng
        return super().toss(memory, rng=rng)

    def answer(self, round, truth, coins):  # noqa: A002
        thrown = coins.drawn.copy()
        again = truth > 0
        thrown[again] = super().toss(type("Memory", (), {"devices": int(again.sum())}), rng=self._rng).drawn
        return super().answer(round, truth, Dice(thrown))


class DrawsFromTheGlobalGenerator(NoPrivacy):
    def answer(self, round, truth, coins):  # noqa: A002
        reports = super().answer(round, truth, coins)
        reports[np.random.random(len(reports)) < 0.1] = 0  # noqa: NPY002
        return reports


class SharesDrawsInPairs(SamplingPrivacy):
    def toss(self, memory, *, rng):
        thrown = super().toss(memory, rng=rng).drawn
        return Dice(np.repeat(thrown[::2], 2)[: len(thrown)])


class UsesFixedSeed(SamplingPrivacy):
    def toss(self, memory, *, rng):  # noqa: ARG002
        return super().toss(memory, rng=np.random.default_rng(1))


class AnswersForNeighbour(SamplingPrivacy):
    def answer(self, round, truth, coins):  # noqa: A002
        return super().answer(round, np.roll(truth, 1), coins)


class AnswersTruthInRoundOne(SamplingPrivacy):
    def answer(self, round, truth, coins):  # noqa: A002, ARG002
        return super().answer(2, truth, coins)


class CountsCalls(SamplingPrivacy):
    """Answers differently at every tenth call."""

    calls = 0

    def answer(self, round, truth, coins):  # noqa: A002
        self.calls += 1
        reports = super().answer(round, truth, coins)
        return np.zeros_like(reports) if self.calls % 10 == 0 else reports


class RemembersTruthOfRoundOne(SamplingPrivacy):
    """In round two answers about the cells given in round one, whatever the batch."""

    told = None

    def answer(self, round, truth, coins):  # noqa: A002
        if round == 1:
            self.told = truth.copy()
        if round == 2 and self.told is not None and len(self.told) == len(truth):
            return super().answer(2, self.told, coins)
        return super().answer(round, truth, coins)


class WritesToMemory(SamplingPrivacy):
    """Changes its memory, so that later coins are all 0."""

    def enrol(self, n, *, rng):  # noqa: ARG002
        return _CountedMemory(n)

    def toss(self, memory, *, rng):
        memory.tosses += 1
        coins = super().toss(memory, rng=rng)
        return Dice(np.zeros_like(coins.drawn)) if memory.tosses > 1 else coins


class _CountedMemory:
    def __init__(self, devices):
        self.devices, self.tosses = devices, 0


class WritesToTruth(NoPrivacy):
    def answer(self, round, truth, coins):  # noqa: A002
        reports = super().answer(round, truth, coins)
        truth[:] = 0
        return reports


class ClaimsHalfEpsilon(SamplingPrivacy):
    """Claims half the ε of a report of round two."""

    def claim(self, view):
        claim = super().claim(view)
        if view != privacy.Report(2):
            return claim
        return privacy.Claim.exact(claim.epsilon / 2, lambda epsilon: claim.delta(2 * epsilon), "wishful")


class ClaimsHalfDelta(SamplingPrivacy):
    """Claims a correct infinite ε, and half of δ."""

    def claim(self, view):
        claim = super().claim(view)
        if not isinstance(view, privacy.LinkedReports):
            return claim
        return privacy.Claim.exact(math.inf, privacy.ConstantDelta(claim.delta(1.0) / 2), "wishful")


class ClaimsInfiniteForNoisyReport(RandomizedResponse):
    def claim(self, view):
        if isinstance(view, REPORTS):
            return privacy.Claim.exact(math.inf, privacy.ConstantDelta(1.0), "pessimism")
        return super().claim(view)


class ClaimsRisingDelta(RandomizedResponse):
    def claim(self, view):
        if isinstance(view, REPORTS):
            return privacy.Claim.bound(math.inf, lambda epsilon: min(1.0, 0.9 + epsilon / 100), "upside down")
        return super().claim(view)


class ClaimsDifferencesForCounts(SamplingPrivacy):
    def claim(self, view):
        if isinstance(view, privacy.ReleasedCounts):
            return super().claim(privacy.ReleasedDifferences(crowd=view.crowd, queries=view.queries))
        return super().claim(view)


class SamplesWithHigherProbability(SamplingPrivacy):
    def sample_counts(self, true_counts, *, rng):
        other = SamplingPrivacy(cells=self.cells, sampling=self.sampling + 0.1, blank_zero=self.blanks[0])
        return other.sample_counts(true_counts, rng=rng)


class DrawsCellsIndependently(SamplingPrivacy):
    """Samples each cell's blanks independently: correct for each cell in both rounds, and wrong between cells."""

    def sample_counts(self, true_counts, *, rng):
        counts = np.stack([super(DrawsCellsIndependently, self).sample_counts(true_counts, rng=rng) for _ in range(9)])
        return np.stack([counts[v, :, v] for v in range(self.cells + 1)], axis=1)


class NarrowCounts(SamplingPrivacy):
    def encode(self, reports):
        return super().encode(reports).astype(np.int32)


class InvertsTallyMask(NoPrivacy):
    def tally(self, reports, where=None):
        return super().tally(reports, None if where is None else ~where)


class EstimatesInTwoDimensions(SamplingPrivacy):
    def estimate(self, counts, *, counted, asked):
        estimate = super().estimate(counts, counted=counted, asked=asked)
        wide = {name: getattr(estimate, name)[np.newaxis] for name in ("count", "std_error", "lower", "upper")}
        return type("Wide", (), wide)()


class FailsOnEmptyBatch(SamplingPrivacy):
    def tally(self, reports, where=None):
        reports[0]
        return super().tally(reports, where)


class IntervalsHalfAsWide(SamplingPrivacy):
    def estimate(self, counts, *, counted, asked):
        estimate = super().estimate(counts, counted=counted, asked=asked)
        middle = (estimate.lower + estimate.upper) / 2
        lower, upper = (estimate.lower + middle) / 2, (estimate.upper + middle) / 2
        return Estimate(estimate.count, estimate.std_error, lower, upper, estimate.interval)


class IgnoresLoss(RandomizedResponse):
    """Treats the received reports as all that were asked for."""

    def estimate(self, counts, *, counted, asked):  # noqa: ARG002
        return super().estimate(counts, counted=counted, asked=counted)


class AcceptsInvalidTruth(SamplingPrivacy):
    """Replaces a cell out of range by the nearest valid one."""

    def answer(self, round, truth, coins):  # noqa: A002
        return super().answer(round, np.clip(np.asarray(truth), 0, self.cells).astype(np.int32), coins)


class RaisesWithoutMessage(NoPrivacy):
    def answer(self, round, truth, coins):  # noqa: A002
        try:
            return super().answer(round, truth, coins)
        except ValueError:
            raise ValueError from None


class TruthRoundTooEarly(SamplingPrivacy):
    """States that the truth is fixed in round one, and answers about that of round two."""

    truth_round = 1


class ClaimsFreshCoins(LongitudinalUnary):
    """Claims for shuffled reports the clones bound for coins that are new in every query."""

    def claim(self, view):
        if not isinstance(view, privacy.Shuffled):
            return super().claim(view)
        local, single = super().claim(privacy.Report(1, queries=view.queries)), super().claim(privacy.Report(1))
        return privacy.shuffled_claim(view, local=local, single=single)


class ClaimsHalfBeyondThree(RandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        return halved(claim) if self.cells > 3 and isinstance(view, REPORTS) else claim


class ClaimsFivePercentLess(KRandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        if not isinstance(view, REPORTS):
            return claim
        return privacy.Claim.bound(0.95 * claim.epsilon, lambda epsilon: claim.delta(epsilon / 0.95), "wishful")


class WrongErrorUnderLoss(KRandomizedResponse):
    """States a standard error 5 % too small where reports are lost."""

    def std_error(self, true_counts, *, asked=None, counted=None):
        error = super().std_error(true_counts, asked=asked, counted=counted)
        return error if counted is None or tuple(counted) == tuple(asked) else 0.95 * error


class LikelihoodReversed(KRandomizedResponse):
    def log_likelihood(self, reports, rounds):  # noqa: ARG002
        return np.log(np.where(reports[0] == 1, self.false_yes, self.true_yes))


class ClaimsEnteringForMoving(RandomizedResponse):
    def claim(self, view):
        entering = isinstance(view, privacy.ReleasedCounts)
        return super().claim(dataclasses.replace(view, adjacency="enter_leave") if entering else view)


class ClaimsHalfOfCrowdsAboveThree(RandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        return halved(claim) if isinstance(view, privacy.ReleasedCounts) and (view.crowd or 0) > 3 else claim


class ClaimsFifthOfShuffledAboveThree(KRandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        if not isinstance(view, privacy.Shuffled) or view.devices <= 3:
            return claim
        return privacy.Claim.bound(claim.epsilon, lambda epsilon: claim.delta(epsilon) / 5, "wishful")


class ClaimsHalfOfThreeQueries(KRandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        return halved(claim) if isinstance(view, REPORTS) and view.queries >= 3 else claim


class ClaimsHalfBeyondTen(KRandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        return halved(claim) if self.cells > 10 and isinstance(view, REPORTS) else claim


class ClaimsHalfWhenCounted(RandomizedResponse):
    def claim(self, view):
        claim = super().claim(view)
        return halved(claim) if isinstance(view, privacy.ReleasedCounts) and view.counted is not None else claim


class ClaimsNothingOfAllShares(KRandomizedResponse):
    def claim(self, view):
        if isinstance(view, privacy.Shares):
            return privacy.Claim.exact(0.0, privacy.ConstantDelta(0.0), "wishful")
        return super().claim(view)


class SamplesTooNarrow(KRandomizedResponse):
    """Samples counts 2.5 % too near to their mean."""

    def sample_counts(self, true_counts, *, rng):
        counts = super().sample_counts(true_counts, rng=rng)
        true_counts = np.asarray(true_counts)
        mean = self.false_yes * true_counts.sum() + (self.true_yes - self.false_yes) * true_counts
        return np.rint(mean + 0.975 * (counts - mean)).astype(np.int64)


class SeedCarriesTruth(LocalHashing):
    """Writes the cell into the lowest digits of a hash function's second parameter, which no bucket depends on."""

    def answer(self, round, truth, coins):  # noqa: A002
        reports = super().answer(round, truth, coins)
        seeds = reports.seeds.copy()
        digits = np.uint64(self.cells + 1)
        seeds[:, 1] += truth.astype(np.uint64) - seeds[:, 1] % digits
        return HashedReports(seeds, reports.values)


class OneInAThousandSendsTruth(OptimisedUnary):
    def toss(self, memory, *, rng):
        coins = super().toss(memory, rng=rng)
        rare = rng.random(memory.devices) < 0.001
        coins.noise[rare], coins.hits[rare] = 0, True
        return coins


class HasNoEstimate:
    cells, rounds, truth_round, tally_shape = 3, 1, 1, (4,)


SAMPLING = {"cells": 3, "sampling": 0.45}
COINS = {"cells": 3, "first_coin": 0.8, "second_coin": 0.2}

BROKEN = [
    (Biased(**SAMPLING), "no_bias"),
    (WrongStandardError(**SAMPLING), "standard_error"),
    (RedrawsAfterTruth(**SAMPLING), "answer_draws_nothing"),
    (DrawsFromTheGlobalGenerator(cells=3), "answer_draws_nothing"),
    (SharesDrawsInPairs(**SAMPLING), "own_coins"),
    (UsesFixedSeed(**SAMPLING), "own_coins"),
    (AnswersForNeighbour(**SAMPLING), "others_stay"),
    (AnswersTruthInRoundOne(**SAMPLING), "early_rounds"),
    (CountsCalls(**SAMPLING), "hidden_state"),
    (RemembersTruthOfRoundOne(**SAMPLING), "hidden_state"),
    (WritesToMemory(**SAMPLING), "nothing_written_on"),
    (WritesToTruth(cells=3), "nothing_written_on"),
    (ClaimsHalfEpsilon(**SAMPLING), "claims_hold"),
    (ClaimsHalfDelta(**SAMPLING), "claims_hold"),
    (ClaimsInfiniteForNoisyReport(**COINS), "infinite_claims"),
    (ClaimsRisingDelta(**COINS), "claims_sound"),
    (ClaimsDifferencesForCounts(**SAMPLING, blank_zero=0.0), "releases_hold"),
    (SamplesWithHigherProbability(**SAMPLING), "sample_law"),
    (SamplesWithHigherProbability(**SAMPLING), "sampled_estimates"),
    (DrawsCellsIndependently(**SAMPLING), "sample_law"),
    (NarrowCounts(**SAMPLING), "reports"),
    (InvertsTallyMask(cells=3), "reports"),
    (EstimatesInTwoDimensions(**SAMPLING), "estimates"),
    (FailsOnEmptyBatch(**SAMPLING), "reports"),
    (IntervalsHalfAsWide(**SAMPLING), "intervals"),
    (IgnoresLoss(**COINS), "loss"),
    (AcceptsInvalidTruth(**SAMPLING), "bad_inputs"),
    (RaisesWithoutMessage(cells=3), "bad_inputs"),
    (LikelihoodReversed(cells=3, epsilon=1.0), "likelihood"),
    (ClaimsEnteringForMoving(**COINS), "releases_hold"),
    (ClaimsHalfOfCrowdsAboveThree(**COINS), "releases_hold"),
    (ClaimsFifthOfShuffledAboveThree(cells=3, epsilon=3.0), "releases_hold"),
    (ClaimsHalfWhenCounted(**COINS), "releases_hold"),
    (ClaimsNothingOfAllShares(cells=3, epsilon=1.0), "claims_hold"),
    (ClaimsNothingOfAllShares(cells=3, epsilon=1.0), "claims_sound"),
    (SeedCarriesTruth(cells=3, epsilon=1.0), "claims_hold"),
    (HasNoEstimate(), "attributes"),
    (TruthRoundTooEarly(**SAMPLING), "early_rounds"),
    (TruthRoundTooEarly(**SAMPLING), "no_bias"),
]

SMALL_FAULTS = [
    (SamplesTooNarrow(cells=3, epsilon=1.0), "sample_law"),
    (ClaimsFivePercentLess(cells=3, epsilon=1.0), "claims_hold"),
    (WrongErrorUnderLoss(cells=3, epsilon=1.0), "loss"),
]

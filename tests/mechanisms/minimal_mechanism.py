"""A user's own minimal mechanism: k-ary randomized response, with only what is required."""

import math

import numpy as np

from mechanisms.local import Estimate
from mechanisms.privacy import Claim


class NamedError(ValueError):
    def __init__(self, field, rule, value):
        super().__init__(f"{field} must be {rule}, got {value}")


class PlainResponse:
    """Without std_error, sample_law, batch and warnings; masks by position."""

    rounds, truth_round = 1, 1

    def __init__(self, *, cells, epsilon=1.0):
        self.cells, self.tally_shape, self._epsilon = cells, (cells + 1,), epsilon
        self._q = 1 / (math.exp(epsilon) + cells)
        self._p = math.exp(epsilon) * self._q

    def enrol(self, n, *, rng):  # noqa: ARG002
        if n < 0:
            raise NamedError("n", "at least 0", n)
        return np.zeros(n)

    def toss(self, memory, *, rng):
        return rng.random(len(memory)) < self._p - self._q, rng.integers(0, self.cells + 1, len(memory))

    def answer(self, round, truth, coins):  # noqa: A002
        honest, other = coins
        if round != 1:
            raise NamedError("round", "1", round)
        if getattr(truth, "dtype", None) != np.int32 or truth.shape != honest.shape:
            raise NamedError("truth", "int32, one a device", truth)
        if truth.size and not 0 <= truth.min() <= truth.max() <= self.cells:
            raise NamedError("truth", f"in 0..{self.cells}", truth)
        return np.where(honest, truth, other)

    def encode(self, reports):
        return np.eye(self.cells + 1, dtype=np.int64)[reports]

    def tally(self, reports, where=None):
        if where is not None and (where.dtype != bool or where.shape != reports.shape):
            raise NamedError("where", "a mask", where)
        return self.encode(reports if where is None else reports[where]).sum(axis=0)

    def estimate(self, counts, *, counted, asked):
        if counts.shape != (1, *self.tally_shape) or counts.dtype != np.int64:
            raise NamedError("counts", "int64, one an output", counts)
        if len(asked) != 1:
            raise NamedError("asked", "one number", asked)
        received, devices = counted[0], asked[0]
        if not 0 <= received <= devices:
            raise NamedError("counted", "in 0..asked", received)
        if received == 0:
            return self._know_nothing(devices)
        count = devices * (counts[0, 1:] / received - self._q) / (self._p - self._q)
        error = np.full(self.cells, math.sqrt(received / 4) * devices / received / (self._p - self._q))
        ends = (np.clip(count + sign * 2 * error, 0, devices) for sign in (-1, 1))
        return Estimate(count, error, *ends, "normal")

    def _know_nothing(self, devices):
        zero = np.zeros(self.cells)
        return Estimate(zero, zero + np.inf, zero, zero + devices, "normal")

    def sample_counts(self, true_counts, *, rng):
        bad = true_counts.shape != (self.cells + 1,) or true_counts.dtype != np.int64 or true_counts.min() < 0
        if bad:
            raise NamedError("true_counts", "int64, outside and each cell, none negative", true_counts)
        honest = rng.binomial(true_counts, self._p - self._q)
        rest = rng.multinomial((true_counts - honest).sum(), np.full(self.cells + 1, 1 / (self.cells + 1)))
        return (honest + rest)[np.newaxis].astype(np.int64)

    def claim(self, view):
        if view.name not in ("report_round_1", "linked_reports"):
            return Claim.unknown("Not computed.")

        def basic_composition(epsilon):
            once = max(0.0, self._p - math.exp(min(epsilon / view.queries, 99.0)) * self._q)
            return min(1.0, view.queries * once)

        return Claim.bound(view.queries * self._epsilon, basic_composition, "k-ary response, composed.")

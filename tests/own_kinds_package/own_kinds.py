"""One kind of one's own for each role: mechanism, aggregator and attack."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil import (
    CategoricalReports,
    FrequencyOracle,
    Guesses,
    check_true_counts,
    link_rounds_of,
    normal_estimate,
)


@dataclass(frozen=True, kw_only=True)
class PlainResponse(CategoricalReports, FrequencyOracle):
    """Mechanism: the own cell (0 is outside) with probability p₁, else one of the V + 1 symbols."""

    batch: ClassVar[int] = 2**20

    @property
    def honest(self):
        return math.expm1(self.epsilon) / (math.exp(self.epsilon) + self.cells)

    @property
    def true_yes(self):
        return self.false_yes * math.exp(self.epsilon)

    @property
    def false_yes(self):
        return 1.0 / (math.exp(self.epsilon) + self.cells)

    @property
    def distinguishing(self):
        return self.true_yes

    @property
    def source(self):
        return "the own symbol is e^ε times as likely as any other one"

    def toss(self, memory, *, rng):
        n = memory.devices
        return np.where(rng.random(n) < self.honest, -1, rng.integers(0, self.symbols, n)).astype(np.int32)

    def answer(self, round, truth, coins):  # noqa: A002 - the interface
        self.check_answer(round, truth, len(coins))
        return np.where(coins < 0, truth, coins).astype(np.int32)

    def sample_counts(self, true_counts, *, rng):
        truth = check_true_counts(true_counts, self.cells)
        honest = rng.binomial(truth, self.honest)
        others = rng.multinomial(int((truth - honest).sum()), np.full(self.symbols, 1.0 / self.symbols))
        return (honest + others).astype(np.int64)[np.newaxis]


class TrimmedMean:
    """Aggregator: the mean of several servers' estimates without the lowest and the highest."""

    def __init__(self, servers=5):
        self.servers = servers

    def combine(self, tallies):
        scaled = [tally.scaled for tally in tallies]
        middle = np.sort([one.count for one in scaled], axis=0)[1:-1]
        error = np.median([one.std_error for one in scaled], axis=0) / math.sqrt(len(middle))
        return normal_estimate(middle.mean(axis=0), error, asked=tallies[0].asked_in_all)


class MostFrequent:
    """Attack: the last report of a device names its cell, if it names one."""

    def guess(self, observation, prior, *, rng):  # noqa: ARG002 - it guesses without chance and without the prior
        query, found = observation.queries[0], []
        for linked in link_rounds_of(observation, query, range(1, observation.mechanism.rounds + 1)):
            last = linked.reports[linked.rounds[-1]]
            encoded = last if np.ndim(last) == 2 else observation.mechanism.encode(last)
            if encoded.ndim == 2 and encoded.shape[1] == observation.mechanism.cells + 1:
                cells = encoded.argmax(axis=1).astype(np.int32)
                found.append(Guesses(query, linked.handle_kind, linked.handles, cells, math.nan))
        return found

"""One value of many, the truth's own with more probability: Sampling Privacy, k-ary randomized response, no privacy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.evidence import INVALID, read_values
from mechanisms.inference.report_law import Logs, greatest_other
from mechanisms.inference.value_counts import best_of_counts
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.privacy.sampled_value import linked_blanks

# A report that is as likely from every truth.
NOTHING = -2


@dataclass(frozen=True, eq=False)
class OwnValueLaw:
    """What is seen is a value with P(v | t) = m_v + π_s·[v = t], or something that says nothing.

    Parameters
    ----------
    masses : (V + 1,) float64
        m_0…m_V.
    rest : float
        Probability of what says nothing; Σm + rest + π_s = 1.
    sampling : float
        π_s.
    read : callable
        What is seen of each device, (n,) int64: a value, NOTHING, or INVALID.
    """

    masses: NDArray[np.float64]
    rest: float
    sampling: float
    read: Callable[[Sequence[Any]], NDArray[np.int64]]

    @classmethod
    def of_values(cls, masses: NDArray[np.float64], sampling: float) -> "OwnValueLaw":
        """Return the law of one round of values."""
        return cls(masses, 0.0, sampling, lambda reports: read_values(reports[0], outputs=len(masses)))

    @classmethod
    def of_sampling(cls, mechanism: SamplingPrivacy, rounds: Sequence[int]) -> "OwnValueLaw":
        """Return the law of round one, of round two, or of both linked, in whatever order they come (SP eqs 12-16)."""
        blanks, sampling = mechanism.blanks, mechanism.sampling
        if tuple(rounds) == (1,):
            first = blanks.copy()
            first[0] += sampling
            return cls.of_values(first, 0.0)
        if tuple(rounds) == (2,):
            return cls.of_values(blanks, sampling)
        pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=mechanism.refresh)
        seen = tuple(rounds)

        def read(reports: Sequence[Any]) -> NDArray[np.int64]:
            first, second = (read_values(reports[seen.index(r)], outputs=len(blanks)) for r in (1, 2))
            return _read_pairs(first, second, mechanism)

        return cls(pairs, float(blanks[1:].sum() + blanks[0] - pairs.sum()), sampling, read)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(what is seen | truth) up to a constant a row, (n, V + 1)."""
        seen = self.read(reports)
        logs = np.zeros((len(seen), len(self.masses)))
        values = np.flatnonzero(seen >= 0)
        own = seen[values]
        common = self.masses[own]
        logs[seen == INVALID] = -np.inf
        # Given by its own devices only, or by nobody.
        logs[values[common == 0.0]] = -np.inf
        with np.errstate(divide="ignore"):
            gain = np.log1p(self.sampling / np.where(common > 0.0, common, 1.0))
        if self.sampling == 0.0:
            return logs
        logs[values, own] = np.where(common > 0.0, gain, 0.0)
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the exact success from T queries' reports with fresh coins.

        One query: rest·max q + Σ_v max(q_v(m_v + π_s), m_v·max_{u≠v} q_u). More: what a truth's own devices alone
        give, at least once with 1 − (1 − π_s)^T, and the counts of the rest.
        """
        if self.sampling == 0.0:
            return float(prior.max())
        if queries == 1:
            own = prior * (self.masses + self.sampling)
            best = np.maximum(own, self.masses * greatest_other(prior))
            return min(self.rest * float(prior.max()) + math.fsum(best), 1.0)
        found = best_of_counts(prior, self.masses, self.rest, self.sampling, queries)
        sure = 1.0 if self.sampling == 1.0 else -math.expm1(queries * math.log1p(-self.sampling))
        told = sure * math.fsum(prior[self.masses == 0.0])
        return None if found is None else min(found + told, 1.0)


def _read_pairs(first: NDArray[np.int64], second: NDArray[np.int64], mechanism: SamplingPrivacy) -> NDArray[np.int64]:
    """Return the second value where the first is 0; a blank first says nothing; INVALID if no device gives the pair."""
    blanks, refresh = mechanism.blanks, mechanism.refresh
    same = (first == second) & (refresh < 1.0)
    again = (blanks[np.maximum(second, 0)] > 0.0) & (refresh > 0.0)
    blank = (blanks[np.maximum(first, 0)] > 0.0) & (same | again)
    seen = np.where(first == 0, second, np.where(blank, NOTHING, INVALID))
    return np.where((first == INVALID) | (second == INVALID), INVALID, seen)

"""Likelihood where a report is one of many values and the true value is more probable.

Serves Sampling Privacy, k-ary randomized response and no privacy. A compiled kernel finds the Bayes success from how
often each value was reported.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import compiled
from mechanisms.inference.report_law import INVALID, Logs, ReportLaw, ReportOutcomes, greatest_other, read_values
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.privacy.composition import at_least_once
from mechanisms.privacy.sampling_privacy_claims import linked_blanks

# Multiplications beyond which the exact sum takes more than a few seconds.
MOST_WORK = 2e9


def best_of_counts(
    prior: NDArray[np.float64], masses: NDArray[np.float64], rest: float, sampling: float, queries: int
) -> float | None:
    """Return Σ over T values of max_t q_t·Π m·(1 + π_s/m_t)^(times t was reported), without values of mass 0.

    The counts of the values are multinomial, which is the distribution of independent Poisson counts given their sum
    T. So the expected greatest q_t·r_t^n over all truths is computed as in `expected_best`, but each truth's
    distribution function is replaced by the generating polynomial of its count, up to z^T. A product tree over the
    truths holds the polynomials, and each (truth, count), in ascending order of its value, updates one path of the
    tree. All terms are positive, so no digits are lost by cancellation.

    Parameters
    ----------
    prior, masses : (truths,) float64
        q and m.
    rest : float
        Mass of reports that carry no evidence.
    sampling : float
        π_s.
    queries : int
        T.

    Returns
    -------
    float or None
        None if more than `MOST_WORK` multiplications would be needed.
    """
    total = float(masses.sum()) + rest
    if total <= 0.0:
        return 0.0
    size = 1 << (len(masses)).bit_length()
    work = len(masses) * queries * size.bit_length() * (queries + 1) ** 2 / 2
    if work > MOST_WORK:
        return None
    counts = np.arange(queries + 1)
    log_factorial = np.array([math.lgamma(n + 1) for n in counts])
    rates = np.append(masses, rest) * (queries / total)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rates = np.log(rates)[:, np.newaxis]
        poisson = np.where(counts == 0, 0.0, counts * log_rates) - rates[:, np.newaxis] - log_factorial
        ratio = np.log1p(sampling / masses)[:, np.newaxis]
        value = np.log(prior)[:, np.newaxis] + np.where(counts == 0, 0.0, counts * ratio)
    # Mass 0: only devices with that truth report the value, and `guess_success` counts those outcomes.
    value[masses == 0.0, 1:] = -np.inf
    at_sum = queries * math.log(queries) - queries - log_factorial[queries]
    scale = queries * math.log(total) - at_sum
    floor = float(np.log(prior.max()))
    above = np.flatnonzero((value > floor).ravel())
    above = above[np.argsort(value.ravel()[above], kind="stable")]
    tree = np.zeros((2 * size, queries + 1))
    tree[size:, 0] = 1.0
    start = np.exp(poisson)
    start[:-1][value > floor] = 0.0
    tree[size : size + len(start)] = start
    flat = value.ravel()[above] + poisson[:-1].ravel()[above] + scale
    return float(_climb(tree, above // (queries + 1), above % (queries + 1), np.exp(poisson[:-1]), flat, floor + scale))


@compiled
def _climb(
    tree: NDArray[np.float64],
    truths: NDArray[np.int64],
    counts: NDArray[np.int64],
    poisson: NDArray[np.float64],
    values: NDArray[np.float64],
    floor: float,
) -> float:  # pragma: no cover - compiled
    """Fill the tree, then sum over the levels: the value of each times P(no other truth's value exceeds it)."""
    size, top = tree.shape[0] // 2, tree.shape[1] - 1
    for node in range(size - 1, 0, -1):
        for i in range(top + 1):
            for j in range(top + 1 - i):
                tree[node, i + j] += tree[2 * node, i] * tree[2 * node + 1, j]
    success: float = math.exp(floor) * tree[1, top]
    path, longer = np.zeros(top + 1), np.zeros(top + 1)
    for event in range(truths.size):
        truth, count = truths[event], counts[event]
        mass = poisson[truth, count]
        path[:] = 0.0
        path[count] = 1.0
        node = truth + size
        tree[node, count] += mass
        while node > 1:
            longer[:] = 0.0
            for i in range(count, top + 1):
                if path[i] != 0.0:
                    for j in range(top + 1 - i):
                        longer[i + j] += path[i] * tree[node ^ 1, j]
            path[:] = longer
            node >>= 1
            for i in range(count, top + 1):
                tree[node, i] += mass * path[i]
        success += math.exp(values[event]) * path[top]
    return success


# A report that is equally likely for every truth.
NOTHING = -2


@dataclass(frozen=True, eq=False)
class OwnValueLaw(ReportLaw):
    """The law of a report that is a value with P(v | t) = m_v + π_s·[v = t], or that carries no evidence.

    Parameters
    ----------
    masses : (V + 1,) float64
        m_0…m_V.
    rest : float
        Probability of a report without evidence; Σm + rest + π_s = 1.
    sampling : float
        π_s.
    read : callable
        Maps the reports to one observation per device, (n,) int64: a value, NOTHING, or INVALID.
    pairs : (V + 1, V + 1) float64, optional
        Of linked rounds: the probabilities of the reports of a device that is not sampled.
    """

    masses: NDArray[np.float64]
    rest: float
    sampling: float
    read: Callable[[Sequence[Any]], NDArray[np.int64]]
    pairs: NDArray[np.float64] | None = None

    @classmethod
    def of_values(cls, masses: NDArray[np.float64], sampling: float) -> "OwnValueLaw":
        """Return the law of one round of values."""
        return cls(masses, 0.0, sampling, lambda reports: read_values(reports[0], outputs=len(masses)))

    @classmethod
    def of_sampling(cls, mechanism: SamplingPrivacy, rounds: Sequence[int]) -> "OwnValueLaw":
        """Return the law of round one, of round two, or of both linked, in any order (SP eqs 12-16)."""
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

        joint = (1.0 - mechanism.refresh) * np.diag(blanks) + mechanism.refresh * np.outer(blanks, mechanism.redrawn)
        rest = float(blanks[1:].sum() + blanks[0] - pairs.sum())
        return cls(pairs, rest, sampling, read, joint if seen == (1, 2) else joint.T)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(observation | truth) up to a constant per row, (n, V + 1)."""
        seen = self.read(reports)
        logs = np.zeros((len(seen), len(self.masses)))
        values = np.flatnonzero(seen >= 0)
        reported = seen[values]
        common = self.masses[reported]
        logs[seen == INVALID] = -np.inf
        # Common mass 0: only devices with that truth report the value, or no device does.
        logs[values[common == 0.0]] = -np.inf
        with np.errstate(divide="ignore"):
            gain = np.log1p(self.sampling / np.where(common > 0.0, common, 1.0))
        if self.sampling == 0.0:
            return logs
        logs[values, reported] = np.where(common > 0.0, gain, 0.0)
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the exact success from T queries' reports with fresh coins.

        One query: rest·max q + Σ_v max(q_v(m_v + π_s), m_v·max_{u≠v} q_u). Several queries: a value of mass 0, which
        only devices with that truth report, is reported at least once with probability 1 − (1 − π_s)^T; the other
        values contribute through their counts (`best_of_counts`).
        """
        if self.sampling == 0.0:
            return float(prior.max())
        if queries == 1:
            with_truth = prior * (self.masses + self.sampling)
            best = np.maximum(with_truth, self.masses * greatest_other(prior))
            return min(self.rest * float(prior.max()) + math.fsum(best), 1.0)
        guessed = best_of_counts(prior, self.masses, self.rest, self.sampling, queries)
        revealed = at_least_once(self.sampling, queries) * math.fsum(prior[self.masses == 0.0])
        return None if guessed is None else min(guessed + revealed, 1.0)

    def outcomes(self) -> ReportOutcomes:
        """Return every value, or every possible pair of values (SP eqs 12-16)."""
        one_hot = np.eye(len(self.masses), dtype=np.int64)
        if self.pairs is None:
            return ReportOutcomes(self.masses + self.sampling * one_hot, (one_hot,))
        masses = np.repeat(self.pairs[np.newaxis], len(one_hot), axis=0)
        masses[:, 0] += self.sampling * one_hot
        first, second = np.nonzero(masses.any(axis=0))
        return ReportOutcomes(masses[:, first, second], (one_hot[first], one_hot[second]))


def _read_pairs(first: NDArray[np.int64], second: NDArray[np.int64], mechanism: SamplingPrivacy) -> NDArray[np.int64]:
    """Return the second value if the first is 0, NOTHING after a blank first, INVALID if no device sends the pair."""
    blanks, refresh = mechanism.blanks, mechanism.refresh
    same = (first == second) & (refresh < 1.0)
    again = (blanks[np.maximum(second, 0)] > 0.0) & (refresh > 0.0)
    blank = (blanks[np.maximum(first, 0)] > 0.0) & (same | again)
    seen = np.where(first == 0, second, np.where(blank, NOTHING, INVALID))
    return np.where((first == INVALID) | (second == INVALID), INVALID, seen)

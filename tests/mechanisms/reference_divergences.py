"""Divergences and guesses of whole report distributions, with which exact claims are compared: sums over all pairs."""

import numpy as np
from scipy.stats import binom

from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.hockey_stick import check_distribution, pair_epsilon


def matrix_epsilon(matrix):
    """The least ε at δ = 0 over all pairs of truths of a (truths, outputs) matrix."""
    rows = check_distribution("matrix", matrix)
    return max((pair_epsilon(p, q) for i, p in enumerate(rows) for q in rows[:i]), default=0.0)


def composed_delta(p, q, *, queries, epsilon):
    """An upper bound of δ(ε) of the pair (P^T, Q^T), the larger of both directions."""
    return ComposedDelta.from_pair(p, q, queries=queries)(epsilon)


def linked_guess_success(*, sampling, blank_zero, prior):
    """The success of the best guess from both reports of Sampling Privacy without refresh, in closed form.

    A device in a cell is identified when it is sampled. Any pair of reports (w, w) with w ≠ 0 leaves the prior
    unchanged. The pair (0, 0) comes from a blank 0 or from a sampled device outside every cell. The success is
    π_s(1 − q_0) + (1 − π_s − π_0)·max q + max(q_0(π_0 + π_s), π_0·max_{u≠0} q_u).
    """
    q = np.asarray(prior)
    zero = max(float(q[0]) * (blank_zero + sampling), blank_zero * float(q[1:].max()))
    return sampling * (1.0 - float(q[0])) + (1.0 - sampling - blank_zero) * float(q.max()) + zero


def difference_law(n, k, sampling, largest):
    """Masses of a published difference of n devices, Bin(n, β) on 0…largest; those below k are one output."""
    masses = binom.pmf(np.arange(largest + 1), n, sampling)
    return masses if k is None else np.append(masses[:k].sum(), masses[k:])

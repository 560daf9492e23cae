"""How often each of many values was given: the kernel that finds the best guess's success from counts."""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled

# Multiplications beyond which the exact sum takes more than a few seconds.
MOST_WORK = 2e9


def best_of_counts(
    prior: NDArray[np.float64], masses: NDArray[np.float64], rest: float, sampling: float, queries: int
) -> float | None:
    """Return Σ over T values of max_t q_t·Π m·(1 + π_s/m_t)^(times t was given), values of mass 0 left out.

    The counts are a multinomial, which is independent Poisson counts given their sum T. So the greatest q_t·r_t^n
    over all truths is found as `expected_best` does, but with the polynomial of every truth's count, up to z^T, in the
    place of its distribution function: a product tree over the truths, and one path of it for every (truth, count)
    in ascending order of its value. All terms are positive, so nothing is lost.

    Parameters
    ----------
    prior, masses : (truths,) float64
        q and m.
    rest : float
        Mass of what says nothing.
    sampling : float
        π_s.
    queries : int
        T.

    Returns
    -------
    float or None
        None where it would take too long.
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
    # Mass 0: given by its own devices only, and those outcomes are counted elsewhere.
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
    """Fill the tree, then add the levels one by one, each with what all other truths can be at most."""
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

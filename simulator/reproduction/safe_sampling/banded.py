"""Section 2.6's counterexample repaired: a predicate that sampling makes fair whatever the database."""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy import resampled_privacy
from mechanisms.privacy.binomial import window
from simulator.reproduction.entry import Curve, Drawing, Row
from simulator.reproduction.safe_sampling.agreement import Rate, allowed_success

BETA, BAND, ENOUGH, NOISE_EPSILON, TRIALS = 0.5, 64, 200_000, 0.25, 20_000
# ε at which A1's δ is stated.
EPSILON = 0.1


def banded_rows(seed: int) -> tuple[list[Row], Drawing]:
    """Run A1 = "⌊|T|/64⌋ is odd" XOR "t is in T" (false below 200,000 tuples) beside A2 = |T| + Laplace noise."""
    rng = np.random.default_rng(seed)
    tuples = int(2 * ENOUGH / BETA)
    held = np.arange(TRIALS) < TRIALS // 2
    inside = held & (rng.random(TRIALS) < BETA)
    size = rng.binomial(tuples - 1, BETA, TRIALS) + inside
    first = ((size // BAND) % 2 == 1) ^ inside
    read = (np.floor((size + rng.laplace(scale=1 / NOISE_EPSILON, size=TRIALS)) / BAND) % 2).astype(np.bool_)
    rate = Rate(int(((first ^ read) == held).sum()), TRIALS)
    only = Rate(int((first == held).sum()), TRIALS)
    sizes, deltas = worst_databases(EPSILON)
    delta = max(deltas)
    noisy, _ = resampled_privacy(epsilon=NOISE_EPSILON, delta=0.0, sampling=1.0, to=BETA)
    allowed = allowed_success(EPSILON + noisy, delta)
    theory = 0.5 * (1 + BETA) - _misread() / 2
    rows = [
        Row(
            "section 2.6 repaired: delta of A1, greatest over databases",
            "A1 satisfies (beta, epsilon, delta)-DPS",
            delta,
            delta < BETA / 100,
            f"Exact at ε = {EPSILON:g}, β = {BETA:g}, for t and for another tuple, over {len(sizes)} sizes n; agrees "
            "if below a hundredth of β. Only |T| and t enter, so n is all there is to a database.",
        ),
        Row(
            "section 2.6 repaired: A1 alone",
            "private",
            only.share,
            only.agrees_with(0.5) and not only.exceeds(allowed_success(EPSILON, delta)),
            f"Guess whether t is in the database: {only}; theory 0.5000, allowed "
            f"{allowed_success(EPSILON, delta):.4f}.",
        ),
        Row(
            "section 2.6 repaired: A1 and A2 on one sample",
            "non-private",
            rate.share,
            rate.agrees_with(theory) and rate.exceeds(allowed),
            f"Guess whether t is in the database: {rate}; theory {theory:.4f}. A2 spends {NOISE_EPSILON:g}, "
            f"{noisy:.3f} after sampling; if they composed, ({EPSILON + noisy:.3f}, {delta:.2g}) would allow "
            f"{allowed:.4f}.",
        ),
    ]
    drawing = Drawing(
        f"δ of the repaired A1 alone at ε = {EPSILON:g}",
        "tuples in the database",
        "δ",
        [Curve("exact", sizes, deltas)],
    )
    return rows, drawing


def worst_databases(epsilon: float) -> tuple[list[int], list[float]]:
    """Return sizes n of databases about where |T| reaches what is enough, and δ of A1 at each.

    A twentieth of a standard deviation apart: the curve is smooth on that scale. Far below, A1 is false almost
    surely; far above, odd and even bands are equally likely to the last digit.
    """
    spread = math.sqrt(ENOUGH / BETA * (1 - BETA) / BETA)
    sizes = [int(ENOUGH / BETA + spread * step / 20) for step in range(-120, 200)]
    return sizes, [max(_delta_target(n, epsilon), _delta_other(n, epsilon)) for n in sizes]


def _delta_target(n: int, epsilon: float) -> float:
    """Return δ for t there, of n tuples, or not."""
    first, masses = window(n - 1, BETA)
    size = first + np.arange(len(masses))
    odd, shifted = float(masses @ _odd(size)), float(masses @ _even(size + 1))
    return _binary_delta((1 - BETA) * odd + BETA * shifted, odd, epsilon)


def _delta_other(n: int, epsilon: float) -> float:
    """Return δ for another tuple there or not, t being there or not."""
    first, masses = window(n - 1, BETA)
    size = first + np.arange(len(masses))
    plain = [float(masses @ _odd(size + more)) for more in (0, 1)]
    flipped = [float(masses @ _even(size + 1 + more)) for more in (0, 1)]
    without = [(1 - BETA) * plain[more] + BETA * flipped[more] for more in (0, 1)]
    pairs = [(plain[0], plain[1]), (without[0], without[1])]
    return max(_binary_delta((1 - BETA) * zero + BETA * one, zero, epsilon) for zero, one in pairs)


def _odd(size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether A1 is true without t in the sample."""
    odd: NDArray[np.bool_] = (size >= ENOUGH) & ((size // BAND) % 2 == 1)
    return odd


def _even(size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether A1 is true with t in the sample."""
    even: NDArray[np.bool_] = (size >= ENOUGH) & ((size // BAND) % 2 == 0)
    return even


def _binary_delta(p: float, q: float, epsilon: float) -> float:
    """Return δ(ε) of two outputs, true with p or with q."""
    factor = math.exp(epsilon)
    return max(p - factor * q, q - factor * p, 1 - p - factor * (1 - q), 1 - q - factor * (1 - p), 0.0)


def _misread() -> float:
    """Return the probability that noise moves |T| to a band of the other parity: |T| evenly placed in its band.

    Over y, the noise, the share of places from which it ends in an odd number of bands away is a triangle wave of
    |y|/64, 1 at odd multiples; its mean under a Laplace density e^(−|y|/b)/2b is (b/64)·tanh(64/2b).
    """
    scale = 1 / NOISE_EPSILON / BAND
    return scale * math.tanh(0.5 / scale)

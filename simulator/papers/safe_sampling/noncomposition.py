"""Privacy by sampling does not compose (secs 2.2, 2.6 and 2.7), shown by attacks.

The counterexamples are the parity of the number of tuples (sec 2.2), a majority XOR a device's presence (sec 2.6), and
the one of sec 2.6 corrected so that sampling satisfies its premise for every database.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.central import SampleThenSuppress
from mechanisms.privacy import resampled_privacy
from mechanisms.privacy.binomial import mass_at, window
from simulator.pages.charts import Series
from simulator.papers.monte_carlo import Rate, allowed_success
from simulator.papers.published_results import Reproduction

BETA, TRIALS = 0.5, 20_000


def noncomposition(results: Reproduction, seed: int) -> None:
    """Sample databases, run the algorithms on them together and separately, and count an adversary's right guesses."""
    parity(results, seed)
    majority(results, seed + 1)
    bands(results, seed + 2)
    _fresh_samples(results)
    results.add_findings("not_private", "leak", "databases")


# Random algorithms on databases of up to `TUPLES` tuples, with `OUTPUTS` outputs.
ALGORITHMS, TUPLES, OUTPUTS = 500, 3, 4


def closure(results: Reproduction, seed: int) -> None:
    """Try theorems 2 and 3 on random algorithms, and proposition 4 on the suppression that is used here.

    A theorem fails where δ of a sampled algorithm's post-processing, or of a random choice between two algorithms, is
    above δ of the algorithm itself, or the larger of both.
    """
    rng = np.random.default_rng(seed)
    excess: dict[str, float] = {"theorem_2": -math.inf, "theorem_3": -math.inf}
    for _ in range(ALGORITHMS):
        beta, epsilon, share = rng.uniform(0.05, 0.95), rng.exponential(0.5), rng.random()
        first, second = rng.dirichlet(np.full(OUTPUTS, 0.3), size=(2, 2**TUPLES))
        processed = first @ rng.dirichlet(np.full(OUTPUTS, 0.3), size=OUTPUTS)
        either = share * first + (1.0 - share) * second
        of_first, of_second, of_processed, of_either = (
            sampled_delta(each, beta, epsilon) for each in (first, second, processed, either)
        )
        excess["theorem_2"] = max(excess["theorem_2"], of_processed - of_first)
        excess["theorem_3"] = max(excess["theorem_3"], of_either - max(of_first, of_second))
    for name, worst in excess.items():
        results.add_row(name, worst, algorithms=ALGORITHMS, tuples=TUPLES)
    released = [SampleThenSuppress(k=k, sampling=1.0).claim(crowd=None) for k in range(1, 51)]
    results.add_row("proposition_4", min(claim.delta(epsilon) for claim in released for epsilon in (0.0, 1.0, 50.0)))


def sampled_delta(algorithm: NDArray[np.float64], beta: float, epsilon: float) -> float:
    """Return δ of an algorithm after sampling, greatest over all pairs of databases that differ in one tuple.

    Parameters
    ----------
    algorithm : (2^tuples, outputs) float64
        Distribution of the output for each database; bit i of its number states whether tuple i is in it.
    beta, epsilon
        β and ε.
    """
    numbers = np.arange(len(algorithm))
    size = np.array([number.bit_count() for number in range(len(algorithm))])
    within = (numbers & numbers[:, np.newaxis]) == numbers  # [database, sample]
    chances = np.where(within, beta**size * (1.0 - beta) ** (size[:, np.newaxis] - size), 0.0)
    sampled = chances @ algorithm
    pairs = [(number, number ^ (1 << bit)) for number in numbers for bit in range(len(numbers).bit_length() - 1)]
    return max(float(np.maximum(sampled[a] - math.exp(epsilon) * sampled[b], 0.0).sum()) for a, b in pairs)


def parity(results: Reproduction, seed: int) -> None:
    """Run A₁(T) = "|T| is odd" and A₂(T) = A₁(T) XOR "t is in T" on sampled databases, and guess if t is in them."""
    rng = np.random.default_rng(seed)
    held = np.arange(TRIALS) < TRIALS // 2  # t is in D in half of the trials
    first, first_in = _sample(held, rng)
    again, again_in = _sample(held, rng)
    odd, mixed = first % 2 == 1, (first % 2 == 1) ^ first_in
    fresh = (again % 2 == 1) ^ again_in
    alone = allowed_success(0.0, 0.0)
    for key, guess, theory, published in (
        ("A1 alone", odd, alone, "satisfies the notion"),
        ("A2 alone", mixed, alone, "satisfies the notion"),
        ("A1 and A2 on one sample", odd ^ mixed, 0.5 * (1 + BETA), "does not compose"),
        ("A1 and A2, each on a fresh sample", odd ^ fresh, alone, "composes"),
    ):
        rate = Rate.of(guess == held)
        agrees = rate.agrees_with(theory) and rate.exceeds(alone) == (theory > alone)
        values = {"rate": rate, "theory": theory, "allowed": alone}
        results.add_row("parity", rate.share, agrees, published=published, algorithms=key, **values)
        if theory > alone:
            both = Rate.of((odd ^ mixed) == first_in)
            results.add_row("secret", both.share, both.hits < both.trials, rate=both)


def _sample(held: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return, for a sample of every database of 1,001 tuples beside t, its number of tuples and whether t is one."""
    inside = held & (rng.random(len(held)) < BETA)
    return rng.binomial(1_001, BETA, len(held)) + inside, inside


MALE, FEMALE, EPSILON = 5_000, 5_000, 1.0


def majority(results: Reproduction, seed: int) -> None:
    """Sample databases of 10,000 tuples, half of them male, run both algorithms, and count the text's event."""
    rng = np.random.default_rng(seed)
    events = [event_probability(present=False), event_probability(present=True)]
    rates = []
    for present, published, fraction in ((False, 0.0, "0"), (True, 0.25, "1/4")):
        male, female, inside = _majority_sample(MALE, FEMALE, rng, present=present)
        more_male = (male > female) ^ inside
        noise = rng.laplace(scale=1 / EPSILON, size=(2, TRIALS))
        rate = Rate.of((male + noise[0] >= female + noise[1]) & ~more_male)
        theory = events[present]
        results.add_row(
            "event",
            rate.share,
            rate.agrees_with(theory) and abs(theory - published) < 0.02,  # the value is published with "≈"
            published=published,
            world="with t" if present else "without t",
            fraction=fraction,
            rate=rate,
            theory=theory,
        )
        rates.append(rate)
    guesses = Rate(rates[1].hits + TRIALS - rates[0].hits, 2 * TRIALS)
    theory = 0.5 * (events[1] + 1 - events[0])
    agrees = guesses.agrees_with(theory) and guesses.exceeds(0.5)
    results.add_row("majority", guesses.share, agrees, rate=guesses, theory=theory)
    hits = 0
    for present in (False, True):
        male, female, inside = _majority_sample(MALE + FEMALE, 0, rng, present=present)
        hits += int((((male > female) ^ inside) != present).sum())  # A1 = false: guess that t is in the database
    alone = Rate(hits, 2 * TRIALS)
    results.add_row("all_male", alone.share, alone.agrees_with(0.5), rate=alone, theory=0.5 * (1 + BETA))
    measured = math.log(rates[1].share / max(rates[0].share, 1 / TRIALS))
    results.add_row("least_epsilon", math.log(events[1] / events[0]), measured=measured)


def _majority_sample(
    male: int, female: int, rng: np.random.Generator, *, present: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return, for a sample of each database, males, females and whether t is in it; t is one of the males."""
    inside = (rng.random(TRIALS) < BETA) & present
    others = rng.binomial(male - int(present), BETA, TRIALS)
    return others + inside, rng.binomial(female, BETA, TRIALS), inside


def event_probability(*, present: bool) -> float:
    """Return the exact Pr[A2 ≥ ½ and A1 = false].

    When a males and b females are sampled with probability ½, the number of males minus the number of females has the
    distribution of Bin(a + b, ½) − b. A2 is the ratio of two noisy counts (parallel composition over disjoint tuples,
    so ε in total). It is at least ½ if that difference plus the difference of two Laplace variables is at least 0.
    """
    total = MALE + FEMALE - int(present)
    lead = np.arange(total + 1) - FEMALE
    masses = mass_at(np.arange(total + 1), total, 0.5)
    missing = float(masses @ (_at_least(-lead) * (lead <= 0)))
    if not present:
        return missing
    return (1 - BETA) * missing + BETA * float(masses @ (_at_least(-lead - 1) * (lead + 1 > 0)))


def _at_least(y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probability that the difference of two Laplace(1/ε) variables is at least y."""
    size = EPSILON * np.abs(y)
    tail = 0.5 * np.exp(-size) * (1 + size / 2)
    return np.where(y >= 0, tail, 1 - tail)


BAND, ENOUGH, NOISE_EPSILON = 64, 200_000, 0.25
BANDED_EPSILON = 0.1
"""The ε at which the δ of the corrected A1 is stated."""


def bands(results: Reproduction, seed: int) -> None:
    """Run A1 = "⌊|T|/64⌋ is odd" XOR "t is in T" (false below 200,000 tuples) beside A2 = |T| + Laplace noise."""
    rng = np.random.default_rng(seed)
    tuples = int(2 * ENOUGH / BETA)
    held = np.arange(TRIALS) < TRIALS // 2
    inside = held & (rng.random(TRIALS) < BETA)
    size = rng.binomial(tuples - 1, BETA, TRIALS) + inside
    first = ((size // BAND) % 2 == 1) ^ inside
    read = (np.floor((size + rng.laplace(scale=1 / NOISE_EPSILON, size=TRIALS)) / BAND) % 2).astype(np.bool_)
    both, alone = Rate.of((first ^ read) == held), Rate.of(first == held)
    sizes, deltas = worst_databases(BANDED_EPSILON)
    delta, alone_allowed = max(deltas), allowed_success(BANDED_EPSILON, max(deltas))
    noisy, _ = resampled_privacy(epsilon=NOISE_EPSILON, delta=0.0, sampling=1.0, to=BETA)
    allowed = allowed_success(BANDED_EPSILON + noisy, delta)
    theory = 0.5 * (1 + BETA) - misread_probability() / 2
    results.add_row("band_delta", delta, sizes=len(sizes))
    agrees = alone.agrees_with(0.5) and not alone.exceeds(alone_allowed)
    results.add_row("band_alone", alone.share, agrees, rate=alone, allowed=alone_allowed)
    agrees = both.agrees_with(theory) and both.exceeds(allowed)
    values = {"noisy": noisy, "total": BANDED_EPSILON + noisy, "delta": delta, "allowed": allowed}
    results.add_row("band_both", both.share, agrees, rate=both, theory=theory, **values)
    results.add_panel("band_delta", [Series("exact", sizes, deltas)])


def worst_databases(epsilon: float) -> tuple[list[int], list[float]]:
    """Return database sizes n around the one at which |T| reaches `ENOUGH`, and δ of A1 at each.

    The sizes are a twentieth of a standard deviation apart: the curve is smooth on that scale. Far below, A1 is false
    almost surely; far above, odd and even bands are equally likely up to the last digit.
    """
    spread = math.sqrt(ENOUGH / BETA * (1 - BETA) / BETA)
    sizes = [int(ENOUGH / BETA + spread * step / 20) for step in range(-120, 200)]
    return sizes, [max(delta_of_target(n, epsilon), delta_of_other(n, epsilon)) for n in sizes]


def delta_of_target(n: int, epsilon: float) -> float:
    """Return δ between databases with t (n tuples) and without it."""
    odd, shifted = _shares(n, 0)
    return binary_delta((1 - BETA) * odd + BETA * shifted, odd, epsilon)


def delta_of_other(n: int, epsilon: float) -> float:
    """Return the larger δ between databases with and without another tuple, over t being in both or in neither."""
    (plain, flipped), (plain_more, flipped_more) = _shares(n, 0), _shares(n, 1)
    without = [(1 - BETA) * plain + BETA * flipped, (1 - BETA) * plain_more + BETA * flipped_more]
    pairs = [(plain, plain_more), (without[0], without[1])]
    return max(binary_delta((1 - BETA) * zero + BETA * one, zero, epsilon) for zero, one in pairs)


def _shares(n: int, more: int) -> tuple[float, float]:
    """Return Pr[A1 is true] for samples of n − 1 tuples and `more` besides, without t and with it."""
    first, masses = window(n - 1, BETA)
    size = first + np.arange(len(masses)) + more
    odd = (size >= ENOUGH) & ((size // BAND) % 2 == 1)
    even = (size + 1 >= ENOUGH) & (((size + 1) // BAND) % 2 == 0)
    return float(masses @ odd), float(masses @ even)


def binary_delta(p: float, q: float, epsilon: float) -> float:
    """Return δ(ε) between two Boolean outputs that are true with probability p and q."""
    factor = math.exp(epsilon)
    return max(p - factor * q, q - factor * p, 1 - p - factor * (1 - q), 1 - q - factor * (1 - p), 0.0)


def misread_probability() -> float:
    """Return the probability that noise moves |T| to a band of the other parity, for |T| uniform in its band.

    For noise y, the share of positions from which |T| + y is an odd number of bands away is a triangle wave of |y|/64,
    which is 1 at odd multiples. Its mean under a Laplace density e^(−|y|/b)/2b is (b/64)·tanh(64/2b).
    """
    scale = 1 / NOISE_EPSILON / BAND
    return scale * math.tanh(0.5 / scale)


def _fresh_samples(results: Reproduction) -> None:
    """Add rows on the statements of section 2.7 about fifty fresh samples."""
    once = 1 - (1 - 0.2) ** 50
    results.add_row("fifty", 50 * 0.02)
    results.add_row("one_tuple", once)
    results.add_row("every_tuple", once**100_000, most=int(0.01 / (1 - once)))

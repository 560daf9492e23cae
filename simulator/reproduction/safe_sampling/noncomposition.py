"""lqs-noncomposition: privacy by sampling does not compose (LQS secs 2.2, 2.6 and 2.7), shown by attacks.

The counterexamples are the parity of the number of tuples (sec 2.2), a majority XOR a device's presence (sec 2.6),
and that of sec 2.6 corrected so that sampling satisfies its premise for every database.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy import resampled_privacy
from mechanisms.privacy.binomial import mass_at, window
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.tables import Rate, allowed_success

BETA, TRIALS = 0.5, 20_000
TUPLES = 1_001


def parity_rows(seed: int) -> list[Row]:
    """Run A₁(T) = "|T| is odd" and A₂(T) = A₁(T) XOR "t is in T" on sampled databases, and guess if t is in them."""
    rng = np.random.default_rng(seed)
    held = np.arange(TRIALS) < TRIALS // 2  # t is in D in half of the trials
    first, first_in = _sample(held, rng)
    again, again_in = _sample(held, rng)
    odd, mixed = first % 2 == 1, (first % 2 == 1) ^ first_in
    fresh = (again % 2 == 1) ^ again_in
    alone = allowed_success(0.0, 0.0)
    return [
        _row("A1 alone", odd, held, alone, leaks=False, said="satisfies the notion"),
        _row("A2 alone", mixed, held, alone, leaks=False, said="satisfies the notion"),
        _row("A1 and A2 on one sample", odd ^ mixed, held, 0.5 * (1 + BETA), leaks=True, said="does not compose"),
        _secret(odd ^ mixed, first_in),
        _row("A1 and A2, each on a fresh sample", odd ^ fresh, held, alone, leaks=False, said="composes"),
    ]


def _sample(held: NDArray[np.bool_], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return, for a sample of every database, its number of tuples and whether t is one of them."""
    inside = held & (rng.random(len(held)) < BETA)
    return rng.binomial(TUPLES, BETA, len(held)) + inside, inside


def _row(key: str, guess: NDArray[np.bool_], held: NDArray[np.bool_], theory: float, *, leaks: bool, said: str) -> Row:
    """Return the success rate of the guess "t is in D", beside theory and the rate that (0, 0) allows."""
    rate = Rate(int((guess == held).sum()), len(held))
    allowed = allowed_success(0.0, 0.0)
    beyond = rate.exceeds(allowed)
    agrees = rate.agrees_with(theory) and beyond == leaks
    return Row(
        f"section 2.2: {key}",
        said,
        rate.share,
        agrees,
        f"Guess whether t is in the database: {rate}; theory {theory:.4f}. Each algorithm alone is exactly (1/2, 0, 0)-"
        f"private between databases that both hold a tuple beside t, which allows {allowed:.2f}, and would of both "
        "together if it composed.",
    )


def _secret(guess: NDArray[np.bool_], inside: NDArray[np.bool_]) -> Row:
    """Return how often both outputs together reveal s(T) itself."""
    rate = Rate(int((guess == inside).sum()), len(inside))
    return Row(
        "section 2.2: s(T) itself, from both outputs",
        "leaks r(D)",
        rate.share,
        rate.hits < rate.trials,
        'The text says "the composition of A1 and A2 leaks r(D)"; that is what A1 publishes anyway. What leaks is s: '
        f"{rate}, theory 1.",
    )


MALE, FEMALE, EPSILON = 5_000, 5_000, 1.0
# Pr[A2 ≥ .5 and A1 = false] without t and with it, as stated in the paper.
PRINTED = {False: 0.0, True: 0.25}
# Tolerance for a value stated with "≈".
ABOUT = 0.02


def majority_rows(seed: int) -> list[Row]:
    """Sample databases of 10,000 tuples, half of them male, run both algorithms, and count the text's event."""
    rng = np.random.default_rng(seed)
    rows, rates = [], {}
    for there in (False, True):
        male, female, inside = _majority_sample(there, MALE, FEMALE, rng)
        says = (male > female) ^ inside
        noise = rng.laplace(scale=1 / EPSILON, size=(2, TRIALS))
        above = male + noise[0] >= female + noise[1]
        rates[there] = Rate(int((above & ~says).sum()), TRIALS)
        theory = _event(there=there)
        world = "with t" if there else "without t"
        rows.append(
            Row(
                f"section 2.6: Pr[A2 >= 0.5 and A1 = false] {world}",
                PRINTED[there],
                rates[there].share,
                rates[there].agrees_with(theory) and abs(theory - PRINTED[there]) < ABOUT,
                f'Printed "≈ {"1/4" if there else "0"}"; measured {rates[there]}, exact {theory:.5f} (ties of male and '
                f"female, and noise across ½). Agrees within {ABOUT:g}.",
            )
        )
    share = {there: rate.share for there, rate in rates.items()}
    rows.append(_success(rates))
    rows.append(_alone(rng))
    bound = math.log(_event(there=True) / _event(there=False))
    rows.append(
        Row(
            "section 2.6: epsilon the composition has at least",
            "non-private",
            bound,
            bound > 2 * EPSILON,
            "ln of the event's exact ratio; measured "
            f"{math.log(share[True] / max(share[False], 1 / TRIALS)):.2f}, where "
            f"A2 spends {EPSILON:g}. Agrees above twice that.",
        )
    )
    return rows


def _majority_sample(
    there: bool,  # noqa: FBT001 - a world, not a switch
    male: int,
    female: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return, for a sample of each database, males, females and whether t is in it; t is one of the males."""
    inside = (rng.random(TRIALS) < BETA) & there
    others = rng.binomial(male - int(there), BETA, TRIALS)
    return others + inside, rng.binomial(female, BETA, TRIALS), inside


def _event(*, there: bool) -> float:
    """Return the exact Pr[A2 ≥ ½ and A1 = false].

    When a males and b females are sampled with probability ½, the number of males minus that of females has the
    distribution of Bin(a + b, ½) − b. A2 is the ratio of two noisy counts (parallel composition over disjoint tuples,
    so ε in total). It is at least ½ if that difference plus the difference of two Laplace variables is at least 0.
    """
    total = MALE + FEMALE - int(there)
    lead = np.arange(total + 1) - FEMALE
    masses = mass_at(np.arange(total + 1), total, 0.5)
    missing = float(masses @ (_at_least(-lead) * (lead <= 0)))
    if not there:
        return missing
    return (1 - BETA) * missing + BETA * float(masses @ (_at_least(-lead - 1) * (lead + 1 > 0)))


def _at_least(y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probability that the difference of two Laplace(1/ε) variables is at least y."""
    size = EPSILON * np.abs(y)
    tail = 0.5 * np.exp(-size) * (1 + size / 2)
    return np.where(y >= 0, tail, 1 - tail)


def _success(rates: dict[bool, Rate]) -> Row:
    """Return the success rate of guessing that t is in the database exactly if the event occurs, over both worlds."""
    rate = Rate(rates[True].hits + TRIALS - rates[False].hits, 2 * TRIALS)
    theory = 0.5 * (_event(there=True) + 1 - _event(there=False))
    return Row(
        "section 2.6: A1 and A2 on one sample",
        "non-private",
        rate.share,
        rate.agrees_with(theory) and rate.exceeds(0.5),
        f"Guess that t is in the database exactly where the event happens: {rate}; theory {theory:.4f}, and ½ without "
        "the outputs.",
    )


def _alone(rng: np.random.Generator) -> Row:
    """Return the success rate of a guess from A1 alone, on a database that is all male."""
    hits = 0
    for there in (False, True):
        male, female, inside = _majority_sample(there, MALE + FEMALE, 0, rng)
        hits += int((((male > female) ^ inside) == (not there)).sum())  # A1 = false: guess that t is in the database
    rate = Rate(hits, 2 * TRIALS)
    theory = 0.5 * (1 + BETA)
    return Row(
        "section 2.6: A1 alone, on an all-male database",
        "A1 satisfies (beta, epsilon, delta)-DPS",
        rate.share,
        rate.agrees_with(0.5),
        '"A1 satisfies (β, ε, δ)-DPS for any β that is not too close to 1": not so. Differential privacy is asked of '
        "every database; if all are male r(T) is known, A1 publishes s(T), and δ ≥ β. "
        f"Measured {rate}; theory {theory:.4f}. So the example as printed composes nothing: A1 alone leaks. See "
        "the repaired one.",
    )


BAND, ENOUGH, NOISE_EPSILON = 64, 200_000, 0.25
# ε at which A1's δ is stated.
BANDED_EPSILON = 0.1


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
    sizes, deltas = worst_databases(BANDED_EPSILON)
    delta = max(deltas)
    noisy, _ = resampled_privacy(epsilon=NOISE_EPSILON, delta=0.0, sampling=1.0, to=BETA)
    allowed = allowed_success(BANDED_EPSILON + noisy, delta)
    theory = 0.5 * (1 + BETA) - _misread() / 2
    rows = [
        Row(
            "section 2.6 repaired: delta of A1, greatest over databases",
            "A1 satisfies (beta, epsilon, delta)-DPS",
            delta,
            delta < BETA / 100,
            f"Exact at ε = {BANDED_EPSILON:g}, β = {BETA:g}, for t and for another tuple, "
            f"over {len(sizes)} sizes n; agrees if below a hundredth of β. "
            "Only |T| and t enter, so n is all there is to a database.",
        ),
        Row(
            "section 2.6 repaired: A1 alone",
            "private",
            only.share,
            only.agrees_with(0.5) and not only.exceeds(allowed_success(BANDED_EPSILON, delta)),
            f"Guess whether t is in the database: {only}; theory 0.5000, allowed "
            f"{allowed_success(BANDED_EPSILON, delta):.4f}.",
        ),
        Row(
            "section 2.6 repaired: A1 and A2 on one sample",
            "non-private",
            rate.share,
            rate.agrees_with(theory) and rate.exceeds(allowed),
            f"Guess whether t is in the database: {rate}; theory {theory:.4f}. A2 spends {NOISE_EPSILON:g}, "
            f"{noisy:.3f} after sampling; if they composed, ({BANDED_EPSILON + noisy:.3f}, {delta:.2g}) would allow "
            f"{allowed:.4f}.",
        ),
    ]
    drawing = Drawing(
        f"δ of the repaired A1 alone at ε = {BANDED_EPSILON:g}",
        "tuples in the database",
        "δ",
        [Curve("exact", sizes, deltas)],
    )
    return rows, drawing


def worst_databases(epsilon: float) -> tuple[list[int], list[float]]:
    """Return database sizes n around the one at which |T| reaches `ENOUGH`, and δ of A1 at each.

    The sizes are a twentieth of a standard deviation apart: the curve is smooth on that scale. Far below, A1 is false
    almost surely; far above, odd and even bands are equally likely up to the last digit.
    """
    spread = math.sqrt(ENOUGH / BETA * (1 - BETA) / BETA)
    sizes = [int(ENOUGH / BETA + spread * step / 20) for step in range(-120, 200)]
    return sizes, [max(_delta_target(n, epsilon), _delta_other(n, epsilon)) for n in sizes]


def _delta_target(n: int, epsilon: float) -> float:
    """Return δ between databases with t (n tuples) and without it."""
    first, masses = window(n - 1, BETA)
    size = first + np.arange(len(masses))
    odd, shifted = float(masses @ _odd(size)), float(masses @ _even(size + 1))
    return _binary_delta((1 - BETA) * odd + BETA * shifted, odd, epsilon)


def _delta_other(n: int, epsilon: float) -> float:
    """Return the larger δ between databases with and without another tuple, over t being in both or in neither."""
    first, masses = window(n - 1, BETA)
    size = first + np.arange(len(masses))
    plain = [float(masses @ _odd(size + more)) for more in (0, 1)]
    flipped = [float(masses @ _even(size + 1 + more)) for more in (0, 1)]
    without = [(1 - BETA) * plain[more] + BETA * flipped[more] for more in (0, 1)]
    pairs = [(plain[0], plain[1]), (without[0], without[1])]
    return max(_binary_delta((1 - BETA) * zero + BETA * one, zero, epsilon) for zero, one in pairs)


def _odd(size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether A1 is true for samples without t of these sizes."""
    odd: NDArray[np.bool_] = (size >= ENOUGH) & ((size // BAND) % 2 == 1)
    return odd


def _even(size: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether A1 is true for samples with t of these sizes."""
    even: NDArray[np.bool_] = (size >= ENOUGH) & ((size // BAND) % 2 == 0)
    return even


def _binary_delta(p: float, q: float, epsilon: float) -> float:
    """Return δ(ε) between two Boolean outputs that are true with probability p and q."""
    factor = math.exp(epsilon)
    return max(p - factor * q, q - factor * p, 1 - p - factor * (1 - q), 1 - q - factor * (1 - p), 0.0)


def _misread() -> float:
    """Return the probability that noise moves |T| to a band of the other parity, for |T| uniform in its band.

    For noise y, the share of positions from which |T| + y is an odd number of bands away is a triangle wave of |y|/64,
    which is 1 at odd multiples. Its mean under a Laplace density e^(−|y|/b)/2b is (b/64)·tanh(64/2b).
    """
    scale = 1 / NOISE_EPSILON / BAND
    return scale * math.tanh(0.5 / scale)


def reproduce(*, seed: int = 0) -> Reproduction:
    """Sample databases, run the algorithms on them together and separately, and count an adversary's right guesses."""
    rows, drawing = banded_rows(seed + 2)
    findings = (
        (
            "LQS sec 2.6's A1, \"more male than female\" XOR a tuple's presence, is not (β, ε, δ)-DPS as the "
            "text says: on an "
            "all-male database it publishes the presence, and δ ≥ β. Its conclusion stands: with the parity of "
            "⌊|T|/64⌋ in "
            "the predicate's place A1 is private for every database, A2 is, and both on one sample are not."
        ),
        'LQS sec 2.2 says the two algorithms together leak "r(D)"; they leak s(D).',
        (
            "LQS sec 2.6 writes D and D' as two databases of 10,000 each, of which one has t: not the pair D, D "
            "− t of its "
            "proofs. The rows replace another man by t, as printed."
        ),
    )
    return Reproduction([*parity_rows(seed), *majority_rows(seed + 1), *rows, *_fresh()], (drawing,), findings)


def _fresh() -> list[Row]:
    """Return rows on the statements of section 2.7 about fifty fresh samples."""
    beta, times, epsilon = 0.2, 50, 0.02
    once = 1 - (1 - beta) ** times
    return [
        Row(
            "section 2.7: epsilon of 50 fresh samples",
            1.0,
            times * epsilon,
            abs(times * epsilon - 1.0) < 1e-12,
            '"publishing the 50 outputs still satisfies (ε, δ)-DP for ε = 1, δ = 0": basic composition of 50 at '
            "ε = .02.",
        ),
        Row(
            "section 2.7: a tuple is in one of 50 samples",
            "with high probability",
            once,
            once > 0.99,
            '"With high probability, each tuple is included in at least one of the sampled datasets": of one tuple.',
        ),
        Row(
            "section 2.7: every one of 100,000 tuples is in one of 50 samples",
            "no tuple is thrown away",
            once**100_000,
            once**100_000 > 0.99,
            '"in some sense, no tuple is thrown away": of all tuples at once that holds up to about '
            f"{int(0.01 / (1 - once)):,} of them with probability .99, not of large data sets.",
        ),
    ]


NONCOMPOSITION = Entry("lqs-noncomposition", "LQS", "Secs 2.2 and 2.6: two private algorithms on one sample", reproduce)

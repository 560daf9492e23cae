"""Section 2.6's counterexample: "more male than female", XOR a device's presence, beside a noisy percentage."""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.binomial import mass_at
from simulator.reproduction.entry import Row
from simulator.reproduction.safe_sampling.agreement import Rate

BETA, MALE, FEMALE, EPSILON, TRIALS = 0.5, 5_000, 5_000, 1.0, 20_000
# Pr[A2 ≥ .5 and A1 = false] without t and with it, as printed.
PRINTED = {False: 0.0, True: 0.25}
# Printed with "≈".
ABOUT = 0.02


def majority_rows(seed: int) -> list[Row]:
    """Sample databases of 10,000, half of them male, run both algorithms, and count the event of the text."""
    rng = np.random.default_rng(seed)
    rows, rates = [], {}
    for there in (False, True):
        male, female, inside = _sample(there, MALE, FEMALE, rng)
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


def _sample(
    there: bool,  # noqa: FBT001 - a world, not a switch
    male: int,
    female: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return males, females and whether t is there, of a sample of each database; t is one of the males."""
    inside = (rng.random(TRIALS) < BETA) & there
    others = rng.binomial(male - int(there), BETA, TRIALS)
    return others + inside, rng.binomial(female, BETA, TRIALS), inside


def _event(*, there: bool) -> float:
    """Return Pr[A2 ≥ ½ and A1 = false] exactly.

    Males less females, of a of one and b of the other sampled with ½, is Bin(a + b, ½) − b. A2 is the ratio of two
    noisy counts (parallel over disjoint tuples, so ε in all), at least ½ if the difference plus that of two Laplace
    variables is at least 0.
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
    """Return how often "t is there, since the event happened" is right, over both worlds."""
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
    """Return how often A1 alone tells of a database that is all male."""
    hits = 0
    for there in (False, True):
        male, female, inside = _sample(there, MALE + FEMALE, 0, rng)
        hits += int((((male > female) ^ inside) == (not there)).sum())  # A1 = false: t is there
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

"""Section 2.2's counterexample: whether the number of tuples is odd, with and without a device's presence in it."""

import numpy as np
from numpy.typing import NDArray

from simulator.reproduction.entry import Row
from simulator.reproduction.safe_sampling.agreement import Rate, allowed_success

BETA, TUPLES, TRIALS = 0.5, 1_001, 20_000


def parity_rows(seed: int) -> list[Row]:
    """Run A₁(T) = "|T| is odd" and A₂(T) = A₁(T) XOR "t is in T" on databases that are sampled, and guess."""
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
    """Return, of a sample of every database, its tuples and whether t is among them."""
    inside = held & (rng.random(len(held)) < BETA)
    return rng.binomial(TUPLES, BETA, len(held)) + inside, inside


def _row(key: str, guess: NDArray[np.bool_], held: NDArray[np.bool_], theory: float, *, leaks: bool, said: str) -> Row:
    """Return how often the guess "t is in D" is right, beside theory and what (0, 0) allows."""
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
    """Return how often both outputs together give s(T) itself."""
    rate = Rate(int((guess == inside).sum()), len(inside))
    return Row(
        "section 2.2: s(T) itself, from both outputs",
        "leaks r(D)",
        rate.share,
        rate.hits < rate.trials,
        'The text says "the composition of A1 and A2 leaks r(D)"; that is what A1 publishes anyway. What leaks is s: '
        f"{rate}, theory 1.",
    )

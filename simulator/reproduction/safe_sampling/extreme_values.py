"""Section 3.1's rich man: net worths in a town, recoded by clusters, and by bins fixed beforehand."""

import numpy as np

from mechanisms.central import apply, cut_clusters
from simulator.reproduction.entry import Row
from simulator.reproduction.safe_sampling.agreement import Rate

# Tuples besides the rich individual, k of the paper, β.
OTHERS, K, BETA = 200, 20, 0.2
# Tables of every tuple, and of a sample, which tell less.
TRIALS = {1.0: 400, BETA: 2_000}
# In millions: nobody else is above the first; the rich individual is anywhere between the two, in whole millions.
KNOWN_ABOVE, LOWEST, HIGHEST = 10.0, 11, 60
# Bins chosen without looking.
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 10.0, 100.0])


def net_worth_rows(seed: int) -> list[Row]:
    """Return how often an attacker who reads the table finds the rich individual, by each way of recoding."""
    rng = np.random.default_rng(seed)
    rows = []
    for sampling in (1.0, BETA):
        seen = [_trial(sampling, held=trial % 2 == 0, rng=rng) for trial in range(TRIALS[sampling])]
        label = "every tuple" if sampling == 1.0 else f"a sample, beta={sampling:g}"
        values = HIGHEST - LOWEST + 1
        rows += [
            _row(
                f"net worth, clusters of {label}: is the individual in the data?",
                [guess == held for held, guess, _, _ in seen],
                theory=(1 + sampling) / 2,
                prior=0.5,
                published='"the rich individual is in the dataset"',
            ),
            _row(
                f"net worth, clusters of {label}: how much, if in the data",
                [right for held, _, right, _ in seen if held],
                theory=sampling + (1 - sampling) / values,
                prior=1 / values,
                published='"net worth is $35 million"',
            ),
        ]
    rows.append(
        _row(
            f"net worth, fixed bins, beta={BETA:g}, k={K}: is the individual in the data?",
            [guess == held for held, _, _, guess in seen],
            theory=0.5,
            prior=0.5,
            published="hidden in a crowd of k",
        )
    )
    return rows


def _trial(sampling: float, *, held: bool, rng: np.random.Generator) -> tuple[bool, bool, bool, bool]:
    """Return whether the individual was in the data; guessed so from clusters; the amount right; guessed from bins."""
    others = np.minimum(rng.lognormal(np.log(0.12), 1.0, OTHERS), KNOWN_ABOVE)
    worth = float(rng.integers(LOWEST, HIGHEST + 1))
    worths = np.append(others, worth) if held else others
    sample = worths[rng.random(len(worths)) < sampling]
    clusters = cut_clusters(sample[:, None], np.ones(len(sample), dtype=np.int64), K)
    top = max((float(cluster.high[0]) for cluster in clusters), default=0.0)
    guessed = top > KNOWN_ABOVE
    amount = top if guessed else float(rng.integers(LOWEST, HIGHEST + 1))
    kept = apply(lambda one: int(np.searchsorted(EDGES, one, side="left")), sample.tolist(), K)
    above = int(np.searchsorted(EDGES, KNOWN_ABOVE, side="left"))
    return held, guessed, amount == worth, any(group > above for group in kept)


def _row(key: str, right: list[bool], *, theory: float, prior: float, published: str) -> Row:
    """Return a success rate beside theory and what guessing without the table gives."""
    rate = Rate(sum(right), len(right))
    agrees = rate.agrees_with(theory) and rate.exceeds(prior) == (theory > prior)
    return Row(key, published, rate.share, agrees, f"{rate}; theory {theory:.4f}, {prior:.4f} without the table.")

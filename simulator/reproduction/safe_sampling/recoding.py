"""lqs-recoding: k-anonymity that looks at the data tells extreme values; suppression on a fixed grid does not."""

import math

import numpy as np

from mechanisms.central import SampleThenSuppress
from mechanisms.privacy.binomial import mass_at
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.agreement import Rate, allowed_success
from simulator.reproduction.safe_sampling.extreme_values import BETA, K, net_worth_rows
from simulator.reproduction.safe_sampling.lone_vehicle import lone_vehicle_rows

TRIALS = 100_000


def reproduce(*, seed: int = 0) -> Reproduction:
    """Attack both ways of recoding, on net worths and on vehicles, by reading the table and by likelihood."""
    rows = [*net_worth_rows(seed), *lone_vehicle_rows(seed + 1), *_likelihood(seed + 2)]
    k = np.arange(2, 41)
    claims = [SampleThenSuppress(k=int(each), sampling=BETA) for each in k]
    drawing = Drawing(
        f"δ at ε = 1 after sampling with β = {BETA:g}",
        "k",
        "δ",
        [
            Curve("clustering and local recoding", k.tolist(), [BETA] * len(k)),
            Curve("fixed cells, theorem 5", k.tolist(), [claim.theorem_5().delta(1.0) for claim in claims]),
            Curve(
                "fixed cells, exact worst crowd", k.tolist(), [claim.claim(crowd=None).delta(1.0) for claim in claims]
            ),
        ],
        log_y=True,
    )
    findings = (
        (
            "Clustering and local recoding publishes the extreme value itself: found in every table, and after "
            "sampling with "
            "β as often as it was sampled, so δ = β at every ε whatever k is. Suppression on a grid fixed "
            "beforehand, of the "
            f"same sample, leaves {claims[K - 2].claim(crowd=None).delta(1.0):.1g} at k = {K}, ε = 1."
        ),
    )
    return Reproduction(rows, (drawing,), findings)


def _likelihood(seed: int) -> list[Row]:
    """Return how often the best attack on fixed cells is right: everyone else known, the likelier world guessed."""
    rng = np.random.default_rng(seed)
    rows = []
    for crowd in (25, 60, 200):
        safe = SampleThenSuppress(k=K, sampling=BETA)
        laws = [_law(n, crowd) for n in (crowd, crowd - 1)]
        guess = laws[0] > laws[1]  # by output
        outputs = [np.maximum(rng.binomial(n, BETA, TRIALS) - K + 1, 0) for n in (crowd, crowd - 1)]
        rate = Rate(int(guess[outputs[0]].sum() + (~guess[outputs[1]]).sum()), 2 * TRIALS)
        exact = safe.claim(crowd=crowd)
        theory = allowed_success(0.0, exact.delta(0.0))
        loosest = min(
            allowed_success(e / 50, safe.theorem_5().delta(e / 50))
            for e in range(math.ceil(-50 * math.log1p(-BETA)), 200)
        )
        rows.append(
            Row(
                f"fixed cells, beta={BETA:g}, k={K}, crowd {crowd}: likelihood attack",
                "protected by theorem 5",
                rate.share,
                rate.agrees_with(theory) and not rate.exceeds(loosest),
                f"Is the device there, everyone else known: {rate}; exact theory ½(1 + δ(0)) = {theory:.4f}, theorem 5 "
                f"allows {loosest:.4f}, sampling alone {0.5 * (1 + BETA):.4f}.",
            )
        )
    return rows


def _law(n: int, crowd: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the law of what is published of n devices: nothing, k, k + 1 … crowd."""
    masses = mass_at(np.arange(crowd + 1), n, BETA)
    return np.append(masses[:K].sum(), masses[K:])


RECODING = Entry("lqs-recoding", "LQS", "Sec 3.1: reading extreme values off a k-anonymous table", reproduce)

"""Two releases with some differences suppressed: the guess is optimal over every pair of reports."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from mechanisms.local import SamplingPrivacy
from simulator.attacks.counterfactual import released_twice
from simulator.attacks.guesses import Prior

PRIOR = np.array([0.2, 0.3, 0.1, 0.4])


def pairs(mechanism, truth):
    """Both reports of a device, with their probability."""
    found = defaultdict(float)
    found[0, truth] += mechanism.sampling
    again = mechanism.blanks / (1.0 - mechanism.sampling)
    for blank, mass in enumerate(mechanism.blanks.tolist()):
        found[blank, blank] += mass * (1.0 - mechanism.refresh)
        for other, share in enumerate(again.tolist()):
            found[blank, other] += mass * mechanism.refresh * share
    return found


@pytest.mark.parametrize("refresh", [0.0, 0.6])
@pytest.mark.parametrize("round_", [None, 1, 2])
@pytest.mark.parametrize(
    ("visible", "positive"),
    [*((mask, False) for mask in itertools.product([False, True], repeat=3)), ((True, True, True), True)],
)
def test_guess_is_optimal_given_the_visible_differences_and_perhaps_one_report(refresh, round_, visible, positive):
    mechanism = SamplingPrivacy(cells=3, sampling=0.35, blank_zero=0.2, refresh=refresh)
    joint = defaultdict(lambda: np.zeros(len(PRIOR)))
    for truth, share in enumerate(PRIOR.tolist()):
        for pair, mass in pairs(mechanism, truth).items():
            own = np.bincount([pair[1]], minlength=4) - np.bincount([pair[0]], minlength=4)
            seen = np.where(visible, np.maximum(own[1:], 0) if positive else own[1:], 0)
            read = None if round_ is None else pair[round_ - 1]
            joint[tuple(seen.tolist()), read][truth] += share * mass
    success = 0.0
    for (seen, report), masses in joint.items():
        guess = released_twice(
            mechanism,
            np.array([seen]),
            Prior({1: PRIOR}),
            1,
            visible=None if positive and round_ is None else np.array([visible]),
            positive=positive,
            read=None if round_ is None else (round_, np.array([report])),
            rng=np.random.default_rng(1),
        )
        success += masses[guess[0]]
    assert success == pytest.approx(sum(masses.max() for masses in joint.values()), abs=1e-12)

"""Posteriors in a crowd: those of a few devices against enumeration by hand, those tilted to sums against these."""

import numpy as np
import pytest

from mechanisms.inference.crowd import Crowd
from mechanisms.inference.likelihood import posterior, report_law
from mechanisms.inference.tilted import TiltedPairs, crowd_law
from mechanisms.local import (
    BinarySamplingPrivacy,
    LocalHashing,
    SamplingPrivacy,
    SubsetSelection,
    SymmetricUnary,
)

PRIOR = np.array([0.2, 0.3, 0.5])
CROWDS = {
    "sampling": (SamplingPrivacy(cells=2, sampling=0.45), 6),
    "refreshed": (SamplingPrivacy(cells=2, sampling=0.4, refresh=0.5), 4),
    "binary": (BinarySamplingPrivacy(cells=2, sampling=0.3), 4),
    "unary": (SymmetricUnary(cells=2, epsilon=1.5), 6),
    "subset": (SubsetSelection(cells=2, epsilon=1.0), 6),
}


def test_two_devices_by_hand():
    """Reports 0, 1 of two devices that tell the truth with 3/4; their sum is seen, and one report or none."""
    masses = np.array([[0.75, 0.25], [0.25, 0.75]])
    crowd = Crowd(2, np.array([0.5, 0.5]), masses, np.array([[0], [1]]), np.array([-9]))
    every = np.ones(2, dtype=bool)
    assert crowd.posterior([every, every], np.array([2])) == pytest.approx(np.array([[0.25, 0.75]] * 2))
    assert crowd.posterior([every, np.array([False, True])], np.array([1])) == pytest.approx(
        np.array([[0.75, 0.25], [0.25, 0.75]])
    )
    assert crowd.posterior([every, every], np.array([5])) is None
    assert crowd.success([[], []], 0) == pytest.approx(0.25 * 0.75 + 0.5 * 0.5 + 0.25 * 0.75)
    assert crowd.success([[], [np.arange(2)]], 0) == pytest.approx(0.75)


@pytest.mark.parametrize("name", CROWDS)
def test_tilted_laws_are_nearly_exact_and_lose_hardly_any_success(name):
    mechanism, n = CROWDS[name]
    outcomes, rng = report_law(mechanism).outcomes(), np.random.default_rng(1)
    flat = [encoding.reshape(len(encoding), -1) for encoding in outcomes.encodings]
    added = np.concatenate(flat, axis=1)
    crowd = Crowd(n, PRIOR, outcomes.masses, added, np.full(added.shape[1], -9))
    rounds = [(), (1,), (2,)] if len(flat) == 2 else [()]
    differences, found, best = [], [], []
    for _ in range(40):
        truths = rng.choice(len(PRIOR), n, p=PRIOR)
        sent = np.array([rng.choice(outcomes.masses.shape[1], p=outcomes.masses[truth]) for truth in truths])
        law = crowd_law(mechanism, PRIOR, {r: one[sent].sum(axis=0) for r, one in enumerate(outcomes.encodings, 1)}, n)
        for linked in rounds:
            possible = [np.ones(len(added), dtype=bool) for _ in range(n)]
            for device in range(n):
                for r in linked:
                    possible[device] &= (flat[r - 1] == flat[r - 1][sent[device]]).all(axis=1)
            exact = crowd.posterior(possible, added[sent].sum(axis=0))[0]
            tilted = posterior(law.logs({r: outcomes.encodings[r - 1][sent[:1]] for r in linked}), PRIOR)[0]
            differences.append(np.abs(exact - tilted).max())
            found.append(exact[tilted.argmax()])
            best.append(exact.max())
    assert np.mean(differences) < 0.03
    assert np.mean(found) > 0.99 * np.mean(best)
    if name == "sampling":  # the sums determine the pairs of reports
        assert max(differences) < 0.005


def test_sums_of_support_and_differences_show_the_frequent_cell():
    rng, n = np.random.default_rng(3), 400
    truth = np.repeat([0, 1, 2, 3], [40, 60, 240, 60]).astype(np.int32)
    prior = np.full(4, 0.25)
    for mechanism in (SubsetSelection(cells=3, epsilon=2.0), LocalHashing(cells=3, epsilon=2.0)):
        reports = mechanism.answer(1, truth, mechanism.toss(mechanism.enrol(n, rng=rng), rng=rng))
        law = crowd_law(mechanism, prior, {1: mechanism.tally(reports)}, n)
        assert posterior(law.logs({}), prior)[0].argmax() == 2
    mechanism = SamplingPrivacy(cells=3, sampling=0.45)
    shares = np.array([27, 0, 108]) / n
    law = TiltedPairs.of_differences(mechanism, prior, shares, np.array([True, False, True]))
    after = posterior(law.logs({}), prior)[0]
    # All others are blanks, or sampled outside or in the cell that is not shown.
    others = (1.0 - shares.sum()) / (0.55 + 0.45 * 0.5)
    weights = np.array([0.25, 0.55 * 0.25, 0.25, 0.55 * 0.25]) * others + np.array([0.0, shares[0], 0.0, shares[2]])
    assert after == pytest.approx(weights, rel=1e-12)

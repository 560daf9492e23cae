"""Attacks over time: published figures beside exact ones, against enumeration."""

import itertools

import numpy as np
import pytest

from simulator.papers.over_time import middle_success
from simulator.papers.published_results import find_entries


@pytest.mark.parametrize(("change", "keep"), [(0.1, 0.7), (0.5, 0.9), (0.02, 0.6224593312)])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 0), (0, 2), (2, 3)])
def test_guess_of_a_state_in_a_chain_by_enumeration(change, keep, before, after):
    length, moves = before + after + 1, np.array([[1 - change, change], [change, 1 - change]])
    joint = np.zeros((2,) * (length + 1))
    for states in itertools.product((0, 1), repeat=length):
        path = 0.5 * np.prod([moves[pair] for pair in itertools.pairwise(states)])
        for reports in itertools.product((0, 1), repeat=length):
            right = sum(state == report for state, report in zip(states, reports, strict=True))
            joint[(states[before], *reports)] += path * keep**right * (1 - keep) ** (length - right)
    success = middle_success(change, keep, before=before, after=after)
    assert success == pytest.approx(joint.max(axis=0).sum(), rel=1e-12)


def test_chain_of_thirty_states():
    (entry,) = find_entries("saraf-chain")
    *rows, alone = entry.reproduce(seed=1).rows
    assert {row.verdict for row in rows} == {"not contradicted"}
    assert rows[0].computed == pytest.approx(0.831215, abs=1e-6)
    assert alone.computed == pytest.approx(np.exp(0.5) / (1 + np.exp(0.5)))
    # The success falls to the success of one report, and is never below it.
    successes = [row.computed for row in rows]
    assert successes[:7] == sorted(successes[:7], reverse=True)
    assert successes[6:] == pytest.approx([alone.computed] * 4)


def test_loss_of_one_place_beside_the_loss_of_the_route():
    (entry,) = find_entries("cao-temporal")
    result = entry.reproduce(seed=1)
    chain, cells = result.rows[:10], result.rows[10:]
    assert {row.verdict for row in chain} == {"as computed elsewhere"}
    assert [row.computed for row in cells] == pytest.approx([4.05, 2.62, 1.75], abs=0.005)
    # A place loses at most what the route loses, and at least what one query reveals.
    assert all(0.1 <= row.computed <= 0.1 * (1 + number) + 1e-12 for number, row in enumerate(chain))
    assert "has ε = 4.05, and its route 8" in result.findings[0]

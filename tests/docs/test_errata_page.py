"""The page of errata: its figures are computed, and it names entries that exist."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from mechanisms.local import RandomizedResponse
from mechanisms.privacy import SafeDelta
from mechanisms.privacy.subsampling import least_epsilon
from simulator.papers.published_results import ENTRIES
from simulator.papers.safe_sampling.generalization import BLOCKS, BlockChoice

PAGE = Path(__file__).parents[2].joinpath("docs", "why", "errata.md").read_text("utf-8")


def test_entries_that_the_page_names_exist():
    named = set(re.findall(r"`((?:sp|alp|lqs|hdk)-[a-z0-9-]+)`", PAGE))
    assert len(named) > 10
    assert named <= {entry.name for entry in ENTRIES}


@pytest.mark.parametrize(("devices", "error"), [(10**4, "24.5"), (10**6, "243.9")])
def test_error_of_section_1_with_a_hundred_vehicles_in_the_area(devices, error):
    response = RandomizedResponse(cells=1, first_coin=0.85, second_coin=0.3)
    assert f"{response.std_error(np.array([devices - 100, 100]))[0]:.1f}" == error
    assert error in PAGE


def _enumerated(choice):
    """The same example from every sample of every block: outcomes (map, published count of its block)."""
    beta, others = choice.sampling, choice.crowd - 1
    chances = [math.comb(others, s) * beta**s * (1 - beta) ** (others - s) for s in range(others + 1)]
    with_t, without = {}, {}
    for blocks in itertools.product(range(others + 1), repeat=int(choice.maps)):
        weights = [math.exp(choice.epsilon * s) for s in blocks]
        for chosen, s in enumerate(blocks):
            chance = math.prod(chances[each] for each in blocks) * weights[chosen] / sum(weights)
            for law, count, share in ((without, s, 1.0), (with_t, s, 1 - beta), (with_t, s + 1, beta)):
                key = chosen, count if count >= choice.k else 0
                law[key] = law.get(key, 0.0) + chance * share
    return with_t, without


@pytest.mark.parametrize(("epsilon", "k", "beta", "crowd", "maps"), [(1.0, 2, 0.2, 3, 2), (0.3, 3, 0.5, 3, 4)])
def test_chosen_blocks_by_enumeration(epsilon, k, beta, crowd, maps):
    choice = BlockChoice(epsilon, k, beta, crowd, maps)
    with_t, without = _enumerated(choice)
    for at in (0.0, 0.5, 1.5):
        deltas = [
            sum(max(p.get(key, 0.0) - math.exp(at) * q.get(key, 0.0), 0.0) for key in p.keys() | q.keys())
            for p, q in ((with_t, without), (without, with_t))
        ]
        assert choice.delta(at) == pytest.approx(max(deltas), rel=1e-6, abs=1e-15)


def test_theorem_6_fails_by_the_factors_of_the_page():
    times = []
    for spent, rest, k, beta, crowd, maps in BLOCKS:
        epsilon = spent + rest + least_epsilon(beta)
        delta = BlockChoice(spent, k, beta, crowd, maps).delta(epsilon)
        times.append(delta / SafeDelta(k, beta, spent, "paper")(epsilon))
        if k == 10:
            assert f"{delta * 1e5:.2f} × 10⁻⁵" in PAGE
    assert [f"{each:,.0f}" if each > 10 else f"{each:.1f}" for each in times[2:]] == ["2,464", "62", "5.5"]
    assert all(each > 2 for each in times)

"""The loss for one place under a Markov prior: the paper's figures, and every set of places by brute force."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from mechanisms.privacy.temporal_loss import backward_moves, losses


def by_all_sets(matrix, loss):
    """The largest ratio of the linear-fractional program, over every pair of rows and every set of places."""
    growth, best = np.exp(loss) - 1.0, 0.0
    for q, d in itertools.permutations(matrix, 2):
        for inside in itertools.product([False, True], repeat=len(q)):
            chosen = list(inside)
            best = max(best, np.log((q[chosen].sum() * growth + 1.0) / (d[chosen].sum() * growth + 1.0)))
    return best


def test_figures_of_the_paper():
    found = losses([csr_array(np.array([[0.8, 0.2], [0.0, 1.0]]))] * 9, [0.1] * 10)
    expected = [0.1, 0.1808, 0.2471, 0.3024, 0.3488, 0.3881, 0.4216, 0.4503, 0.4750, 0.4964]
    assert found == pytest.approx(expected, abs=5.1e-5)


@pytest.mark.parametrize(("stays", "expected"), [(0.9, 4.05), (0.7, 2.62), (0.5, 1.75)])
def test_current_place_of_five_cells_loses_less_than_the_route(stays, expected):
    matrix = np.full((5, 5), (1.0 - stays) / 4)
    np.fill_diagonal(matrix, stays)
    assert losses([csr_array(matrix)] * 7, [1.0] * 8)[-1] == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("places", "seed"), [(2, 1), (3, 2), (4, 3), (6, 4)])
def test_other_chains_agree_with_every_set(places, seed):
    rng = np.random.default_rng(seed)
    matrices = [rng.dirichlet(np.full(places, 0.4), places) for _ in range(4)]
    matrices[1] *= rng.random((places, places)) < 0.7
    matrices[1][:, 0] += 1.0 - matrices[1].sum(axis=1)
    epsilons = rng.random(5) * 2.0
    found = losses([csr_array(matrix) for matrix in matrices], epsilons)
    for step, matrix in enumerate(matrices):
        assert found[step + 1] == pytest.approx(epsilons[step + 1] + by_all_sets(matrix, found[step]))
    assert (found <= np.cumsum(epsilons) + 1e-9).all()


def test_extreme_chains():
    """A place that never changes loses what the route loses; independent places lose their own ε; ∞ stays infinite."""
    still, fresh = csr_array(np.eye(3)), csr_array(np.full((3, 3), 1 / 3))
    assert losses([still] * 3, [1.0] * 4) == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert losses([fresh] * 3, [1.0] * 4) == pytest.approx([1.0] * 4)
    assert losses([still, fresh], [np.inf, 1.0, 1.0]).tolist() == [np.inf, np.inf, 1.0]
    assert losses([still] * 800, [1.0] * 801)[-1] == np.inf


def test_moves_backward_by_bayes():
    start = np.array([0.5, 0.5, 0.0])
    moves = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    (backward,) = backward_moves(np.stack([start, start @ moves]), [csr_array(moves)])
    assert backward.toarray() == pytest.approx(np.array([[1.0, 0.0, 0.0], [1 / 3, 2 / 3, 0.0], [0.0, 0.0, 0.0]]))
    assert losses([backward], [1.0, 1.0])[1] == pytest.approx(1.0 + by_all_sets(backward.toarray()[:2], 1.0))

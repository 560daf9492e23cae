"""Coins and answers packed 64 to a word, and categorical draws: distributions, edge cases and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_statistics import z_bound

from mechanisms.local import BitReports, ParameterError, RandomizedResponse
from mechanisms.local.common.categorical_sampling import alias_table, draw_categorical
from mechanisms.local.common.packed_bits import BATCH_BYTES, BATCH_DEVICES, ROWS, batch_of_rows, toss_rows
from mechanisms.local.common.random_words import FEWEST, PIECE, random_words


@given(n=st.integers(0, 40), cells=st.integers(1, 200), seed=st.integers(0, 2**32))
def test_packing_and_unpacking_are_inverse(n, cells, seed):
    dense = np.random.default_rng(seed).integers(0, 2, (n, cells)).astype(np.uint8)
    reports = BitReports.from_dense(dense)
    np.testing.assert_array_equal(reports.to_dense(), dense)
    assert len(reports) == n
    assert reports.nbytes == n * -(-cells // 64) * 8
    np.testing.assert_array_equal(reports[::-2].to_dense(), dense[::-2])


@pytest.mark.parametrize("n", [0, ROWS, ROWS + 1, 3 * ROWS + 7])
def test_column_sums_are_exact_beyond_counter_overflow(n):
    rng = np.random.default_rng(21)
    asked = RandomizedResponse(cells=70, first_coin=0.5, second_coin=0.5)
    for dense in (np.ones((n, 70), dtype=np.uint8), rng.integers(0, 2, (n, 70)).astype(np.uint8)):
        mask = rng.random(n) < 0.7
        reports = BitReports.from_dense(dense)
        np.testing.assert_array_equal(asked.tally(reports)[:, 1], dense.sum(axis=0))
        np.testing.assert_array_equal(asked.tally(reports, mask)[:, 1], dense[mask].sum(axis=0))


def test_invalid_bit_reports_are_refused():
    for bits, cells in (
        (np.zeros((2, 1)), 3),
        (np.zeros((2, 1), dtype=np.uint64), 65),
        (np.zeros(2, dtype=np.uint64), 3),
    ):
        with pytest.raises(ParameterError, match=r"^bits must"):
            BitReports(bits, cells)
    with pytest.raises(ParameterError, match=r"^cells must be at least 1"):
        BitReports(np.zeros((2, 1), dtype=np.uint64), 0)
    with pytest.raises(ParameterError, match=r"^reports must be BitReports about 4 cells"):
        RandomizedResponse(cells=4, first_coin=0.5, second_coin=0.5).tally(BitReports.from_dense(np.ones((2, 3))))
    with pytest.raises(ValueError, match="read-only"):
        BitReports.from_dense(np.ones((2, 3))).bits[0] = 0


@pytest.mark.parametrize("probability", [0.5, 0.04, 1 / 3, 2.0**-60, 0.999])
@pytest.mark.parametrize("cells", [1, 100])
def test_packed_coins_are_independent_bernoullis(probability, cells):
    """Each column's mean, and the product of each pair of neighbouring bits, in a row and in a column."""
    n = 200_000 // cells
    rows = toss_rows(n, cells, probability, rng=np.random.default_rng(22))
    bits = BitReports(rows, cells).to_dense().astype(float)
    assert rows.shape == (n, -(-cells // 64))
    spread = np.sqrt(probability * (1 - probability))
    bound = z_bound(cells + 3)
    if n * probability > 10:
        assert np.abs((bits.mean(axis=0) - probability) * np.sqrt(n) / spread).max() < bound
        for one, other in ((bits[:, 1:], bits[:, :-1]), (bits[1:], bits[:-1])):
            if one.size:
                products = (one - probability) * (other - probability)
                assert abs(products.sum()) / (spread**2 * np.sqrt(products.size)) < bound
    elif bits.size * probability > 10:
        assert abs(bits.sum() - bits.size * probability) / (spread * np.sqrt(bits.size)) < bound
    else:
        assert not bits.any()  # 2⁻⁶⁰ of 200,000 coins


def test_certain_coins_and_excluded_bits():
    rng = np.random.default_rng(23)
    taken = toss_rows(50, 70, 0.5, rng=rng)
    assert BitReports(toss_rows(50, 70, 1.0, rng=rng), 70).to_dense().all()
    state = rng.bit_generator.state
    assert not toss_rows(50, 70, 0.0, rng=rng).any()
    assert rng.bit_generator.state == state
    for probability in (0.6, 1.0):
        rest = toss_rows(50, 70, probability, rng=rng, unless=taken)
        assert not (rest & taken).any()
        assert rest.any()
    full = toss_rows(50, 70, 1.0, rng=rng, unless=taken)
    assert (full | taken == toss_rows(50, 70, 1.0, rng=rng)).all()


@pytest.mark.parametrize("words", [1, 2**10, 2**30])
def test_a_batch_keeps_its_limits(words):
    devices = batch_of_rows(words)
    assert 1 <= devices <= BATCH_DEVICES
    assert devices == 1 or 8 * words * devices <= BATCH_BYTES


def test_coins_do_not_depend_on_the_draw_size(monkeypatch):
    """The distribution is the same whether a draw holds few words or many, and no coin is lost at the end of a draw."""
    monkeypatch.setattr("mechanisms.local.common.packed_bits.DRAW", 100)
    rows = toss_rows(4_000, 64, 0.3, rng=np.random.default_rng(24))
    ones = BitReports(rows, 64).to_dense().sum()
    assert abs(ones - 0.3 * 256_000) / np.sqrt(256_000 * 0.21) < z_bound(1)


@given(weights=st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda w: sum(w) > 1e-3))
def test_alias_tables_hold_their_distribution(weights):
    weights = np.array(weights)
    keep, alias = alias_table(weights)
    faces = len(weights)
    held = keep / faces
    np.add.at(held, alias, (1 - keep) / faces)
    np.testing.assert_allclose(held, weights / weights.sum(), atol=1e-12)
    assert (keep[weights == 0] == 0).all()


@pytest.mark.parametrize("weights", [np.full(5, 0.11), np.array([0.0, 0.3, 0.05, 0.15, 0.05])])
def test_categorical_draws_have_their_probabilities(weights):
    sampling, n = 1 - weights.sum(), 300_000
    table = None if weights.min() == weights.max() else alias_table(weights)
    thrown = draw_categorical(n, sampling, 5, table, rng=np.random.default_rng(25))
    assert thrown.dtype == np.int32
    expected = np.concatenate([[sampling], weights])
    seen = np.bincount(thrown + 1, minlength=6)
    possible = expected > 0
    assert (seen[~possible] == 0).all()
    scores = (seen - n * expected)[possible] / np.sqrt(n * expected * (1 - expected))[possible]
    assert np.abs(scores).max() < z_bound(6)


@pytest.mark.parametrize("size", [1, FEWEST, 3 * PIECE + 5])
@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.Philox])
def test_random_words_are_numpys_and_leave_its_state(size, generator):
    """The same words, uniform numbers and state, also where half a word is left over from a draw of 32 bits."""
    one, other, third = (np.random.Generator(generator(26)) for _ in range(3))
    for rng in (one, other, third):
        rng.integers(5, dtype=np.int32)
    words = np.concatenate([piece.copy() for piece in random_words(size, rng=one)])
    np.testing.assert_array_equal(words, other.integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True))
    np.testing.assert_array_equal((words >> np.uint64(11)) * 2.0**-53, third.random(size))
    assert (
        one.integers(2**31, size=9, dtype=np.int32).tolist() == other.integers(2**31, size=9, dtype=np.int32).tolist()
    )

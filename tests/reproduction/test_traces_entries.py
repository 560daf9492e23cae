"""Traces on data at hand, beside figures that were computed before; tests are left out where their data are absent."""

import numpy as np
import pytest

from simulator.papers.published_results import DataError, find_entries
from simulator.papers.traces import PLACEMENTS, STEPS, TRACES, places_at, read_fixes, scores_of, unique_shares

RECOVERED = {
    ("T-Drive", 500): ((0.274, 0.131, 0.039), (0.0, 0.2)),
    ("T-Drive", 2000): ((0.267, 0.171, 0.051), (0.029, 0.243)),
    ("T-Drive", 5000): ((0.336, 0.268, 0.096), (0.057, 0.257)),
    ("acosta", 50): ((0.423, 0.115, 0.150), (0.099, 0.0)),
    ("acosta", 200): ((0.621, 0.231, 0.234), (0.085, 0.0)),
    ("acosta", 500): ((0.678, 0.454, 0.394), (0.183, 0.0)),
}
"""The published score of recovered traces, if nobody moves, and of random traces; the last step by the first two."""
UNIQUE = {
    "Gowalla, 1,000 m × 3,600 s": (0.62, 0.96, 0.995, 0.99),
    "Gowalla, 5,000 m × 86,400 s": (0.05, 0.41, 0.68, 0.83),
    "T-Drive, 5,000 m × 3,600 s": (0.11, 0.51, 0.86, 1.0),
    "acosta, 50 m × 10 s": (0.12, 0.52, 0.73, 0.87),
    "acosta, 200 m × 60 s": (0.0, 0.06, 0.14, 0.21),
    "acosta, 500 m × 300 s": (0.0, 0.0, 0.02, 0.03),
}


@pytest.fixture(scope="module")
def places():
    try:
        return {data: places_at(read_fixes(data), *STEPS[data]) for data in STEPS}
    except DataError as error:
        pytest.skip(str(error))


def test_vehicles_that_are_apart_and_stand_are_recovered():
    places = np.repeat(np.array([[[0.0, 0.0]], [[500.0, 0.0]], [[0.0, 900.0]]]), 4, axis=1)
    scores = scores_of(places, 100.0, np.random.default_rng(1))
    assert (scores[:2] == 1.0).all()
    assert scores.shape == (3, 3)


def test_people_with_a_point_of_their_own_are_unique():
    """Of a and b one point of two is shared, of c none of four: one point is unique of two people in three."""
    person, point = [*"aabbcccca"], [0, 1, 0, 2, 3, 4, 5, 6, 1]
    shares = [dict(unique_shares(person, np.array([point]).T, np.random.default_rng(seed))) for seed in range(8)]
    assert {each[2] for each in shares} == {each[4] for each in shares} == {1.0}
    assert np.mean([each[1] for each in shares]) == pytest.approx(2 / 3, abs=0.05)  # six standard errors


@pytest.mark.parametrize(("data", "size_m"), RECOVERED)
def test_recovered_traces_score_as_computed_before(places, data, size_m):
    """The lines of the grid are not stated, so that figures of one grid are compared with the spread over several.

    The last step of T-Drive is a matter of single taxis: 1 of 70 is .014.
    """
    rng = np.random.default_rng(1)
    assert len(places[data]) == {"T-Drive": 70, "acosta": 71}[data]
    scores = np.stack([scores_of(places[data], size_m, rng) for _ in range(PLACEMENTS // 2)])
    mean, spread = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    published, last = RECOVERED[data, size_m]
    assert mean[:, 0] == pytest.approx(published, abs=4 * spread[:, 0].max() + 0.02)
    assert mean[:2, 2] == pytest.approx(last, abs=4 * spread[:2, 2].max() + 0.02)
    assert (mean[:, 1] > mean[:, 0]).all()
    assert mean[0, 0] > mean[1, 0]
    assert (mean[0, 2] < mean[1, 2]) == (data == "T-Drive")


def test_shares_of_unique_traces_agree_within_their_sampling_error():
    (entry,) = find_entries("unicity")
    done = entry.reproduce(seed=1)
    if done.skipped:
        pytest.skip(done.skipped)
    rows = {row.key: row for row in done.rows}
    for setting, shares in UNIQUE.items():
        for known, share in enumerate(shares, start=1):
            found = rows[f"{setting}: unique by {known}"].computed
            middle = min(max((found + share) / 2, 0.01), 0.99)
            assert abs(found - share) < 4 * np.sqrt(2 * middle * (1 - middle) / TRACES)


def test_sets_of_home_and_work():
    (entry,) = find_entries("home-and-work")
    done = entry.reproduce(seed=1)
    if done.skipped:
        pytest.skip(done.skipped)
    found = [row.computed for row in done.rows]
    assert [f"{median:.4g}" for median in found[::2]] == ["1100", "257.4", "119.7", "15.6"]
    assert [f"{small:.1%}" for small in found[1::2]] == ["0.0%", "1.6%", "9.4%", "34.6%"]

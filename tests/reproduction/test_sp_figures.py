"""SP's figures: the numbers behind the findings, each computed independently."""

import math
import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.papers.published_results import find_entries, read_paper
from simulator.papers.sampling_privacy import (
    AGE,
    PATIENTS,
    SCALED,
    TUMOUR_SIZE,
    bars_of,
    crossover,
    randomized_response,
    response_coverage,
    sampling_coverage,
    sampling_privacy,
    with_outside,
)

WITHOUT_DATA = ("sp-sec1-sigma", "sp-fig1", "sp-fig3", "sp-fig4", "sp-fig5", "sp-fig6", "sp-fig7")
SHARED = read_paper("sampling_privacy").shared
RECURRENCES = {attribute: SHARED.numbers[f"recurrences by {attribute}"] for attribute in (TUMOUR_SIZE, AGE)}
MEASURED = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "uci_breast_cancer", "breast-cancer.data")


def reproduce(name, seed=1):
    (entry,) = find_entries(name)
    return entry.reproduce(seed=seed)


def rows(name):
    return {row.key: row for row in reproduce(name).rows}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_verdicts_do_not_depend_on_the_seed(name):
    first, other = (reproduce(name, seed) for seed in (11, 12))
    assert [(row.key, row.agrees) for row in first.rows] == [(row.key, row.agrees) for row in other.rows]
    for done in (first, other):
        assert not [row.note for row in done.rows if "misses" in row.note]
    assert first.skipped is None


def test_fig6_agrees_in_every_digit():
    found = rows("sp-fig6")
    printed = [row for key, row in found.items() if key[0].isdigit()]
    assert len(printed) == 33
    assert all(row.agrees and row.published == row.computed for row in printed)
    assert found["randomized response's bars with 2 σ too, group 7"].computed == 74
    assert not found["randomized response's bars with 2 σ too, group 7"].agrees


def test_fig6_bars_equal_the_formulas():
    """Y = 25 of N = 10,000: σ² = Y·.55/.45, and (Y·.84·.16 + (N − Y)·.04·.96)/.64."""
    bars = bars_of(RECURRENCES[TUMOUR_SIZE], SCALED)
    assert bars.sampling()[6] == math.floor(25 + 2 * math.sqrt(25 * 0.55 / 0.45)) == 36
    assert bars.response()[6] == math.floor(25 + 2.576 * math.sqrt((25 * 0.1344 + 9975 * 0.0384) / 0.64)) == 88


@pytest.mark.parametrize("devices", [PATIENTS, SCALED, 10**6])
@pytest.mark.parametrize("sampling", [0.25, 0.45])
def test_crossover_is_where_the_errors_are_equal(devices, sampling):
    at = crossover(devices, sampling)
    for people, better in ((math.floor(at) - 1, "sampling"), (math.ceil(at) + 1, "response")):
        truth = with_outside([people], devices)
        ours, theirs = (it.std_error(truth)[0] for it in (sampling_privacy(1, sampling), randomized_response(1)))
        assert (ours < theirs) == (better == "sampling")


def test_at_286_randomized_response_wins_in_the_largest_groups():
    """The drawn bars hide this: 2 σ beside 2.576 σ."""
    for attribute, groups in ((TUMOUR_SIZE, [6, 7]), (AGE, [4, 5, 6])):
        bars = bars_of(RECURRENCES[attribute], PATIENTS)
        assert [
            i + 1 for i, (a, b) in enumerate(zip(bars.sampling_error, bars.response_error, strict=True)) if b < a
        ] == groups
        assert (bars.sampling() <= bars.response()).all()
    assert "groups 6, 7, which hold 43 of the 85" in reproduce("sp-fig4").findings[0]
    assert "groups 4, 5, 6, which hold 69 of the 85" in reproduce("sp-fig5").findings[0]


@given(st.integers(0, 60), st.floats(0.0, 40.0))
def test_sampling_coverage_equals_enumeration(truth, bound):
    """Each of the 2^Y outcomes by its probability, against the sum of the binomial's."""
    chance = sum(
        math.comb(truth, d) * 0.45**d * 0.55 ** (truth - d)
        for d in range(truth + 1)
        if abs(d / 0.45 - truth) <= bound + 1e-9
    )
    assert sampling_coverage(truth, bound) == pytest.approx(chance, abs=1e-9)


def test_randomized_response_coverage_is_that_of_its_z():
    """Near-normal at N = 10,000: 2.576 σ covers 99 %, 1.96 σ 95 %."""
    error = float(randomized_response(1).std_error(with_outside([25], SCALED))[0])
    assert response_coverage(25, SCALED, 2.576 * error) == pytest.approx(0.99, abs=0.003)
    assert response_coverage(25, SCALED, 1.96 * error) == pytest.approx(0.95, abs=0.006)
    assert response_coverage(3, 10, 1e9) == pytest.approx(1.0, abs=1e-12)


def test_fig3_numbers():
    found = rows("sp-fig3")
    assert found["randomized response .8/.2, one question: eq 30"].computed == pytest.approx(math.log(0.84 / 0.04))
    every = found["randomized response .8/.2, asked about every cell: exact"].computed
    assert every == pytest.approx(math.log(0.84 / 0.04) + math.log(0.96 / 0.16))
    eleven = found["Sampling Privacy, eleven cells, round two: eq 29"].computed
    assert eleven == pytest.approx(math.log((0.55 / 12 + 0.45) / (0.55 / 12)))
    assert found["times lower, as evaluated: eleven groups, equal blanks"].computed == pytest.approx(
        3.0445 / eleven, rel=1e-4
    )
    most = found["times lower, at the most: one coin for both, any valid categorical draw"]
    assert most.computed == pytest.approx(math.log(0.91 / 0.11) / math.log(1.0 / 0.55))
    assert most.agrees is False
    assert found["Sampling Privacy, an observer who links both rounds: exact"].computed == math.inf
    assert found["Sampling Privacy, eleven cells, π_0 = 0, round two: exact"].computed == math.inf


def test_fig3_ratio_four_needs_one_coin_for_both():
    note = rows("sp-fig3")["times lower, at the most: one coin for both, any valid categorical draw"].note
    at = 0.791
    assert f"{at:.3f}" in note
    ratio = math.log((0.8 + 0.2 * at) / (0.2 * at)) / math.log((at + 0.45) / at)
    assert ratio == pytest.approx(4.0, abs=0.005)


@pytest.mark.slow
def test_sec1_numbers():
    found = rows("sp-sec1-sigma")
    assert found["N=10,000: √((1−.85)·.3·N)"].agrees
    assert found["N=1,000,000: σ of the estimate"].computed == pytest.approx(243.9, abs=0.05)
    count = math.sqrt(100 * 0.895 * 0.105 + 999_900 * 0.045 * 0.955)
    assert found["N=1,000,000: σ of the count of Yes"].computed == pytest.approx(count)
    assert found["60 truthful of 100, estimated as the text states"].computed == pytest.approx(63.75)


@pytest.mark.slow
def test_constant_error_claim_is_reproduced():
    found = rows("sp-fig7")
    assert found["Sampling Privacy: σ at 10,000 asked over σ at 286, group 4"].computed == pytest.approx(1.0, abs=1e-12)
    grown = math.sqrt((27 * 0.1344 + 9973 * 0.0384) / (27 * 0.1344 + 259 * 0.0384))
    assert found["randomized response: σ at 10,000 asked over σ at 286, group 4"].computed == pytest.approx(grown)


@pytest.mark.skipif(not MEASURED.is_file(), reason="the breast cancer data set is not under CROWDVEIL_DATA")
def test_marginals_equal_the_data_set():
    table = pd.read_csv(MEASURED)
    assert len(table) == PATIENTS
    again = table[table["event"] == "recurrence-events"]
    for attribute, column in ((TUMOUR_SIZE, "tumor-size"), (AGE, "age")):
        seen = again[column].value_counts()
        assert [int(seen.get(group, 0)) for group in SHARED.printed[attribute]] == RECURRENCES[attribute]
        assert set(table[column].value_counts().index) <= set(SHARED.printed[attribute])


def test_marginals_add_up_to_85():
    for attribute, recurrences in RECURRENCES.items():
        assert sum(recurrences) == 85
        assert len(SHARED.printed[attribute]) == len(recurrences)

"""ALP's entries: growing and constant errors, the lemmas, and a loop detector's day."""

import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest

from mechanisms.local import AnonymizedCancelling, AnonymizedFirstAttempt
from simulator.papers import anonymized_local
from simulator.papers.data import PEMS
from simulator.papers.published_results import find_entries

REAL = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), PEMS)
HEAD = "station,type,hour,median_flow,avg_flow"


def reproduce(name, seed=1):
    (entry,) = find_entries(name)
    return entry.reproduce(seed=seed)


@pytest.fixture(scope="module")
def cancelling():
    return reproduce("alp-cancelling")


@pytest.fixture(scope="module")
def scaling():
    return reproduce("alp-scaling")


@pytest.mark.slow
def test_simulation_agrees_with_theory(cancelling, scaling):
    for done in (cancelling, scaling):
        assert not [row.key for row in done.rows if "misses" in row.note]
        assert all(row.agrees for row in done.rows if "unbiased" in row.key)


@pytest.mark.slow
def test_cancelling_error_is_constant_and_first_attempt_error_grows(cancelling):
    found = {row.key: row for row in cancelling.rows}
    assert found["noise cancelled: σ at NO = 10⁷ over σ at NO = 10³"].computed == pytest.approx(1.0, abs=1e-12)
    assert found["first attempt: power of NO by which σ grows"].computed == pytest.approx(0.5, abs=0.001)
    assert found["first attempt with π_Y = π_N: YES from the two answers"].agrees
    assert found["noise cancelled: δ for an observer who links the two answers"].computed == pytest.approx(0.2)
    assert found["sum of eq 37's probabilities, π_Y = 0.2 and π_N = 0.1"].computed == pytest.approx(0.9)


@pytest.mark.slow
def test_error_growth_equals_the_formulas():
    first = anonymized_local.grow(
        "first", AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=0.3, shift_no=0.1), seed=1
    )
    second = anonymized_local.grow("second", AnonymizedCancelling(cells=1, shift=0.2), seed=1)
    for place, no in enumerate(anonymized_local.NO_HOLDERS):
        variance = (anonymized_local.YES_HOLDERS * 0.6 * 0.4 + no * 0.2 * 0.8) / 0.16
        assert first.theory[place] == pytest.approx(math.sqrt(variance))
        assert second.theory[place] == pytest.approx(20.0)
    assert first.at(10**5) == first.theory[2]


def test_deniable_answers_have_growing_error(scaling):
    """220 and 2,180 at 10³ and 10⁵ No-holders; the best estimator of the same counts has 85 and 769."""
    found = {row.key: row for row in scaling.rows}
    assert [round(found[f"σ solved backwards, NO = {no:,}"].computed) for no in (10**3, 10**5)] == [220, 2180]
    assert [round(anonymized_local.best_errors()[no]) for no in (10**3, 10**5)] == [85, 769]
    assert found["power of NO by which σ grows"].computed == pytest.approx(0.5, abs=0.001)
    assert all("is the same;" in found[f"σ solved backwards, NO = {no:,}"].note for no in (10**3, 10**5))
    ratio = found["σ over randomized response's, NO = 10,000,000: solved backwards"]
    assert ratio.computed == pytest.approx(21_802 / (math.sqrt(1e7 * 0.0384) / 0.8), rel=1e-3)
    assert ratio.agrees is False
    assert found["answers that Yes-holders alone can give"].agrees
    assert not found["answers that No-holders alone can give"].agrees


def test_lemma_entries():
    found = {row.key: row for row in reproduce("alp-lemmas").rows}
    assert found["π = 1: σ(“Yes”) − σ(⊥)"].agrees
    sigma = math.sqrt(100 * 0.4 * 0.6 + 9_900 * 0.2 * 0.8)
    assert found["π = 1: σ(“Yes”) − σ(“No”)"].computed == pytest.approx(sigma)
    assert found["π = 1: YES from the count of No (lemma 3)"].computed == "0/0"
    assert (
        found["information in the count of Yes where eq 5 is least, ε = 1"].computed == "nothing: no device answers Yes"
    )
    assert found["lemma 7 at π = 1: σ that is found"].computed == 0.0


def test_best_three_answer_mechanism_is_warners_two_answer_one():
    """⊥ has probability 0, and Yes-holders answer falsely as often as No-holders."""
    race = list(anonymized_local.compared_mechanisms(0.07).values())
    yes, no = race[1].binary_query.in_round(1)
    assert yes[2] == no[2] == 0.0
    assert yes[1] == pytest.approx(1.0 - no[1], abs=1e-9)
    assert math.log(yes[1] / no[1]) == pytest.approx(math.log(0.84 / 0.04), abs=1e-9)
    yes, no = race[2].binary_query.in_round(1)
    assert max(1.0 - yes[2], 1.0 - no[2]) == pytest.approx(0.05, abs=1e-9)


def flows(station, each, kind="ML", hours=24):
    return [f"{station},{kind},{float(hour)},{each + hour},1" for hour in range(hours)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = [
        *flows(1, 1000),
        *flows(2, 2072),  # 50,004 a day: the nearest
        *flows(2, 2072)[:3],  # three hours twice, as in the data
        *flows(3, 2071.8, kind="OR"),  # nearer, but a ramp
        *flows(4, 2200, hours=23),  # an hour is missing
        "5,ML,0.0,,1",
    ]
    path = tmp_path / PEMS
    path.parent.mkdir()
    path.write_bytes(gzip.compress("\n".join([HEAD, *rows]).encode()))
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    return path


def test_station_nearest_to_50000_vehicles_is_chosen(folder):
    number, hourly = anonymized_local.read_station()
    assert number == 2
    assert hourly.sum() == 50_004
    assert np.argmax(hourly) == 23
    assert folder.is_file()


@pytest.mark.slow
def test_accuracy_entry_states_which_errors_grow(folder):
    assert folder.is_file()
    done = reproduce("alp-accuracy")
    assert not [row.key for row in done.rows if "misses" in row.note]
    found = {row.key: row for row in done.rows}
    far = found["σ over randomized response's, 50,004,000 asked: noise cancelled, 5 % shifted"]
    assert far.agrees
    near = found["σ over randomized response's, 50,004 asked: noise cancelled, 5 % shifted"]
    there = 2072 + 23
    response = math.sqrt(there * 0.1344 + (50_004 - there) * 0.0384) / 0.8
    assert near.computed == pytest.approx(math.sqrt(there * 0.95 / 0.05) / response)
    assert found["records: vehicles a day at one station"].computed == 50_004


BROKEN = {
    "cut short": lambda whole: whole[: len(whole) // 2],
    "a column missing": lambda whole: gzip.compress(gzip.decompress(whole).replace(b"median_flow", b"flow")),
    "no rows": lambda _: gzip.compress(f"{HEAD}\n".encode()),
    "words for numbers": lambda whole: gzip.compress(gzip.decompress(whole).replace(b"2072", b"many")),
    "no whole day": lambda _: gzip.compress(f"{HEAD}\n1,ML,0.0,10,1\n".encode()),
}


@pytest.mark.parametrize("case", BROKEN)
def test_invalid_input_file_is_named_in_the_skip_reason(folder, case):
    folder.write_bytes(BROKEN[case](folder.read_bytes()))
    done = reproduce("alp-accuracy")
    assert done.rows == []
    assert str(folder) in done.skipped


@pytest.mark.skipif(not REAL.is_file(), reason="PeMS's typical weekday is not under CROWDVEIL_DATA")
def test_the_real_station():
    number, hourly = anonymized_local.read_station()
    assert number == 401595
    assert hourly.sum() == pytest.approx(50_019, abs=5)  # medians of .5 are rounded
    assert hourly.max() == 3417

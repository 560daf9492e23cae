"""One class is a run: in memory or in its directory, it gives the same pages, tables and summary."""

import json

import pandas as pd
import pytest

import crowdveil as cv
from simulator.pages.report import build_report
from simulator.results.record import ViewRecord
from simulator.results.schema import TABLES

PARTIAL = {"population.participation": 0.6, "traffic.vehicles": 60}


@pytest.fixture(scope="module")
def result():
    return cv.run("tiny", overrides=PARTIAL)


def test_the_report_of_a_run_in_memory_reads_none_of_its_tables_back(result, tmp_path):
    pages = []

    def render(saved):
        pages.append(build_report(saved.directory))
        for file in saved.directory.glob("*.parquet"):
            file.unlink()
        pages.append(build_report(saved))

    result.save(tmp_path / "run", render=render)
    from_files, from_memory = pages
    assert from_memory == from_files


def test_a_loaded_run_is_the_run_that_was_saved(result, tmp_path):
    loaded = cv.load(result.save(tmp_path / "run"))
    for name in TABLES:
        one, other = getattr(result, name), getattr(loaded, name)
        assert (one is None) == (other is None), name
        if one is not None:
            pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(other), check_dtype=False)
    assert (loaded.scenario, loaded.settings) == (result.scenario, result.settings)
    assert loaded.map().html == result.map().html
    assert loaded.leading.estimates.equals(result.leading.estimates)
    assert loaded.leading.asked.scores.equals(result.scores)
    assert loaded.leading.leading.scores.equals(loaded.leading.scores), "already of all vehicles"
    again = loaded.save(tmp_path / "again")
    assert {path.name for path in again.iterdir()} == {path.name for path in loaded.directory.iterdir()}
    first, second = (json.loads((folder / "run.json").read_text()) for folder in (loaded.directory, again))
    assert first == second


def test_a_table_is_read_when_it_is_first_needed(result, tmp_path):
    folder = result.save(tmp_path / "run")
    (folder / "claims.parquet").write_bytes(b"PAR1 damaged PAR1")
    loaded = cv.load(folder)
    assert loaded.scores.equals(result.scores)
    with pytest.raises(cv.UnfinishedRunError, match=r"claims\.parquet: cannot be read"):
        _ = loaded.claims
    (folder / "claims.parquet").unlink()
    with pytest.raises(cv.UnfinishedRunError, match=r"claims\.parquet is not in it"):
        cv.load(folder)


def test_a_run_has_no_other_attributes(result):
    with pytest.raises(AttributeError, match="no attribute 'estimate'"):
        _ = result.estimate
    assert {"estimates", "plot", "summary", "map"} <= set(dir(result))


def test_errors_are_one_frame_for_every_page_and_plot(result):
    errors, scores = result.errors, result.scores
    assert [*zip(errors["campaign"], errors["mechanism"], strict=True)] == [
        *zip(scores["campaign"].astype(str), scores["mechanism"].astype(str), strict=True)
    ]
    assert (errors["label"] == [*map(result.record.published_label, errors["campaign"], errors["mechanism"])]).all()
    assert {*errors["unit"]} == {*result.errors_by_unit} == {"vehicles"}
    bounded = errors[errors["low"].notna()]
    assert len(bounded)
    assert ((bounded["low"] <= bounded["rmse"] + 1e-9) & (bounded["rmse"] <= bounded["high"] + 1e-9)).all()


def test_statements_of_an_earlier_run_are_joined_by_what_it_recorded():
    """Runs that did not number what coalitions learn are read in the current form; no page looks at the words."""
    facts = {"coalition": ["server:1"], "words": "Nothing.", "view": None, "kind": "exact", "epsilon": 0.0}
    facts |= {"delta": 0.0, "delta_kind": "exact"}
    assert ViewRecord.model_validate(facts).statement == "Nothing."
    assert ViewRecord.model_validate({**facts, "statement": 3}).statement == 3

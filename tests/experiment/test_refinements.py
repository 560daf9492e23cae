"""Refined estimates in a run: labelled rows of their own, whose values equal the named operation."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

import scenarios
from mechanisms.refinement import project_onto_simplex
from simulator import RunResult, run
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import print_summary

LEVEL = 1e-6
KINDS = """
[[refinements]]
kind = "clip"
[[refinements]]
kind = "norm_sub"
[[refinements]]
kind = "simplex"
total = "asked"
mechanisms = ["randomized", "baseline"]
"""


def scenario_with(folder, text, base="tiny"):
    path = folder / "refined-here.toml"
    path.write_text(scenarios.source_text(base) + text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run of the smallest city with every kind of refinement, and its directory."""
    folder = tmp_path_factory.mktemp("refined")
    overrides = ["campaigns.occupancy.queries=3", "campaigns.occupancy.every_s=60"]
    path = scenario_with(folder, KINDS)
    return run(path, out=folder / "run", overrides=overrides), folder / "run", overrides


@pytest.fixture(scope="module")
def shipped(shipped_run):
    return RunResult.load(shipped_run("refined"))


def counts_of(result, mechanism, column="estimate"):
    """(queries, cells) of one mechanism, in the campaign that asks for counts."""
    rows = result.estimates[result.estimates["mechanism"] == mechanism].query("campaign == 'occupancy'")
    return rows.pivot_table(index="query", columns="cell", values=column, dropna=False).to_numpy()


def test_refined_rows_are_added_to_the_mechanisms_own(kept):
    result, _, overrides = kept
    own = ["sampling", "randomized", "baseline"]
    refined = [f"{name}+{kind}" for kind in ("clip", "norm_sub") for name in own[:2]]
    refined += ["randomized+simplex", "baseline+simplex"]
    assert list(dict.fromkeys(result.estimates["mechanism"])) == own + refined
    assert result.scores["mechanism"].tolist() == own + refined
    # They have no rounds and no claims of their own, and change no other row.
    assert set(result.rounds["mechanism"]) == set(result.claims["mechanism"]) == set(own)
    without = run("tiny", overrides=overrides)
    same = result.estimates[result.estimates["mechanism"].isin(own)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, without.estimates)
    pd.testing.assert_frame_equal(result.scores.head(3), without.scores)
    assert without.facts["refinements"] == []


def test_refined_rows_equal_the_named_operations(kept):
    result, _, _ = kept
    own = counts_of(result, "randomized")
    asked = result.rounds[result.rounds["mechanism"] == "randomized"]["asked"].to_numpy()
    assert (own < 0).any()
    assert np.array_equal(counts_of(result, "randomized+clip"), np.clip(own, 0, asked[:, None]))
    totals = np.clip(own.sum(axis=1), 0, asked)
    projected = [project_onto_simplex(row, total) for row, total in zip(own, totals, strict=True)]
    assert counts_of(result, "randomized+norm_sub") == pytest.approx(np.array(projected), abs=1e-9)
    assert counts_of(result, "randomized+simplex").sum(axis=1) == pytest.approx(asked)
    assert counts_of(result, "baseline+simplex").sum(axis=1) == pytest.approx(asked)
    truth = counts_of(result, "sampling", "truth")
    for row in result.facts["refinements"]:
        assert np.array_equal(counts_of(result, row["name"], "truth"), truth)


def test_undefined_values_are_null(kept):
    _, out, _ = kept
    estimates, scores = pd.read_parquet(out / "estimates.parquet"), pd.read_parquet(out / "scores.parquet")
    projected = r"\+(?:clip|norm_sub|simplex)$"
    rows = estimates["mechanism"].str.contains(projected)
    assert estimates[rows]["std_error"].isna().all()
    assert not estimates[~rows].isna().any().any()
    assert not estimates.drop(columns=["std_error", "scaled_std_error"]).isna().any().any()
    rows = scores["mechanism"].str.contains(projected)
    assert scores[rows]["theory_rmse"].isna().all()
    assert scores[~rows]["theory_rmse"].notna().all()
    by_name = scores.set_index("mechanism")
    for name in ("clip", "norm_sub", "simplex"):
        # The interval of the unrefined estimate is kept and labelled.
        assert by_name.loc[f"randomized+{name}", "interval"] == "score, unrefined"
        assert by_name.loc[f"randomized+{name}", "coverage"] == by_name.loc["randomized", "coverage"]


def test_run_json_states_bias_and_source_of_refinements(kept):
    _, out, _ = kept
    facts = json.loads((out / "run.json").read_text(), parse_constant=pytest.fail)
    records = {record["name"]: record for record in facts["refinements"]}
    assert len(records) == 6
    for name, record in records.items():
        assert record["biased"] is True
        assert record["made_of"].startswith(record["mechanism"])
        assert name == f"{record['mechanism']}+{record['refinement']}"
        assert record["mechanism"] in record["claims"]
        assert record["measured"][0].keys() >= {"campaign", "bias_busy", "bias_other", "unrefined_bias_busy"}
    assert records["randomized+clip"]["keeps"]["never_worse"] == "in each cell"
    assert "the number of devices asked" in records["randomized+simplex"]["made_of"]
    assert [record["name"] for record in facts["mechanisms"]] == ["sampling", "randomized", "baseline"]


def test_total_of_all_devices_warns_if_some_are_in_no_cell(tmp_path):
    text = '[[refinements]]\nkind = "simplex"\ntotal = "asked"\n'
    inside = run(scenario_with(tmp_path, text))
    assert not any("refinements" in warning for warning in inside.facts["warnings"])
    window = run(scenario_with(tmp_path, text), overrides=["cells.bounds=[0, 0, 400, 400]"])
    (warning,) = (warning for warning in window.facts["warnings"] if "refinements" in warning)
    assert "refinements.simplex" in warning
    assert "were in none" in warning


def test_report_and_summary_describe_refinements(kept):
    _, out, _ = kept
    page = build_report(out)
    label = "Randomized response, clip (biased)"
    assert page.count(label) >= 3  # in the headline, the table and the list
    assert "Refined estimates" in page
    assert "counts below 0 set to 0" in page
    stream = io.StringIO()
    print_summary(out, Console(file=stream, width=160))
    assert label in stream.getvalue()
    embedded = json.loads(page.split('id="page-data">')[1].split("</script>")[0])
    assert {"name": "randomized+clip", "label": label} in embedded["mechanisms"]


def test_clipping_never_increases_and_projection_reduces_error(shipped):
    own = counts_of(shipped, "randomized")
    truth = counts_of(shipped, "randomized", "truth")
    assert (truth == 0).mean() > 0.7
    clipped = counts_of(shipped, "randomized+clipped")
    assert (np.abs(clipped - truth) <= np.abs(own - truth)).all()
    rmse = shipped.scores.set_index("mechanism")["rmse"]
    assert rmse["randomized+clipped"] < 0.8 * rmse["randomized"]
    assert rmse["randomized+projected"] < 0.55 * rmse["randomized"]
    assert rmse["randomized+scaled"] < rmse["randomized+projected"]


def test_projection_biases_busy_cells(shipped):
    """The busiest tenth of the cells: unrefined estimates are unbiased within sampling error, projected far too low."""
    measured = {record["name"]: record["measured"][0] for record in shipped.facts["refinements"]}
    truth = counts_of(shipped, "randomized", "truth")
    busiest = np.partition(truth, -122, axis=1)[:, -122, np.newaxis]
    busy = (truth >= busiest) & (truth > 0)
    error = (counts_of(shipped, "randomized") - truth)[busy]
    bound = stats.norm.isf(LEVEL / 2) * shipped.scores.set_index("mechanism").loc["randomized", "theory_rmse"]
    assert measured["randomized+projected"]["unrefined_bias_busy"] == pytest.approx(error.mean())
    assert abs(error.mean()) < 1.2 * bound / np.sqrt(len(error))  # somewhat more coins err in a busy cell
    assert measured["randomized+projected"]["bias_busy"] < -6
    assert measured["randomized+scaled"]["bias_busy"] < -6
    assert measured["randomized+clipped"]["bias_other"] > 3


RELEASED = """
[[campaigns]]
name = "speeds"
start_s = 120
statistic = "mean_speed"
release = { kind = "none" }
[release]
kind = "laplace"
epsilon = 0.3
mechanisms = ["baseline"]
[[refinements]]
kind = "clip"
mechanisms = ["baseline", "sampling"]
"""


def test_released_counts_are_refined_and_speeds_are_not(tmp_path):
    result = run(scenario_with(tmp_path, RELEASED))
    refined = result.scores[result.scores["mechanism"].str.contains("+", regex=False)]
    assert set(refined["campaign"]) == {"occupancy"}
    assert set(refined["mechanism"]) == {"baseline+clip", "sampling+clip"}
    published = counts_of(result, "baseline")
    assert (published < 0).any()  # Laplace noise
    asked = result.rounds.query("campaign == 'occupancy' and mechanism == 'baseline'")["asked"].to_numpy()
    assert np.array_equal(counts_of(result, "baseline+clip"), np.clip(published, 0, asked[:, None]))
    warnings = [warning for warning in result.facts["warnings"] if "refinements" in warning]
    assert any("leave out campaign speeds" in warning for warning in warnings)
    assert "speeds" not in {m["campaign"] for record in result.facts["refinements"] for m in record["measured"]}

"""Numbers of any size, infinite and unknown ones: no page, table or plot breaks, and no fault of a page loses a run."""

import copy
import io
import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from synthetic_run import SyntheticRun

import crowdveil as cv
from simulator.pages.errors_sections import scores_section
from simulator.pages.map_section import query_numbers
from simulator.pages.plots.looks import figure_of
from simulator.pages.plots.run_plots import RunPlots
from simulator.pages.report import PageError, build_report, write_report
from simulator.pages.terminal_summary import print_summary
from simulator.results.formatting import chance, claimed, duration, number, parameter, percent, size, whole
from simulator.results.run import RunResult

EXTREMES = (5e-324, 1e-300, 1e300, -1e300, 1.7e308, math.inf, -math.inf, math.nan)
COUNTED = {"query", "cell", "round", "queries", "crowd", "k", "colluding", "servers"}
"""Columns of whole numbers, which are never of such a size."""


@pytest.fixture(scope="module")
def tiny_run():
    return cv.run("tiny")


@pytest.mark.parametrize("words", [number, parameter, claimed, percent, whole, chance, duration, size])
def test_a_number_of_any_size_has_few_letters(words):
    assert all(0 < len(words(value)) <= 24 for value in EXTREMES)
    assert all(len(number(value, up=True)) <= 24 for value in EXTREMES)


def test_rounding_up_never_claims_less():
    assert claimed(1.7e308) == "1.7 × 10³⁰⁸"
    assert number(1.797e308, up=True) == "∞"
    assert whole(123_456_789_012) == "123,456,789,012"
    assert percent(1e300) == "1.0 × 10³⁰² %"


@pytest.mark.parametrize("table", ["estimates", "scores", "claims", "rounds"])
def test_no_number_in_a_table_breaks_the_report_or_the_summary(tmp_path, table):
    directory = SyntheticRun(columns=2, rows=2, queries=2).write(tmp_path / "run")
    path = directory / f"{table}.parquet"
    whole_table = pd.read_parquet(path)
    rng = np.random.default_rng(1)
    named = [name for name in whole_table.select_dtypes("number") if name not in COUNTED]
    for values in (EXTREMES, EXTREMES[:5], EXTREMES[2:3]):
        drawn = {name: rng.choice(values, len(whole_table)) for name in named}
        whole_table.assign(**drawn).to_parquet(path)
        page = build_report(directory)
        (data,) = re.findall(r'id="page-data">(.*?)</script>', page, re.DOTALL)
        json.loads(data, parse_constant=pytest.fail)
        print_summary(directory, Console(file=io.StringIO(), width=160))


def test_a_number_beyond_all_whole_ones_is_kept_on_the_map(tmp_path):
    directory = SyntheticRun(columns=2, rows=1, queries=1, mechanisms=("exact",)).write(tmp_path / "run")
    estimates = pd.read_parquet(directory / "estimates.parquet")
    estimates.assign(estimate=[1e300, 3.0]).to_parquet(directory / "estimates.parquet")
    (campaign,) = query_numbers(RunResult.load(directory))
    assert campaign["mechanisms"]["exact"]["estimate"] == [[1e300, 3.0]]


@pytest.mark.slow
def test_scripts_of_a_page_of_extreme_numbers_run(tmp_path, browse):
    directory = SyntheticRun(columns=2, rows=2, queries=3).write(tmp_path / "run")
    estimates = pd.read_parquet(directory / "estimates.parquet")
    rng = np.random.default_rng(2)
    for values in (EXTREMES[:5], EXTREMES, (1e16, 1e16 + 2)):
        drawn = {name: rng.choice(values, len(estimates)) for name in ("truth", "estimate", "lower", "upper")}
        estimates.assign(**drawn).to_parquet(directory / "estimates.parquet")
        page = browse(write_report(directory), "")  # which fails if anything is written to the console
        assert 'data-report="ready"' in page


def test_many_queries_with_a_large_budget_are_reported(tmp_path):
    """The claim over all 16 queries has ε = 800, and e^800 is no number."""
    asked = {"start_s": 10, "every_s": 15, "queries": 16, "round_gap_s": 5, "deadline_s": 5}
    mechanisms = [{"name": "kary", "kind": "k_randomized_response", "epsilon": 50.0}]
    result = cv.run("tiny", overrides={"scenario.warmup_s": 0, "campaigns": [asked], "mechanisms": mechanisms})
    result.save(tmp_path / "run", render=write_report)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "a server that receives a device’s answer can learn where the device is: ε = 800 is no protection" in page


def test_a_run_whose_page_fails_is_saved(tmp_path, tiny_run):
    def fail(saved):
        assert (saved.directory / "run.json").is_file(), "the run is complete before anything is rendered"
        raise PageError("no page")

    with pytest.raises(PageError, match="no page"):
        tiny_run.save(tmp_path / "run", render=fail)
    assert cv.load(tmp_path / "run").scores.equals(tiny_run.scores)


def test_a_damaged_table_is_named_before_a_page_is_made(tmp_path, call_in_process):
    directory = SyntheticRun(columns=2, rows=2, queries=2).write(tmp_path / "run")
    claims = pd.read_parquet(directory / "claims.parquet")
    claims.assign(crowd=math.inf).to_parquet(directory / "claims.parquet")
    done = call_in_process("report", str(directory), cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{directory / 'claims.parquet'}: column crowd must have whole numbers" in done.stderr


@pytest.mark.slow
def test_a_report_opens_on_a_query_with_vehicles(tmp_path, browse):
    directory = SyntheticRun(columns=2, rows=2, queries=3).write(tmp_path / "run")
    estimates = pd.read_parquet(directory / "estimates.parquet")
    estimates.loc[estimates["query"] < 3, "truth"] = 0
    estimates.to_parquet(directory / "estimates.parquet")
    assert 'data-query="3"' in browse(write_report(directory), "")


@pytest.mark.parametrize(
    "value", [1e300, *(pytest.param(one, marks=pytest.mark.slow) for one in (1e-300, math.inf, math.nan))]
)
def test_no_number_breaks_a_plot_or_a_comparison(tiny_run, value):
    given = {"estimates": ("truth", "estimate"), "scores": ("rmse", "theory_rmse"), "claims": ("epsilon", "delta")}
    tables = {name: getattr(tiny_run, name).astype(dict.fromkeys(columns, float)) for name, columns in given.items()}
    for name, columns in given.items():
        tables[name].loc[tables[name].index[::2], list(columns)] = value
    changed = copy.copy(tiny_run)
    vars(changed).update(tables)
    with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflows inside matplotlib
        plots = RunPlots(changed, shown=False)
        for ax in (
            *(plots.map(quantity=quantity) for quantity in ("truth", "estimate", "error")),
            *(plots.errors(), plots.privacy("epsilon"), plots.privacy("delta")),
        ):
            figure_of(ax).savefig(io.BytesIO(), format="svg")
        assert len(cv.compare(changed, changed))


def test_a_mechanism_without_an_error_has_a_bar_of_no_length(tmp_path):
    directory = SyntheticRun().write(tmp_path / "run")
    scores = pd.read_parquet(directory / "scores.parquet")
    scores.assign(rmse=[math.nan, *scores["rmse"][1:]]).to_parquet(directory / "scores.parquet")
    [rows] = scores_section(RunResult.load(directory)).values["tables"].values()
    assert min(row["bar"] for row in rows) == 0.0

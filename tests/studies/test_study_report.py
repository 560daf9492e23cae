"""The report of a study: its numbers against hand computation, its text and its tables."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from html_page import Page

from simulator.results.formatting import number
from simulator.studies.charts import front
from simulator.studies.report import _finding, build_report, factor_titles, write_report
from simulator.studies.store import Study
from simulator.studies.summary import along_axes, leaks_table, means, tables_of
from simulator.studies.tables import error_latex, view_table

T95 = {2: 12.706204736, 3: 4.302652730}
"""0.975 quantile of Student's t with one degree of freedom less than the key, from printed tables."""
SAMPLING, OUTSIDE = "mechanisms.sampling.sampling", "population.outside"


def page_of(made):
    """The report of a study."""
    return build_report(made, tables_of(made))


def study(rows, factors, *, scores=None, claims=None, attacks=None, failures=None, warnings=None, missing=0):
    """Return a study of points (replicate, values of the factors), with the rmse of each mechanism."""
    points = pd.DataFrame(
        [{"key": f"k{i}", "point": i + 1, "setting": 1, "replicate": r, "seed": r, **dict(zip(factors, v, strict=True))}
         for i, (r, v, _) in enumerate(rows)],
        columns=["key", "point", "setting", "replicate", "seed", *factors],
    )  # fmt: skip
    points["wall_s"] = 0.5
    if scores is None:
        scores = pd.DataFrame(
            [{"key": f"k{i}", "campaign": "c", "mechanism": name, "statistic": "count", "rmse": error, "mae": error / 2,
              "coverage": 0.95} for i, (_, _, errors) in enumerate(rows) for name, error in errors.items()],
            columns=["key", "campaign", "mechanism", "statistic", "rmse", "mae", "coverage"],
        )  # fmt: skip
    empty = pd.DataFrame({"key": pd.Series(dtype="str")})
    tables = {"scores": scores, "claims": claims, "attacks": attacks, "failures": failures, "warnings": warnings}
    tables = {name: empty if table is None else table for name, table in tables.items()}
    return Study(Path("none"), "made", tuple(factors), points, **tables, missing=missing, facts={})


def charts(html):
    return json.loads(re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)[1])["charts"]


@pytest.fixture
def two_factors():
    rows = [
        (r, (s, n), {"sampling": base + r, "baseline": 0.0})
        for s, n, base in [(0.1, 0, 8.0), (0.1, 10_000, 9.0), (0.45, 0, 2.0), (0.45, 10_000, 3.0)]
        for r in (1, 2)
    ]
    return study(rows, (SAMPLING, OUTSIDE))


def test_means_and_intervals_are_those_computed_by_hand():
    table = pd.DataFrame({"a": ["x", "x", "x", "y", "y", None], "v": [1.0, 2.0, 6.0, 5.0, np.nan, 4.0]})
    made = means(table, ["a"], ["v"])
    # Deviations -2, -1, 3: variance 14 / 2.
    assert made["v"].tolist() == [3.0, 5.0, 4.0]
    assert made["v_half"][0] == pytest.approx(T95[3] * math.sqrt(7.0) / math.sqrt(3.0))
    assert made["v_half"][1:].isna().all()
    assert made["n"].tolist() == [3, 1, 1]


def test_numbers_of_the_report(two_factors):
    html = page_of(two_factors)
    text = Page(html).text

    def ends(mean):  # of two values one apart
        variation = math.sqrt(0.5) / mean
        factor = math.exp(T95[2] * variation * math.sqrt((1 + variation**2) / 2))
        return mean / factor, mean * factor

    def shown(mean):
        return f"[{', '.join(number(end) for end in ends(mean))}]"

    assert (
        f"sampling has the smallest error, 3.50 {shown(3.5)} vehicles (RMSE), at sampling = 0.45, outside = 0; "
        f"its largest is 10.5 {shown(10.5)}, at sampling = 0.1, outside = 10,000." in text
    )
    assert "4 settings 2 replicates 8 points finished 0 failed 0 not run" in re.sub(
        r"(settings?|replicates?|points finished|failed|not run) ([\d,]+)", r"\2 \1", text
    )
    drawn = charts(html)
    of_sampling = drawn["curves-0"]["series"][0]
    assert (of_sampling["x"], of_sampling["y"]) == ([0.1, 0.45], [9.5, 3.5])
    for side, name in enumerate(("low", "high")):
        assert of_sampling[name] == pytest.approx([ends(y)[side] for y in (9.5, 3.5)], rel=1e-4)


@pytest.mark.parametrize(
    ("values", "log", "labels"),
    [
        ([0.1, 0.2, 0.45], False, None),
        ([1, 10, 1000], True, None),
        ([0, 1000, 100_000], False, ["0", "1,000", "100,000"]),
        (["peak", "all <day>"], False, ["peak", "all <day>"]),
        ([True, False], False, ["True", "False"]),
    ],
)
def test_axis_of_a_factor(values, log, labels):
    html = page_of(study([(1, (value,), {"m": float(i)}) for i, value in enumerate(values, 1)], (OUTSIDE,)))
    chart = charts(html)["curves-0"]
    axis = chart["x"]
    assert axis.get("log", False) == log
    assert axis.get("ticks") == (None if labels is None else [list(tick) for tick in enumerate(labels)])
    places = values if labels is None else list(range(len(values)))
    assert chart["series"][0]["x"] == places
    assert chart["series"][0]["y"] == [float(i) for i in range(1, len(values) + 1)]


def test_settings_drawn_at_random_are_points_without_lines():
    rng = np.random.default_rng(1)
    rows = [(1, (float(rng.random()), float(rng.random())), {"m": float(rng.random())}) for _ in range(30)]
    html = page_of(study(rows, (SAMPLING, OUTSIDE)))
    drawn = charts(html)
    series = [chart["series"] for chart in drawn.values() if chart["y"]["title"][:4] == "RMSE"]
    assert [len(each) for each in series] == [1, 1]
    assert [each[0]["mark"] for each in series] == ["points", "points"]
    assert [len(each[0]["x"]) for each in series] == [30, 30]


def test_differences_are_paired_by_replicate():
    rows = [(r, (s,), {"m": error}) for s, errors in {0.1: (1.0, 5.0), 0.2: (2.0, 6.5)}.items()
            for r, error in enumerate(errors, start=1)]  # fmt: skip
    made = tables_of(study(rows, (SAMPLING,)))["differences"]
    assert made["difference"].tolist() == [1.25]  # of 1 and 1.5
    assert made["difference_half"].tolist() == pytest.approx([T95[2] * 0.25])


def test_one_replicate_has_no_interval():
    html = page_of(study([(1, (0.1,), {"m": 4.0}), (1, (0.2,), {"m": 2.0})], (SAMPLING,)))
    text = Page(html).text
    assert "Each setting was run once, so there are no intervals." in text
    assert "m has the smallest error, 2.00 vehicles (RMSE), at sampling = 0.2" in text
    assert "4.00 ±" not in text
    for chart in charts(html).values():
        for series in chart["series"]:
            assert series["low"] == series["high"] == [None] * len(series["y"])


def test_names_of_users_are_escaped():
    bad = "<script>alert(1)</script>"
    rows = [(r, (value,), {bad: 1.0 + r}) for value in (bad, "other") for r in (1, 2)]
    warnings = pd.DataFrame({"key": ["k0"], "warning": [bad]})
    html = page_of(study(rows, (f"traffic.{bad}",), warnings=warnings))
    data = re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)[1]
    assert bad not in html
    assert "<script" not in data
    assert "innerHTML" not in html  # the script shows names as text


def test_empty_one_point_and_all_failed():
    assert "No point is finished." in Page(page_of(study([], ()))).text
    one = page_of(study([(1, (), {"m": 3.0})], ()))
    assert "m has the smallest error, 3.00 vehicles (RMSE)." in Page(one).text
    assert "No setting was varied." in Page(one).text
    failures = pd.DataFrame(
        {"key": ["a", "b"], "point": [1, 2], "setting": [1, 2], "replicate": [1, 1], "seed": [1, 1],
         SAMPLING: [0.1, 0.2], "error": ["MemoryError: too large", "ValueError: x"]}
    )  # fmt: skip
    text = Page(page_of(study([], (SAMPLING,), failures=failures, missing=3))).text
    assert "2 points failed" in text
    assert "1 point was not run" in text
    assert "MemoryError: too large" in text
    assert "sampling (0.1, 0.2)" in text


def test_warnings_are_stated_with_the_number_of_points():
    warnings = pd.DataFrame({"key": ["k0", "k1", "k1"], "warning": ["rare", "often", "often"]})
    warnings = pd.concat([warnings, pd.DataFrame({"key": ["k0"], "warning": ["often"]})])
    rows = [(r, (0.1,), {"m": 1.0}) for r in (1, 2)]
    text = Page(page_of(study(rows, (SAMPLING,), warnings=warnings))).text
    assert "often (2 points)" in text
    assert "rare (1 point)" in text


def test_campaigns_of_speeds_are_in_metres_a_second():
    rows = [(r, (n,), {"m": n / 100 + r}) for n in (100, 200) for r in (1, 2)]
    made = study(rows, ("traffic.vehicles",))
    made.scores["statistic"] = "mean_speed"
    made.scores["hot_cells_recall"] = np.nan
    html = page_of(made)
    assert "m has the smallest error, 2.50 [" in Page(html).text
    assert charts(html)["curves-0"]["y"]["title"] == "RMSE, m/s"
    assert "Busiest cells found against" not in html


CLAIM = {"campaign": None, "view": "linked_reports", "adjacency": "move", "queries": 1, "crowd": pd.NA, "k": pd.NA,
         "colluding": pd.NA, "servers": pd.NA, "kind": "exact", "basis": "made"}  # fmt: skip


def claims_of(rows):
    table = pd.DataFrame([{**CLAIM, **row} for row in rows])
    return table.astype(dict.fromkeys(("crowd", "k", "colluding", "servers", "queries"), "Int64"))


def test_front_of_error_and_leak_with_infinite_epsilon():
    rows = [(r, (s,), {"a": 10.0 * s + r, "b": 5.0}) for s in (0.1, 0.2) for r in (1, 2)]
    claims = claims_of(
        row
        for i, (_, (s,), _) in enumerate(rows)
        for row in (
            {"key": f"k{i}", "mechanism": "a", "epsilon": math.inf, "delta": 0.0, "kind": "infinite"},
            {"key": f"k{i}", "mechanism": "a", "epsilon": 1.0, "delta": s},
            {"key": f"k{i}", "mechanism": "b", "epsilon": 2.0, "delta": 0.0},
            {"key": f"k{i}", "mechanism": "b", "epsilon": 1.0, "delta": 0.6},
            {"key": f"k{i}", "mechanism": "b", "epsilon": 4.0, "delta": 0.0},
            {"key": f"k{i}", "mechanism": "b", "epsilon": 9.0, "delta": 0.0, "queries": 5},
        )
    )
    made = study(rows, (SAMPLING,), claims=claims)
    leaks = leaks_table(made).set_index(["mechanism", SAMPLING])
    assert leaks.loc["b", "epsilon"].tolist() == [2.0, 2.0]
    assert np.isinf(leaks.loc["a", "epsilon"]).all()
    assert leaks.loc["a", "delta"].tolist() == [0.1, 0.2]
    assert (leaks["at_epsilon"] == 1.0).all()
    drawn = charts(page_of(made))
    fronts = drawn["fronts-0"]["series"]
    # Errors of a are 2.5 and 3.5 at ε = ∞: the first is on the front, and both points of b, with less ε and more error.
    shown = {(each["name"], each["style"]["hollow"]): each["y"] for each in fronts if each["mark"] == "points"}
    assert shown == {("a", True): [3.5], ("a", False): [2.5], ("b", False): [5, 5]}
    (edge, text) = drawn["fronts-0"]["x"]["ticks"][-1]
    assert text == "∞"
    assert [each["x"] for each in fronts if each["name"] == "a"] == [[edge]] * 2
    deltas = [x for each in drawn["fronts-1"]["series"] if each["name"] == "a" for x in each["x"]]
    assert sorted(deltas) == [0.1, 0.2]


def test_leaks_of_unknown_claims_are_null():
    rows = [(1, (0.1,), {"a": 1.0, "b": 2.0})]
    claims = claims_of(
        [
            {"key": "k0", "mechanism": "a", "epsilon": 2.0, "delta": 0.0},
            {"key": "k0", "mechanism": "a", "epsilon": 0.5, "delta": 1e-3},
            {"key": "k0", "mechanism": "b", "epsilon": np.nan, "delta": np.nan, "kind": "unknown"},
        ]
    )
    leaks = leaks_table(study(rows, (SAMPLING,), claims=claims)).set_index("mechanism")
    assert (leaks.loc["a", "epsilon"], leaks.loc["a", "delta"], leaks.loc["a", "at_epsilon"]) == (2.0, 1e-3, 0.5)
    assert leaks.loc["b", ["epsilon", "delta"]].isna().all()


@pytest.mark.parametrize("seed", range(5))
def test_front_has_the_points_that_no_other_beats(seed):
    rng = np.random.default_rng(seed)
    leak, error = rng.integers(0, 5, 12).astype(float), rng.integers(0, 5, 12).astype(float)
    leak[0] = math.inf
    beaten = [
        any(x <= leak[i] and y <= error[i] and (x, y) != (leak[i], error[i]) for x, y in zip(leak, error, strict=True))
        for i in range(12)
    ]
    assert front(leak, error) == [not one for one in beaten]


def test_attacks_are_drawn_against_what_was_varied():
    rows = [(r, (s,), {"m": 1.0}) for s in (0.1, 0.4) for r in (1, 2)]
    attacks = pd.DataFrame(
        [{"key": f"k{i}", "campaign": "c", "mechanism": "m", "name": "link", "coalition": "server:1", "metric": None,
          "success": s + r / 100, "prior": 0.05} for i, (r, (s,), _) in enumerate(rows)]
    )  # fmt: skip
    made = study(rows, (SAMPLING,), attacks=attacks)
    assert tables_of(made)["attacks"]["success"].tolist() == pytest.approx([0.115, 0.415])
    html = page_of(made)
    drawn = [chart["series"][0]["y"] for chart in charts(html).values() if "Success" in chart["y"]["title"]]
    assert drawn == [pytest.approx([0.115, 0.415])]
    assert "link, campaign c" in Page(html).text


def test_page_and_tables_are_written(two_factors, tmp_path):
    page = write_report(two_factors, tmp_path)
    assert page == tmp_path / "report.html"
    table = pd.read_csv(tmp_path / "tables" / "settings.csv")
    pd.testing.assert_frame_equal(table, tables_of(two_factors)["settings"], check_dtype=False)
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        "settings.csv", "differences.csv", "errors.tex"
    }  # fmt: skip


EPSILONS = ("mechanisms.a_1.epsilon", "mechanisms.b.epsilon")


def swept(pairs, *, theory=None):
    """A study of two mechanisms whose ε are set by a list of pairs, and an exact one."""
    rows = [
        (r, pair, {"a_1": 8.0 / (pair[0] or 1.0) + r, "b": 30.0 / (pair[1] or 1.0) + r, "exact": 0.0})
        for pair in pairs
        for r in (1, 2)
    ]
    made = study(rows, EPSILONS)
    if theory is not None:
        made.scores["theory_rmse"] = np.where(made.scores["mechanism"] == "exact", 0.0, theory)
    return made


def test_values_that_move_together_are_one_axis_with_a_line_a_mechanism_and_theory():
    html = page_of(swept([(0.05, 0.05), (1.0, 1.0), (2.0, 2.0)], theory=7.0))
    assert "mechanisms.*.epsilon" in html
    drawn = charts(html)
    errors = [
        chart for chart in drawn.values() if chart["y"]["title"] == "RMSE, vehicles" and chart["x"]["title"] == "ε"
    ]
    assert len(errors) == 1  # not one for each key
    lines = {each["name"]: each for each in errors[0]["series"]}
    assert [*lines] == ["a_1, theory", "b, theory", "a_1", "b"]  # a logarithmic axis cannot show the exact one
    assert [lines[name]["mark"] for name in lines] == ["line", "line", "linked", "linked"]
    assert (lines["a_1"]["x"], lines["a_1"]["y"]) == ([0.05, 1, 2], [161.5, 9.5, 5.5])
    assert lines["b, theory"]["y"] == [7.0] * 3
    assert "a_1 errs by 5.50" in Page(html).text
    assert "at ε = 2; its largest is 162" in Page(html).text


@pytest.mark.parametrize(
    ("pairs", "factors", "values"),
    [
        ([(1.0, 1.0), (2.0, 2.0)], ("mechanisms.*.epsilon",), [1.0, 2.0]),
        ([(1.0, 10.0), (2.0, 20.0)], (" / ".join(EPSILONS),), ["1 / 10", "2 / 20"]),
        ([(1.0, 2.0), (2.0, 1.0), (3.0, 2.0)], EPSILONS, [1.0, 2.0, 3.0]),  # in no order
        ([(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)], EPSILONS, [1.0, 2.0]),  # every combination
        ([(1.0, 1.0), (1.0, 2.0)], EPSILONS, [1.0]),
    ],
)
def test_factors_are_joined_only_where_one_determines_the_others(pairs, factors, values):
    joined = along_axes(swept(pairs))
    assert joined.factors == factors
    assert joined.points[factors[0]].unique().tolist() == values


def test_the_latex_table_fits_a_column():
    tables = tables_of(swept([(0.5, 0.5), (1.0, 1.0)]))
    latex = error_latex(tables["settings"], None, {"mechanisms.*.epsilon": "ε"})
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert rows[0] == r"Mechanism & $\varepsilon$ & RMSE (vehicles) \\"
    half = tables["settings"]["rmse_half"][0]
    assert rows[1] == rf"a\_1 & 0.5 & 17.5 $\pm$ {number(half)} \\"
    assert [row.split(" & ")[:2] for row in rows[2:]] == [["", "1"], ["b", "0.5"], ["", "1"]]
    assert "booktabs" in latex.splitlines()[0]
    assert "exact" not in latex
    # A column of 3.5 in has room for some 50 letters.
    assert max(len(row.replace("$", "").replace(r"\pm", "±").replace(r"\varepsilon", "ε")) for row in rows) < 50
    bad = tables["settings"].assign(mechanism="50 % & \\input{y}", rmse=math.inf, rmse_half=np.nan)
    assert r"50 \% \& \textbackslash input\{y\} & all & $\infty$ \\" in error_latex(
        bad, None, {"mechanisms.*.epsilon": "ε"}
    )


def test_any_table_is_shown_with_its_formats():
    table = pd.DataFrame({"data": ["x"], "rmse": [2.0], "rmse_half": [0.25], "share": [0.5], "runs": [1000]})
    view = view_table("t", "Caption", table.assign(ok=True), formats={"share": "percent"}, titles={"rmse": "RMSE"})
    assert (
        view_table("t", "Caption", pd.DataFrame({"v": range(3000)})).caption
        == "Caption (the first 1,000 of 3,000 rows)"
    )
    assert [head for head, _ in view.heads] == ["Data set", "RMSE", "share", "Runs", "ok"]
    plain = [re.sub("<.*?>", "", cell) for cell in view.rows[0]]
    assert plain == ["x", "2.00 ± 0.25", "50 %", "1,000", "yes"]  # as people say it


def test_titles_of_factors_are_as_short_as_they_can_be():
    paths = ("mechanisms.a.epsilon", "mechanisms.b.epsilon", "population.outside")
    assert list(factor_titles(paths).values()) == ["a.epsilon", "b.epsilon", "outside"]
    assert list(factor_titles(("mechanisms.*.epsilon", "channel.loss / traffic.vehicles")).values()) == [
        "ε", "loss / vehicles"
    ]  # fmt: skip


def _settings(**errors):
    """Rows of the table of settings: a list of errors for each mechanism, one for each value of two factors."""
    rows = [
        {"a": a, "b": b, "campaign": "c", "mechanism": name, "statistic": "count", "rmse": values[2 * a + b]}
        for name, values in errors.items()
        for a in (0, 1)
        for b in (0, 1)
    ]
    return pd.DataFrame(rows).assign(rmse_half=math.nan)


def _leaks(**epsilons):
    rows = [
        {"a": a, "b": b, "campaign": None, "mechanism": name, "view": "linked_reports", "queries": 12, "at_delta": 0.0}
        | {"epsilon": epsilon, "delta": 0.25, "at_epsilon": 1.0}
        for name, epsilon in epsilons.items()
        for a in (0, 1)
        for b in (0, 1)
    ]
    return pd.DataFrame(rows)


def test_the_finding_compares_only_at_stated_privacy_and_names_only_values_that_act():
    own = _settings(one=[1.0, 2.0, 1.0, 2.0], two=[3.0, 3.0, 4.0, 4.0], three=[0.5] * 4)
    titles = {"a": "a", "b": "b"}
    found = _finding(own, _leaks(one=2.0, two=2.0, three=math.inf), titles)
    assert found == (
        "With ε = 2 for linked reports of 12 queries, one has the smallest error, 1.00 vehicles (RMSE), at b = 0; two "
        "has 3.00, at a = 0. "
        "three errs by 0.50 vehicles (RMSE), with no finite ε (δ = 0.25 at ε = 1) for linked reports of 12 queries. "
        "one errs by 1.00 vehicles (RMSE), at b = 0, with ε = 2 for linked reports of 12 queries; its largest is 2.00, "
        "at b = 1, with ε = 2 for linked reports of 12 queries. "
        "two errs by 3.00 vehicles (RMSE), at a = 0, with ε = 2 for linked reports of 12 queries; its largest is 4.00, "
        "at a = 1, with ε = 2 for linked reports of 12 queries."
    )
    # Errors alone compare nothing.
    assert "smallest" not in _finding(own, None, titles)


def test_tables_of_pages_have_titles_words_and_say_what_they_leave_out():
    table = pd.DataFrame({"beats_zero": [True, False], "hot_cells_recall": [0.5, 1.0]})
    view = view_table("t", "A table", table)
    assert [head for head, _ in view.heads] == ["Better than 0 everywhere", "Busiest cells found"]
    assert [row[0] for row in view.rows] == ["yes", "no"]
    assert view.left_out == ""
    long = view_table("t", "A table", pd.DataFrame({"n": range(6000)}))
    assert (len(long.rows), long.left_out) == (1000, "5,000 more rows are in t.csv")

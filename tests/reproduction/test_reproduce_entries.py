"""How a value, a verdict and a tally of verdicts are written."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.papers.page import shown
from simulator.papers.published_results import (
    ENTRIES,
    DeclaredPanel,
    DeclaredPaper,
    DeclaredRow,
    Entry,
    Reproduction,
    Row,
)

SHOWN = [
    (None, "–"), (True, "yes"), (False, "no"), ("grows", "grows"), (0, "0"), (1234567, "1,234,567"), (-3, "−3"),
    (0.0, "0"), (24.3926, "24.39"), (6.83e-10, "6.83 × 10⁻¹⁰"), (-0.5, "−0.5"), (1.0, "1"), (243.87, "243.9"),
    (12345.6, "12,346"), (math.inf, "∞"), (-math.inf, "−∞"), (4.2e9, "4.20 × 10⁹"), (0.0012345, "0.001234"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[str(value) for value, _ in SHOWN])
def test_shown_value(value, text):
    assert shown(value) == text


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_shown_value_has_three_digits(value):
    plain = shown(value).replace(",", "").replace("−", "-").replace(" × 10", "e")
    plain = plain.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert float(plain) == pytest.approx(value, rel=6e-3)


def test_verdicts_and_their_tally():
    rows = [Row("a", 1, 1, True), Row("b", 1, 2, False, "why"), Row("c", None, 2, None, "new")]
    assert [row.verdict for row in rows] == ["agrees", "differs", "not published"]
    entry, own = (Entry(name="e", title="E", computed_by="m:f", paper=paper) for paper in ("SP", "crowdveil"))
    assert Reproduction(entry, rows).tally() == "1 of 2 published values agree; 1 more has none to agree with"
    assert Reproduction(own, rows[:2]).tally() == "1 of 2 expected values agree"
    assert Reproduction(entry, rows[:1]).tally() == "1 of 1 published value agrees"
    assert Reproduction(entry, rows[2:]).tally() == "no number is published; 1 value computed"
    assert Reproduction(entry, skipped="no data").tally() == "skipped"
    weaker = [Row("d", 4.24, 3.44, None, "wide", "not contradicted"), Row("e", 1, 1, None, "fit", "fitted")]
    assert [row.verdict for row in weaker] == ["not contradicted", "fitted"]
    tally = "1 of 2 published values agree; 1 more not contradicted; 1 more fitted; 1 more has none to agree with"
    assert Reproduction(entry, [*rows, *weaker]).tally() == tally


def test_catalogue_entries_have_unique_names():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert {"sp-sec1-sigma", "sp-fig2", "sp-fig3", "sp-fig4", "sp-fig5", "sp-fig6", "sp-fig7"} <= set(names)
    assert {"alp-accuracy", "alp-cancelling", "alp-scaling"} <= set(names)
    assert "all" not in names


RULES = [
    ({"published": 3, "equals": True}, 3, True), ({"published": "falls", "equals": True}, "rises", False),
    ({"printed": "0.16"}, 0.159, True), ({"printed": "0.159"}, 0.1595001, False), ({"printed": "4e9"}, 2**32, True),
    ({"published": -5, "within": 1}, -5.9, True), ({"published": -5, "within": 0.5}, -5.9, False),
    ({"published": 50, "within_share": 0.1}, 54.9, True), ({"published": 50, "within_share": 0.1}, 44, False),
    ({"published": "large", "above": 2}, 2, False), ({"published": "below 1", "below": 1}, 0.5, True),
    ({"published": 4.0, "at_least": 4.0}, 4.0, True), ({}, 1.0, None),
]  # fmt: skip


def results_of(**rows):
    declared = {name: DeclaredRow(key="{what}", note="of {what}", **row) for name, row in rows.items()}
    panels = {"one": DeclaredPanel(title="{what}", x="x", y="y", log_x=True)}
    entry = Entry(name="e", title="E", computed_by="m:f", rows=declared, panels=panels, findings={"f": "{a:.1f}"})
    shared = {"rows": {"shared": DeclaredRow(key="shared", note="no value")}}
    paper = DeclaredPaper(paper="SP", citation="", shared=shared, entry=[entry])
    return Reproduction(*paper.entries)


@pytest.mark.parametrize(("rule", "computed", "agrees"), RULES, ids=str)
def test_a_declared_rule_compares(rule, computed, agrees):
    results = results_of(one=rule)
    results.add_row("one", computed, what="it")
    (row,) = results.rows
    assert (row.key, row.computed, row.agrees, row.note) == ("it", computed, agrees, "of it")


def test_a_function_fills_the_declared_texts():
    results = results_of(one={"differs": "{what} differs"})
    results.add_row("one", np.float64(2.5), np.bool_(False), published=3, what="it")
    results.add_row("shared", 1)
    results.add_panel("one", [], what="it")
    results.add_findings("f", a=0.25)
    assert results.rows == [Row("it", 3, 2.5, False, "it differs"), Row("shared", None, 1, None, "no value")]
    assert type(results.rows[0].computed) is float
    assert (results.charts[0].title, results.charts[0].x.log, results.charts[0].y.log) == ("it", True, False)
    assert results.findings == ["0.2"]


def test_a_published_value_needs_a_rule_or_a_verdict():
    results = results_of(one={"published": 3})
    with pytest.raises(ValueError, match="neither a rule nor a verdict"):
        results.add_row("one", 3, what="it")
    with pytest.raises(TypeError, match="must be a number, a text or None"):
        results.add_row("one", [3], True, what="it")
    results.add_row("one", 3, True, what="it")
    with pytest.raises(ValueError, match="two rows have one key: it"):
        results.add_row("one", 4, True, what="it")

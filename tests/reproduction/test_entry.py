"""How a value, a verdict and a sum of verdicts are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reproduction.entry import ENTRIES, Reproduction, Row
from simulator.reproduction.page import shown

SHOWN = [
    (None, "–"), (True, "yes"), (False, "no"), ("grows", "grows"), (0, "0"), (1234567, "1,234,567"), (-3, "−3"),
    (0.0, "0"), (24.3926, "24.39"), (6.83e-10, "6.83 × 10⁻¹⁰"), (-0.5, "−0.5"), (1.0, "1"), (243.87, "243.9"),
    (12345.6, "12,346"), (math.inf, "∞"), (-math.inf, "−∞"), (4.2e9, "4.20 × 10⁹"), (0.0012345, "0.001234"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[str(value) for value, _ in SHOWN])
def test_shown(value, text):
    assert shown(value) == text


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_what_is_shown_is_the_value_to_three_digits(value):
    plain = shown(value).replace(",", "").replace("−", "-").replace(" × 10", "e")
    plain = plain.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert float(plain) == pytest.approx(value, rel=6e-3)


def test_verdicts_and_their_sum():
    rows = [Row("a", 1, 1, True), Row("b", 1, 2, False, "why"), Row("c", None, 2, None, "new")]
    assert [row.verdict for row in rows] == ["agrees", "differs", "not published"]
    assert Reproduction(rows=rows).tally() == "1 of 2 published values agree; 1 more has none to agree with"
    assert Reproduction(rows=rows[:2]).tally("crowdveil") == "1 of 2 expected values agree"
    assert Reproduction(rows=rows[:1]).tally() == "1 of 1 published value agrees"
    assert Reproduction(rows=rows[2:]).tally() == "nothing published as a number; 1 value computed"
    assert Reproduction(skipped="no data").tally() == "skipped"


def test_every_entry_of_the_catalogue_has_a_name_of_its_own():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert {"sp-sec1-sigma", "sp-fig2", "sp-fig3", "sp-fig4", "sp-fig5", "sp-fig6", "sp-fig7"} <= set(names)
    assert {"alp-accuracy", "alp-cancelling", "alp-scaling"} <= set(names)
    assert "all" not in names

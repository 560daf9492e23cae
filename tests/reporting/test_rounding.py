"""Claimed numbers are written rounded up, and by no more than one unit in their last digit."""

import math
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from mechanisms.privacy.rounding import rounded_up
from simulator.reporting.claims_section import learns, short_limit, view_claims
from simulator.results import formatting

SUPERSCRIPT = {ord(sign): plain for plain, sign in zip("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True)}


def exact(text: str) -> Decimal:
    """Return a number as it is written."""
    mantissa, _, power = text.replace(",", "").replace("−", "-").partition(" × 10")
    return Decimal(mantissa).scaleb(int(power.translate(SUPERSCRIPT) or 0) if power else 0)


def unit(text: str) -> Decimal:
    """Return one unit in the last digit of a number as it is written."""
    return Decimal(1).scaleb(int(exact(text).as_tuple().exponent))


def drawn(low: float, high: float, size: int = 2000) -> list[float]:
    return np.exp(np.random.default_rng(28).uniform(math.log(low), math.log(high), size)).tolist()


@pytest.mark.parametrize("written", [formatting.claimed, rounded_up, lambda value: rounded_up(value, 6)])
def test_claims_are_rounded_up_by_less_than_a_unit(written):
    for value in drawn(1e-25, 1e12):
        text = written(value)
        assert Decimal(value) <= exact(text) < Decimal(value) + unit(text), (value, text)


def test_chances_and_percentages_of_claims_are_rounded_up():
    for value in drawn(1e-8, 1.0):
        text = formatting.percent(value, up=True).removesuffix(" %")
        if text != "over 99.9":
            assert Decimal(100 * value) <= exact(text) < Decimal(100 * value) + unit(text)
        odds = formatting.chance(value).partition("1 in ")[2]
        if odds:
            assert exact(odds) <= Decimal(1 / value) < exact(odds) * Decimal("1.1")


def test_bounds_from_below_are_rounded_down():
    for value in drawn(1e-3, 1e6):
        text = formatting.at_least(value)
        assert Decimal(value) - unit(text) < exact(text) <= Decimal(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [(3.9923, "4.00"), (4.0, "4"), (0.45, "0.45"), (2.0000000000000004, "2"), (8.9999, "9.00"), (999.5, "1,000"),
     (1234.2, "1,235"), (1e-6, "1.0 × 10⁻⁶"), (1.409e-5, "1.41 × 10⁻⁵"), (1e-99, "< 10⁻²⁵"), (math.inf, "∞"),
     (math.nan, "–"), (0.0, "0")],
)  # fmt: skip
def test_zeros_stay_where_digits_were_dropped(value, written):
    assert formatting.claimed(value) == written


def test_statements_of_claims_are_rounded_up():
    row = {"mechanism": "m", "view": "report_round_1", "queries": 1, "kind": "exact", "basis": "why"}
    for epsilon in drawn(0.01, 20.0, 300):
        (claim,) = view_claims(pd.DataFrame([{**row, "epsilon": epsilon, "delta": 0.0}]))
        assert Decimal(epsilon) <= exact(short_limit(claim).removeprefix("ε = ").removesuffix(" (exact)"))
        fold = re.search(r"at most ([\d.,]+)-fold", learns(claim))
        assert fold is None or Decimal(math.exp(epsilon)) <= exact(fold[1]) * (1 + Decimal("1e-12"))

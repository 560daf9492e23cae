import math

import numpy as np
import pandas as pd
import pytest

from scenarios.run_clock import RunClock
from simulator.results import formatting


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "–"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞"), (0, "0"), (1234.4, "1,234"), (11.06, "11.1"),
        (-0.62, "−0.62"), (99.96, "100"), (0.0184, "0.0184"), (3.12e-7, "3.1 × 10⁻⁷"), (4e12, "4.0 × 10¹²"),
    ],
)  # fmt: skip
def test_number(value: float | None, written: str) -> None:
    assert formatting.number(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.5, "0.5"), (1.0, "1"), (0.45, "0.45"), (0.0032, "0.0032"), (1.4e-5, "1.4 × 10⁻⁵"),
     (math.inf, "∞"), (None, "–"), (0.0, "0")],
)  # fmt: skip
def test_parameter(value: float | None, written: str) -> None:
    assert formatting.parameter(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.45, "45 %"), (0.9523, "95.2 %"), (1.0, "100 %"), (0.99999, "over 99.9 %"), (0.0, "0 %"), (0.00032, "0.03 %"),
     (None, "–")],
)  # fmt: skip
def test_percent_never_rounds_to_certainty(value: float | None, written: str) -> None:
    assert formatting.percent(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.45, "45 %"),
        (3.4e-4, "1 in 2,900"),
        (2e-8, "1 in 50,000,000"),
        (1e-30, "less than 1 in a billion"),
        (0, "0 %"),
    ],
)
def test_chance(value: float, written: str) -> None:
    assert formatting.chance(value) == written


def test_related_value_and_counted_noun() -> None:
    assert formatting.related("δ", "=", 0.45) == "δ = 0.45"
    assert formatting.related("δ", "=", 1e-99) == "δ < 10⁻²⁵"
    assert [formatting.counted(count, "cell") for count in (1, 84)] == ["1 cell", "84 cells"]


def test_clock_duration_size_and_list() -> None:
    assert RunClock().text(750) == "0:12:30"
    assert RunClock().text(None) == "–"
    assert [formatting.duration(value) for value in (0.0123, 0.42, 42.0, 125.0, None)] == [
        "0.012 s", "0.42 s", "42.0 s", "2 min 5 s", "–",
    ]  # fmt: skip
    assert [formatting.size(value) for value in (12, 3_200_000, 5e15, None)] == ["12 bytes", "3.2 MB", "5000.0 TB", "–"]
    assert [formatting.listed(words) for words in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]


@pytest.mark.parametrize("value", [None, pd.NA, np.nan, "word"])
def test_real_of_non_numbers_is_none(value: object) -> None:
    assert formatting.real(value) is None


def test_real_of_numbers() -> None:
    assert formatting.real(np.int64(3)) == 3.0

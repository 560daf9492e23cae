"""Numbers with their nouns."""

import numpy as np
import pytest

from simulator.files.messages import counted


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("link",), "0 links"),
        (1, ("link",), "1 link"),
        (2950, ("link",), "2,950 links"),
        (1, ("fix", "fixes"), "1 fix"),
        (12, ("fix", "fixes"), "12 fixes"),
        (0, ("link leads", "links lead"), "0 links lead"),
        (np.int64(1), ("row",), "1 row"),
        (1.0, ("trip",), "1 trip"),
        (1.5, ("trip",), "1.5 trips"),
        (1234.5, ("trip",), "1,234.5 trips"),
        (float("inf"), ("trip",), "inf trips"),
    ],
)
def test_noun_agrees_with_its_number(number, words, expected):
    assert counted(number, *words) == expected


def test_float_that_rounds_to_one_is_singular():
    assert counted(1.0 + 1e-15, "trip") == "1 trip"

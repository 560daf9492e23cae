"""Parameters: defaults, refused values with their messages, and warnings."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.local import (
    BinarySamplingPrivacy,
    Estimate,
    NoPrivacy,
    ParameterError,
    ParameterWarning,
    RandomizedResponse,
    SamplingPrivacy,
)

NAN = float("nan")
BAD = [
    (NoPrivacy, {"cells": 0}, "cells must be at least 1, got 0"),
    (NoPrivacy, {"cells": 2.0}, "cells must be an integer, got 2.0"),
    (NoPrivacy, {"cells": True}, "cells must be an integer, got True"),
    (RandomizedResponse, {"cells": -1, "first_coin": 0.8, "second_coin": 0.2}, "cells must be at least 1, got -1"),
    (
        RandomizedResponse,
        {"cells": 3, "first_coin": 0.0, "second_coin": 0.2},
        "first_coin must be a probability above 0",
    ),
    (RandomizedResponse, {"cells": 3, "first_coin": NAN, "second_coin": 0.2}, "first_coin must be a probability"),
    (RandomizedResponse, {"cells": 3, "first_coin": 0.8, "second_coin": 1.2}, "second_coin must be a probability"),
    (RandomizedResponse, {"cells": 3, "first_coin": 0.8, "second_coin": NAN}, "second_coin must be a probability"),
    (RandomizedResponse, {"cells": 3, "first_coin": "x", "second_coin": 0}, "first_coin must be a number, got 'x'"),
    (SamplingPrivacy, {"cells": 0, "sampling": 0.4}, "cells must be at least 1"),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.0}, "sampling must be a probability above 0"),
    (SamplingPrivacy, {"cells": 3, "sampling": 1.01}, "sampling must be a probability above 0"),
    (SamplingPrivacy, {"cells": 3, "sampling": NAN}, "sampling must be a probability above 0"),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank_zero": -0.1}, "blank_zero must be a probability"),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank_zero": NAN}, "blank_zero must be a probability"),
    (
        SamplingPrivacy,
        {"cells": 3, "sampling": 0.4, "blank_zero": 0.7},
        "blank_zero must be at most 1 − sampling = 0.6",
    ),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank": 0.3}, "blank must sum over the cells to at most"),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank": NAN}, "blank must be a probability, 0 to 1, at cell 1"),
    (
        SamplingPrivacy,
        {"cells": 3, "sampling": 0.4, "blank": [0.1, 0.1, -0.1]},
        "blank must be a probability, 0 to 1, at cell 3",
    ),
    (
        SamplingPrivacy,
        {"cells": 3, "sampling": 0.4, "blank": [0.1, 0.1]},
        r"blank must be a number, or one per cell, shape \(3,\)",
    ),
    (SamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank": "x"}, "blank must be a number, or one per cell"),
    (
        SamplingPrivacy,
        {"cells": 3, "sampling": 0.4, "blank_zero": 0.1, "blank": 0.1},
        r"blank must make .* sum to 1, got 0\.8",
    ),
    (
        BinarySamplingPrivacy,
        {"cells": 3, "sampling": 0.4, "blank_zero": 0.61},
        "blank_zero must be at most 1 − sampling = 0.6",
    ),
    (BinarySamplingPrivacy, {"cells": 3, "sampling": 0.4, "blank_zero": NAN}, "blank_zero must be a probability"),
    (BinarySamplingPrivacy, {"cells": 3, "sampling": -0.4}, "sampling must be a probability above 0"),
    (BinarySamplingPrivacy, {"cells": None, "sampling": 0.4}, "cells must be an integer, got None"),
]


@pytest.mark.parametrize(("kind", "parameters", "message"), BAD)
def test_invalid_parameters_name_field_rule_and_value(kind, parameters, message):
    with pytest.raises(ParameterError, match=rf"^{message}") as caught:
        kind(**parameters)
    assert isinstance(caught.value, ValueError)
    assert caught.value.field in parameters


@given(
    cells=st.integers(1, 50),
    sampling=st.floats(0.01, 1.0),
    share=st.just(0.0) | st.floats(1e-9, 1.0),  # parts below 1e-20 are refused
    form=st.sampled_from(["default", "zero", "blank", "both", "each"]),
)
def test_sampling_probabilities_sum_to_one(cells, sampling, share, form):
    zero, left = share * (1 - sampling), 1 - sampling
    given_faces = {
        "default": {},
        "zero": {"blank_zero": zero},
        "blank": {"blank": zero / cells},
        "both": {"blank_zero": zero, "blank": (left - zero) / cells},
        "each": {"blank": np.linspace(0, 1, cells) / max(1.0, np.linspace(0, 1, cells).sum()) * zero},
    }[form]
    mechanism = SamplingPrivacy(cells=cells, sampling=sampling, **given_faces)
    assert mechanism.blanks.shape == (cells + 1,)
    assert (mechanism.blanks >= 0).all()
    assert mechanism.blanks.sum() + sampling == pytest.approx(1, abs=1e-9)
    if form == "default":
        assert mechanism.blanks.min() == mechanism.blanks.max() == (1 - sampling) / (cells + 1)
    if form in {"zero", "both"}:
        assert mechanism.blanks[0] == pytest.approx(zero, abs=1e-12)
    assert mechanism == SamplingPrivacy(cells=cells, sampling=sampling, **given_faces)


def test_binary_sampling_has_a_fair_blank_by_default():
    assert BinarySamplingPrivacy(cells=2, sampling=0.4).faces == pytest.approx((0.3, 0.3, 0.4))
    assert BinarySamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.6).faces == (0.6, 0.0, 0.4)


def test_discouraged_parameters_give_warnings_not_errors():
    assert SamplingPrivacy(cells=3, sampling=0.45).warnings() == []
    assert BinarySamplingPrivacy(cells=3, sampling=0.45).warnings() == []
    assert NoPrivacy(cells=3).warnings() == RandomizedResponse(cells=3, first_coin=1, second_coin=0).warnings() == []
    for kind in (SamplingPrivacy, BinarySamplingPrivacy):
        (text,) = kind(cells=3, sampling=0.5).warnings()
        assert "less than 1/2" in text
        assert "got 0.5" in text
        assert "π_0 = 0" in kind(cells=3, sampling=0.4, blank_zero=0.0).warnings()[0]
    assert (
        "a value of probability 0 as a blank" in SamplingPrivacy(cells=2, sampling=0.4, blank=[0.0, 0.2]).warnings()[0]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"std_error": np.array([1.0, -1.0])}, "std_error must not be negative"),
        ({"upper": np.array([1.0, 0.5])}, "lower must not exceed upper, at cell 2"),
        ({"lower": np.array([-1.0, 0.5])}, "lower must not be negative"),
        ({"count": np.array([1, 2])}, "count must be a float64 array"),
        ({"upper": np.array([1.0])}, "upper must have one value per cell"),
        ({"count": np.array([1.0, math.nan])}, "count must hold no NaN, first at cell, got 2"),
        ({"count": np.array([1.0, math.inf])}, "count must be finite"),
        ({"interval": "guess"}, "interval must be one of"),
    ],
)
def test_estimates_validate_their_fields(change, message):
    ones = np.ones(2)
    good = {"count": ones, "std_error": ones, "lower": ones, "upper": ones, "interval": "score"}
    assert len(Estimate(**good)) == 2
    with pytest.raises(ParameterError, match=rf"^{message}"):
        Estimate(**{**good, **change})


@pytest.mark.parametrize("kind", [SamplingPrivacy, BinarySamplingPrivacy])
def test_sampling_half_or_more_warns_at_the_callers_line(kind):
    with pytest.warns(ParameterWarning, match="less than 1/2") as caught_warnings:
        kind(cells=2, sampling=0.5)
    assert caught_warnings[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(cells=2, sampling=0.49)

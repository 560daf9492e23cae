"""Parameters: defaults, the words of each message, and warnings; `test_declared` has values of every parameter."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import BY_EPSILON, SOUND

from mechanisms.local import (
    AnonymizedCancelling,
    AnonymizedDeniable,
    AnonymizedFirstAttempt,
    AnonymizedLocal,
    BinarySamplingPrivacy,
    DistributedLaplace,
    Estimate,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    LongitudinalUnary,
    NoPrivacy,
    ParameterError,
    ParameterWarning,
    RandomizedResponse,
    SampledResponse,
    SamplingAndNoise,
    SamplingPrivacy,
    SubsetSelection,
    ThresholdHistogram,
    Warner,
)
from mechanisms.local.local_hashing import MOST_BUCKETS

NAN = float("nan")
BAD = [
    (NoPrivacy, {"cells": 2.0}, "cells must be an integer, got 2.0"),
    (NoPrivacy, {"cells": True}, "cells must be an integer, got True"),
    (RandomizedResponse, {"first_coin": 0.0}, "first_coin must be a probability above 0"),
    (RandomizedResponse, {"second_coin": 1.2}, "second_coin must be a probability"),
    (RandomizedResponse, {"first_coin": "x"}, "first_coin must be a number, got 'x'"),
    (SamplingPrivacy, {"blank_zero": 0.7}, "blank_zero must be at most 1 − sampling = 0.6"),
    (SamplingPrivacy, {"blank": 0.3}, "blank must sum over the cells to at most"),
    (SamplingPrivacy, {"blank": NAN}, "blank must be a probability, 0 to 1, at cell 1"),
    (SamplingPrivacy, {"blank": [0.1, 0.1, -0.1]}, "blank must be a probability, 0 to 1, at cell 3"),
    (SamplingPrivacy, {"blank": [0.1, 0.1]}, r"blank must be a number, or one per cell, shape \(3,\)"),
    (SamplingPrivacy, {"blank_zero": 0.1, "blank": 0.1}, r"blank must make .* sum to 1, got 0\.8"),
    (BinarySamplingPrivacy, {"blank_zero": 0.61}, "blank_zero must be at most 1 − sampling = 0.6"),
    (Warner, {"truthful": 0.5}, "truthful must not be 1/2"),
    (SamplingAndNoise, {"says": "no"}, "says must be one of noise, value"),
    (SampledResponse, {"estimator": "all"}, "estimator must be one of yes, no, silent, best, got 'all'"),
    (SampledResponse, {"yes_share": 0.0}, "yes_share must be between 0 and 1, both excluded, got 0.0"),
    (AnonymizedLocal, {"sampling_yes_two": 0.7}, "sampling_yes_two must be at most 0.6, 1 minus the sum of the oth"),
    (AnonymizedFirstAttempt, {"shift_yes": 0.5}, "shift_yes must be at most base = 0.4, got 0.5"),
    (AnonymizedFirstAttempt, {"base": 0.8, "shift_no": 0.3}, "shift_yes must be at most 0.2, 1 minus the sum of the"),
    (AnonymizedCancelling, {"stay": [0.4, 0.4]}, "stay must be 3 probabilities"),
    (AnonymizedCancelling, {"stay": [0.4, 0.4, 0.1]}, "stay must sum to 1 − shift = 0.8"),
    (AnonymizedDeniable, {"yes_third": 0.8}, "yes_third must be at most 0.7, 1 minus the sum of the others, got 0.8"),
    (ThresholdHistogram, {"threshold": 1.5}, r"threshold must be in 0\.\.1, got 1\.5"),
    (LocalHashing, {"cells": 2**31}, r"cells must be in 1\.\.2147483646"),
    (SubsetSelection, {"size": 4}, r"size must be in 1\.\.3, got 4"),
    (HadamardResponse, {"cells": 2**30}, r"cells must be in 1\.\.1073741822"),
    (LongitudinalUnary, {"epsilon_first": 2.0}, "epsilon_first must be below epsilon_permanent = 2, got 2.0"),
    (LongitudinalUnary, {"epsilon_permanent": 1.0, "epsilon_first": math.nextafter(1, 0)}, "epsilon_first must leave"),
]
BAD += [(kind, {"cells": 0}, r"cells must be (at least 1|in 1\.\.\d+), got 0") for kind in SOUND]
BAD += [
    (KRandomizedResponse, {"epsilon": value}, rf"epsilon must be {rule}, got {value!r}")
    for value, rule in ((0.0, r"in 1e-06\.\.50"), (NAN, "a number"), ("1", "a number"))
]


@pytest.mark.parametrize(("kind", "change", "message"), BAD)
def test_invalid_parameters_name_field_rule_and_value(kind, change, message):
    good = {"cells": 3, **SOUND[kind]}
    assert kind(**good).cells == 3
    with pytest.raises(ParameterError, match=rf"^{message}") as caught:
        kind(**{**good, **change})
    assert isinstance(caught.value, ValueError)
    assert message.startswith(caught.value.field)


@given(
    cells=st.integers(1, 50),
    sampling=st.floats(0.01, 0.999) | st.just(1.0),  # parts below 1e-20 are refused
    share=st.just(0.0) | st.floats(1e-9, 1.0),
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


@given(cells=st.integers(1, 2000), epsilon=st.floats(1e-6, 50.0))
def test_every_epsilon_gives_ordered_probabilities(cells, epsilon):
    for kind in BY_EPSILON.values():
        baseline = kind(cells=cells, epsilon=epsilon)
        assert 0.0 < baseline.false_yes < baseline.true_yes <= 1.0
        assert hash(baseline) == hash(kind(cells=cells, epsilon=epsilon))


def test_defaults():
    assert BinarySamplingPrivacy(cells=2, sampling=0.4).faces == pytest.approx((0.3, 0.3, 0.4))
    assert BinarySamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.6).faces == (0.6, 0.0, 0.4)
    assert LocalHashing(cells=9, epsilon=math.log(3)).buckets == 4
    assert LocalHashing(cells=9, epsilon=0.1).buckets == 2
    assert LocalHashing(cells=9, epsilon=50.0).buckets == MOST_BUCKETS
    assert SubsetSelection(cells=1000, epsilon=1.0).size == round(1001 / (math.e + 1)) == 269
    assert SubsetSelection(cells=3, epsilon=5.0).size == 1
    assert [HadamardResponse(cells=cells, epsilon=1.0).outputs for cells in (3, 6, 7)] == [8, 8, 16]
    assert LongitudinalUnary(cells=3, epsilon_permanent=2.0, epsilon_first=1.0).permanent == "optimised"
    assert DistributedLaplace(cells=3, epsilon=1.0, devices=10).sensitivity == 2
    assert DistributedLaplace(cells=1, epsilon=1.0, devices=10).sensitivity == 1


def test_discouraged_parameters_give_warnings_not_errors():
    assert SamplingPrivacy(cells=3, sampling=0.45).warnings() == []
    assert BinarySamplingPrivacy(cells=3, sampling=0.45).warnings() == []
    assert NoPrivacy(cells=3).warnings() == RandomizedResponse(cells=3, first_coin=1, second_coin=0).warnings() == []
    for kind in (SamplingPrivacy, BinarySamplingPrivacy):
        (text,) = kind(cells=3, sampling=0.5).warnings()
        assert "less than 1/2" in text
        assert "got 0.5" in text
        assert "π_0 = 0" in kind(cells=3, sampling=0.4, blank_zero=0.0).warnings()[0]
    text = SamplingPrivacy(cells=2, sampling=0.4, blank=[0.0, 0.2]).warnings()[0]
    assert "a value of probability 0 as a blank" in text


@pytest.mark.parametrize("kind", [SamplingPrivacy, BinarySamplingPrivacy])
def test_sampling_half_or_more_warns_at_the_callers_line(kind):
    with pytest.warns(ParameterWarning, match="less than 1/2") as caught_warnings:
        kind(cells=2, sampling=0.5)
    assert caught_warnings[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(cells=2, sampling=0.49)


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

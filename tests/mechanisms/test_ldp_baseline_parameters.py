"""Parameters of the baselines: defaults, and refused values with their messages."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldp_baseline_cases import BY_EPSILON

from mechanisms.local import ParameterError
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.local_hashing import MOST_BUCKETS, LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import ThresholdHistogram

NAN, INF = float("nan"), float("inf")
LAPLACE = {"cells": 3, "epsilon": 1.0, "devices": 10}
LONGITUDINAL = {"cells": 3, "epsilon_permanent": 2.0, "epsilon_first": 1.0}


@pytest.mark.parametrize("kind", [*BY_EPSILON.values(), DistributedLaplace])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": 0}, "cells must be at least 1, got 0"),
        ({"cells": -4}, "cells must be at least 1, got -4"),
        ({"cells": 2.0}, "cells must be an integer, got 2.0"),
        ({"cells": True}, "cells must be an integer, got True"),
        ({"cells": None}, "cells must be an integer, got None"),
        ({"epsilon": 0.0}, r"epsilon must be in 1e-06\.\.50, got 0\.0"),
        ({"epsilon": -1.0}, r"epsilon must be in 1e-06\.\.50, got -1\.0"),
        ({"epsilon": INF}, r"epsilon must be in 1e-06\.\.50, got inf"),
        ({"epsilon": NAN}, "epsilon must be a number, got nan"),
        ({"epsilon": "1"}, "epsilon must be a number, got '1'"),
        ({"epsilon": True}, "epsilon must be a number, got True"),
    ],
)
def test_cells_and_epsilon_are_checked_by_all(kind, change, message):
    # Some counts of cells are also too many, whose message names both ends.
    message = message.replace("at least 1", r"(at least 1|in 1\.\.\d+)")
    good = {"cells": 3, "epsilon": 1.0} | ({"devices": 5} if kind is DistributedLaplace else {})
    with pytest.raises(ParameterError, match=rf"^{message}") as caught:
        kind(**good | change)
    assert isinstance(caught.value, ValueError)
    assert caught.value.field in good


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (ThresholdHistogram, {"cells": 3, "epsilon": 1.0, "threshold": NAN}, r"threshold must be a number, got nan"),
        (ThresholdHistogram, {"cells": 3, "epsilon": 1.0, "threshold": 1.5}, r"threshold must be in 0\.\.1, got 1\.5"),
        (ThresholdHistogram, {"cells": 3, "epsilon": 1.0, "threshold": "x"}, "threshold must be a number, got 'x'"),
        (LocalHashing, {"cells": 3, "epsilon": 1.0, "buckets": 1}, r"buckets must be in 2\.\.2147483647, got 1"),
        (LocalHashing, {"cells": 3, "epsilon": 1.0, "buckets": 2.5}, "buckets must be an integer, got 2.5"),
        (LocalHashing, {"cells": 2**31, "epsilon": 1.0}, r"cells must be in 1\.\.2147483646"),
        (SubsetSelection, {"cells": 3, "epsilon": 1.0, "size": 0}, r"size must be at least 1, got 0"),
        (SubsetSelection, {"cells": 3, "epsilon": 1.0, "size": 4}, r"size must be in 1\.\.3, got 4"),
        (HadamardResponse, {"cells": 2**30, "epsilon": 1.0}, r"cells must be in 1\.\.1073741822"),
        (DistributedLaplace, LAPLACE | {"devices": 0}, "devices must be at least 1, got 0"),
        (DistributedLaplace, LAPLACE | {"devices": 2.5}, "devices must be an integer, got 2.5"),
        (LongitudinalUnary, LONGITUDINAL | {"cells": 0}, "cells must be at least 1, got 0"),
        (LongitudinalUnary, LONGITUDINAL | {"epsilon_permanent": 0.0}, r"epsilon_permanent must be in 1e-06\.\.50"),
        (LongitudinalUnary, LONGITUDINAL | {"epsilon_permanent": NAN}, "epsilon_permanent must be a number, got nan"),
        (LongitudinalUnary, LONGITUDINAL | {"epsilon_first": -1.0}, r"epsilon_first must be in 1e-06\.\.50"),
        (
            LongitudinalUnary,
            LONGITUDINAL | {"epsilon_first": 2.0},
            "epsilon_first must be below epsilon_permanent = 2, got 2.0",
        ),
        (LongitudinalUnary, LONGITUDINAL | {"epsilon_first": 3.0}, "epsilon_first must be below epsilon_permanent = 2"),
        (
            LongitudinalUnary,
            {"cells": 3, "epsilon_permanent": 1.0, "epsilon_first": math.nextafter(1, 0)},
            "epsilon_first must leave",
        ),
        (LongitudinalUnary, LONGITUDINAL | {"permanent": "both"}, "permanent must be one of optimised, symmetric"),
    ],
)
def test_invalid_parameters_name_field_rule_and_value(kind, parameters, message):
    with pytest.raises(ParameterError, match=rf"^{message}") as caught:
        kind(**parameters)
    assert caught.value.field in parameters


def test_defaults_are_the_optimal_ones():
    assert LocalHashing(cells=9, epsilon=math.log(3)).buckets == 4
    assert LocalHashing(cells=9, epsilon=0.1).buckets == 2
    assert LocalHashing(cells=9, epsilon=50.0).buckets == MOST_BUCKETS
    assert SubsetSelection(cells=1000, epsilon=1.0).size == round(1001 / (math.e + 1)) == 269
    assert SubsetSelection(cells=3, epsilon=5.0).size == 1
    assert HadamardResponse(cells=3, epsilon=1.0).outputs == 8
    assert HadamardResponse(cells=6, epsilon=1.0).outputs == 8
    assert HadamardResponse(cells=7, epsilon=1.0).outputs == 16
    assert LongitudinalUnary(**LONGITUDINAL).permanent == "optimised"
    assert DistributedLaplace(**LAPLACE).sensitivity == 2
    assert DistributedLaplace(cells=1, epsilon=1.0, devices=10).sensitivity == 1


def test_laplace_share_batch_grows_with_the_number_of_devices():
    batches = [DistributedLaplace(cells=1000, epsilon=0.5, devices=n).batch for n in (1, 100, 10**4, 10**7)]
    assert batches == sorted(batches)
    assert batches[0] < 2000
    assert batches[-1] > 10**6


@given(cells=st.integers(1, 2000), epsilon=st.floats(1e-6, 50.0))
def test_every_epsilon_gives_ordered_probabilities(cells, epsilon):
    for kind in BY_EPSILON.values():
        baseline = kind(cells=cells, epsilon=epsilon)
        assert 0.0 < baseline.false_yes < baseline.true_yes <= 1.0
        assert baseline == kind(cells=cells, epsilon=epsilon)
        assert hash(baseline) == hash(kind(cells=cells, epsilon=epsilon))

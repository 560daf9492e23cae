"""Every constructor that accepts its parameters gives a claim for every view, without a numeric error or warning."""

import math
import warnings

import numpy as np
import pytest

from mechanisms import local
from mechanisms.central import LaplaceCounts, SampleThenSuppress, ThresholdCounts
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled

PROBABILITY = (0.0, 5e-324, 1e-20, 1e-17, 1e-9, 0.3, 0.5, 0.7, 1 - 1e-9, 0.999999999999, 1 - 1e-16, 1.0)
BUDGET = (1e-6, 0.001, 1.0, 10.0, 40.0, 50.0)
COUNT = (1, 2, 3, 1000, 10**6)
PARAMETERS = {
    local.RandomizedResponse: {"first_coin": PROBABILITY, "second_coin": PROBABILITY},
    local.Warner: {"truthful": PROBABILITY},
    local.SampledResponse: dict.fromkeys(("sampling", "first_coin", "second_coin", "sampling_no"), PROBABILITY),
    local.SamplingAndNoise: {"sampling": PROBABILITY, "sampling_no": PROBABILITY, "says": ("noise", "value")},
    local.AnonymizedLocal: dict.fromkeys(
        ("sampling_yes_one", "sampling_yes_two", "sampling_no", "first_coin", "second_coin", "third_coin"), PROBABILITY
    ),
    local.AnonymizedFirstAttempt: dict.fromkeys(("base", "shift_yes", "shift_no"), PROBABILITY),
    local.AnonymizedCancelling: {"shift": PROBABILITY},
    local.AnonymizedDeniable: dict.fromkeys(
        ("shift", "yes_second", "yes_third", "no_second", "no_third", "onward", "onward_yes"), PROBABILITY
    ),
    local.KRandomizedResponse: {"epsilon": BUDGET},
    local.SubsetSelection: {"epsilon": BUDGET},
    local.HadamardResponse: {"epsilon": BUDGET},
    local.LocalHashing: {"epsilon": BUDGET, "buckets": (2, 3, 2**31 - 1)},
    local.SymmetricUnary: {"epsilon": BUDGET},
    local.OptimisedUnary: {"epsilon": BUDGET},
    local.ThresholdHistogram: {"epsilon": BUDGET},
    local.LongitudinalUnary: {
        "epsilon_permanent": BUDGET,
        "epsilon_first": (*BUDGET, 0.999, 49.9, 9e-6),
        "permanent": ("optimised", "symmetric"),
    },
    local.SamplingPrivacy: {"sampling": PROBABILITY, "blank_zero": (None, *PROBABILITY), "refresh": PROBABILITY},
    local.BinarySamplingPrivacy: {"sampling": PROBABILITY, "blank_zero": (None, *PROBABILITY)},
    local.DistributedLaplace: {"epsilon": BUDGET, "devices": COUNT[:4]},
}
CENTRAL = {
    LaplaceCounts: {"epsilon": BUDGET, "sampling": PROBABILITY},
    ThresholdCounts: {"epsilon": BUDGET, "k": COUNT},
    SampleThenSuppress: {"k": COUNT, "sampling": PROBABILITY},
}
EPSILONS = (0.0, 1e-9, 0.7, 30.0, 800.0, math.inf)


def views_of(rng, rounds):
    """Every kind of view, of one query or of several, for a small or a large crowd."""
    queries, crowd = int(rng.choice([1, 1, 2])), int(rng.choice([1, 2, 30, 10**5]))
    adjacency = str(rng.choice(["move", "enter_leave"]))
    yield LinkedReports(queries, adjacency=adjacency)
    yield Shares(2, 2, queries, adjacency=adjacency)
    for round_ in range(1, rounds + 1):
        yield Report(round_, queries, adjacency=adjacency)
        yield Shuffled(round_, crowd, queries, adjacency=adjacency)
    yield ReleasedDifferences(crowd, None, queries, adjacency=adjacency)
    yield ReleasedDifferences(None, 5, queries, adjacency=adjacency)
    yield ReleasedCounts(min(crowd, 30), queries, adjacency=adjacency)
    yield ReleasedCounts(None, queries, min(crowd, 30), adjacency=adjacency)


def drawn(rng, parameters):
    """One value of each parameter, drawn."""
    return {name: values[int(rng.integers(len(values)))] for name, values in parameters.items()}


def check(claim, where):
    """A number for every ε, within 0 and 1."""
    found = [claim.delta(epsilon) for epsilon in EPSILONS]
    if claim.kind == "unknown":
        return
    assert not math.isnan(claim.epsilon), where
    assert min(found) >= 0.0, where
    assert max(found) <= 1.0, where


@pytest.mark.parametrize("tries", [3, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.thorough])])
@pytest.mark.parametrize("kind", PARAMETERS, ids=lambda kind: kind.__name__)
def test_every_accepted_parameter_has_claims(kind, tries):
    rng, accepted = np.random.default_rng(tries), 0
    for _ in range(20 * tries):
        cells, given = int(rng.choice([1, 2, 3, 64])), drawn(rng, PARAMETERS[kind])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", local.ParameterWarning)
            try:
                mechanism = kind(cells=cells, **given)
            except (local.ParameterError, local.NotEstimableError):
                continue
            accepted += 1
            for view in views_of(rng, mechanism.rounds):
                check(mechanism.claim(view), (kind.__name__, cells, given, view))
        if accepted >= tries:
            break
    assert accepted


@pytest.mark.parametrize("kind", CENTRAL, ids=lambda kind: kind.__name__)
def test_every_accepted_release_has_claims(kind):
    rng = np.random.default_rng(8)
    for _ in range(6):
        given = drawn(rng, CENTRAL[kind])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                release = kind(**given)
            except local.ParameterError:
                continue
            crowd = [None, 1, 3, 1000][int(rng.integers(4))]
            for adjacency in ("move", "enter_leave"):
                queries = int(rng.choice([1, 3]))
                check(release.claim(crowd=crowd, queries=queries, adjacency=adjacency), (given, crowd, queries))


def test_a_blank_that_is_nearly_impossible():
    """π_1 is 1e-12 here, and the claims are about what the devices draw."""
    mechanism = local.BinarySamplingPrivacy(cells=2, sampling=0.999999999999, blank_zero=0)
    assert mechanism.faces == (0.0, pytest.approx(1e-12, rel=1e-3), 0.999999999999)
    assert mechanism.claim(ReleasedCounts(5)).delta(1.0) == pytest.approx(1.0, abs=1e-9)
    assert local.BinarySamplingPrivacy(cells=2, sampling=0.7, blank_zero=0.3).faces[1] == 0.0


def test_a_probability_that_no_double_can_square_is_refused():
    for kind, field in ((local.SamplingPrivacy, "sampling"), (local.RandomizedResponse, "second_coin")):
        given = {"cells": 2, **({} if field == "sampling" else {"first_coin": 0.5}), field: 1e-21}
        with pytest.raises(local.ParameterError, match=f"{field} must be .*at least 1e-20, got 1e-21"):
            kind(**given)

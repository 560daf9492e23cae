"""Claims about published sums and shuffled reports for random parameters, extreme ones among them, by enumeration."""

import warnings

import numpy as np
import pytest
from published_laws import PublishedLaw, divergences, divergences_of_two
from test_published_sums import ADJACENCIES, check, limits_of

from mechanisms.local import BinarySamplingPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedFirstAttempt
from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import bound_view
from mechanisms.privacy import ReleasedCounts, Shuffled

EDGES = (0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999)
BUDGETS = (0.01, 0.05, 0.2, 0.7, 1.5, 3.0, 5.0, 8.0)
# The kinds of each parameter: a probability, a probability of at most 1/2, a budget ε, a permanent budget.
PARAMETERS = {
    RandomizedResponse: {"first_coin": "p", "second_coin": "p"},
    Warner: {"truthful": "p"},
    SampledResponse: {"sampling": "p", "first_coin": "p", "second_coin": "p"},
    SamplingAndNoise: {"sampling": "p", "sampling_no": "p"},
    SymmetricUnary: {"epsilon": "ε"},
    OptimisedUnary: {"epsilon": "ε"},
    ThresholdHistogram: {"epsilon": "ε"},
    SubsetSelection: {"epsilon": "ε"},
    HadamardResponse: {"epsilon": "ε"},
    KRandomizedResponse: {"epsilon": "ε"},
    LongitudinalUnary: {"epsilon_permanent": "kept", "epsilon_first": "p"},
    SamplingPrivacy: {"sampling": "p", "blank_zero": "p", "refresh": "p"},
    BinarySamplingPrivacy: {"sampling": "p", "blank_zero": "p"},
    AnonymizedFirstAttempt: {"base": "half", "shift_yes": "half", "shift_no": "half"},
    AnonymizedCancelling: {"shift": "p"},
}


def value_of(kind, draw):
    if kind == "ε":
        return float(draw.choice(BUDGETS))
    if kind == "kept":
        return draw.uniform(1.0, 6.0)
    p = draw.choice([draw.random(), draw.choice(EDGES)])
    return float(p) / 2 if kind == "half" else float(p)


def made(kind, draw):
    """A mechanism of a kind with random parameters that it accepts."""
    while True:
        cells = int(draw.choice([1, 2] if kind is AnonymizedFirstAttempt else [1, 1, 2, 2, 3]))
        parameters = {name: value_of(of, draw) for name, of in PARAMETERS[kind].items()}
        if kind is SamplingPrivacy and draw.random() < 0.5:
            parameters["refresh"] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parameters outside the papers' ranges
            try:
                return kind(cells=cells, **parameters)
            except ParameterError:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARAMETERS)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3, 8))])
def test_claims_hold_for_random_parameters(kind, seed):
    draw = np.random.default_rng([seed, list(PARAMETERS).index(kind)])
    epsilons = (0.0, 0.02, 0.1, 0.5, 1.0, 2.0, 3.5, 6.0)
    for _ in range(10):
        mechanism, devices = made(kind, draw), int(draw.integers(1, 5))
        twice = kind is not LongitudinalUnary and mechanism.cells * devices <= 3
        for queries, enumerate_ in ((1, divergences), (2, divergences_of_two))[: 1 + twice]:
            law = PublishedLaw(mechanism)
            for adjacency in ADJACENCIES:
                for crowd, most in limits_of(devices):
                    view = ReleasedCounts(crowd, queries, devices, most=most, adjacency=adjacency)
                    limits = {"least": (crowd or 1) - 1, "most": None if most is None else most - 1}
                    exact = enumerate_(law, devices, adjacency, epsilons, **limits)
                    check(mechanism.claim(view), exact, (mechanism, view), epsilons)
                    for bound in bound_view(mechanism, view, devices=devices).made_from if exact is not None else ():
                        deltas = np.array([bound.delta(epsilon) for epsilon in epsilons])
                        assert not (deltas < exact - 1e-9).any(), (mechanism, view, bound, deltas, exact)
            for round_ in range(1, mechanism.rounds + 1):
                law_of_round = PublishedLaw(mechanism, round_)
                for adjacency in ADJACENCIES:
                    view = Shuffled(round_, devices, queries, adjacency=adjacency)
                    exact = enumerate_(law_of_round, devices, adjacency, epsilons)
                    check(mechanism.claim(view), exact, (mechanism, view), epsilons)

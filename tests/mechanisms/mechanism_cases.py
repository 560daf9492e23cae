"""The mechanisms that all tests use, each small enough to enumerate, and how to ask their devices."""

import numpy as np

from mechanisms.local import BinarySamplingPrivacy, LocalHashing, NoPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt

MECHANISMS = {
    "no privacy": NoPrivacy(cells=3),
    "randomized response": RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2),
    "randomized response, one cell": RandomizedResponse(cells=1, first_coin=0.6, second_coin=0.9),
    "sampling": SamplingPrivacy(cells=3, sampling=0.45),
    "sampling, unequal blanks": SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05]),
    "sampling, no blank zero": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0),
    "binary sampling": BinarySamplingPrivacy(cells=3, sampling=0.45),
    "binary sampling, unequal": BinarySamplingPrivacy(cells=3, sampling=0.3, blank_zero=0.6),
    "binary sampling, many cells": BinarySamplingPrivacy(cells=130, sampling=0.25, blank_zero=0.7),
    "randomized response, many cells": RandomizedResponse(cells=130, first_coin=0.5, second_coin=0.1),
}


def truth_of(true_counts):
    """The devices outside and in each cell, one by one, (n,) int32."""
    return np.repeat(np.arange(len(true_counts), dtype=np.int32), true_counts)


def run_query(mechanism, truth, *, rng, where=None):
    """All rounds of one query to devices that stay in place, (rounds, *tally_shape)."""
    coins = mechanism.toss(mechanism.enrol(len(truth), rng=rng), rng=rng)
    masks = [None] * mechanism.rounds if where is None else where
    return np.stack([mechanism.tally(mechanism.answer(r + 1, truth, coins), masks[r]) for r in range(mechanism.rounds)])


BY_EPSILON = {
    "k-ary": KRandomizedResponse,
    "SUE": SymmetricUnary,
    "OUE": OptimisedUnary,
    "THE": ThresholdHistogram,
    "OLH": LocalHashing,
    "subset": SubsetSelection,
    "Hadamard": HadamardResponse,
}
BASELINES = {
    **{f"{name}, 3 cells": kind(cells=3, epsilon=1.2) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 1 cell": kind(cells=1, epsilon=0.7) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 130 cells": kind(cells=130, epsilon=2.5) for name, kind in BY_EPSILON.items()},
    "OLH, many buckets": LocalHashing(cells=3, epsilon=1.5, buckets=1000),
    "subset, most symbols": SubsetSelection(cells=5, epsilon=1.0, size=5),
    "L-OSUE": LongitudinalUnary(cells=3, epsilon_permanent=3.0, epsilon_first=1.5),
    "L-SUE": LongitudinalUnary(cells=3, epsilon_permanent=2.0, epsilon_first=1.0, permanent="symmetric"),
    "L-OSUE, 130 cells": LongitudinalUnary(cells=130, epsilon_permanent=3.0, epsilon_first=2.0),
    "Laplace shares": DistributedLaplace(cells=3, epsilon=1.0, devices=100),
    "Laplace shares, short": DistributedLaplace(cells=3, epsilon=1.0, devices=250),
    "Laplace, one device's": DistributedLaplace(cells=1, epsilon=2.0, devices=1),
}


def unary_matrix(p, q, cells):
    """Bits about every cell, for a device outside and in each: (cells + 1, 2 ** cells), bit v − 1 about cell v."""
    outputs = np.arange(2**cells)
    rows = []
    for truth in range(cells + 1):
        row = np.ones(2**cells)
        for cell in range(1, cells + 1):
            yes = p if cell == truth else q
            row *= np.where(outputs >> (cell - 1) & 1, yes, 1 - yes)
        rows.append(row)
    return np.array(rows)


LOCAL = {
    "sampling_yes_one": 0.4,
    "sampling_yes_two": 0.3,
    "sampling_no": 0.35,
    "first_coin": 0.8,
    "second_coin": 0.5,
    "third_coin": 0.2,
}
DENIABLE = {"shift": 0.2, "yes_second": 0.3, "yes_third": 0.3, "no_second": 0.3, "no_third": 0.4, "onward": 0.4}
SOUND = {
    NoPrivacy: {},
    RandomizedResponse: {"first_coin": 0.8, "second_coin": 0.2},
    SamplingPrivacy: {"sampling": 0.4},
    BinarySamplingPrivacy: {"sampling": 0.4},
    Warner: {"truthful": 0.7},
    SamplingAndNoise: {"sampling": 0.4},
    SampledResponse: {"sampling": 0.4, "first_coin": 0.6, "second_coin": 0.3},
    AnonymizedLocal: LOCAL,
    AnonymizedFirstAttempt: {"base": 0.4, "shift_yes": 0.3, "shift_no": 0.1},
    AnonymizedCancelling: {"shift": 0.2},
    AnonymizedDeniable: DENIABLE,
    **{kind: {"epsilon": 1.0} for kind in BY_EPSILON.values()},
    LongitudinalUnary: {"epsilon_permanent": 2.0, "epsilon_first": 1.0},
    DistributedLaplace: {"epsilon": 1.0, "devices": 10},
}
"""Parameters that each class accepts."""
QUESTIONS = {
    "warner": Warner(cells=3, truthful=0.7),
    "warner, liars, many cells": Warner(cells=130, truthful=0.2),
    "noise, two rates": SamplingAndNoise(cells=3, sampling=0.5, sampling_no=0.1),
    "value": SamplingAndNoise(cells=2, sampling=0.5, sampling_no=0.3, says="value"),
    "toy 2": SampledResponse(cells=3, sampling=0.6, first_coin=0.7, second_coin=0.4),
    "toy 2, two rates": SampledResponse(
        cells=1, sampling=0.6, sampling_no=0.3, first_coin=0.7, second_coin=0.4, estimator="best"
    ),
    "anonymized, yes": AnonymizedLocal(cells=3, **LOCAL, estimator="yes"),
    "anonymized, no": AnonymizedLocal(cells=3, **LOCAL, estimator="no"),
    "anonymized, silent": AnonymizedLocal(cells=1, **LOCAL, estimator="silent"),
    "anonymized, best": AnonymizedLocal(cells=3, **LOCAL),
    "anonymized, best, many cells": AnonymizedLocal(cells=130, **LOCAL, yes_share=0.05),
    "first attempt": AnonymizedFirstAttempt(cells=3, base=0.4, shift_yes=0.3, shift_no=0.1),
    "cancelling": AnonymizedCancelling(cells=3, shift=0.3),
    "cancelling, one cell": AnonymizedCancelling(cells=1, shift=0.45, stay=[0.05, 0.5, 0.0]),
    "deniable": AnonymizedDeniable(cells=2, **DENIABLE),
    "deniable, both ways": AnonymizedDeniable(cells=1, **{**DENIABLE, "shift": 0.7}, onward_yes=0.1),
}


REFRESHED = {
    "refresh": SamplingPrivacy(cells=3, sampling=0.4, refresh=0.3),
    "refresh, unequal blanks": SamplingPrivacy(cells=3, sampling=0.4, blank=[0.1, 0.2, 0.05], refresh=0.5),
    "refresh, all of them": SamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.1, refresh=1.0),
    "everyone sampled": SamplingPrivacy(cells=2, sampling=1.0),
}
ALL = {
    **MECHANISMS,
    **REFRESHED,
    **BASELINES,
    **QUESTIONS,
    "OLH, two buckets": LocalHashing(cells=4, epsilon=2, buckets=2),
}
SMALL = {name: mechanism for name, mechanism in ALL.items() if mechanism.cells <= 5}


def views_of(mechanism):
    """Every set of rounds that can be observed."""
    return {1: [(1,)], 2: [(1,), (2,), (1, 2)], 3: [(1,), (2,), (3,), (1, 2), (2, 3), (1, 3), (1, 2, 3)]}[
        mechanism.rounds
    ]


def uneven_prior(truths, seed=0):
    """A prior in which all probabilities differ."""
    return np.random.default_rng(seed).dirichlet(np.ones(truths))


def answers_of(mechanism, truth, rounds, *, rng, queries=1):
    """Reports of devices that stay in place: one entry per round, for each query."""
    memory = mechanism.enrol(len(truth), rng=rng)
    asked = []
    for _ in range(queries):
        coins = mechanism.toss(memory, rng=rng)
        asked.append([mechanism.answer(r, truth, coins) for r in rounds])
    return asked


def brute_force(matrix, prior, queries=1):
    """Σ over outcomes of T independent queries of the largest prior × likelihood, by listing every outcome."""
    rows = matrix
    for _ in range(queries - 1):
        rows = (rows[:, :, np.newaxis] * matrix[:, np.newaxis, :]).reshape(len(matrix), -1)
    return float((prior[:, np.newaxis] * rows).max(axis=0).sum())


def protocol_matrix(protocol, rounds=None):
    """P(linked answers of these rounds | kind) of a protocol's table, (kinds, answers)."""
    seen = range(1, protocol.rounds + 1) if rounds is None else rounds
    distributions = [protocol.law(kind) for kind in protocol.kinds]
    places = {}
    for distribution in distributions:
        for answers in distribution:
            places.setdefault(tuple(answers[r - 1] for r in seen), len(places))
    matrix = np.zeros((len(distributions), len(places)))
    for row, distribution in zip(matrix, distributions, strict=True):
        for answers, probability in distribution.items():
            row[places[tuple(answers[r - 1] for r in seen)]] += float(probability)
    return matrix


CHECKED = (
    *("no privacy", "randomized response", "randomized response, one cell", "binary sampling"),
    *("sampling", "sampling, unequal blanks", "sampling, no blank zero", "binary sampling, unequal"),
    *("refresh", "refresh, all of them", "everyone sampled", "k-ary, 3 cells", "k-ary, 1 cell"),
    *("SUE, 3 cells", "OUE, 3 cells", "THE, 3 cells", "OLH, 3 cells", "subset, 3 cells", "Hadamard, 3 cells", "L-OSUE"),
    *("warner", "toy 2", "noise, two rates", "anonymized, best", "first attempt", "cancelling", "deniable"),
    "deniable, both ways",
)
GOOD = {name: ALL[name] for name in CHECKED} | {
    "no privacy, one cell": NoPrivacy(cells=1),
    "sampling, one cell": SamplingPrivacy(cells=1, sampling=0.2),
    "noise, one rate": SamplingAndNoise(cells=3, sampling=0.4),
    "Laplace shares of few": DistributedLaplace(cells=2, epsilon=1.0, devices=24),
}
"""Mechanisms that must pass every check of the conformance kit."""

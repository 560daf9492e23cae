"""The mechanisms that all tests use, each small enough to enumerate, and how to ask their devices."""

import numpy as np

from mechanisms import local

MECHANISMS = {
    "no privacy": local.NoPrivacy(cells=3),
    "randomized response": local.RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2),
    "randomized response, one cell": local.RandomizedResponse(cells=1, first_coin=0.6, second_coin=0.9),
    "sampling": local.SamplingPrivacy(cells=3, sampling=0.45),
    "sampling, unequal blanks": local.SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05]),
    "sampling, no blank zero": local.SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0),
    "binary sampling": local.BinarySamplingPrivacy(cells=3, sampling=0.45),
    "binary sampling, unequal": local.BinarySamplingPrivacy(cells=3, sampling=0.3, blank_zero=0.6),
    "binary sampling, many cells": local.BinarySamplingPrivacy(cells=130, sampling=0.25, blank_zero=0.7),
    "randomized response, many cells": local.RandomizedResponse(cells=130, first_coin=0.5, second_coin=0.1),
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
    "k-ary": local.KRandomizedResponse,
    "SUE": local.SymmetricUnary,
    "OUE": local.OptimisedUnary,
    "THE": local.ThresholdHistogram,
    "OLH": local.LocalHashing,
    "subset": local.SubsetSelection,
    "Hadamard": local.HadamardResponse,
}
BASELINES = {
    **{f"{name}, 3 cells": kind(cells=3, epsilon=1.2) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 1 cell": kind(cells=1, epsilon=0.7) for name, kind in BY_EPSILON.items()},
    **{f"{name}, 130 cells": kind(cells=130, epsilon=2.5) for name, kind in BY_EPSILON.items()},
    "OLH, many buckets": local.LocalHashing(cells=3, epsilon=1.5, buckets=1000),
    "subset, most symbols": local.SubsetSelection(cells=5, epsilon=1.0, size=5),
    "L-OSUE": local.LongitudinalUnary(cells=3, epsilon_permanent=3.0, epsilon_first=1.5),
    "L-SUE": local.LongitudinalUnary(cells=3, epsilon_permanent=2.0, epsilon_first=1.0, permanent="symmetric"),
    "L-OSUE, 130 cells": local.LongitudinalUnary(cells=130, epsilon_permanent=3.0, epsilon_first=2.0),
    "Laplace shares": local.DistributedLaplace(cells=3, epsilon=1.0, devices=100),
    "Laplace shares, short": local.DistributedLaplace(cells=3, epsilon=1.0, devices=250),
    "Laplace, one device's": local.DistributedLaplace(cells=1, epsilon=2.0, devices=1),
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


def anonymized_local(*probabilities, cells=1, **keys):
    """Anonymized Local Privacy with π_sYes1, π_sYes2, π_sNo, π_1, π_2 and π_3."""
    return local.AnonymizedLocal(cells=cells, **dict(zip(LOCAL, probabilities, strict=True)), **keys)


DENIABLE = {"shift": 0.2, "yes_second": 0.3, "yes_third": 0.3, "no_second": 0.3, "no_third": 0.4, "onward": 0.4}
SOUND = {
    local.NoPrivacy: {},
    local.RandomizedResponse: {"first_coin": 0.8, "second_coin": 0.2},
    local.SamplingPrivacy: {"sampling": 0.4},
    local.BinarySamplingPrivacy: {"sampling": 0.4},
    local.Warner: {"truthful": 0.7},
    local.SamplingAndNoise: {"sampling": 0.4},
    local.SampledResponse: {"sampling": 0.4, "first_coin": 0.6, "second_coin": 0.3},
    local.AnonymizedLocal: LOCAL,
    local.AnonymizedFirstAttempt: {"base": 0.4, "shift_yes": 0.3, "shift_no": 0.1},
    local.AnonymizedCancelling: {"shift": 0.2},
    local.AnonymizedDeniable: DENIABLE,
    **{kind: {"epsilon": 1.0} for kind in BY_EPSILON.values()},
    local.LongitudinalUnary: {"epsilon_permanent": 2.0, "epsilon_first": 1.0},
    local.DistributedLaplace: {"epsilon": 1.0, "devices": 10},
}
"""Parameters that each class accepts."""
QUESTIONS = {
    "warner": local.Warner(cells=3, truthful=0.7),
    "warner, liars, many cells": local.Warner(cells=130, truthful=0.2),
    "noise, two rates": local.SamplingAndNoise(cells=3, sampling=0.5, sampling_no=0.1),
    "value": local.SamplingAndNoise(cells=2, sampling=0.5, sampling_no=0.3, says="value"),
    "toy 2": local.SampledResponse(cells=3, sampling=0.6, first_coin=0.7, second_coin=0.4),
    "toy 2, two rates": local.SampledResponse(
        cells=1, sampling=0.6, sampling_no=0.3, first_coin=0.7, second_coin=0.4, estimator="best"
    ),
    "anonymized, yes": local.AnonymizedLocal(cells=3, **LOCAL, estimator="yes"),
    "anonymized, no": local.AnonymizedLocal(cells=3, **LOCAL, estimator="no"),
    "anonymized, silent": local.AnonymizedLocal(cells=1, **LOCAL, estimator="silent"),
    "anonymized, best": local.AnonymizedLocal(cells=3, **LOCAL),
    "anonymized, best, many cells": local.AnonymizedLocal(cells=130, **LOCAL, yes_share=0.05),
    "first attempt": local.AnonymizedFirstAttempt(cells=3, base=0.4, shift_yes=0.3, shift_no=0.1),
    "cancelling": local.AnonymizedCancelling(cells=3, shift=0.3),
    "cancelling, one cell": local.AnonymizedCancelling(cells=1, shift=0.45, stay=[0.05, 0.5, 0.0]),
    "deniable": local.AnonymizedDeniable(cells=2, **DENIABLE),
    "deniable, both ways": local.AnonymizedDeniable(cells=1, **{**DENIABLE, "shift": 0.7}, onward_yes=0.1),
}


REFRESHED = {
    "refresh": local.SamplingPrivacy(cells=3, sampling=0.4, refresh=0.3),
    "refresh, unequal blanks": local.SamplingPrivacy(cells=3, sampling=0.4, blank=[0.1, 0.2, 0.05], refresh=0.5),
    "refresh, all of them": local.SamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.1, refresh=1.0),
    "everyone sampled": local.SamplingPrivacy(cells=2, sampling=1.0),
}
ALL = {
    **MECHANISMS,
    **REFRESHED,
    **BASELINES,
    **QUESTIONS,
    "OLH, two buckets": local.LocalHashing(cells=4, epsilon=2, buckets=2),
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
    "no privacy, one cell": local.NoPrivacy(cells=1),
    "sampling, one cell": local.SamplingPrivacy(cells=1, sampling=0.2),
    "noise, one rate": local.SamplingAndNoise(cells=3, sampling=0.4),
    "k-ary, rare reports": local.KRandomizedResponse(cells=9, epsilon=9.0),
    "Laplace shares of few": local.DistributedLaplace(cells=2, epsilon=1.0, devices=24),
}
"""Mechanisms that must pass every check of the conformance kit."""

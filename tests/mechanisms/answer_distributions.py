"""Distributions of all answers of one device to one query, from the mechanisms' definitions, for a few cells."""

from functools import reduce
from itertools import combinations, product

import numpy as np
from ldp_baseline_cases import unary_matrix
from scipy.linalg import hadamard

from mechanisms.local import (
    BinarySamplingPrivacy,
    HadamardResponse,
    KRandomizedResponse,
    LongitudinalUnary,
    RandomizedResponse,
    SamplingPrivacy,
    SubsetSelection,
)
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.unary_encoding import UnaryEncoding


def linked_distribution(mechanism):  # noqa: PLR0911 - a return a kind
    """(cells + 1, outputs) probabilities of all of a device's answers jointly, row 0 for a device outside."""
    cells = mechanism.cells
    if isinstance(mechanism, SamplingPrivacy):
        return _sampling(mechanism)
    if isinstance(mechanism, BinarySamplingPrivacy):
        zero, one, sampled = mechanism.faces
        return _cell_by_cell({(0, 0): zero, (1, 1): one, (0, 1): sampled}, {(0, 0): zero + sampled, (1, 1): one}, cells)
    if isinstance(mechanism, ProtocolMechanism):
        binary_query = mechanism.binary_query
        distributions = [dict(enumerate(distribution)) for distribution in (binary_query.yes, binary_query.no)]
        return _cell_by_cell(*distributions, cells)
    if isinstance(mechanism, KRandomizedResponse):
        distribution = np.full((cells + 1, cells + 1), 1.0)
        np.fill_diagonal(distribution, np.exp(mechanism.epsilon))
        return distribution / distribution.sum(axis=1, keepdims=True)
    if isinstance(mechanism, SubsetSelection):
        subsets = list(combinations(range(cells + 1), mechanism.size))
        distribution = np.array(
            [[np.exp(mechanism.epsilon) if t in s else 1.0 for s in subsets] for t in range(cells + 1)]
        )
        return distribution / distribution.sum(axis=1, keepdims=True)
    if isinstance(mechanism, HadamardResponse):
        signs = hadamard(mechanism.outputs)[1 : cells + 2]
        distribution = np.where(signs > 0, np.exp(mechanism.epsilon), 1.0)
        return distribution / distribution.sum(axis=1, keepdims=True)
    if isinstance(mechanism, LongitudinalUnary):
        kept = [mechanism.true_kept, mechanism.false_kept]
        p, q = (k * (1 - mechanism.flip) + (1 - k) * mechanism.flip for k in kept)
        return unary_matrix(p, q, cells)
    assert isinstance(mechanism, UnaryEncoding | RandomizedResponse), type(mechanism)
    return unary_matrix(mechanism.true_yes, mechanism.false_yes, cells)


def _sampling(mechanism):
    values = range(mechanism.cells + 1)
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    rows = []
    for truth in values:
        distribution = {}
        for first, second in product(values, values):
            again = refresh * blanks[second] / blanks.sum() if sampling < 1 else 0.0
            distribution[first, second] = blanks[first] * (again + (1 - refresh) * (first == second))
        distribution[0, truth] += sampling
        rows.append(list(distribution.values()))
    return np.array(rows)


def round_distribution(mechanism, round_):
    """(cells + 1, outputs) probabilities of one round's answer."""
    cells = mechanism.cells
    if mechanism.rounds == 1:
        return linked_distribution(mechanism)
    if isinstance(mechanism, SamplingPrivacy):
        distribution = linked_distribution(mechanism).reshape(cells + 1, cells + 1, cells + 1)
        return distribution.sum(axis=2 if round_ == 1 else 1)
    if isinstance(mechanism, BinarySamplingPrivacy):
        zero, one, sampled = mechanism.faces
        no = {0: zero + sampled, 1: one}
        return _cell_by_cell(no if round_ == 1 else {0: zero, 1: one + sampled}, no, cells)
    binary_query = mechanism.binary_query
    distributions = []
    for distribution in (binary_query.yes, binary_query.no):
        masses = {}
        for answers, mass in zip(binary_query.answers, distribution, strict=True):
            masses[answers[round_ - 1]] = masses.get(answers[round_ - 1], 0.0) + mass
        distributions.append(masses)
    return _cell_by_cell(*distributions, cells)


def _cell_by_cell(yes, no, cells):
    """One answer per cell, independently: from the distribution for the device's cell and for other cells."""
    keys = sorted(set(yes) | set(no))
    yes, no = (np.array([distribution.get(key, 0.0) for key in keys]) for distribution in (yes, no))
    return np.array(
        [reduce(np.kron, [yes if cell == truth else no for cell in range(1, cells + 1)]) for truth in range(cells + 1)]
    )

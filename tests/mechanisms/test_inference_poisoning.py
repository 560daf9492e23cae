"""Forged reports against every valid report, and against sums of honest and forged reports."""

import itertools
import math

import numpy as np
import pytest
from mechanism_cases import ALL, SMALL, answers_of

from mechanisms import local
from mechanisms.inference.poisoning import contribution, crafted_encodings, forged_reports
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.parameter import ParameterError

FORGED = {name: m for name, m in ALL.items() if not isinstance(m, local.DistributedLaplace)}


def forged_contribution(mechanism, cell):
    """The contribution of one device with the best well-formed reports."""
    reports = forged_reports(mechanism, cell)
    return contribution(mechanism, np.stack([mechanism.encode(report)[0] for report in reports]), cell)


def every_report(mechanism):
    """Every well-formed report of a small mechanism, as one batch."""
    cells = mechanism.cells
    if len(mechanism.tally_shape) == 2:
        outputs = mechanism.tally_shape[1]
        rows = np.array(list(itertools.product(range(outputs), repeat=cells)))
        binary_query = hasattr(mechanism, "binary_query")
        return local.AnswerReports.from_dense(rows, outputs) if binary_query else local.BitReports.from_dense(rows)
    if isinstance(mechanism, local.SubsetSelection):
        rows = np.array(list(itertools.product((0, 1), repeat=cells + 1)))
        return local.BitReports.from_dense(rows[rows.sum(axis=1) == mechanism.size])
    if isinstance(mechanism, local.LocalHashing):
        (reports,) = answers_of(mechanism, np.zeros(3_000, dtype=np.int32), (1,), rng=np.random.default_rng(1))[0]
        return reports
    return np.arange(mechanism.tally_shape[0], dtype=np.int32)


@pytest.mark.parametrize("name", sorted(set(SMALL) & set(FORGED)))
def test_no_valid_report_moves_a_cell_further(name):
    mechanism = SMALL[name]
    cell = mechanism.cells
    encoded = np.unique(mechanism.encode(every_report(mechanism)), axis=0)
    zero = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    base = contribution(mechanism, zero, cell)
    # The estimate is affine, so each round's maximum is independent of the other.
    total = base
    for r in range(mechanism.rounds):
        moves = []
        for vector in encoded:
            one = zero.copy()
            one[r] = vector
            moves.append(contribution(mechanism, one, cell) - base)
        total += max(moves)
    assert forged_contribution(mechanism, cell) == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", sorted(FORGED))
def test_forged_reports_move_sums_as_predicted(name):
    """The estimate from honest and forged reports together, minus that from honest ones alone."""
    mechanism, rng = FORGED[name], np.random.default_rng(2)
    cell, forgers = mechanism.cells, 7
    truth = rng.integers(mechanism.cells + 1, size=300, dtype=np.int32)
    rounds = range(1, mechanism.rounds + 1)
    (reports,) = answers_of(mechanism, truth, rounds, rng=rng)
    forged = forged_reports(mechanism, cell, forgers)
    assert all(len(report) == forgers for report in forged)
    asked = (len(truth),) * mechanism.rounds

    def estimate(counts):
        return float(mechanism.estimate(np.stack(counts), counted=asked, asked=asked).count[cell - 1])

    honest = estimate([mechanism.tally(report) for report in reports])
    poisoned = estimate(
        [mechanism.tally(r[forgers:]) + mechanism.tally(f) for r, f in zip(reports, forged, strict=True)]
    )
    would = sum(
        contribution(mechanism, np.stack([mechanism.encode(r[i : i + 1])[0] for r in reports]), cell)
        for i in range(forgers)
    )
    made = forgers * forged_contribution(mechanism, cell)
    assert poisoned - honest == pytest.approx(made - would, rel=1e-9, abs=1e-7)


def test_forged_contributions_in_closed_form():
    assert forged_contribution(local.SamplingPrivacy(cells=5, sampling=0.45), 2) == pytest.approx(1 / 0.45)
    assert forged_contribution(local.BinarySamplingPrivacy(cells=5, sampling=0.3), 2) == pytest.approx(1 / 0.3)
    for mechanism in (
        local.KRandomizedResponse(cells=5, epsilon=1.0),
        local.OptimisedUnary(cells=5, epsilon=1.0),
        local.LocalHashing(cells=5, epsilon=1.0),
        local.SubsetSelection(cells=5, epsilon=1.0),
        local.HadamardResponse(cells=5, epsilon=1.0),
    ):
        p, q = mechanism.true_yes, mechanism.false_yes
        assert forged_contribution(mechanism, 4) == pytest.approx((1 - q) / (p - q))


def test_crafted_encodings_move_a_cell_with_their_magnitude():
    for mechanism in SMALL.values():
        bounded = [contribution(mechanism, crafted_encodings(mechanism, 1, m), 1) for m in (1, 10, 1_000)]
        assert bounded == sorted(bounded)
        if not isinstance(mechanism, local.DistributedLaplace):
            assert bounded[0] >= forged_contribution(mechanism, 1) - 1e-9
        encodings = crafted_encodings(mechanism, 1, 10)
        assert encodings.shape == (mechanism.rounds, *mechanism.tally_shape)
        assert np.abs(encodings).max() == 10


def test_no_crafted_encoding_moves_a_cell_further():
    """Every vector of entries in −1…1, of mechanisms small enough."""
    for mechanism in (local.SamplingPrivacy(cells=1, sampling=0.4), local.HadamardResponse(cells=1, epsilon=1.0)):
        shape = (mechanism.rounds, *mechanism.tally_shape)
        best = max(
            contribution(mechanism, np.array(entries).reshape(shape), 1)
            for entries in itertools.product((-1, 0, 1), repeat=math.prod(shape))
        )
        found = contribution(mechanism, crafted_encodings(mechanism, 1, 1), 1)
        assert found == pytest.approx(best)


def test_non_forgeable_mechanisms_are_refused():
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.4)
    with pytest.raises(NoLikelihoodError, match="DistributedLaplace"):
        forged_reports(local.DistributedLaplace(cells=2, epsilon=1.0, devices=5), 1)
    unknown = type("Unknown", (), {"cells": 3, "rounds": 1})()
    with pytest.raises(NoLikelihoodError, match="Unknown"):
        forged_reports(unknown, 1)
    with pytest.raises(local.NotEstimableError):
        forged_reports(local.SamplingAndNoise(cells=2, sampling=0.5), 1)
    for cell in (0, 4):
        with pytest.raises(ParameterError, match="cell"):
            forged_reports(mechanism, cell)
        with pytest.raises(ParameterError, match="cell"):
            crafted_encodings(mechanism, cell, 1)
    with pytest.raises(ParameterError, match="devices"):
        forged_reports(mechanism, 1, -1)
    with pytest.raises(ParameterError, match="magnitude"):
        crafted_encodings(mechanism, 1, 0)

"""Combining queries in which only devices received in every round are counted."""

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.local import SamplingPrivacy
from simulator.aggregation.rounds import RoundAccount, estimate_paired, paired_std_error, paired_variance
from simulator.experiment.refine import Refining, refined_answers
from simulator.sensing.query import Answer, Occupancy, Query
from simulator.traffic.engine import Totals


def test_paired_queries_are_weighted_by_the_paired_variance():
    """If only devices received in every round count, losses are not independent: the variance is the paired one."""
    mechanism, truth = SamplingPrivacy(cells=3, sampling=0.45), np.array([500, 40, 10, 0])
    rng = np.random.default_rng(6)
    queries = []
    for number, paired in enumerate((550, 200, 400), start=1):
        received = rng.multivariate_hypergeometric(truth, paired)
        estimate = estimate_paired(mechanism, mechanism.sample_counts(received, rng=rng), paired=paired, asked=550)
        rounds = [RoundAccount(asked=550, answered=550, counted=paired, unpaired=550 - paired) for _ in range(2)]
        answer = Answer("sampling", estimate, paired_std_error(mechanism, truth, paired=paired), rounds, paired=True)
        occupancy = Occupancy(truth, truth, int(truth.sum()))
        queries.append(Query("all", number, 0.0, 0.0, truth, occupancy, Totals(0, 0, 0, 0, 0, 0), [answer]))
    refining = Refining("sampling", "combined", "combine", {"window": 3})
    made = refined_answers(refining, {"all": mechanism}, queries)[2]
    pooled = np.clip(np.mean([query.answers[0].estimate.count for query in queries], axis=0), 0, 550)
    variances = np.square([paired_variance(mechanism, paired=n, asked=550).std_error(pooled) for n in (550, 200, 400)])
    best = 1 / np.sqrt((1 / variances[:, pooled > 0]).sum(axis=0))
    assert made.estimate.std_error[pooled > 0] == pytest.approx(best, rel=1e-6)
    assert made.drift == pytest.approx(0, abs=1e-9)
    alone = [replace(query, answers=[replace(query.answers[0], paired=False)]) for query in queries]
    unpaired = refined_answers(refining, {"all": mechanism}, alone)[2]
    assert (unpaired.estimate.std_error[pooled > 0] > 1.2 * best).all()

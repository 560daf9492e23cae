"""The mechanisms and priors of the inference tests, each small enough to enumerate."""

import numpy as np
from binary_query_cases import QUESTIONS
from ldp_baseline_cases import BASELINES
from mechanism_cases import MECHANISMS

from mechanisms.inference.likelihood import posterior, repeated_log_likelihood
from mechanisms.local import LocalHashing, SamplingPrivacy

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


def simulated_guess_success(mechanism, rounds, prior, *, trials, rng, queries=1):
    """Success of the best guess and its standard error, from simulated devices that answer from one cell each.

    The mean of the posterior probabilities of the best guesses is unbiased, and varies less than the share of hits.
    """
    truth = rng.choice(len(prior), size=trials, p=prior / prior.sum()).astype(np.int32)
    asked = answers_of(mechanism, truth, rounds, rng=rng, queries=queries)
    sure = posterior(repeated_log_likelihood(mechanism, asked, rounds), prior).max(axis=1)
    return float(sure.mean()), float(sure.std(ddof=1)) / np.sqrt(trials)

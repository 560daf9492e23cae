"""The mechanisms that all contract tests use, each small enough to enumerate."""

import numpy as np

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, RandomizedResponse, SamplingPrivacy

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

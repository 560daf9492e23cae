"""Attack that guesses the routes of vehicles: their cells in all queries together, from how vehicles move.

A hidden Markov model has the moves of the prior as transitions, and the law of the mechanism's reports as emissions.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from mechanisms.inference.likelihood import batches, best_guess, log_likelihood, report_law
from mechanisms.inference.markov import Chain
from mechanisms.local import LongitudinalUnary
from simulator.arrays import IntArray
from simulator.attacks.guesses import Guesses, Prior
from simulator.attacks.observation import Linked, Observation, follow

STRAYS = (1e-15, 0.01, 0.03, 0.1, 0.3)
"""How often devices may stray from a chain that was learned elsewhere. The value is used that explains reports best."""


def chain_of(prior: Prior, queries: Sequence[int]) -> Chain | None:
    """Return the Markov chain by which vehicles move from query to query; None if nothing is known about movement."""
    if prior.moves is None:
        return None
    return Chain(prior.of(queries[0]), [prior.moves_between(*pair) for pair in pairwise(queries)])


def usual_path(chain: Chain, queries: Sequence[int]) -> list[Guesses]:
    """Return the most probable path of a device about which nothing is observed, one guess for each query."""
    path: Any = chain.likeliest(np.zeros((chain.steps, 1, len(chain.start))))
    theory = float(np.exp(chain.log_probability(path)[0]))
    steps = zip(queries, path.astype(np.int32), strict=True)
    return [Guesses(query, "none", None, cell, theory) for query, cell in steps]


def guess_routes(
    observation: Observation, prior: Prior, chain: Chain, *, rng: np.random.Generator
) -> tuple[list[Guesses], list[Guesses]]:
    """Return two guesses about each device that is followed, for every query: of its cells, and of its path.

    The theory is the expected success for devices that move by the chain: in the query or, of paths, in all queries. It
    is known if all reports are read and have few values, but not of memoised bits: these depend on earlier cells too.

    Parameters
    ----------
    observation
        What the coalition observed.
    prior, chain
        Its prior, and the chain of the prior.
    rng
        Breaks ties under a uniform prior.

    Returns
    -------
    cells, paths : list of Guesses
        The most probable cell in each query, and the most probable path; none if no device is followed.

    Raises
    ------
    NoLikelihoodError
        If no likelihood is known for the mechanism's reports.
    """
    mechanism, places, ties = observation.mechanism, len(chain.start), prior.tie_rng(rng)
    groups = [(step, group) for step, query in enumerate(observation.queries) for group in follow(observation, [query])]
    if not groups:
        return [], []
    devices = np.unique(np.concatenate([_handles(group) for _, group in groups]))
    cells, paths = np.empty((2, chain.steps, len(devices)), dtype=np.int32)
    sure = np.empty(cells.shape)
    chains = [replace(chain, strays=often) for often in STRAYS] if prior.learned else [chain]
    for rows in batches(len(devices), chain.steps * places):
        logs = np.zeros((*cells[:, rows].shape, places))
        for step, group in groups:
            read = np.flatnonzero(np.isin(_handles(group), devices[rows]))
            place = np.searchsorted(devices[rows], _handles(group)[read])
            reports = list(group.among(read).reports.values())
            logs[step, place] = log_likelihood(mechanism, reports, [round_ for _, round_ in group.rounds])
        # A learned prior errs: without straying, many linked reports would make a wrong guess certain.
        likeliest = max(chains, key=lambda one: one.filtered(logs)[1].sum()) if len(chains) > 1 else chain
        after, _ = likeliest.smoothed(logs)
        cells[:, rows] = best_guess(after.reshape(-1, places), rng=ties).reshape(after.shape[:2])
        paths[:, rows], sure[:, rows] = likeliest.likeliest(logs), after.max(axis=2)
    outcomes, success = report_law(mechanism).outcomes(), None
    complete = sum(len(group) for _, group in groups if len(group.rounds) == mechanism.rounds) == cells.size
    if outcomes and complete and not prior.learned and not isinstance(mechanism, LongitudinalUnary):
        success = chain.success([outcomes.masses] * chain.steps)
    steps, path = (np.full(chain.steps, np.nan), np.nan) if success is None else (success[0].steps, success[1].path)
    kind = groups[0][1].handle_kind
    handles = None if kind == "none" else devices
    by_cell, by_path = [], []
    for step, query in enumerate(observation.queries):
        by_cell.append(Guesses(query, kind, handles, cells[step], prior.trusted(steps[step], query), sure[step]))
        by_path.append(Guesses(query, kind, handles, paths[step], prior.trusted(path, query)))
    return by_cell, by_path


def _handles(group: Linked) -> IntArray:
    """Return the handles of a group, (n,); 0 of the only vehicle that is not corrupted, which needs none."""
    return np.zeros(1, dtype=np.int64) if group.handles is None else group.handles

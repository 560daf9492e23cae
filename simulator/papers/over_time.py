"""Attacks and losses over time, as published and computed: reports of a Markov chain."""

import math

import numpy as np
from scipy.sparse import csr_array

from mechanisms.compiled import Floats
from mechanisms.privacy.temporal_loss import losses
from simulator.pages.charts import Series
from simulator.pages.charts.styles import PUBLISHED
from simulator.papers.published_results import Reproduction

LENGTH, EPSILON, CHAINS = 30, 0.5, 100
QUERY_EPSILON, ROUNDED = 0.1, 0.5e-4
CELLS, CELL_QUERIES = 5, 8


def middle_success(change: float, keep: float, *, before: int, after: int) -> float:
    """Return how often the best guess of one state of a binary chain is right, exactly.

    Parameters
    ----------
    change
        Probability that the next state is the other one; the first state is either alike.
    keep
        Probability that a report is the state, and not the other one.
    before, after
        Numbers of steps before the state that is guessed, and after it; each step has a report, as the state itself.

    Returns
    -------
    success
        Σ over all sequences of reports of max over the states of P(state, reports). Given the state, the reports before
        it and after it are independent. So with the sequences after it sorted by their likelihood ratio, each sequence
        before it has one place from which on the other state is guessed.
    """
    own = np.array([[keep, 1.0 - keep], [1.0 - keep, keep]])
    moves = np.array([[1.0 - change, change], [change, 1.0 - change]])

    def likelihoods(steps: int) -> Floats:
        """Return P(reports of so many steps next to the state | the state), (2, 2^steps)."""
        found = np.ones((2, 1))
        for _ in range(steps):
            found = np.hstack([moves @ (own[:, [report]] * found) for report in (0, 1)])
        return found

    earlier, later = likelihoods(before), likelihoods(after)
    given = np.hstack([own[:, [report]] * earlier for report in (0, 1)]) / 2.0
    ratios = later[0] / later[1]
    order = np.argsort(ratios)
    sums = np.hstack([np.zeros((2, 1)), np.cumsum(later[:, order], axis=1)])
    turns = np.searchsorted(ratios[order], given[1] / given[0])
    return float(given[0] @ (sums[0, -1] - sums[0, turns]) + given[1] @ sums[1, turns])


def reports_of_a_chain(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute the success of the optimal attack on the middle state of a chain, from all reports and from its own."""
    keep, middle = 1.0 / (1.0 + math.exp(-EPSILON)), LENGTH // 2
    changes, simulated = results.entry.numbers["changes"], results.entry.numbers["simulated"]
    exact = [middle_success(change, keep, before=middle, after=LENGTH - 1 - middle) for change in changes]
    for change, drawn, success in zip(changes, simulated, exact, strict=True):
        half = 1.96 * math.sqrt(success * (1.0 - success) / CHAINS)
        results.add_row("chain", success, abs(drawn - success) <= half, published=drawn, change=change, half=half)
    results.add_row("alone", keep)
    useless = next(change for change, success in zip(changes, exact, strict=True) if success < keep + 1e-9)
    results.add_panel(
        "success",
        [
            Series("all reports, exact", changes, exact, "linked"),
            Series("its own report, exact", changes, [keep] * len(changes)),
            Series("all reports, their simulation", changes, simulated, "points", PUBLISHED),
        ],
    )
    results.add_findings("source", "useless", useless=useless)


def loss_of_one_place(results: Reproduction, seed: int) -> None:  # noqa: ARG001 - nothing is drawn
    """Compute what reports up to a query reveal about the place at this query, for two places and for five cells."""
    numbers = results.entry.numbers
    queries = range(1, len(numbers["losses"]) + 1)
    found = losses(
        [csr_array(np.reshape(numbers["moves"], (2, 2)))] * (len(queries) - 1), [QUERY_EPSILON] * len(queries)
    )
    for query, loss, stated in zip(queries, found, numbers["losses"], strict=True):
        results.add_row("chain", loss, abs(loss - stated) <= ROUNDED, published=stated, query=query)
    for stays in numbers["stays"]:
        moves = np.full((CELLS, CELLS), (1.0 - stays) / (CELLS - 1))
        np.fill_diagonal(moves, stays)
        place = losses([csr_array(moves)] * (CELL_QUERIES - 1), [1.0] * CELL_QUERIES)[-1]
        results.add_row("cells", place, stays=stays)
        if stays == numbers["stays"][0]:
            results.add_findings("two", stays=stays, place=place)
    whole = [QUERY_EPSILON * query for query in queries]
    results.add_panel("loss", [Series("current place", queries, found, "linked"), Series("route", queries, whole)])
    results.add_findings("source")

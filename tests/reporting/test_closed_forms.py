"""`closed_forms.js` against Python: errors and claims at points over the whole space of parameters, in a real browser."""

import math
import warnings

import numpy as np
import pytest

from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.parameter import ParameterError, ParameterWarning
from mechanisms.privacy import LinkedReports, Report
from simulator.experiment.assembly.mechanisms import MECHANISMS
from simulator.pages.explorer import CLOSED, explorer_page

POINTS = 10_000
RELATIVE = 1e-9
BATCHED = """(points) => points.map(({kind, parameters, cells, truth, share, loss, messages, queries, at}) => {
  const made = ClosedForms.MECHANISMS[kind](parameters, cells);
  const claims = [...Array(made.rounds).keys()].map((round) => made.report(round + 1, queries, at));
  const plain = (claim) => ({...claim, epsilon: Number.isFinite(claim.epsilon) ? claim.epsilon : null});
  return {errors: ClosedForms.errors(made, truth, share, loss, messages).map((e) => Number.isFinite(e) ? e : null),
    claims: [...claims, made.linked(queries, at)].map(plain)};
})"""


def extreme(rng, low, high):
    """Draw a number on a logarithmic scale, one in eight times one of the ends."""
    return float(
        rng.choice([low, high]) if rng.random() < 0.125 else math.exp(rng.uniform(math.log(low), math.log(high)))
    )


def chance(rng, *, above_zero=False):
    """Draw a probability, one in eight times 0 (unless it must be above) or 1, as often one near them."""
    choice = rng.integers(8)
    if choice == 0:
        return float(rng.choice([1e-6 if above_zero else 0.0, 1.0]))
    return float(
        rng.random() ** 6 if choice == 1 else 1 - rng.random() ** 6 * 0.9 if choice == 2 else rng.uniform(0.01, 0.99)
    )


def parameters_of(kind, cells, rng):
    """Draw valid parameters of a mechanism."""
    some = rng.random() < 0.5
    match kind:
        case "no_privacy":
            return {}
        case "sampling_privacy":
            sampling = chance(rng, above_zero=True)
            given = {"sampling": sampling, "refresh": chance(rng) if some else 0.0}
            return given | ({"blank_zero": chance(rng) * (1.0 - sampling)} if rng.random() < 0.5 else {})
        case "randomized_response":
            return {"first_coin": chance(rng, above_zero=True), "second_coin": chance(rng)}
    epsilon = extreme(rng, 1e-6, 50.0)
    others = {
        "the": {"threshold": float(rng.random())},
        "olh": {"buckets": round(extreme(rng, 2, 2**31 - 1))},
        "subset_selection": {"size": round(extreme(rng, 1, cells))},
    }
    return {"epsilon": epsilon} | (others.get(kind, {}) if some else {})


def point(kind, rng):
    """Return a point, and what Python computes there; None if Python refuses the parameters."""
    cells = round(extreme(rng, 1, 5000))
    given = parameters_of(kind, cells, rng)
    truth = [round(extreme(rng, 1, 10**7)) - 1 for _ in range(3)]
    share, loss = (1.0, 0.0) if rng.random() < 0.4 else (1.0 - chance(rng) * 0.99, chance(rng) * 0.9)
    messages, queries, at = int(rng.integers(1, 5)), round(extreme(rng, 1, 300)), extreme(rng, 1e-3, 20.0)
    try:
        mechanism = MECHANISMS[kind](
            cells=cells, **({"form": "multi", "refresh": 0.0} if "sampling" in given else {}) | given
        )
    except ParameterError:
        return None
    asked = [math.floor(count * share + 0.5) for count in truth]
    devices, rounds = sum(asked), mechanism.rounds
    if devices:
        counted = min(devices, max(1, math.floor(devices * (1 - loss) ** messages + 0.5)))
        received = ResponseCounts((devices,) * rounds, (counted,) * rounds, mechanism.truth_round)
        one_cell = mechanism.estimator(1) if kind == "sampling_privacy" else mechanism
        variance = one_cell.variance(received).at(np.array(asked))
        errors = np.sqrt(variance + np.array(truth) * share * (1 - share)) / share
    else:
        errors = np.full(3, np.inf)
    views = [*(Report(round_, queries) for round_ in range(1, rounds + 1)), LinkedReports(queries)]
    own = {"kind": kind, "parameters": given, "cells": cells, "truth": truth, "share": share, "loss": loss}
    return own | {"messages": messages, "queries": queries, "at": at}, errors, [mechanism.claim(view) for view in views]


@pytest.fixture(scope="module")
def answers(chromium, tmp_path_factory):
    """The points, what Python computes, and what the page computes."""
    path = tmp_path_factory.mktemp("site") / "explorer.html"
    path.write_text(explorer_page("page"), encoding="utf-8")
    rng, drawn = np.random.default_rng(2026), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParameterWarning)
        while len(drawn) < POINTS:
            if (made := point(CLOSED[len(drawn) % len(CLOSED)], rng)) is not None:
                drawn.append(made)
    page = chromium.new_page()
    page.goto(path.as_uri())
    found = page.evaluate(BATCHED, [own for own, *_ in drawn])
    page.close()
    return list(zip(drawn, found, strict=True))


def close(mine, theirs, scale=0.0):
    return math.isclose(math.inf if mine is None else mine, theirs, rel_tol=RELATIVE, abs_tol=scale)


def test_errors_are_those_of_the_mechanisms(answers):
    wrong = [
        (own, found["errors"], errors.tolist())
        for (own, errors, _), found in answers
        if not all(map(close, found["errors"], errors))
    ]
    assert wrong == [], len(wrong)


def test_claims_are_those_of_the_mechanisms(answers):
    wrong, known = [], 0
    for (own, _, claims), found in answers:
        for mine, claim in zip(found["claims"], claims, strict=True):
            same = (mine["kind"], mine["delta_kind"]) == (claim.kind, claim.delta_kind) and close(
                mine["epsilon"], claim.epsilon
            )
            if mine["delta"] is not None:
                known += 1
                same = same and close(mine["delta"], claim.delta(own["at"]), 1e-300)
            if not same:
                wrong.append((own, mine, claim.kind, claim.delta_kind, claim.epsilon, claim.delta(own["at"])))
    assert wrong == [], len(wrong)
    assert known > POINTS

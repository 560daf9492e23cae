"""`closed_forms.js` against Python at points over the whole space of parameters, in a real browser."""

import math
import warnings

import numpy as np

from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.parameter import ParameterError, ParameterWarning
from mechanisms.privacy import LinkedReports, Report
from simulator.experiment.assembly.mechanisms import MECHANISMS
from simulator.pages.explorer import explorer_page

POINTS = 10_000
COMPUTED = """(points) => points.map(({kind, parameters, cells, truth, share, loss, messages, queries, at}) => {
  const made = ClosedForms.MECHANISMS[kind](parameters, cells);
  const claims = [...Array(made.rounds).keys()].map((round) => made.report(round + 1, queries, at));
  const finite = (number) => Number.isFinite(number) ? number : null;
  return {errors: ClosedForms.errors(made, truth, share, loss, messages).map(finite),
    claims: [...claims, made.linked(queries, at)].map((claim) => ({...claim, epsilon: finite(claim.epsilon)}))};
})"""


def logarithmic(rng, low, high):
    """Draw a number on a logarithmic scale, one in eight times one of the ends."""
    return float(rng.choice([low, high]) if rng.random() < 0.125 else low * (high / low) ** rng.random())


def chance(rng, *, least=0.0):
    """Draw a probability: one in eight times one of the ends, as often near each of them."""
    near = rng.random() ** 6
    return max(least, float(rng.choice([rng.choice([0.0, 1.0]), near, 1.0 - near, *rng.uniform(0.01, 0.99, 5)])))


def parameters_of(kind, cells, rng):
    """Draw parameters of a mechanism; half of the times those that have a default are left out.

    Below ε = 1e-5, or for subsets of nearly all cells, p − q has fewer than nine digits in Python too.
    """
    some, epsilon = rng.random() < 0.5, {"epsilon": logarithmic(rng, 1e-5, 50.0)}
    sampling = chance(rng, least=1e-6)
    blank = {"blank_zero": chance(rng) * (1.0 - sampling)} if rng.random() < 0.5 else {}
    drawn = {
        "no_privacy": {},
        "sampling_privacy": {"sampling": sampling, "refresh": chance(rng) if some else 0.0, **blank},
        "randomized_response": {"first_coin": chance(rng, least=1e-6), "second_coin": chance(rng)},
        "the": epsilon | ({"threshold": float(rng.random())} if some else {}),
        "olh": epsilon | ({"buckets": round(logarithmic(rng, 2, 2**31 - 1))} if some else {}),
        "subset_selection": epsilon | ({"size": math.ceil(logarithmic(rng, 1, cells) / 2)} if some else {}),
    }
    return drawn.get(kind, epsilon)


def point(kind, rng):
    """Return a point, and the errors and claims that Python computes there; None if it refuses the parameters."""
    cells, truth = round(logarithmic(rng, 1, 5000)), [round(logarithmic(rng, 1, 10**7)) - 1 for _ in range(3)]
    share, loss = (1.0, 0.0) if rng.random() < 0.4 else (1.0 - chance(rng) * 0.99, chance(rng) * 0.9)
    own = {"kind": kind, "parameters": parameters_of(kind, cells, rng), "cells": cells, "truth": truth, "share": share}
    own |= {"loss": loss, "messages": int(rng.integers(1, 5)), "queries": round(logarithmic(rng, 1, 300))}
    try:
        form = {"form": "multi"} if kind == "sampling_privacy" else {}
        mechanism = MECHANISMS[kind](cells=cells, **form, **own["parameters"])
    except ParameterError:
        return None
    asked, errors = np.floor(np.array(truth) * share + 0.5), np.full(3, np.inf)
    if devices := int(asked.sum()):
        counted = min(devices, max(1, math.floor(devices * (1 - loss) ** own["messages"] + 0.5)))
        received = ResponseCounts(*([[each] * mechanism.rounds for each in (devices, counted)]), mechanism.truth_round)
        variance = (mechanism.estimator(1) if form else mechanism).variance(received).at(asked)
        errors = np.sqrt(variance + np.array(truth) * share * (1 - share)) / share
    views = [
        *(Report(number, own["queries"]) for number in range(1, mechanism.rounds + 1)),
        LinkedReports(own["queries"]),
    ]
    return own | {"at": logarithmic(rng, 1e-3, 20.0)}, errors, [mechanism.claim(view) for view in views]


def close(mine, theirs, least):
    return math.isclose(math.inf if mine is None else mine, theirs, rel_tol=1e-9, abs_tol=least)


def test_the_page_computes_what_python_computes(chromium, tmp_path):
    (tmp_path / "explorer.html").write_text(explorer_page("page"), encoding="utf-8")
    page = chromium.new_page()
    page.goto((tmp_path / "explorer.html").as_uri())
    kinds, rng, drawn = page.evaluate("Object.keys(ClosedForms.MECHANISMS)"), np.random.default_rng(2026), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParameterWarning)
        while len(drawn) < POINTS:
            made = point(kinds[len(drawn) % len(kinds)], rng)
            drawn += [] if made is None else [made]
    wrong, known = [], 0
    for (own, errors, claims), found in zip(drawn, page.evaluate(COMPUTED, [each[0] for each in drawn]), strict=True):
        # An error below a ten-thousandth of a vehicle is of rounding alone, where p is nearly 1 and q nearly 0.
        same = [close(*pair, 1e-4) for pair in zip(found["errors"], errors, strict=True)]
        for mine, claim in zip(found["claims"], claims, strict=True):
            same += [(mine["kind"], mine["delta_kind"]) == (claim.kind, claim.delta_kind)]
            same += [close(mine["epsilon"], claim.epsilon, 0.0)]
            known += mine["delta"] is not None
            same += [mine["delta"] is None or close(mine["delta"], claim.delta(own["at"]), 1e-300)]
        wrong += [] if all(same) else [(own, same, found, errors, claims)]
    assert not wrong, (len(wrong), wrong[0])
    assert known > POINTS
    page.close()

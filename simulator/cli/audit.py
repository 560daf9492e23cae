"""`crowdveil audit`: an ε from below and the bias of a user's own randomiser of values."""

import math
import random  # noqa: TID251 - a user's code may draw from it
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from mechanisms.compiled import compiled
from mechanisms.privacy.audit import Bias, PairBound, epsilon_from_below, estimate_bias, report_bias
from simulator.cli.check import OwnKindError, import_own
from simulator.cli.common import print_json, wrapped
from simulator.cli.options import command

T = TypeVar("T")

NO_PROOF = "An ε from below proves no privacy: it only shows that no smaller ε holds."


@command
def audit(
    randomiser: Annotated[
        str, typer.Argument(metavar="PACKAGE.MODULE:CALLABLE", help="A function of a value that returns a report.")
    ],
    *,
    values: Annotated[int, typer.Option(min=2, max=1000)] = 4,
    trials: Annotated[int, typer.Option(min=100)] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    epsilon: Annotated[float | None, typer.Option(min=0)] = None,
    delta: Annotated[float, typer.Option(min=0, max=1)] = 0.0,
    confidence: float = 0.95,
    estimator: str | None = None,
    json: bool = False,
) -> None:
    """Estimate an ε from below and the bias of a randomiser; exit code 1 if the ε is above the one claimed.

    Parameters
    ----------
    values
        Number of values, 0…k − 1.
    trials : REPORTS
        Reports of each value.
    seed
        Seed of the global random numbers around the calls.
    epsilon
        The ε claimed.
    delta
        The δ claimed.
    confidence
        Confidence of the ε, over all pairs of values, and of the bias, over all values.
    estimator : PACKAGE.MODULE:CALLABLE
        A function of a list of reports that returns the estimated number of devices of each value; 'report' if each
        report is an estimate of its value.
    json
        Print the figures as JSON.
    """
    if not 0.5 <= confidence < 1.0:
        raise typer.BadParameter("must be at least 0.5 and below 1", param_hint="--confidence")
    alpha = 1.0 - confidence
    report = _function(randomiser)
    if "rng" in signature(report).parameters:
        report = partial(report, rng=np.random.default_rng(seed))
    estimate = _function(estimator) if estimator not in {None, "report"} else None
    reports = _called(randomiser, lambda: _reports(report, values=values, trials=trials, seed=seed))
    bound = epsilon_from_below(reports, delta=delta, alpha=alpha)
    bias: Bias | None = None
    if estimator == "report":
        bias = _called(randomiser, lambda: report_bias(reports, alpha=alpha))
    elif estimate is not None:
        bias = _called(estimator or "", lambda: estimate_bias(reports, estimate, alpha=alpha))
    contradicted = epsilon is not None and bound.epsilon > epsilon
    if json:
        numbers = {name: getattr(bias, name).tolist() for name in ("mean", "lower", "upper")} if bias else {}
        asked = {"randomiser": randomiser, "values": values, "trials": trials, "seed": seed, "confidence": confidence}
        asked |= {"delta": delta, "epsilon_claimed": epsilon}
        found = {"epsilon_from_below": bound.epsilon, "pair": [bound.value, bound.other], "outcomes": bound.outcomes}
        biased = bias and {**numbers, "unit": bias.unit, "found": bias.found}
        print_json({**asked, **found, "contradicted": contradicted, "bias": biased})
    else:
        _print(bound, bias, epsilon=epsilon, delta=delta, confidence=confidence, trials=trials)
        typer.echo(wrapped(NO_PROOF))
    raise typer.Exit(1 if contradicted else 0)


def _function(reference: str) -> Callable[..., Any]:
    """Return a user's function; raise `OwnKindError` if the reference names none."""
    if ":" not in reference:
        raise OwnKindError(f"{reference} must be package.module:callable")
    function: Callable[..., Any] = import_own(reference)
    return function


def _reports(report: Callable[[int], Any], *, values: int, trials: int, seed: int) -> list[list[Any]]:
    """Return the reports of each value; the global generators of Python, NumPy and Numba are seeded around them."""
    numpys, pythons = np.random.get_state(), random.getstate()  # noqa: NPY002 - to restore them
    np.random.seed(seed)  # noqa: NPY002, TID251 - a user's code may draw from it
    random.seed(seed)
    _seed_compiled(seed)
    try:
        return [[report(value) for _ in range(trials)] for value in range(values)]
    finally:
        np.random.set_state(numpys)  # noqa: NPY002 - as it was
        random.setstate(pythons)


@compiled
def _seed_compiled(seed: int) -> None:  # pragma: no cover - compiled
    """Seed the generator of compiled code, which is not restored: no code of this project draws from it."""
    np.random.seed(seed)  # noqa: NPY002, TID251 - a user's code may draw from it


def _called(reference: str, call: Callable[[], T]) -> T:
    """Return what a call of other people's code returns; raise `OwnKindError` if it raises anything."""
    try:
        return call()
    except Exception as error:
        raise OwnKindError(f"{reference} raises {type(error).__name__}: {error}") from error


def _print(
    bound: PairBound, bias: Bias | None, *, epsilon: float | None, delta: float, confidence: float, trials: int
) -> None:
    """Print the figures and the verdict in sentences."""
    at = f" at δ = {delta:g}" if delta else ""
    which = f", from values {bound.value} and {bound.other}" if bound.epsilon else ": no pair of values was told apart"
    sizes = f"{bound.outcomes:,} outcomes, {trials:,} reports of each value, confidence {confidence:g} over all pairs"
    typer.echo(wrapped(f"ε from below: {_floor(bound.epsilon)}{at}{which} ({sizes})"))
    if epsilon is not None:
        verdict = "contradicts" if bound.epsilon > epsilon else "does not contradict"
        typer.echo(f"The audit {verdict} the claimed ε = {epsilon:g}{at}.")
    if bias is not None:
        typer.echo(wrapped(f"Bias of each value ({bias.unit}), intervals of confidence {confidence:g} together:"))
        for value, row in enumerate(zip(bias.mean, bias.lower, bias.upper, strict=True)):
            numbers = "  {}: {:+.5f} [{:+.5f}, {:+.5f}]".format(value, *row)
            typer.echo(numbers if math.isfinite(row[0]) else f"  {value}: not all of its reports are finite numbers")
        typer.echo("The estimate is biased." if bias.found else "No bias was found.")


def _floor(value: float) -> str:
    """Return a number with three digits after the point, rounded down as a bound from below is."""
    return f"{math.floor(value * 1000) / 1000:.3f}"

"""`crowdveil audit`: an ε from below and the bias of anyone's randomiser of values."""

import math
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from mechanisms.privacy.audit import Bias, PairBound, epsilon_from_below, estimate_bias, report_bias
from scenarios.suggestions import suggestion
from simulator.cli.check import OwnKindError, import_own
from simulator.cli.common import print_json, wrapped
from simulator.cli.options import command
from simulator.kits.audit_adapters import ADAPTERS, Randomiser, of_function

T = TypeVar("T")

NO_PROOF = "An ε from below proves no privacy: it only shows that no smaller ε holds."


@command
def audit(
    randomiser: Annotated[
        str,
        typer.Argument(
            metavar="PACKAGE.MODULE:CALLABLE",
            help=f"A function of a value that returns a report, or one of {', '.join(ADAPTERS)}.",
        ),
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
        The ε claimed; of another package also the ε it is asked for.
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
    subject, alpha = _subject(randomiser, values, epsilon, estimator, seed), 1.0 - confidence
    reports = _called(randomiser, lambda: subject.reports(values=values, trials=trials, seed=seed))
    bound = epsilon_from_below(subject.outcomes(reports), delta=delta, alpha=alpha)
    bias: Bias | None = None
    if subject.estimate is not None:
        estimate = subject.estimate
        bias = _called(estimator or randomiser, lambda: estimate_bias(reports, estimate, alpha=alpha))
    elif subject.numbers:
        bias = _called(randomiser, lambda: report_bias(reports, alpha=alpha))
    contradicted = epsilon is not None and bound.epsilon > epsilon
    if json:
        numbers = {name: getattr(bias, name).tolist() for name in ("mean", "lower", "upper")} if bias else {}
        print_json(
            {
                "randomiser": randomiser,
                "values": values,
                "trials": trials,
                "seed": seed,
                "confidence": confidence,
                "delta": delta,
                "epsilon_claimed": epsilon,
                "epsilon_from_below": bound.epsilon,
                "pair": [bound.value, bound.other],
                "outcomes": bound.outcomes,
                "contradicted": contradicted,
                "bias": bias and {**numbers, "unit": bias.unit, "found": bias.found},
                "note": subject.note,
            }
        )
    else:
        _print(bound, bias, epsilon=epsilon, delta=delta, confidence=confidence, trials=trials)
        typer.echo(wrapped(" ".join(filter(None, (subject.note, NO_PROOF)))))
    raise typer.Exit(1 if contradicted else 0)


def _subject(reference: str, values: int, epsilon: float | None, estimator: str | None, seed: int) -> Randomiser:
    """Return what is audited, with its estimator."""
    if reference in ADAPTERS:
        if epsilon is None or epsilon == 0.0:
            raise typer.BadParameter(f"must be given, above 0: {reference} is asked for it", param_hint="--epsilon")
        if estimator is not None:
            raise typer.BadParameter(f"{reference} has its own", param_hint="--estimator")
        return ADAPTERS[reference](values, epsilon)
    package, colon, _ = reference.partition(":")
    if not colon or package in {name.partition(":")[0] for name in ADAPTERS}:
        adapters = f"{', '.join(ADAPTERS)}{suggestion(reference, ADAPTERS)}"
        raise OwnKindError(f"{reference} must be package.module:callable, or one of {adapters}")
    subject = of_function(import_own(reference), seed)
    if estimator is None:
        return subject
    if estimator == "report":
        return Randomiser(subject.privatise, numbers=True)
    return Randomiser(subject.privatise, estimate=import_own(estimator))


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

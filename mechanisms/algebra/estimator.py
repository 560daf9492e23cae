"""A linear unbiased estimator: its coefficients, and its variance device by device."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.algebra.exact import Number, exact
from mechanisms.algebra.protocol import Answers, Protocol
from mechanisms.algebra.tallies import Tallies
from mechanisms.parameter import ParameterError

Target: TypeAlias = str | Mapping[str, Number]


@dataclass(frozen=True, eq=False)
class Estimator:
    """Σ a_c·C_c over counts, unbiased for Σ t_k·n_k whatever the populations n_k.

    Every count is a sum over devices, so the estimate is one too: a device that answers x *contributes* f(x),
    the coefficients of the counts x is in. Unbiased means E_k f = t_k for each kind k; devices being
    independent, the variance is Σ n_k·Var_k f, linear in the populations.

    Made by `best_estimator`, or by `from_coefficients` from a formula somebody printed.

    Parameters
    ----------
    tallies : Tallies
    target : mapping of kind to Fraction
        t_k of every kind.
    coefficients : mapping of label to Fraction
        a_c of every count.
    """

    tallies: Tallies
    target: Mapping[str, Fraction]
    coefficients: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        """Check that it is unbiased."""
        for kind, wanted in self.target.items():
            mean = self._mean(kind, power=1)
            if mean != wanted:
                rule = f"must be unbiased: a device of kind {kind!r} must add {wanted} in expectation"
                raise ParameterError("coefficients", rule, str(mean))

    @classmethod
    def from_coefficients(cls, tallies: Tallies, target: Target, coefficients: Mapping[str, Number]) -> "Estimator":
        """Take an estimator as printed; counts left out have coefficient 0.

        Raises
        ------
        ParameterError
            If it is biased (naming a kind and its expectation), or a label or kind is unknown.
        """
        for label in coefficients:
            if label not in tallies.labels:
                raise ParameterError("coefficients", f"must be of counts among {list(tallies.labels)}", label)
        values = {label: exact(f"coefficients[{label!r}]", coefficients.get(label, 0)) for label in tallies.labels}
        return cls(tallies, resolve_target(tallies.protocol, target), values)

    def __str__(self) -> str:
        """Write it as a formula."""
        terms = [(value, label) for label, value in self.coefficients.items() if value]
        text = "".join(f" {'−' if value < 0 else '+'} {abs(value)}·{label}" for value, label in terms)
        return text.removeprefix(" + ").strip() or "0"

    @property
    def protocol(self) -> Protocol:
        """The protocol it belongs to."""
        return self.tallies.protocol

    def contribution(self, answers: Answers) -> Fraction:
        """Return f(x): what a device adds to the estimate by answering x over all rounds."""
        return sum(
            (self.coefficients[count.label] for count in self.tallies.counts if answers in count.answers), Fraction(0)
        )

    def estimate(self, counts: Mapping[str, int]) -> Fraction:
        """Return the estimate from observed counts, every one of them by label."""
        if set(counts) != set(self.coefficients):
            raise ParameterError("counts", f"must be given for each of {list(self.coefficients)}", list(counts))
        return sum((value * counts[label] for label, value in self.coefficients.items()), Fraction(0))

    def variance_by_kind(self) -> dict[str, Fraction]:
        """Return Var_k f, what one device of each kind adds to the variance: 0 where error does not grow with it."""
        return {kind: self._mean(kind, power=2) - self._mean(kind, power=1) ** 2 for kind in self.protocol.kinds}

    def variance(self, population: Mapping[str, int]) -> Fraction:
        """Return the exact variance of the estimate for these devices of each kind."""
        each = self.variance_by_kind()
        return sum((n * each[kind] for kind, n in self.protocol.check_population(population).items()), Fraction(0))

    def std_error(self, population: Mapping[str, int]) -> float:
        """Return the standard error of the estimate for these devices of each kind."""
        return math.sqrt(self.variance(population))

    def _mean(self, kind: str, *, power: int) -> Fraction:
        """Return E_k f^power."""
        law = self.protocol.law(kind)
        return sum((p * self.contribution(answers) ** power for answers, p in law.items()), Fraction(0))


def resolve_target(protocol: Protocol, target: Target) -> dict[str, Fraction]:
    """Return t_k of every kind: 1 for the one named and 0 for others, or as the mapping says."""
    given: Mapping[str, Number] = {target: 1} if isinstance(target, str) else target
    for kind in given:
        protocol.check_kind("target", kind)
    return {kind: exact(f"target[{kind!r}]", given.get(kind, 0)) for kind in protocol.kinds}

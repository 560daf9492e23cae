"""Evidence of a test between two laws, such as "counted" and "left out": rates, areas and success, exact or of trials.

The optimal test adds up ln(P/Q) over independent numbers. The law of the sum is computed on a grid, as the composition
of claims is; with the law of the sum, every score of the optimal test is known.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.privacy.audit import PairAudit
from mechanisms.privacy.composition import LEAST_DELTA, PAIR_FINENESS, SummedLoss, on_grid
from mechanisms.privacy.hockey_stick import Pair

# Digits to which evidence is compared: what differs by less differs by rounding.
DIGITS = 9
# Greatest number of bins of evidence from which an event is chosen.
BINS = 1_000


@dataclass(frozen=True, eq=False)
class Evidence:
    """Laws of the evidence under two hypotheses.

    Parameters
    ----------
    values : (values,) float64
        Different values of the evidence for P, descending.
    counted, left_out : (values,) float64
        Their probabilities under P and under Q.
    """

    values: Floats
    counted: Floats
    left_out: Floats

    @classmethod
    def of(cls, values: Floats, counted: ArrayLike, left_out: ArrayLike) -> "Evidence":
        """Return the laws of values in any order, also repeated, whose masses are in these proportions."""
        distinct, place = np.unique(-np.round(values, DIGITS), return_inverse=True)
        laws = (np.bincount(place, masses) for masses in (counted, left_out))
        return cls(-distinct, *(law / law.sum() for law in laws))

    @classmethod
    def of_trials(cls, counted: Floats, left_out: Floats) -> "Evidence":
        """Return the frequencies of evidence in trials under P, (n,), and under Q, (m,)."""
        under = np.arange(len(counted) + len(left_out)) < len(counted)
        return cls.of(np.concatenate([counted, left_out]), under, ~under)

    @classmethod
    def of_series(cls, outputs: Sequence[tuple[Pair, int]]) -> "Evidence":
        """Return the laws of the sum of ln(P/Q) over independent outputs: of each pair (P, Q), a number of outputs.

        The values are rounded so that the sum tells the hypotheses apart at least as well as the exact sum, and hardly
        better (`ComposedDelta`).
        """
        pairs, times = [pair for pair, _ in outputs], [number for _, number in outputs]
        if times == [1]:
            return cls.of(log_ratio(*pairs[0]), *pairs[0])
        common, ends = math.gcd(*times), []
        for directed in (pairs, [(q, p) for p, q in pairs]):
            parts = on_grid(directed, PAIR_FINENESS, least=LEAST_DELTA)
            sums = SummedLoss([part for part, n in zip(parts, times, strict=True) for _ in range(n // common)], common)
            values, masses = sums.law(0)[:2] if sums.parts else (np.zeros(1), np.ones(1))
            ends.append((values, masses * (1.0 - sums.certain), sums.certain))
        # Each law is computed where it has the greater masses: their ratio is the exponential of the value.
        (up, more, certain), (down, less, never) = ends
        (up, more), (down, less) = (up[up >= 0.0], more[up >= 0.0]), (down[down > 0.0], less[down > 0.0])
        return cls.of(
            np.concatenate([[np.inf], up, -down, [-np.inf]]),
            np.concatenate([[certain], more, less * np.exp(-down), [0.0]]),
            np.concatenate([[0.0], more * np.exp(-up), less, [never]]),
        )

    @classmethod
    def mixed(cls, parts: Sequence["Evidence"]) -> "Evidence":
        """Return the laws of the evidence of tests, each of which is as likely as any other."""
        return cls.of(*(np.concatenate([getattr(one, name) for one in parts]) for name in cls.__match_args__))

    @property
    def area(self) -> float:
        """Probability that the evidence is greater under P than under Q, equal evidence as one half: the AUC."""
        return float(self.counted @ (1.0 - np.cumsum(self.left_out) + self.left_out / 2.0))

    @property
    def advantage(self) -> float:
        """Greatest difference of the rates of true and false positives over all thresholds."""
        return max(0.0, float((np.cumsum(self.counted) - np.cumsum(self.left_out)).max()))

    def above(self, value: float) -> float:
        """Return the rate of true positives where evidence above this value decides for P."""
        return float(self.counted[self.values > value].sum())

    def true_positives(self, false_positives: float) -> float:
        """Return the rate of true positives at this rate of false ones; at the threshold, decisions are drawn."""
        wrong, right = (np.append(0.0, np.cumsum(law)) for law in (self.left_out, self.counted))
        return float(np.interp(false_positives, wrong, right))

    def success(self, share: float) -> float:
        """Return the success of the best decision if P holds with this probability; `values` are ln(P/Q)."""
        return float(np.maximum(share * self.counted, (1.0 - share) * self.left_out).sum())


def epsilon_of_trials(counted: Floats, left_out: Floats, *, alpha: float, delta: float = 0.0) -> float:
    """Return a lower bound of ε at this δ from evidence under two hypotheses, wrong with probability at most alpha.

    Every tenth trial chooses a set of values of the evidence, and the others test it (`PairAudit`), in both directions.

    Parameters
    ----------
    counted, left_out : (n,), (m,) float64
        Evidence in independent trials under P, and under Q.
    alpha : float
        Greatest probability that the bound is too high.
    delta : float
        δ that the mechanism is allowed.
    """
    chosen = [one[::10] for one in (counted, left_out)]
    tested = [np.delete(one, np.s_[::10]) for one in (counted, left_out)]
    # As many bins of each hypothesis, so that rare values on either side have bins of their own.
    shares = np.linspace(0.0, 1.0, BINS // 2)
    edges = np.unique(np.round([np.quantile(one, shares, method="lower") for one in chosen], DIGITS))
    p, q, p_test, q_test = (
        np.bincount(np.searchsorted(edges, np.round(one, DIGITS), side="right"), minlength=len(edges) + 1)
        for one in (*chosen, *tested)
    )
    audits = PairAudit(p, q, p_test, q_test), PairAudit(q, p, q_test, p_test)
    return max(audit.epsilon_at_least(alpha=alpha / 2.0, delta=delta) for audit in audits)


def log_ratio(p: ArrayLike, q: ArrayLike) -> Floats:
    """Return ln(p/q) of probabilities; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.log(p) - np.log(q)
    return np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)

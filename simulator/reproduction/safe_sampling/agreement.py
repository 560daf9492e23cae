"""Agreement: when a computed number is the printed one, and when a measured rate is what theory says."""

import math
from dataclasses import dataclass

from mechanisms.privacy.audit import clopper_pearson

# Probability that a right theory lies outside the interval a row is judged by; the interval shown is of 95 %.
ALPHA = 1e-6


def same_digits(computed: float, printed: str) -> bool:
    """Whether a number, rounded to as many digits as are printed ("6.83e-10", "0.159"), is what is printed."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not exponent:
        return f"{computed:.{decimals}f}" == printed
    shown = f"{computed:.{decimals}e}"
    return float(shown) == float(printed)


@dataclass(frozen=True)
class Rate:
    """How often an attack was right.

    Parameters
    ----------
    hits, trials
        Successes, of how many independent trials.
    """

    hits: int
    trials: int

    @property
    def share(self) -> float:
        """The success rate."""
        return self.hits / self.trials

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the exact (Clopper-Pearson) interval that misses with probability alpha at most."""
        low, high = clopper_pearson(self.hits, self.trials, alpha=alpha / 2)
        return float(low), float(high)

    def agrees_with(self, theory: float) -> bool:
        """Whether theory lies in the interval that misses it once in a million."""
        low, high = self.interval(ALPHA)
        return low - 1e-12 <= theory <= high + 1e-12

    def exceeds(self, allowed: float) -> bool:
        """Whether the rate is proved to be above a bound, but for once in a million."""
        return self.interval(ALPHA)[0] > allowed

    def __str__(self) -> str:
        """Rate, 95 % interval and trials."""
        low, high = self.interval()
        return f"{self.share:.4f} (95 % interval {low:.4f} to {high:.4f}, {self.trials:,} trials)"


def allowed_success(epsilon: float, delta: float) -> float:
    """Return the best rate of telling two equally likely worlds apart that (ε, δ) leaves: (e^ε + δ)/(1 + e^ε).

    A test right with probability a in one world and b in the other has a ≤ e^ε(1 − b) + δ and b ≤ e^ε(1 − a) + δ;
    added up, (a + b)/2 ≤ (e^ε + δ)/(1 + e^ε).
    """
    factor = math.exp(epsilon)
    return min(1.0, (factor + delta) / (1.0 + factor))

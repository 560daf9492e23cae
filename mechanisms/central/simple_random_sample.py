"""Simple random sample: n of N devices without replacement, and what its mean and its median may miss."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mechanisms.central.smooth_sensitivity import median_rank
from mechanisms.parameter import ParameterError, check_integer, check_probability


@dataclass(frozen=True, slots=True)
class SimpleRandomSample:
    """n = max(1, round(share·N)) of N devices, every set of n as likely as any other.

    A half is rounded to the even number. N is public: neighbours have the same number of devices (HDK sec 2.1).

    Parameters
    ----------
    devices : int
        N, at least 1.
    share : float
        Of the devices, as asked for, in (0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    devices: int
    share: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_integer("devices", self.devices, at_least=1)
        check_probability("share", self.share, above_zero=True)

    @property
    def size(self) -> int:
        """The number of devices drawn, n."""
        return max(1, round(self.share * self.devices))

    @property
    def fraction(self) -> float:
        """n/N, which is what privacy is computed with; `share` only up to rounding."""
        return self.size / self.devices

    def draw(self, values: NDArray[np.float64], *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the values of the devices drawn, (n,) float64; all of them, and no coin used, where n is N."""
        if len(values) != self.devices:
            raise ParameterError("values", f"must be of {self.devices} devices", len(values))
        if self.size == self.devices:
            return values
        return rng.choice(values, size=self.size, replace=False, shuffle=False)

    def mean_variance(self, values: NDArray[np.float64]) -> float:
        """Return (1 − n/N)·S²/n, the variance of the sample mean, S² with N − 1 (the first term of HDK eq 7)."""
        if self.size == self.devices:
            return 0.0
        return (1.0 - self.fraction) * float(np.var(values, ddof=1)) / self.size

    def median_law(self) -> NDArray[np.float64]:
        """Return the exact law of the sample median's rank in the population.

        The m-th smallest of n is the r-th smallest of N in C(r−1, m−1)·C(N−r, n−m)/C(N, n) of all samples: m − 1 of
        those below it were drawn, and n − m of those above.

        Returns
        -------
        (N,) float64
            P(r) for r = 1…N.
        """
        n, m = self.size, median_rank(self.size)
        r = np.arange(1, self.devices + 1)
        log_law = np.full(self.devices, -np.inf)
        possible = (r >= m) & (r <= self.devices - (n - m))
        below, above = r[possible] - 1, self.devices - r[possible]
        log_law[possible] = _log_choose(below, m - 1) + _log_choose(above, n - m)
        law: NDArray[np.float64] = np.exp(log_law - log_law.max())
        law /= law.sum()
        return law

    def median_error(self, values: NDArray[np.float64], truth: float) -> float:
        """Return the exact mean square of (sample median − truth), bias included.

        Parameters
        ----------
        values : (N,) float64
            In any order.
        truth : float
        """
        return float(self.median_law() @ (np.sort(values) - truth) ** 2)

    def mean_reach(self, spread: float, *, alpha: float) -> float:
        """Return what the sample mean misses by, at most, but with probability alpha, whatever the values.

        spread·√((1 − (n − 1)/N)·ln(2/α)/(2n)) (Serfling 1974, corollary 1.1), 0 where n is N.

        Parameters
        ----------
        spread : float
            Greatest value less smallest that are possible.
        alpha : float
            In (0, 1).
        """
        if self.size == self.devices:
            return 0.0
        kept = 1.0 - (self.size - 1) / self.devices
        return spread * math.sqrt(kept * math.log(2.0 / alpha) / (2.0 * self.size))


def _log_choose(n: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return ln C(n, k), (…) float64."""
    log: NDArray[np.float64] = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return log

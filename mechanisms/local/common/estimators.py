"""Unbiased estimators: the difference of two rounds, with a control variate if refreshed, and (C/n − q)/(p − q)."""

from dataclasses import dataclass

import numpy as np

from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.intervals import BinomialInversion, CountLaw, QuadraticVariance
from mechanisms.local.common.response_counts import ResponseCounts, estimate_between, estimate_nothing
from mechanisms.local.mechanism import Estimate


@dataclass(frozen=True, eq=False)
class TwoRounds:
    """The estimator of the devices in each cell from two rounds; the second repeats the blanks of the first.

    On an ideal channel Ŷ = (C₂ − C₁)/π_s (SP eqs 11 and 16): the blanks of round one are repeated in round two
    and cancel, C₂ − C₁ is Bin(Y, π_s), and the interval inverts this binomial. Otherwise each count is divided by the
    response rate of its round, Ŷ = N(C₂/n₂ − C₁/n₁)/π_s. Then the blanks cancel only on average, and the interval is
    for C₂ given C₁.

    With refresh, Ŷ = N(C₂/n₂ − λC₁/n₁ − (1 − λ)π_v)/π_s is unbiased for any λ, as blanks of both rounds have
    probability π_v. At λ = 1 it is the difference (SP eq 16). At λ = 0 it uses round two alone, which is k-ary
    randomized response. `weight` is the λ in between that minimises the noise of the blanks.

    Parameters
    ----------
    sampling : float
        π_s.
    blank : float or (cells,) float64
        π_v, the probability that an unsampled device reports the cell; below 1 with refresh.
    refresh : float
        ρ, the probability that a blank is drawn again for round two.
    """

    sampling: float
    blank: float | Floats
    refresh: float = 0.0

    @property
    def kept(self) -> float | Floats:
        """κ, the correlation between the two rounds of an unsampled device's blank being the cell.

        A blank is kept with probability 1 − ρ and else drawn again from b_v = π_v/(1 − π_s). So both blanks are the
        cell with probability π_v(1 − ρ + ρ·b_v), and κ = [π_v(1 − ρ) + ρπ_v²/(1 − π_s) − π_v²]/(π_v(1 − π_v)).
        """
        if not self.refresh:
            return 1.0
        again = self.blank / (1.0 - self.sampling) if self.sampling < 1.0 else 0.0 * self.blank
        return (1.0 - self.refresh + self.refresh * again - self.blank) / (1.0 - self.blank)

    def weight(self, received: ResponseCounts) -> float | Floats:
        """Return λ = κ·n₁/M, the weight of the count of round one; 1 without refresh.

        If all devices were counted λ is κ, the regression coefficient of round two's count on round one's over the
        devices not in the cell; it must not depend on the unknown count. If n₁ devices were counted, of the M devices
        asked in the larger round, λ is the share n₁/M of κ, since the variance of the estimate contains
        λ²/n₁ − 2λκ/M.
        """
        most = max(received.asked)
        return self.kept * (received.counted[0] / most) if self.refresh and most else self.kept

    def estimate(self, first: Integers, second: Integers, received: ResponseCounts) -> Estimate:
        """Estimate the number of devices in each cell from C₁ and C₂, (cells,), the numbers of reports of each cell."""
        if received.silent:
            return estimate_nothing(received, len(first))
        variance = self.variance(received)
        if received.ideal and not self.refresh:
            difference = second - first
            count = difference / self.sampling
            # The difference of honest counts is in 0…N; forged counts must still give an interval.
            successes = np.clip(difference, 0, received.devices)
            invert = BinomialInversion(successes, successes, self.sampling)
            lower, upper = (np.minimum(end, received.devices) for end in invert())
            error = variance.std_error(np.clip(count, 0.0, received.devices))
            return Estimate(count, error, lower, upper, "binomial inversion", invert)
        n, weight = received.devices, self.weight(received)
        rates = [n / counted if counted else 0.0 for counted in received.counted]
        count = (second * rates[1] - weight * (first * rates[0]) - (1.0 - weight) * (n * self.blank)) / self.sampling
        return estimate_between(count, variance, self._ends(first, second, received), received)

    def _ends(self, first: Integers, second: Integers, received: ResponseCounts) -> tuple[Floats, Floats]:
        """Return the interval of Y from C₂ given C₁; the distribution of C₁ alone does not depend on Y.

        M is the number of devices asked in the larger round. Of these, C₁ are known to have had the blank v in round
        one, n₁ − C₁ are known not to have had it, and nothing is known of M − n₁. In round two they report v with
        probabilities α = π_v + κ(1 − π_v), β = π_v(1 − α)/(1 − π_v) and π_v. Being in the cell adds nothing to the
        first probability, since a sampled device cannot have reported v in round one. It adds π_s/(1 − π_v) to the
        second and π_s to the third.
        """
        if received.devices == 0:
            return np.zeros(len(first)), np.zeros(len(first))
        (n1, n2), most = received.counted, max(received.asked)
        known = np.clip(first, 0, n1)
        blank = np.broadcast_to(self.blank, known.shape)
        again = blank + self.kept * (1.0 - blank)
        other = 1.0 - blank
        shares = np.stack([known / most, (n1 - known) / most, np.full(known.shape, 1.0 - n1 / most)])
        chances = np.stack([again, blank * (1.0 - again) / other, blank])
        adds = np.stack([np.zeros(known.shape), self.sampling / other, np.full(known.shape, self.sampling)])
        mean, gain = (shares * chances).sum(axis=0), (shares * adds).sum(axis=0)
        pairs = ((chances, chances), (chances, adds), (adds, adds))
        spread = [(shares * left * right).sum(axis=0) for left, right in pairs]
        false_yes = (shares * chances)[1:].sum(axis=0)
        law = CountLaw(
            devices=received.devices,
            counted=n2,
            true_yes=false_yes + gain,
            false_yes=false_yes,
            known=known,
            again=again,
            among=most,
            spread=np.stack(spread) - np.stack([mean * mean, mean * gain, gain * gain]),
        )
        return law.invert(np.clip(second, 0, n2))

    def variance(self, received: ResponseCounts, weight: float | Floats | None = None) -> QuadraticVariance:
        """Return the exact variance of `estimate`, given the devices asked and counted in each round.

        On an ideal channel it is Y(1 − π_s)/π_s, whatever N is: the paper's constant error. With n₁ and n₂ of N devices
        counted, as independent simple random samples, and L = (N − n)/n,

        Var = Y(1 − π_s)/π_s + N[π_v(1 − π_v)L₁ + p₂(1 − p₂)L₂]/π_s² + L₂·Y(1 − Y/N)/(N − 1)

        with p₂ = π_v + π_s·Y/N, where only the last term, at most L₂/4 · N/(N − 1), is missing from the usual
        first-order formula. If the rounds asked N₁ ≠ N₂ = N devices, the smaller set being drawn from the larger one of
        M devices, N·L₁ becomes N²(1/n₁ + 1/N − 2/M), and 2Yπ_v(1 − N/M)/π_s is subtracted because fewer blanks are
        common to both rounds.

        With refresh, on an ideal channel, it is [Y·π_s(1 − π_s − 2π_v(1 − κ)) + N·π_v(1 − π_v)(1 − κ²)]/π_s². It does
        not grow with N only if there is no refresh, at κ = 1.

        Parameters
        ----------
        received : ResponseCounts
            Devices asked and counted, with `silent` False.
        weight : float or (cells,) float64, optional
            λ, the weight of the count of round one; by default the weight that the estimate uses.

        Returns
        -------
        QuadraticVariance
            As a function of Y, the number of devices truly in the cell.
        """
        n, blank, sampling = received.devices, self.blank, self.sampling
        if n == 0:
            return QuadraticVariance(0.0, 0.0, 0.0)
        weight = self.weight(received) if weight is None else weight
        most = max(received.asked)
        first_spread = n * (weight * weight * n / received.counted[0] + 1.0 - 2.0 * weight * self.kept * n / most)
        loss = (n - received.counted[1]) / received.counted[1]
        within = loss / max(n - 1, 1)
        blank_spread = blank * (1.0 - blank) / sampling**2
        return QuadraticVariance(
            constant=blank_spread * (first_spread + n * loss),
            linear=(1.0 - sampling - 2.0 * blank * (1.0 - weight * n / most) + loss * (1.0 - 2.0 * blank)) / sampling
            + within,
            square=-(loss + within) / n,
        )


def estimate_proportion(yes: Integers, *, true_yes: float, false_yes: float, received: ResponseCounts) -> Estimate:
    """Estimate the number of Yes-holders by N(C/n − p₀)/(p₁ − p₀) (SP eqs 2-5), with an interval from C's distribution.

    Parameters
    ----------
    yes : (cells,) int64
        C, the numbers of Yes answers.
    true_yes, false_yes : float
        p₁ and p₀: probability of a Yes answer from a Yes-holder and from a No-holder.
    received : ResponseCounts
        Devices asked and counted.
    """
    n, rows = received.counted[-1], len(yes)
    if received.silent or received.devices == 0:
        return estimate_nothing(received, rows)
    count = received.devices * (yes / n - false_yes) / (true_yes - false_yes)
    variance = proportion_variance(true_yes=true_yes, false_yes=false_yes, received=received)
    # The distribution is for the answer that devices in the cell give more often than others.
    more, p, q = (yes, true_yes, false_yes) if true_yes > false_yes else (n - yes, 1.0 - true_yes, 1.0 - false_yes)
    law = CountLaw.of_proportion(true_yes=p, false_yes=q, devices=received.devices, counted=n, rows=rows)
    return estimate_between(count, variance, law.invert(np.clip(more, 0, n)), received)


def proportion_variance(*, true_yes: float, false_yes: float, received: ResponseCounts) -> QuadraticVariance:
    """Return the exact variance of `estimate_proportion`, given that n of N answers were counted.

    The number X of Yes among all N answers has Var X = Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀). A simple random sample of n
    of these answers adds

    N²/n · (N − n)/(N − 1) · (p(1 − p) − Var X/N²)   with p = p₀ + (p₁ − p₀)Y/N,

    whose last factor is the expected variance within the N answers. Both are divided by (p₁ − p₀)².

    Parameters
    ----------
    true_yes, false_yes : float
        p₁ and p₀: probability of a Yes answer from a Yes-holder and from a No-holder.
    received : ResponseCounts
        Devices asked and counted, with `silent` False.
    """
    devices, counted = received.devices, received.counted[-1]
    if devices == 0:
        return QuadraticVariance(0.0, 0.0, 0.0)
    gap = true_yes - false_yes
    spread = false_yes * (1.0 - false_yes)
    more = true_yes * (1.0 - true_yes) - spread
    # N/n · (N − n)/(N − 1): the factor of the sample's variance, over N; 0 when every answer was counted.
    sample = devices / counted * (devices - counted) / max(devices - 1, 1)
    return QuadraticVariance(
        constant=(devices * spread + sample * (devices - 1) * spread) / gap**2,
        linear=(more + sample * (gap * (1.0 - 2.0 * false_yes) - more / devices)) / gap**2,
        square=-sample / devices,
    )

"""Laws of published sums of independent bits, and δ of the sums of one cell or of two.

A bit is 1 with probability p for a device in the cell and q for any other. The others' bits hide the device's: given
that n of the other N − 1 devices are in the cell, their sum is F = Bin(n, p) + Bin(N − 1 − n, q), and the published sum
is F plus one bit of probability p or q. Bits of different cells are independent, so only the cells that the device may
be in matter. F is a sum of independent bits, so its masses are log-concave and the likelihood ratio of the two
hypotheses rises with the published sum. Hence each hockey-stick divergence is a sum over a tail, or for two cells over
one bound a row.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mechanisms.compiled import Floats, compiled
from mechanisms.privacy.binomial import LEFT_OUT, window
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON
from mechanisms.privacy.hockey_stick import Pair, dominating_pair

Masses = Floats
# Most steps of a recurrence before its window: its start is approximate, and the error of the start shrinks with each
# step. It begins where the error has fallen to e^−LEAD_LOG at the window.
LEAD, LEAD_LOG = 2.0**14, 45.0
# Masses below this share of the greatest are left out: ratios of smaller ones have no digits.
LEAST_MASS = 1e-280


def sum_of_bits(inside: int, outside: int, *, true_yes: float, false_yes: float) -> tuple[int, Masses]:
    """Return the law of Bin(inside, p) + Bin(outside, q) on a window that leaves out at most 1e-30.

    The generating function G = (1 − p + pz)^n (1 − q + qz)^m satisfies
    (1 − p + pz)(1 − q + qz)·G' = (np(1 − q + qz) + mq(1 − p + pz))·G. So three neighbouring masses satisfy

    (1 − p)(1 − q)(x + 1)·f(x + 1) = (b − ax)·f(x) + pq(n + m + 1 − x)·f(x − 1),

    a = p(1 − q) + q(1 − p), b = np(1 − q) + mq(1 − p). Ratios of neighbours are computed upwards where b − ax is
    positive and downwards where it is negative. In both cases only positive terms are added, and an error in one ratio
    shrinks in the next. So every mass keeps its relative accuracy, in the tails too, which a convolution by Fourier
    transforms would lose.

    Parameters
    ----------
    inside, outside : int
        n and m, at least 0.
    true_yes, false_yes : float
        p and q.

    Returns
    -------
    first : int
        The first value of the window.
    masses : (width,) float64
        They sum to 1.
    """
    p, q = true_yes, false_yes
    if p == 1.0 or inside == 0:
        first, masses = window(outside, q)
        return first + (inside if p == 1.0 else 0), masses
    if q == 0.0 or outside == 0:
        return window(inside, p)
    n, m = float(inside), float(outside)
    mean, variance = n * p + m * q, n * p * (1.0 - p) + m * q * (1.0 - q)
    rarity = math.log(2.0 / LEFT_OUT)
    reach = rarity / 3.0 + math.sqrt(rarity * rarity / 9.0 + 2.0 * variance * rarity)
    first, last = max(0, math.floor(mean - reach)), min(inside + outside, math.ceil(mean + reach))
    first, masses = _trimmed(first, np.exp(_log_masses(n, m, p, q, float(first), float(last))))
    return first, masses / masses.sum()


def _trimmed(first: int, masses: Masses) -> tuple[int, Masses]:
    """Return a law on a window without the small masses at its ends."""
    if masses[0] > LEAST_MASS < masses[-1]:
        return first, masses
    kept = np.flatnonzero(masses > LEAST_MASS)
    return first + int(kept[0]), masses[kept[0] : kept[-1] + 1]


@compiled
def _lead(half: float, product: float) -> float:
    """Return how many steps before a place a recurrence begins, from h/2 and c·g there (`_log_masses`).

    A step multiplies the relative error of a ratio by cg/(h/2 + √((h/2)² + cg))². This rises towards the place where h
    is 0, so on the way to a place it is at most what it is there.
    """
    share = product / (half + np.sqrt(half * half + product)) ** 2 if half > 0.0 else 1.0
    return min(LEAD, np.ceil(LEAD_LOG / -np.log(share)) + 1.0) if share < 1.0 else LEAD


@compiled
def _log_masses(n: float, m: float, p: float, q: float, first: float, last: float) -> Masses:
    """Return ln f(x) for x = first…last, less the greatest, as sums of ln(f(x + 1)/f(x)).

    The recurrences begin some steps before the window (`_lead`). The recurrence of the ratios up, u(x) = (h + g/u(x −
    1))/c, is used up to where h, linear in x, is 0; the recurrence of the ratios down from there on.
    """
    total = n + m
    least = (1.0 - p) * (1.0 - q)
    slope = p * (1.0 - q) + q * (1.0 - p)
    level = n * p * (1.0 - q) + m * q * (1.0 - p)
    both = p * q
    logs = np.zeros(int(last - first) + 1)
    start = max(0.0, first - _lead((level - slope * first) / 2.0, least * both * (first + 1.0) * (total - first + 1.0)))
    stop = min(total, last + _lead((slope * last - level) / 2.0, least * both * (last + 1.0) * (total - last + 1.0)))
    turn = min(max(np.floor(level / slope), start), stop)
    # Upwards: up = f(x + 1)/f(x), from the root of the recurrence with two equal neighbouring ratios.
    x = start
    half, height = (level - slope * x) / 2.0, both * (total - x + 1.0)
    up = (half + np.sqrt(half * half + least * (x + 1.0) * height)) / (least * (x + 1.0))
    if start == 0.0:
        up = level / least
    while x < min(turn, last):
        if x > start:
            up = (level - slope * x + both * (total - x + 1.0) / up) / (least * (x + 1.0))
        if x >= first:
            logs[int(x - first) + 1] = np.log(up)
        x += 1.0
    # Downwards: down = f(x − 1)/f(x).
    x = stop
    half, height = (slope * x - level) / 2.0, both * (total - x + 1.0)
    down = (half + np.sqrt(half * half + least * (x + 1.0) * height)) / height
    if stop == total:
        down = (slope * x - level) / height
    while x > max(turn, first):
        if x < stop:
            down = (slope * x - level + least * (x + 1.0) / down) / (both * (total - x + 1.0))
        if x <= last:
            logs[int(x - first)] = -np.log(down)
        x -= 1.0
    for i in range(1, len(logs)):
        logs[i] += logs[i - 1]
    logs -= logs.max()
    return logs


@dataclass(frozen=True, eq=False)
class SummedCellLaw:
    """Law of one cell's published sum, with the device in the cell and without it.

    Parameters
    ----------
    present, absent : (values,) float64
        Masses of the same consecutive values. Their ratio rises, unless the noise is not log-concave.
    left_out : float
        Most mass that either leaves out.
    first : int
        The first of the values.
    mirrored : bool
        Whether it is known to have the same δ in both directions.
    """

    present: Masses
    absent: Masses
    left_out: float = 0.0
    first: int = 0
    mirrored: bool = False

    @cached_property
    def by_evidence(self) -> tuple[Masses, Masses, Masses]:
        """`present`, `absent` and absent/present in the order of the evidence that the device is not there.

        It is the order of the values, reversed or not, unless noise is not log-concave. The ratio is infinite where
        only an absent device gives the value.
        """
        with np.errstate(divide="ignore"):
            ratio = self.absent / self.present
        order = np.argsort(-ratio, kind="stable")
        return self.present[order], self.absent[order], ratio[order]

    def laws(self, *, moves: bool) -> tuple[Pair, ...]:
        """Return pairs of independent outputs, whose product dominates one query in both directions.

        A move changes two cells, one as if the device left and the other as if it entered.
        """
        if self.mirrored and not moves:
            return ((self.present, self.absent),)
        present = np.append(self.present, [self.left_out, 0.0])
        absent = np.append(self.absent, [0.0, self.left_out])
        directions = ((present, absent), (absent, present))
        return directions if moves else (dominating_pair(directions),)

    def delta(self, epsilon: float) -> float:
        """Return δ(ε) for a device in the cell or not, the larger of both directions."""
        factor = math.exp(min(epsilon, LARGEST_CROWD_EPSILON))
        there = np.maximum(self.present - factor * self.absent, 0.0).sum()
        elsewhere = np.maximum(self.absent - factor * self.present, 0.0).sum()
        return min(1.0, float(max(there, elsewhere)) + self.left_out)


def moved_delta(first: SummedCellLaw, second: SummedCellLaw, epsilon: float) -> float:
    """Return δ(ε) for a device in either of two cells whose sums are independent, the larger of both directions."""
    factor = math.exp(min(epsilon, LARGEST_CROWD_EPSILON))
    delta = max(_direction(first, second, factor), _direction(second, first, factor))
    return min(1.0, delta + 2.0 * (first.left_out + second.left_out))


def _direction(entered: SummedCellLaw, left: SummedCellLaw, factor: float) -> float:
    """Return the hockey-stick divergence of the device in the first cell against the device in the second."""
    return float(_gain(entered.by_evidence, left.by_evidence, factor))


@compiled
def _gain(entered: tuple[Masses, Masses, Masses], left: tuple[Masses, Masses, Masses], factor: float) -> float:
    """Return Σ over both cells' values of the positive part of P − e^ε·Q, from masses ordered by evidence."""
    present, absent, ratio = entered
    left_present, left_absent, left_ratio = left
    total = without = against = 0.0
    up_to = 0
    for value in range(len(ratio)):
        # present/absent of the first times absent/present of the second exceeds e^ε.
        while up_to < len(left_ratio) and left_ratio[up_to] > factor * ratio[value]:
            without += left_absent[up_to]
            against += left_present[up_to]
            up_to += 1
        total += max(present[value] * without - factor * absent[value] * against, 0.0)
    return total


def bits_law(inside: int, outside: int, p: float, q: float, noise: tuple[float, ...] | None) -> SummedCellLaw:
    """Return the law of the sum of all devices' bits, the device's own included.

    Parameters
    ----------
    inside, outside : int
        Other devices in the cell, and elsewhere.
    p, q : float
        Probabilities of a 1, p above q.
    noise : tuple of float, optional
        Masses of integer noise that is added to the sum, symmetric around 0.
    """
    first, others = others_law(inside, outside, p, q, noise)
    padded = np.zeros(len(others) + 2)
    padded[1:-1] = others
    below, above = padded[1:], padded[:-1]
    return SummedCellLaw((1.0 - p) * below + p * above, (1.0 - q) * below + q * above, LEFT_OUT, first)


@lru_cache(maxsize=512)
def others_law(inside: int, outside: int, p: float, q: float, noise: tuple[float, ...] | None) -> tuple[int, Masses]:
    """Return the first value and the masses of the sum of all other devices' bits, with noise if there is any."""
    first, others = sum_of_bits(inside, outside, true_yes=p, false_yes=q)
    if noise is not None:
        others = np.convolve(others, noise)
        first -= len(noise) // 2
    return _trimmed(first, others)

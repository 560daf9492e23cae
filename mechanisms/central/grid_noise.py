"""Laplace noise on a public grid, and discrete Gaussian, Laplace and Pólya noise, sampled exactly with integers.

Laplace noise computed in doubles reveals the statistic it hides: which doubles can be published depends on the
statistic (Mironov 2012, *On Significance of the Least Significant Bits for Differential Privacy*). Here every value is
rounded to a grid fixed in advance, the statistic is computed exactly from integers, and the noise has the distribution
of continuous Laplace noise rounded to the same grid, sampled without error. Because the statistic is on the grid,
adding rounded noise is the same as rounding the sum of the statistic and continuous noise. That is post-processing, so
every (ε, δ) of continuous Laplace noise holds for what is published.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask, compiled
from mechanisms.privacy.integer_noise import IntegerNoise

# (upper − lower)/ε, the scale of the noise that hides one value, is between 2^39 and 2^41 steps of the grid.
FINENESS = 40
# Noise is made wider by this factor: more than doubles can lose in ε and in a smooth sensitivity (below 2^−42 each).
SLACK = 2.0**-40
WIDENING = 1.0 + SLACK
# The description of the noise in claims.
GRID_BASIS = "sampled exactly on a public grid (step about 2^−40·(upper − lower)/ε_n), to which values are rounded"
# Random words are uniform in 0…WORDS − 1.
WORDS = 2**63
# Distance of a uniform number from a probability below which more of its bits are drawn: far above the error of
# doubles, about 2^-48.
DOUBTFUL = 2.0**-40
# Geometric variables drawn at once; Pólya variables are accepted among them.
MOST_OFFERED = 10**6


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of a power of two, to which values and published statistics are rounded.

    Parameters
    ----------
    lower, upper : float
        Bounds of a value.
    exponent : int
        Base-2 logarithm of the step between multiples.
    """

    lower: float
    upper: float
    exponent: int

    @classmethod
    def build(cls, lower: float, upper: float, *, epsilon: float) -> "Grid":
        """Return the grid for noise of scale (upper − lower)/ε: its step is about 2^−40 of that scale."""
        exponent = math.frexp(upper - lower)[1] - math.frexp(epsilon)[1] - FINENESS
        return cls(lower, upper, max(exponent, -1074))

    @property
    def step(self) -> float:
        """Distance of neighbouring multiples, in the values' unit."""
        return math.ldexp(1.0, self.exponent)

    @property
    def origin(self) -> int:
        """The multiple nearest to the lower bound, in steps from 0."""
        return round(self.lower / self.step)

    @property
    def width(self) -> int:
        """Steps between the bounds, at least 1: the most that one value can change."""
        return max(1, round(self.upper / self.step - float(self.origin)))

    def to_steps(self, values: Floats) -> Integers:
        """Return values within the bounds as (n,) int64 steps from the origin, in 0…width.

        Every operation is monotone, so no rounding of doubles takes a value beyond the ends.
        """
        return np.rint(values / self.step - float(self.origin)).astype(np.int64)

    def to_value(self, steps: int) -> float:
        """Return the multiple at this many steps from the origin, in the values' unit."""
        return float(self.origin + steps) * self.step


def draw_rounded_laplace(scale: float, size: int, *, rng: np.random.Generator) -> Integers:
    """Draw Laplace noise rounded to the nearest integer.

    P(k) = e^(−(|k| − ½)/b)·(1 − e^(−1/b))/2 for k ≠ 0, and 1 − e^(−1/(2b)) for 0.

    Parameters
    ----------
    scale : float
        b, above 0 and below 2^52, taken as exactly this double.
    size : int
        Number of draws.
    rng : numpy.random.Generator

    Returns
    -------
    (size,) int64
    """
    # An exponential variable of mean b rounded to the nearest integer: of mean 2b, rounded down, plus 1, halved.
    magnitude = (draw_geometric(2.0 * scale, size, rng=rng) + 1) >> 1
    return magnitude * (1 - 2 * rng.integers(2, size=size))


def draw_geometric(scale: float, size: int, *, rng: np.random.Generator) -> Integers:
    """Draw exponential variables of this mean, rounded down: P(at least k) = e^(−k/scale).

    Exact, from uniform integers (Canonne, Kamath and Steinke 2020, *The Discrete Gaussian for Differential Privacy*,
    algorithm 2): the scale is m/2^j with integers m < 2^53 and j. A variable of mean m is drawn as u + m·v, u below m
    accepted with probability e^(−u/m) and v the number of successes of probability 1/e before a failure; its quotient
    by 2^j is rounded down.

    Parameters
    ----------
    scale : float
        Above 0 and below 2^53, taken as exactly this double.
    size : int
        Number of draws.
    rng : numpy.random.Generator

    Returns
    -------
    (size,) int64
    """
    mantissa, exponent = math.frexp(scale)
    drawn = np.empty(size, dtype=np.int64)
    # About nine words are used per variable. If they do not suffice, everything is computed again with more words.
    words = rng.integers(WORDS, size=10 * size + 60)
    while not _fill(words, int(math.ldexp(mantissa, 53)), drawn):
        words = np.concatenate([words, rng.integers(WORDS, size=len(words))])
    # The variables are below 2^63 unless v exceeds 1,000, so that a shift by 63 leaves 0.
    return drawn >> min(53 - exponent, 63)


def draw_noise(noise: IntegerNoise, size: int, *, rng: np.random.Generator) -> Integers:
    """Draw integer noise without error (Canonne, Kamath and Steinke 2020, algorithms 2 and 3; `draw_polya`).

    Parameters
    ----------
    noise : IntegerNoise
        Its scale is taken as exactly this double.
    size : int
        Number of draws.
    rng : numpy.random.Generator

    Returns
    -------
    (size,) int64
    """
    if noise.kind == "discrete_laplace":
        return draw_laplace(noise.scale, size, rng=rng)
    if noise.kind == "polya":
        up, down = draw_polya(noise.scale, noise.honest, 2 * size, rng=rng).reshape(2, -1)
        return up - down
    sigma, whole = noise.scale, math.floor(noise.scale) + 1
    drawn, missing = np.empty(size, dtype=np.int64), np.arange(size)
    while len(missing):
        offered = draw_laplace(float(whole), len(missing), rng=rng)
        accepted = _accepted(offered, sigma, whole, rng=rng)
        drawn[missing[accepted]] = offered[accepted]
        missing = missing[~accepted]
    return drawn


def draw_laplace(scale: float, size: int, *, rng: np.random.Generator) -> Integers:
    """Draw the difference of two geometric variables, which is discrete Laplace noise."""
    return draw_geometric(scale, size, rng=rng) - draw_geometric(scale, size, rng=rng)


def draw_polya(scale: float, shares: int, size: int, *, rng: np.random.Generator) -> Integers:
    """Draw negative binomial variables of shape 1/h: the sum of h of them is geometric, as `draw_geometric` draws it.

    P(k) is in proportion to e^(−k/scale)·c_k with c_k = Π_{i ≤ k} (1 − (1 − 1/h)/i), which is at most 1. So a geometric
    variable is drawn and accepted with probability c_k. That is a rational number, and where a uniform number is too
    near to it for doubles, further bits of it are compared with the fraction.

    Parameters
    ----------
    scale : float
        Above 0, at most 1,000, taken as exactly this double.
    shares : int
        h, at least 1.
    size : int
        Number of draws.
    rng : numpy.random.Generator

    Returns
    -------
    (size,) int64
    """
    drawn, filled = np.empty(size, dtype=np.int64), 0
    # The share accepted is (1 − e^(−1/scale))^(1 − 1/h).
    offers = math.ceil((-math.expm1(-1.0 / scale)) ** (1.0 / shares - 1.0))
    while filled < size:
        offered = draw_geometric(scale, min(offers * (size - filled), MOST_OFFERED), rng=rng)
        chances = np.cumprod(1.0 - np.append(0.0, (1.0 - 1.0 / shares) / np.arange(1.0, offered.max() + 1.0)))[offered]
        words = rng.integers(WORDS, size=len(offered))
        accepted = words / float(WORDS) < chances
        for place in np.flatnonzero(np.abs(words / float(WORDS) - chances) < DOUBTFUL):
            steps = range(1, int(offered[place]) + 1)
            chance = math.prod((Fraction(shares * (i - 1) + 1, shares * i) for i in steps), start=Fraction(1))
            accepted[place] = is_below(int(words[place]), chance, rng=rng)
        taken = offered[accepted][: size - filled]
        drawn[filled : filled + len(taken)] = taken
        filled += len(taken)
    return drawn


def is_below(word: int, chance: Fraction, *, rng: np.random.Generator) -> bool:
    """Return whether a uniform number in [0, 1) is below a fraction; `word` has its first 63 bits."""
    bits = 63
    while math.floor(chance * 2**bits) == word:
        word, bits = word << 63 | int(rng.integers(WORDS)), bits + 63
    return bool(word < chance * 2**bits)


def _accepted(offered: Integers, sigma: float, whole: int, *, rng: np.random.Generator) -> Mask:
    """Accept each offered y with probability exactly e^(−γ), γ = (|y| − σ²/t)²/(2σ²)."""
    gamma = (np.abs(offered) - sigma * sigma / whole) ** 2 / (2.0 * sigma * sigma)
    words, chance = rng.integers(WORDS, size=len(offered)), np.exp(-gamma)
    uniform = words / float(WORDS)
    accepted = np.asarray(uniform < chance)
    for place in np.flatnonzero(np.abs(uniform - chance) < DOUBTFUL):
        square = Fraction(sigma) ** 2
        exponent = (abs(int(offered[place])) - square / whole) ** 2 / (2 * square)
        accepted[place] = is_below_exp(int(words[place]), exponent, rng=rng)
    return accepted


def is_below_exp(word: int, exponent: Fraction, *, rng: np.random.Generator) -> bool:
    """Return whether a uniform number in [0, 1) is below e^(−exponent); `word` has its first 63 bits.

    Further bits are drawn, and the power is computed with more digits, until the comparison is certain.
    """
    bits, digits = 63, 40
    while True:
        with localcontext() as context:
            context.prec = digits
            power = (-(Decimal(exponent.numerator) / Decimal(exponent.denominator))).exp()
            error = Decimal(10) ** (3 - digits) * (1 + int(exponent))
            low, high = Decimal(word) / 2**bits, Decimal(word + 1) / 2**bits
            if high < power - error:
                return True
            if low > power + error:
                return False
        word, bits, digits = word << 63 | int(rng.integers(WORDS)), bits + 63, digits + 20


@compiled
def _fill(words: Integers, whole: int, out: Integers) -> bool:
    """Fill `out` with exponential variables of mean `whole`, rounded down; return whether the words sufficed."""
    place = 0
    for i in range(len(out)):
        accepted, value = False, 0
        while not accepted and place <= len(words):
            value, place = _uniform(words, place, whole)
            accepted, place = _bernoulli_exp(words, place, value, whole)
        success = True
        while success and place <= len(words):
            success, place = _bernoulli_exp(words, place, whole, whole)
            value += whole * success
        if place > len(words):
            return False
        out[i] = value
    return True


@compiled
def _bernoulli_exp(words: Integers, place: int, numerator: int, denominator: int) -> tuple[bool, int]:
    """Return true with probability e^(−numerator/denominator), for a numerator up to the denominator.

    Canonne, Kamath and Steinke 2020, algorithm 1: of trials that succeed with probability γ, γ/2, γ/3… the first
    failure has an odd number with probability e^−γ.
    """
    trial, drawn = 0, 0
    while drawn < numerator or trial == 0:
        trial += 1
        drawn, place = _uniform(words, place, trial * denominator)
    return trial % 2 == 1, place


@compiled
def _uniform(words: Integers, place: int, bound: int) -> tuple[int, int]:
    """Return a uniform integer below `bound` from the words at `place` and after, and the place of the next word.

    Words beyond the last multiple of the bound are skipped. If no word is left, return the bound, which fails every
    trial, and a place past the end.
    """
    multiple = (2**63 - 1) // bound * bound
    while place < len(words):
        word = words[place]
        place += 1
        if word < multiple:
            return word % bound, place
    return bound, len(words) + 1

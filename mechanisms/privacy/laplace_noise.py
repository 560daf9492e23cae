"""Claims about Laplace noise: continuous with a fixed or a smooth scale, discrete, shared by devices, or on samples."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.parameter import ParameterError, check_epsilon
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.composition import ComposedDelta, composed
from mechanisms.privacy.hockey_stick import Pair, pair_delta
from mechanisms.privacy.integer_noise import PartialNoise, mass_ratios
from mechanisms.privacy.report_claims import mirror_claim
from mechanisms.privacy.subsampling import sample_privacy
from mechanisms.privacy.sum_laws import SummedCellLaw, moved_delta
from mechanisms.privacy.view import Adjacency


@dataclass(frozen=True, slots=True)
class SampledLaplaceDelta:
    """The exact δ(ε) of a sample's statistic under Laplace noise that is ε₀-private for the population.

    At n/N = 1 the pair is Lap(0, 1) and Lap(ε₀, 1), with δ = 1 − e^((ε−ε₀)/2). Where every other value is at a bound, a
    sample contains the changed value with probability q = n/N, and HDK theorem 1 holds with equality: δ is q times the
    δ above, at the sample's own ε. It rises with q.

    Parameters
    ----------
    epsilon : float
        ε₀ > 0.
    fraction : float
        q, in (0, 1].
    """

    epsilon: float
    fraction: float = 1.0

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if epsilon >= self.epsilon:
            return 0.0
        at, least = (sample_privacy(epsilon=each, share=self.fraction)[0] for each in (epsilon, self.epsilon))
        return self.fraction * -math.expm1((at - least) / 2.0)


# Number of ratios of two neighbours' scales at which δ is evaluated: over the range, then again around the maximum.
RATIOS = 129


def smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ with which a statistic plus Lap(2·S*_ξ/ε) is (ε, δ)-private.

    The published ξ = ε/(2 ln(2/δ)) (HDK sec 2.2; Nissim, Raskhodnikova and Smith 2007, lemma 2.6 and example 3) is
    returned as long as the δ of the worst pair of neighbours, which `SmoothNoiseDelta` gives exactly, is at most δ. For
    large ε it is greater; then the greatest ξ that keeps δ is returned. At δ = 1e-6 that begins at ε = 13.7. From
    ε = 41.4 on, two sets of values are known between which the published ξ violates δ.

    Parameters
    ----------
    epsilon : float
        ε > 0, finite.
    delta : float
        δ in (0, 1).

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    if not 0.0 < check_epsilon(epsilon) < math.inf:
        raise ParameterError("epsilon", "must be above 0 and finite", epsilon)
    if not 0.0 < delta < 1.0:
        raise ParameterError("delta", "must be above 0 and below 1", delta)
    # Up to ξ = ε/2 the loss of the narrower noise against the wider never exceeds ε: only the other direction counts.
    most = min(printed_smoothing(epsilon=epsilon, delta=delta), epsilon / 2)
    if tail_delta(epsilon=epsilon, xi=most) <= delta:
        return most
    from scipy.optimize import brentq  # noqa: PLC0415 - half a second, for noise of this kind only

    return float(
        brentq(lambda xi: tail_delta(epsilon=epsilon, xi=xi) / delta - 1.0, 1e-9 * most, most, xtol=1e-12 * most)
    )


def printed_smoothing(*, epsilon: float, delta: float) -> float:
    """Return ξ = ε/(2 ln(2/δ)) as published by HDK and by Nissim, Raskhodnikova and Smith."""
    return epsilon / (2.0 * math.log(2.0 / delta))


def tail_delta(*, epsilon: float, xi: float) -> float:
    """Return the exact δ(ε) of the worst pair of neighbours under Lap(2·S*_ξ/ε), for ξ ≤ ε/2.

    The S* of neighbours are within a factor e^ξ of each other, and their medians are no further apart than the smaller
    S*. The loss of the wider noise P = Lap(0, 1) against the narrower Q = Lap(e^−ξ·ε/2, e^−ξ) exceeds ε in the two
    tails only, from u = (ε/2 + ξ)/(e^ξ − 1) on one side and (3ε/2 + ξ)/(e^ξ − 1) on the other. There P − e^ε·Q
    integrates to ½(1 − e^−ξ)·e^−u. δ rises with ξ and with the distance of the centres, so this pair is the worst.
    """
    near, far = ((half * epsilon + xi) / math.expm1(xi) for half in (0.5, 1.5))
    return -0.5 * math.expm1(-xi) * (math.exp(-near) + math.exp(-far))


def laplace_pair_delta(log_ratio: ArrayLike, shift: ArrayLike, *, epsilon: float) -> Floats:
    """Return ∫ max(p − e^ε·q, 0) of P = Lap(0, 1) against Q = Lap(shift, e^log_ratio), in closed form.

    Parameters
    ----------
    log_ratio : (…) float
        ln of the scale of Q, in units of the scale of P.
    shift : (…) float
        Distance of the centres, at least 0, in units of P's scale.
    epsilon : float
        At least 0; infinity gives 0, as both densities are positive everywhere.

    Returns
    -------
    (…) float64
    """
    if math.isinf(check_epsilon(epsilon)):
        return np.zeros(np.broadcast_shapes(np.shape(log_ratio), np.shape(shift)))
    ratio, far = np.broadcast_arrays(np.asarray(log_ratio, dtype=np.float64), np.asarray(shift, dtype=np.float64))
    narrow = np.exp(-ratio)
    slope = np.expm1(-ratio)
    # The loss ln(p/q) is linear on each of three pieces: beyond P's centre, between the centres, beyond Q's.
    first = ratio + far * narrow
    between = np.clip((first - epsilon) / (1.0 + narrow), 0.0, far)
    p = -0.5 * np.expm1(-between)
    q = 0.5 * (np.exp(epsilon - (far - between) * narrow) - np.exp(epsilon - far * narrow))
    # Beyond either centre at distance u: P's density at `off` + u, Q's at `away` + u, and the loss start + slope·u.
    for off, away, start in ((np.zeros_like(far), far, first), (far, np.zeros_like(far), ratio - far)):
        crossing = np.where(slope != 0.0, (epsilon - start) / np.where(slope != 0.0, slope, 1.0), np.inf)
        inside = start > epsilon
        # Rising loss: from the crossing (or centre) on. Falling or level: from the centre to the crossing, if inside.
        begin = np.where(slope > 0.0, np.maximum(crossing, 0.0), 0.0)
        end = np.where(slope > 0.0, np.inf, np.where(inside, np.where(slope < 0.0, crossing, np.inf), 0.0))
        p = p + 0.5 * (np.exp(-off - begin) - np.exp(-off - end))
        q = q + 0.5 * (np.exp(epsilon - (away + begin) * narrow) - np.exp(epsilon - (away + end) * narrow))
    return np.asarray(np.maximum(p - q, 0.0))


@dataclass(frozen=True, slots=True)
class SmoothNoiseDelta:
    """A bound of δ(ε) of a statistic plus Lap(2·S*_ξ/ε₀), as a function of ε.

    For ε ≥ ε₀ and ξ ≤ ε₀/2 it is the closed form of the worst pair. Otherwise it is the greatest δ over the ratio of
    the two scales in e^(±ξ), found on a grid that is refined once.

    Parameters
    ----------
    noise_epsilon : float
        ε₀.
    xi : float
        ξ, above 0.
    """

    noise_epsilon: float
    xi: float

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        grid = np.linspace(-self.xi, self.xi, RATIOS)
        if epsilon >= self.noise_epsilon and self.xi <= self.noise_epsilon / 2:
            return float(self._at(grid[:1], epsilon)[0])
        best = int(self._at(grid, epsilon).argmax())
        fine = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, RATIOS - 1)], RATIOS)
        return float(self._at(fine, epsilon).max())

    def _at(self, log_ratio: Floats, epsilon: float) -> Floats:
        """Return δ for centres as far apart as the smaller S* allows."""
        return laplace_pair_delta(
            log_ratio, self.noise_epsilon / 2 * np.exp(np.minimum(log_ratio, 0.0)), epsilon=epsilon
        )


# Outputs beyond this are merged into one, to the disadvantage of the claim.
REACH = 200


@dataclass(frozen=True)
class PartialDelta:
    """A bound of δ(ε) for a change of one or two counts by 1 under less than whole noise, as a function of ε."""

    noise: PartialNoise
    counts: int
    queries: int

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        if self.queries == 1:
            p, q = _dominating_pair(self.noise)
            if self.counts == 2:
                p, q = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
            factor = math.exp(min(epsilon, 700.0))
            return math.fsum(np.maximum(p - factor * q, 0.0))
        return self.composed(epsilon)

    @property
    def composed(self) -> ComposedDelta:
        """The composition over the queries and, within each query, over the changed counts."""
        return ComposedDelta.from_pair(*_dominating_pair(self.noise), queries=self.counts * self.queries)


@lru_cache(maxsize=64)
def _dominating_pair(noise: PartialNoise) -> tuple[Floats, Floats]:
    """Return a pair that dominates f shifted by 1 against f, for r < 1, with each tail merged into one output.

    The likelihood ratio is at most f(REACH)/f(REACH + 1) in the upper tail and at most α in the lower tail. Each tail's
    mass under P gets the mass of Q that attains this ratio; the rest of Q goes to an output of mass 0 under P. The two
    directions are mirror images of each other.
    """
    f, rest = noise.masses(REACH + 2)
    body = np.concatenate([f[REACH - 1 :: -1][: REACH - 1], f[:REACH]])  # f at |k| = REACH − 1…1, 0, 1…REACH − 1
    further = rest + f[REACH + 1]  # Σ f(k), k > REACH
    beyond = further + f[REACH]  # Σ f(k), k ≥ REACH
    # k = −REACH + 1…REACH: P has f(k − 1), Q has f(k).
    p = np.concatenate([[f[REACH]], body])
    q = np.concatenate([body, [f[REACH]]])
    # Upper tail, k > REACH: P has Σ_{k ≥ REACH} f. Lower tail, k ≤ −REACH: P has Σ_{k > REACH} f.
    upper = min(further, beyond * mass_ratios(noise, REACH + 2)[0][REACH])
    lower = min(beyond, further * math.exp(noise.decay))
    p = np.concatenate([p, [beyond, further, 0.0]])
    q = np.concatenate([q, [upper, lower, max(0.0, further + beyond - upper - lower)]])
    return p / p.sum(), q / q.sum()


def noise_claim(noise: PartialNoise, *, cells: int, queries: int, source: str) -> Claim:
    """Return the claim of counts with this noise about one device that moves, all other devices known.

    A move between two cells changes two counts by 1 each, a move outside every cell changes one. The first bounds the
    second.

    Parameters
    ----------
    noise : PartialNoise
    cells : int
        V.
    queries : int
        T, with fresh noise in each.
    source : str
        The counts, for the basis; with their noise where that is less than the whole.

    Returns
    -------
    Claim
        Exact for whole noise, where a count reveals as much as a single randomized bit: ε is attained by both signs of
        the change. With less noise ε is exact and δ is a bound; with more noise both are bounds.
    """
    changed = min(2, cells)
    if noise.share >= 1.0:
        # f(k − 1)/f(k) is 1/α for k ≥ 1 and α elsewhere: P(k ≥ 1) = 1/(1 + α) for each changed count.
        claim = mirror_claim(
            distinguishing=(1.0 / (1.0 + math.exp(-noise.decay))) ** changed,
            epsilon=changed * noise.decay,
            queries=queries,
            source=f"{source}: discrete Laplace noise on each count; a move changes {changed} of the counts by 1",
        )
        if noise.share == 1.0:
            return claim
        return claim.as_bound("Noise of more than a whole share is the whole noise plus independent noise.")
    basis = (
        f"{source}; a move changes {changed} of its counts by 1; "
        "ε from its distribution at 0 and 1, where it reveals most, and δ bounded by it with the tails merged."
    )
    return Claim("exact", queries * changed * noise.epsilon, "bound", basis, PartialDelta(noise, changed, queries))


# A larger crowd reveals less; its claim is the claim of a crowd of this size.
LARGEST_CROWD = 1000


@dataclass(frozen=True)
class NoisySample:
    """Bin(n, β) plus discrete Laplace noise against Bin(n − 1, β) plus the same noise: one device there or outside.

    The noise is P(k) = α^|k|·(1 − α)/(1 + α).

    Parameters
    ----------
    crowd : int
        n, the device in question included.
    sampling : float
        β, in (0, 1].
    decay : float
        −ln α, the ε of the noise for a change of a count by 1.
    moves : bool
        Whether the device is in either of two cells with this crowd, instead of in one or outside.
    """

    crowd: int
    sampling: float
    decay: float
    moves: bool = False

    @cached_property
    def pair(self) -> Pair:
        """P (device there) and Q (outside), (n + 1,) float64 each: outputs up to 0, 1…n − 1, and from n on.

        At 0 and below, and at n and above, P/Q is constant, so merging these outputs loses nothing.
        """
        from scipy.signal import lfilter  # noqa: PLC0415 - a second, for this claim only
        from scipy.stats import binom  # noqa: PLC0415 - a second, for this claim only

        alpha = math.exp(-self.decay)
        gap = -math.expm1(-self.decay)
        missed, seen = 1.0 - self.sampling * gap, self.sampling + (1.0 - self.sampling) * alpha
        laws = []
        for drawn, far in ((self.crowd, 1.0), (self.crowd - 1, alpha)):
            masses = binom.pmf(np.arange(self.crowd + 1), drawn, self.sampling)
            # Σ α^|k − s|·P(s), from s ≤ k and from s > k.
            up = lfilter([1.0], [1.0, -alpha], masses)
            down = lfilter([1.0], [1.0, -alpha], masses[::-1])[::-1] - masses
            middle = (up + down)[1 : self.crowd] * gap / (1.0 + alpha)
            law = np.concatenate([[missed**drawn / (1.0 + alpha)], middle, [far * seen**drawn / (1.0 + alpha)]])
            laws.append(law / law.sum())
        return laws[0], laws[1]

    def __call__(self, epsilon: float) -> float:
        """Return the exact δ(ε) of one query, the larger of both directions."""
        if not self.moves:
            return pair_delta(*self.pair, epsilon=epsilon)
        present, absent = (masses[(self.pair[0] > 0.0) & (self.pair[1] > 0.0)] for masses in self.pair)
        law = SummedCellLaw(present, absent)
        return moved_delta(law, law, epsilon)


def noisy_sample_claim(
    *,
    crowd: int | None,
    sampling: float,
    epsilon: float,
    queries: int,
    source: str,
    adjacency: Adjacency = "enter_leave",
) -> Claim:
    """Return the claim of noisy counts of sampled devices about one device, all others known.

    Parameters
    ----------
    crowd : int, optional
        Devices in the cell, the device in question included, for a move in each of the two cells. By default any
        number; alone, the device is revealed most.
    sampling : float
        β.
    epsilon : float
        ε of one query; the noise on the sample's counts has ln(1 + (e^ε − 1)/β).
    queries : int
        T, each with a fresh sample, fresh noise and this crowd.
    source : str
        What is released, for the basis.
    adjacency : {"enter_leave", "move"}
        The change of one device that the claim hides.

    Returns
    -------
    Claim
        ε is attained at every crowd: T times the ε of one query. δ is exact over one query, or without sampling up to
        4,096 changed counts; otherwise it is a bound.
    """
    decay, _ = sample_privacy(epsilon=epsilon, share=sampling)
    moves = adjacency == "move"
    counts = 2 * queries if moves else queries
    if sampling == 1.0:
        # One count reveals as much as a randomized bit, and the two counts of a move as two independent ones.
        claim = mirror_claim(distinguishing=1.0 / (1.0 + math.exp(-decay)), epsilon=decay, queries=counts, source="-")
        over = (
            "" if queries == 1 else f"; over T queries T times the ε of one, attained, {counts} changed counts in all"
        )
        return replace(claim, basis=f"{source}; a changed count reveals as much as a randomized bit{over}.")
    used = 1 if crowd is None else min(crowd, LARGEST_CROWD)
    noisy = NoisySample(used, sampling, decay, moves)
    if moves:
        epsilon -= math.log1p(sampling * math.expm1(-decay))  # a device less: at most 1/(1 − β(1 − α)) times as likely
    basis = f"{source}; β = {sampling:g} of the devices, drawn one by one (LQS theorem 1, attained)"
    basis += ", the worst case is a device alone in its cell" if crowd is None else f", {crowd:,} in the cell"
    if crowd is not None and crowd > used:
        basis += f", claimed for as {used:,}"
    if queries == 1:
        kind: Claim = Claim.exact(epsilon, noisy, f"{basis}.")
        if crowd is None or crowd == used:
            return kind
        return Claim("exact", epsilon, "bound", f"{basis}.", noisy)
    basis += "; over T queries T·ε, attained, and δ by composing the pair that dominates both directions"
    return Claim("exact", queries * epsilon, "bound", f"{basis}.", composed(noisy, queries, limit=epsilon))

"""Claims about shuffled reports of one round: by clones, by the privacy blanket, and exactly for three answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import compiled
from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, mass_up_to, window
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, LARGEST_EPSILON, ConstantDelta, PrivacyClaim
from mechanisms.privacy.view import Shuffled

# Most numbers of clones evaluated one by one; a wider window is cut into this many runs of neighbouring numbers.
LARGEST_SUM = 2**13


@dataclass(frozen=True)
class ClonesDelta:
    """A bound of δ(ε) of the shuffled reports of an ε₀-LDP randomizer, as a function of ε.

    Feldman, McMillan and Talwar 2021, *Hiding Among the Clones*, theorem 3.1: with probability e^−ε₀ another device's
    report is a clone of the report in question, drawn from either of its two distributions with ½. Given that there are
    M ~ Bin(n − 1, e^−ε₀) clones, the observation is A ~ Bin(M, ½) plus a Bernoulli draw of probability x under one
    hypothesis and 1 − x under the other, x = e^ε₀/(e^ε₀ + 1). The two hypotheses mirror each other, so both directions
    have the same δ.

    Parameters
    ----------
    devices : int
        n.
    epsilon : float
        ε₀ of one report, at δ = 0; finite.
    queries : int
        T queries, each with fresh randomness: T·δ(ε/T), by basic composition.
    """

    devices: int
    epsilon: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, including the mass that the window over M leaves out, at most 1e-30.

        One more clone never increases δ, so the first M of a run of neighbouring numbers bounds the others. With a
        window of more than 8,192 values this adds less than a hundred-thousandth of δ.
        """
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_EPSILON)
        first, masses = window(self.devices - 1, math.exp(-self.epsilon))
        left_out = LEFT_OUT if len(masses) < self.devices else 0.0
        starts = np.arange(0, len(masses), -(-len(masses) // LARGEST_SUM))
        delta = self.delta_among(first + starts, epsilon)
        return min(1.0, self.queries * (float(np.add.reduceat(masses, starts) @ delta) + left_out))

    def delta_among(self, clones: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
        """Return δ of one query given the number of clones M.

        The likelihood ratio of A = a rises with a. With y = 1 − x the first hypothesis is more likely by a factor above
        e^ε from a = τ on,

        τ = ⌊(M + 1)·c/((x − y)(1 + e^ε))⌋ + 1,   c = (x − y) + (e^ε − 1)x,

        and δ = (x − e^ε·y)·P[Bin(M, ½) = τ − 1] − (e^ε − 1)·P[Bin(M, ½) ≥ τ]. x − y is computed as tanh(ε₀/2), because
        the subtraction would lose the digits of a small ε₀.

        Parameters
        ----------
        clones : (…) int64
            M, at least 0.
        epsilon : float
            At least 0, at most 700.

        Returns
        -------
        (…) float64
        """
        apart = math.tanh(self.epsilon / 2.0)
        towards = 1.0 / (1.0 + math.exp(-self.epsilon))
        away = math.exp(-self.epsilon) * towards
        growth = math.expm1(epsilon)
        gain = apart - growth * away
        if gain <= 0.0:
            return np.zeros(clones.shape)
        share = (apart + growth * towards) / (apart * (2.0 + growth))
        last = np.minimum(np.floor((clones + 1) * share), clones)
        delta = gain * mass_at(last, clones, 0.5) - growth * mass_above(last, clones, 0.5)
        return np.maximum(delta, 0.0)


# Pairs (M, b) summed one by one, in about 30 ms. For more pairs, neighbouring M are merged into runs, at least so many.
LARGEST_PAIR_SUM = 2**21
LEAST_RUNS = 4
# Tails of a below this are left out; they are far below what the windows leave out.
LEAST_TAIL = 1e-60


@dataclass(frozen=True)
class BlanketDelta:
    """A bound of δ(ε) of shuffled reports, each of them the truth with π_s and otherwise a blank drawn from b.

    Suppose that the adversary sees which other devices are sampled; their values are known and can be removed. There
    remain the blanks of M ~ Bin(n − 1, 1 − π_s) devices and the device's own report. Of m = M + 1 draws from b, let a
    draws give t and b draws give t'. With respect to those draws, the two truths t and t' have the densities

    (1 − π_s) + π_s·a/(m·b_t),   (1 − π_s) + π_s·b/(m·b_t'),

    so δ is the mean of the positive part of a function linear in a and b. Over a, given b, it is a partial mean of a
    binomial distribution; over b and M it is a sum. (Balle, Bell, Gascón and Nissim 2019 bound that mean; here it is
    computed.) If all other devices have truths
    other than t and t', the histogram reveals exactly this, apart from M.

    Parameters
    ----------
    devices : int
        n.
    sampling, unsampled : float
        π_s and 1 − π_s, in (0, 1); each at full precision, which a subtraction would lose.
    blank, other_blank : float
        b_t and b_t', above 0.
    queries : int
        T: by basic composition, T·δ(ε/T).
    pairs : int
        Pairs (m, b) that are summed one by one (`positive_mean`).
    """

    devices: int
    sampling: float
    unsampled: float
    blank: float
    other_blank: float
    queries: int = 1
    pairs: int = LARGEST_PAIR_SUM

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, the larger of both directions."""
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_CROWD_EPSILON)
        pairs = {(self.blank, self.other_blank), (self.other_blank, self.blank)}
        return min(1.0, self.queries * max(self._direction(one, other, epsilon) for one, other in pairs))

    def _direction(self, one: float, other: float, epsilon: float) -> float:
        """Return the hockey-stick divergence of the truth with blank `one` against the truth with blank `other`."""
        rise, fall = self.sampling / one, math.exp(epsilon) * self.sampling / other
        level = self.unsampled * math.expm1(epsilon)
        return positive_mean(
            self.devices, self.unsampled, one, other, rise=rise, fall=fall, level=level, pairs=self.pairs
        )


@dataclass(frozen=True)
class VariationRatioDelta:
    """A bound of δ(ε) of shuffled reports from the greatest ratio of a report's two distributions, and their distance.

    Stronger clones (Feldman, McMillan and Talwar 2023) and the variation-ratio reduction (Wang et al. 2024) write the
    two distributions of the report in question, P and Q, as mixtures of three parts: one that is p times as likely
    under P, one that is p times as likely under Q, and a rest that is equally likely under both. Where P > Q only the
    first part and the rest contribute, and where Q > P only the second and the rest (`split_pair`). If the report of
    any other device gives every output at least max(P, Q)/q of its probability, then it is drawn from the three parts
    with 1/q of their greatest probabilities, whatever its truth, and otherwise from something that can be revealed. The
    numbers a, b and c of draws from the three parts, the device's own included, determine all that the reports reveal
    about it. Given a + b + c = m, the densities of P and Q with respect to m independent draws are in proportion to
    m − (1 − 1/p)·b and m − (1 − 1/p)·a.

    The published reduction lets only draws from the first two parts hide the device, and counts a draw from the rest
    as one more of the other reports. That is not a bound in general, as enumeration shows: the rest of the device is
    not distributed as the rest of the others is. For 3-ary randomized response with ε₀ = 1 and three devices, the
    reduction gives .0676 at ε = .6, where δ is .0735. With many devices the two agree closely.

    Parameters
    ----------
    devices : int
        n.
    ratio : float
        p, above 1; may be infinite.
    up, down : float
        Probability of the first part under P, and of the second under Q.
    rest : float
        Probability of the rest, under both.
    cover : float
        q, at least 1.
    apart, other_apart : float
        Mass of P, and of Q, on outputs that only this one of them gives.
    queries : int
        T: by basic composition, T·δ(ε/T).
    pairs : int
        Pairs (m, b) that are summed one by one (`positive_mean`).
    """

    devices: int
    ratio: float
    up: float
    down: float
    rest: float
    cover: float
    apart: float = 0.0
    other_apart: float = 0.0
    queries: int = 1
    pairs: int = LARGEST_PAIR_SUM

    @property
    def distance(self) -> float:
        """Total variation distance of P and Q, which is δ at ε = 0."""
        return self.up * (1.0 - 1.0 / self.ratio) + self.apart

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, the larger of both directions."""
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_CROWD_EPSILON)
        sides = {(self.up, self.down, self.apart), (self.down, self.up, self.other_apart)}
        return min(1.0, self.queries * max(self._direction(*side, epsilon) for side in sides))

    def _direction(self, up: float, down: float, apart: float, epsilon: float) -> float:
        """Return the bound of the hockey-stick divergence of the distribution with more of the part `up`."""
        if epsilon >= math.log(self.ratio) or up == 0.0:
            return apart
        total = up + down + self.rest
        fall = total * (1.0 - 1.0 / self.ratio)
        rise, level = fall * math.exp(epsilon), total * math.expm1(epsilon)
        share = total / self.cover
        return apart + positive_mean(
            self.devices, share, up / total, down / total, rise=rise, fall=fall, level=level, pairs=self.pairs
        )


def split_pair(
    p: NDArray[np.float64], q: NDArray[np.float64], others: NDArray[np.float64], devices: int, queries: int = 1
) -> VariationRatioDelta:
    """Return the bound for shuffled reports of which one has the distribution p or q.

    Outputs that only one of the two gives are revealed. At any other output y the first part has
    (p(y) − q(y))/(1 − 1/r), if that is positive, where r is the greatest ratio of the two.

    Parameters
    ----------
    p, q : (outputs,) float64
        The distributions of the device's report under the two hypotheses.
    others : (truths, outputs) float64
        The distributions of any other device's report, for every truth that it may have.
    devices : int
        n.
    queries : int
        T.
    """
    shared = (p > 0.0) & (q > 0.0)
    more, less = p[shared], q[shared]
    greatest = np.maximum(more, less)
    ratio = float((greatest / np.minimum(more, less)).max(initial=1.0))
    up, down = (
        float(np.maximum(gap, 0.0).sum()) / (1.0 - 1.0 / ratio) if ratio > 1.0 else 0.0
        for gap in (more - less, less - more)
    )
    return VariationRatioDelta(
        devices=devices,
        ratio=ratio,
        up=up,
        down=down,
        rest=max(0.0, float(greatest.sum()) - up - down),
        cover=float((greatest / np.maximum(others[:, shared], LEAST_TAIL)).max(initial=1.0)),
        apart=float(p[~shared].sum()),
        other_apart=float(q[~shared].sum()),
        queries=queries,
    )


@lru_cache(maxsize=1024)
def positive_mean(
    devices: int,
    share: float,
    one: float,
    other: float,
    *,
    rise: float,
    fall: float,
    level: float,
    pairs: int = LARGEST_PAIR_SUM,
) -> float:
    """Return a bound of E[(rise·a − fall·b − level·m)₊/m], over the draws of n devices from three parts.

    The device in question is one draw and each of the n − 1 others is one with probability `share`, so that m − 1 ~
    Bin(n − 1, share). A draw gives a with probability `one` and b with probability `other`. Over a, given b, the
    expression is a partial mean of a binomial distribution; over b and m it is a sum.

    One more draw of another device never increases a divergence, so the first of a run of neighbouring m bounds the
    others. Large windows are cut into as many runs as some milliseconds of computation allow.

    Parameters
    ----------
    devices : int
        n.
    share : float
        Probability that another device's report is a draw.
    one, other : float
        Probabilities of a and b, above 0; their sum is at most 1.
    rise, fall, level : float
        Above 0, at least 0 and at least 0.
    pairs : int
        Pairs (m, b) that are summed one by one. For more, neighbouring m are merged into runs.
    """
    first, masses = window(devices - 1, share)
    # The values of b to sum over, for any of these numbers of draws, are low…low + width − 1.
    low, _ = window(first + 1, other)
    high, last_masses = window(first + len(masses), other)
    width = high + len(last_masses) - low
    runs = max(pairs // width, LEAST_RUNS)
    starts = np.arange(0, len(masses), -(-len(masses) // runs))
    draws = np.asarray(first + 1 + starts, dtype=np.float64)
    p = min(one / (1.0 - other), 1.0)
    # a contributes from t + 1 on, t = start + climb·b.
    start, climb = draws * level / rise, fall / rise
    last = _last_outcome(draws, low, low + width - 1, start, climb, p)
    left = draws - last
    t = np.floor(start + climb * last)
    by_draws = _partial_means(
        draws,
        low,
        last,
        mass_at(last, draws, other),
        mass_at(t, left - 1.0, p),
        mass_above(t, left - 1.0, p),
        np.array([rise, fall, level, other, p]),
        start,
    )
    left_out = 10.0 * LEFT_OUT if width <= devices or len(masses) < devices else 0.0
    return float(np.add.reduceat(masses, starts) @ by_draws) + left_out


def _last_outcome(
    draws: NDArray[np.float64], low: int, high: int, start: NDArray[np.float64], rise: float, p: float
) -> NDArray[np.float64]:
    """Return, for each m, the largest b in low…high at which P[a > t(b)] is not negligible, by bisection; at least low.

    The probability falls with b, since fewer draws are left and t rises.
    """
    below, above = np.full(draws.shape, float(low)), np.minimum(draws, float(high)) + 1.0
    while (above - below > 1.0).any():
        b = np.floor((below + above) / 2.0)
        left = draws - b
        enough = (left > 0.0) & (mass_above(np.floor(start + rise * b) - 1.0, left - 1.0, p) > LEAST_TAIL)
        below, above = np.where(enough, b, below), np.where(enough, above, b)
    return below


@compiled
def _partial_means(
    draws: NDArray[np.float64],
    low: int,
    last: NDArray[np.float64],
    mass_last: NDArray[np.float64],
    mass_t: NDArray[np.float64],
    tail_t: NDArray[np.float64],
    numbers: NDArray[np.float64],
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return Σ_b P[b]·E[(rise·a − fall·b − level·m)₊ | b]/m for each m, downwards from the last b not negligible.

    On the way down, every update of the tail P[Bin(N, p) > t] adds a mass: N rises with P[N + 1 draws > t] = P[N > t] +
    p·P[N = t], and t falls. So nothing cancels, and a pair (m, b) costs about twenty operations.
    """
    rise, fall, level, other, p = numbers
    climb = fall / rise
    sums = np.zeros(len(draws))
    for i in range(len(draws)):
        m, b = draws[i], last[i]
        slope = rise / m
        t = np.floor(start[i] + climb * b)
        mass_b, mass, tail = mass_last[i], mass_t[i], tail_t[i]
        while True:
            left = m - b
            rest = -level - fall * b / m
            if p >= 1.0:
                gain = slope * left + rest
            else:
                # E[(slope·a + rest) 1{a > t}] for a ~ Bin(left, p), without the cancellation of its two parts.
                gain = (slope * left * p + rest) * tail + (slope * left + rest) * p * mass
            if gain > 0.0:
                sums[i] += mass_b * gain
            if b <= low:
                break
            mass_b *= b / (m - b + 1.0) * (1.0 - other) / other
            b -= 1.0
            if p < 1.0:
                n = left  # m − b − 1 for the new b
                tail += p * mass
                mass *= n / (n - t) * (1.0 - p) if t < n else 0.0
                below = np.floor(start[i] + climb * b)
                while t > below:
                    tail += mass
                    mass *= t / (n - t + 1.0) * (1.0 - p) / p
                    t -= 1.0
    return sums


@dataclass(frozen=True)
class AmplifiedDelta:
    """The least of two or three bounds of δ(ε): those of the shuffled reports, and that of the device's own reports.

    Shuffling is a post-processing of the reports in order, so the last bounds it too.

    Parameters
    ----------
    shuffled : callable
        δ of the shuffled reports as a function of ε, from the reports of the other devices.
    local : PrivacyClaim
        Of the device's own reports over all the queries.
    stronger : callable, optional
        Another bound of the shuffled reports.
    """

    shuffled: Callable[[float], float]
    local: PrivacyClaim
    stronger: Callable[[float], float] | None = None

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        bounds = [self.shuffled(epsilon), self.local.delta(epsilon)]
        if self.stronger is not None:
            bounds.append(self.stronger(epsilon))
        return min(bound for bound in bounds if not math.isnan(bound))


def shuffled_claim(
    view: Shuffled,
    *,
    local: PrivacyClaim,
    single: PrivacyClaim | None = None,
    stronger: VariationRatioDelta | None = None,
) -> PrivacyClaim:
    """Return the claim of one round's shuffled reports that follows from the local ε₀ (`ClonesDelta`).

    Where the distributions of a report are known in more detail, the bound `stronger` is used where it is less.

    Over T queries there are two cases. Where the randomness is fresh in every query, the T shufflings are independent
    releases and their δ compose: T·δ(ε/T) with the ε₀ of one report. Where devices keep randomness between queries,
    such as memoised bits, a device's T reports depend on each other, and so do those of the devices that hide it:
    nothing composes. Then the T reports are taken as one report of a randomizer whose input is the device's journey
    (its cells at the T queries) and whose ε₀ is that of all T reports together. Devices keep their randomness
    independently of each other, and shuffling each query by itself is a post-processing of shuffling those joint
    reports once, so the bound for one query holds with that ε₀.

    Parameters
    ----------
    view : Shuffled
        The devices, the same in every query, and the queries.
    local : PrivacyClaim
        Of one device's reports of the round over all the view's queries.
    single : PrivacyClaim, optional
        The same over one query, where the randomness is fresh in every query. None where randomness is kept.
    stronger : VariationRatioDelta, optional
        A bound of the shuffled reports over all the view's queries, for reports with fresh randomness.

    Returns
    -------
    PrivacyClaim
        A bound; exactly 0 where a report reveals nothing; unknown where no finite ε₀ is known.
    """
    start = local if single is None else single
    if start.epsilon == 0.0:
        return PrivacyClaim.exact(
            0.0, ConstantDelta(0.0), "Each report reveals nothing, so all of them reveal nothing."
        )
    if not math.isfinite(start.epsilon):
        return PrivacyClaim.unknown(
            "Amplification by shuffling starts from a finite local ε, and none is proved for one report of this "
            "round; its own δ bounds what a shuffler reveals."
        )
    if view.queries == 1:
        over = ""
    elif single is None:
        over = f"; the {view.queries} reports of a device count as one, because it keeps randomness between queries"
    else:
        over = "; over T queries T·δ(ε/T)"
    clones = ClonesDelta(view.devices, start.epsilon, 1 if single is None else view.queries)
    basis = (
        f"Hiding among the clones (Feldman, McMillan and Talwar 2021): the exact δ of its dominating pair for any "
        f"randomizer of ε₀ = {start.epsilon:.4g}, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    if stronger is not None:
        basis = (
            "Stronger clones (Feldman, McMillan and Talwar 2023; Wang et al. 2024, with the rest of a report hidden by "
            f"the others' own): ε₀ = {start.epsilon:.4g}, δ(0) = {stronger.distance:.4g}, {view.devices} devices "
            "shuffled; at δ = 0 no better than unshuffled"
        )
    return PrivacyClaim.bound(local.epsilon, AmplifiedDelta(clones, local, stronger), f"{basis}{over}.")


def shuffled_value_claim(
    view: Shuffled, *, sampling: float, blanks: NDArray[np.float64], local: PrivacyClaim
) -> PrivacyClaim:
    """Return the claim of shuffled reports that give the truth with π_s, otherwise a blank, drawn anew in each query.

    The privacy blanket (`BlanketDelta`): unsampled devices answer without their truth, and their blanks hide the
    device's own report. k-ary randomized response has this form, with equal blanks. The worst two truths are those with
    the two least likely blanks: the fewer blanks equal a truth, the less they hide a report of it.

    Parameters
    ----------
    view : Shuffled
        The devices and the queries.
    sampling : float
        π_s.
    blanks : (values,) float64
        π_0…π_V, of every truth a device may have; at least two. Their sum is 1 − π_s, at a precision that a subtraction
        of a π_s near 1 would lose.
    local : PrivacyClaim
        Of one device's reports of the round over all the view's queries.

    Returns
    -------
    PrivacyClaim
        A bound. Exact where some value is never a blank: no finite ε holds, and δ = π_s.
    """
    least, second = (float(p) for p in np.partition(blanks, 1)[:2])
    if least == 0.0:
        delta = -math.expm1(view.queries * math.log1p(-sampling)) if sampling < 1.0 else 1.0
        basis = (
            "Some value is reported by its own devices only, and shuffling does not hide that it was; all but π_s of a "
            "report's distribution is the same for any truth; over T queries δ = 1 − (1 − π_s)^T."
        )
        return PrivacyClaim.exact(math.inf, ConstantDelta(delta), basis)
    unsampled = float(blanks.sum())
    blanket = BlanketDelta(view.devices, sampling, unsampled, least / unsampled, second / unsampled, view.queries)
    basis = (
        "Privacy blanket (Balle, Bell, Gascón and Nissim 2019): the exact δ of one report among the others' blanks for "
        f"the two rarest values, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    over = "" if view.queries == 1 else "; over T queries the smaller of T·δ(ε/T) and the unshuffled δ"
    return PrivacyClaim.bound(local.epsilon, AmplifiedDelta(blanket, local), f"{basis}{over}.")


@dataclass(frozen=True)
class CrowdRatioDelta:
    """δ(ε) of the numbers of n devices that answer up, still or otherwise; one device may be elsewhere instead.

    Each device of the crowd answers up with u, still with s and otherwise with the rest. If the device in question is
    elsewhere, it answers up with αu and still with γs, α < 1 ≤ γ, and otherwise with the same probability. The
    counts (a, b, n − a − b) are trinomial if the device is in the crowd. If it is elsewhere, the ratio of their
    probability to that of the trinomial distribution is

    (α·a + γ·b + (n − a − b))/n = 1 − ((1 − α)a − (γ − 1)b)/n.

    Both hockey-stick divergences are the means of a positive part linear in a. Over a, given b,
    it is a partial mean of a binomial distribution; over b it is a sum.

    Parameters
    ----------
    crowd : int
        n.
    up, still : float
        u, above 0, and s.
    up_ratio, still_ratio : float
        α and γ.
    apart : float
        Probability that the device, if elsewhere, gives an answer that no device there ever gives: γs where s = 0.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    crowd: int
    up: float
    still: float
    up_ratio: float
    still_ratio: float
    apart: float = 0.0
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return δ for one query, accurate to 1e-15 and at least uⁿ where α = 0; a bound for more queries."""
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_CROWD_EPSILON)
        n, factor = self.crowd, math.exp(epsilon)
        first, masses = window(n, self.still)
        b = np.arange(first, first + len(masses), dtype=np.float64)
        others, p = n - b, min(self.up / (1.0 - self.still), 1.0)
        fewer, fall = np.maximum(others - 1.0, 0.0), 1.0 - self.up_ratio
        level = n + (self.still_ratio - 1.0) * b  # n times the density at a = 0
        # Elsewhere: E[(level − n·e^ε − fall·a) 1{a ≤ t}] given b.
        margin = level - n * factor
        t = np.ceil(margin / fall) - 1.0
        gain = (margin - fall * others * p) * mass_up_to(t - 1.0, fewer, p) + margin * (1.0 - p) * mass_at(t, fewer, p)
        elsewhere = float(masses @ np.maximum(np.where(others > 0.0, gain, margin), 0.0)) / n + self.apart
        # There: E[(n − e^ε·level + e^ε·fall·a) 1{a ≥ t + 1}] given b.
        margin, rise = n - factor * level, factor * fall
        t = np.floor(-margin / rise)
        gain = (margin + rise * others * p) * mass_above(t, fewer, p) + (margin + rise * others) * p * mass_at(
            t, fewer, p
        )
        there = float(masses @ np.maximum(gain, 0.0)) / n
        certain = self.up**n if self.up_ratio == 0.0 else 0.0
        return min(1.0, self.queries * max(elsewhere, there, certain))

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0: the density is α where all answer up, γ where all answer still."""
        if self.up_ratio == 0.0 or self.apart > 0.0:
            return math.inf
        return self.queries * max(-math.log(self.up_ratio), math.log(self.still_ratio))

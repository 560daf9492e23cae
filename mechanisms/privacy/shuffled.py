"""Claims about shuffled reports of one round: by clones, by the privacy blanket, and exactly for three answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, mass_up_to, run_starts, window
from mechanisms.privacy.blanket import BlanketDelta, VariationRatioDelta, pairs_over
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, LARGEST_EPSILON, Claim, ConstantDelta
from mechanisms.privacy.composition import COMPOSED, at_least_once, composed
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import Shuffled

# Most numbers of clones evaluated one by one; a wider window is cut into this many runs of neighbouring numbers.
LARGEST_SUM = 2**13
# The same for a curve that is composed over queries, and so is evaluated a hundred times.
COMPOSED_SUM = 2**9


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
    runs : int
        Most numbers of clones that are evaluated one by one.
    """

    devices: int
    epsilon: float
    runs: int = LARGEST_SUM

    @classmethod
    def over(cls, queries: int, devices: int, epsilon: float) -> "ClonesDelta":
        """Return the curve of one of T queries."""
        return cls(devices, epsilon) if queries == 1 else cls(devices, epsilon, COMPOSED_SUM)

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, including the mass that the window over M leaves out, at most 1e-30.

        One more clone never increases δ, so the first M of a run of neighbouring numbers bounds the others. With a
        window of more than 8,192 values this adds less than a hundred-thousandth of δ.
        """
        return float(self.each(np.array([min(check_epsilon(epsilon), LARGEST_EPSILON)]))[0])

    def each(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bound at each ε."""
        first, masses = window(self.devices - 1, math.exp(-self.epsilon))
        left_out = LEFT_OUT if len(masses) < self.devices else 0.0
        starts = run_starts(masses, self.runs)
        shares = np.add.reduceat(masses, starts)
        return np.minimum(1.0, self.delta_among(first + starts, epsilons[:, np.newaxis]) @ shares + left_out)

    def delta_among(self, clones: NDArray[np.int64], epsilon: ArrayLike) -> NDArray[np.float64]:
        """Return δ given the number of clones M.

        The likelihood ratio of A = a rises with a. With y = 1 − x the first hypothesis is more likely by a factor above
        e^ε from a = τ on,

        τ = ⌊(M + 1)·c/((x − y)(1 + e^ε))⌋ + 1,   c = (x − y) + (e^ε − 1)x,

        and δ = (x − e^ε·y)·P[Bin(M, ½) = τ − 1] − (e^ε − 1)·P[Bin(M, ½) ≥ τ]. x − y is computed as tanh(ε₀/2), because
        the subtraction would lose the digits of a small ε₀.

        Parameters
        ----------
        clones : (…) int64
            M, at least 0.
        epsilon : float or (…) float64
            At least 0, at most 700.

        Returns
        -------
        (…) float64
            Of the common shape.
        """
        apart = math.tanh(self.epsilon / 2.0)
        towards = 1.0 / (1.0 + math.exp(-self.epsilon))
        away = math.exp(-self.epsilon) * towards
        growth = np.expm1(epsilon)
        gain = apart - growth * away
        share = (apart + growth * towards) / (apart * (2.0 + growth))
        last = np.minimum(np.floor((clones + 1) * share), clones)
        delta = gain * mass_at(last, clones, 0.5) - growth * mass_above(last, clones, 0.5)
        return np.where(gain > 0.0, np.maximum(delta, 0.0), 0.0)


@dataclass(frozen=True)
class AmplifiedDelta:
    """The least of two or three bounds of δ(ε): bounds of the shuffled reports, and of the device's own reports.

    Shuffling is a post-processing of the reports in order, so the last bounds it too.

    Parameters
    ----------
    shuffled : callable
        δ of the shuffled reports as a function of ε, from the reports of the other devices.
    local : Claim
        Of the device's own reports over all the queries.
    stronger : callable, optional
        Another bound of the shuffled reports.
    """

    shuffled: Callable[[float], float]
    local: Claim
    stronger: Callable[[float], float] | None = None

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        bounds = [self.shuffled(epsilon), self.local.delta(epsilon)]
        if self.stronger is not None:
            bounds.append(self.stronger(epsilon))
        return min(bound for bound in bounds if not math.isnan(bound))


def shuffled_claim(
    view: Shuffled, *, local: Claim, single: Claim | None = None, stronger: VariationRatioDelta | None = None
) -> Claim:
    """Return the claim of one round's shuffled reports that follows from the local ε₀ (`ClonesDelta`).

    Where the distributions of a report are known in more detail, the bound `stronger` is used where it is less.

    Over T queries there are two cases. Where the randomness is fresh in every query, the T shufflings are independent
    releases and compose (`composed`), with the ε₀ of one report. Where devices keep randomness between queries,
    such as memoised bits, a device's T reports depend on each other, and so do the reports of the devices that hide it:
    nothing composes. Then the T reports are taken as one report of a randomizer whose input is the device's journey
    (its cells at the T queries) and whose ε₀ is the ε of all T reports together. Devices keep their randomness
    independently of each other, and shuffling each query by itself is a post-processing of shuffling those joint
    reports once, so the bound for one query holds with that ε₀.

    Parameters
    ----------
    view : Shuffled
        The devices, the same in every query, and the queries.
    local : Claim
        Of one device's reports of the round over all the view's queries; for a move, if `single` is not given.
    single : Claim, optional
        For one query and a move, where the randomness is fresh in every query. None where randomness is kept. Whatever
        the view's adjacency, the reports that hide the device's come from any cells, so ε₀ is the ε of a move.
    stronger : VariationRatioDelta, optional
        A bound of the shuffled reports of one query, for reports with fresh randomness.

    Returns
    -------
    Claim
        A bound; exactly 0 where a report reveals nothing; unknown where no finite ε₀ is known.
    """
    start = local if single is None else single
    if start.epsilon == 0.0:
        return Claim.exact(0.0, ConstantDelta(0.0), "Each report reveals nothing, so all of them reveal nothing.")
    if not math.isfinite(start.epsilon):
        return Claim.unknown(
            "Amplification by shuffling starts from a finite local ε, and none is proved for one report of this "
            "round; its own δ bounds what a shuffler reveals."
        )
    if view.queries == 1:
        over = ""
    elif single is None:
        over = f"; the {view.queries} reports of a device count as one, because it keeps randomness between queries"
    else:
        over = COMPOSED
    fresh = 1 if single is None else view.queries
    clones = composed(ClonesDelta.over(fresh, view.devices, start.epsilon), fresh, limit=start.epsilon)
    tighter = None if stronger is None else composed(stronger, fresh, limit=start.epsilon)
    basis = (
        f"Hiding among the clones (Feldman, McMillan and Talwar 2021): the exact δ of its dominating pair for any "
        f"randomizer of ε₀ = {rounded_up(start.epsilon, 4)}, {view.devices} devices shuffled; at δ = 0 no "
        "better than unshuffled"
    )
    if stronger is not None:
        basis = (
            "Stronger clones (Feldman, McMillan and Talwar 2023; Wang et al. 2024, with the rest of a report hidden by "
            f"the others' own): ε₀ = {rounded_up(start.epsilon, 4)}, δ(0) = {rounded_up(stronger.distance, 4)}, "
            f"{view.devices} devices shuffled; at δ = 0 no better than unshuffled"
        )
    return Claim.bound(local.epsilon, AmplifiedDelta(clones, local, tighter), f"{basis}{over}.")


def shuffled_value_claim(view: Shuffled, *, sampling: float, blanks: NDArray[np.float64], local: Claim) -> Claim:
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
    local : Claim
        Of one device's reports of the round over all the view's queries.

    Returns
    -------
    Claim
        A bound. Exact where some value is never a blank: no finite ε holds, and δ = π_s.
    """
    rarest = np.partition(blanks, 1)
    least, second, others = float(rarest[0]), float(rarest[1]), rarest[2:]
    if least == 0.0:
        basis = (
            "Some value is reported by its own devices only, and shuffling does not hide that it was; all but π_s of a "
            "report's distribution is the same for any truth; over T queries δ = 1 − (1 − π_s)^T."
        )
        return Claim.exact(math.inf, ConstantDelta(at_least_once(sampling, view.queries)), basis)
    unsampled = float(blanks.sum())
    even = least == blanks.max()  # of k-ary randomized response; there may be a million
    rest = (len(others) * least if even else math.fsum(others.tolist())) / unsampled
    pairs = pairs_over(view.queries)
    blanket = BlanketDelta(view.devices, sampling, unsampled, least / unsampled, second / unsampled, rest, pairs)
    curve = composed(blanket, view.queries, limit=local.epsilon / view.queries)
    basis = (
        "Privacy blanket (Balle, Bell, Gascón and Nissim 2019): the exact δ of one report among the others' blanks for "
        f"the two rarest values, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    over = "" if view.queries == 1 else COMPOSED
    return Claim.bound(local.epsilon, AmplifiedDelta(curve, local), f"{basis}{over}.")


@dataclass(frozen=True)
class CrowdRatioDelta:
    """δ(ε) of the numbers of n devices that answer up, still or otherwise; one device may be elsewhere instead.

    Each device of the crowd answers up with u, still with s and otherwise with the rest. If the device in question is
    elsewhere, it answers up with αu and still with γs, α < 1 ≤ γ, and otherwise with the same probability. The
    counts (a, b, n − a − b) are trinomial if the device is in the crowd. If it is elsewhere, the ratio of their
    probability to the trinomial distribution's is

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
    """

    crowd: int
    up: float
    still: float
    up_ratio: float
    still_ratio: float
    apart: float = 0.0

    def __call__(self, epsilon: float) -> float:
        """Return δ, accurate to 1e-15 and at least uⁿ where α = 0.

        What the window over b leaves out, at most 1e-30, is added.
        """
        return float(self.each(np.array([check_epsilon(epsilon)]))[0])

    def each(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return δ at each ε, remembered: claims about entering, moving and several queries need the same values."""
        return _remembered(self, epsilons.tobytes())

    def _computed(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        n, factor = self.crowd, np.exp(np.minimum(epsilons, LARGEST_CROWD_EPSILON))[:, np.newaxis]
        first, masses = window(n, self.still)
        b = np.arange(first, first + len(masses), dtype=np.float64)
        others, p = n - b, min(self.up / max(1.0 - self.still, self.up), 1.0)
        fewer, fall = np.maximum(others - 1.0, 0.0), 1.0 - self.up_ratio
        level = n + (self.still_ratio - 1.0) * b  # n times the density at a = 0
        # Elsewhere: E[(level − n·e^ε − fall·a) 1{a ≤ t}] given b.
        margin = level - n * factor
        t = np.ceil(margin / fall) - 1.0
        gain = (margin - fall * others * p) * mass_up_to(t - 1.0, fewer, p) + margin * (1.0 - p) * mass_at(t, fewer, p)
        elsewhere = np.maximum(np.where(others > 0.0, gain, margin), 0.0) @ masses / n + self.apart
        # There: E[(n − e^ε·level + e^ε·fall·a) 1{a ≥ t + 1}] given b.
        margin, rise = n - factor * level, factor * fall
        t = np.floor(-margin / rise)
        gain = (margin + rise * others * p) * mass_above(t, fewer, p) + (margin + rise * others) * p * mass_at(
            t, fewer, p
        )
        there = np.maximum(gain, 0.0) @ masses / n
        certain = self.up**n if self.up_ratio == 0.0 else 0.0
        left_out = LEFT_OUT if len(masses) <= n and 0.0 < self.still < 1.0 else 0.0
        return np.asarray(np.minimum(1.0, np.maximum(np.maximum(elsewhere, there), certain) + left_out))

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0: the density is α where all answer up, γ where all answer still."""
        if self.up_ratio == 0.0 or self.apart > 0.0:
            return math.inf
        return max(-math.log(self.up_ratio), math.log(self.still_ratio))


@lru_cache(maxsize=512)
def _remembered(curve: CrowdRatioDelta, epsilons: bytes) -> NDArray[np.float64]:
    delta = curve._computed(np.frombuffer(epsilons))  # noqa: SLF001 - of this module
    delta.setflags(write=False)
    return delta

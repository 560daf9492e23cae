"""Claims about multi-valued Sampling Privacy for each view, with and without refresh, and the paper's own leakage."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.parameter import ParameterError, check_probability
from mechanisms.privacy.claim import LARGEST_EPSILON, Claim, ConstantDelta
from mechanisms.privacy.composition import COMPOSED, ComposedDelta, at_least_once, composed
from mechanisms.privacy.shuffled import CrowdRatioDelta
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences


@dataclass(frozen=True)
class OwnValueDelta:
    """The function δ(ε) = [π_s − (e^ε − 1)·m]₊ of ε, where m is the least m_t.

    A device with truth t gives its own output with probability m_t + π_s; a device with any other truth gives it with
    probability m_t. Nothing else differs.

    Parameters
    ----------
    sampling : float
        π_s.
    least : float
        min m_t over t = 0…V.
    """

    sampling: float
    least: float

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if self.least == 0.0:
            return self.sampling
        return max(self.sampling - math.expm1(min(epsilon, LARGEST_EPSILON)) * self.least, 0.0)


def round_one_claim() -> Claim:
    """Return the claim that round one reveals nothing, in any number of queries."""
    return Claim.exact(0.0, ConstantDelta(0.0), "Round one is answered without the truth (SP eqs 13-14).")


def round_two_claim(*, sampling: float, blanks: Floats, queries: int) -> Claim:
    """Return the claim of a report of round two: exact for one query, with a bound of δ for more.

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells + 1,) float64
        π_0…π_V. Being outside every cell is one of the truths, so the worst blank is taken over 0…V.
    queries : int
        T.
    """
    worst = int(blanks.argmin())
    basis = f"max over v = 0…V of ln((π_v + π_s)/π_v), at v = {worst} (SP eq 15; eq 29 leaves out v = 0)"
    if blanks[worst] == 0.0:
        basis += ": it is never a blank"
    return _own_value_claim(sampling=sampling, least=float(blanks[worst]), queries=queries, basis=basis)


def linked_blanks(*, sampling: float, blanks: Floats, refresh: float) -> Floats:
    """Return the probabilities that a device is unsampled and reports 0, then t: m_t = π_0((1 − ρ)[t = 0] + ρ·b_t).

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells + 1,) float64
        π_0…π_V; b_t = π_t/(1 − π_s).
    refresh : float
        ρ, the probability that an unsampled device redraws its blank in round two.

    Returns
    -------
    (cells + 1,) float64
    """
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    pairs: Floats = blanks[0] * refresh * again
    pairs[0] += blanks[0] * (1.0 - refresh)
    return pairs


def linked_claim(*, sampling: float, queries: int, blanks: Floats, refresh: float) -> Claim:
    """Return the claim of both reports of a device, linked.

    Without refresh no finite ε holds, and δ is exactly the probability that the reports reveal the truth with
    certainty. A sampled device in cell v gives the pair (0, v), which no other device gives, so δ ≥ π_s for every ε. An
    unsampled device gives (w, w) with π_w for every truth. So the distributions of any two truths overlap in all but
    π_s of their mass, and δ ≤ π_s. Over T queries, wherever the device is, all but 1 − (1 − π_s)^T overlaps; a device
    that stays in a cell attains it.

    With refresh an unsampled device gives the pair (0, t) too, with m_t (`linked_blanks`), and the distributions of any
    two truths still differ at their own pairs only: ε = ln(1 + π_s/min m_t). The minimum runs over t = 0…V. It is at
    the least likely cell unless (1 − ρ) + ρ·b_0 is less than ρ·min b_v, as with ρ = 1 and a π_0 below every π_v; then
    it is at t = 0, outside every cell.

    Parameters
    ----------
    sampling : float
        π_s.
    queries : int
        T.
    blanks : (cells + 1,) float64
        π_0…π_V, used with refresh only.
    refresh : float
        ρ.
    """
    if refresh > 0.0:
        pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=refresh)
        worst = int(pairs.argmin())
        basis = (
            f"max over t = 0…V of ln(1 + π_s/m_t), m_t the probability that an unsampled device reports 0, then t, at "
            f"t = {worst} (from SP eqs 13-15 with refresh ρ = {refresh:g})"
        )
        if pairs[worst] == 0.0:
            basis += ": none does"
        return _own_value_claim(sampling=sampling, least=float(pairs[worst]), queries=queries, basis=basis)
    basis = (
        "The pair of reports (0, v) is given only by a sampled device in cell v, with π_s (from SP eqs 13-15; "
        "eq 29 does not cover it); over T queries 1 − (1 − π_s)^T, exactly."
    )
    return Claim.exact(math.inf, ConstantDelta(at_least_once(sampling, queries)), basis)


def _own_value_claim(*, sampling: float, least: float, queries: int, basis: str) -> Claim:
    """Return the claim of a view in which each truth adds π_s to the probability of its own output."""
    if least == 0.0:
        # Some output is given only by the devices with its truth. The distributions of any two truths overlap in all
        # but π_s of their mass. So T queries reveal the truth at most as often as at least one of T independent events
        # of probability π_s happens, and a device that stays there attains this.
        curve = ConstantDelta(at_least_once(sampling, queries))
        return Claim.exact(math.inf, curve, f"{basis}; over T queries δ = 1 − (1 − π_s)^T.")
    epsilon = math.log1p(sampling / least)
    if queries == 1:
        return Claim.exact(epsilon, OwnValueDelta(sampling, least), f"{basis}.")
    # The pair of two truths that both have the least likely output dominates every pair of truths, in both
    # directions at once. It is attained where two truths are equally unlikely.
    rest = max(1.0 - sampling - 2.0 * least, 0.0)
    curve_bound = ComposedDelta.from_pair(
        (least + sampling, least, rest), (least, least + sampling, rest), queries=queries
    )
    basis = f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair."
    return Claim.bound(queries * epsilon, curve_bound, basis)


def refreshed_release_claim(
    view: ReleasedDifferences | ReleasedCounts, *, sampling: float, blanks: Floats, refresh: float
) -> Claim:
    """Return a bound for refreshed rounds where only the counts, or the differences, are published.

    The counts of both rounds are a function of the linked pairs of all devices in no order. The differences are a
    function of the steps of all devices in no order (a step is what a device adds to each cell's difference). Of these
    outcomes a device in cell v and a device outside give only two with different probabilities:

    - counts: the pair (0, v) with π_s + m_v in the cell and m_v outside, (0, 0) with m_0 and π_s + m_0;
    - differences: a step up in v, with the same two; no step at all, with s = Σ_w π_w(1 − ρ + ρ·b_w) and π_s + s.

    For the crowd alone both are the histogram of three kinds of answers, and the third is equally likely under both
    hypotheses (`CrowdRatioDelta`). Less likely blanks hide less (showing some of a cell's blanks leaves it less
    likely), so v is the cell with the least likely blank. Other devices that were asked only hide more, and dropping
    small differences reveals no more. With ρ = 0 the bound of the differences is their exact δ.

    A move between two cells is leaving the one and entering the other, at the smaller of the two crowds.

    Parameters
    ----------
    view : ReleasedDifferences or ReleasedCounts
        The crowd and the queries. Where the crowd is not given, the worst case is a crowd of one.
    sampling : float
        π_s, below 1.
    blanks : (cells + 1,) float64
        π_0…π_V.
    refresh : float
        ρ, above 0.

    Returns
    -------
    Claim
        A bound; "infinite" where some cell's count can still reveal the truth with certainty; unknown where neither is
        proved.
    """
    queries = view.queries
    differences = isinstance(view, ReleasedDifferences)
    if isinstance(view, ReleasedCounts) and view.adjacency == "move":
        leaving = replace(view, adjacency="enter_leave")
        return refreshed_release_claim(leaving, sampling=sampling, blanks=blanks, refresh=refresh).of_move()
    if isinstance(view, ReleasedDifferences) and view.other_crowd is not None:
        entering = ReleasedDifferences(min(view.crowd or 1, view.other_crowd), view.k, queries)
        return refreshed_release_claim(entering, sampling=sampling, blanks=blanks, refresh=refresh).of_move()
    pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=refresh)
    up = float(pairs[1:].min())
    still = (
        float((blanks * (1.0 - refresh + refresh * blanks / (1.0 - sampling))).sum())
        if differences
        else float(pairs[0])
    )
    if up == 0.0 and isinstance(view, ReleasedDifferences) and view.k is not None:
        return Claim.unknown(
            "With refresh and suppression, it is unknown whether a step that no pair of blanks makes is ever published."
        )
    curve = CrowdRatioDelta(
        crowd=view.crowd or 1,
        up=sampling + up,
        still=still,
        up_ratio=up / (sampling + up),
        still_ratio=1.0 + sampling / still if still > 0.0 else 1.0,
        apart=0.0 if still > 0.0 else sampling,
    )
    hidden = "steps" if differences else "linked pairs"
    more = "" if queries == 1 else COMPOSED
    certain = (
        "; a step that no pair of blanks makes is revealed where all of the crowd are sampled" if up == 0.0 else ""
    )
    return Claim(
        "infinite" if math.isinf(curve.epsilon) else "bound",
        queries * curve.epsilon,
        "bound",
        f"One device's {hidden} among the {hidden} of its crowd, in no order, between the rarest cell and outside, all "
        f"others known (from SP eqs 12-16 with refresh ρ = {refresh:g}){certain}{more}.",
        composed(curve, queries, limit=curve.epsilon),
    )


def printed_multi_value_leakage(*, sampling: float, blanks: ArrayLike) -> float:
    """Return max ln((π_v + π_s)/π_v) over the cells: SP eq 29, for round two alone.

    The formula leaves out the dummy 0, which a device outside every cell answers with π_0 + π_s, and an adversary that
    links a device's two reports.

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells,) float64
        π_1…π_V.
    """
    sampling = check_probability("sampling", sampling, above_zero=True)
    values = np.asarray(blanks, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not (values >= 0).all():
        raise ParameterError("blanks", "must hold π_1…π_V, none negative", values.tolist())
    return _log_ratio(float(values.min()) + sampling, float(values.min()))


def printed_binary_leakage(*, sampling: float, blank_zero: float) -> float:
    """Return max(ln((π_0 + π_s)/π_0), ln((1 − π_0)/(1 − π_0 − π_s))): SP eqs 18-25, for round two and one question.

    If the device is asked about every cell, the two terms add up.

    Parameters
    ----------
    sampling, blank_zero : float
        π_s and π_0.
    """
    sampling = check_probability("sampling", sampling, above_zero=True)
    blank_zero = check_probability("blank_zero", blank_zero)
    blank_one = max(0.0, 1.0 - blank_zero - sampling)
    return max(_log_ratio(blank_zero + sampling, blank_zero), _log_ratio(1.0 - blank_zero, blank_one))


def printed_randomized_response_leakage(*, first_coin: float, second_coin: float) -> float:
    """Return ln((π_1 + (1 − π_1)π_2)/((1 − π_1)π_2)): SP eq 30, the answer Yes to one question.

    The formula leaves out the answer No, and that every cell is asked about.

    Parameters
    ----------
    first_coin, second_coin : float
        π_1, the probability of a true answer; π_2, the probability of Yes otherwise.
    """
    first_coin = check_probability("first_coin", first_coin, above_zero=True)
    false_yes = (1.0 - first_coin) * check_probability("second_coin", second_coin)
    return _log_ratio(first_coin + false_yes, false_yes)


def _log_ratio(more: float, less: float) -> float:
    """Return ln(more/less), infinite where less is 0."""
    return math.log(more / less) if less > 0.0 else math.inf

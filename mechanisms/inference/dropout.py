"""Drop-out between rounds: what the remaining tallies reveal if all other devices, or the target, are missing."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.inference.likelihood import guess_success
from mechanisms.inference.report_law import NoLikelihoodError, check_prior, greatest_other
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import check_integer
from mechanisms.privacy.binomial import LEFT_OUT, mass_up_to, window


def dropped_others_success(mechanism: Any, prior: ArrayLike, *, first_round: int = 1) -> float | None:
    """Return the exact success of the best guess of the target's cell if all other devices drop out.

    Every device is asked in both rounds of one query of two-round Sampling Privacy. The adversary makes all devices
    but the target drop out. It observes only what is released: the counts of both rounds.

    - ``first_round=1``: the others are in neither tally, because pairing removes devices that answered in one round
      only, or because they were never asked. The counts are then the target's two reports, and the success is the
      success of `guess_success` with linked rounds.
    - ``first_round=N``: the tally of round one has all N devices, the tally of round two has the target alone (no
      pairing). So round two reveals its report v, and round one hides its first report among N: C₁ has the same
      multinomial distribution for every truth, and P(its first report was w | C₁) is C₁,w/N. The others' cells do not
      matter, known or not, because the answers of round one do not depend on them. The success falls from the success
      with linked reports at N = 1 towards the success with round two alone.

    Parameters
    ----------
    mechanism : LocalMechanism
        Any if `first_round` is 1; otherwise `SamplingPrivacy`, with or without refresh.
    prior : (cells + 1,) float64
    first_round : int
        Number of devices in the tally of round one, including the target.

    Returns
    -------
    float or None
        None where `guess_success` returns None.

    Raises
    ------
    NoLikelihoodError
        If others are in round one and the mechanism is not two-round Sampling Privacy.
    ParameterError
        If a value is out of range.
    """
    devices = check_integer("first_round", first_round, at_least=1)
    if devices == 1:
        return guess_success(mechanism, None, prior)
    return _from_hidden_first(mechanism, _check(mechanism, prior), devices)


def released_twice_success(mechanism: SamplingPrivacy, prior: ArrayLike) -> float:
    """Return the exact success of the best guess of the target's cell if it alone drops out between two releases.

    The differences C₂ − C₁ over the real cells of the same query are released twice: once for all devices, and once for
    all devices but the target, which pairing removes. The others' parts are equal and cancel: the difference of the
    two releases is e_v − e_w over the real cells, for the target's pair of reports (w, v), as if all others had dropped
    out. A +1 at v alone is the pair (0, v). A −1 in any cell reveals a refreshed blank. All zeros are a pair (w, w): no
    pair (w, w) can be distinguished from (0, 0), so without refresh the success is
    π_s(1 − q_0) + max(q_0, (1 − π_s)·max_{u≠0} q_u). The target is protected only if no query is published twice.

    From one release without the target's second report nothing is learned, as its first report does not depend on the
    truth.

    Parameters
    ----------
    mechanism : SamplingPrivacy
        With or without refresh.
    prior : (cells + 1,) float64

    Raises
    ------
    NoLikelihoodError
        If the mechanism is not two-round Sampling Privacy.
    """
    prior = _check(mechanism, prior)
    blanks, sampling, refresh, again = mechanism.blanks, mechanism.sampling, mechanism.refresh, mechanism.redrawn
    shown = blanks[0] * refresh * again[1:]
    other = greatest_other(prior)[1:]
    plus = math.fsum(np.maximum(prior[1:] * (shown + sampling), shown * other))
    same = math.fsum(blanks * (1.0 - refresh + refresh * again))
    minus = max(1.0 - sampling - same - math.fsum(shown), 0.0) if refresh else 0.0
    best = float(prior.max())
    none = max(float(prior[0]) * (same + sampling), float(prior[1:].max()) * same)
    return min(max(plus + none + minus * best, best), 1.0)


def _check(mechanism: Any, prior: ArrayLike) -> Floats:
    """Return the checked prior; raise `NoLikelihoodError` for a mechanism other than Sampling Privacy."""
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(
            type(mechanism).__name__, "drop-out is implemented for two-round Sampling Privacy only."
        )
    return check_prior(prior, mechanism.cells)


def _from_hidden_first(mechanism: SamplingPrivacy, prior: Floats, devices: int) -> float:
    """Return the success from the target's second report and the sum of N devices' first reports.

    With p the distribution of a first report, P(C₁ with the target's w) = P(C₁)·C₁,w/(N·p_w). So for a second report
    v, truth t has weight q_t·(X·[t = v] + K). Here X = π_s·C₀/(N·p_0), and the part of the blanks is
    K = (1 − ρ)·π_v·C_v/(N·p_v) + ρ·b_v·(1 − π_s·C₀/(N·p_0)). With g_v the greatest other prior, the success is the
    mean of max(q_v(X + K), g_v·K) = g_v·K + [q_v·X − (g_v − q_v)K]₊. E[K] is P(v from a blank), and only cells with
    q_v < g_v need a sum.
    """
    blanks, sampling, refresh, again = mechanism.blanks, mechanism.sampling, mechanism.refresh, mechanism.redrawn
    zero = blanks[0] + sampling
    other = greatest_other(prior)
    ahead = prior >= other
    success = math.fsum((prior * (sampling + blanks))[ahead]) + math.fsum((other * blanks)[~ahead])
    first, masses = window(devices, zero)
    count = first + np.arange(len(masses), dtype=np.float64)
    ratio = count / (devices * zero)
    trials = devices - count
    rows = np.unique(
        np.stack([prior, other, blanks, again, np.arange(len(prior)) == 0], axis=1)[~ahead], axis=0, return_counts=True
    )
    for (q, g, blank, redrawn, is_zero), times in zip(*rows, strict=True):
        share = min(blank / (1.0 - zero), 1.0) if zero < 1.0 else 0.0
        if not is_zero and _surely_positive(q, g, share, refresh * redrawn, mechanism, trials[0], devices):
            # The mean of q_v·X − (g_v − q_v)·K, where X and K have the means π_s and π_v.
            success += float(times) * (q * sampling - (g - q) * blank)
            continue
        redrawn_part = refresh * redrawn * (1.0 - sampling * ratio)
        if is_zero:
            kept = (1.0 - refresh) * blank * ratio
            gain = np.maximum(q * sampling * ratio - (g - q) * (kept + redrawn_part), 0.0)
        else:
            # C_v given C₀ is Bin(N − C₀, π_v/(1 − p_0)), and the bracket is positive up to some C_v.
            intercept = q * sampling * ratio - (g - q) * redrawn_part
            slope = (g - q) * (1.0 - refresh) / devices
            gain = _positive_part(intercept, slope, trials, share)
        success += float(times) * float(masses @ gain)
    return min(max(success, float(prior.max())), 1.0)


def _surely_positive(
    q: float, g: float, share: float, redrawn: float, mechanism: SamplingPrivacy, trials: float, devices: int
) -> bool:
    """Return whether q_v·X exceeds (g_v − q_v)·K for all likely C₀: checked at the least C₀ and the greatest C_v."""
    ratio = (devices - trials) / (devices * (float(mechanism.blanks[0]) + mechanism.sampling))
    intercept = q * mechanism.sampling * ratio - (g - q) * redrawn * (1.0 - mechanism.sampling * ratio)
    most = trials * share + _reach(np.array(trials * share), share)
    return bool(intercept > (g - q) * (1.0 - mechanism.refresh) / devices * most)


def _reach(mean: Floats, share: float) -> Floats:
    """Return a distance from the mean that a binomial exceeds with at most `LEFT_OUT` (Bernstein, as in `window`)."""
    rarity = math.log(2.0 / LEFT_OUT)
    return rarity / 3.0 + np.sqrt(rarity * rarity / 9.0 + 2.0 * mean * (1.0 - share) * rarity)


def _positive_part(intercept: Floats, slope: float, trials: Floats, share: float) -> Floats:
    """Return E[room − slope·C]₊ for C ~ Bin(trials, share), elementwise."""
    means = np.maximum(intercept, 0.0)
    if slope == 0.0 or share == 0.0:
        return means
    last = np.minimum(np.floor(intercept / slope), trials)
    # Where C is almost surely below `last`, or above it, the mean has a closed form.
    mean = trials * share
    reach = _reach(mean, share)
    means = np.where(last >= mean + reach, intercept - slope * mean, 0.0)
    near = np.flatnonzero((last >= 0.0) & (np.abs(last - mean) < reach))
    top, n = last[near], trials[near]
    # E[C; C ≤ c] = n·p·P[Bin(n − 1, p) ≤ c − 1]
    fewer = mass_up_to(top - 1.0, n - 1.0, share)
    means[near] = np.maximum(intercept[near] * mass_up_to(top, n, share) - slope * n * share * fewer, 0.0)
    return means

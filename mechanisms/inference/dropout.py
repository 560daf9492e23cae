"""Drop-out between rounds: what the remaining tallies reveal when all other devices, or the target, are left out."""

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from mechanisms.inference.known_others import known_others_guess_success
from mechanisms.inference.likelihood import law_of
from mechanisms.inference.report_law import NoLikelihoodError, check_prior, greatest_other
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.binomial import LEFT_OUT, window

Released = Literal["counts", "differences"]
Compared = Literal["nothing", "same_reports", "known_others"]


def dropped_others_success(
    mechanism: SamplingPrivacy,
    prior: ArrayLike,
    *,
    released: Released = "counts",
    first_round: int = 1,
) -> float:
    """Return how often the best guess of the target's cell is right when everybody else is dropped, exactly.

    The games. Everyone is asked both rounds of one query of two-round Sampling Privacy; the adversary makes all but
    the target drop out, and sees only what is released, whole counts of both rounds or their differences C₂ − C₁ over
    the real cells.

    - ``first_round=1``: the others are in neither tally, because pairing removes who was heard in one round only, or
      because they were never asked. The counts are the target's two reports: as `guess_success` of the linked rounds.
      Of the differences, a pair (w, w) leaves only zeros, whatever w is, so (0, 0) no longer stands out: without
      refresh π_s(1 − q_0) + max(q_0, (1 − π_s)·max_{u≠0} q_u).
    - ``first_round=N``: the tally of round one has all N devices, that of round two the target alone (no pairing). So
      round two shows its report v, and round one hides it among N: C₁ is one multinomial whatever the truth, and
      P(its first report was w | C₁) is C₁,w/N. The others' places do not matter, known or not: round one is answered
      without them. From N = 1, the linked reports, the success falls to that of round two alone.

    Parameters
    ----------
    mechanism : SamplingPrivacy
        Refreshed or not.
    prior : (cells + 1,) float64
    released : {"counts", "differences"}
    first_round : int
        Devices in the tally of round one, with the target; more than one with counts only.

    Returns
    -------
    float

    Raises
    ------
    NoLikelihoodError
        If the mechanism is another.
    ParameterError
        If a value is out of range, or differences are asked for with others in round one.
    """
    q = _check(mechanism, prior)
    devices = check_integer("first_round", first_round, at_least=1)
    if released not in get_args(Released):
        raise ParameterError("released", f"must be one of {', '.join(get_args(Released))}", released)
    if devices == 1:
        return _from_own_differences(mechanism, q) if released == "differences" else _from_linked(mechanism, q)
    if released == "differences":
        raise ParameterError("first_round", "must be 1 where differences are released", devices)
    return _from_hidden_first(mechanism, q, devices)


def dropped_target_success(
    mechanism: SamplingPrivacy,
    prior: ArrayLike,
    *,
    compared: Compared = "nothing",
    others: ArrayLike | None = None,
    k: int | None = None,
) -> float | None:
    """Return how often the best guess of the target's cell is right when it alone drops out of round two, exactly.

    The games, all with differences C₂ − C₁ over the real cells released.

    - ``compared="nothing"``: one release, from which the target's second report is missing. What is left of it is its
      first report, which is made without the truth: the success is max q, the prior's, whoever the others are.
    - ``compared="same_reports"``: the same query is released twice, of everybody and of everybody but the target, whom
      pairing removes. The others' parts are the same and cancel: the difference of the two is the target's own, as
      when everybody else is dropped. What hides it is only that nobody publishes twice.
    - ``compared="known_others"``: the release with the target is set beside one, of another query with fresh coins,
      without it, and everyone else stays where they are known to be: the second tells nothing the adversary does not
      know, and the first is the view `ReleasedDifferences`. If the others are *not* known this is an upper bound, and
      max q a lower one.

    Parameters
    ----------
    mechanism : SamplingPrivacy
        Without refresh for "known_others".
    prior : (cells + 1,) float64
    compared : {"nothing", "same_reports", "known_others"}
    others : (cells,) int, optional
        Devices in each cell without the target; for "known_others".
    k : int, optional
        Differences below it are suppressed; for "known_others".

    Returns
    -------
    float or None
        None where `known_others_guess_success` is.
    """
    q = _check(mechanism, prior)
    if compared not in get_args(Compared):
        raise ParameterError("compared", f"must be one of {', '.join(get_args(Compared))}", compared)
    if compared == "nothing":
        return float(q.max())
    if compared == "same_reports":
        return _from_own_differences(mechanism, q)
    if mechanism.refresh:
        raise ParameterError("mechanism", "must not refresh: its differences are not binomial", mechanism)
    if others is None:
        raise ParameterError("others", "must be given where they are known", others)
    return known_others_guess_success(others=others, sampling=mechanism.sampling, prior=q, k=k)


def _check(mechanism: Any, prior: ArrayLike) -> NDArray[np.float64]:
    """Refuse other mechanisms, and return the prior."""
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(type(mechanism).__name__, "drop-out is worked out for two-round Sampling Privacy only.")
    return check_prior(prior, mechanism.cells)


def _from_linked(mechanism: SamplingPrivacy, prior: NDArray[np.float64]) -> float:
    """Return the success from both reports."""
    found = law_of(mechanism, (1, 2)).guess_success(prior, 1)
    if found is None:  # pragma: no cover - one query of values is always exact
        raise NoLikelihoodError(type(mechanism).__name__, "its linked success is not known.")
    return max(found, float(prior.max()))


def _from_own_differences(mechanism: SamplingPrivacy, prior: NDArray[np.float64]) -> float:
    """Return the success from e_v − e_w over the real cells, for the target's pair of reports (w, v).

    +1 at v alone is the pair (0, v); −1 somewhere shows a refreshed blank; nothing at all is any (w, w).
    """
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    shown = blanks[0] * refresh * again[1:]
    other = greatest_other(prior)[1:]
    plus = math.fsum(np.maximum(prior[1:] * (shown + sampling), shown * other))
    same = math.fsum(blanks * (1.0 - refresh + refresh * again))
    minus = max(1.0 - sampling - same - math.fsum(shown), 0.0) if refresh else 0.0
    best = float(prior.max())
    none = max(float(prior[0]) * (same + sampling), float(prior[1:].max()) * same)
    return min(max(plus + none + minus * best, best), 1.0)


def _from_hidden_first(mechanism: SamplingPrivacy, prior: NDArray[np.float64], devices: int) -> float:
    """Return the success from the target's second report and N devices' first reports added up.

    With p the law of a first report, P(C₁ with the target's w) = P(C₁)·C₁,w/(N·p_w). So for a second report v, truth t
    has weight q_t·(π_s[t = v]·C₀/(N·p_0) + K) with K = (1 − ρ)·π_v·C_v/(N·p_v) + ρ·b_v·(1 − π_s·C₀/(N·p_0)), the
    blanks' part, and what is to be averaged is max(q_v(X + K), g_v·K) = g_v·K + [q_v·X − (g_v − q_v)K]₊, X the first
    term and g_v the greatest other prior. E[K] is P(v from a blank), and only cells with q_v < g_v need a sum.
    """
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    zero = blanks[0] + sampling
    other = greatest_other(prior)
    ahead = prior >= other
    success = math.fsum((prior * (sampling + blanks))[ahead]) + math.fsum((other * blanks)[~ahead])
    first, masses = window(devices, zero)
    count = first + np.arange(len(masses), dtype=np.float64)
    told = count / (devices * zero)
    trials = devices - count
    rows = np.unique(
        np.stack([prior, other, blanks, again, np.arange(len(prior)) == 0], axis=1)[~ahead], axis=0, return_counts=True
    )
    for (q, g, blank, redrawn, is_zero), times in zip(*rows, strict=True):
        share = min(blank / (1.0 - zero), 1.0) if zero < 1.0 else 0.0
        if not is_zero and _surely_positive(q, g, share, refresh * redrawn, mechanism, trials[0], devices):
            # [q_v·X − (g_v − q_v)·K] on average, X and K having the means π_s and π_v.
            success += float(times) * (q * sampling - (g - q) * blank)
            continue
        redrawn_part = refresh * redrawn * (1.0 - sampling * told)
        if is_zero:
            kept = (1.0 - refresh) * blank * told
            gain = np.maximum(q * sampling * told - (g - q) * (kept + redrawn_part), 0.0)
        else:
            # C_v given C₀ is Bin(N − C₀, π_v/(1 − p_0)), and the bracket is positive up to some C_v.
            room = q * sampling * told - (g - q) * redrawn_part
            slope = (g - q) * (1.0 - refresh) / devices
            gain = _positive_part(room, slope, trials, share)
        success += float(times) * float(masses @ gain)
    return min(max(success, float(prior.max())), 1.0)


def _surely_positive(
    q: float, g: float, share: float, redrawn: float, mechanism: SamplingPrivacy, trials: float, devices: int
) -> bool:
    """Return whether q_v·X exceeds (g_v − q_v)·K wherever C₀ is likely: where it is least, C_v being greatest."""
    told = (devices - trials) / (devices * (float(mechanism.blanks[0]) + mechanism.sampling))
    room = q * mechanism.sampling * told - (g - q) * redrawn * (1.0 - mechanism.sampling * told)
    most = trials * share + _reach(np.array(trials * share), share)
    return bool(room > (g - q) * (1.0 - mechanism.refresh) / devices * most)


def _reach(mean: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return how far from its mean a binomial is but for 1e-17 (Bernstein, as in `window`)."""
    rarity = math.log(2.0 / LEFT_OUT)
    reach: NDArray[np.float64] = rarity / 3.0 + np.sqrt(rarity * rarity / 9.0 + 2.0 * mean * (1.0 - share) * rarity)
    return reach


def _positive_part(
    room: NDArray[np.float64], slope: float, trials: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return E[room − slope·C]₊ for C ~ Bin(trials, share), elementwise."""
    found = np.maximum(room, 0.0)
    if slope == 0.0 or share == 0.0:
        return found
    last = np.minimum(np.floor(room / slope), trials)
    # Where C is surely below `last`, or surely above, there is nothing to sum up.
    mean = trials * share
    reach = _reach(mean, share)
    found = np.where(last >= mean + reach, room - slope * mean, 0.0)
    near = np.flatnonzero((last >= 0.0) & (np.abs(last - mean) < reach))
    top, n = last[near], trials[near]
    # E[C; C ≤ c] = n·p·P[Bin(n − 1, p) ≤ c − 1]
    fewer = np.where(top >= 1.0, _up_to(top - 1.0, n - 1.0, share), 0.0)
    found[near] = np.maximum(room[near] * _up_to(top, n, share) - slope * n * share * fewer, 0.0)
    return found


def _up_to(c: NDArray[np.float64], n: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return P[Bin(n, share) ≤ c] for whole c ≥ −1, 1 from c = n on."""
    inside = bdtr(np.clip(c, 0.0, np.maximum(n, 0.0)), np.maximum(n, 0.0).astype(np.int64), share)
    found: NDArray[np.float64] = np.where(c >= n, 1.0, inside)
    return found

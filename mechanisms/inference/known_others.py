"""What published differences reveal about one device if the cells of all other devices are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.local import SamplingPrivacy
from mechanisms.parameter import ParameterError, check_counts, check_probability
from mechanisms.privacy.binomial import mass_above, mass_at, mass_up_to

Whole = NDArray[np.int64]


def difference_log_ratio(
    differences: ArrayLike, *, crowd: ArrayLike, sampling: float, k: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return ln P(D | the target is in the cell)/P(D | it is not) of a cell's published differences.

    D is Bin(n, β) with the target and Bin(n − 1, β) without, β = π_s (`released_differences_delta`), so the ratio is
    n(1 − β)/(n − D), and +∞ at D = n. All differences below k are one output, "suppressed", with the ratio
    P[Bin(n, β) < k]/P[Bin(n − 1, β) < k] = 1 − β·P[Bin(n − 1, β) = k − 1]/P[Bin(n − 1, β) < k].

    Parameters
    ----------
    differences : (…) int
        The published differences; with k, any number below k stands for "suppressed". Numbers that are impossible in
        both cases (from forged reports, or after message loss) are no evidence: their logarithm is 0.
    crowd : (…) int
        n, the number of devices in the cell including the target, at least 1; broadcast with the differences.
    sampling : float
        β = π_s, in (0, 1].
    k : (…) int, optional
        Differences below it are suppressed; none are where it is 0 or less, or by default.

    Returns
    -------
    (…) float64
        −∞ or +∞ where one of the two cases is impossible.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    d, n = np.broadcast_arrays(check_counts("differences", differences), check_counts("crowd", crowd))
    if n.size and n.min() < 1:
        raise ParameterError("crowd", "must be at least 1", int(n.min()))
    beta = check_probability("sampling", sampling, above_zero=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(n) + np.log1p(-beta) - np.log((n - d).astype(np.float64))
    ratio = np.where(d == n, np.inf, ratio)
    if beta == 1.0:
        ratio = np.where(d == n, np.inf, np.where(d == n - 1, -np.inf, 0.0))
    ratio = np.where((d < 0) | (d > n), 0.0, ratio)
    if k is None:
        return ratio
    least = np.broadcast_to(check_counts("k", k), n.shape)
    hidden = (least > 0) & (d < least)
    ratio[hidden] = _suppressed_log_ratio(n[hidden], beta, least[hidden])
    return ratio


def _suppressed_log_ratio(n: Whole, beta: float, k: Whole) -> NDArray[np.float64]:
    """Return ln P[Bin(n, β) < k]/P[Bin(n − 1, β) < k]."""
    below, at = mass_up_to(k - 1, n - 1, beta), mass_at(k - 1, n - 1, beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where both underflow to 0, the tail below k − 1 is geometric: the share is 1 less the ratio of neighbours.
        fall = (k - 1) * (1.0 - beta) / (beta * np.maximum(n - k + 1.0, 1.0))
        share = np.where(below > 0.0, at / below, np.clip(1.0 - fall, 0.0, 1.0))
        found: NDArray[np.float64] = np.log1p(-beta * share)
    return found


@dataclass(frozen=True, eq=False)
class OwnReportMasses:
    """Joint probabilities of a device's observed reports and of the device's contribution to its cell's difference.

    The contribution is 1 if the device is in the cell and sampled, and 0 otherwise: blanks are the same in both rounds.

    Parameters
    ----------
    inside_one, inside_none : (…) float64
        P(observed reports, contribution 1 | the device is in the cell), and the same with contribution 0.
    outside : (…) float64
        P(observed reports | the device is outside every cell).
    """

    inside_one: NDArray[np.float64]
    inside_none: NDArray[np.float64]
    outside: NDArray[np.float64]

    @classmethod
    def of(
        cls, mechanism: SamplingPrivacy, cell: ArrayLike, first: Whole | None, second: Whole | None
    ) -> "OwnReportMasses":
        """Return the probabilities of reports of two-round Sampling Privacy without refresh.

        A sampled device reports 0, then its cell, or 0 again if it is outside. A device that is not sampled reports
        the same blank twice.

        Parameters
        ----------
        mechanism
            Without refresh.
        cell : (n,) int
            The cell in question, 1…V.
        first, second : (n,) int or None
            The reports of rounds one and two; None if they are not observed.
        """
        place = check_counts("cell", cell)
        blanks, sampling = mechanism.blanks, mechanism.sampling
        none = np.zeros(place.shape)
        if first is None and second is None:
            return cls(none + sampling, none + 1.0 - sampling, none + 1.0)
        if second is None:
            zero = np.where(first == 0, sampling, 0.0)
            return cls(zero, blanks[first], blanks[first] + zero)
        own, zero = np.where(second == place, sampling, 0.0), np.where(second == 0, sampling, 0.0)
        if first is None:
            return cls(own, blanks[second], blanks[second] + zero)
        same = np.where(first == second, blanks[second], 0.0)
        return cls(np.where(first == 0, own, 0.0), same, same + np.where(first == 0, zero, 0.0))

    def log_ratio(self, difference_ratio: ArrayLike | None, *, sampling: float) -> NDArray[np.float64]:
        """Return ln P(reports and difference | in the cell)/P(… | outside), (…) float64.

        The other devices' part of the difference is independent of the device's reports. For the others alone, D − 1
        is ρ times as likely as D, and `difference_log_ratio` is ln(βρ + 1 − β).

        Parameters
        ----------
        difference_ratio
            As `difference_log_ratio` returns it; None where no difference was published.
        sampling
            β = π_s.
        """
        if difference_ratio is None:
            rho: Any = 1.0
        else:
            rho = np.maximum((np.exp(np.asarray(difference_ratio)) - (1.0 - sampling)) / sampling, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            added = np.where(self.inside_one > 0.0, self.inside_one * rho, 0.0)
            found = np.log(added + self.inside_none) - np.log(self.outside)
        return np.where(self.outside == 0.0, np.inf, found)


def own_reports_guess_success(
    mechanism: SamplingPrivacy,
    *,
    cell: ArrayLike,
    crowd: ArrayLike,
    rounds: Sequence[int],
    k: ArrayLike | None = None,
    published: bool = True,
) -> NDArray[np.float64]:
    """Return the exact success, at even prior odds, of the best guess of whether a device is in a cell or outside.

    The evidence is the device's own reports of some rounds and the cell's published difference. The part of this
    difference that comes from devices other than the device and its crowd is known.

    Parameters
    ----------
    mechanism
        Two-round Sampling Privacy without refresh.
    cell : (n,) int
        The cell, 1…V.
    crowd : (n,) int
        Number of devices in the cell including the device, without those whose part the coalition knows; at least 1.
    rounds
        Which reports of the device are observed: (), (1,), (2,) or (1, 2).
    k : (n,) int, optional
        Differences below it are suppressed; none are, by default.
    published
        Whether the difference was published at all.

    Returns
    -------
    (n,) float64
    """
    place, n = np.broadcast_arrays(check_counts("cell", cell), check_counts("crowd", crowd))
    least = np.zeros(n.shape) if k is None else np.maximum(check_counts("k", k), 0)
    zero = np.zeros_like(place)
    success = np.ones(n.shape)
    # The reports that tell "in the cell" and "outside" apart, alone or with the difference; any others are equally
    # likely in both cases.
    for first in [zero] if 1 in rounds else [None]:
        for second in [place, zero] if 2 in rounds else [None]:
            own = OwnReportMasses.of(mechanism, place, first, second)
            success = success - own.outside + _best_mass(own, n, mechanism.sampling, least, published=published)
    return np.minimum(0.5 * success, 1.0)


def _best_mass(
    own: OwnReportMasses, n: Whole, beta: float, least: NDArray[Any], *, published: bool
) -> NDArray[np.float64]:
    """Return Σ_D max(P(reports, D | in the cell), P(reports, D | outside)) for the observed reports.

    The ratio increases with D, so the best guess is "in the cell" from a threshold on.
    """
    inside = own.inside_one + own.inside_none
    found = np.maximum(inside, own.outside)
    if not published:
        return found
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (own.outside - own.inside_none) / own.inside_one
        start = np.ceil(n * beta * ratio / (1.0 - beta + beta * ratio))
    start = np.where(np.isfinite(start), start, 0.0)
    for step in (-1.0, 0.0, 1.0):
        at = np.clip(start + step, least, np.maximum(n + 1, least))
        right = own.inside_one * mass_above(at - 2.0, n - 1, beta) + own.inside_none * mass_above(at - 1.0, n - 1, beta)
        found = np.maximum(found, right + own.outside * mass_up_to(at - 1.0, n - 1, beta))
    return found

"""Attacks on published sums: devices dropped out, and poisoned reports."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.laws import OwnValueLaw
from mechanisms.inference.likelihood import best_guess, posterior
from mechanisms.inference.poisoning import contribution, crafted_encodings, forged_reports
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import SamplingPrivacy
from simulator.arrays import Cells, IntArray, Mask
from simulator.attacks.guesses import Prior

OTHERS_ONLY_SAMPLING = "drop-out with others in round one is supported for two-round Sampling Privacy only."


def others_dropped(
    mechanism: Any,
    first: IntArray,
    second: IntArray,
    prior: Prior,
    query: int,
    *,
    first_round: int,
    rng: np.random.Generator,
) -> Cells:
    """Guess each target's cell from the counts released after all other devices were dropped.

    Round one holds all N devices' reports and round two only the target's: the probability that its first report was w
    is C₁,w/N. (If devices received in one round only are dropped from both, or no other device was asked, the counts
    are the target's own reports, and the guess is that from linked reports.)

    Parameters
    ----------
    mechanism
        The mechanism whose reports were counted.
    first, second
        The counts: (V + 1,) int64 of round one, the same for all targets, and (n, V + 1) of round two, one row per
        target.
    prior, query
        The prior, and the query it is taken for.
    first_round
        N, the number of devices in round one's counts.
    rng
        Breaks ties under a uniform prior.

    Returns
    -------
    guesses : (n,) int32

    Raises
    ------
    NoLikelihoodError
        For mechanisms other than two-round Sampling Privacy.
    """
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(type(mechanism).__name__, OTHERS_ONLY_SAMPLING)
    blanks, sampling, refresh, again = mechanism.blanks, mechanism.sampling, mechanism.refresh, mechanism.redrawn
    report = blanks + sampling * (np.arange(len(blanks)) == 0)
    share = np.divide(first, first_round * report, out=np.zeros(len(report)), where=report > 0.0)
    # P(second report v | truth t, C₁) = common_v + sampled·[v = t]: `sampled` is the probability that the target was.
    sampled = sampling * float(share[0])
    common = (1.0 - refresh) * blanks * share + refresh * again * max(1.0 - sampled, 0.0)
    logs = OwnValueLaw.of_values(common, sampled).log_likelihood([second])
    return best_guess(posterior(logs, prior.of(query)), rng=prior.tie_rng(rng))


def released_twice(
    mechanism: SamplingPrivacy,
    differences: IntArray,
    prior: Prior,
    query: int,
    *,
    read: tuple[int, IntArray] | None = None,
    visible: Mask | None = None,
    positive: bool = False,
    rng: np.random.Generator,
) -> Cells:
    """Guess each target's cell from two releases of the same reports, with the target and without it.

    In their difference all other devices cancel. The rest is e_v − e_w over the real cells, for the target's pair of
    reports (w, v). A single +1 is the pair (0, v); a −1 reveals that a blank was drawn again; zeros only are any pair
    (w, w), S of a device outside, or suppressed differences. The likelihood of a truth is the sum of the probabilities
    of the pairs that agree with what is seen: pairs of a set of first and a set of second reports, and equal pairs.

    Parameters
    ----------
    mechanism
        With or without refresh.
    differences
        (n, cells) int64, one release minus the other.
    prior, query
        The prior, and the query it is taken for.
    read
        The round whose reports of the targets are read, and these reports, (n,) int64; None if none are.
    visible
        (n, cells) bool: the cells whose difference is not suppressed in both releases; by default all.
    positive
        Whether only positive differences are released.
    rng
        Breaks ties under a uniform prior.

    Returns
    -------
    guesses : (n,) int32
    """
    q, blanks, again = prior.of(query), mechanism.blanks, mechanism.redrawn
    shown = np.pad(differences if visible is None else np.where(visible, differences, 0), ((0, 0), (1, 0)))
    silent = np.zeros(shown.shape, dtype=np.bool_)
    silent[:, 0] = True
    if visible is not None:
        silent[:, 1:] = ~visible
    gained, lost = shown > 0, shown < 0
    nothing_gained, nothing_lost = (~changed.any(axis=1, keepdims=True) for changed in (gained, lost))
    second = np.where(nothing_gained, silent, gained)
    first = ~gained if positive else np.where(nothing_lost, silent, lost)
    equal = np.broadcast_to(nothing_gained & nothing_lost, shown.shape)
    if read is not None:
        reported = np.eye(len(q), dtype=np.bool_)[read[1]]
        equal = equal & reported
        first, second = (first & reported, second) if read[0] == 1 else (first, second & reported)
    # Equal reports that are in both sets are among their pairs.
    both, others = first & second, equal & ~(first & second)
    kept = (1.0 - mechanism.refresh) * ((both | others) @ blanks)
    redrawn = mechanism.refresh * ((first @ blanks) * (second @ again) + others @ (blanks * again))
    sampled = first[:, :1] & second
    sampled[:, 0] |= others[:, 0]
    with np.errstate(divide="ignore"):
        logs = np.log((kept + redrawn)[:, np.newaxis] + mechanism.sampling * sampled)
    guesses = best_guess(posterior(logs, q), rng=prior.tie_rng(rng))
    if read is None:
        gone = lost.any(axis=1)
        guesses[gone] = prior.guess(query, int(gone.sum()), rng=rng)
    return guesses


@dataclass(frozen=True, eq=False)
class Forgery:
    """Messages that corrupted vehicles send in place of their reports.

    Parameters
    ----------
    reports
        By round, well-formed; None if vectors are sent.
    vectors
        (rounds, n, *tally_shape) int64, of any form; None if reports are sent.
    per_vehicle
        What one corrupted vehicle adds to the estimate of the cell, in vehicles.
    """

    reports: tuple[Any, ...] | None
    vectors: IntArray | None
    per_vehicle: float

    @classmethod
    def of_reports(cls, mechanism: Any, cell: int, devices: int) -> "Forgery":
        """Return the well-formed reports of one or more vehicles that raise a cell's estimate as far as possible.

        Raises
        ------
        NoLikelihoodError
            If it is not known which of the mechanism's reports raise the estimate most, or there is no greatest one.
        """
        reports = forged_reports(mechanism, cell, devices)
        encodings = np.stack([mechanism.encode(report[:1])[0] for report in reports])
        return cls(reports, None, contribution(mechanism, encodings, cell))

    @classmethod
    def of_vectors(cls, mechanism: Any, cell: int, devices: int, *, magnitude: int) -> "Forgery":
        """Return the vectors with entries within ±magnitude that raise a cell's estimate as far as possible."""
        encodings = crafted_encodings(mechanism, cell, magnitude)
        vectors = np.repeat(encodings[:, np.newaxis], devices, axis=1)
        return cls(None, vectors, contribution(mechanism, encodings, cell))

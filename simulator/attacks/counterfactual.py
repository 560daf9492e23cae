"""Attacks on published sums: all other devices known, devices dropped out, and poisoned reports."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.inference.direct_encoding import OwnValueLaw
from mechanisms.inference.known_others import OwnReportMasses, difference_log_ratio, own_reports_guess_success
from mechanisms.inference.likelihood import best_guess, posterior
from mechanisms.inference.poisoning import contribution, crafted_encodings, forged_reports
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy.sum_laws import SummedCellLaw, bits_law
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.attacks.observation import OwnReports
from simulator.attacks.reconstruction import Prior

TIES = 1e-9
"""Log ratios up to this value are treated as 0, as they differ from it only by rounding."""


@dataclass(frozen=True, eq=False)
class LastDevice:
    """Cells in which the location of every device is known except that of one, the last device.

    Parameters
    ----------
    cell
        (n,) int64.
    crowd
        (n,) int64, devices in the cell including the last device, without those whose reports the coalition knows.
    differences
        (n,) int64, the published difference of the cell minus what the devices with known reports added to it; any
        value below k if it is suppressed. None if nothing was published.
    k
        (n,) int64: the threshold below which differences are suppressed, minus what those devices added; None: no
        difference is suppressed.
    first, second
        (n,) int64, the last device's own reports of rounds one and two; None if the coalition does not read them.
    """

    cell: IntArray
    crowd: IntArray
    differences: IntArray | None
    k: IntArray | None
    first: IntArray | None = None
    second: IntArray | None = None

    def guess(self, mechanism: SamplingPrivacy) -> Mask:
        """Guess by likelihood ratio, at even odds, whether the last device was in the cell or outside all cells.

        The difference of the n − 1 others is Bin(n − 1, π_s); the device adds what its reports state. If both are
        equally likely, the guess is "outside".

        Parameters
        ----------
        mechanism
            Without refresh: its differences are binomial.

        Returns
        -------
        (n,) bool
            Whether the device is guessed to be in the cell.
        """
        ratio, sampling = None, mechanism.sampling
        if self.differences is not None:
            ratio = difference_log_ratio(self.differences, crowd=self.crowd, sampling=sampling, k=self.k)
        own = OwnReportMasses.of(mechanism, self.cell, self.first, self.second)
        guessed: Mask = own.log_ratio(ratio, sampling=sampling) > TIES
        return guessed

    def theory(self, mechanism: SamplingPrivacy) -> FloatArray:
        """Return the expected success at even odds, (n,) float64."""
        return own_reports_guess_success(
            mechanism,
            cell=self.cell,
            crowd=self.crowd,
            rounds=[round_ for round_, report in ((1, self.first), (2, self.second)) if report is not None],
            k=self.k,
            published=self.differences is not None,
        )


@dataclass(frozen=True, eq=False)
class LastBit:
    """Published sums of bits, in cells in which every device is known except one; servers may have added noise.

    Parameters
    ----------
    sums
        (n,) int64, the published sum of the cell minus what the coalition knows of it: its own noise, and the bits of
        corrupted vehicles; not used where the device's own bit is known.
    inside, outside
        (n,) int64, other devices in the cell and elsewhere whose bits the coalition does not know.
    true_yes, false_yes
        p and q, the probabilities of a 1.
    noise
        Masses of the noise that the coalition does not know, symmetric around 0; None without noise.
    own
        (n,) int64, the device's own bits; −1 where the coalition does not read its report.
    """

    sums: IntArray
    inside: IntArray
    outside: IntArray
    true_yes: float
    false_yes: float
    noise: tuple[float, ...] | None
    own: IntArray

    def guess(self) -> Mask:
        """Guess by likelihood, at even odds, whether the device was in the cell; "outside" if both are as likely.

        Given its own bit the sums reveal no more. Otherwise the likelihood ratio is that of `CellLaw`.

        Returns
        -------
        (n,) bool
        """
        guessed: Mask = np.asarray(self.own == 1)
        for row in np.flatnonzero(self.own < 0).tolist():
            law = self._law(row)
            place = int(self.sums[row]) - law.first
            if 0 <= place < len(law.ratio):
                guessed[row] = law.ratio[place] < 1.0 - TIES
            else:
                guessed[row] = place > 0
        return guessed

    def theory(self) -> FloatArray:
        """Return the expected success at even odds, (n,) float64: ½ + ½ of the total variation distance."""
        known = (1.0 + self.true_yes - self.false_yes) / 2.0
        rows = range(len(self.own))
        return np.array([(1.0 + self._law(row).delta(0.0)) / 2.0 if self.own[row] < 0 else known for row in rows])

    def _law(self, row: int) -> SummedCellLaw:
        return bits_law(int(self.inside[row]), int(self.outside[row]), self.true_yes, self.false_yes, self.noise)


def added_by(own: OwnReports | None, cells: int) -> tuple[IntArray, IntArray]:
    """Return what corrupted vehicles added to each cell's difference, and their occupancy, (cells + 1,) each."""
    if own is None:
        return np.zeros(cells + 1, dtype=np.int64), np.zeros(cells + 1, dtype=np.int64)
    first, second = (np.bincount(np.asarray(reports), minlength=cells + 1) for reports in own.reports)
    return (second - first).astype(np.int64), np.bincount(own.truth, minlength=cells + 1).astype(np.int64)


ONLY_SAMPLING = "drop-out with others in round one is supported for two-round Sampling Privacy only."


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
        raise NoLikelihoodError(type(mechanism).__name__, ONLY_SAMPLING)
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    report = blanks + sampling * (np.arange(len(blanks)) == 0)
    share = np.divide(first, first_round * report, out=np.zeros(len(report)), where=report > 0.0)
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    # P(second report v | truth t, C₁) = common_v + sampled·[v = t]: `sampled` is the probability that the target was.
    sampled = sampling * float(share[0])
    common = (1.0 - refresh) * blanks * share + refresh * again * max(1.0 - sampled, 0.0)
    logs = OwnValueLaw.of_values(common, sampled).log_likelihood([second])
    return best_guess(posterior(logs, prior.of(query)), rng=prior.tie_rng(rng))


def released_twice(
    mechanism: SamplingPrivacy,
    own: IntArray,
    prior: Prior,
    query: int,
    *,
    visible: Mask | None = None,
    positive: bool = False,
    rng: np.random.Generator,
) -> Cells:
    """Guess each target's cell from two releases of the same reports, with the target and without it.

    In their difference all other devices cancel. The rest is e_v − e_w over the real cells, for the target's pair of
    reports (w, v). A single +1 is the pair (0, v); a −1 reveals that a blank was drawn again; zeros only are any pair
    (w, w), S of a device outside, or suppressed differences.

    Parameters
    ----------
    mechanism
        With or without refresh.
    own
        (n, cells) int64, one release minus the other.
    prior, query
        The prior, and the query it is taken for.
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
    q = prior.of(query)
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    seen = own if visible is None else np.where(visible, own, 0)
    gone = (seen < 0).any(axis=1)
    shown = np.where((seen > 0).any(axis=1), seen.argmax(axis=1) + 1, 0)
    # Cells (0 included) for which a sampled device changes no visible difference.
    silent = np.zeros((len(own), len(blanks)), dtype=np.bool_)
    silent[:, 0] = True
    if visible is not None:
        silent[:, 1:] = ~visible
    # A blank that is drawn again changes nothing visible if both blanks are silent, or equal; with `positive` the first
    # one never does.
    first = np.ones_like(silent) if positive else silent
    drawn_again = (first * blanks).sum(axis=1) * (silent * again).sum(axis=1) + (
        ~(first & silent) * blanks * again
    ).sum(axis=1)
    nothing = (1.0 - refresh) * blanks.sum() + refresh * drawn_again
    unseen = (blanks * first).sum(axis=1) - (blanks[shown] if positive else 0.0)
    likelihood = np.repeat(np.where(shown > 0, unseen * refresh * again[shown], nothing)[:, np.newaxis], len(q), axis=1)
    rows = np.arange(len(own))
    likelihood[rows[shown > 0], shown[shown > 0]] += sampling
    likelihood[shown == 0] += sampling * silent[shown == 0]
    with np.errstate(divide="ignore"):
        guesses = best_guess(posterior(np.log(likelihood), q), rng=prior.tie_rng(rng))
    guesses[gone] = prior.guess(query, int(gone.sum()), rng=rng)
    return guesses


def released_twice_and_read(
    mechanism: SamplingPrivacy,
    own: IntArray,
    reports: IntArray,
    round_: int,
    prior: Prior,
    query: int,
    *,
    visible: Mask,
    positive: bool = False,
    rng: np.random.Generator,
) -> Cells:
    """Guess each target's cell from two releases, with the target and without it, and one of its two reports.

    The visible part of e_v − e_w and one of the two reports leave a set of possible other reports, mostly of one. The
    likelihood of a truth is the sum of the probabilities of the pairs that are left.

    Parameters
    ----------
    mechanism, own, prior, query, positive, rng
        As in `released_twice`.
    reports, round_
        (n,) int64, the reports that are read, and their round.
    visible
        (n, cells) bool, as in `released_twice`.

    Returns
    -------
    guesses : (n,) int32
    """
    q, blanks, sampling, refresh = prior.of(query), mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    silent = np.concatenate([np.ones((len(own), 1), dtype=np.bool_), ~visible], axis=1)
    read = np.eye(len(q), dtype=np.int64)[reports]
    seen = np.where(silent, 0, np.concatenate([np.zeros_like(own[:, :1]), own], axis=1))
    known = np.where(silent, 0, read)
    if not positive:
        other = seen + known if round_ == 1 else known - seen
        possible = np.where((other != 0).any(axis=1, keepdims=True), other != 0, silent)
    elif round_ == 1:
        possible = np.where((seen > 0).any(axis=1, keepdims=True), seen > 0, silent | (read > 0))
    else:
        shown, inside = (seen > 0).any(axis=1, keepdims=True), (known > 0).any(axis=1, keepdims=True)
        possible = np.where(shown, read == 0, (read > 0) | ~inside)
    kept = blanks[reports] * (1.0 - refresh) * possible[np.arange(len(own)), reports]
    if round_ == 1:
        redrawn = refresh * blanks[reports] * (possible @ again)
        sampled = sampling * possible * (reports == 0)[:, np.newaxis]
    else:
        redrawn = refresh * again[reports] * (possible @ blanks)
        sampled = sampling * read * possible[:, :1]
    with np.errstate(divide="ignore"):
        logs = np.log((kept + redrawn)[:, np.newaxis] + sampled)
    return best_guess(posterior(logs, q), rng=prior.tie_rng(rng))


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
        one = np.stack([mechanism.encode(report[:1])[0] for report in reports])
        return cls(reports, None, contribution(mechanism, one, cell))

    @classmethod
    def of_vectors(cls, mechanism: Any, cell: int, devices: int, *, magnitude: int) -> "Forgery":
        """Return the vectors with entries within ±magnitude that raise a cell's estimate as far as possible."""
        one = crafted_encodings(mechanism, cell, magnitude)
        vectors = np.repeat(one[:, np.newaxis], devices, axis=1)
        return cls(None, vectors, contribution(mechanism, one, cell))

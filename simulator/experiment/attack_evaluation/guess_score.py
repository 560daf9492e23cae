"""Scores of guesses: their success rate, compared with that of the best guess without an observation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanisms.privacy.audit import clopper_pearson, epsilon_lower_bound

TAIL = 0.025
"""Probability at each end of a 95 % interval."""
CLAIMING_TOO_MUCH = 1e-6
"""Probability with which an ε lower bound may exceed ε: a run has many bounds, and none should be wrong."""


@dataclass(frozen=True, eq=False)
class Guessed:
    """One query's guesses, one for each target.

    Parameters
    ----------
    guesses, truth
        (n,) int.
    prior
        Success of the best guess without the observation.
    theory
        Expected success; None if it is not known.
    usual
        The best guess without the observation; None if several are equally good.
    """

    guesses: npt.NDArray[np.int32]
    truth: npt.NDArray[np.int32]
    prior: float
    theory: float | None
    usual: int | None = None


@dataclass(frozen=True)
class GuessScore:
    """Columns of a row of `attacks.parquet`.

    Attributes
    ----------
    trials, prior, success, gain, gain_low, gain_high, theory, epsilon_lower
        As in `Finding`.
    """

    trials: int
    prior: float
    success: float
    gain: float
    gain_low: float
    gain_high: float
    theory: float | None
    epsilon_lower: float | None

    @property
    def columns(self) -> dict[str, float | int | None]:
        """The columns by name."""
        return asdict(self)


def score_hits(
    hits: int, trials: int, *, prior: float, theory: float | None, epsilon_lower: float | None = None
) -> GuessScore:
    """Return the score of `hits` right guesses in `trials`.

    Truths are fixed and coins independent. If trials have different probabilities, the interval is wider than necessary
    (Hoeffding 1956).
    """
    low, high = (float(end) for end in clopper_pearson(hits, trials, alpha=TAIL))
    success = hits / trials
    return GuessScore(trials, prior, success, success - prior, low - prior, high - prior, theory, epsilon_lower)


def score_guesses(
    parts: Sequence[Guessed], *, rng: np.random.Generator, alpha: float = CLAIMING_TOO_MUCH, kept: bool = False
) -> GuessScore | None:
    """Score the guesses of some queries; None if there are none.

    Parameters
    ----------
    parts
        By query.
    rng
        Pairs devices for the ε lower bound.
    alpha
        Probability with which that bound may be too large.
    kept
        Whether devices keep coins from query to query. Then trials of different queries are not independent: the
        interval is as wide as for the trials of a single query, and the bound is that of the first query.
    """
    parts = [part for part in parts if len(part.truth)]
    trials = sum(len(part.truth) for part in parts)
    if not trials:
        return None
    hits = sum(int(np.count_nonzero(part.guesses == part.truth)) for part in parts)
    prior = sum(len(part.truth) * part.prior for part in parts) / trials
    theories = [part.theory for part in parts]
    theory = None
    if all(one is not None for one in theories):
        theory = sum(len(part.truth) * one for part, one in zip(parts, theories, strict=True) if one is not None)
        theory /= trials
    epsilon = _epsilon(parts[:1] if kept else parts, rng=rng, alpha=alpha)
    score = score_hits(hits, trials, prior=prior, theory=theory, epsilon_lower=epsilon)
    if not kept:
        return score
    one = min(len(part.truth) for part in parts)
    low, high = (float(end) - prior for end in clopper_pearson(round(score.success * one), one, alpha=TAIL))
    return replace(score, gain_low=min(low, score.gain_low), gain_high=max(high, score.gain_high))


def _epsilon(parts: Sequence[Guessed], *, rng: np.random.Generator, alpha: float) -> float | None:
    """Return an ε lower bound from pairs of devices in different cells, or None if there are no pairs.

    For a pair (i, j) in one query the event is "t_i is guessed". Its probability for i is at most e^ε times that for j,
    which has another truth and whose guess is made with the same prior; the same holds for the sums over pairs. No
    device is in two pairs, so all are independent. Pairs whose t_i is the best guess without any observation carry
    little information and are left out.
    """
    hits_p = hits_q = pairs = 0
    for part in parts:
        order = rng.permutation(len(part.truth))
        half = len(order) // 2
        one, other = order[:half], order[half : 2 * half]
        apart = part.truth[one] != part.truth[other]
        apart &= part.truth[one] != (-1 if part.usual is None else part.usual)
        named, one, other = part.truth[one][apart], one[apart], other[apart]
        hits_p += int(np.count_nonzero(part.guesses[one] == named))
        hits_q += int(np.count_nonzero(part.guesses[other] == named))
        pairs += len(named)
    if not pairs:
        return None
    return epsilon_lower_bound(hits_p=hits_p, trials_p=pairs, hits_q=hits_q, trials_q=pairs, alpha=alpha)


class NotPlayableError(Exception):
    """An attack cannot be evaluated; the message is the reason, a sentence without its full stop."""

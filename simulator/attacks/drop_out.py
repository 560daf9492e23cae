"""Drop-out: what is released once everybody but the target is gone, or the target alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.inference import (
    NoLikelihoodError,
    best_guess,
    dropped_others_success,
    dropped_target_success,
    guess_cells,
    guess_success,
    posterior,
)
from mechanisms.local import SamplingPrivacy
from simulator.attacks.prior import FloatArray, Prior

IntArray = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]
MOST_FLOATS = 2**22
ONLY_SAMPLING = "drop-out with others in round one is worked out for two-round Sampling Privacy only."


def others_dropped(
    mechanism: Any,
    counts: Sequence[IntArray],
    prior: Prior,
    query: int,
    *,
    first_round: int = 1,
    rng: np.random.Generator,
) -> Cells:
    """Guess each target's cell from the counts released when everybody else was dropped.

    Where whoever was heard in one round only is dropped from both, or nobody else was asked, the counts are the
    target's own encodings. Else round one holds all N devices' reports, and round two the target's alone: P(its first
    report was w) is then C₁,w/N.

    Parameters
    ----------
    mechanism
        Whose reports were counted.
    counts
        By round (n, *tally_shape) int64, one row a target; of round one with others in it (1, V + 1), the same for all.
    prior, query
        What was likely before, in which query.
    first_round
        Devices in round one's counts.
    rng
        Breaks ties where all places are alike.

    Returns
    -------
    guesses : (n,) int32

    Raises
    ------
    NoLikelihoodError
        If nobody has said how likely the mechanism's reports are; or with others in round one, for mechanisms other
        than two-round Sampling Privacy.
    """
    q = prior.of(query)
    if first_round == 1:
        guesses, _ = guess_cells(mechanism, list(counts), q, rng=prior.tie_rng(rng))
        return guesses
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(type(mechanism).__name__, ONLY_SAMPLING)
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    first = blanks + sampling * (np.arange(len(blanks)) == 0)
    share = np.divide(counts[0].reshape(-1), first_round * first, out=np.zeros(len(first)), where=first > 0.0)
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    # P(second report v | truth t, C₁) = common_v + told·[v = t], told the chance that the first one was of S.
    told = sampling * float(share[0])
    common = (1.0 - refresh) * blanks * share + refresh * again * max(1.0 - told, 0.0)
    seen = counts[1].argmax(axis=1)
    return _own_value(seen, common[seen], told, q, rng=prior.tie_rng(rng))


def others_dropped_theory(mechanism: Any, prior: Prior, query: int, *, first_round: int = 1) -> float | None:
    """Return the expected success of `others_dropped`, or None where it is not known; errors as there."""
    q = prior.of(query)
    if first_round == 1:
        return prior.trusted(guess_success(mechanism, None, q), q)
    return prior.trusted(dropped_others_success(mechanism, q, first_round=first_round), q)


def target_dropped(
    mechanism: SamplingPrivacy, prior: Prior, query: int, n: int, *, rng: np.random.Generator
) -> tuple[Cells, float | None]:
    """Guess where targets were that were dropped from round two, from the differences that were released.

    What is left of a target is its first report, made without the truth; a Bayesian who knows that keeps the prior.

    Returns
    -------
    guesses : (n,) int32
    theory : float or None

    Raises
    ------
    NoLikelihoodError
        For mechanisms other than two-round Sampling Privacy.
    """
    return prior.guess(query, n, rng=rng), dropped_target_success(mechanism, prior.of(query))


def released_twice(
    mechanism: SamplingPrivacy, own: IntArray, prior: Prior, query: int, *, rng: np.random.Generator
) -> Cells:
    """Guess each target's cell from two releases of the same reports, with it and without.

    Everybody else cancels: what is left is e_v − e_w over the real cells, of its pair of reports (w, v). +1 alone is
    the pair (0, v); a −1 shows a blank thrown again; noughts alone are any pair (w, w), or S of a device outside.

    Parameters
    ----------
    mechanism
        Refreshed or not.
    own
        (n, cells) int64, one release less the other.
    prior, query
        What was likely before, in which query.
    rng
        Breaks ties where all places are alike.

    Returns
    -------
    guesses : (n,) int32
    """
    q = prior.of(query)
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    same = float((blanks * (1.0 - refresh + refresh * again)).sum())
    gone = (own < 0).any(axis=1)
    shown = np.where((own > 0).any(axis=1), own.argmax(axis=1) + 1, 0)
    common = np.where(shown > 0, blanks[0] * refresh * again[shown], same)
    guesses = _own_value(shown, common, sampling, q, rng=prior.tie_rng(rng))
    guesses[gone] = prior.guess(query, int(gone.sum()), rng=rng)
    return guesses


def released_twice_theory(mechanism: SamplingPrivacy, prior: Prior, query: int) -> float | None:
    """Return the expected success of `released_twice`, or None where it is not known."""
    q = prior.of(query)
    return prior.trusted(dropped_target_success(mechanism, q, compared="same_reports"), q)


def _own_value(
    seen: IntArray, common: FloatArray, told: float, prior: FloatArray, *, rng: np.random.Generator | None
) -> Cells:
    """Return best guesses where the value seen is `told` more likely from its own truth than from others."""
    guesses = np.empty(len(seen), dtype=np.int32)
    step = max(1, MOST_FLOATS // len(prior))
    for start in range(0, len(seen), step):
        rows = slice(start, start + step)
        likelihood = np.repeat(common[rows, np.newaxis], len(prior), axis=1)
        likelihood[np.arange(len(likelihood)), seen[rows]] += told
        with np.errstate(divide="ignore"):
            guesses[rows] = best_guess(posterior(np.log(likelihood), prior), rng=rng)
    return guesses

"""Categorical sampling of multi-valued Sampling Privacy: draws, answers and tallies in compiled loops."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import Floats, Integers, Mask, Values, Words, compiled
from mechanisms.local.common.random_words import random_words

SAMPLED = -1
# A random word's 53 highest bits times this are a uniform number, the same as numpy's.
STEP = 2.0**-53
# Number of histograms that a tally uses in turn, so that consecutive devices rarely wait for the same memory.
LANES = 4


def alias_table(weights: Floats) -> tuple[Floats, Values]:
    """Return Vose's alias table: a uniform outcome i is kept with probability keep[i], else replaced by alias[i].

    Parameters
    ----------
    weights : (faces,) float64
        Not negative, not all 0.

    Returns
    -------
    keep : (faces,) float64
    alias : (faces,) int32
    """
    faces = len(weights)
    keep = weights * (faces / weights.sum())
    alias = np.arange(faces, dtype=np.int32)
    small = [i for i in range(faces) if keep[i] < 1.0]
    large = [i for i in range(faces) if keep[i] >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            small.append(large.pop())
    # The remaining values are 1 up to rounding. An outcome of weight 0 is always paired with a rich one before this and
    # stays impossible.
    keep[small + large] = 1.0
    return keep, alias


def draw_categorical(
    n: int, sampling: float, blanks: int, table: tuple[Floats, Values] | None, *, rng: np.random.Generator
) -> Values:
    """Return n categorical draws, (n,) int32: SAMPLED with probability `sampling`, else a blank in 0…blanks − 1.

    Each device uses one 53-bit uniform number. Below `sampling` the outcome is S. Otherwise its excess, rescaled,
    selects the blank: by the integer part alone if all blanks are equal (no table), else by the alias table.
    """
    drawn = np.empty(n, dtype=np.int32)
    scale = blanks / (1.0 - sampling) if sampling < 1.0 else 0.0
    start = 0
    for words in random_words(n, rng=rng):
        part = drawn[start : start + len(words)]
        start += len(words)
        if table is None:
            _draw_equal(words, sampling, scale, blanks - 1, part)
        else:
            _draw_alias(words, sampling, scale, *table, part)
    return drawn


@compiled
def _draw_equal(words: Words, sampling: float, scale: float, top: int, drawn: Values) -> None:
    """Draw outcomes whose blanks are all equally likely."""
    for i in range(words.size):
        rest = (words[i] >> np.uint64(11)) * STEP - sampling
        # Rounding may turn the greatest uniform into an outcome above `top`.
        face = min(np.int32(rest * scale), np.int32(top))
        drawn[i] = face if rest >= 0.0 else np.int32(SAMPLED)


@compiled
def _draw_alias(words: Words, sampling: float, scale: float, keep: Floats, alias: Values, drawn: Values) -> None:
    """Draw outcomes whose blanks have different probabilities."""
    for i in range(words.size):
        rest = (words[i] >> np.uint64(11)) * STEP - sampling
        if rest < 0.0:
            drawn[i] = SAMPLED
        else:
            place = rest * scale
            face = min(np.int64(place), np.int64(keep.size - 1))
            drawn[i] = face if place - face < keep[face] else alias[face]


def redraw(
    drawn: Values, refresh: float, blanks: int, table: tuple[Floats, Values] | None, *, rng: np.random.Generator
) -> Values:
    """Return the outcomes of round two, (n,) int32: each blank drawn again with probability `refresh`, S unchanged.

    Each device uses one uniform number, whether its outcome is S or not. If it is below `refresh`, the blank is drawn
    again, and the position of the number in [0, refresh) selects the new blank as in `draw_categorical`.
    """
    again = np.empty_like(drawn)
    keep, alias = (np.empty(0), np.empty(0, dtype=np.int32)) if table is None else table
    start = 0
    for words in random_words(len(drawn), rng=rng):
        end = start + len(words)
        _redraw(words, drawn[start:end], refresh, blanks, keep, alias, again[start:end])
        start = end
    return again


@compiled
def _redraw(
    words: Words, drawn: Values, refresh: float, blanks: int, keep: Floats, alias: Values, again: Values
) -> None:
    """Draw some blanks again; they are equally likely if there is no table."""
    scale = blanks / refresh
    for i in range(words.size):
        again[i] = drawn[i]
        uniform = (words[i] >> np.uint64(11)) * STEP
        if drawn[i] >= 0 and uniform < refresh:
            place = uniform * scale
            face = min(np.int64(place), np.int64(blanks - 1))
            again[i] = face if keep.size == 0 or place - face < keep[face] else alias[face]


@compiled
def answer_drawn(drawn: Values, truth: Values, reports: Values) -> None:
    """Report the truth where the draw is S, or 0 if no truth is given, and the blank elsewhere."""
    for i in range(drawn.size):
        reports[i] = drawn[i] if drawn[i] >= 0 else truth[i] if truth.size else np.int32(0)


@compiled
def add_values(reports: NDArray[np.uint32], where: Mask, counts: NDArray[np.uint32]) -> None:
    """Count the values of the masked devices (all, if the mask is empty) into (LANES, outputs) histograms."""
    n = reports.size
    if where.size:
        for i in range(n):
            counts[i % LANES, reports[i]] += where[i]
        return
    whole = n - n % LANES
    for i in range(0, whole, LANES):
        counts[0, reports[i]] += 1
        counts[1, reports[i + 1]] += 1
        counts[2, reports[i + 2]] += 1
        counts[3, reports[i + 3]] += 1
    for i in range(whole, n):
        counts[0, reports[i]] += 1


def tally_values(reports: Values, where: Mask, outputs: int) -> Integers:
    """Return how many of the masked devices (all, if the mask is empty) gave each output, (outputs,) int64."""
    counts = np.zeros((LANES, outputs), dtype=np.uint32)
    # Without a sign: an index that may be negative takes longer.
    add_values(np.ascontiguousarray(reports).view(np.uint32), where, counts)
    return np.asarray(counts.sum(axis=0, dtype=np.int64))


def one_hot(reports: Values, outputs: int) -> Integers:
    """Return (n, outputs) int64 with a single 1 per row."""
    vectors = np.zeros((len(reports), outputs), dtype=np.int64)
    vectors[np.arange(len(reports)), reports] = 1
    return vectors

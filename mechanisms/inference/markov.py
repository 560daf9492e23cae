"""A device's cells in T queries as a Markov chain, guessed from its linked reports: a hidden Markov model.

The cell of each step depends on the cell of the step before alone, with one transition matrix a step; the reports of a
step depend on its cell alone. Two guesses are best, each by a score of its own: smoothing guesses the most probable
cell of each step and so has the most right steps on average; the Viterbi algorithm guesses the most probable path and
so is most often right about the whole path. L. R. Rabiner, "A tutorial on hidden Markov models and selected
applications in speech recognition" (Proceedings of the IEEE, 1989), has both.

A chain that is learned from data excludes what was not seen. So a device may stray: with a small probability it goes to
any cell alike, and reports are never impossible. Reports that are impossible in every cell (forged, or a partial sum of
shares) are not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.compiled import Floats, Integers, compiled
from mechanisms.inference.likelihood import BATCH_FLOATS, best_guess
from mechanisms.inference.report_law import check_prior
from mechanisms.parameter import ParameterError


@dataclass(frozen=True, eq=False)
class PathSuccess:
    """Expected success of a guess of a path.

    Parameters
    ----------
    steps : (T,) float64
        Probability that the guess is right in each step.
    path : float
        Probability that it is right in all steps.
    """

    steps: Floats
    path: float


@dataclass(frozen=True, eq=False)
class Chain:
    """A Markov chain over the places 0 (outside) … V, of T steps.

    Parameters
    ----------
    start : (V + 1,) float64
        Probability of each place in the first step.
    moves : T − 1 of (V + 1, V + 1) scipy.sparse.csr_array of float64
        By step from the second: probability of each place (column) given the place in the step before (row). A row
        without entries is of a place where the chain never is.
    strays : float
        Probability, in each step, that a device goes to any place alike. The default changes no result visibly.

    Raises
    ------
    ParameterError
        If the start or a row is no distribution, or a matrix has another form.
    """

    start: Floats
    moves: Sequence[Any]
    strays: float = 1e-15

    def __post_init__(self) -> None:
        """Check the start and the matrices."""
        places = len(check_prior(self.start, len(self.start) - 1))
        for matrix in self.moves:
            sums = np.asarray(matrix.sum(axis=1))
            if matrix.shape != (places, places) or matrix.min() < 0.0 or not np.allclose(sums[sums != 0.0], 1.0):
                rule = f"must be of shape {(places, places)}, with rows of probabilities that sum to 1, or to 0"
                raise ParameterError("moves", rule, f"{matrix.shape}, with sums from {sums.min()} to {sums.max()}")

    @property
    def steps(self) -> int:
        """T."""
        return len(self.moves) + 1

    @cached_property
    def marginals(self) -> Floats:
        """Probability of each place in each step without reports, (T, V + 1)."""
        return self.filtered(np.zeros((self.steps, 1, len(self.start))))[0][:, 0]

    def smoothed(self, logs: Floats) -> tuple[Floats, Floats]:
        """Return the posterior of each device's place in each step, given its reports of all steps.

        Parameters
        ----------
        logs : (T, n, V + 1) float64
            log P(a device's reports of a step | its place), up to a constant per row; −∞ if impossible, and 0
            everywhere if the device has no report.

        Returns
        -------
        posterior : (T, n, V + 1) float64
        evidence : (n,) float64
            log P(all reports of the device), up to the sum of the constants.

        Raises
        ------
        ParameterError
            If the shape is wrong, or a logarithm is NaN or +∞.
        """
        after, evidence = self.filtered(logs)
        for step in range(self.steps - 2, -1, -1):
            # A posterior is weighted by how much later reports raise the probabilities of the places that follow.
            raised = after[step + 1] / self._straying(after[step] @ self.moves[step])
            raised = (1.0 - self.strays) * (self.moves[step] @ raised.T).T + self.strays * raised.mean(axis=1)[
                :, np.newaxis
            ]
            weighted = after[step] * raised
            after[step] = weighted / weighted.sum(axis=1, keepdims=True)
        return after, evidence

    def filtered(self, logs: Floats) -> tuple[Floats, Floats]:
        """Return the posterior in each step given the reports up to this step; otherwise as `smoothed`."""
        logs, after = self._usable(logs), np.empty(logs.shape)
        evidence = np.zeros(logs.shape[1])
        for step in range(self.steps):
            ahead = after[step - 1] @ self.moves[step - 1] if step else np.tile(self.start, (logs.shape[1], 1))
            weights = np.log(self._straying(ahead)) + logs[step]
            top = weights.max(axis=1, keepdims=True)
            weights = np.exp(weights - top)
            total = weights.sum(axis=1, keepdims=True)
            after[step] = weights / total
            evidence += (top + np.log(total))[:, 0]
        return after, evidence

    def likeliest(self, logs: Floats) -> Integers:
        """Return each device's most probable path given all its reports, (T, n) int64; logs as in `smoothed`."""
        logs = self._usable(logs)
        before: Integers = np.empty(logs.shape, dtype=np.int64)
        paths: Integers = np.empty(logs.shape[:2], dtype=np.int64)
        best = np.log(self._straying(self.start)) + logs[0]
        for step, matrix in enumerate(self.moves, 1):
            before[step] = best.argmax(axis=1)[:, np.newaxis]
            ahead = np.tile(best.max(axis=1, keepdims=True) + np.log(self.strays / len(self.start)), len(self.start))
            _advance(best, matrix.indptr, matrix.indices, np.log(self._straying(matrix.data)), ahead, before[step])
            best = ahead + logs[step]
        paths[-1] = best.argmax(axis=1)
        for step in range(self.steps - 1, 0, -1):
            paths[step - 1] = before[step, np.arange(paths.shape[1]), paths[step]]
        return paths

    def log_probability(self, paths: Integers) -> Floats:
        """Return the logarithm of the prior probability of paths, (n,) float64; paths are (T, n)."""
        chances = [self.start[paths[0]]]
        chances += [matrix[paths[step], paths[step + 1]] for step, matrix in enumerate(self.moves)]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.stack(chances)).sum(axis=0))

    def draw(self, n: int, *, rng: np.random.Generator) -> Integers:
        """Return n paths drawn from the chain, (T, n) int64."""
        paths = [rng.choice(len(self.start), n, p=self.start)]
        for matrix in self.moves:
            ends = matrix[paths[-1]].toarray().cumsum(axis=1)
            paths.append((ends < rng.random((n, 1)) * ends[:, -1:]).sum(axis=1))
        return np.stack(paths)

    def success(self, masses: Sequence[Floats]) -> tuple[PathSuccess, PathSuccess] | None:
        """Return the exact expected success of smoothing and of the Viterbi algorithm.

        Every sequence of reports is gone through: with V ≤ 4 and reports of V + 1 values that is fast up to 7 steps.
        No guess has more right steps on average than smoothing, and none is right about more whole paths than Viterbi.

        Parameters
        ----------
        masses : T of (V + 1, outcomes) float64
            By step: probability of each outcome, all reports of this step, given each place; a column of ones if the
            device has no report.

        Returns
        -------
        tuple of PathSuccess, or None
            None if there are too many sequences of reports.
        """
        outcomes = [each.shape[1] for each in masses]
        if float(np.prod(outcomes, dtype=np.float64)) * self.steps * len(self.start) > BATCH_FLOATS:
            return None
        sent = np.indices(outcomes).reshape(self.steps, -1)
        with np.errstate(divide="ignore"):
            logs = np.stack([np.log(each.T[reports]) for each, reports in zip(masses, sent, strict=True)])
        after, evidence = self.smoothed(logs)

        def expected(guess: Any) -> PathSuccess:
            at = (*np.ogrid[: self.steps, : guess.shape[1]], guess)
            whole = np.exp(self.log_probability(guess) + logs[at].sum(axis=0))
            return PathSuccess(after[at] @ np.exp(evidence), float(whole.sum()))

        smoothed = best_guess(after.reshape(-1, len(self.start))).reshape(after.shape[:2])
        return expected(smoothed), expected(self.likeliest(logs))

    def _straying(self, ahead: Floats) -> Floats:
        """Return probabilities of places, with the probability that a device strays there."""
        return (1.0 - self.strays) * ahead + self.strays / len(self.start)

    def _usable(self, logs: Floats) -> Floats:
        """Return the logarithms, 0 where the reports are impossible in every place."""
        if logs.shape != (self.steps, *logs.shape[1:2], len(self.start)) or not (logs < np.inf).all():
            rule = f"must be ({self.steps}, n, {len(self.start)}) logarithms, none of them NaN or +∞"
            raise ParameterError("logs", rule, logs.shape)
        return np.where((logs > -np.inf).any(axis=2, keepdims=True), logs, 0.0)


@compiled
def _advance(best: Floats, rows: Integers, columns: Integers, chances: Floats, ahead: Floats, before: Integers) -> None:
    """Improve the logarithm of the most probable path to each place of the next step, and the place before it.

    Parameters
    ----------
    best : (n, V + 1) float64
        Logarithms of the most probable paths up to this step.
    rows, columns, chances
        The transition matrix, with logarithms of probabilities.
    ahead, before : (n, V + 1)
        What is improved: the logarithm if the device strays, and the place before it.
    """
    for device in range(len(best)):
        for place in range(best.shape[1]):
            for entry in range(rows[place], rows[place + 1]):
                chance = best[device, place] + chances[entry]
                if chance > ahead[device, columns[entry]]:
                    ahead[device, columns[entry]] = chance
                    before[device, columns[entry]] = place

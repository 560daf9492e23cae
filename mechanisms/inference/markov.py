"""A device's cells in T queries as a Markov chain, guessed from its linked reports: a hidden Markov model.

The cell of each step depends on the cell of the step before alone, with one transition matrix a step; the reports of a
step depend on its cell alone. Two guesses are best, each by a score of its own: smoothing guesses the most probable
cell of each step and so has the most right steps on average; the Viterbi algorithm guesses the most probable path and
so is most often right about the whole path. L. R. Rabiner, "A tutorial on hidden Markov models and selected
applications in speech recognition" (Proceedings of the IEEE, 1989), has both.

Chains are learned from data and may exclude what happens. Where reports are impossible after the reports before them,
the chain begins anew: the cell of this step is guessed from its own reports and those after it. Reports that are
impossible in every cell (forged, or a partial sum of shares) are not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask, compiled
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

    Raises
    ------
    ParameterError
        If the start or a row is no distribution, or a matrix has another form.
    """

    start: Floats
    moves: Sequence[Any]

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
            log P(all reports of the device), up to the sum of the constants; −∞ if they are impossible.

        Raises
        ------
        ParameterError
            If the shape is wrong, or a logarithm is NaN or +∞.
        """
        after, evidence = self.filtered(logs)
        for step in range(self.steps - 2, -1, -1):
            # A posterior is weighted by how much later reports raise the probabilities of the places that follow.
            ahead = after[step] @ self.moves[step]
            later = np.divide(after[step + 1], ahead, out=np.zeros_like(ahead), where=ahead > 0.0)
            weighted = after[step] * (self.moves[step] @ later.T).T
            total = weighted.sum(axis=1, keepdims=True)
            # No place of this step leads to the next where the chain began anew.
            after[step] = np.divide(weighted, total, out=after[step], where=total > 0.0)
        return after, evidence

    def filtered(self, logs: Floats) -> tuple[Floats, Floats]:
        """Return the posterior in each step given the reports up to this step; otherwise as `smoothed`."""
        logs, possible = self._usable(logs)
        after, evidence = np.empty_like(logs), np.where(possible, 0.0, -np.inf).sum(axis=0)
        for step in range(self.steps):
            ahead = after[step - 1] @ self.moves[step - 1] if step else np.tile(self.start, (logs.shape[1], 1))
            with np.errstate(divide="ignore"):
                weights, top = _scaled(np.log(ahead) + logs[step])
            anew = np.isneginf(top)
            weights[anew] = _scaled(logs[step, anew])[0]
            total = weights.sum(axis=1)
            after[step] = weights / total[:, np.newaxis]
            evidence += top + np.log(total)
        return after, evidence

    def likeliest(self, logs: Floats) -> Integers:
        """Return each device's most probable path given all its reports, (T, n) int64; logs as in `smoothed`."""
        logs, _ = self._usable(logs)
        before: Integers = np.empty(logs.shape, dtype=np.int64)
        paths: Integers = np.empty(logs.shape[:2], dtype=np.int64)
        with np.errstate(divide="ignore"):
            chances = [np.log(matrix.data) for matrix in self.moves]
            ahead = np.tile(np.log(self.start), (logs.shape[1], 1))
        for step in range(self.steps):
            best = ahead + logs[step]
            best = np.where(np.isneginf(best.max(axis=1, keepdims=True)), logs[step], best)
            if step < self.steps - 1:
                matrix, ahead = self.moves[step], np.full_like(best, -np.inf)
                before[step + 1] = best.argmax(axis=1)[:, np.newaxis]
                _advance(best, matrix.indptr, matrix.indices, chances[step], ahead, before[step + 1])
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

        def of(guess: Any) -> PathSuccess:
            at = (*np.ogrid[: self.steps, : guess.shape[1]], guess)
            whole = np.exp(self.log_probability(guess) + logs[at].sum(axis=0))
            return PathSuccess(after[at] @ np.exp(evidence), float(whole.sum()))

        return of(np.stack([best_guess(step) for step in after])), of(self.likeliest(logs))

    def success_from_counts(self, vehicles: int, *, start_known: bool) -> PathSuccess | None:
        """Return the success of the best guesses about one vehicle if the exact counts of all vehicles are published.

        It is the success of the best guess of each step, and of the best guess of the path, which may be another one.

        The vehicles move independently by this chain, and nothing else about them is seen.

        Parameters
        ----------
        vehicles : int
            At least 1.
        start_known : bool
            Whether the place of the vehicle in the first step is known. The first places of the others follow from the
            counts, up to their order, which does not matter.

        Returns
        -------
        PathSuccess, or None
            None if there are too many combinations of paths.
        """
        places = len(self.start)
        if float(places) ** self.steps > BATCH_FLOATS or self.steps * places * np.log2(vehicles + 1) > 62:
            return None
        paths = np.indices((places,) * self.steps).reshape(self.steps, -1)
        chances = np.exp(self.log_probability(paths))
        paths, chances = paths[:, chances > 0.0], chances[chances > 0.0]
        # The counts of all steps are the digits of one number, to which each vehicle adds 1 in each step.
        digits = np.arange(self.steps)[:, np.newaxis] * places + paths
        added = (np.int64(vehicles + 1) ** digits).sum(axis=0)
        counts: Any = np.zeros(1, dtype=np.int64)
        mass: Any = np.ones(1)
        for _ in range(vehicles):
            if len(counts) * len(added) > BATCH_FLOATS:
                return None
            joint = np.outer(mass, chances).ravel()  # the last one: of the others' counts and the path of the vehicle
            counts, seen = np.unique(counts[:, np.newaxis] + added, return_inverse=True)
            seen = seen.ravel()
            mass = np.bincount(seen, joint)
        paths = np.tile(paths, len(joint) // len(added))
        if start_known:
            seen = seen * places + paths[0]
        best = np.zeros(len(counts) * places)
        np.maximum.at(best, seen, joint)
        masses = [np.bincount(seen * places + path, joint, len(best) * places) for path in paths]
        steps = np.array([each.reshape(-1, places).max(axis=1).sum() for each in masses])
        return PathSuccess(steps, float(best.sum()))

    def _usable(self, logs: Floats) -> tuple[Floats, Mask]:
        """Return the logarithms, 0 where the reports are impossible in every place, and where they are not, (T, n)."""
        if logs.shape != (self.steps, *logs.shape[1:2], len(self.start)) or not (logs < np.inf).all():
            rule = f"must be ({self.steps}, n, {len(self.start)}) logarithms, none of them NaN or +∞"
            raise ParameterError("logs", rule, logs.shape)
        possible: Mask = np.asarray((logs > -np.inf).any(axis=2))
        return np.where(possible[..., np.newaxis], logs, 0.0), possible


def _scaled(logs: Floats) -> tuple[Floats, Floats]:
    """Return numbers relative to the largest of their row, from their logarithms, and the largest logarithm."""
    top = logs.max(axis=1)
    return np.exp(logs - np.where(np.isneginf(top), 0.0, top)[:, np.newaxis]), top


@compiled
def _advance(best: Floats, rows: Integers, columns: Integers, chances: Floats, ahead: Floats, before: Integers) -> None:
    """Fill in the logarithm of the most probable path to each place of the next step, and the place before it.

    Parameters
    ----------
    best : (n, V + 1) float64
        Logarithms of the most probable paths up to this step.
    rows, columns, chances
        The transition matrix, with logarithms of probabilities.
    ahead, before : (n, V + 1)
        What is filled in; −∞ where no path leads.
    """
    for device in range(len(best)):
        for place in range(best.shape[1]):
            for entry in range(rows[place], rows[place + 1]):
                chance = best[device, place] + chances[entry]
                if chance > ahead[device, columns[entry]]:
                    ahead[device, columns[entry]] = chance
                    before[device, columns[entry]] = place

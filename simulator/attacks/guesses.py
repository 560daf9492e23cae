"""Guesses about the cells of devices: the prior of a coalition, what an attack returns, and users' own attacks."""

import copy
import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import matmul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mechanisms.inference.likelihood import best_guess
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import NotEstimableError
from mechanisms.parameter import ParameterError, check_integer
from simulator.aggregation.transcript import HandleKind, handles_of
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.attacks.observation import Linked, Observation

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior probabilities of a device's cell, (cells + 1,) float64 with [0] outside, for each query.

    Parameters
    ----------
    by_query
        Probabilities by the query's number.
    even
        Whether the prior is uniform. Ties between guesses are then broken at random; otherwise the lowest of equally
        likely cells is guessed, which does not change the expected success.
    exact
        Whether the devices guessed are known to be distributed over the cells in exactly these shares. Reports that
        cannot be linked to a device then reveal nothing more about one (together with linked reports, only by how the
        coins happened to fall, which is not used).
    learned
        Whether the probabilities are not the devices' own shares, but were learned elsewhere: no success is known then,
        and the success of the guess without an observation is counted.
    moves
        By query, all but the first: (cells + 1, cells + 1) float64, the probabilities of the cell in this query, in
        columns, given the cell in the query before it, in rows. None: nothing is known about movement.
    """

    by_query: Mapping[int, FloatArray]
    even: bool = False
    exact: bool = False
    learned: bool = False
    moves: "Mapping[int, csr_array] | None" = None

    @classmethod
    def from_counts(cls, counts: Mapping[int, IntArray], *, exact: bool = False) -> "Prior":
        """Return the prior given by the share of devices in each cell.

        Parameters
        ----------
        counts
            (cells + 1,) int64 by query, at least one device in each query.
        exact
            As in the class: whether the counts are counts of the devices guessed.

        Raises
        ------
        ParameterError
            If a query has no device.
        """
        for query, places in counts.items():
            if places.sum() < 1:
                raise ParameterError("counts", f"must hold a device in query {query}", 0)
        return cls({query: places / places.sum() for query, places in counts.items()}, exact=exact)

    @classmethod
    def uniform(cls, cells: int, queries: tuple[int, ...]) -> "Prior":
        """Return the uniform prior over all cells and outside."""
        places = check_integer("cells", cells, at_least=1) + 1
        return cls(dict.fromkeys(queries, np.full(places, 1.0 / places)), even=True)

    def of(self, query: int) -> FloatArray:
        """Return the probabilities of one query."""
        return self.by_query[query]

    def moves_between(self, before: int, query: int) -> "csr_array":
        """Return the probabilities of moves from one query to a later one, over the queries between them."""
        moves = self.moves or {}
        return reduce(matmul, (moves[number] for number in sorted(moves) if before < number <= query))

    def tie_rng(self, rng: np.random.Generator) -> np.random.Generator | None:
        """Return the generator that breaks ties if the prior is uniform; otherwise None, for ties broken by order."""
        return rng if self.even else None

    def guess(self, query: int, n: int, *, rng: np.random.Generator) -> Cells:
        """Return the best guesses for n devices about which nothing was observed, (n,) int32."""
        return best_guess(np.tile(self.of(query), (n, 1)), rng=self.tie_rng(rng))

    def usual(self, query: int) -> int | None:
        """Return the cell that `guess` always returns; None if it is drawn."""
        return None if self.even else int(best_guess(self.of(query)[np.newaxis])[0])

    def success(self, query: int) -> float:
        """Return the probability that `guess` is right: the largest of the prior."""
        return float(self.of(query).max())

    def trusted(self, theory: float | None, query: int) -> float:
        """Return an expected success computed for this prior; NaN if devices are not distributed like the prior.

        Under a uniform prior they are not. The expected success is then known only if the observation reveals nothing,
        as every guess is then drawn. Under a learned prior it never is.
        """
        if theory is None or self.learned or (self.even and theory > self.success(query) * (1.0 + ROUNDING)):
            return math.nan
        return theory


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about devices from which the coalition received the same kinds of reports in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64, the devices that the guesses are about; None: one guess for any device that no other guess names.
    cells
        (n,) int32, 0 (outside) … V; (1,) if it is one guess for any device.
    theory
        The expected success before the reports are seen; NaN if it is not known.
    probability
        As `cells`, float64: the posterior probability of each guess; None if the attack computes none.

    Raises
    ------
    ValueError
        If handles and cells do not have the same number of devices.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    cells: Cells
    theory: float = math.nan
    probability: FloatArray | None = None

    @classmethod
    def about(cls, group: Linked, query: int, cells: Cells, theory: float = math.nan) -> "Guesses":
        """Return guesses about the devices of a group of linked reports, (n,) in its order."""
        return cls(query, group.handle_kind, group.handles, cells, theory)

    def __post_init__(self) -> None:
        """Make arrays of lists, and check that there is one guess for each handle."""
        for name in ("handles", "cells", "probability"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(given))
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles are required unless handle_kind is 'none', received {self.handle_kind!r}")
        if len(self.cells) != (1 if self.handles is None else len(self.handles)):
            raise ValueError(f"there must be one guess a device, received {len(self.cells)}")

    def among(self, rows: IntArray) -> "Guesses":
        """Return the guesses about some of the devices, given by their positions."""
        sure = None if self.probability is None else self.probability[rows]
        handles = None if self.handles is None else self.handles[rows]
        return replace(self, handles=handles, cells=self.cells[rows], probability=sure)


class CellAttack(Protocol):
    """An attack that guesses the cells of devices in the queries of a campaign, or of several together.

    The project makes the observation and the prior, scores the guesses against the truth, and lets the prior guess for
    every device that the attack does not name. The page docs/how/own_attack.md has an example.
    """

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> Sequence[Guesses]:
        """Return guesses about devices, of any of the queries that were observed.

        Parameters
        ----------
        observation
            What the coalition received and knows, and what is public, of all queries of the campaign, or campaigns
            (``observation.queries``). An attack on single queries takes them one after the other.
        prior
            The coalition's prior; ``prior.of(query)`` has the probabilities, (cells + 1,) float64 with [0] outside,
            and ``prior.moves`` what is known about movement.
        rng
            The attack's own random numbers.

        Returns
        -------
        sequence of Guesses
            Each handle of a query at most once; empty where the coalition has nothing to guess from.
        """


class WrongGuessesError(ValueError):
    """A user's own attack raised an error, or returned what is no answer; the message names the rule."""


@dataclass(frozen=True)
class CheckedAttack:
    """A user's own attack with its answers checked.

    It gets copies of the prior and of what was published, so that it can change neither the run nor its own score.

    Parameters
    ----------
    attack
        The user's object.
    """

    attack: CellAttack

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> list[Guesses]:
        """Return the guesses of the attack; parameters as of `CellAttack.guess`.

        Raises
        ------
        WrongGuessesError
            If the attack raises an error, or its answer breaks a rule.
        NoLikelihoodError, NotEstimableError
            If the attack raises it: then the attack cannot be tried on this mechanism.
        """
        given = replace(observation, released=copy.deepcopy(observation.released))
        try:
            answer = self.attack.guess(given, copy.deepcopy(prior), rng=rng)
        except (NoLikelihoodError, NotEstimableError):
            raise
        except Exception as error:  # a user's attack may raise anything
            at = traceback.extract_tb(error.__traceback__)[1:2]  # the attack's own line, if it was called at all
            where = "".join(f" (line {frame.lineno} of {Path(frame.filename).name})" for frame in at)
            raise WrongGuessesError(f"guess raises {type(error).__name__}: {error}{where}") from error
        for _, rule in broken_answers(answer, observation):
            raise WrongGuessesError(rule)
        return list(answer)


def broken_answers(answer: Any, observation: Observation) -> Iterator[tuple[str, str]]:
    """Yield the rules that an answer to an observation breaks.

    Parameters
    ----------
    answer
        What an attack returned.
    observation
        What it was given.

    Yields
    ------
    what : {"form", "cells", "handles", "theory"}
        The part of the answer that breaks the rule.
    rule : str
        The rule and the value received, beginning with "guess must".
    """
    listed = isinstance(answer, list | tuple)
    if not listed or not all(isinstance(guess, Guesses) for guess in answer):
        received = [type(item).__name__ for item in answer] if listed else type(answer).__name__
        yield "form", f"guess must return a list of crowdveil.Guesses, received {received}"
        return
    named: set[tuple[int, str, int | None]] = set()
    for guess in answer:
        if guess.query not in observation.queries:
            rule = f"guess must be about an observed query ({', '.join(map(str, observation.queries))})"
            yield "form", f"{rule}, received {guess.query!r}"
            continue
        if (wrong := _wrong_form(guess)) is not None:
            yield "form", wrong
            continue
        if not isinstance(guess.theory, int | float) or not (math.isnan(guess.theory) or 0 <= guess.theory <= 1):
            yield "theory", f"guess must return a theory in 0…1, or NaN if it is not known, received {guess.theory!r}"
        if guess.probability is not None and not _are_probabilities(np.asarray(guess.probability), len(guess.cells)):
            yield "theory", "guess must return a probability in 0…1 for each guess, or None for all"
        cells, most = np.asarray(guess.cells), observation.mechanism.cells
        if len(outside := cells[(cells < 0) | (cells > most)]):
            yield "cells", f"guess must return cells in 0…{most}, 0 for outside, received {outside[0]}"
        handles = [None] if guess.handles is None else guess.handles.tolist()
        known = _known_handles(observation, guess.query, guess.handle_kind)
        if guess.handles is not None and len(unknown := guess.handles[~np.isin(guess.handles, known)]):
            rule = f'guess must return handles of the observation, of kind "{guess.handle_kind}"'
            yield "handles", f"{rule}, received {unknown[0]}"
        keys = {(guess.query, guess.handle_kind, handle) for handle in handles}
        if len(keys) < len(handles) or keys & named:
            yield "handles", f"guess must name each device at most once in query {guess.query}"
        named |= keys


def _are_probabilities(given: np.ndarray, guesses: int) -> bool:
    """Return whether these are as many probabilities as guesses."""
    return given.shape == (guesses,) and given.dtype.kind in "fiu" and bool(((given >= 0) & (given <= 1)).all())


def _wrong_form(guess: Guesses) -> str | None:
    """Return the rule that the columns of one set of guesses break by their lengths or types, whatever their values."""
    for name, column in (("handles", guess.handles), ("cells", guess.cells)):
        entries = np.asarray([0] if column is None else column)
        if entries.ndim != 1 or (len(entries) and entries.dtype.kind not in "iu"):
            return f"guess must return {name} as whole numbers, (n,), received {entries.dtype} of {entries.shape}"
    if len(guess.cells) != (1 if guess.handles is None else len(guess.handles)):  # arrays may have changed since
        return f"guess must return one cell for each handle, received {len(guess.cells)}"
    return None


def _known_handles(observation: Observation, query: int, kind: str) -> np.ndarray:
    """Return the handles of one kind that a coalition has of a query, its own vehicles' handles included.

    A device keeps its number, so that it can be guessed in a query that it did not answer.
    """
    stored = handles_of((entry for entry in observation.seen if kind == "device" or entry.query == query), kind)
    sent = observation.own_of(query)
    own = [] if sent is None else [sent.devices if kind == "device" else sent.pseudonyms]
    return np.concatenate([stored, *own])

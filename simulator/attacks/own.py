"""Users' own attacks: what such an attack must have, and which of its answers are refused."""

import copy
import math
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.local import NotEstimableError
from simulator.attacks.observation import Observation
from simulator.attacks.reconstruction import Guesses, Prior


class CellAttack(Protocol):
    """An attack that guesses the cells of devices, one query at a time.

    The project makes the observation and the prior, scores the guesses against the truth, and lets the prior guess for
    every device that the attack does not name. The page docs/collusion.md has an example.
    """

    def guess(self, observation: Observation, prior: Prior, *, rng: np.random.Generator) -> Sequence[Guesses]:
        """Return guesses about devices of the query that was observed.

        Parameters
        ----------
        observation
            What the coalition received and knows, and what is public, of one query (``observation.queries[0]``).
        prior
            The coalition's prior; ``prior.of(query)`` has the probabilities, (cells + 1,) float64 with [0] outside.
        rng
            The attack's own random numbers.

        Returns
        -------
        sequence of Guesses
            Each handle of the observation at most once; empty where the coalition has nothing to guess from.
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
        return [
            Guesses(
                guess.query,
                guess.handle_kind,
                None if guess.handles is None else np.asarray(guess.handles, dtype=np.int64),
                np.asarray(guess.cells, dtype=np.int32),
                float(guess.theory),
                None if guess.probability is None else np.asarray(guess.probability, dtype=np.float64),
            )
            for guess in answer
        ]


def broken_answers(answer: Any, observation: Observation) -> Iterator[tuple[str, str]]:
    """Yield the rules that an answer to an observation breaks.

    Parameters
    ----------
    found
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
    if not isinstance(answer, list | tuple) or not all(isinstance(guess, Guesses) for guess in answer):
        received = type(answer).__name__
        if isinstance(answer, list | tuple):
            received = str([type(item).__name__ for item in answer])
        yield "form", f"guess must return a list of simulator.attacks.reconstruction.Guesses, received {received}"
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
        handles = [None] if guess.handles is None else np.asarray(guess.handles).tolist()
        if guess.handles is not None:
            unknown = ~np.isin(guess.handles, _known_handles(observation, guess.query, guess.handle_kind))
            if unknown.any():
                rule = f'guess must return handles of the observation, of kind "{guess.handle_kind}"'
                yield "handles", f"{rule}, received {np.asarray(guess.handles)[unknown][0]}"
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
    devices = 1 if guess.handles is None else len(guess.handles)
    if len(guess.cells) != devices:  # arrays may have changed since it was made
        return f"guess must return one cell for each handle, received {len(guess.cells)}"
    return None


def _known_handles(observation: Observation, query: int, kind: str) -> np.ndarray:
    """Return the handles of one kind that a coalition has of a query, those of its own vehicles included."""
    stored = [entry.handles for entry in observation.seen if (entry.query, entry.handle_kind) == (query, kind)]
    sent = observation.own_of(query)
    if sent is not None:
        stored.append(sent.devices if kind == "device" else sent.pseudonyms)
    return np.concatenate([np.empty(0, dtype=np.int64), *(handles for handles in stored if handles is not None)])

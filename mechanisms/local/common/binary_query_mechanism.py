"""Base class of mechanisms that ask one binary query per cell and estimate linearly, with their claims."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.binary_query import Question, QuestionCoins, batch_of_rows
from mechanisms.local.common.linear_estimator import LinearEstimator
from mechanisms.local.common.packed_bits import AnswerReports, encode_answers, tally_answers
from mechanisms.local.common.response_counts import ResponseCounts, check_round, check_truth
from mechanisms.local.mechanism import Counts, Estimate, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import check_counts, check_integer, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.per_cell import per_cell_claim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.symmetric_pair import released_reports_claim, shares_claim
from mechanisms.privacy.view import LinkedReports, ReleasedDifferences, Report, Shares, Shuffled, View


def question_claim(view: View, question: Question, *, cells: int, source: str) -> PrivacyClaim:
    """Return the claim about a view, exact for one query, from the distributions of one or all rounds' answers.

    Parameters
    ----------
    view : View
    question : Question
        The distribution of the answers.
    cells : int
        The number of cells V; the device uses independent coins for each.
    source : str
        The equations that define the distribution.

    Returns
    -------
    PrivacyClaim
        Its basis names an answer that reveals the truth with certainty, if there is one.
    """
    telling = _telling(question)
    whole = f"{source}; {telling}" if telling else source

    def linked(queries: int) -> PrivacyClaim:
        return per_cell_claim(question.yes, question.no, cells=cells, queries=queries, source=whole)

    def alone(round_: int, queries: int) -> PrivacyClaim:
        if question.rounds == 1:
            return linked(queries)
        yes, no = question.in_round(round_)
        return per_cell_claim(yes, no, cells=cells, queries=queries, source=f"{source}, round {round_} alone")

    if isinstance(view, ReleasedDifferences):
        return PrivacyClaim.unknown("The mechanism publishes no differences of two rounds' counts.")
    if isinstance(view, Report | Shuffled) and view.round > question.rounds:
        return PrivacyClaim.unknown(f"The mechanism has {question.rounds} round(s) only.")
    if isinstance(view, Report):
        return alone(view.round, view.queries)
    if isinstance(view, Shuffled):
        return shuffled_claim(view, local=alone(view.round, view.queries), single=alone(view.round, 1))
    if isinstance(view, Shares):
        return shares_claim(view, linked=linked(view.queries))
    return linked(view.queries) if isinstance(view, LinkedReports) else released_reports_claim(linked(view.queries))


def _telling(question: Question) -> str:
    """Return a text that names answers which reveal the truth with certainty; empty if there are none."""
    parts = []
    for answers, who in ((question.told_by_yes, "in the cell"), (question.told_by_no, "not in it")):
        if answers:
            parts.append(f"{question.name(answers[0])} is given only by a device {who}")
    return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class QuestionMechanism(ABC):
    """A yes/no question about every cell, answered with one of a few outputs; one set of coins serves all rounds.

    A device is a Yes-holder of the question about its own cell and a No-holder of all others. A device outside
    every cell is a No-holder of all. Its coins for different cells are independent. The truth is that of
    round one.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1; with 1 it is the single question of the papers.
    """

    cells: int
    rounds: ClassVar[int] = 1
    truth_round: ClassVar[int] = 1
    sample_law: ClassVar[str] = "exact joint"
    source: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the number of cells, and check the parameters by computing the distribution of the answers."""
        check_integer("cells", self.cells, at_least=1)
        _ = self.question

    @abstractmethod
    def build_question(self) -> Question:
        """Return the distribution of the answers; raise ParameterError if the parameters define none."""

    @abstractmethod
    def build_estimator(self) -> LinearEstimator:
        """Return the estimator; raise NotEstimableError if there is none."""

    @cached_property
    def question(self) -> Question:
        """The distribution of the answers."""
        return self.build_question()

    @cached_property
    def linear_estimator(self) -> LinearEstimator:
        """The linear estimator with its weights.

        Raises
        ------
        NotEstimableError
            If there is none.
        """
        return self.build_estimator()

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, outputs): the number of each output about each cell."""
        return (self.cells, len(self.question.outputs))

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and one round's reports take at most about 64 MB."""
        return batch_of_rows(self.question.words(self.cells))

    def warnings(self) -> list[str]:
        """Return the papers' warnings about these parameters: there are none."""
        return []

    def enrol(self, n: int, *, rng: np.random.Generator) -> NoMemory:  # noqa: ARG002 - others draw
        """Return the memory of n devices: none."""
        return NoMemory(n)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> QuestionCoins:
        """Draw every device's answers in all rounds, for its own cell and for any other."""
        return self.question.toss(memory.devices, self.cells, rng=rng)

    def answer(self, round: int, truth: Truth, coins: QuestionCoins) -> AnswerReports:  # noqa: A002 - the paper's word
        """Return an answer about every cell; a device outside every cell is a No-holder of each question."""
        check_round(round, self.rounds)
        check_truth(truth, devices=len(coins), cells=self.cells)
        return self.question.answer(round, truth, coins, self.cells)

    def encode(self, reports: AnswerReports) -> Vectors:
        """Return (n, V, outputs) int64: a 1 for the answer given about each cell."""
        return encode_answers(reports, *self.tally_shape)

    def tally(self, reports: AnswerReports, where: Where | None = None) -> Counts:
        """Return how often each answer was given about each cell, (V, outputs) int64."""
        return tally_answers(reports, *self.tally_shape, where)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return the linear estimate, with each round's counts divided by its response rate.

        Parameters
        ----------
        counts : (rounds, V, outputs) int64
        counted, asked : (rounds,) int
            Every device asked in a later round was also asked in round one.

        Returns
        -------
        Estimate
            Unbiased, with the interval of `LinearEstimator.estimate`.

        Raises
        ------
        NotEstimableError
            If the answers do not determine the count.
        """
        return self.linear_estimator.estimate(self._check_tallies(counts), self._hear(counted, asked))

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return the exact standard error, (V,), for an ideal channel or the given numbers of reports.

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        asked, counted : (rounds,) int, optional
            An ideal channel by default.

        Raises
        ------
        NotEstimableError
            If the answers do not determine the count.
        """
        truth = check_true_counts(true_counts, self.cells)
        heard = ResponseCounts.from_truth(
            int(truth.sum()), counted, asked, rounds=self.rounds, truth_round=self.truth_round
        )
        if heard.silent:
            return np.full(self.cells, np.inf)
        return self.linear_estimator.variance(heard).std_error(truth[1:])

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (rounds, V, outputs) counts: the answers of Y and of N − Y devices, independent between cells."""
        return self.question.sample_counts(check_true_counts(true_counts, self.cells), rng=rng)

    def claim(self, view: View) -> PrivacyClaim:
        """Return the claim about a view, computed exactly from the answers that change when a device moves."""
        return question_claim(view, self.question, cells=self.cells, source=self.source)

    def _hear(self, counted: Sequence[int], asked: Sequence[int]) -> ResponseCounts:
        """Return the checked numbers of devices asked and reports counted."""
        return ResponseCounts.from_rounds(counted, asked, rounds=self.rounds, truth_round=self.truth_round)

    def _check_tallies(self, counts: Counts) -> Counts:
        """Return the counts of all rounds after checking their shape and dtype."""
        return check_counts("counts", counts, (self.rounds, *self.tally_shape))

"""k-ary randomized response: report the truth with a known probability, otherwise a uniform symbol."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Values
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import CategoricalReports
from mechanisms.local.common.categorical_sampling import answer_drawn, draw_categorical
from mechanisms.local.common.frequency_oracle import FrequencyOracle
from mechanisms.local.mechanism import Counts, NoMemory, Truth
from mechanisms.local.sampling_privacy import Dice
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.published_sums import sums_claim
from mechanisms.privacy.shuffled import shuffled_value_claim
from mechanisms.privacy.view import ReleasedCounts, Shuffled


@dataclass(frozen=True, kw_only=True)
class KRandomizedResponse(CategoricalReports, FrequencyOracle):
    """Report one of k = V + 1 symbols, the true one e^ε times as likely as any other (Kairouz, Oh and Viswanath 2014).

    Warner's randomized response for two symbols; "GRR" and "direct encoding" in Wang et al. 2017 sec 4.1.
    Outside every cell is symbol 0. The categorical draw is the draw of Sampling Privacy with k equal blanks: with
    probability (e^ε − 1)/(e^ε + k − 1) the device reports the truth, else a uniform symbol.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    declared: ClassVar[Declared] = declaration("k_randomized_response")
    batch: ClassVar[int] = 2**20  # coins and reports take 8 MB

    @property
    def truthful(self) -> float:
        """Probability that the draw makes the device report the truth, (e^ε − 1)/(e^ε + k − 1)."""
        return math.expm1(self.epsilon) / (math.exp(self.epsilon) + self.cells)

    @property
    def true_yes(self) -> float:
        """Return p = e^ε/(e^ε + k − 1)."""
        return math.exp(self.epsilon) / (math.exp(self.epsilon) + self.cells)

    @property
    def false_yes(self) -> float:
        """Return q = 1/(e^ε + k − 1)."""
        return 1.0 / (math.exp(self.epsilon) + self.cells)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> Dice:
        """Make every device's categorical draw."""
        return Dice(draw_categorical(memory.devices, self.truthful, self.symbols, None, rng=rng))

    def answer(self, round: int, truth: Truth, coins: Dice) -> Values:  # noqa: A002 - the paper's word
        """Return one symbol per device, (n,) int32 in 0…V."""
        self.check_answer(round, truth, len(coins))
        reports = np.empty_like(coins.drawn)
        answer_drawn(coins.drawn, truth, reports)
        return reports

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V + 1) counts: Bin(Y_v, truthful) truthful devices per symbol, one multinomial of the others."""
        truth = check_true_counts(true_counts, self.cells)
        truthful = rng.binomial(truth, self.truthful)
        rest = int(truth.sum() - truthful.sum())
        blanks = rng.multinomial(rest, np.full(self.symbols, 1.0 / self.symbols))
        return (truthful + blanks).astype(np.int64, copy=False)[np.newaxis]

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of the reports in random order, amplified by the other devices' blanks."""
        blanks = np.full(self.symbols, self.false_yes)  # a blank is as likely as any one wrong symbol
        return shuffled_value_claim(view, sampling=self.truthful, blanks=blanks, local=self.own_reports(view))

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published counts of all symbols: they are the shuffled reports; of one cell, bits."""
        if self.cells > 1:
            return super().claim_counts(view)
        local = self.own_reports(view)
        return sums_claim(view, true_yes=self.true_yes, false_yes=self.false_yes, report=local, source=self.source)

    @property
    def distinguishing(self) -> float:
        """Return p, probability of the true symbol."""
        return self.true_yes

    @property
    def source(self) -> str:
        """The reason for the claim about a report, and the paper."""
        return f"Each truth's own symbol is e^ε times as likely under it, k = {self.symbols} (Kairouz et al. 2014)"

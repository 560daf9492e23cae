"""Hadamard response: one output of K, on the true symbol's side of a Hadamard matrix more often."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mechanisms.local.mechanism import Counts, NoMemory, Truth, Vectors, Where
from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.checks import check_round, check_truth, check_values, check_where
from mechanisms.local.parts.die import one_hot, tally_values
from mechanisms.local.parts.hadamard import choose_side, hadamard_order, sample_sides, walsh_hadamard
from mechanisms.local.parts.pure_protocol import PureProtocol
from mechanisms.parameter import check_integer, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.mirror_pair import mirror_claim


@dataclass(frozen=True, eq=False, slots=True)
class HadamardCoins:
    """A point and a coin a device.

    Parameters
    ----------
    points : (n,) int32
        Uniform outputs 0…K − 1.
    wrong : (n,) bool
        Whether to report from the side that is not the truth's.
    """

    points: NDArray[np.int32]
    wrong: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self.points)


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(PureProtocol):
    """Report an output of the true symbol's set with e^ε/(e^ε + 1), of its complement otherwise, uniformly.

    Acharya, Sun and Zhang 2019, *Hadamard Response: Estimating Distributions Privately, Efficiently, and with
    Little Communication*, sec 4 (high privacy; it is their best for ε ≤ 1, while k-ary randomized response or
    subset selection is better for large ε). K is the least power of two above the k = V + 1 symbols; the set of symbol
    x (0 outside, 1…V) is where row x + 1 of the K × K matrix is +1, row 0 being all +1. Each set is half of
    the outputs, any two share a quarter.

    Parameters
    ----------
    cells : int
        The number of cells V, 1…2³⁰ − 2.
    epsilon : float
        ε of a report; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float
    sample_law: ClassVar[str] = "exact joint"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_integer("cells", self.cells, at_least=1, at_most=2**30 - 2)
        check_budget("epsilon", self.epsilon)

    @property
    def outputs(self) -> int:
        """K, the order of the matrix."""
        return hadamard_order(self.cells + 1)

    @property
    def true_yes(self) -> float:
        """Return p = e^ε/(e^ε + 1), probability that a report is in the true symbol's set."""
        return float(expit(self.epsilon))

    @property
    def false_yes(self) -> float:
        """Return q = 1/2, probability that it is in any one other's."""
        return 0.5

    @property
    def tally_shape(self) -> tuple[int]:
        """(K,): reports of each output."""
        return (self.outputs,)

    @property
    def batch(self) -> int:
        """Devices a batch: their coins and reports take about 9 MB."""
        return 2**20

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> HadamardCoins:
        """Draw every device's point, and whether it takes the wrong side."""
        points = rng.integers(self.outputs, size=memory.devices, dtype=np.int32)
        return HadamardCoins(points, rng.random(memory.devices) >= self.true_yes)

    def answer(self, round: int, truth: Truth, coins: HadamardCoins) -> NDArray[np.int32]:  # noqa: A002 - the paper's word
        """Return one output a device, (n,) int32 in 0…K − 1."""
        check_round(round, self.rounds)
        check_truth(truth, devices=len(coins), cells=self.cells)
        reports = np.empty_like(coins.points)
        choose_side(coins.points, coins.wrong, truth, reports)
        return reports

    def encode(self, reports: NDArray[np.int32]) -> Vectors:
        """Return one-hot rows, (n, K) int64."""
        return one_hot(check_values(reports, outputs=self.outputs), self.outputs)

    def tally(self, reports: NDArray[np.int32], where: Where | None = None) -> Counts:
        """Return the reports of each output, (K,) int64."""
        mask = check_where(where, devices=len(reports))
        return tally_values(check_values(reports, outputs=self.outputs), mask, self.outputs)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (1, K) counts of the outputs, jointly, in 2K·log₂K binomials."""
        truth = check_true_counts(true_counts, self.cells)
        sides = np.zeros((self.outputs, 2), dtype=np.int64)
        right = rng.binomial(truth, self.true_yes)
        sides[1 : self.cells + 2] = np.stack([right, truth - right], axis=1)
        return sample_sides(sides, rng=rng)[np.newaxis]

    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the reports in each cell's set: half of all of them and of what its row adds up to."""
        products = walsh_hadamard(counts)
        support: NDArray[np.int64] = (products[0] + products[2 : self.cells + 2]) // 2
        return support

    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return the exact claim: outputs in one of two truths' sets and not in the other tell, half of all."""
        source = (
            "Outputs in one truth's set and not in the other's are e^ε times as likely under it (Acharya et al. 2019)"
        )
        return mirror_claim(telling=self.true_yes / 2, epsilon=self.epsilon, queries=queries, source=source)

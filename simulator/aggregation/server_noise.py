"""Noise by the servers: each adds its own to the sum that it publishes, so that a coalition knows only its members'.

One count a cell is noisy: the reports that support the cell. What else a tally holds is not published, since it would
follow from the number of reports counted, which is public: of yes and no answers the number of No, and the number
of devices outside every cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.local import Estimate, LocalMechanism
from mechanisms.local.common.base import BaseMechanism
from mechanisms.local.common.frequency_oracle import PureProtocol
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.unary_encoding import UnaryEncoding
from mechanisms.privacy import Claim, LinkedReports, ReleasedCounts
from mechanisms.privacy.claim import LeastDelta
from mechanisms.privacy.integer_noise import IntegerNoise
from mechanisms.privacy.published_sums import known_counts_claim, sums_claim
from mechanisms.privacy.view import possible_adjacency
from simulator.arrays import FloatArray, IntArray

LEVEL_95 = 1.959963984540054
NOT_NOISY = "needs mechanisms of one round that publish one count a cell"


def normal_estimate(count: FloatArray, std_error: FloatArray, *, asked: int) -> Estimate:
    """Return an estimate with the interval of the normal distribution, within 0 and the devices asked.

    Parameters
    ----------
    count, std_error
        (cells,) float64.
    asked
        Devices that the query asked.
    """
    centre = np.clip(count, 0.0, asked)
    ends = [np.clip(count + sign * LEVEL_95 * std_error, 0.0, asked) for sign in (-1.0, 1.0)]
    lower, upper = np.minimum(ends[0], centre), np.maximum(ends[1], centre)
    return Estimate(count, std_error, lower, upper, "normal")


def weight_of(mechanism: LocalMechanism) -> float | None:
    """Return by how much one more report that supports a cell raises its estimate, where every report is counted.

    None if the mechanism has several rounds, or several counts a cell: servers then add no noise.
    """
    if isinstance(mechanism, PureProtocol):
        return 1.0 / (mechanism.true_yes - mechanism.false_yes)
    if isinstance(mechanism, NoPrivacy | DistributedLaplace):
        return 1.0
    if isinstance(mechanism, ProtocolMechanism) and mechanism.rounds == 1 and mechanism.tally_shape[-1] == 2:
        no, yes = mechanism.linear_estimator.weights[0]
        return float(yes - no)
    return None


@dataclass(frozen=True, eq=False)
class DrawnNoise:
    """The noise that each server adds to one query's counts of a mechanism.

    Parameters
    ----------
    noise
        Its distribution.
    values
        (servers, cells) int64.
    """

    noise: IntegerNoise
    values: IntArray

    def added_to(
        self, estimate: Estimate, mechanism: LocalMechanism, *, counted: Sequence[int], asked: Sequence[int]
    ) -> Estimate:
        """Return the estimate from the noisy counts, unbiased, with the interval of a normal distribution.

        Parameters
        ----------
        estimate
            The estimate from the counts without noise; estimates are linear in the counts.
        mechanism
            The mechanism, one that `weight_of` knows.
        counted, asked
            Reports counted and devices asked, by round.
        """
        weight = self._weight(mechanism, counted, asked)
        if weight == 0.0 or not isinstance(mechanism, BaseMechanism):
            return estimate
        received = ResponseCounts.from_rounds(counted, asked, rounds=1, truth_round=1)
        count = estimate.count + weight * self.values.sum(axis=0)
        without_noise = mechanism.variance(received).std_error(np.clip(count, 0.0, asked[0]))
        return normal_estimate(count, np.hypot(without_noise, self._spread(weight)), asked=asked[0])

    def std_error(
        self, without_noise: FloatArray, mechanism: LocalMechanism, *, counted: Sequence[int], asked: Sequence[int]
    ) -> FloatArray:
        """Return the theoretical standard error with noise, (cells,), from that without."""
        error: FloatArray = np.hypot(without_noise, self._spread(self._weight(mechanism, counted, asked)))
        return error

    def _weight(self, mechanism: LocalMechanism, counted: Sequence[int], asked: Sequence[int]) -> float:
        """Return the change of an estimate by a count of 1; 0 where no report was counted."""
        weight = weight_of(mechanism)
        return 0.0 if weight is None or not counted[0] else weight * asked[0] / counted[0]

    def _spread(self, weight: float) -> float:
        """Return the standard deviation of all servers' noise on an estimate."""
        return weight * float(np.sqrt(len(self.values) * self.noise.variance))


def noisy_claim(mechanism: LocalMechanism, view: ReleasedCounts, noise: IntegerNoise) -> Claim:
    """Return the claim of published counts to which each server added noise, for a coalition that knows its own.

    Where a device adds independent bits to the cells' counts, the law of a count is known and δ is the δ of the bits'
    sum plus the noise. For others the claim is the lesser of the noise's claim and the mechanism's: adding noise is a
    post-processing. A report of one symbol changes two counts by 1 at most, whatever the symbol is. Bits that are kept
    between queries make the sums of several queries dependent. Given all coins, a device changes the count of a cell
    that it leaves or enters by 1 at most at each query, so the noise alone bounds these too.

    Parameters
    ----------
    mechanism
        One that `weight_of` knows.
    view
        With `colluding` and `servers`.
    noise
        Of one server on one count.
    """
    view = replace(view, adjacency=possible_adjacency(view.adjacency, cells=mechanism.cells))
    plain = mechanism.claim(replace(view, colluding=None, servers=None))
    kept = (
        isinstance(mechanism, LongitudinalUnary) and view.queries > 1
    )  # then the sums of several queries are dependent
    if isinstance(mechanism, UnaryEncoding | ProtocolMechanism) and not kept:
        if isinstance(mechanism, UnaryEncoding):
            true_yes, false_yes, source = mechanism.true_yes, mechanism.false_yes, mechanism.source
        else:
            (_, true_yes), (_, false_yes) = mechanism.binary_query.yes, mechanism.binary_query.no
            source = mechanism.source
        report = mechanism.claim(LinkedReports(view.queries, adjacency=view.adjacency))
        return sums_claim(view, true_yes=true_yes, false_yes=false_yes, report=report, source=source, noise=noise)
    if not isinstance(mechanism, NoPrivacy | KRandomizedResponse | DistributedLaplace | LongitudinalUnary):
        return plain
    # A device that moves changes two counts: of two symbols, or of two cells where true cells are reported.
    two = mechanism.cells > 1 and (view.adjacency == "move" or isinstance(mechanism, KRandomizedResponse))
    noisy = known_counts_claim(view, noise, two=two)
    if isinstance(mechanism, NoPrivacy) or plain.kind == "unknown":
        return noisy
    least = noisy if noisy.epsilon < plain.epsilon else plain
    lesser = Claim.bound(least.epsilon, LeastDelta((noisy, plain)), f"{least.basis} The lesser of two bounds.")
    return replace(lesser, noise=noisy.noise)
